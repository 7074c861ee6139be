"""The Anthropic Messages API: its event stream and whole messages, of Anthropic, vLLM and llama.cpp.

Source: vLLM 0.33.0 vllm/entrypoints/anthropic/protocol.py; https://docs.anthropic.com/en/api/messages-streaming
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .base import Dialect, Memory, Part, Said, function_tool, mapping, objects, set_keys, text_of, tokens

_EVENT = re.compile(r"message_(?:start|delta|stop)|content_block_(?:start|delta|stop)|ping")
_PARTS = frozenset(("text", "thinking", "redacted_thinking", "tool_use", "server_tool_use"))
_REASONS = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_calls"}


def _part(value: Mapping[str, Any]) -> Part | None:
    kind = value.get("type")
    if not isinstance(kind, str):
        return None
    if _EVENT.fullmatch(kind):
        return "event"
    content = value.get("content")
    if kind != "message" or not isinstance(content, list) or value.get("role") not in ("assistant", None):
        return None
    kinds = {text_of(part.get("type")) for part in objects(content)}
    return "whole" if not kinds or kinds & _PARTS else None


def _said(value: Mapping[str, Any], memory: Memory) -> Said:
    kind = value.get("type")
    if kind == "message":
        return _message(value)
    if kind == "message_start":
        said = _message(mapping(value.get("message")))
        memory["usage"] = said.usage
        return said
    said = Said()
    if kind == "content_block_start":
        memory["block"] = _index(value)
        _add_block(said, mapping(value.get("content_block")), _index(value), streamed=True)
    elif kind == "content_block_delta":
        memory["block"] = _index(value)
        delta = mapping(value.get("delta"))
        said.reason(delta.get("thinking"), "thinking")
        said.answer(delta.get("text"))
        if isinstance(delta.get("partial_json"), str):
            said.call(_index(value), arguments=delta["partial_json"])
    elif kind == "message_delta":
        _add_end(said, mapping(value.get("delta")))
        usage = {**memory.get("usage", {}), **mapping(value.get("usage"))}
        said.usage = tokens(usage, usage.get("input_tokens"), usage.get("output_tokens"))
    said.ends = kind == "message_stop"
    return said


def _message(value: Mapping[str, Any]) -> Said:
    said = Said(id=text_of(value.get("id")), model=text_of(value.get("model")))
    for index, block in enumerate(objects(value.get("content"))):
        _add_block(said, block, index, streamed=False)
    _add_end(said, value)
    usage = mapping(value.get("usage"))
    said.usage = tokens(usage, usage.get("input_tokens"), usage.get("output_tokens"))
    return said


def _add_block(said: Said, block: Mapping[str, Any], index: int, *, streamed: bool) -> None:
    said.reason(block.get("thinking"), "thinking")
    said.answer(block.get("text"))
    if block.get("type") == "tool_use":
        arguments = block.get("input") if not streamed or block.get("input") else None
        said.call(index, id=block.get("id"), name=block.get("name"), arguments=arguments)


def _add_end(said: Said, value: Mapping[str, Any]) -> None:
    reason = value.get("stop_reason")
    if isinstance(reason, str):
        said.finish_reason = _REASONS.get(reason, reason)
    said.stop_reason = text_of(value.get("stop_sequence"))


def _index(value: Mapping[str, Any]) -> int:
    index = value.get("index")
    return index if isinstance(index, int) else 0


def _begins(value: Mapping[str, Any]) -> bool:
    return value.get("type") == "message_start"


def _belongs(value: Mapping[str, Any], memory: Memory) -> int:
    """Events name no message: one that goes on with the block a stream is in, or with its next one, fits there."""
    block = memory.get("block")
    if value.get("type") == "content_block_start":
        return int(value.get("index") == (0 if block is None else block + 1))
    return int("index" in value and value["index"] == block)


def _request(body: Mapping[str, Any]) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    system = _text(body.get("system"))
    if system:
        messages.append({"role": "system", "content": system})
    for message in objects(body.get("messages")):
        messages += _messages(message)
    stop = body.get("stop_sequences")
    tools = [
        function_tool(tool.get("name"), tool.get("description"), tool.get("input_schema"))
        for tool in objects(body.get("tools"))
        if isinstance(tool.get("name"), str)
    ]
    kept = {key: one for key, one in body.items() if key not in ("system", "messages", "tools", "tool_choice")}
    return {**kept, **set_keys(messages=messages or None, tools=tools or None, stop=stop)}


def _messages(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    if not isinstance(content, list):
        return [{"role": message.get("role"), "content": content}]
    found: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for block in objects(content):
        if block.get("type") == "tool_result":
            result = _text(block.get("content"))
            found.append({"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": result})
        elif block.get("type") == "tool_use":
            said = Said()
            said.call(len(calls), id=block.get("id"), name=block.get("name"), arguments=block.get("input"))
            calls.append({"type": "function", **{key: one for key, one in said.calls[0].items() if key != "index"}})
    thought = "".join(str(block.get("thinking") or "") for block in objects(content))
    text = _text(content)
    if text or thought or calls:
        kept = set_keys(reasoning=thought or None, tool_calls=calls or None)
        found.append({"role": message.get("role"), "content": text, **kept})
    return found


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in objects(content) if isinstance(part.get("text"), str))


DIALECT = Dialect("anthropic", "an answer of the Anthropic Messages API", _part, _said, _begins, _belongs, _request)
