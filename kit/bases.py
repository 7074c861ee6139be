"""vLLM's own classes that a plugin's parser inherits from, and what each leaves to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Base:
    """One class of vLLM.

    Attributes:
        gives: it has every method that the server calls.
        single_tokens: it looks both markers up in the vocabulary when it is made.
        start: its start marker; None where a subclass has to give it.
        end: its end marker.
        strings: it gives `reasoning_start_str` and `reasoning_end_str`.
        reads_kwargs: it reads `chat_template_kwargs`, or may.
    """

    gives: bool = True
    single_tokens: bool = False
    start: str | None = None
    end: str | None = None
    strings: bool = True
    reads_kwargs: bool = False


ROOT = "ReasoningParser"
BASES: Mapping[str, Base] = {
    ROOT: Base(gives=False, strings=False),
    "BaseThinkingReasoningParser": Base(single_tokens=True),
    "DeepSeekR1ReasoningParser": Base(single_tokens=True, start="<think>", end="</think>"),
    "Ernie45ReasoningParser": Base(single_tokens=True, start="<think>", end="</think>"),
    "MiniMaxM3ReasoningParser": Base(single_tokens=True, start="<mm:think>", end="</mm:think>", reads_kwargs=True),
    "IdentityReasoningParser": Base(strings=False),
    "GraniteReasoningParser": Base(strings=False),
    "HunyuanA13BReasoningParser": Base(strings=False),
    "MiniMaxM2AppendThinkReasoningParser": Base(strings=False),
    "Step3ReasoningParser": Base(),
    "Olmo3ReasoningParser": Base(),
}
"""vLLM 0.33.0 vllm/reasoning, as in 0.32.0."""
OTHER = Base(reads_kwargs=True)
"""Any other class of vLLM's: taken to be whole."""

NO_PARSERS = frozenset({"object", "ABC", "Generic", "Protocol"})
"""Bases of Python's own that leave a class what it is."""


def base_of(dotted: str) -> Base | None:
    """What vLLM's class of this dotted name is; None for a name that is none of vLLM's."""
    package, _, name = dotted.rpartition(".")
    if package.partition(".")[0] != "vllm":
        return None
    return BASES.get(name, OTHER)
