"""What a JSON value is: one of the forms that are read, one that is known but not read, or neither."""

from __future__ import annotations

import re
from typing import Any, Literal

Kind = Literal["trace", "chunk", "response", "cassette", "error"]

FOREIGN = {
    "responses": "output of the Responses API",
    "anthropic": "output of the Anthropic Messages API",
    "ollama": "Ollama's own NDJSON",
    "har": "a HAR file",
}
"""Forms that are recognised and refused, each by the name a message calls it."""

_ANTHROPIC = re.compile(r"message_(?:start|delta|stop)|content_block_(?:start|delta|stop)")


def kind_of(value: Any) -> Kind | None:
    """The form of a value that is read, None for any other."""
    if not isinstance(value, dict):
        return None
    if str(value.get("schema", "")).startswith("reasonctl.trace/") or _has_output(value):
        return "trace"
    if isinstance(value.get("interactions"), list) or isinstance(value.get("http_interactions"), list):
        return "cassette"
    choices = value.get("choices")
    if isinstance(choices, list) and foreign_kind(value) is None:
        return _kind_of_choices(value, choices)
    if isinstance(value.get("error"), (dict, str)) or value.get("object") == "error":
        return "error"
    return None


def foreign_kind(value: Any) -> str | None:
    """The key in FOREIGN of a value that is known but not read, None for any other."""
    if not isinstance(value, dict):
        return None
    kind = value.get("type")
    if isinstance(kind, str):
        if kind.startswith("response."):
            return "responses"
        if _ANTHROPIC.fullmatch(kind) or (kind == "message" and isinstance(value.get("content"), list)):
            return "anthropic"
    if value.get("object") == "response" and isinstance(value.get("output"), list):
        return "responses"
    if isinstance(value.get("done"), bool) and ("message" in value or "response" in value):
        return "ollama"
    log = value.get("log")
    if isinstance(log, dict) and isinstance(log.get("entries"), list):
        return "har"
    return None


def _has_output(value: dict[str, Any]) -> bool:
    output = value.get("output")
    return isinstance(output, dict) and bool({"text", "token_ids", "deltas"} & output.keys())


def _kind_of_choices(value: dict[str, Any], choices: list[Any]) -> Kind | None:
    streamed = str(value.get("object") or "").endswith(".chunk")
    for choice in choices:
        if not isinstance(choice, dict):
            return None
        if isinstance(choice.get("delta"), dict):
            return "chunk"
        if isinstance(choice.get("message"), dict):
            return "response"
        if isinstance(choice.get("text"), str):
            # The completions endpoint streams and answers in one shape; only usage tells a whole answer from a chunk.
            return "response" if isinstance(value.get("usage"), dict) and choice.get("finish_reason") else "chunk"
    return "chunk" if streamed or not choices else None
