"""The pairs of texts that prompt states are read by: those of the parser table and those only templates use."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MarkerPair:
    """A start marker and the end marker that closes it."""

    start: str
    end: str


STATE_MARKERS: tuple[MarkerPair, ...] = (
    MarkerPair("<think>", "</think>"),
    MarkerPair("<seed:think>", "</seed:think>"),
    MarkerPair("<mm:think>", "</mm:think>"),
    MarkerPair("[THINK]", "[/THINK]"),
    MarkerPair("<|channel>thought", "<channel|>"),
    MarkerPair("<|START_THINKING|>", "<|END_THINKING|>"),
    MarkerPair("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
    MarkerPair("<ifm|think>", "</ifm|think>"),
    MarkerPair("<ifm|think_fast>", "</ifm|think_fast>"),
    MarkerPair("<ifm|think_faster>", "</ifm|think_faster>"),
    MarkerPair("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>"),
    # Inkling and muse close every kind of block with one turn token, so only their full headers tell a state.
    MarkerPair("<|message_model|><|content_thinking|>", "<|message_model|><|content_text|>"),
    MarkerPair(" to=self<|message|>", " to=user<|message|>"),
    # Written by templates whose models no registered parser serves, or serves under another name.
    MarkerPair("<think:opensource>", "</think:opensource>"),
    MarkerPair("<longcat_think>", "</longcat_think>"),
    MarkerPair("<|think:start|>", "<|think:end|>"),
    MarkerPair("<thought>", "</thought>"),
    MarkerPair("<|start_think|>", "<|end_think|>"),
    MarkerPair("<THINKING>", "</THINKING>"),
)
"""No marker is part of another. Generic turn tokens (`<|eom|>`, `<|end_message|>`,
`<|message|>`, `<response>`), granite's and hunyuan's phrases are none.
"""
