"""What a JSON value is: one of the forms that are read, or none of them."""

from __future__ import annotations

from typing import Any

from .canitoolcall import is_fixture
from .dialects import dialect_of


def kind_of(value: Any) -> str | None:
    """The form of a value: `trace`, `chunk`, `response`, `cassette`, `har`, `pair`, `fixture`, `error` or the name of a
    dialect; None for any other.
    """
    if not isinstance(value, dict):
        return None
    choices = value.get("choices")
    if isinstance(choices, list):
        kind = _kind_of_choices(value, choices)
        if kind is not None:
            return kind
    if str(value.get("schema", "")).startswith("reasonctl.trace/") or _has_output(value):
        return "trace"
    dialect = dialect_of(value)
    if dialect is not None:
        return dialect.name
    if is_fixture(value):
        return "fixture"
    if isinstance(value.get("interactions"), list) or isinstance(value.get("http_interactions"), list):
        return "cassette"
    if _is_pair(value):
        return "pair"
    log = value.get("log")
    if isinstance(log, dict) and isinstance(log.get("entries"), list):
        return "har"
    if isinstance(value.get("error"), (dict, str)) or value.get("object") == "error":
        return "error"
    return None


def _is_pair(value: dict[str, Any]) -> bool:
    """A request with its response."""
    if not isinstance(value.get("response", value.get("responses")), (dict, list, str)):
        return False
    return isinstance(value.get("request"), dict) or "custom_id" in value or ("scope" in value and "path" in value)


def _has_output(value: dict[str, Any]) -> bool:
    output = value.get("output")
    return isinstance(output, dict) and bool({"text", "token_ids", "deltas"} & output.keys())


def _kind_of_choices(value: dict[str, Any], choices: list[Any]) -> str | None:
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
