"""A request's messages as the server hands them to the chat template, and requests read from files."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..errors import InputError

_BODY_FLAGS = ("-d", "--data", "--data-raw", "--data-binary", "--data-ascii", "--json")


def for_template(messages: list[Any]) -> list[dict[str, Any]]:
    """Messages in the form the template gets: text as one string, arguments as objects, reasoning under both names.

    Source: vLLM 0.33.0, renderers/chat_utils/chat_message.py and entrypoints/openai/chat_completion/protocol.py.
    """
    return [_message(message) for message in messages if isinstance(message, dict)]


def read_request(path: str) -> dict[str, Any]:
    """The chat-completion body of `--request`: JSON, a `curl` command, or a trace that holds one.

    Raises:
        InputError: the file cannot be read, or holds no body, or several.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", source=path) from None
    except UnicodeDecodeError:
        raise InputError("this is not UTF-8", source=path) from None
    bodies = [_body(value) for value in _values(_curl_body(text, path) or text, path)]
    found = [body for body in bodies if body is not None]
    if len(found) != 1:
        what = "no request body" if not found else f"{len(found)} request bodies where one is meant"
        raise InputError(
            f"{what} in it", source=path, mend='give {"messages": [...], ...}, as sent to /v1/chat/completions'
        )
    return found[0]


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


def _values(text: str, path: str) -> list[Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        try:
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError:
            line = getattr(error, "lineno", None)
            raise InputError(f"this is not JSON ({error})", source=path, line=line) from None
    return value if isinstance(value, list) else [value]


def _body(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("messages"), list):
        return value
    inner = value.get("request")
    return inner if isinstance(inner, dict) and inner else None


def _curl_body(text: str, path: str) -> str | None:
    if not text.lstrip().startswith("curl"):
        return None
    try:
        words = shlex.split(text.replace("\\\n", " "))
    except ValueError as error:
        raise InputError(f"this curl command cannot be read ({error})", source=path) from None
    for flag, value in pairwise(words):
        if flag in _BODY_FLAGS:
            return value
    glued = [word for word in words if word.startswith(tuple(f"{flag}=" for flag in _BODY_FLAGS[1:]))]
    if glued:
        return glued[0].split("=", 1)[1]
    raise InputError("this curl command sends no body", source=path, mend="give the body itself")
