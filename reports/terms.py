"""What checks, chunkings, budgets, models and probes are called in every report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .wording import counted, variant_name, visible

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


def shared_by_requests(names: Sequence[str]) -> str:
    """Why it cannot be told whether requests of `check-parser` touch: these values changed while they ran."""
    return f"every request shares {', '.join(map(visible, names))} (PLG603)"


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


def model_rows(model: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What an audit says of a model, of its template, and of a tokenizer that is not the model's."""
    if model:
        names = [model.get("kind"), model.get("model_type"), *(model.get("architectures") or [])]
        yield "model", f"{model.get('source')} ({', '.join(str(name) for name in names if name)})"
    template = model.get("template")
    if template:
        reads = ", ".join(template.get("reads") or []) or "no kwargs"
        yield "template", f"{template['origin']} {str(template['sha256'])[:8]}, reads {reads}"
    tokenizer = model.get("tokenizer")
    if isinstance(tokenizer, Mapping) and tokenizer.get("kind") != "model":
        yield "tokenizer", f"{tokenizer.get('kind')}: {tokenizer.get('reason') or 'not given'}"


def first_failure(candidate: Mapping[str, Any]) -> str:
    """The first probe that a parser fails, in words; empty where it fails none."""
    for first in candidate.get("failures") or []:
        how = "streamed" if first.get("mode") == "stream" else "whole"
        return f"{first['symptom']} at {first['conversation']}: {variant_name(first.get('variant') or {})} ({how})"
    return ""


def counts(summary: Mapping[str, int]) -> str:
    """`2 errors, 1 warning, 3 suppressed` of a report's summary; what there is none of is left out."""
    words = [counted(summary[kind], kind) for kind in ("error", "warning") if summary.get(kind)]
    words += [f"{summary['suppressed']} suppressed"] if summary.get("suppressed") else []
    return ", ".join(words)
