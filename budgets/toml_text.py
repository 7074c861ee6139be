"""TOML with positions: tomllib judges and converts; places and keys given twice are scanned here."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field

from ..checks.finding import Location
from .document import MAX_DEPTH, Entry, Locate, Node, Scalar, duplicates, integer, real, refuse, too_long

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN_VALUE = re.compile(r"\d{4}-\d\d-\d\d \d\d:[^\s,\]}#]+|[^\s,\]}#]+")
_PLACE = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)")


def read_toml(text: str, locate: Locate) -> Node:
    """The document in `text`. A key given twice, which TOML forbids, is kept as a duplicate rather than refused.

    Raises:
        InputError: tomllib refuses it for any other reason.
    """
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        try:
            root = _Scanner(text, locate).document()
        except (_BrokenError, RecursionError):
            root = None
        if root is not None and next(duplicates(root), None) is not None:
            return root
        problem = str(error)
        match = _PLACE.search(problem)
        place = locate(0) if match is None else _place(text, locate, match)
        raise refuse(f"not TOML: {_PLACE.sub('', problem)}", place, mend="correct it there") from None
    except RecursionError:
        raise refuse(f"nested deeper than {MAX_DEPTH} levels", locate(0), mend="write it flatter") from None
    except ValueError:  # an integer of more digits than Python converts; the scanner knows where
        pass
    try:
        return _Scanner(text, locate).document()
    except _BrokenError as error:
        raise refuse("this TOML is beyond what is read here", locate(error.offset), mend="write it simpler") from None


def _place(text: str, locate: Locate, match: re.Match[str]) -> Location:
    if match[1] is None:
        return locate(len(text))
    lines = text.split("\n")
    row = int(match[1]) - 1
    return locate(sum(len(line) + 1 for line in lines[:row]) + int(match[2]) - 1)


class _BrokenError(Exception):
    def __init__(self, offset: int) -> None:
        self.offset = offset
        super().__init__(str(offset))


@dataclass
class _Table:
    location: Location
    entries: list[tuple[str, Location, Node | _Table | list[_Table]]] = field(default_factory=list)
    defined: bool = False
    """By a header of its own; a second one for it is a duplicate."""

    def find(self, key: str) -> Node | _Table | list[_Table] | None:
        return next((value for name, _, value in reversed(self.entries) if name == key), None)

    def freeze(self) -> Node:
        return Node(
            self.location, entries=tuple(Entry(key, place, _frozen(value)) for key, place, value in self.entries)
        )


def _frozen(value: Node | _Table | list[_Table]) -> Node:
    if isinstance(value, Node):
        return value
    if isinstance(value, _Table):
        return value.freeze()
    return Node(value[0].location, items=tuple(table.freeze() for table in value))


class _Scanner:
    def __init__(self, text: str, locate: Locate) -> None:
        self.text = text
        self.locate = locate
        self.position = 0

    def document(self) -> Node:
        root = _Table(self.locate(0))
        current = root
        while self.skip(lines=True):
            if self.text.startswith("[[", self.position):
                current = self.header(root, close="]]")
            elif self.text[self.position] == "[":
                current = self.header(root, close="]")
            else:
                self.assignment(current)
        return root.freeze()

    def header(self, root: _Table, *, close: str) -> _Table:
        self.position += len(close)
        keys = self.keys()
        self.take(close)
        parent = self.descend(root, keys[:-1])
        name, place = keys[-1]
        found = parent.find(name)
        if close == "]]":
            table = _Table(place)
            if isinstance(found, list):
                found.append(table)
            else:
                parent.entries.append((name, place, [table]))
            return table
        if isinstance(found, _Table) and not found.defined:
            found.defined = True
            return found
        table = _Table(place, defined=True)
        parent.entries.append((name, place, table))
        return table

    def assignment(self, table: _Table) -> None:
        keys = self.keys()
        self.take("=")
        self.skip(lines=False)
        name, place = keys[-1]
        self.descend(table, keys[:-1]).entries.append((name, place, self.value(0)))

    def descend(self, table: _Table, keys: list[tuple[str, Location]]) -> _Table:
        for name, place in keys:
            found = table.find(name)
            if isinstance(found, list):
                table = found[-1]
            elif isinstance(found, _Table):
                table = found
            else:
                inner = _Table(place)
                table.entries.append((name, place, inner))
                table = inner
        return table

    def keys(self) -> list[tuple[str, Location]]:
        """A key with its dots, each part with its place."""
        parts: list[tuple[str, Location]] = []
        while True:
            self.skip(lines=False)
            place = self.locate(self.position)
            if self.text[self.position : self.position + 1] in ('"', "'"):
                parts.append((str(self.converted(self.string(), place)), place))
            else:
                match = _BARE_KEY.match(self.text, self.position)
                if match is None:
                    raise _BrokenError(self.position)
                parts.append((match[0], place))
                self.position = match.end()
            self.skip(lines=False)
            if self.text[self.position : self.position + 1] != ".":
                return parts
            self.position += 1

    def value(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise _BrokenError(self.position)
        place = self.locate(self.position)
        char = self.text[self.position : self.position + 1]
        if char == "[":
            self.position += 1
            items: list[Node] = []
            while self.element("]"):
                items.append(self.value(depth + 1))
            return Node(place, items=tuple(items))
        if char == "{":
            self.position += 1
            table = _Table(place)
            while self.element("}"):
                self.assignment(table)
            return table.freeze()
        if char in ('"', "'") and char:
            return Node(place, scalar=self.converted(self.string(), place))
        match = _PLAIN_VALUE.match(self.text, self.position)
        if match is None:
            raise _BrokenError(self.position)
        self.position = match.end()
        return Node(place, scalar=self.converted(match[0], place))

    def element(self, close: str) -> bool:
        """Step over commas, white space and comments inside brackets: is there another element?"""
        while self.skip(lines=True) and self.text[self.position] == ",":
            self.position += 1
        if self.position >= len(self.text):
            raise _BrokenError(self.position)
        if self.text[self.position] == close:
            self.position += 1
            return False
        return True

    def string(self) -> str:
        """The string that begins here, with its quotes."""
        start = self.position
        quote = self.text[start]
        mark = quote * 3 if self.text.startswith(quote * 3, start) else quote
        self.position += len(mark)
        while not self.text.startswith(mark, self.position):
            if self.position >= len(self.text):
                raise _BrokenError(start)
            self.position += 2 if quote == '"' and self.text[self.position] == "\\" else 1
        self.position += len(mark)
        while len(mark) == 3 and self.text.startswith(quote, self.position):  # up to two quotes may end the text itself
            self.position += 1
        return self.text[start : self.position]

    def converted(self, raw: str, place: Location) -> Scalar:
        try:
            value = tomllib.loads(f"v = {raw}", parse_float=real)["v"]
        except tomllib.TOMLDecodeError:
            raise _BrokenError(self.position) from None
        except ValueError:
            raise too_long(place) from None
        if isinstance(value, int):
            return value if isinstance(value, bool) else integer(value, place)
        return value if isinstance(value, (float, str)) else str(value)

    def skip(self, *, lines: bool) -> bool:
        """Step over white space, with `lines` over line ends and comments too: is anything left?"""
        while self.position < len(self.text):
            char = self.text[self.position]
            if char in " \t" or (lines and char in "\r\n"):
                self.position += 1
            elif lines and char == "#":
                end = self.text.find("\n", self.position)
                self.position = len(self.text) if end < 0 else end
            else:
                return True
        return False

    def take(self, mark: str) -> None:
        self.skip(lines=False)
        if not self.text.startswith(mark, self.position):
            raise _BrokenError(self.position)
        self.position += len(mark)
