"""Markers that a text may be in the middle of."""

from __future__ import annotations

SPACE = r"[^\S\x1c-\x1f]"
"""One character that the `regex` module, which vLLM matches with, calls whitespace: `re` takes four more for it."""


def partial_suffix(text: str, *markers: str) -> int:
    """How many characters at the end of `text` begin one of the markers without completing it."""
    found = 0
    for marker in markers:
        at = text.find(marker[0], max(0, len(text) - len(marker) + 1))
        while at >= 0 and not marker.startswith(text[at:]):
            at = text.find(marker[0], at + 1)
        if at >= 0:
            found = max(found, len(text) - at)
    return found
