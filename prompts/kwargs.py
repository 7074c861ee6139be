"""The chat-template kwargs a request really has: what vLLM makes of its own, the server's defaults and the effort."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""The values of the request field `reasoning_effort` (vLLM 0.33.0, renderers/params.py, `ReasoningEffort`)."""

_UNSET = (None, "auto")
_REFUSED = frozenset({"chat_template", "conversation", "messages", "model_config", "self", "tokenizer"})
_WITHOUT_EFFECT = frozenset({"add_generation_prompt", "continue_final_message", "return_dict", "tokenize"})


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


def refused(kwargs: Mapping[str, Any]) -> list[str]:
    """Names in a request's own kwargs for which vLLM answers with an error, unless their value is null.

    They are arguments of its own calls: it refuses a chat_template (without --trust-request-chat-template), and the
    others collide. Source: vLLM 0.33.0, renderers/online_renderer.py `validate_chat_template` and renderers/hf.py
    `safe_apply_chat_template`, run.
    """
    named = {name for name in _REFUSED if kwargs.get(name) not in _UNSET}
    if kwargs.get("return_assistant_tokens_mask") not in (*_UNSET, False):
        named.add("return_assistant_tokens_mask")
    return sorted(named)


def without_effect(kwargs: Mapping[str, Any]) -> list[str]:
    """Names in a request's own kwargs that change no prompt: the request's fields of that name, or the server, win.

    Source: vLLM 0.33.0, entrypoints/openai/chat_completion/protocol.py `build_chat_params`, run.
    """
    return sorted(_WITHOUT_EFFECT & kwargs.keys())


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
