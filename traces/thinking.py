"""How many tokens of a trace are thinking, block by block, as the engine's budget counts them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from ..parsers import ROWS, STATE_MARKERS
from ..parsers.columns import Pieces
from .context import Prepared
from .whatif import state_of


@dataclass(frozen=True, slots=True)
class Block:
    """One stretch of thinking. `tokens` stand between its markers; `opened` says where the start marker is, `unseen`
    that there is none, though an end marker follows; `ended`: an end marker, or a tool call in its place, follows.
    """

    tokens: int
    opened: Literal["prompt", "output", "unseen"]
    ended: bool


@dataclass(frozen=True, slots=True)
class Thought:
    """The thinking of one output, in tokens.

    `charged` are the prompt's tokens behind a start marker that nothing there closes, None where the prompt is unknown
    or closes its last one. `armed`: prompt or output holds the start marker as the tokens it is on its own, which is
    what the engine looks for. `closing` are the tokens of a configured end text in front of the end marker.
    """

    start: str
    end: str
    blocks: tuple[Block, ...]
    charged: int | None
    armed: bool
    total: int
    closing: int = 0


def thinks_again(raw: str, parsers: Iterable[str]) -> bool:
    """The text may hold a second block of thinking: a start marker stands behind an end marker."""
    chosen = _markers(raw, None, parsers)
    return chosen is not None and raw.find(chosen[0], max(0, raw.find(chosen[1]))) > raw.find(chosen[1]) >= 0


def read_thought(
    prepared: Prepared, parsers: Iterable[str], last_message: str, strings: tuple[str | None, str | None] = (None, None)
) -> Thought | None:
    """Count the thinking of a trace; None where it shows no marker.

    Args:
        prepared: the trace.
        parsers: whose markers count, the first that the trace shows.
        last_message: the text of the request's last message.
        strings: start and end text of the server's `--reasoning-config`, which go before the parser's.

    Source: vLLM 0.33.0, v1/worker/gpu/sample/thinking_budget.py (counted from the last start marker of prompt and
    output on, markers excluded) and config/reasoning.py.
    """
    found = prepared.output.pieces(False)
    raw = found.text
    state = state_of(prepared.prompt, last_message)
    opened = state is not None and state[0].state == "open"
    chosen = _markers(raw, state[0].marker if state is not None and opened else None, parsers)
    if chosen is None:
        return None
    start, natural, implicit = strings[0] or chosen[0], chosen[1], chosen[2]
    phrase = strings[1].partition(natural)[0] if strings[1] else ""
    prompt_ids = prepared.made_of["prompt_ids"]
    encode = prepared.vocabulary.encode
    charged = _charged(prompt_ids, encode(start), encode(natural)) if prompt_ids is not None else None
    blocks = tuple(_blocks(found, raw, start, natural, implicit, opened=opened))
    ids = found.token_ids
    return Thought(
        start,
        natural,
        blocks,
        charged,
        charged is not None or _last(ids, encode(start)) >= 0,
        len(ids),
        len(encode(phrase)) if phrase and phrase in raw else 0,
    )


def _markers(raw: str, opened: str | None, parsers: Iterable[str]) -> tuple[str, str, tuple[str, ...]] | None:
    """Start marker, end marker, other ends: of the parsers, else of any family; the first that the trace shows."""
    rows = [row for name in parsers if (row := ROWS.get(name)) is not None]
    pairs = [(start, end, row.implicit_ends) for row in rows for start, end in zip(row.start, row.end, strict=False)]
    pairs += [(pair.start, pair.end, ()) for pair in STATE_MARKERS]
    return next((one for one in pairs if one[0] in raw or one[1] in raw or one[0].strip() == opened), None)


def _blocks(
    found: Pieces, raw: str, start: str, end: str, implicit: tuple[str, ...], *, opened: bool
) -> Iterable[Block]:
    ends = found.ends
    begins = [0, *ends]
    counted = range(len(begins)) if found.all_tokens else [0, *accumulate(one is not None for one in found.ids)]

    def tokens(begin: int, stop: int) -> int:
        """Tokens between two characters: one that holds a part of a marker is none of them."""
        first, last = bisect_left(begins, begin), bisect_right(ends, stop)
        return max(0, counted[last] - counted[min(first, last)])

    at = 0
    first_start, first_end = raw.find(start), raw.find(end)
    kind: Literal["prompt", "output", "unseen"] = "prompt" if opened else "unseen"
    thinking = opened or (first_end >= 0 and (first_start < 0 or first_end < first_start))
    while thinking or (at := raw.find(start, at)) >= 0:
        if not thinking:
            kind, at = "output", at + len(start)
        elif raw.startswith(start, at):
            at += len(start)  # a model that writes the marker the prompt already holds
        stops = [place for text in (end, *implicit) if (place := raw.find(text, at)) >= 0]
        stop = min(stops, default=len(raw))
        yield Block(tokens(at, stop), kind, bool(stops))
        if not stops:
            return
        at = stop + len(end) if raw.startswith(end, stop) else stop + 1
        thinking = False


def _charged(prompt: Sequence[int], start: Sequence[int], end: Sequence[int]) -> int | None:
    """Tokens behind the prompt's last start marker; None where it has none, or an end marker follows."""
    opened, closed = _last(prompt, start), _last(prompt, end)
    return len(prompt) - opened - len(start) if opened >= 0 and opened > closed else None


def _last(ids: Sequence[int], wanted: Sequence[int]) -> int:
    """Where `wanted` stands last in `ids`, -1 where it does not."""
    for place in range(len(ids) - len(wanted), -1, -1) if wanted and wanted[0] in ids else ():
        if ids[place] == wanted[0] and list(ids[place : place + len(wanted)]) == list(wanted):
            return place
    return -1
