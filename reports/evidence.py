"""What a finding's evidence tells, in the order a reader wants it: the request first, then what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .wording import variant_name

_SPLITS = ("client", "full", "streamed", "stream", "expected", "got")
_ORDER = ("request", "conversation", "cells", "prompt", "prompt_tail", "output", *_SPLITS, "because", "chain", "also")
_HIDDEN = ("variant", "probe", "mode", "chunking", "symptom", "every_step_run", "mends", "cases", "messages", "pytest")
"""Evidence that reports tell in other words, or leave to JSON."""


def telling(evidence: Mapping[str, Any], *, everything: bool = False) -> Iterator[tuple[str, Any]]:
    """What of a finding's evidence says something: names and values, known ones first and in order.

    Args:
        evidence: the finding's. What it nests under `shown` comes first; a request in there is told in words.
        everything: what is told in other words too.
    """
    nested = evidence.get("shown")
    if isinstance(nested, Mapping):
        if "variant" in nested:
            yield "request", cell_name(nested)
        yield from telling(nested, everything=everything)
    for key in sorted(evidence, key=lambda key: _ORDER.index(key) if key in _ORDER else len(_ORDER)):
        if key != "shown" and (everything or key not in _HIDDEN) and not _says_nothing(key, evidence[key]):
            yield key, evidence[key]


def cell_name(cell: Mapping[str, Any]) -> str:
    """A kind of request in words: its kwargs and its conversation."""
    words = [variant_name(cell.get("variant") or {}), str(cell.get("conversation") or "")]
    return ", ".join(word for word in words if word)


def is_split(value: Any) -> bool:
    """A split of an output: reasoning, content, or the exception in place of them."""
    return isinstance(value, Mapping) and bool(value.keys() & {"reasoning", "content", "error"})


def _says_nothing(key: str, value: Any) -> bool:
    if key == "cells":
        return len(value) < 2
    return (
        value in (None, []) or (value == {} and key != "request") or (key == "conversation" and value == "single_turn")
    )
