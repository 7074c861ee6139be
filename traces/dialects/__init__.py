"""The answers of other APIs than the OpenAI chat API, told in the terms of a chat completion: one file per API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import anthropic, bedrock, cohere, gemini, ollama, responses
from .base import Dialect

DIALECTS: Mapping[str, Dialect] = {
    one.name: one
    for one in (
        responses.DIALECT,
        anthropic.DIALECT,
        ollama.DIALECT,
        cohere.DIALECT,
        gemini.DIALECT,
        bedrock.DIALECT,
    )
}
"""By the name `--from` takes."""


def dialect_of(value: Mapping[str, Any]) -> Dialect | None:
    """The dialect that a JSON object is an event or an answer of; None where it is of none."""
    return next((dialect for dialect in DIALECTS.values() if dialect.part(value) is not None), None)
