"""The pairs of texts that prompt states are read by: those of the parser table and those only templates use."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache


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


def any_of(texts: Iterable[str]) -> re.Pattern[str]:
    """Finds any of these texts, the longest at each place.

    Texts that begin alike are looked for by what they begin with: `re` skips to that many times faster than it tries
    one text after another.
    """
    groups: dict[str, list[str]] = {}
    for text in sorted(set(texts), key=lambda text: (-len(text), text)):
        groups.setdefault(text[0], []).append(text)
    found = []
    for group in groups.values():
        start = _common_start(min(group), max(group))
        found.append(re.escape(start) + "(?:" + "|".join(re.escape(text[len(start) :]) for text in group) + ")")
    return re.compile("|".join(found) or r"(?!)")


def _common_start(one: str, other: str) -> str:
    same = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return one[:same]


def holds_marker(text: str) -> bool:
    """Whether a marker of any pair stands in the text."""
    return any(pattern.search(text) is not None for pattern in _by_first())


@cache
def _by_first() -> tuple[re.Pattern[str], ...]:
    texts = [text for pair in STATE_MARKERS for text in (pair.start, pair.end)]
    return tuple(any_of(text for text in texts if text[0] == first) for first in sorted({text[0] for text in texts}))
