"""Cassettes of vcrpy, the VCR of Ruby, Go and PHP, and Betamax, YAML or JSON, one interaction at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

from .pairs import Interaction, placed
from .source import Source
from .trace import BrokenLine
from .values import TAKEN_OUT, Value, member_values

_LISTS = frozenset((("interactions",), ("http_interactions",)))
_YAML_HEAD = re.compile(r"^(?:http_)?interactions:\s*(?:$|#|[\[{]|(?:null|~)\s*$)", re.MULTILINE)
_YAML_LIST = re.compile(r"\s*(?:---\s*)?-\s+request:\s*$", re.MULTILINE)
_TAGS = frozenset(("null", "bool", "int", "float", "binary", "str", "seq", "map"))
_JSON_HEAD = re.compile(r'\s*\{\s*"(?:version|interactions|http_interactions|recorded_with)"\s*:')


def looks_like_cassette(head: str) -> bool:
    """Whether a text begins as a cassette."""
    if _JSON_HEAD.match(head):
        return '"interactions"' in head or '"http_interactions"' in head
    return not head.lstrip().startswith(("{", "[")) and (
        _YAML_HEAD.search(head) is not None or _YAML_LIST.match(head) is not None
    )


def interactions(source: Source) -> Iterator[Interaction | BrokenLine]:
    """Every interaction of a cassette, holding no more than one of them in memory."""
    as_json = source.head.lstrip("\ufeff \t\n").startswith("{")
    yield from placed(
        member_values(source, _LISTS) if as_json else _yaml_items(source), source.name, _list_name(source)
    )


def _list_name(source: Source) -> str:
    return "http_interactions" if "http_interactions" in source.head else "interactions"


def _yaml_items(source: Source) -> Iterator[Value | BrokenLine]:
    import yaml

    # The C loader where the package was built with it: ten times as fast on a cassette.
    loader_class: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader = loader_class(source.text)
    try:
        loader.get_event()  # start of the stream
        while loader.check_event(yaml.DocumentStartEvent):
            loader.get_event()
            yield from _document_items(loader, source.name)
            loader.get_event()  # end of the document
    except RecursionError:
        yield BrokenLine(source.name, 1, "this YAML is nested too deeply")
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        yield BrokenLine(source.name, line, f"this is not YAML ({getattr(error, 'problem', None) or error})")
    finally:
        loader.dispose()


def _document_items(loader: Any, name: str) -> Iterator[Value | BrokenLine]:
    import yaml

    if loader.check_event(yaml.SequenceStartEvent):  # PHP's recorder keeps no more than the list
        yield from _list_items(loader, name)
        return
    if not loader.check_event(yaml.MappingStartEvent):
        _node(loader, {})
        return
    loader.get_event()
    while not loader.check_event(yaml.MappingEndEvent):
        key = getattr(_node(loader, {}), "value", None)
        if (key,) in _LISTS and loader.check_event(yaml.SequenceStartEvent):
            yield from _list_items(loader, name)
        else:
            _node(loader, {})
    loader.get_event()


def _list_items(loader: Any, name: str) -> Iterator[Value | BrokenLine]:
    import yaml

    loader.get_event()
    while not loader.check_event(yaml.SequenceEndEvent):
        line = loader.peek_event().start_mark.line + 1
        node = _node(loader, {})  # anchors reach as far as one interaction
        try:
            yield line, loader.construct_document(node)
        except yaml.constructor.ConstructorError as error:
            yield BrokenLine(name, line, f"this interaction cannot be taken ({error.problem})", TAKEN_OUT)
        except ValueError:  # of Python's own number types
            yield BrokenLine(name, line, "this interaction cannot be taken (a number too long to be one)", TAKEN_OUT)
    loader.get_event()


def _node(loader: Any, anchors: dict[str, Any]) -> Any:
    import yaml

    event = loader.get_event()
    if isinstance(event, yaml.AliasEvent):
        if event.anchor not in anchors:
            problem = f"undefined alias {event.anchor!r}"
            raise yaml.composer.ComposerError(None, None, problem, cast(Any, event.start_mark))
        return anchors[event.anchor]
    marks = (event.start_mark, event.end_mark)
    tag = event.tag
    node: Any
    if isinstance(event, yaml.ScalarEvent):
        if tag is None or tag == "!":
            tag = loader.resolve(yaml.ScalarNode, event.value, event.implicit)
        node = yaml.ScalarNode(_plain(tag, "str"), event.value, *marks, style=event.style)
    elif isinstance(event, yaml.SequenceStartEvent):
        node = yaml.SequenceNode(_plain(tag, "seq"), [], *marks)
        if event.anchor is not None:
            anchors[event.anchor] = node
        while not loader.check_event(yaml.SequenceEndEvent):
            node.value.append(_node(loader, anchors))
        loader.get_event()
    else:
        node = yaml.MappingNode(_plain(tag, "map"), [], *marks)
        if event.anchor is not None:
            anchors[event.anchor] = node
        while not loader.check_event(yaml.MappingEndEvent):
            key = _node(loader, anchors)
            node.value.append((key, _node(loader, anchors)))
        loader.get_event()
    if event.anchor is not None:
        anchors[event.anchor] = node
    return node


def _plain(tag: str | None, fallback: str) -> str:
    """A tag of JSON's types, or binary. Dates and other programs' tags (`!ruby/...`) are read as they are written."""
    name = (tag or "").removeprefix("tag:yaml.org,2002:")
    return f"tag:yaml.org,2002:{name if name in _TAGS else fallback}"
