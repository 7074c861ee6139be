"""A recorded output token by token, and where each parser filed every token: what a drawing of a trace shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..parsers import ROWS, STATE_MARKERS, ParserRow
from ..parsers.columns import Pieces
from ..parsers.markers import any_of
from ..parsers.run import ModeResult
from .alignment import Span, Wording, align, by_token
from .context import Prepared
from .plan import RECORDED
from .splits import CALLS
from .work import Result

_MOST = 24
"""Outcomes that are drawn for one trace."""
_TAIL = 160
"""Characters of the prompt's end that are shown."""


@dataclass(frozen=True, slots=True)
class StripRow:
    """One outcome: how a parser, or several alike, filed the tokens.

    Args:
        parsers: names, each with the modes it holds for (`full`, or a chunking); no modes: all that were run.
        spans: runs of tokens that went to one place; empty where the parser raised.
        mixed: by their places, tokens of which a part went elsewhere, in characters.
        leaks: runs of tokens (begin, length) that spell one of the parser's own markers and reached a field.
        own: characters the parser wrote that the output does not hold.
        error: what it raised.
    """

    parsers: tuple[tuple[str, tuple[str, ...]], ...]
    spans: tuple[Span, ...] = ()
    mixed: Mapping[int, Sequence[Span]] = field(default_factory=dict)
    leaks: tuple[tuple[int, int], ...] = ()
    own: int = 0
    error: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "parsers": [[name, list(modes)] for name, modes in self.parsers],
            "spans": [list(span) for span in self.spans],
            "mixed": {str(place): [list(span) for span in spans] for place, spans in self.mixed.items()},
            "leaks": [list(leak) for leak in self.leaks],
            "own": self.own,
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class Strip:
    """The tokens of one output, shared by all rows.

    Args:
        texts, ids: of each token what it shows, and its id (None for text without one).
        names: by their places, the names of tokens that show nothing (an end-of-sequence token).
        deltas: how many tokens each recorded delta brought; empty where nothing was streamed.
        prompt: the end of the prompt, None where it is not known; `state` is what it leaves open.
        rows: what the server returned first, then parsers in the order of the report; `left_out` more were not drawn.
    """

    texts: Sequence[str]
    ids: Sequence[int | None]
    names: Mapping[int, str]
    deltas: Sequence[int]
    prompt: str | None
    state: str | None
    rows: tuple[StripRow, ...]
    left_out: int = 0

    def as_json(self) -> dict[str, Any]:
        return {
            "texts": list(self.texts),
            "ids": list(self.ids),
            "names": {str(place): name for place, name in self.names.items()},
            "deltas": list(self.deltas),
            "prompt": self.prompt,
            "state": self.state,
            "rows": [row.as_json() for row in self.rows],
            "left_out": self.left_out,
        }


def strip_of(prepared: Prepared, results: Iterable[Result], best: Sequence[str], state: str | None) -> Strip:
    """Draw a trace: its tokens, and a row for each way in which it was split.

    Args:
        prepared: the trace, with its tokens.
        results: what parsers made of it. Those that served come first, then those that findings are about.
        best: the parsers that explain it; the first of them comes next.
        state: the prompt's.
    """
    shown = prepared.output.pieces(False)
    special = prepared.vocabulary.special_ids
    rows = _Rows(prepared, shown)
    recorded = prepared.trace.recorded
    if recorded is not None and (recorded.reasoning is not None or recorded.content is not None):
        returned = ModeResult(None, recorded.reasoning, recorded.content, 0)
        rows.add("recorded", (), returned, ROWS.get(recorded.parser or ""), calls_taken=bool(recorded.tool_calls))
    for result in sorted(results, key=lambda one: (not one.served, not one.subject, one.parser not in best[:1])):
        if result.status != "unsupported" and not result.crashed:
            for mode, names in _outcomes(result.modes):
                rows.add(result.parser, names, mode, ROWS.get(result.parser), fed=result.raw)
    found = rows.merged()
    return Strip(
        texts=shown.texts,
        ids=shown.ids,
        names={
            place: prepared.vocabulary.decode([one])
            for place, (text, one) in enumerate(zip(shown.texts, shown.ids, strict=True))
            if not text and one is not None and (one in special or place == len(shown) - 1)
        },
        deltas=_deltas(prepared, shown),
        prompt=prepared.prompt[-_TAIL:] if prepared.prompt is not None else None,
        state=state,
        rows=tuple(found[:_MOST]),
        left_out=max(0, len(found) - _MOST),
    )


def wording_of(row: ParserRow | None, *, calls_taken: bool = False) -> Wording:
    """The texts a parser treats apart; those of every known parser where it is not known which it was."""
    if row is None:
        return Wording(
            start=tuple(pair.start for pair in STATE_MARKERS),
            end=tuple(pair.end for pair in STATE_MARKERS),
            calls=CALLS,
            takes_calls=calls_taken,
        )
    return Wording(
        start=row.start,
        end=row.end,
        removed=row.stripped,
        added=row.added,
        calls=(*row.tool_markers, *CALLS) if calls_taken else row.tool_markers,
        takes_calls=row.takes_calls or calls_taken,
    )


