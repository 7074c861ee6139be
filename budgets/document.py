"""A small document (JSON, YAML, TOML) that remembers where each key and value stands and which keys came twice."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..checks.finding import Location
from ..errors import InputError

Scalar = None | bool | int | float | str
Locate = Callable[[int], Location]
"""From a character offset in some text to the place in the file the text came from."""
MAX_DEPTH = 100
"""Levels of nesting a document may have; a budget needs three."""
MAX_DIGITS = 1000
"""Digits of the longest integer that is read: more are no number of tokens, and Python prints no more than 4300."""
MAX_EXPANDED = 100_000
"""Nodes that the aliases of a YAML document may add to it: aliases of aliases grow without bound."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of a mapping, the place of the key, and its value."""

    key: str
    location: Location
    value: Node


@dataclass(frozen=True, slots=True)
class Node:
    """A value and its place. A mapping has `entries` (in the order given, duplicates included), a list has `items`."""

    location: Location
    scalar: Scalar = None
    items: tuple[Node, ...] | None = None
    entries: tuple[Entry, ...] | None = None
    within: Locate | None = field(default=None, repr=False, compare=False)
    """Of a text: from an offset in it to its place in the file; None where only the value's own place is known."""

    def at(self, offset: int) -> Location:
        """Where this character of a text stands, as near as is known."""
        return self.within(offset) if self.within is not None else self.location

    @property
    def is_scalar(self) -> bool:
        return self.items is None and self.entries is None

    def get(self, key: str) -> Entry | None:
        """The entry that wins under this key, as every reader has it: the last one."""
        return next((entry for entry in reversed(self.entries or ()) if entry.key == key), None)

    def fields(self) -> Mapping[str, Entry]:
        """The winning entry of every key, in the order of their first appearance."""
        return {entry.key: entry for entry in self.entries or ()}

    def plain(self) -> Any:
        """The value as plain Python data."""
        if self.entries is not None:
            return {key: entry.value.plain() for key, entry in self.fields().items()}
        if self.items is not None:
            return [item.plain() for item in self.items]
        return self.scalar

    def walk(self, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Entry]]:
        """Every entry of every mapping below this node, with the keys that lead to it (its own last)."""
        for entry in self.entries or ():
            yield (*path, entry.key), entry
            yield from entry.value.walk((*path, entry.key))
        for index, item in enumerate(self.items or ()):
            yield from item.walk((*path, f"[{index}]"))


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A key given twice in one mapping: `first` is the one that loses."""

    path: tuple[str, ...]
    first: Location
    last: Location
    lost: Any
    kept: Any


def duplicates(node: Node, path: tuple[str, ...] = ()) -> Iterator[Duplicate]:
    """Every key that its own mapping holds more than once, with the first and the last place."""
    seen: dict[str, list[Entry]] = {}
    for entry in node.entries or ():
        seen.setdefault(entry.key, []).append(entry)
    for key, entries in seen.items():
        if len(entries) > 1:
            first, last = entries[0], entries[-1]
            yield Duplicate((*path, key), first.location, last.location, first.value.plain(), last.value.plain())
        for entry in entries:
            yield from duplicates(entry.value, (*path, key))
    for index, item in enumerate(node.items or ()):
        yield from duplicates(item, (*path, f"[{index}]"))


def locator(text: str, path: str, *, line: int = 1, column: int = 1) -> Locate:
    """Places in `text`, whose first character stands at `line`:`column` of the file `path`."""
    starts = [0] + [index + 1 for index, char in enumerate(text) if char == "\n"]

    def locate(offset: int) -> Location:
        row = bisect_right(starts, offset) - 1
        return Location(path, line + row, offset - starts[row] + (column if row == 0 else 1))

    return locate


def aligned(value: str, raw: str, start: int, locate: Locate) -> Locate:
    """Places of the characters of `value`, which some notation wrote as `raw`, beginning at offset `start` of a text.

    Quotes, escapes, indentation and folded line ends are passed over: each character is looked for behind the one
    before it. One that is not there as it is (an escape) has the place of what stands there.
    """
    offsets: list[int] = []

    def place(offset: int) -> Location:
        if not offsets:
            offsets.extend(_offsets(value, raw))
        return locate(start + (offsets[min(max(offset, 0), len(offsets) - 1)] if offsets else 0))

    return place


def _offsets(value: str, raw: str) -> Iterator[int]:
    position = 0
    for char in value:
        if char.isspace():
            yield min(position, max(len(raw) - 1, 0))
            if raw.startswith("\\", position):
                position += 2
            while position < len(raw) and raw[position].isspace():
                position += 1
            continue
        found = raw.find(char, position)
        near = found >= 0 and found - position <= _NEAR
        yield found if near else min(position, max(len(raw) - 1, 0))
        position = found + 1 if near else position + 1


_NEAR = 64
"""Characters of indentation, quotes and escapes that may stand between two characters of a value."""


class NotFinite(float):
    """NaN, an infinity or a float too large for one, with the `text` it was written as, which is how JSON shows it."""

    text: str

    def __new__(cls, text: str, value: float) -> NotFinite:
        self = super().__new__(cls, value)
        self.text = text
        return self

    def __repr__(self) -> str:
        return self.text


def real(text: str) -> float:
    """The float that `text` (`1.5`, `1e400`, `NaN`, `-Infinity`) says."""
    value = float(text)
    return value if math.isfinite(value) else NotFinite(text, value)


def strict(value: Any) -> Any:
    """Plain data as strict JSON has it: what is no finite number becomes the text it was written as."""
    if isinstance(value, float) and not math.isfinite(value):
        return value.text if isinstance(value, NotFinite) else json.dumps(float(value))
    if isinstance(value, Mapping):
        return {key: strict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [strict(item) for item in value]
    return value


def integer(value: int, place: Location) -> int:
    """The value itself. Raises InputError for one of more than MAX_DIGITS digits."""
    if value.bit_length() > _MAX_BITS:
        raise too_long(place)
    return value


def too_long(place: Location) -> InputError:
    """The error for a number of more digits than anyone means."""
    return refuse(f"a number of more than {MAX_DIGITS} digits", place, mend="write a number of tokens")


_MAX_BITS = (10**MAX_DIGITS).bit_length() - 1


def named(path: str) -> str:
    """What an error calls the place text came from: a file by its name, `-` in words."""
    return "standard input" if path == "-" else path


def refuse(message: str, place: Location, *, mend: str | None = None) -> InputError:
    """The error for input that cannot be read at this place."""
    return InputError(message, source=named(place.path), line=place.line, column=place.column, mend=mend)
