"""Markers of three parts that may have whitespace between them, followed as a text grows."""

from __future__ import annotations

import re

from .partial import SPACE

_RUN = re.compile(f"{SPACE}+")


class SpacedMarker:
    """`TAG name <|sep|>`, with any whitespace on either side of the name.

    Attributes:
        exact: the marker without whitespace.
        pattern: finds it in a whole text.
        begun: matches a text that begins it and does not complete it.
    """

    def __init__(self, tag: str, name: str) -> None:
        parts = (tag, name, "<|sep|>")
        self.exact = "".join(parts)
        self.pattern = re.compile(f"{SPACE}*".join(map(re.escape, parts)))
        atoms = [*map(re.escape, tag), f"{SPACE}*", *map(re.escape, name), f"{SPACE}*", *map(re.escape, parts[2])]
        begun = ""
        for atom in reversed(atoms[:-1]):
            begun = f"{atom}(?:{begun})?" if begun else atom
        self.begun = re.compile(begun)


class MarkerWatch:
    """Follows a growing text and tells its markers from the rest; costs what the new text is long.

    The end of the text may have begun a marker. Whitespace in it may go on for ever, so what is looked through again is
    its `_shape`, which has one character for each run of whitespace.
    """

    def __init__(self, marker: SpacedMarker) -> None:
        self._marker = marker
        self._raw: list[str] = []
        self._shape = ""

    @property
    def waiting(self) -> str:
        """The end of the text, as it came, that has begun a marker."""
        return "".join(self._raw)

    def feed(self, text: str) -> tuple[str, list[int]]:
        """The next text. Returns what is now sure to be outside all markers, and where in `text` markers end."""
        if not self._shape and "<" not in text:
            return text, []
        known, window = len(self._shape), self._shape + text
        matches = [*self._marker.pattern.finditer(window)]
        done = matches[-1].end() if matches else 0
        begin = self._begin(window, done)
        edges = [0, *(edge for match in matches for edge in match.span()), begin]
        sure = [self._raw_text(window, left, right, known) for left, right in zip(edges[::2], edges[1::2], strict=True)]
        if known and not begin:
            self._raw.append(text)
        else:
            self._raw = [self._raw_text(window, begin, len(window), known)]
        self._shape = _RUN.sub(" ", window[begin:])
        return "".join(sure), [match.end() - known for match in matches]

    def _begin(self, window: str, done: int) -> int:
        """Where a marker has begun: at the last `<`, or at the one before it where the last is that of `<|sep|>`."""
        last = window.rfind("<", done)
        if last < 0:
            return len(window)
        before = window.rfind("<", done, last)
        return next((at for at in (before, last) if at >= 0 and self._marker.begun.fullmatch(window, at)), len(window))

    def _raw_text(self, window: str, left: int, right: int, known: int) -> str:
        """A part of the window as it came. Where it is cut within the shape, what lies behind has no whitespace."""
        if left == right:
            return ""
        raw = self.waiting if left < known else ""
        if left:
            raw = raw[len(raw) - (known - left) :] if left < known else ""
        if right < known:
            return raw[: len(raw) - (known - right)]
        return raw + window[max(left, known) : right]
