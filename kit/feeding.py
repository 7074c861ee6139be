"""Makes questions: an output behind a prompt, as a server would feed it to this parser, cut in several ways."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from ..checks.probes import Cell
from ..parsers.columns import Pieces
from ..parsers.feed import Chunking
from ..parsers.run import Output
from .bench import Bench
from .question import Question, Stream
from .setting import Setting

TOKEN = Chunking("tokens")
CHUNKINGS = (TOKEN, Chunking("tokens", 3), Chunking("whole"))
HOLDBACKS = (Chunking("holdback", 4), Chunking("holdback", 12))
"""What stop strings of 5 and of 13 characters cause."""


@dataclass(frozen=True)
class Fed:
    """One output as it will be fed: `shown` are its pieces under what the parser asks for, `plain` with all text."""

    cell: Cell
    output: Output
    skip: bool | None

    @property
    def shown(self) -> Pieces:
        return self.output.pieces(self.skip)

    @property
    def plain(self) -> Pieces:
        return self.output.pieces(False)

    def stream(self, chunking: Chunking) -> Stream:
        """The output cut as `--chunking` says."""
        deltas = self.output.deltas(chunking, self.skip)
        return Stream(str(chunking), tuple((text, tuple(ids)) for text, ids in deltas))

    def token_at(self, character: int) -> int:
        """The first token boundary at or behind this character of the whole text."""
        ends = [0, *accumulate(map(len, self.plain.texts))]
        return min(bisect_left(ends, character), len(self.plain))

    def cut(self, label: str, ends: Iterable[int]) -> Stream:
        """The output cut at these tokens; the last delta ends with the output."""
        places = sorted({0, len(self.shown), *(end for end in ends if end < len(self.shown))})
        ids = self.shown.token_ids
        return Stream(
            label, tuple(("".join(self.shown.texts[a:b]), tuple(ids[a:b])) for a, b in pairwise(places)) or (("", ()),)
        )

    def sized(self, label: str, sizes: Sequence[int]) -> Stream:
        """The output cut into deltas of these many tokens, over and over."""
        ends, at, number = [], 0, 0
        while at < len(self.shown) and sizes:
            at += sizes[number % len(sizes)]
            ends.append(at)
            number += 1
        return self.cut(label, ends)

    def question(
        self, streams: Sequence[Stream], asks: tuple[str, ...] = (), other: Question | None = None
    ) -> Question:
        """What is put to the parser."""
        found = self.shown
        return Question(self.cell, found.text, tuple(found.token_ids), tuple(streams), asks, other)

    def unsplit(self, *asks: str) -> Question:
        """A question about the prompt, and what else is asked of the ids: a split that dies must not cost it."""
        return replace(self.question([], asks), whole=False)


class Feeder:
    """Feeds outputs to one parser in one setting. Texts are cut into tokens once."""

    def __init__(self, setting: Setting, bench: Bench) -> None:
        self.setting = setting
        self._bench = bench
        self._ids: dict[str, tuple[int, ...]] = {}

    def fed(self, cell: Cell, text: str, *, finished: bool = True) -> Fed:
        """An output of this text.

        Args:
            cell: the prompt.
            text: with its markers.
            finished: it ends with an end-of-sequence token, as far as one is known.

        Raises:
            ParserUnsupportedError: this parser cannot be run here.
        """
        if text not in self._ids:
            self._ids[text] = tuple(self.setting.vocabulary.encode(text))
        stop = sorted(self.setting.stop_ids)[:1] if finished else []
        output = Output(
            self.setting.vocabulary,
            ids=(*self._ids[text], *stop),
            prompt_ids=cell.prompt_ids,
            stop_ids=self.setting.stop_ids if finished else frozenset(),
        )
        return Fed(cell, output, self._bench.skips(cell))
