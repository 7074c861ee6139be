"""JSON values out of a text, one at a time: JSON lines, one array, one pretty-printed object, or several in a row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, TextIO

from .decode import BadValueError, NotJsonError, loads, raw_decode
from .source import Source, decodes
from .trace import BrokenLine

Value = tuple[int, Any]
"""(1-based line on which the value starts, the value)."""

Path = tuple[str, ...]
"""The keys that lead to a value, from the outermost object."""

TAKEN_OUT = "mend it or take it out"
_BLANK = re.compile(r"[ \t\r\n\ufeff\x1e]*")
_WINDOW = 64 * 1024
_LONGEST_TOKEN = 16
"""Characters; no JSON token but a string is longer where it matters (`-Infinity`, an escape)."""


def json_values(source: Source, *, open_arrays: bool = True) -> Iterator[Value | BrokenLine]:
    """Every JSON value of a source, holding no more than one of them in memory.

    A line that is no JSON among lines that are costs that line. An array at the top gives its elements, unless
    `open_arrays` is false.
    """
    if _is_lines(source.head, whole=source.whole):
        yield from _lines(source, open_arrays=open_arrays)
    else:
        yield from _run_of_values(source, open_arrays=open_arrays)


def member_values(source: Source, paths: frozenset[Path]) -> Iterator[Value | BrokenLine]:
    """The elements of the arrays that stand at one of `paths` in the one object of a source, one at a time.

    Raises nothing: what is no such object gives a BrokenLine.
    """
    window = _Window(source.text)
    try:
        yield from _members(window, source.name, paths)
    except _PlacedError as error:
        yield error.broken(source.name)


def _members(window: _Window, name: str, paths: frozenset[Path]) -> Iterator[Value | BrokenLine]:
    if not window.take("{"):
        raise window.error("expected an object")
    while not window.take("}"):
        key = window.value()
        if not window.take(":"):
            raise window.error("expected ':' after a key")
        deeper = frozenset(path[1:] for path in paths if path[0] == key)
        if () in deeper and window.take("["):
            yield from _elements(window, name)
        elif any(deeper) and window.sees("{"):
            yield from _members(window, name, frozenset(path for path in deeper if path))
        else:
            with suppress(_BadValueError):  # in a part that nobody looks at
                window.value()
        window.take(",")


def parse_line(source_name: str, number: int, text: str) -> Value | BrokenLine:
    """One line as a JSON value, or why it is none."""
    if not decodes(text):
        return BrokenLine(source_name, number, "this line is not UTF-8", "save it as UTF-8")
    try:
        return number, loads(text)
    except BadValueError as error:
        return BrokenLine(source_name, number, f"this line cannot be taken ({error})", TAKEN_OUT)
    except NotJsonError as error:
        return BrokenLine(source_name, number, f"this line is not JSON ({error})")


def _is_lines(head: str, *, whole: bool) -> bool:
    """Some unindented line of the head is a whole object, or an array followed by more: one value a line."""
    if not whole and "\n" not in head:
        return head.lstrip(" \t\ufeff\x1e").startswith("{")  # one long object, and a line for each that follows
    lines = head.split("\n")
    if not whole and len(lines) > 1:
        lines.pop()  # cut by the head's end
    full = [line for line in lines if line.strip()]
    if full and full[0].lstrip()[0] == "[" and not _parses(full[0]):
        return False  # an array over several lines, perhaps with one element a line
    for line in full:
        if (line[0] == "{" or (line[0] == "[" and len(full) > 1)) and _parses(line):
            return True
    return len(full) > 1 and all(line[0] == "{" and len(line) > 1 for line in full)


def _parses(line: str) -> bool:
    try:
        loads(line)
    except BadValueError:
        return True
    except NotJsonError:
        return False
    return True


def _lines(source: Source, *, open_arrays: bool) -> Iterator[Value | BrokenLine]:
    for number, line in source.lines():
        text = line.strip(" \t\ufeff\x1e")
        if not text:
            continue
        item = parse_line(source.name, number, text)
        if isinstance(item, tuple) and isinstance(item[1], list) and open_arrays:
            yield from ((number, element) for element in item[1])
        else:
            yield item


def _run_of_values(source: Source, *, open_arrays: bool) -> Iterator[Value | BrokenLine]:
    window = _Window(source.text)
    lost = False
    while not window.at_end():
        try:
            if lost and (window.take(",") or window.take("]")):
                continue  # what is left of an array after a broken element
            if open_arrays and window.take("["):
                yield from _elements(window, source.name)
            else:
                yield window.item(source.name)
        except _PlacedError as error:
            yield error.broken(source.name)
            lost = True
            window.resume()


def _elements(window: _Window, name: str) -> Iterator[Value | BrokenLine]:
    while not window.take("]"):
        yield window.item(name)
        if not window.take(",") and not window.sees("]"):
            raise window.error("expected ',' or ']'")


class _PlacedError(Exception):
    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line

    def broken(self, name: str) -> BrokenLine:
        return BrokenLine(name, self.line, f"this is not JSON ({self})")


class _BadValueError(_PlacedError):
    """A value that cannot be taken; the window stands behind it."""

    def broken(self, name: str) -> BrokenLine:
        return BrokenLine(name, self.line, f"this value cannot be taken ({self})", TAKEN_OUT)


class _Window:
    """A moving piece of a text, read on only where the value at hand needs it."""

    def __init__(self, text: TextIO) -> None:
        self._text = text
        self._buffer = ""
        self._at = 0
        self._ended = False
        self.line = 1

    def at_end(self) -> bool:
        self.skip_blank()
        return self._at >= len(self._buffer)

    def skip_blank(self) -> None:
        while True:
            match = _BLANK.match(self._buffer, self._at)
            end = match.end() if match else self._at
            self._move(end)
            if end < len(self._buffer) or not self._more():
                return

    def sees(self, mark: str) -> bool:
        self.skip_blank()
        return self._buffer.startswith(mark, self._at)

    def take(self, mark: str) -> bool:
        if self.sees(mark):
            self._move(self._at + len(mark))
            return True
        return False

    def item(self, name: str) -> Value | BrokenLine:
        """The value that starts here and its line, or why it is left out. Raises _PlacedError as `value`."""
        self.skip_blank()
        line = self.line
        try:
            return line, self.value()
        except _BadValueError as error:
            return error.broken(name)

    def value(self) -> Any:
        """The value that starts here. Raises _PlacedError where none does, or where it is cut or cannot be taken."""
        self.skip_blank()
        while True:
            fault: str | None = None
            value: Any = None
            try:
                value, end = raw_decode(self._buffer, self._at)
            except BadValueError as error:
                fault, end = str(error), error.end
            except NotJsonError as error:
                # A value that the window cuts fails at the cut, or at the start of the string that is cut. The window
                # doubles, which keeps the whole linear.
                message = str(error)
                cut = message.startswith("Unterminated string") or error.position >= len(self._buffer) - _LONGEST_TOKEN
                if cut and self._more(max(_WINDOW, len(self._buffer) - self._at)):
                    continue
                raise self.error(message, error.position) from None
            if end == len(self._buffer) and self._more():
                continue  # a number may go on
            if fault is None and not decodes(self._buffer[self._at : end]):
                fault = "not UTF-8"
            line = self.line
            self._move(end)
            if fault is not None:
                raise _BadValueError(fault, line)
            return value

    def error(self, message: str, position: int | None = None) -> _PlacedError:
        place = self._at if position is None else position
        if place >= len(self._buffer):
            place = max(self._at, len(self._buffer.rstrip()))  # what is cut is missed where it stops, not a line below
        return _PlacedError(message, self.line + self._buffer.count("\n", self._at, place))

    def resume(self) -> None:
        """Go on at the next line that starts like a value."""
        while True:
            place = self._buffer.find("\n", self._at)
            self._move(place + 1 if place >= 0 else len(self._buffer))
            if self._at >= len(self._buffer) and not self._more():
                return
            if place >= 0 and self._buffer[self._at] in "{[":
                return

    def _move(self, end: int) -> None:
        self.line += self._buffer.count("\n", self._at, end)
        self._at = end

    def _more(self, size: int = _WINDOW) -> bool:
        if self._ended:
            return False
        piece = self._text.read(size)
        if not piece:
            self._ended = True
            return False
        self._buffer = self._buffer[self._at :] + piece
        self._at = 0
        return True
