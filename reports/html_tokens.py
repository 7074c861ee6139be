"""Tokens and spans of many traces in few bytes: each token there is once, and numbers in the alphabet of source maps.

A number is written in groups of five bits, the lowest first; a sixth bit says that another group follows (Base64 VLQ of
the source-map format, without its sign). The tokens that occur most have the smallest numbers. `report.js` reads it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from .markup import runs

_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
LETTER: Mapping[str, str] = {"reasoning": "r", "content": "c", "marker": "m", "lost": "x"}
"""What a kind is called in a span: `r40m1c12`."""

Token = tuple[int | None, str, str]
"""Its id, what it shows, and its name where it shows nothing."""


def encode(numbers: Iterable[int]) -> str:
    """Numbers of 0 and more as text."""
    found: list[str] = []
    for number in numbers:
        rest = number
        while rest > 31:
            found.append(_DIGITS[rest & 31 | 32])
            rest >>= 5
        found.append(_DIGITS[rest])
    return "".join(found)


class Tokens:
    """The tokens of every strip of a report, each written once."""

    def __init__(self, strips: Iterable[Mapping[str, Any]]) -> None:
        counts: Counter[Token] = Counter()
        for strip in strips:
            counts.update(_tokens(strip))
        ordered = sorted(counts, key=lambda token: (-counts[token], token[0] or -1, token[1], token[2]))
        self._numbers = {token: number for number, token in enumerate(ordered)}

    def as_json(self) -> list[Any]:
        """`[id, shown]` of each; `shown` is text, or texts that take turns with escapes; a name is the third."""
        return [[one, _shown(text), *([_shown(name)] if name else [])] for one, text, name in self._numbers]

    def of(self, strip: Mapping[str, Any]) -> str:
        """A strip's tokens, by their numbers."""
        return encode(self._numbers[token] for token in _tokens(strip))


def strip_json(tokens: Tokens, strip: Mapping[str, Any]) -> dict[str, Any]:
    """A strip as the page's script reads it: tokens, deltas as pairs (how many, of how many tokens), rows."""
    return {
        "t": tokens.of(strip),
        "d": encode(number for run in _repeats(strip["deltas"]) for number in run),
        "r": [_row_json(row) for row in strip["rows"] if row["spans"]],
    }


def spans_text(spans: Iterable[Sequence[Any]]) -> str:
    """`r40m1c12`."""
    return "".join(f"{LETTER[kind]}{length}" for kind, length in spans)


def _row_json(row: Mapping[str, Any]) -> list[Any]:
    mixed = {place: spans_text(spans) for place, spans in row["mixed"].items()}
    return [spans_text(row["spans"]), mixed, row["leaks"]]


def _tokens(strip: Mapping[str, Any]) -> Iterator[Token]:
    names = strip["names"]
    for place, (one, text) in enumerate(zip(strip["ids"], strip["texts"], strict=True)):
        yield one, text, "" if text else names.get(str(place), "")


def _repeats(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    for number, run in groupby(numbers):
        yield len(list(run)), number


def _shown(text: str) -> str | list[str]:
    """Text that is shown as it is, or texts that take turns with escapes, the first one shown as it is."""
    found = runs(text)
    if not any(escaped for escaped, _ in found):
        return text
    parts = [part for _, part in found]
    return ["", *parts] if found[0][0] else parts
