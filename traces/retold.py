"""A request's messages told otherwise: without the markers in them, or without what earlier answers thought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..parsers import ParserRow


def holds(message: Mapping[str, Any], markers: Sequence[str]) -> bool:
    """A marker stands in a message's text."""
    return any(marker.strip() in str(message.get("content")) for marker in markers)


def unmarked(message: Mapping[str, Any], markers: Sequence[str]) -> dict[str, Any]:
    """The message with every marker in its text spelled so that it is none."""
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": _without(content, markers)}
    if isinstance(content, list):
        parts = [
            {**part, "text": _without(part["text"], markers)}
            if isinstance(part, dict) and isinstance(part.get("text"), str)
            else part
            for part in content
        ]
        return {**message, "content": parts}
    return dict(message)


def _without(text: str, markers: Sequence[str]) -> str:
    for marker in markers:
        text = text.replace(marker.strip(), disarmed(marker.strip()))
    return text


def disarmed(marker: str) -> str:
    """The marker's letters alone: `</think>` becomes `think`."""
    return "".join(character for character in marker if character.isalnum()) or "marker"


def thoughtless(message: Mapping[str, Any], row: ParserRow) -> dict[str, Any]:
    """An earlier answer without its reasoning, in a field or in its text."""
    if message.get("role") != "assistant":
        return dict(message)
    left = {key: value for key, value in message.items() if key not in ("reasoning", "reasoning_content")}
    content = left.get("content")
    end = next((marker for marker in row.end if isinstance(content, str) and marker in content), None)
    return {**left, "content": content.rpartition(end)[2].lstrip()} if isinstance(content, str) and end else left
