"""YAML with positions, read as the servers' PyYAML reads it (YAML 1.1), with places and with keys that stand twice."""

from __future__ import annotations

import functools
import math
from typing import Any

from ..checks.finding import Location
from ..errors import InputError
from .document import (
    MAX_DEPTH,
    MAX_EXPANDED,
    Entry,
    Locate,
    Node,
    NotFinite,
    Scalar,
    aligned,
    integer,
    refuse,
    too_long,
)

_COLLECTIONS = {"mapping": ("map", "set"), "sequence": ("seq", "omap", "pairs")}
"""Tags of `tag:yaml.org,2002:` that PyYAML's safe reader builds from each."""


def read_yaml(text: str, locate: Locate, *, wanted: str = "write one") -> Node:
    """The one YAML document in `text`, its scalars as `yaml.safe_load` has them; dates and binary data stay text.

    `wanted` is the mend for a document without a value.

    Raises:
        InputError: PyYAML refuses it, it holds several documents, or it expands to more than any configuration needs.
    """
    from yaml import MarkedYAMLError, YAMLError

    try:
        loader = _loader()(text)
        loader.source = text
        root = loader.get_single_node()
        if root is None:
            raise refuse("there is no value in it", locate(0), mend=wanted)
        return _Builder(locate, loader).node(root)
    except MarkedYAMLError as error:
        raise _refused(error, locate, len(text)) from None
    except YAMLError as error:  # the reader's own (control characters) know an offset in the text and nothing else
        position = getattr(error, "position", None)
        place = locate(position if isinstance(position, int) else 0)
        raise refuse(f"not YAML: {getattr(error, 'reason', error)}", place, mend="correct it there") from None


def read_yaml_documents(text: str, locate: Locate) -> list[Node]:
    """Every YAML document in `text` that holds a value, read as `read_yaml` reads one. Raises InputError as it does."""
    from yaml import MarkedYAMLError, YAMLError

    found: list[Node] = []
    try:
        loader = _loader()(text)
        loader.source = text
        while loader.check_node():
            raw = loader.get_node()
            found.append(_Builder(locate, loader).node(raw))
    except MarkedYAMLError as error:
        raise _refused(error, locate, len(text)) from None
    except YAMLError as error:
        position = getattr(error, "position", None)
        place = locate(position if isinstance(position, int) else 0)
        raise refuse(f"not YAML: {getattr(error, 'reason', error)}", place, mend="correct it there") from None
    return [node for node in found if node.scalar is not None or not node.is_scalar]


def _refused(error: Any, locate: Locate, end: int) -> InputError:
    """PyYAML's own error at its place."""
    mark = error.problem_mark or error.context_mark
    place = locate(min(mark.index, end)) if mark is not None else locate(0)
    problem = error.problem or error.context or "it cannot be read"
    if "single document" in f"{error.context}":
        return refuse("several YAML documents in one file", place, mend="give one budget a file")
    return refuse(f"not YAML: {problem}", place, mend="correct it there")


@functools.cache
def _loader() -> type[Any]:
    """PyYAML's safe loader, which stops at MAX_DEPTH levels instead of reading on to the end."""
    from yaml import SafeLoader
    from yaml.composer import ComposerError

    class Loader(SafeLoader):
        depth = 0
        source = ""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.depth > MAX_DEPTH:
                event: Any = self.peek_event()  # type: ignore[no-untyped-call]
                raise ComposerError(None, None, f"nested deeper than {MAX_DEPTH} levels", event.start_mark)
            self.depth += 1
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

    return Loader


