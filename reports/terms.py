"""What checks, chunkings and budgets are called in every report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .wording import counted

FAILED: Mapping[str, str] = {
    "stream_equals_full": "streaming differs",
    "chunk_invariant": "chunking matters",
    "no_marker_leak": "marker leaked",
    "text_conserved": "text lost",
    "answered": "no answer",
}
"""A check of `replay` that failed, in words."""
COUNTING: Mapping[str, str] = {
    "vllm-v1": "tokens behind <start> in the prompt are charged (vLLM, V1 runner)",
    "vllm-v2": "tokens behind <start> in the prompt are charged (vLLM, V2 runner)",
    "slimserve": "only generated tokens are charged (SlimServe)",
}
"""Which thinking tokens an engine counts, by the name of its rule."""
ANSWER_RESERVE = 256
"""Fewer tokens left for an answer than this are marked, where the facts name no reserve of their own."""


def mode_name(chunking: str | None) -> str:
    """A mode in a few words: what one delta holds; None is in full."""
    words = {None: "in full", "full": "in full", "recorded": "as recorded", "token": "token by token"}
    words |= {"whole": "at once", "char": "by characters"}
    if str(chunking).isdigit():
        return f"{counted(int(str(chunking)), 'token')} a delta"
    return words.get(chunking) or str(chunking)


def request_name(row: Mapping[str, Any]) -> str:
    """What a request says that a row of `validate-config` is about."""
    effort = f"effort {row['effort']}" if row["effort"] is not None else "no effort"
    if row["request_budget"] is None:
        return effort
    return f"thinking_token_budget {row['request_budget']}" + (f", {effort}" if row["effort"] is not None else "")


def source_name(row: Mapping[str, Any]) -> str:
    """Where its cutoff comes from."""
    return {"request": "the request", "scalar": "the one budget", "none": "no cutoff"}.get(
        row["source"], str(row["source"])
    )
