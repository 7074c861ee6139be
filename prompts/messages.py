"""Turns a request's messages into what vLLM hands to a chat template."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any


def as_handed_over(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages as a template sees them; the given ones stay as they are.

    Reasoning goes in under both `reasoning` and `reasoning_content`; the arguments of a tool call become an object, {}
    where they are none; an empty list of calls is dropped; a missing content has no parts; parts stay parts until the
    rendering knows which form the template wants. Of other keys only name, task, tools and tool_call_id get through.

    Source: vLLM 0.33.0, renderers/chat_utils/chat_message.py `parse_chat_message_content`, `_postprocess_messages`, and
    the request validators in entrypoints/openai/chat_completion/protocol.py.
    """
    return [_one(message) for message in messages]


def as_sent(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages that were handed over as the client sent them, which prompts built by code are made of.

    Reasoning under its one name, arguments as text, no content instead of an empty list.
    Source: vLLM 0.33.0, entrypoints/openai/chat_completion/protocol.py, the validators of messages.
    """
    return [_sent(message) for message in messages]


def as_client(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message that was handed over as a client sends it; reasoning under the one name, or the other, that it has."""
    sent = _sent(message)
    if "reasoning" not in sent and message.get("reasoning_content") is not None:
        sent["reasoning_content"] = message["reasoning_content"]
    return sent


def _sent(message: Mapping[str, Any]) -> dict[str, Any]:
    sent = {key: value for key, value in message.items() if key != "reasoning_content" and value is not None}
    if not message.get("content") and not isinstance(message.get("content"), str):
        sent.pop("content", None)
    if message.get("tool_calls"):
        sent["tool_calls"] = [_sent_call(call) for call in message["tool_calls"]]
    return sent


def _sent_call(call: Any) -> Any:
    if not isinstance(call, Mapping) or not isinstance(call.get("function"), Mapping):
        return call
    function = dict(call["function"])
    if isinstance(function.get("arguments"), Mapping):
        function["arguments"] = json.dumps(function["arguments"], ensure_ascii=False)
    return {**call, "function": function}


def _one(message: Mapping[str, Any]) -> dict[str, Any]:
    role = message.get("role")
    content = message.get("content")
    handed: dict[str, Any] = {"role": role, "content": [] if content is None else content}
    if role == "assistant":
        reasoning = message.get("reasoning")
        reasoning = message.get("reasoning_content") if reasoning is None else reasoning
        if reasoning is not None:
            handed |= {"reasoning": reasoning, "reasoning_content": reasoning}
        if message.get("tool_calls"):
            handed["tool_calls"] = [_call(call) for call in message["tool_calls"]]
    elif role == "tool" and "tool_call_id" in message:
        handed["tool_call_id"] = message["tool_call_id"]
    for key in ("name", "task"):
        if isinstance(message.get(key), str):
            handed[key] = message[key]
    if role == "developer":
        handed["tools"] = message.get("tools")
    return handed


def _call(call: Any) -> Any:
    if not isinstance(call, Mapping) or not isinstance(call.get("function"), Mapping):
        return call
    function = call["function"]
    return {**call, "function": {**function, "arguments": _arguments(function.get("arguments"))}}


def _arguments(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value) if value else {}
        except (ValueError, RecursionError):
            value = {}
    return value if isinstance(value, dict) else {}