class _Builder:
    """Makes Nodes of PyYAML's. An alias shares its anchor's Node, so that aliases of aliases cost nothing here."""

    def __init__(self, locate: Locate, loader: Any) -> None:
        self.locate = locate
        self.loader = loader
        self.built: dict[Any, tuple[Node, int, int]] = {}
        """By raw node: the Node, how many nodes it is with all aliases written out, and how many levels."""
        self.under_way: set[Any] = set()

    def node(self, raw: Any) -> Node:
        return self.measured(raw)[0]

    def measured(self, raw: Any) -> tuple[Node, int, int]:
        if raw in self.built:
            return self.built[raw]
        place = self.locate(raw.start_mark.index)
        if raw in self.under_way:
            raise refuse("an alias contains itself", place, mend="write the value out")
        self.under_way.add(raw)
        if raw.id == "scalar":
            done = (self.leaf(raw, place), 1, 1)
        else:
            self.known_tag(raw, place)
            done = self.mapping(raw, place) if raw.id == "mapping" else self.sequence(raw, place)
        if done[1] > len(self.built) + MAX_EXPANDED:
            raise refuse("its aliases expand to more than a configuration can hold", place, mend="write less")
        if done[2] > MAX_DEPTH + 1:
            raise refuse(f"nested deeper than {MAX_DEPTH} levels", place, mend="write it flatter")
        self.under_way.discard(raw)
        self.built[raw] = done
        return done

    def leaf(self, raw: Any, place: Location) -> Node:
        value = self.scalar(raw, place)
        if not isinstance(value, str):
            return Node(place, scalar=value)
        start = raw.start_mark.index
        written = self.loader.source[start : raw.end_mark.index]
        if raw.style in ("|", ">"):  # behind the header's line
            head = written.find("\n") + 1
            written, start = written[head:], start + head
        return Node(place, scalar=value, within=aligned(value, written, start, self.locate))

    def sequence(self, raw: Any, place: Location) -> tuple[Node, int, int]:
        items = [self.measured(item) for item in raw.value]
        size = 1 + sum(count for _, count, _ in items)
        return Node(place, items=tuple(node for node, _, _ in items)), size, 1 + max((d for *_, d in items), default=0)

    def mapping(self, raw: Any, place: Location) -> tuple[Node, int, int]:
        own: list[Entry] = []
        merged: list[Entry] = []
        size, depth = 1, 0
        for key, value in raw.value:
            where = self.locate(key.start_mark.index)
            if key.id != "scalar":
                raise refuse("a mapping's key must be a plain word", where, mend="name the key")
            if str(key.tag).endswith(":merge"):
                merged += self.merged(value)
            else:
                self.scalar(key, where)
                own.append(Entry(str(key.value), where, self.node(value)))
            _, count, levels = self.measured(value)
            size, depth = size + count, max(depth, levels)
        names = {entry.key for entry in own}
        entries = (*(entry for entry in merged if entry.key not in names), *own)
        return Node(place, entries=entries), size, 1 + depth

    def merged(self, raw: Any) -> list[Entry]:
        """What `<<: *base` brings in; of several bases the earlier one wins."""
        bases = raw.value if raw.id == "sequence" else [raw]
        found: dict[str, Entry] = {}
        for base in bases:
            if base.id != "mapping":
                place = self.locate(base.start_mark.index)
                raise refuse("not YAML: `<<` takes a mapping", place, mend="name an anchor of a mapping")
            for entry in self.node(base).entries or ():
                found.setdefault(entry.key, entry)
        return list(found.values())

    def known_tag(self, raw: Any, place: Location) -> None:
        prefix, _, kind = str(raw.tag).rpartition(":")
        if prefix != "tag:yaml.org,2002" or kind not in _COLLECTIONS[raw.id]:
            raise refuse(f"not YAML that a server reads: the tag {raw.tag}", place, mend="take the tag away")

    def scalar(self, raw: Any, place: Location) -> Scalar:
        """What PyYAML makes of a scalar."""
        try:
            value = self.loader.construct_object(raw)
        except (ValueError, KeyError, AttributeError, IndexError, OverflowError, TypeError):
            if len(raw.value) > 1000:
                raise too_long(place) from None
            kind = str(raw.tag).rpartition(":")[2]
            raise refuse(f"not YAML: this is no {kind}", place, mend="put it in quotes, or correct it") from None
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, int):
            return integer(value, place)
        if isinstance(value, float):
            return value if math.isfinite(value) else NotFinite(raw.value, value)
        return str(raw.value)
