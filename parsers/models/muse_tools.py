"""Where a muse output leaves reasoning for a tool call: from that message's header on, the client gets all text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .muse_text import BREAK, CALLS, FRAMING, MESSAGE, START, Lexer, Rope, Word, has_call, whole
from .partial import SPACE

_ASSISTANT = "assistant"
_TURN_HEADER = re.compile(rf"{_ASSISTANT}{SPACE}*(?:to=(?:[^\s<]|[\x1c-\x1f])+)?")
NO_TOOLS = frozenset((None, "self", "user", "commentary", "developer"))
_LONGEST_CALL = max(map(len, CALLS)) - 1


@dataclass(frozen=True, slots=True)
class Header:
    """The beginning of a message: whose it is, its `to=` with the recipient as text, and all of it as text."""

    recipient: str | None
    to: str
    text: str

    @property
    def opens_turn(self) -> bool:
        """`<|start|>assistant` belongs to it."""
        return self.text.startswith(START)


class Messages:
    """Cuts a text into headers, the other framing markers, and what stands between them.

    A header is `<|message|>`, with `to=` and a recipient right before it or not, and `<|start|>assistant` before that
    or not (vllm/reasoning/muse_reasoning_parser.py, `_muse_messages`, 0.33.0). All but its `<|message|>` has been given
    out before.
    """

    def __init__(self) -> None:
        self._lexer = Lexer(FRAMING)
        self.word = Word()
        self._turn: Rope = None
        self._in_turn = False

    @property
    def partial(self) -> str:
        """The end of the text that may become a marker, and has not been given out."""
        return self._lexer.partial

    def feed(self, text: str) -> Iterator[tuple[str | Header, str]]:
        """The parts, and with each what is known since it came to be no `to=`."""
        for part in self._lexer.feed(text):
            if part not in FRAMING:
                self._turn = (self._turn, part) if self._in_turn else None
                yield part, self.word.feed(part)
                continue
            yield self._header() if part == MESSAGE else part, ""
            self.word.reset()
            self._turn, self._in_turn = None, part == START

    def _header(self) -> Header:
        to = self.word.header
        turn = whole(self._turn)
        opens = self._in_turn and _TURN_HEADER.fullmatch(turn)
        return Header(to[3:] or None, to, f"{START}{turn}{MESSAGE}" if opens else to + MESSAGE)


class SparkCalls:
    """Whether a text has come to a tool call."""

    def __init__(self) -> None:
        self._messages, self._tools = Messages(), SparkTools()

    @property
    def found(self) -> bool:
        return self._tools.found

    def feed(self, text: str) -> None:
        for part, _ in self._messages.feed(text):
            self._tools.add(part)


class SparkTools:
    """The first message to a tool in the assistant's current turn that has a call in its body (`_muse_current_turn`).

    A turn of any other role ends what counts until `<|start|>assistant` comes again; and as long as only a beginning of
    `assistant` has come, that is another role.
    """

    def __init__(self) -> None:
        self._counts = True
        self._role: str | None = None
        self._message: Rope = None
        self._tail = ""
        self._found = False

    @property
    def found(self) -> bool:
        other_for_now = self._role not in (None, "", _ASSISTANT)
        return self._found and not other_for_now

    @property
    def text(self) -> str:
        """All from that message's header on."""
        return whole(self._message)

    def add(self, part: str | Header) -> bool:
        """The next part of `Messages.feed`; whether the message it begins may be the one."""
        marker = isinstance(part, Header) or part in FRAMING
        if self._role is not None:
            self._judge(None if isinstance(part, Header) or marker else part)
        if part == START:
            self._role = ""
        if self._found:
            self._message = (self._message, MESSAGE if isinstance(part, Header) else part)
            return False
        if isinstance(part, Header):
            begins = self._counts and part.recipient not in NO_TOOLS
            self._message = (None, part.text) if begins else None
            self._tail = ""
            return begins
        if marker:
            self._message = None
        elif self._message is not None:
            self._message = (self._message, part)
            window = self._tail + part
            self._found = has_call(window)
            self._tail = window[-_LONGEST_CALL:]
        return False

    def _judge(self, text: str | None) -> None:
        """More of what follows `<|start|>`; None where a marker ends it."""
        end = BREAK.search(text) if text is not None else None
        self._role = (self._role or "") + (text[: end.start()] if text and end else text or "")
        if text is not None and not end and _ASSISTANT.startswith(self._role):
            return
        if self._role:
            self._counts = self._role == _ASSISTANT
            if not self._counts:
                self._message, self._found = None, False
        self._role = None
