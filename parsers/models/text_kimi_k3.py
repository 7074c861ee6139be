"""kimi_k3: XML-like channels whose markers are several tokens each, told by text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..base import Delta, ParserModel, Split, Vocabulary
from .delegating import LegacyModel
from .partial import partial_suffix
from .runs import last_of, stands_at
from .spaced import MarkerWatch, SpacedMarker

_OPEN = SpacedMarker("<|open|>", "think")
_CLOSE = SpacedMarker("<|close|>", "think")
_RESPONSE = SpacedMarker("<|open|>", "response")
_RESPONSE_CLOSE = SpacedMarker("<|close|>", "response")
_MESSAGE_CLOSE = SpacedMarker("<|close|>", "message")
_ANSWER_MARKERS = tuple(marker.exact for marker in (_RESPONSE, _RESPONSE_CLOSE, _MESSAGE_CLOSE))
_LONGEST = max(map(len, _ANSWER_MARKERS))


class KimiK3Model(LegacyModel):
    """Reasoning in the think channel, the answer out of the response channel's wrapper.

    vllm/reasoning/kimi_k3_reasoning_parser.py and vllm/parser/kimi_k3.py, 0.33.0. The prompt and the end of the phase
    are told by ids, the split by text, so they may disagree. The parser compares what the whole text may show with what
    it might show a delta ago; here that is the new text less a marker's possible beginning, until a marker completes.
    """

    skip_special_tokens = False
    # What is sent again depends on how the stream is cut, so it has to be fed as it is cut.
    stream = ParserModel.stream

    def __init__(self, vocabulary: Vocabulary, kwargs: Mapping[str, Any]) -> None:
        super().__init__()
        thinking = kwargs.get("thinking")
        self._on = bool(kwargs.get("enable_thinking", True) if thinking is None else thinking)
        self._open_ids, self._close_ids, self._response_ids = (
            tuple(vocabulary.encode(marker.exact)) for marker in (_OPEN, _CLOSE, _RESPONSE)
        )
        self._last: tuple[int, ...] = ()
        self._parts: list[str] = []
        self._held = ""
        self._open, self._close = MarkerWatch(_OPEN), MarkerWatch(_CLOSE)
        self._opened = self._closed = False
        self._content = _ResponseStream()

    def is_reasoning_end(self, ids: Sequence[int]) -> bool:
        return not self._on or last_of(ids, self._close_ids, self._open_ids) == 0

    def split(self, text: str, ids: Sequence[int]) -> Split:
        if not self._on:
            return Split(None, _unwrapped(text) or None)
        opened = _OPEN.pattern.search(text)
        begin = opened.end() if opened else 0
        closed = _CLOSE.pattern.search(text, begin)
        if closed:
            return Split(text[begin : closed.start()] or None, _unwrapped(text[closed.end() :]) or None)
        if not opened and _RESPONSE.pattern.search(text):
            return Split(None, _unwrapped(text) or None)
        return Split(text[begin:] or None, None)

    def feed(self, text: str, ids: Sequence[int], *, finished: bool = False) -> Delta | None:
        delta = super().feed(text, ids, finished=finished)
        if delta is None or not self._ended:
            return delta
        content = self._content.feed(delta.content or "")
        return None if content is None and delta.reasoning is None else Delta(delta.reasoning, content)

    def count_reasoning_tokens(self, ids: Sequence[int]) -> int:
        """All but markers up to the end of the channel; a response that opens first ends it too."""
        if not self._on:
            return 0
        count, inside, opened, at = 0, True, False, 0
        while at < len(ids):
            if ids[at] == self._open_ids[0] and stands_at(ids, at, self._open_ids):
                inside = opened = True
                at += len(self._open_ids)
            elif ids[at] == self._close_ids[0] and stands_at(ids, at, self._close_ids):
                inside = False
                at += len(self._close_ids)
            elif not opened and ids[at] == self._response_ids[0] and stands_at(ids, at, self._response_ids):
                inside = False
                at += len(self._response_ids)
            else:
                count += inside
                at += 1
        return count

    def _classify(self, text: str, ids: Sequence[int]) -> Delta | None:
        if not self._on or self._closed:
            return Delta(content=text)
        opens, closes = bool(self._open.feed(text)[1]) and not self._opened, bool(self._close.feed(text)[1])
        before = "".join(self._parts) if opens or closes else ""
        self._parts.append(text)
        if closes:
            self._closed = True
            return self._closing(before, before + text)
        if opens:
            shown = before[: len(before) - len(self._held)]
            window = before + text
            self._opened, opened = True, _OPEN.pattern.search(window)
            window = window[opened.end() :] if opened else window
        else:
            shown, window = "", self._held + text
        ready = len(window) - partial_suffix(window, _OPEN.exact, _CLOSE.exact)
        self._held = window[ready:]
        reasoning = window[:ready].removeprefix(shown)
        return Delta(reasoning=reasoning) if reasoning else None

    def _closing(self, before: str, now: str) -> Delta:
        """The delta in which the end marker completes."""
        closed, opened = _CLOSE.pattern.search(now), _OPEN.pattern.search(now)
        known = _OPEN.pattern.search(before)
        shown = before[known.end() if known else 0 : len(before) - len(self._held)]
        reasoning, content = "", ""
        if closed:
            reasoning = now[opened.end() if opened else 0 : closed.start()]
            content = now[closed.end() :]
        return Delta(reasoning.removeprefix(shown) or None, content or None)

    def _ends(self, ids: Sequence[int]) -> bool:
        """Looks at the new ids and as many before them as a marker may have begun in."""
        carried = max(len(self._open_ids), len(self._close_ids)) - 1
        window = (*self._last, *ids)
        self._last = window[max(0, len(window) - carried) :]
        return not self._on or (bool(ids) and last_of(window, self._close_ids, self._open_ids) == 0)


class _ResponseStream:
    """The answer as it streams, without the response channel's markers (`strip_content_streaming`).

    What shows is the text behind the first response opening, less all closing markers and less what may begin a marker
    at its end. Of whitespace inside a marker only its completion tells; then what shows shrinks, and where it does not
    continue what was shown before, all of it is sent again, as the parser does.
    """

    def __init__(self) -> None:
        self._opening: MarkerWatch | None = MarkerWatch(_RESPONSE)
        self._unsent: str
        self._start_over()

    def feed(self, text: str) -> str | None:
        """The next text of the answer; returns what it adds, None where that is nothing."""
        ends = self._opening.feed(text)[1] if self._opening else []
        if ends:
            self._opening = None
            return self._reopened(text[ends[0] :]) or None
        # No marker completes without its last character.
        before, tail, waiting = self._sure_length, self._tail, self._waiting if ">" in text else ""
        new = self._take(text)
        if new is not None:
            return self._shrunk(new + self._waiting, before, tail, waiting) or None
        window = self._unsent + text
        ready = len(window) - _begun(window)
        self._unsent = window[ready:]
        self._sent += ready
        return window[:ready] or None

    def _start_over(self) -> None:
        self._responses, self._messages = MarkerWatch(_RESPONSE_CLOSE), MarkerWatch(_MESSAGE_CLOSE)
        self._sure: list[str] = []
        self._sure_length = 0
        self._tail = ""
        self._sent = 0
        self._unsent = ""

    @property
    def _waiting(self) -> str:
        return self._messages.waiting + self._responses.waiting

    def _take(self, text: str) -> str | None:
        """Take closing markers out of the next text: what is sure where one completed, else None."""
        kept, responses = self._responses.feed(text)
        sure, messages = self._messages.feed(kept)
        self._sure.append(sure)
        self._sure_length += len(sure)
        self._tail = (self._tail + sure)[-_LONGEST:]
        return sure if responses or messages else None

    def _reopened(self, text: str) -> str:
        """A response opens: what stood before it shows no more."""
        shown = ("".join(self._sure) + self._waiting)[: self._sent]
        self._start_over()
        self._take(text)
        whole = "".join(self._sure) + self._waiting
        self._sent = len(whole) - _begun(whole)
        self._unsent = whole[self._sent :]
        return whole[: self._sent].removeprefix(shown)

    def _shrunk(self, new: str, before: int, tail: str, waiting: str) -> str:
        """A closing marker went: behind `before` characters ending with `tail` stands `new` where `waiting` stood."""
        shown = waiting[: max(0, self._sent - before)]
        length = before + len(new) - _begun(tail + new)
        if length >= self._sent and new.startswith(shown):
            unsent = self._unsent[: max(0, before - self._sent)] + new[max(0, self._sent - before) :]
            adds = length - self._sent
        else:
            unsent = "".join(self._sure) + self._waiting
            adds = length
        self._sent = length
        self._unsent = unsent[adds:]
        return unsent[:adds]


def _begun(text: str) -> int:
    return partial_suffix(text, *_ANSWER_MARKERS)


def _unwrapped(text: str) -> str:
    """The answer of a whole output without the markers of its channel (`_strip_content_wrapper`)."""
    opened = _RESPONSE.pattern.search(text)
    if opened is None:
        text = _RESPONSE_CLOSE.pattern.sub("", text)
    else:
        closed = _RESPONSE_CLOSE.pattern.search(text, opened.end())
        text = text[opened.end() : closed.start() if closed else len(text)]
    return _MESSAGE_CLOSE.pattern.sub("", text)
