"""The chat-template kwargs a request really has: what vLLM makes of its own, the server's defaults and the effort."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""The values of the request field `reasoning_effort` (vLLM 0.33.0, renderers/params.py, `ReasoningEffort`)."""

_UNSET = (None, "auto")


def effective_kwargs(
    *,
    request_kwargs: Mapping[str, Any] | None,
    reasoning_effort: str | None = None,
    default_kwargs: Mapping[str, Any] | None = None,
    effort_map: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The kwargs that vLLM derives for one request; a parser is built with all of them.

    Args:
        request_kwargs: the request's `chat_template_kwargs`.
        reasoning_effort: the request *field*; one inside `request_kwargs` is just another kwarg and implies nothing.
        default_kwargs: the server's `--default-chat-template-kwargs`.
        effort_map: the server's `--reasoning-effort-map`, applied to the field before anything else.

    `add_generation_prompt`, `continue_final_message` and `documents`, which the real dict holds too, are left out: they
    are arguments of the rendering here, and no parser reads them.

    Source: vLLM 0.33.0, entrypoints/openai/chat_completion/protocol.py `build_chat_params` and renderers/params.py
    `merge_kwargs`, `map_reasoning_effort`, `with_defaults`.
    """
    own = dict(request_kwargs or {})
    effort = (effort_map or {}).get(reasoning_effort, reasoning_effort) if reasoning_effort is not None else None
    implied: dict[str, Any] = {"reasoning_effort": effort}
    if effort is not None and "enable_thinking" not in own:
        implied["enable_thinking"] = effort != "none"
    merged = _merge(own, implied)
    return _merge(default_kwargs, merged) if default_kwargs else merged


def template_kwargs(effective: Mapping[str, Any], reads: Collection[str]) -> dict[str, Any]:
    """The part of the effective kwargs that reaches the template: only variables it declares.

    Source: vLLM 0.33.0, renderers/hf.py `resolve_chat_template_kwargs`.
    """
    return {name: value for name, value in effective.items() if name in reads}


def variant_kwargs(
    variant: Mapping[str, Any],
    *,
    default_kwargs: Mapping[str, Any] | None = None,
    effort_map: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The effective kwargs of a report's variant, in which `reasoning_effort` is the request field."""
    own = {name: value for name, value in variant.items() if name != "reasoning_effort"}
    return effective_kwargs(
        request_kwargs=own,
        reasoning_effort=variant.get("reasoning_effort"),
        default_kwargs=default_kwargs,
        effort_map=effort_map,
    )


def _merge(defaults: Mapping[str, Any] | None, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """`overrides` over `defaults`, where null and "auto" never override."""
    return dict(defaults or {}) | {name: value for name, value in overrides.items() if value not in _UNSET}
