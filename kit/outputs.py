"""Outputs that a model may write, as hypothesis strategies: simple ones first, so that what fails is made small."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..checks.probes import Cell, Probe
from .cases import Places, leading, opening
from .feeding import CHUNKINGS, HOLDBACKS, Feeder
from .invariants import Example
from .question import ASKS, Question

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

_ATOMS = (
    "a", "b", " ", "\n", "Let me see.", " two", "\n\n", "It is 4.", "  ", "é", "你好", "🙂", "<", ">", "</",
    "a < b > c", "`x`", "{\"a\": 1}", "\\n", "$x$", "'", "<b>", "think", "response", "1. ", "|", ":", "[", "]",
    "/", "\t",
)  # fmt: skip
"""What thoughts and answers are made of."""
_SIZES = (1, 2, 3, 5, 8)
_MOST_CELLS = 12


@dataclass(frozen=True, slots=True)
class Draft:
    """An output before it is fed: plain data, equal where the same thing is put to the parser.

    Attributes:
        cell: number of the prompt.
        thought: its text; None where the model answers at once, or is off.
        answer: the text behind the thought; None where the run was cut inside it.
        wild: a text that follows, with markers where none belong; empty for a tame output.
        sizes: tokens a delta, over and over, in the stream of random sizes.
        beside: the thought of the request that runs at the same time.
    """

    cell: int
    thought: str | None
    answer: str | None
    wild: str
    sizes: tuple[int, ...]
    beside: str


class Drafts:
    """The outputs for one parser.

    Args:
        feeder: feeds them.
        asks: whether vLLM's own class is there to be asked.
    """

    def __init__(self, feeder: Feeder, *, asks: bool) -> None:
        self._feeder = feeder
        self._asks = asks
        setting = feeder.setting
        self.cells: tuple[Cell, ...] = tuple(
            cell for cell in leading(setting.cells) if not cell.unclear and cell.weighs
        )[:_MOST_CELLS]
        start, end = setting.thinking.start or "", setting.thinking.end or ""
        marks = [text.strip() for text in (setting.row.start[0] if setting.row.start else start, setting.end_marker)]
        pieces = [text[:at] for text in marks for at in (len(text) // 2, len(text) - 1) if text]
        pieces += [text[len(text) // 2 :] for text in marks if text]
        if setting.thinking.harmony:  # its markers are made of tokens that mean something each
            pieces = []
        self._markers = tuple(text for text in (*setting.markers, start, end, setting.end_marker) if text.strip())
        # A whole token of the tokenizer's own means something else to it than its text does.
        own = (*self._markers, *getattr(setting.vocabulary, "markers", ()), *setting.vocabulary.special_tokens)
        self._atoms = tuple(
            atom for atom in dict.fromkeys((*_ATOMS, *pieces)) if not any(token in atom for token in own if token)
        )
        calls = (setting.call,) if setting.call is not None else ()
        self._wild = (*self._atoms[:8], start, end, f"{end}{end}", f"{start}{start}", *calls)

    def strategy(self) -> SearchStrategy[Draft]:
        """Drafts, tame ones most of the time."""
        from hypothesis import strategies as st

        text = st.lists(st.sampled_from(self._atoms), min_size=1, max_size=6).map("".join).filter(self._plain)
        thought = st.one_of(text, st.just(""))
        wild = st.lists(st.sampled_from([part for part in self._wild if part]), min_size=1, max_size=6).map("".join)
        kinds = st.sampled_from(("tame", "tame", "cut", "tame", "wild"))
        drafts = st.builds(
            self._draft,
            st.sampled_from(range(len(self.cells))),
            kinds,
            thought,
            text,
            wild,
            st.lists(st.sampled_from(_SIZES), min_size=1, max_size=4).map(tuple),
            st.sampled_from(("q", "two words", "q\nr")),
        )
        return drafts.filter(self._sound)

    def example(self, draft: Draft) -> Example:
        """The draft as it is fed to the parser, with what must come of it."""
        cell = self.cells[draft.cell]
        text, reasoning, content = self._written(cell, draft)
        fed = self._feeder.fed(cell, text, finished=draft.answer is not None)
        probe = Probe("generated", text, reasoning, content)
        ended = draft.thought is not None and draft.answer is not None and not draft.wild
        streams = [fed.stream(chunking) for chunking in (*CHUNKINGS, *HOLDBACKS)]
        streams.append(fed.sized("random", draft.sizes))
        asks = (*ASKS[:3], "beside") if self._asks else ()
        return Example(
            question=fed.question(streams, asks, self._other(draft) if self._asks else None),
            probe=probe,
            places=Places.of(self._feeder, fed, probe) if ended else None,
            tame=not draft.wild,
            row=self._feeder.setting.row,
        )

    def _draft(
        self, cell: int, kind: str, thought: str, answer: str, wild: str, sizes: tuple[int, ...], beside: str
    ) -> Draft:
        thinks = self.cells[cell].thinks
        cut = kind == "cut"
        return Draft(
            cell,
            (thought or (answer if cut else "")) if thinks else None,
            None if cut and thinks else answer,
            wild if kind == "wild" else "",
            sizes,
            beside,
        )

    def _written(self, cell: Cell, draft: Draft) -> tuple[str, str | None, str | None]:
        thinking = self._feeder.setting.thinking
        if draft.thought is None:
            return f"{draft.answer or ''}{draft.wild}", None, draft.answer
        head = f"{opening(self._feeder, cell)}{draft.thought}"
        if draft.answer is None:
            return f"{head}{draft.wild}", draft.thought, None
        text = f"{head}{thinking.end}{thinking.after_end}{draft.answer}{draft.wild}"
        return text, draft.thought, draft.answer

    def _other(self, draft: Draft) -> Question:
        """Another request on the same prompt."""
        cell = self.cells[draft.cell]
        other = Draft(draft.cell, draft.beside if cell.thinks else None, "Other.", "", (1,), "")
        fed = self._feeder.fed(cell, self._written(cell, other)[0])
        return fed.question([fed.stream(CHUNKINGS[0])])

    def _plain(self, text: str) -> bool:
        """No marker has come about where two parts meet."""
        return not any(marker in text for marker in self._markers)

    def _may_go_on(self, text: str) -> bool:
        """The text may be the begin of an end marker. A parser that waits for the rest is never told that none comes:
        vLLM ends the streams of its own engine parsers alone (0.33.0, parser/abstract_parser.py).
        """
        return any(text.endswith(marker[:size]) for marker in self._markers for size in range(1, len(marker)))

    def _sound(self, draft: Draft) -> bool:
        """Nor where a part meets a marker: the output holds the markers that were meant, and no more."""
        if draft.wild:
            return True
        if draft.answer is None and self._may_go_on(draft.thought or ""):
            return False
        text, _, _ = self._written(self.cells[draft.cell], draft)
        markers: Sequence[str] = self._markers
        meant = "" if draft.thought is None else opening(self._feeder, self.cells[draft.cell])
        behind = "" if draft.thought is None or draft.answer is None else self._feeder.setting.thinking.end or ""
        return all(text.count(marker) == meant.count(marker) + behind.count(marker) for marker in markers)