class _Rows:
    """Collects outcomes; equal texts are laid over the output once."""

    def __init__(self, prepared: Prepared, shown: Pieces) -> None:
        self._prepared = prepared
        self._shown = shown
        self._aligned: dict[tuple[Any, ...], StripRow] = {}
        self._rows: list[StripRow] = []

    def add(
        self,
        parser: str,
        modes: tuple[str, ...],
        mode: ModeResult,
        row: ParserRow | None,
        *,
        fed: str | None = None,
        calls_taken: bool = False,
    ) -> None:
        named = ((parser, modes),)
        if mode.error is not None:
            self._rows.append(StripRow(named, error=mode.error))
            return
        pieces = self._pieces(row, fed)
        if pieces is None:
            return
        wording = wording_of(row, calls_taken=calls_taken)
        key = (id(pieces), mode.reasoning or "", mode.content or "", wording)
        if key not in self._aligned:
            self._aligned[key] = self._laid(pieces, mode, wording)
        found = self._aligned[key]
        self._rows.append(StripRow(named, found.spans, found.mixed, found.leaks, found.own))

    def merged(self) -> list[StripRow]:
        """The rows, parsers with one outcome together."""
        groups: dict[str, StripRow] = {}
        for row in self._rows:
            key = repr((row.spans, row.mixed, row.leaks, row.own, row.error))
            first = groups.get(key)
            named = (*first.parsers, *row.parsers) if first is not None else row.parsers
            groups[key] = StripRow(named, row.spans, row.mixed, row.leaks, row.own, row.error)
        return list(groups.values())

    def _pieces(self, row: ParserRow | None, fed: str | None) -> Pieces | None:
        """The pieces that make the text the parser was fed; None where no way of decoding makes it."""
        skips = (row.skip_special_tokens if row is not None else None, None, True, False)
        ways = (self._prepared.output.pieces(skip) for skip in skips)
        return next((pieces for pieces in ways if fed is None or pieces.text == fed), None)

    def _laid(self, pieces: Pieces, mode: ModeResult, wording: Wording) -> StripRow:
        special = self._prepared.vocabulary.special_ids
        stop = len(pieces) - 1
        silent = frozenset(
            place
            for place, (text, one) in enumerate(zip(pieces.texts, pieces.ids, strict=True))
            if not text and (one in special or place == stop)
        )
        breaks = [pieces.ends[place] for place in silent]
        spans = align(pieces.text, mode.reasoning, mode.content, wording, breaks)
        filed = sum(span.length for span in spans if span.kind in ("reasoning", "content"))
        texts = [*pieces.texts, *("" for _ in range(len(self._shown) - len(pieces)))]
        tokens, mixed = by_token(spans, texts, silent)
        writes_markers = set(wording.start) & set(wording.added)
        return StripRow(
            (),
            tuple(tokens),
            mixed,
            () if writes_markers else tuple(_leaks(pieces, spans, (*wording.start, *wording.end))),
            max(0, len(mode.reasoning or "") + len(mode.content or "") - filed),
        )


def _outcomes(modes: Iterable[ModeResult]) -> Iterator[tuple[ModeResult, tuple[str, ...]]]:
    """The different splits, each with the names of the modes that give it; no names where all agree."""
    found: dict[tuple[str, str, str | None], tuple[ModeResult, list[str]]] = {}
    for mode in modes:
        key = (mode.reasoning or "", mode.content or "", mode.error)
        found.setdefault(key, (mode, []))[1].append(mode.chunking or "full")
    for mode, names in found.values():
        yield mode, tuple(names) if len(found) > 1 else ()


def _leaks(pieces: Pieces, spans: Iterable[Span], markers: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The tokens of markers that stand whole in reasoning or content."""
    wanted = [marker for marker in markers if marker]
    at = 0
    for kind, length in spans:
        if kind in ("reasoning", "content") and wanted:
            for match in any_of(wanted).finditer(pieces.text, at, at + length):
                yield _covering(pieces, *match.span())
        at += length


def _covering(pieces: Pieces, begin: int, end: int) -> tuple[int, int]:
    from bisect import bisect_left, bisect_right

    first = bisect_right(pieces.ends, begin)
    return first, bisect_left(pieces.ends, end) + 1 - first


def _deltas(prepared: Prepared, shown: Pieces) -> list[int]:
    """How many tokens each recorded delta brought."""
    if not prepared.trace.deltas:
        return []
    deltas = prepared.output.deltas(RECORDED)
    ends = list(range(1, len(deltas) + 1)) if deltas.ends is None else list(deltas.ends)
    if not shown.all_tokens:  # a text without an id comes with the token behind it
        places = [place + 1 for place, one in enumerate(shown.ids) if one is not None]
        ends = [places[end - 1] if end else 0 for end in ends]
    if ends:
        ends[-1] = len(shown)
    return [max(0, end - begin) for begin, end in zip([0, *ends], ends, strict=False)]
