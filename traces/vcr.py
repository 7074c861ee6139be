"""VCR cassettes (vcrpy, Ruby's VCR, and those with parsed bodies), YAML or JSON, one interaction at a time."""

from __future__ import annotations

import base64
import binascii
import gzip
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from .decode import BadValueError, NotJsonError, loads
from .source import Source
from .trace import BrokenLine
from .values import Value, member_values

_LISTS = frozenset(("interactions", "http_interactions"))
_YAML_HEAD = re.compile(r"^(?:http_)?interactions:\s*(?:$|#|[\[{]|(?:null|~)\s*$)", re.MULTILINE)
_TAGS = frozenset(("null", "bool", "int", "float", "binary", "str", "seq", "map"))
_JSON_HEAD = re.compile(r'\s*\{\s*"(?:version|interactions|http_interactions|recorded_with)"\s*:')


@dataclass(frozen=True, slots=True)
class Interaction:
    """One request and its answer. `request` is the JSON body sent, `body` the answer: parsed JSON, or text."""

    line: int
    uri: str
    request: Mapping[str, Any]
    body: Any


def looks_like_cassette(head: str) -> bool:
    """Whether a text begins as a cassette."""
    if _JSON_HEAD.match(head):
        return '"interactions"' in head or '"http_interactions"' in head
    return not head.lstrip().startswith(("{", "[")) and _YAML_HEAD.search(head) is not None


def interactions(source: Source) -> Iterator[Interaction | BrokenLine]:
    """Every interaction of a cassette, holding no more than one of them in memory."""
    as_json = source.head.lstrip("\ufeff \t\n").startswith("{")
    for item in member_values(source, _LISTS) if as_json else _yaml_items(source):
        if isinstance(item, BrokenLine):
            yield item
            continue
        line, value = item
        if not isinstance(value, dict):
            yield BrokenLine(source.name, line, "this interaction is no mapping")
            continue
        try:
            yield interaction_of(line, value)
        except _BodyError as error:
            yield BrokenLine(source.name, line, str(error))


def interaction_of(line: int, value: Mapping[str, Any]) -> Interaction:
    """One entry of a cassette's list. Raises ValueError where a body in it cannot be decoded."""
    request, response = _mapping(value.get("request")), _mapping(value.get("response"))
    return Interaction(line, str(request.get("uri") or ""), _mapping(_body(request)), _body(response))


class _BodyError(ValueError):
    pass


def _body(message: Mapping[str, Any]) -> Any:
    """The body of a request or response: parsed where it is JSON, else text; None where there is none."""
    if message.get("parsed_body") is not None:
        return message["parsed_body"]
    body = message.get("body")
    if isinstance(body, dict):
        packed = body.get("base64_string")
        body = _unpacked(packed) if isinstance(packed, str) else body.get("string", body)
    if isinstance(body, bytes):
        body = _decoded(body, message)
    if isinstance(body, str):
        try:
            return loads(body)
        except BadValueError as error:
            raise _BodyError(f"a body of this interaction cannot be taken ({error})") from None
        except NotJsonError:
            return body
    return body


def _unpacked(packed: str) -> bytes:
    try:
        return base64.b64decode(packed)
    except ValueError as error:
        raise _BodyError(f"the body of this interaction cannot be unpacked ({error})") from None


def _decoded(body: bytes, message: Mapping[str, Any]) -> str:
    headers = {str(key).lower(): one for key, one in _mapping(message.get("headers")).items()}
    encoding = headers.get("content-encoding")
    encoding = str(encoding[0] if isinstance(encoding, list) and encoding else encoding or "").lower()
    try:
        if body.startswith(b"\x1f\x8b"):
            body = gzip.decompress(body)
        elif encoding == "deflate":
            body = zlib.decompress(body)
        elif encoding == "zstd":
            import zstandard

            body = zstandard.ZstdDecompressor().stream_reader(body).read()
        return body.decode()
    except UnicodeDecodeError:
        unread = f" ({encoding}-compressed)" if encoding else ""
        raise _BodyError(f"the body of this interaction is no text{unread}") from None
    except (OSError, EOFError, zlib.error, binascii.Error) as error:
        raise _BodyError(f"the body of this interaction cannot be unpacked ({error})") from None


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

    if not loader.check_event(yaml.MappingStartEvent):
        _node(loader, {})
        return
    loader.get_event()
    while not loader.check_event(yaml.MappingEndEvent):
        key = getattr(_node(loader, {}), "value", None)
        if isinstance(key, str) and key in _LISTS and loader.check_event(yaml.SequenceStartEvent):
            loader.get_event()
            while not loader.check_event(yaml.SequenceEndEvent):
                line = loader.peek_event().start_mark.line + 1
                node = _node(loader, {})  # anchors reach as far as one interaction
                try:
                    yield line, loader.construct_document(node)
                except yaml.constructor.ConstructorError as error:
                    yield BrokenLine(name, line, f"this interaction cannot be taken ({error.problem})")
                except ValueError:  # of Python's own number types
                    yield BrokenLine(name, line, "this interaction cannot be taken (a number too long to be one)")
            loader.get_event()
        else:
            _node(loader, {})
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


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
