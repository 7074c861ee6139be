"""Reads from a rendered prompt what it leaves the model in: thinking open, closed, closed without a start, or none."""

from __future__ import annotations

import bisect
import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..parsers.markers import STATE_MARKERS, MarkerPair

StateName = Literal["open", "closed", "closed-bare", "none"]
TAIL_CHARS = 200
"""A tail is cut to its last so many characters."""


@dataclass(frozen=True)
class State:
    """What the end of a prompt says.

    `marker` is the last marker there, and `marker_end` the character of the prompt right behind it (None without one).
    `tail` starts at the marker that opened the last block, or is all that stands behind the last message's own text.
    """

    state: StateName
    marker: str | None
    marker_end: int | None
    tail: str


def prompt_state(
    prompt: str, region_start: int, markers: Sequence[MarkerPair] = STATE_MARKERS, *, ends: Sequence[int] | None = None
) -> State:
    """The state a prompt leaves the model in, by the markers from character `region_start` on.

    `ends`, for a prompt built by code: where its tokens end. There text that looks like a marker is none: only a
    whole token is, because such code writes its markers as tokens and cuts the text of messages without them.
    """
    pattern, starts = _pattern(tuple(markers))
    opened: re.Match[str] | None = None
    last: re.Match[str] | None = None
    for match in pattern.finditer(prompt, region_start):
        if ends is not None and not _is_token(match, ends):
            continue
        if match[0] in starts:
            opened = match
        last = match
    if last is None:
        return State("none", None, None, prompt[region_start:][-TAIL_CHARS:])
    name: StateName = "open" if last is opened else "closed" if opened is not None else "closed-bare"
    first = opened or last
    return State(name, last[0], last.end(), prompt[first.start() :][-TAIL_CHARS:])


def region_start(prompt: str, sentinel: str) -> int:
    """The character behind the last message's own text, which ends with `sentinel`; 0 where the template dropped it."""
    at = prompt.rfind(sentinel)
    return 0 if at < 0 else at + len(sentinel)


def _is_token(match: re.Match[str], ends: Sequence[int]) -> bool:
    at = bisect.bisect_left(ends, match.end())
    return at < len(ends) and ends[at] == match.end() and (ends[at - 1] if at else 0) == match.start()


@functools.lru_cache
def _pattern(markers: tuple[MarkerPair, ...]) -> tuple[re.Pattern[str], frozenset[str]]:
    """A pattern that takes the longest marker at each place, and the start markers."""
    texts = {text for pair in markers for text in (pair.start, pair.end)}
    ordered = sorted(texts, key=lambda text: (-len(text), text))
    return re.compile("|".join(map(re.escape, ordered))), frozenset(pair.start for pair in markers)
