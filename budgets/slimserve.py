"""What is known of SlimServe: where its rules stand, what its profiles set, and how it picks a parser."""

from __future__ import annotations

from collections.abc import Sequence

SOURCE = "SlimServe docs/reasoning-token-budgets.md (803df5b4) and pull request #13"
"""The generation whose rules are judged by."""
LATER = "SlimServe main (3c76699d): scalar defaults only, an explicit null means unlimited"
"""What a later generation does otherwise."""

DEFAULT_PARSERS = ("glm45", "glm47")
"""Reasoning and tool parser of its command line. For a checkpoint of another architecture they count as not given."""

PARSERS_OF = {
    "glm_dsa": DEFAULT_PARSERS,
    "glm_moe_dsa": DEFAULT_PARSERS,
    "deepseek4": ("deepseek_v4", "deepseek_v4"),
    "deepseek_v4": ("deepseek_v4", "deepseek_v4"),
    "kimi_k3": ("kimi_k3", "kimi_k3"),
}
"""Reasoning and tool parser by the architecture of a GGUF, and by the model type that stands for it here
(vllm/entrypoints/openai/model_parsers.py of SlimServe)."""


def parser_of(given: str | None, model_type: str | None, architectures: Sequence[str] = ()) -> str | None:
    """The reasoning parser that a SlimServe runs for a model; None for none.

    Args:
        given: `--reasoning-parser`.
        model_type: of the model, None where it is not known; then what is given counts.
        architectures: of the model.
    """
    if model_type is None and not architectures:
        return given
    kind = (model_type or "").replace("-", "_").lower()
    chosen = PARSERS_OF.get(kind)
    if chosen is not None and given in (None, *DEFAULT_PARSERS):
        return chosen[0]
    is_glm = kind.startswith("glm") or any(name.lower().startswith("glm") for name in architectures)
    if given is None:
        return DEFAULT_PARSERS[0] if is_glm else None
    return given
