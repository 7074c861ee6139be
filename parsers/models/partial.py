"""Markers that a text may be in the middle of."""

from __future__ import annotations

SPACE = r"[^\S\x1c-\x1f]"
"""One character that the `regex` module, which vLLM matches with, calls whitespace: `re` takes four more for it."""


def partial_suffix(text: str, *markers: str) -> int:
    """How many characters at the end of `text` begin one of the markers without completing it."""
    longest = max(map(len, markers)) - 1
    window = text[-longest:] if longest else ""
    size = len(window)
    for at, first in enumerate(window):
        for marker in markers:
            if marker[0] == first and size - at < len(marker) and marker.startswith(window[at:]):
                return size - at
    return 0
