"""JSON with positions: Python's own decoder reads strings and numbers, the structure around them is read here."""

from __future__ import annotations

import json

from ..checks.finding import Location
from ..errors import InputError
from .document import MAX_DEPTH, Entry, Locate, Node, integer, real, refuse, too_long

_DECODER = json.JSONDecoder(strict=False, parse_float=real, parse_constant=real)
_SPACE = " \t\r\n"


def read_json(text: str, locate: Locate) -> Node:
    """The one JSON value in `text`. Raises InputError with its place for anything else."""
    nodes = read_json_values(text, locate)
    if len(nodes) != 1:
        raise (
            _broken("a second JSON value begins here", nodes[1].location)
            if nodes
            else _broken("no JSON value", locate(0))
        )
    return nodes[0]


def read_json_values(text: str, locate: Locate) -> list[Node]:
    """Every JSON value in `text`, one after the other with only white space between them (JSONL, or pretty-printed)."""
    reader = _Reader(text, locate)
    nodes = []
    while reader.peek():
        nodes.append(node := reader.value())
        if node.is_scalar and text[reader.position : reader.position + 1] not in ("", *_SPACE):
            raise reader.unexpected("the end of this value")
    return nodes


class _Reader:
    def __init__(self, text: str, locate: Locate) -> None:
        self.text = text
        self.locate = locate
        self.position = 0
        self.depth = 0

    def peek(self) -> str:
        """The next character that is no white space, or an empty string at the end."""
        while self.position < len(self.text) and self.text[self.position] in _SPACE:
            self.position += 1
        return self.text[self.position : self.position + 1]

    def value(self) -> Node:
        char, place = self.peek(), self.locate(self.position)
        if char not in "{[" or not char:
            return Node(place, scalar=self.scalar())
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise refuse(f"nested deeper than {MAX_DEPTH} levels", place, mend="write it flatter")
        self.position += 1
        node = Node(place, entries=self.entries()) if char == "{" else Node(place, items=self.items())
        self.depth -= 1
        return node

    def entries(self) -> tuple[Entry, ...]:
        entries: list[Entry] = []
        while self.more("}", first=not entries):
            place = self.locate(self.position)
            if self.peek() != '"':
                raise self.unexpected("a key in double quotes")
            key = str(self.scalar())
            if self.peek() != ":":
                raise self.unexpected("':' after the key")
            self.position += 1
            entries.append(Entry(key, place, self.value()))
        return tuple(entries)

    def items(self) -> tuple[Node, ...]:
        items: list[Node] = []
        while self.more("]", first=not items):
            items.append(self.value())
        return tuple(items)

    def more(self, close: str, *, first: bool) -> bool:
        """Step over a separator: is there another element before the closing bracket?"""
        char = self.peek()
        if char == close:
            self.position += 1
            return False
        if not first:
            if char != ",":
                raise self.unexpected(f"',' or '{close}'")
            self.position += 1
            if self.peek() == close:
                raise self.unexpected("another element: JSON has no trailing comma")
        return True

    def scalar(self) -> bool | int | float | str | None:
        start = self.position
        try:
            value, self.position = _DECODER.raw_decode(self.text, self.position)
        except json.JSONDecodeError as error:
            if error.msg.startswith("Expecting value"):
                raise self.unexpected("a value") from None
            raise _broken(error.msg, self.locate(min(error.pos, len(self.text)))) from None
        except ValueError:  # a number of more digits than Python converts
            raise too_long(self.locate(start)) from None
        if isinstance(value, int):
            return value if isinstance(value, bool) else integer(value, self.locate(start))
        return value  # type: ignore[no-any-return]

    def unexpected(self, wanted: str) -> InputError:
        char = self.peek()
        got = repr(char) if char else "the end"
        return _broken(f"expected {wanted}, got {got}", self.locate(self.position))


def _broken(problem: str, place: Location) -> InputError:
    return refuse(f"not JSON: {problem[:1].lower()}{problem[1:]}", place, mend="correct it there")
