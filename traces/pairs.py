"""Requests with their responses, as cassettes, HAR files, batch outputs, mock servers and logs keep them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from .bodies import BodyError, body_of, hex_pieces, parsed
from .kinds import kind_of
from .source import Source
from .trace import BrokenLine
from .values import Path, member_values

HAR_ENTRIES: Path = ("log", "entries")
MAPPINGS: Path = ("mappings",)
_MODEL = re.compile(r"/models?/([^/:?]+)(?::|/(?:converse|invoke)|$)")
"""Of Gemini and Bedrock; other APIs name the model in the body."""


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
    """

    line: int
    uri: str
    request: Mapping[str, Any]
    body: Any
    id: str | None = None
    model: str | None = None


def listed_pairs(source: Source, path: Path) -> Iterator[Interaction | BrokenLine]:
    """Every entry of the list at a path of one JSON object, holding no more than one of them in memory."""
    for item in member_values(source, frozenset((path,))):
        yield item if isinstance(item, BrokenLine) else pair_of(*item, source.name)


def pair_of(line: int, value: Any, name: str) -> Interaction | BrokenLine:
    """One entry of a recording, or why it cannot be read."""
    if not isinstance(value, dict):
        return BrokenLine(name, line, "this interaction is no mapping")
    try:
        return interaction_of(line, value)
    except BodyError as error:
        return BrokenLine(name, line, str(error))


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
