"""Markers that a text may be in the middle of."""

from __future__ import annotations

SPACE = r"[^\S\x1c-\x1f]"
"""One character that the `regex` module, which vLLM matches with, calls whitespace: `re` takes four more for it."""


def partial_suffix(text: str, *markers: str) -> int:
    """How many characters at the end of `text` begin one of the markers without completing it."""
    longest = max(map(len, markers)) - 1
    window = text[-longest:] if longest else ""
    for at in range(len(window)):
        tail = window[at:]
        if any(len(tail) < len(marker) and marker.startswith(tail) for marker in markers):
            return len(tail)
    return 0
