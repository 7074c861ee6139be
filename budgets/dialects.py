"""Whose rules a budget is judged by, and which requests mean what under them."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Literal

from ..errors import InputError

if TYPE_CHECKING:
    from ..parsers.target import Target

Dialect = Literal["slimserve", "vllm", "anthropic"]
Form = Literal["scalar", "map", "request", "generation_config", "serve"]

DIALECTS: tuple[Dialect, ...] = ("slimserve", "vllm", "anthropic")
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""`reasoning_effort` of a chat request, weakest first (vllm/renderers/params.py 0.33.0; SlimServe has the same)."""
LEVELS = EFFORTS[1:]
"""The efforts that think: legal keys of a budget map."""
FALLBACK = "medium"
"""The level a SlimServe map falls back to."""

RULES: dict[Dialect, str] = {
    "slimserve": "SlimServe's documented rules: map, medium when omitted, cutoff = min(budget, max_tokens - 1)",
    "vllm": "vLLM's rules: a request's own thinking_token_budget and nothing else; no limit by max_tokens",
    "anthropic": "vLLM's rules for /v1/messages: thinking.budget_tokens, at least 1024 and less than max_tokens",
}
"""One line on each dialect, for reports."""


def choose_dialect(
    given: str | None,
    *,
    target: Target | None,
    form: Form,
    slimserve_command: bool = False,
    anthropic_request: bool = False,
) -> Dialect:
    """The dialect of a configuration.

    `--dialect` decides; else `--target`; else a slimserve command, a scalar or a map means slimserve;
    `thinking.budget_tokens` means anthropic; anything else is vllm.

    Args:
        given: the `--dialect` value.
        target: the `--target` value, None where it was not given.
        form: what the configuration is.
        slimserve_command: it is a `slimserve` command line.
        anthropic_request: a request in it has `thinking.budget_tokens`.

    Raises:
        InputError: there is no such dialect.
    """
    if given is not None:
        if given not in DIALECTS:
            near = difflib.get_close_matches(given, DIALECTS, 1)
            mend = f"did you mean {near[0]}?" if near else f"use {', '.join(DIALECTS)}"
            raise InputError(f"{given!r} is no dialect", source="--dialect", mend=mend)
        return given
    product = target.product if target is not None else None
    unsaid = product is None and (slimserve_command or form in ("scalar", "map"))
    if product == "slimserve" or unsaid:
        return "slimserve"
    return "anthropic" if anthropic_request else "vllm"


def near_efforts(name: str, known: tuple[str, ...] = LEVELS) -> list[str]:
    """The efforts that a misspelt one may have meant, nearest first."""
    common = {"mid": "medium", "normal": "medium", "default": "medium", "min": "minimal", "maximum": "max"}
    common |= {"extra_high": "xhigh", "extra-high": "xhigh", "extrahigh": "xhigh", "very_high": "xhigh", "off": "none"}
    word = name.strip().lower()
    hits = [word] if word in known else []
    if common.get(word) in known:
        hits.append(common[word])
    return list(dict.fromkeys([*hits, *difflib.get_close_matches(word, known, 3, cutoff=0.6)]))
