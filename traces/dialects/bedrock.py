"""Amazon Bedrock's Converse API: its stream's events, each an object with one key, and whole answers.

Source: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .base import Dialect, Memory, Part, Said, function_tool, mapping, objects, set_keys, tokens

_EVENTS = ("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata")
_REASONS = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_calls"}


def _part(value: Mapping[str, Any]) -> Part | None:
    if isinstance(mapping(value.get("output")).get("message"), dict) and "stopReason" in value:
        return "whole"
    for name in _EVENTS:
        if isinstance(value.get(name), dict) and (name != "metadata" or "usage" in value[name]):
            return "event"
    return None


def _said(value: Mapping[str, Any], memory: Memory) -> Said:
    said = Said()
    if "output" in value:
        for number, block in enumerate(objects(mapping(mapping(value["output"]).get("message")).get("content"))):
            _add(said, block, number)
        _add_end(said, value)
        return said
    block = mapping(value.get("contentBlockDelta") or value.get("contentBlockStart"))
    if block:
        index = memory["at"] = block.get("contentBlockIndex")
        _add(said, mapping(block.get("delta") or block.get("start")), index if isinstance(index, int) else 0)
    _add_end(said, {**mapping(value.get("messageStop")), **mapping(value.get("metadata"))})
    said.ends = "metadata" in value
    return said


def _add(said: Said, block: Mapping[str, Any], index: int) -> None:
    reasoning = mapping(block.get("reasoningContent"))
    text = reasoning.get("text", mapping(reasoning.get("reasoningText")).get("text"))
    said.reason(text, "reasoningContent")
    said.answer(block.get("text"))
    call = mapping(block.get("toolUse"))
    if call:
        said.call(index, id=call.get("toolUseId"), name=call.get("name"), arguments=call.get("input"))


def _add_end(said: Said, value: Mapping[str, Any]) -> None:
    reason = value.get("stopReason")
    if isinstance(reason, str):
        said.finish_reason = _REASONS.get(reason, reason)
    usage = mapping(value.get("usage"))
    said.usage = tokens(usage, usage.get("inputTokens"), usage.get("outputTokens"))


def _begins(value: Mapping[str, Any]) -> bool:
    return "messageStart" in value


def _belongs(value: Mapping[str, Any], memory: Memory) -> int:
    block = mapping(value.get("contentBlockDelta") or value.get("contentBlockStop"))
    return int(bool(block) and block.get("contentBlockIndex") == memory.get("at"))


def _request(body: Mapping[str, Any]) -> dict[str, Any]:
    config = mapping(body.get("inferenceConfig"))
    system = _text(body.get("system"))
    messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    messages += [
        {"role": one.get("role"), "content": _text(one.get("content"))} for one in objects(body.get("messages"))
    ]
    specs = [mapping(one.get("toolSpec")) for one in objects(mapping(body.get("toolConfig")).get("tools"))]
    tools = [
        function_tool(spec.get("name"), spec.get("description"), mapping(spec.get("inputSchema")).get("json"))
        for spec in specs
        if spec
    ]
    kept = {key: one for key, one in body.items() if key not in ("system", "messages")}
    limits = set_keys(max_tokens=config.get("maxTokens"), stop=config.get("stopSequences"))
    return {**kept, **set_keys(messages=messages or None, tools=tools or None), **limits}


def _text(content: Any) -> str:
    return "".join(str(part.get("text") or "") for part in objects(content))


DIALECT = Dialect("bedrock", "an answer of Bedrock's Converse API", _part, _said, _begins, _belongs, _request)
