"""minimax_m2_append_think: nothing is split, a start marker is put in front."""

from __future__ import annotations

from collections.abc import Sequence

from ..base import Delta, Split, Sums, Vocabulary
from ..columns import Deltas
from .delegating import LegacyModel

START = "<think>"
END = "</think>"


class AppendThinkModel(LegacyModel):
    """Everything is content behind a `<think>` of the parser's own (minimax_m2_reasoning_parser.py, 0.33.0).

    It demands nothing of the vocabulary: a missing marker is never found. The reasoning phase lasts until the last
    marker generated so far is an end marker; all that matters of it is that no second `<think>` is written later.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        self._start_id = vocabulary.vocab.get(START)
        self._end_id = vocabulary.vocab.get(END)
        self._fresh = True
        self._last_is_end = False

    def is_reasoning_end(self, ids: Sequence[int]) -> bool:
        return self._last_marker_is_end(ids) or False

    def split(self, text: str, ids: Sequence[int]) -> Split:
        return Split(None, START + text)

    def count_reasoning_tokens(self, ids: Sequence[int]) -> int:
        return 0

    def _classify(self, text: str, ids: Sequence[int]) -> Delta | None:
        # Freshness is judged by ids: text that comes before any id gets its own marker, and so does what follows it.
        delta = Delta(content=START + text if self._fresh else text)
        self._fresh = self._fresh and not ids
        return delta

    def stream(self, deltas: Deltas) -> Split:
        sums = Sums()
        at, last = 0, len(deltas)
        while at < last and self._fresh and not self._ended:
            sums.add(self.feed(*deltas[at], finished=at == last - 1))
            at += 1
        if at < last:
            sums.add(Delta(content=deltas.between(at, last)))
        return sums.split()

    def _ends(self, ids: Sequence[int]) -> bool:
        found = self._last_marker_is_end(ids)
        if found is not None:
            self._last_is_end = found
        return self._last_is_end

    def _last_marker_is_end(self, ids: Sequence[int]) -> bool | None:
        for token_id in reversed(ids):
            if token_id in (self._start_id, self._end_id):
                return token_id == self._end_id
        return None
