"""A POSIX shell line cut into words, each character of a word with the place it came from."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from ..budgets.document import Locate, refuse
from ..checks.finding import Location

_DECODER = json.JSONDecoder()
_OPERATORS = (
    "&&",
    "||",
    ";;",
    "&>>",
    ">>",
    "<<<",
    "<<",
    "&>",
    ">&",
    "<&",
    ">|",
    "\n",
    ";",
    "|",
    "&",
    ">",
    "<",
    "(",
    ")",
)
_SPACE = " \t\r"
_LINE_END = re.compile(r"([ \t]*)\r?\n")
_NAME = re.compile(r"[A-Za-z_]\w*")
_IN_DOUBLE_QUOTES = '"\\$`'
"""What a backslash keeps from its meaning between double quotes."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word after quotes and backslashes are gone, or an operator.

    `offsets` holds, for every character of `text` and for its end, the offset in the source. `dynamic` says that some
    of it (a variable, a command's output) is known only when the shell runs.
    """

    text: str
    offsets: tuple[int, ...]
    locate: Locate = field(repr=False, compare=False)
    operator: bool = False
    dynamic: bool = False
    expansions: tuple[tuple[int, int, bool], ...] = ()
    """Stretches of `text` that are expansions still to be made: begin, end, and whether they stand in quotes."""

    @property
    def location(self) -> Location:
        return self.place(0)

    def place(self, index: int) -> Location:
        """Where the character `index` of `text` stands in the file."""
        return self.locate(self.offsets[min(index, len(self.offsets) - 1)])


def word_at(text: str, location: Location, *, dynamic: bool = False) -> Word:
    """A word that stands at one place, such as an item of a YAML list."""
    return Word(text, tuple(range(len(text) + 1)), lambda _: location, dynamic=dynamic)


def split_words(text: str, locate: Locate) -> list[Word]:
    """Cut `text` as a shell would, operators and line ends included; comments are left out.

    JSON that has lost its quotes (`ps`, a pasted log) is one word until it closes.

    Raises:
        InputError: a quote never closes, or white space after a backslash breaks the line it should continue.
    """
    words: list[Word] = []
    position = 0
    while position < len(text):
        char = text[position]
        if char in _SPACE:
            position += 1
        elif text.startswith(("\\\n", "\\\r\n"), position):
            position = text.index("\n", position) + 1
        elif char == "#":
            end = text.find("\n", position)
            position = len(text) if end < 0 else end
        elif operator := next((op for op in _OPERATORS if text.startswith(op, position)), None):
            words.append(Word(operator, (position, position + len(operator)), locate, operator=True))
            position += len(operator)
        else:
            word, position = _Cutter(text, position, locate).word()
            words.append(word)
    return words


class _Cutter:
    """Reads one word."""

    def __init__(self, text: str, position: int, locate: Locate) -> None:
        self.text = text
        self.position = position
        self.locate = locate
        self.chars: list[str] = []
        self.offsets: list[int] = []
        self.dynamic = False
        self.expansions: list[tuple[int, int, bool]] = []

    def word(self) -> tuple[Word, int]:
        text = self.text
        while self.position < len(text):
            char = text[self.position]
            if char in " \t\r\n" or any(
                text.startswith(op, self.position) for op in (";", "|", "&", ">", "<", "(", ")")
            ):
                break
            if char == "{" and (not self.chars or self.chars[-1] == "=") and self.bare_json():
                continue
            if char == "\\":
                self.escape()
            elif char == "'":
                self.single()
            elif char == '"' or (char == "$" and text[self.position + 1 : self.position + 2] == '"'):
                self.position += char == "$"
                self.double()
            elif char in "$`":
                self.expansion()
            else:
                self.keep(1)
        word = Word(
            "".join(self.chars),
            (*self.offsets, self.position),
            self.locate,
            dynamic=self.dynamic,
            expansions=tuple(self.expansions),
        )
        return word, self.position

    def keep(self, count: int) -> None:
        """Take the next characters as they stand."""
        self.chars += self.text[self.position : self.position + count]
        self.offsets += range(self.position, self.position + count)
        self.position += count

    def escape(self) -> None:
        ends = _LINE_END.match(self.text, self.position + 1)
        if ends is not None and not ends[1]:
            self.position = ends.end()
            return
        if ends is not None:
            raise refuse(
                "white space after the backslash: the line is not continued",
                self.locate(self.position),
                mend="take away what stands behind the backslash",
            )
        self.position += 1
        if self.position < len(self.text):
            self.keep(1)

    def single(self) -> None:
        end = self.text.find("'", self.position + 1)
        if end < 0:
            raise refuse("this quote is never closed", self.locate(self.position), mend="close it")
        self.position += 1
        self.keep(end - self.position)
        self.position += 1

    def double(self) -> None:
        start = self.position
        self.position += 1
        while self.position < len(self.text):
            char = self.text[self.position]
            following = self.text[self.position + 1 : self.position + 2]
            if char == '"':
                self.position += 1
                return
            if char == "\\" and following == "\n":
                self.position += 2
            elif char == "\\" and following and following in _IN_DOUBLE_QUOTES:
                self.position += 1
                self.keep(1)
            elif char in "$`":
                self.expansion(quoted=True)
            else:
                self.keep(1)
        raise refuse("this quote is never closed", self.locate(start), mend="close it")

    def expansion(self, *, quoted: bool = False) -> None:
        """Keep `$NAME`, `${NAME:-default}`, `$(command)` or backquotes as text, and say that their value is unknown."""
        char, following = self.text[self.position], self.text[self.position + 1 : self.position + 2]
        if char == "$" and not (following.isalnum() or (following and following in "_{(@*#?$!'")):
            self.keep(1)
            return
        self.dynamic = True
        begin = len(self.chars)
        if char == "`":
            end = self.text.find("`", self.position + 1)
            self.keep((end if end >= 0 else len(self.text) - 1) - self.position + 1)
        elif following and following in "({":
            self.keep(self.balanced(self.position + 1) - self.position)
        else:
            name = _NAME.match(self.text, self.position + 1)
            self.keep(1 + len(name[0]) if name is not None else 2)
        self.expansions.append((begin, len(self.chars), quoted))

    def balanced(self, start: int) -> int:
        """The offset behind the bracket that closes the one at `start`."""
        opening = self.text[start]
        closing = {"(": ")", "{": "}"}[opening]
        depth = 0
        for index in range(start, len(self.text)):
            depth += (self.text[index] == opening) - (self.text[index] == closing)
            if depth == 0:
                return index + 1
        raise refuse("this bracket is never closed", self.locate(start), mend="close it")

    def bare_json(self) -> bool:
        """JSON without quotes around it (a shell would have eaten its inner quotes, so this text never met one)."""
        try:
            value, end = _DECODER.raw_decode(self.text, self.position)
        except (ValueError, RecursionError):
            return False
        if not isinstance(value, dict) or not value or self.text[end : end + 1] not in ("", *" \t\r\n;|&"):
            return False
        self.keep(end - self.position)
        return True
