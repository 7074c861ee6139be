"""YAML with positions: ruamel.yaml's composer gives the nodes, which still hold duplicate keys and their places."""

from __future__ import annotations

import re
from typing import Any

from ..checks.finding import Location
from .document import MAX_DEPTH, MAX_NODES, Entry, Locate, Node, Scalar, integer, refuse, too_long

_TRUE = ("true", "yes", "on")


def read_yaml(text: str, locate: Locate) -> Node:
    """The one YAML document in `text`.

    Raises:
        InputError: it is no YAML, holds several documents, or expands to more than any configuration needs.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        root = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = locate(min(mark.index, len(text))) if mark is not None else locate(0)
        problem = error.problem or error.context or "it cannot be read"
        if "single document" in f"{error.context}":
            raise refuse("several YAML documents in one file", place, mend="give one budget a file") from None
        raise refuse(f"not YAML: {problem}", place, mend="correct it there") from None
    except YAMLError as error:
        raise refuse(f"not YAML: {error}", _reader_place(error, locate), mend="correct it there") from None
    except RecursionError:
        raise refuse(f"nested deeper than {MAX_DEPTH} levels", locate(0)) from None
    if root is None:
        raise refuse("there is no YAML value in it", locate(0), mend="write a budget")
    return _Builder(locate).node(root, 0)


def _reader_place(error: Exception, locate: Locate) -> Location:
    """The reader's own errors (control characters) know an offset in the text and nothing else."""
    position = getattr(error, "position", None)
    return locate(position if isinstance(position, int) else 0)


class _Builder:
    def __init__(self, locate: Locate) -> None:
        self.locate = locate
        self.count = 0

    def node(self, raw: Any, depth: int) -> Node:
        place = self.locate(raw.start_mark.index)
        self.count += 1
        if depth > MAX_DEPTH:
            raise refuse(f"nested deeper than {MAX_DEPTH} levels (does an alias contain itself?)", place)
        if self.count > MAX_NODES:
            raise refuse("its aliases expand to more than a configuration can hold", place)
        if raw.id == "mapping":
            return Node(place, entries=self.entries(raw, depth))
        if raw.id == "sequence":
            return Node(place, items=tuple(self.node(item, depth + 1) for item in raw.value))
        return Node(place, scalar=_scalar(str(raw.tag), raw.value, place))

    def entries(self, raw: Any, depth: int) -> tuple[Entry, ...]:
        own: list[Entry] = []
        merged: list[Entry] = []
        for key, value in raw.value:
            place = self.locate(key.start_mark.index)
            if key.id != "scalar":
                raise refuse("a mapping's key must be a plain word", place, mend="name the key")
            if str(key.tag).endswith(":merge") or (key.value == "<<" and key.style is None):
                merged += self.merged(value, depth)
            else:
                own.append(Entry(str(key.value), place, self.node(value, depth + 1)))
        names = {entry.key for entry in own}
        return (*(entry for entry in merged if entry.key not in names), *own)

    def merged(self, raw: Any, depth: int) -> list[Entry]:
        """What `<<: *base` brings in; of several bases the earlier one wins."""
        bases = [raw] if raw.id == "mapping" else [base for base in raw.value if getattr(base, "id", "") == "mapping"]
        found: dict[str, Entry] = {}
        for base in bases:
            for entry in self.node(base, depth + 1).entries or ():
                found.setdefault(entry.key, entry)
        return list(found.values())


def _scalar(tag: str, text: str, place: Location) -> Scalar:
    """A plain scalar by the tag that YAML's rules give it; an unknown tag or a date stays text."""
    kind = tag.rsplit(":", 1)[-1]
    try:
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() in _TRUE
        if kind == "int":
            return integer(_integer(text.replace("_", "")), place)
        if kind == "float":
            return float(re.sub(r"\.(inf|nan)", r"\1", text.replace("_", "").lower()))
    except ValueError:
        if len(text) > 1000:
            raise too_long(place) from None
    return text


def _integer(digits: str) -> int:
    try:
        return int(digits, 10)
    except ValueError:
        return int(digits, 0)
