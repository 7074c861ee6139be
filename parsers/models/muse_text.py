"""What muse's channel headers are made of, followed as a text grows. All of it can be copied at any moment."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from typing import Self

from .partial import SPACE, partial_suffix

MESSAGE = "<|message|>"
EOM = "<|eom|>"
EOT = "<|eot|>"
START = "<|start|>"
TURN = "<|start|>assistant"
FRAMING = (MESSAGE, EOM, EOT, START)
CALLS = ("<atem:function_calls>", "<atem:invoke")
"""What opens tool calls."""

_TO = "to="
BREAK = re.compile(f"{SPACE}|<")

Rope = tuple["Rope", str] | None
"""Text in pieces, the last one outermost, so that keeping an earlier state of it costs nothing."""


def whole(rope: Rope) -> str:
    """The text of a rope."""
    parts: list[str] = []
    while rope is not None:
        rope, part = rope
        parts.append(part)
    return "".join(reversed(parts))


def is_space(character: str) -> bool:
    """What the `regex` module takes for whitespace."""
    return character.isspace() and not "\x1c" <= character <= "\x1f"


def after_break(text: str) -> tuple[bool, str]:
    """Whether there is whitespace or `<` in the text, and what follows the last of it."""
    parts = BREAK.split(text)
    return len(parts) > 1, parts[-1]


def header_in(word: str) -> str:
    """`to=` with a recipient, where a word that stands right before `<|message|>` has it; else nothing."""
    at = word.find(_TO)
    return word[at:] if at >= 0 and len(word) > at + len(_TO) else ""


def recipient_of(text: str) -> str | None:
    """The recipient a header's text ends with, whitespace behind it aside."""
    end = len(text)
    while end and is_space(text[end - 1]):
        end -= 1
    return header_in(after_break(text[:end])[1])[len(_TO) :] or None


def has_call(text: str) -> bool:
    """Whether a tool call opens in the text."""
    return any(opening in text for opening in CALLS)


class Copyable:
    """State of immutable parts, so that a shallow copy is a snapshot."""

    def copy(self) -> Self:
        return copy.copy(self)


class Lexer(Copyable):
    """Cuts a text at its markers. The end that may yet become one waits in `partial`."""

    def __init__(self, markers: Sequence[str]) -> None:
        self._markers = markers
        self._pattern = re.compile(f"({'|'.join(map(re.escape, markers))})")
        self.partial = ""

    def feed(self, text: str) -> Iterator[str]:
        """Markers, and the texts between them."""
        if not self.partial and "<" not in text:
            return iter((text,) if text else ())
        parts = self._pattern.split(self.partial + text)
        cut = len(parts[-1]) - partial_suffix(parts[-1], *self._markers)
        self.partial = parts[-1][cut:]
        parts[-1] = parts[-1][:cut]
        return filter(None, parts)


class Word(Copyable):
    """Follows the word a text ends with, as far as it may be a header's `to=` and recipient."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._rope: Rope = None
        self._length = 0
        self._begun = ""

    @property
    def pending(self) -> str:
        """The end of the text from its `to=` on, or what may yet become one: `t`, `to`."""
        return whole(self._rope) if self._rope else self._begun

    @property
    def length(self) -> int:
        return self._length if self._rope else len(self._begun)

    @property
    def header(self) -> str:
        """The word's header, as `header_in`."""
        return header_in(self.pending) if self._rope else ""

    def feed(self, text: str) -> str:
        """The next text; returns what is now known to stand before the pending word."""
        if self._rope is None and _TO not in self._begun + text:
            return self._settled(self._begun + text)
        broken, rest = after_break(text)
        if self._rope is not None and not broken:
            self._rope = (self._rope, text)
            self._length += len(text)
            return ""
        text = self.pending + text
        word = rest if broken else text
        self.reset()
        at = word.find(_TO)
        if at >= 0:
            self._rope = (None, word[at:])
            self._length = len(word) - at
            return text[: len(text) - self._length]
        return self._settled(text)

    def _settled(self, text: str) -> str:
        cut = len(text) - partial_suffix(text, _TO)
        self._begun = text[cut:]
        return text[:cut]


class Tail(Copyable):
    """How much at the end of an open body the parser holds back, since it may become a header or a marker.

    That is whitespace and `t`, `to` or `to=` with a recipient (one line break may follow), or the beginning of a
    marker; and then the same again before it, as often as it goes.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._length = 0
        self._kept = 0
        self._before = 0
        """What would be kept if the beginning in `_begun` became something."""
        self._begun = ""
        """Whitespace, then what has followed of `to=`; or what has come of a marker."""

    @property
    def held(self) -> int:
        """How many characters at the end are held back."""
        return self._length - self._kept

    def held_with(self, word: Word) -> int:
        """The same for the text with this word behind it, of which nothing has been fed yet."""
        if not word.length:
            return self.held
        begun = self._begun
        goes_on = (len(begun) == 1 and is_space(begun)) or (word.length == 1 and self._goes_on(begun, _TO[0]))
        return self._length - self._before + word.length if goes_on else 0

    def feed(self, text: str) -> None:
        broken, rest = after_break(text)
        settled = broken and rest and text[-len(rest) - 1] != "<" and not (_TO.startswith(rest[:3]))
        if settled or not (broken or self._begun):
            self._length += len(text)
            self._kept = self._length
            self._begun = ""
            return
        for character in text:
            self._add(character)

    def _add(self, character: str) -> None:
        kept, begun = self._kept, self._begun
        header = len(begun) > 1 and is_space(begun[0])
        self._length += 1
        if is_space(character):
            self._begun, self._before, self._kept = character, kept, self._length
            if header and character == "\n":
                self._kept = kept
        elif character == "<":
            self._begun, self._before = character, kept
        elif self._goes_on(begun, character):
            # Of a recipient nothing but that it goes on has to be known.
            self._begun = begun if is_space(begun[0]) and len(begun) > len(_TO) else begun + character
            self._kept = self._before
        else:
            self._begun = ""
            self._kept = self._length

    def _goes_on(self, begun: str, character: str) -> bool:
        if not begun:
            return False
        if is_space(begun[0]):
            return len(begun) > len(_TO) or _TO.startswith(begun[1:] + character)
        return any(marker.startswith(begun + character) and marker != begun + character for marker in FRAMING)
