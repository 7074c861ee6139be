"""olmo3: markers spelled by ordinary tokens, found in a buffer of text."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence

from ..base import Delta, ParserRaisedError, Split, Vocabulary
from .delegating import LegacyModel
from .partial import partial_suffix

START = "<think>"
END = "</think>"
_MARKERS = re.compile(f"({START}|{END})")
_FIRST = ("Ġ</", "</")
_REST = ("think", ">")


class Olmo3Model(LegacyModel):
    """Reasoning first, by text; the phase ends by ids (vllm/reasoning/olmo3_reasoning_parser.py, 0.33.0).

    What stays in the buffer when the ids end the phase, or the output ends, is lost.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        self._first = frozenset(_look_up(vocabulary, _FIRST))
        self._rest = tuple(_look_up(vocabulary, _REST))
        self._last: tuple[int, ...] = ()
        self._buffer = _Buffer()
        self._thinking = True

    def is_reasoning_end(self, ids: Sequence[int]) -> bool:
        """Whether the end marker's three tokens stand anywhere in `ids`."""
        rest = self._rest
        return any(
            first in self._first and (second, third) == rest
            for first, second, third in zip(ids, ids[1:], ids[2:], strict=False)
        )

    def split(self, text: str, ids: Sequence[int]) -> Split:
        reasoning, end, content = text.removeprefix(START).partition(END)
        return Split(reasoning or None, content or None) if end else Split(None, text)

    def count_reasoning_tokens(self, ids: Sequence[int]) -> int:
        return 0

    def _classify(self, text: str, ids: Sequence[int]) -> Delta | None:
        self._buffer.add(text)
        near_start, near_end = _is_part(text, START), _is_part(text, END)
        started = near_start and not near_end and self._buffer.holds(START)
        ready = started or self._buffer.holds(END) or not (near_start or near_end)
        return self._taken() if ready else None

    def _taken(self) -> Delta:
        """What the buffer gives: text before its first start, else before its last end, else all of it."""
        if self._buffer.holds(START):
            self._thinking = True
            before = self._buffer.take_to_first(START)
            if before:
                return Delta(content=before)
        if self._buffer.holds(END):
            self._thinking = False
            before = self._buffer.take_to_last(END)
            if before:
                return Delta(reasoning=before)
        text = self._buffer.take()
        return Delta(reasoning=text) if self._thinking else Delta(content=text)

    def _ends(self, ids: Sequence[int]) -> bool:
        found = self.is_reasoning_end((*self._last, *ids))
        self._last = (*self._last, *ids)[-len(self._rest) :]
        return found


class _Buffer:
    """Text that waits, cut at its markers; what may be the beginning of one is kept apart."""

    def __init__(self) -> None:
        self._parts: deque[str] = deque()
        self._count = {START: 0, END: 0}
        self._tail = ""

    def add(self, text: str) -> None:
        parts = _MARKERS.split(self._tail + text)
        last = parts.pop()
        cut = len(last) - partial_suffix(last, START, END)
        self._tail = last[cut:]
        for part in (*parts, last[:cut]):
            if part:
                self._parts.append(part)
                if part in self._count:
                    self._count[part] += 1

    def holds(self, marker: str) -> bool:
        return self._count[marker] > 0

    def take_to_first(self, marker: str) -> str:
        """The text before the first such marker, which goes with it."""
        return self._take_markers(marker, 1)

    def take_to_last(self, marker: str) -> str:
        """The text before the last such marker, which goes with it."""
        return self._take_markers(marker, self._count[marker])

    def take(self) -> str:
        text = "".join((*self._parts, self._tail))
        self._parts.clear()
        self._count = dict.fromkeys(self._count, 0)
        self._tail = ""
        return text

    def _take_markers(self, marker: str, number: int) -> str:
        taken: list[str] = []
        while number:
            part = self._parts.popleft()
            taken.append(part)
            if part in self._count:
                self._count[part] -= 1
                number -= part == marker
        return "".join(taken[:-1])


def _is_part(text: str, marker: str) -> bool:
    """Whether a delta could be part of a marker, by vLLM's test: inside it, or overlapping with either of its ends.

    An empty delta is inside every marker. A delta that holds the whole marker is no part of it.
    """
    if marker in text:
        return False
    if text in marker:
        return True
    return any(text.endswith(marker[:n]) or text.startswith(marker[-n:]) for n in range(1, len(marker)))


def _look_up(vocabulary: Vocabulary, tokens: Iterable[str]) -> list[int]:
    vocab = vocabulary.vocab
    for token in tokens:
        if token not in vocab:
            raise ParserRaisedError("KeyError", repr(token))
    return [vocab[token] for token in tokens]
