"""Cohere's chat API, version 2: `content-delta` and its like, and whole answers.

Source: https://docs.cohere.com/v2/docs/streaming
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .base import Dialect, Memory, Part, Said, mapping, objects, set_keys, text_of, tokens

_EVENTS = frozenset(
    f"{what}-{when}" for what in ("message", "content", "tool-call", "citation") for when in ("start", "delta", "end")
) | {"tool-plan-delta"}
_REASONS = {"complete": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_call": "tool_calls"}


def _part(value: Mapping[str, Any]) -> Part | None:
    if text_of(value.get("type")) in _EVENTS:
        return "event"
    message = value.get("message")
    whole = isinstance(message, dict) and isinstance(value.get("finish_reason"), str) and "done" not in value
    return "whole" if whole and isinstance(mapping(message).get("content", []), list) else None


def _said(value: Mapping[str, Any], memory: Memory) -> Said:
    if "message" in value:
        said = _message(mapping(value["message"]), id=value.get("id"))
        _add_end(said, value)
        return said
    kind = str(value.get("type"))
    message = mapping(mapping(value.get("delta")).get("message"))
    if kind == "message-start":
        return Said(id=text_of(value.get("id")))
    said = Said()
    memory["at"] = value.get("index")
    content, calls = mapping(message.get("content")), mapping(message.get("tool_calls"))
    said.reason(content.get("thinking"), "message.content[].thinking")
    said.answer(content.get("text"))
    said.reason(message.get("tool_plan"), "message.tool_plan")
    if calls:
        function = mapping(calls.get("function"))
        index = value.get("index")
        place = index if isinstance(index, int) else 0
        said.call(place, id=calls.get("id"), name=function.get("name"), arguments=function.get("arguments"))
    if kind == "message-end":
        _add_end(said, mapping(value.get("delta")))
        said.ends = True
    return said


def _message(message: Mapping[str, Any], *, id: Any) -> Said:
    said = Said(id=text_of(id))
    said.reason(message.get("tool_plan"), "message.tool_plan")
    for part in objects(message.get("content")):
        said.reason(part.get("thinking"), "message.content[].thinking")
        said.answer(part.get("text"))
    for index, call in enumerate(objects(message.get("tool_calls"))):
        function = mapping(call.get("function"))
        said.call(index, id=call.get("id"), name=function.get("name"), arguments=function.get("arguments"))
    return said


def _add_end(said: Said, value: Mapping[str, Any]) -> None:
    reason = value.get("finish_reason")
    if isinstance(reason, str):
        said.finish_reason = _REASONS.get(reason.lower(), reason.lower())
    usage = mapping(value.get("usage"))
    counts = mapping(usage.get("tokens"))
    said.usage = tokens(usage, counts.get("input_tokens"), counts.get("output_tokens"))
    if isinstance(value.get("error"), str):
        said.error = value["error"]


def _begins(value: Mapping[str, Any]) -> bool:
    return value.get("type") == "message-start"


def _belongs(value: Mapping[str, Any], memory: Memory) -> int:
    return int("index" in value and value["index"] == memory.get("at"))


def _request(body: Mapping[str, Any]) -> dict[str, Any]:
    thinking = mapping(body.get("thinking"))
    return {**body, **set_keys(stop=body.get("stop_sequences"), thinking_token_budget=thinking.get("token_budget"))}


DIALECT = Dialect("cohere", "an answer of Cohere's chat API", _part, _said, _begins, _belongs, _request)
