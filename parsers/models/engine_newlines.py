"""minicpmv's repair of text: a newline that came out as backslash and n becomes one, outside of code and LaTeX.

Models `EscapedNewlineNormalizer` of vllm/parser/minicpmv.py (0.33.0, unchanged from 0.32.0).
"""

from __future__ import annotations

import re

_NOTABLE = re.compile(r"[`$\\]")
_OPENERS = (("```", "```"), ("`", "`"), ("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]"))
"""What opens a span that is left alone, and what closes it; the longer first."""
_NEWLINES = ("\\r\\n", "\\n", "\\r")
_UNDECIDED = ("`", "``", "$", "\\", "\\r", "\\r\\")
"""Ends of a text that may still become something else."""


class NewlineRepair:
    """Repairs one field of one output, piece by piece. Holds back at most three characters and a run of backslashes."""

    def __init__(self) -> None:
        self._closer: str | None = None
        self._held = ""
        # A run of two or more backslashes stands for itself; it is held as a number until it is over.
        self._run = 0

    def feed(self, text: str, *, final: bool = False) -> str:
        """The repaired text that is decided after this piece; with `final`, all of it."""
        repaired: list[str] = []
        if self._run:
            rest = text.lstrip("\\")
            self._run += len(text) - len(rest)
            if not rest and not final:
                return ""
            repaired.append("\\" * self._run)
            self._run, text = 0, rest
        text, self._held = self._held + text, ""
        at = 0
        while at < len(text):
            at = self._copy_span(text, at, repaired, final) if self._closer else self._step(text, at, repaired, final)
        return "".join(repaired)

    def _copy_span(self, text: str, at: int, repaired: list[str], final: bool) -> int:
        """Copy up to and with the closer, or all there is of it so far."""
        closer = self._closer or ""
        place = text.find(closer, at)
        if place >= 0:
            self._closer = None
            repaired.append(text[at : place + len(closer)])
            return place + len(closer)
        keep = 0
        if not final:
            longest = min(len(closer) - 1, len(text) - at)
            keep = next((size for size in range(longest, 0, -1) if text.endswith(closer[:size])), 0)
        repaired.append(text[at : len(text) - keep])
        self._held = text[len(text) - keep :]
        return len(text)

    def _step(self, text: str, at: int, repaired: list[str], final: bool) -> int:
        """Copy up to the next notable character and decide it."""
        notable = _NOTABLE.search(text, at)
        if notable is None:
            repaired.append(text[at:])
            return len(text)
        start = notable.start()
        repaired.append(text[at:start])
        if text[start] == "\\":
            run = len(text) - start - len(text[start:].lstrip("\\")) if text.startswith("\\\\", start) else 1
            if run > 1:
                if not final and start + run == len(text):
                    self._run = run
                else:
                    repaired.append("\\" * run)
                return start + run
        if not final and len(text) - start <= 3 and text[start:] in _UNDECIDED:
            self._held = text[start:]
            return len(text)
        for newline in _NEWLINES:
            if text.startswith(newline, start):
                repaired.append("\n")
                return start + len(newline)
        for opener, closer in _OPENERS:
            if text.startswith(opener, start):
                self._closer = closer
                repaired.append(opener)
                return start + len(opener)
        repaired.append(text[start])
        return start + 1


def repair(text: str | None) -> str | None:
    """A whole text, repaired."""
    return NewlineRepair().feed(text, final=True) if text is not None else None
