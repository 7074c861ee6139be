"""granite: two phrases in plain text, told apart by what the whole stream says so far."""

from __future__ import annotations

from collections.abc import Sequence

from ..base import Delta, Split
from .delegating import LegacyModel

STARTS = ("Here's my thought process:", "Here is my thought process:")
ENDS = ("Here's my response:", "Here is my response:")
_HERE = "Here"
_TAIL = max(map(len, ENDS)) - 1


class GraniteModel(LegacyModel):
    """Reasoning between a start and an end phrase (vllm/reasoning/granite_reasoning_parser.py, 0.33.0).

    The parser itself looks through the whole text at every delta; this model keeps what that comes to: in which part
    the text is, a few lengths and the last characters of the thought. Its slips are kept too: the character before the
    end phrase belongs to nothing, and a delta that holds the start phrase and more is reasoning with the phrase in it.
    No prompt and no token ends the thought as far as the server is concerned.
    """

    def __init__(self) -> None:
        super().__init__()
        self._part = self._opening
        self._head = ""
        self._tail = ""
        self._thought = 0
        self._phrase = 0
        self._answer = 0
        self._total = 0

    def is_reasoning_end(self, ids: Sequence[int]) -> None:
        return None

    def split(self, text: str, ids: Sequence[int]) -> Split:
        start, begin = _first(text, STARTS)
        end, after = _first(text, ENDS, begin)
        if start < 0 or end < 0:
            return Split(None, text)
        return Split(text[begin:end], text[after:] or None)

    def count_reasoning_tokens(self, ids: Sequence[int]) -> int:
        return 0

    def _classify(self, text: str, ids: Sequence[int]) -> Delta | None:
        self._total += len(text)
        delta = self._part(text)
        return delta if delta.reasoning or delta.content else None

    def _ends(self, ids: Sequence[int]) -> bool:
        return False

    def _opening(self, text: str) -> Delta:
        """The text so far may become a start phrase."""
        head = self._head + text
        if any(phrase.startswith(head) for phrase in STARTS):
            self._head = head
            return Delta()
        phrase = next(filter(head.startswith, STARTS), None)
        if phrase is not None:
            self._part = self._thinking
            found = self._think(text, head[len(phrase) :])
            if found is not None:
                return found
        self._part = self._plain
        return Delta(content=head)

    def _plain(self, text: str) -> Delta:
        return Delta(content=text)

    def _thinking(self, text: str) -> Delta:
        found = self._think(text, text)
        if found is None:
            self._part = self._plain
            return Delta(content=text)
        return found

    def _think(self, text: str, new: str) -> Delta | None:
        """A delta of which `new` is the part behind the start phrase; None: the thought turns out to be empty."""
        known, window = self._tail, self._tail + new
        end, after = _first(window, ENDS)
        if end >= 0:
            # The parser cuts one character early.
            self._thought += end - len(known) - 1
            if self._thought <= 0:
                return None
            self._part = self._answering
            self._phrase = after - end
            return self._answered(text, len(window) - after)
        self._thought += len(new)
        self._tail = window[-_TAIL:]
        return self._thought_delta(known, window, text)

    def _thought_delta(self, known: str, window: str, text: str) -> Delta:
        """What of a delta is sure to be no part of an end phrase, by the last `Here` before it and the last in it."""
        at, own = known.rfind(_HERE), text.rfind(_HERE)
        begun = own >= 0 and _begins_end(text[own:])
        if at < 0 or not text:
            return Delta(reasoning=text[:own] if begun else text)
        if _begins_end(window[at:]):
            return Delta()
        held = known[at:] if _begins_end(known[at:]) else ""
        return Delta(reasoning=held + (text[:own] if begun else text))

    def _answering(self, text: str) -> Delta:
        return self._answered(text, len(text))

    def _answered(self, text: str, new: int) -> Delta:
        """A delta whose last `new` characters stand behind the end phrase."""
        self._answer += new
        if not self._answer:
            return Delta()
        end = len(text) - self._answer - self._phrase
        begin = max(0, self._thought + self._phrase + self._answer - 1 - (self._total - len(text)))
        return Delta(text[begin:end] if end >= 0 else None, text[-self._answer :])


def _first(text: str, phrases: Sequence[str], begin: int = 0) -> tuple[int, int]:
    """Where the phrase that is complete first starts and ends; (-1, -1) where there is none."""
    found = [(at + len(phrase), at) for phrase in phrases if (at := text.find(phrase, max(0, begin))) >= 0]
    after, at = min(found, default=(-1, -1))
    return at, after


def _begins_end(text: str) -> bool:
    return any(phrase.startswith(text) for phrase in ENDS)
