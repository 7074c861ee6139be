"""Parsers that cut between one start and one end token: deepseek_r1 and its relatives, step3, ernie45."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..base import Delta, ParserRaisedError, Split, Vocabulary
from ..columns import places
from .delegating import LegacyModel
from .identity import IdentityModel


@dataclass(frozen=True, slots=True)
class Delimiters:
    """A start and an end marker with their ids in the model's vocabulary."""

    start: str
    end: str
    start_id: int
    end_id: int


def find_delimiters(vocabulary: Vocabulary, start: str, end: str, *, raised: str) -> Delimiters:
    """Look both markers up. Raises ParserRaisedError (RuntimeError, `raised`) where one is no single token."""
    vocab = vocabulary.vocab
    start_id, end_id = vocab.get(start), vocab.get(end)
    if start_id is None or end_id is None:
        raise ParserRaisedError("RuntimeError", raised)
    return Delimiters(start, end, start_id, end_id)


class DelimitedModel(LegacyModel):
    """Reasoning up to the end token, the start token optional (vllm/reasoning/deepseek_r1_reasoning_parser.py, 0.33.0).

    Args:
        delimiters: the two markers.
        turn_id: a token behind which the prompt is read; None reads the whole prompt.
    """

    def __init__(self, delimiters: Delimiters, *, turn_id: int | None = None) -> None:
        super().__init__()
        self._marks = delimiters
        self._watched = frozenset((delimiters.start_id, delimiters.end_id))
        self._turn_id = turn_id
        self._opened = False

    def is_reasoning_end(self, ids: Sequence[int]) -> bool:
        for token_id in reversed(ids):
            if token_id == self._marks.start_id:
                return False
            if token_id == self._marks.end_id:
                return True
            if token_id == self._turn_id:
                return False
        return False

    def split(self, text: str, ids: Sequence[int]) -> Split:
        head, start, tail = text.partition(self._marks.start)
        reasoning, end, content = (tail if start else head).partition(self._marks.end)
        return Split(reasoning, (content or None) if end else None)

    def count_reasoning_tokens(self, ids: Sequence[int]) -> int:
        """Tokens inside blocks that these ids open themselves; a nested block counts once, a stray end is ignored."""
        count = depth = opened = 0
        for at in places(ids, frozenset((self._marks.start_id, self._marks.end_id))):
            if depth:
                count += at - opened
            depth = depth + 1 if ids[at] == self._marks.start_id else max(0, depth - 1)
            opened = at + 1
        return count + (len(ids) - opened if depth else 0)

    def _classify(self, text: str, ids: Sequence[int]) -> Delta | None:
        marks = self._marks
        opened, opens = self._opened, marks.start_id in ids
        self._opened = opened or opens
        if len(ids) == 1 and ids[0] in (marks.start_id, marks.end_id):
            return None
        if marks.end_id not in ids:
            # The parser itself does not look for a start marker here: one that shares its delta stays in the text.
            return Delta(reasoning=text)
        return cut_at(text, marks.end, after=marks.start if opens and not opened else None)

    def _ends(self, ids: Sequence[int]) -> bool:
        return self._marks.end_id in ids


class SwitchedOffDelimitedModel(IdentityModel):
    """hy_v3 without thinking: identity, but generated blocks still count (hy_v3_reasoning_parser.py, 0.33.0)."""

    def __init__(self, delimiters: Delimiters) -> None:
        super().__init__()
        self._counter = DelimitedModel(delimiters)

    def count_reasoning_tokens(self, ids: Sequence[int]) -> int:
        return self._counter.count_reasoning_tokens(ids)


class CountToEndModel(DelimitedModel):
    """hy_v4: as deepseek_r1, but what the prompt opened counts too (hy_v4_reasoning_parser.py, 0.33.0)."""

    def count_reasoning_tokens(self, ids: Sequence[int]) -> int:
        first = 1 if ids and ids[0] == self._marks.start_id else 0
        return index_or_length(ids, self._marks.end_id, first) - first


class ErnieModel(DelimitedModel):
    """ernie45: the answer may stand between <response> and </response> (ernie45_reasoning_parser.py, 0.33.0).

    Args:
        delimiters: the two thinking markers.
        response_ids: ids of <response> and </response> where the vocabulary has them.
    """

    response_start = "<response>"
    response_end = "</response>"

    def __init__(self, delimiters: Delimiters, response_ids: frozenset[int]) -> None:
        super().__init__(delimiters)
        self._watched = self._lone = response_ids | {delimiters.start_id, delimiters.end_id}

    def split(self, text: str, ids: Sequence[int]) -> Split:
        found = super().split(text, ids)
        content = found.content
        if content:
            start, end = content.find(self.response_start), content.rfind(self.response_end)
            if -1 < start < end:
                content = content[start + len(self.response_start) : end]
        return Split(found.reasoning, content or None)

    def _classify(self, text: str, ids: Sequence[int]) -> Delta | None:
        if len(ids) == 1 and ids[0] in self._lone:
            return None
        if self._marks.end_id not in ids:
            return Delta(reasoning=text)
        found = cut_at(text, self._marks.end)
        content = (found.content or "").lstrip("\n")
        start, end = content.find(self.response_start), content.rfind(self.response_end)
        if start != -1:
            content = content[start + len(self.response_start) :]
        if end != -1:
            # As vLLM does it: the place was found before the opening was cut away, so some of the tag may stay.
            content = content[:end]
        return Delta(found.reasoning, content or None)


class Step3Model(LegacyModel):
    """step3 knows an end marker only; a start marker is text (step3_reasoning_parser.py, 0.33.0)."""

    end = "</think>"

    def __init__(self, end_id: int) -> None:
        super().__init__()
        self._end_id = end_id
        self._watched = frozenset((end_id,))

    def is_reasoning_end(self, ids: Sequence[int]) -> bool:
        return self._end_id in ids

    def split(self, text: str, ids: Sequence[int]) -> Split:
        reasoning, _, content = text.partition(self.end)
        return Split(reasoning, content or None)

    def count_reasoning_tokens(self, ids: Sequence[int]) -> int:
        return index_or_length(ids, self._end_id)

    def _classify(self, text: str, ids: Sequence[int]) -> Delta | None:
        if self._end_id not in ids:
            return Delta(reasoning=text)
        return None if len(ids) == 1 else cut_at(text, self.end)

    def _ends(self, ids: Sequence[int]) -> bool:
        return self._end_id in ids


def cut_at(text: str, end: str, *, after: str | None = None) -> Delta:
    """Cut a delta whose ids hold the end marker, from behind the marker `after` where one is given.

    vLLM slices at what `find` returns without looking: a marker that decoding has hidden gives -1, and so a cut one
    character before the end of the text.
    """
    at = text.find(end)
    begin = text.find(after) + len(after) if after is not None else 0
    return Delta(text[begin:at], text[at + len(end) :] or None)


def index_or_length(ids: Sequence[int], token_id: int, first: int = 0) -> int:
    """Where `token_id` stands in `ids` from `first` on, or how many ids there are."""
    try:
        return ids.index(token_id, first)
    except ValueError:
        return len(ids)
