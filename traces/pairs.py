"""Requests with their responses, as cassettes, HAR files, batch outputs, mock servers and logs keep them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

from .bodies import BodyError, body_of, hex_pieces, parsed
from .kinds import kind_of
from .source import Source
from .trace import BrokenLine
from .values import Path, Value, member_values

HAR_ENTRIES: Path = ("log", "entries")
MAPPINGS: Path = ("mappings",)
_MODEL = re.compile(r"/models?/([^/:?]+)(?::|/(?:converse|invoke)|$)")
"""Of Gemini and Bedrock; other APIs name the model in the body."""
_ORIGIN = re.compile(r"^(?:[a-zA-Z][a-zA-Z0-9+.-]*:)?//[^/?#]*")
_PATH = 80
"""Characters of a path that are shown."""


@dataclass(frozen=True, slots=True)
class Interaction:
    """One request and its answer.

    Args:
        line: 1-based, on which it starts.
        uri: where the request was sent.
        request: the JSON body sent; empty where it is not known.
        body: the answer: parsed JSON, a list of events, text, or None.
        id: the request's own id, as batches have them.
        model: the model's name in the address.
        entry: where it stands in a recording of several: `log.entries[2] POST /v1/chat/completions`.
    """

    line: int
    uri: str
    request: Mapping[str, Any]
    body: Any
    id: str | None = None
    model: str | None = None
    entry: str | None = None


def listed_pairs(source: Source, path: Path) -> Iterator[Interaction | BrokenLine]:
    """Every entry of the list at a path of one JSON object, holding no more than one of them in memory."""
    yield from placed(member_values(source, frozenset((path,))), source.name, ".".join(path))


def placed(values: Iterable[Value | BrokenLine], name: str, where: str) -> Iterator[Interaction | BrokenLine]:
    """Entries of a recording, each with its place in the list at `where` and the request's method and path.

    Several may stand on one line, so that a line alone finds none of them. What stands behind the `?` of an address,
    or in front of its host, may be a key, and is never shown.
    """
    for number, item in enumerate(values):
        place = f"{where}[{number}]"
        if isinstance(item, BrokenLine):
            yield replace(item, reason=f"{place}: {item.reason}")
            continue
        line, value = item
        yield pair_of(line, value, name, entry=" ".join((place, *_asked(value))))


def _asked(value: Any) -> Iterator[str]:
    """Method and path of an entry's request, as far as they are there."""
    request = value.get("request") if isinstance(value, dict) else None
    asked = request if isinstance(request, dict) else value if isinstance(value, dict) else {}
    method = asked.get("method")
    if isinstance(method, str) and method.isalpha():
        yield method.upper()
    uri = next((asked[key] for key in ("uri", "url", "urlPath", "path") if isinstance(asked.get(key), str)), "")
    path = _ORIGIN.sub("", uri).partition("?")[0].partition("#")[0]
    if path:
        yield path if len(path) <= _PATH else f"{path[: _PATH - 1]}…"


def pair_of(line: int, value: Any, name: str, *, entry: str | None = None) -> Interaction | BrokenLine:
    """One entry of a recording, or why it cannot be read; `entry` says which one it is."""
    at = f"{entry}: " if entry is not None else ""
    if not isinstance(value, dict):
        mend = "take it out, or write it as an object with request and response"
        return BrokenLine(name, line, f"{at}this interaction is no mapping", mend)
    try:
        found = interaction_of(line, value)
    except BodyError as error:
        return BrokenLine(name, line, f"{at}{error}", error.mend)
    return found if entry is None else replace(found, entry=entry)


def interaction_of(line: int, value: Mapping[str, Any]) -> Interaction:
    """One entry. Raises BodyError where a body in it cannot be decoded."""
    if "scope" in value and "request" not in value:
        return _nock(line, value)
    request, response = value.get("request"), value.get("response")
    if response is None and isinstance(value.get("responses"), list) and value["responses"]:
        response = value["responses"][-1]  # undici's snapshots keep one for each time it was asked
    asked = _mapping(request)
    uri = str(asked.get("uri") or asked.get("url") or asked.get("urlPath") or "")
    identity = value.get("custom_id")
    found = _MODEL.search(uri)
    return Interaction(
        line,
        uri,
        _mapping(asked if _is_body(asked) else body_of(asked)),
        response if kind_of(response) is not None else _answer(response),
        identity if isinstance(identity, str) else None,
        unquote(found.group(1)) if found else None,
    )


def _answer(response: Any) -> Any:
    if isinstance(response, str):
        return parsed(response)
    return body_of(response) if isinstance(response, dict) else response


def _is_body(request: Mapping[str, Any]) -> bool:
    """A log keeps the body itself as the request."""
    return any(isinstance(request.get(key), (list, str)) for key in ("messages", "input", "prompt", "contents"))


def _nock(line: int, value: Mapping[str, Any]) -> Interaction:
    answer = value.get("response")
    packed = hex_pieces(answer) if isinstance(answer, list) else None
    uri = f"{value['scope']}{value.get('path', '')}"
    found = _MODEL.search(uri)
    headers = {key: value[key] for key in ("rawHeaders", "headers") if key in value}
    body = body_of({"body": packed if packed is not None else answer, **headers})
    request = value.get("body")
    asked = parsed(request) if isinstance(request, str) else request
    return Interaction(line, uri, _mapping(asked), body, None, unquote(found.group(1)) if found else None)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
