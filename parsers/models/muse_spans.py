"""muse_glimmer's search for a tool call: reasoning is cut out of the text first, and what is left closes up.

Three machines in a row, each fed what the one before lets through: `ClosedSpans`, `OpenSpans`, `ToolChannel`. Whether
a thought has an end tells later text, so the first keeps a copy of what follows it from before each thought. Cutting
joins what stood on either side, and the joined text may hold markers, so each reads its markers anew
(vllm/reasoning/muse_reasoning_parser.py, `_scoped_turn` and `_tool_channel_remainder`, 0.33.0).
"""

from __future__ import annotations

from typing import Generic, Protocol, Self, TypeVar

from .muse_text import CALLS, EOM, MESSAGE, TURN, Copyable, Lexer, Rope, Word, is_space, whole
from .partial import partial_suffix

_SELF = "to=self"


class Sink(Protocol):
    """What takes the text that is left."""

    def feed(self, text: str) -> None: ...

    def fork(self) -> Self: ...


T = TypeVar("T", bound=Sink)


class GlimmerTools:
    """Whether the assistant's current turn has come to a tool call, and all text from its channel's header on."""

    def __init__(self) -> None:
        self._closed = ClosedSpans()

    @property
    def found(self) -> bool:
        return self._closed.open.channel.found

    @property
    def text(self) -> str:
        closed = self._closed
        return closed.open.channel.text + ("" if closed.open.inside else closed.open.pending + closed.pending)

    def feed(self, text: str) -> None:
        self._closed.feed(text)


class ClosedSpans:
    """Takes out every thought that ends, and starts over at each turn of the assistant's."""

    def __init__(self) -> None:
        self._lexer = Lexer((MESSAGE, EOM, TURN))
        self._word = ""
        self._start_over()

    def _start_over(self) -> None:
        self.open = OpenSpans(ToolChannel())
        self._before: OpenSpans[ToolChannel] | None = None

    @property
    def pending(self) -> str:
        return self._word + self._lexer.partial

    def feed(self, text: str) -> None:
        for part in self._lexer.feed(text):
            if part == TURN:
                self._word = ""
                self._start_over()
            elif part == EOM and self._before is not None:
                self.open, self._before = self._before, None
            elif self._before is not None:
                self.open.feed(part)
            elif part == MESSAGE and self._word == _SELF:
                self._before = self.open.fork()
                self.open.feed(self._word + part)
                self._word = ""
            else:
                ready, self._word = _split_word(self._word + part)
                self.open.feed(ready)


class OpenSpans(Copyable, Generic[T]):
    """Takes out every thought that runs into another header or the end of the text; one that ends comes back.

    The assistant's turn opening before a thought goes with it.
    """

    def __init__(self, sink: T) -> None:
        self.channel = sink
        self._lexer = Lexer((MESSAGE, EOM, TURN))
        self._header = Word()
        self._turn: Rope = None
        self._word = ""
        self._thought: Rope = None

    def fork(self) -> Self:
        """A copy that goes its own way."""
        twin = self.copy()
        twin.channel, twin._lexer, twin._header = self.channel.fork(), self._lexer.copy(), self._header.copy()
        return twin

    @property
    def inside(self) -> bool:
        """The text ends in a thought."""
        return self._thought is not None

    @property
    def pending(self) -> str:
        """The end of the text that may become the beginning of a thought."""
        return whole(self._turn) + self._word + self._lexer.partial

    def feed(self, text: str) -> None:
        for part in self._lexer.feed(text):
            if self._thought is None:
                self._outside(part)
            else:
                self._within(part)

    def _outside(self, part: str) -> None:
        if part == MESSAGE and self._word == _SELF:
            self._thought = ((self._turn, self._word), part)
            self._turn, self._word = None, ""
            self._header.reset()
            return
        if part == TURN:
            self._let_go("")
            self._turn = (None, part)
            return
        if self._turn is not None and not self._word:
            begin = next((at for at, character in enumerate(part) if not is_space(character)), len(part))
            self._turn = (self._turn, part[:begin])
            part = part[begin:]
        if part and _SELF.startswith(self._word + part):
            self._word += part
        elif part:
            self._let_go(part)

    def _let_go(self, text: str) -> None:
        """The turn opening and the word belong to no thought, and `text` follows."""
        before, self._turn = whole(self._turn), None
        ready, self._word = _split_word(self._word + text) if text else (self._word, "")
        self.channel.feed(before + ready)

    def _within(self, part: str) -> None:
        if part == EOM:
            back, self._thought = whole(self._thought), None
            self.channel.feed(back + part)
        elif part == MESSAGE and (header := self._header.header):
            self._thought = None
            self._outside(header)
            self._outside(part)
        else:
            self._thought = (self._thought, part)
            if part == MESSAGE:
                self._header.reset()
            else:
                self._header.feed(part)


class ToolChannel(Copyable):
    """Looks for the first header that names a tool, and for a call in the text from there on."""

    def __init__(self) -> None:
        self._lexer = Lexer((MESSAGE, *CALLS))
        self._word = Word()
        self._text: Rope = None
        self.found = False

    def fork(self) -> Self:
        twin = self.copy()
        twin._lexer, twin._word = self._lexer.copy(), self._word.copy()
        return twin

    @property
    def text(self) -> str:
        """All from that header on."""
        return whole(self._text) + self._lexer.partial

    def feed(self, text: str) -> None:
        for part in self._lexer.feed(text):
            if self._text is not None:
                self._text = (self._text, part)
                self.found = self.found or part in CALLS
            elif part != MESSAGE:
                self._word.feed(part)
            else:
                header = self._word.header
                self._word.reset()
                if header and header not in (_SELF, "to=user"):
                    self._text = (None, header + part)


def _split_word(text: str) -> tuple[str, str]:
    """The text without, and the end that is, `to=self` or a beginning of it."""
    cut = len(text) - (len(_SELF) if text.endswith(_SELF) else partial_suffix(text, _SELF))
    return text[:cut], text[cut:]
