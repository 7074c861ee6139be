"""A request's messages as the server hands them to the chat template, and a request read from a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..errors import InputError


def for_template(messages: list[Any]) -> list[dict[str, Any]]:
    """Messages in the form the template gets: text as one string, arguments as objects, reasoning under both names.

    Source: vLLM 0.33.0, renderers/chat_utils/chat_message.py and entrypoints/openai/chat_completion/protocol.py.
    """
    return [_message(message) for message in messages if isinstance(message, dict)]


def read_request(path: str) -> dict[str, Any]:
    """The chat-completion body of `--request`: JSON, a `curl` command, or a trace that holds one; `-` reads stdin.

    Raises:
        InputError: the file cannot be read, or holds no body, or several.
    """
    from ..budgets.config import read_requests

    requests, _ = read_requests(path)
    if len(requests) != 1:
        raise InputError(f"{len(requests)} requests in it, where one is meant", source=path)
    return dict(requests[0].body.plain())


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: message[key] for key in ("role", "name", "tool_call_id") if message.get(key) is not None}
    role = message.get("role")
    content = message.get("content")
    if isinstance(content, list):
        texts = [part.get("text", "") if isinstance(part, dict) else part for part in content]
        content = "\n".join(text for text in texts if isinstance(text, str))
    kept["content"] = content if isinstance(content, str) else ""
    if role == "assistant":
        reasoning = message.get("reasoning")
        reasoning = message.get("reasoning_content") if reasoning is None else reasoning
        if reasoning is not None:
            kept["reasoning"] = kept["reasoning_content"] = reasoning
        calls = message.get("tool_calls")
        if isinstance(calls, list):
            kept["tool_calls"] = [_call(call) for call in calls if isinstance(call, dict)]
    return kept


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function")
    if not isinstance(function, dict):
        return dict(call)
    arguments = function.get("arguments") or {}
    if isinstance(arguments, str):
        try:
            parsed = json.loads(arguments)
        except ValueError:
            parsed = None
        arguments = parsed if isinstance(parsed, dict) else {}
    return {**call, "function": {**function, "arguments": arguments}}
