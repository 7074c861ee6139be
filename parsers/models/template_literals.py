"""The texts a simple pattern stands for.

Models `_literals` and `message_start_anchors` of vllm/parser/response_template_grammar.py (0.33.0).
"""

from __future__ import annotations

from .template_spec import Delimiter

_MOST = 16
"""Texts that are still written out."""
_SPECIAL = frozenset(".^$*+?{}[]\\|()")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


class _NotSimpleError(Exception):
    """The pattern is more than alternatives, optional parts and plain text."""


def literals(delimiter: Delimiter) -> list[str]:
    """Every text the delimiter matches; none where they cannot be told."""
    if delimiter.literals is not None:
        return list(delimiter.literals)
    pattern: str = delimiter.pattern.pattern
    try:
        found, end = _alternatives(pattern, 0)
    except _NotSimpleError:
        return []
    return found if end == len(pattern) else []


def _alternatives(pattern: str, at: int) -> tuple[list[str], int]:
    found: list[str] = []
    while True:
        branch, at = _sequence(pattern, at)
        found += branch
        if not pattern.startswith("|", at):
            break
        at += 1
    return _few(list(dict.fromkeys(found))), at


def _sequence(pattern: str, at: int) -> tuple[list[str], int]:
    found = [""]
    while at < len(pattern) and pattern[at] not in "|)":
        part, at = _part(pattern, at)
        if pattern.startswith("?", at):
            part, at = ["", *part], at + 1
        found = _few([before + text for before in found for text in part])
    return found, at


def _part(pattern: str, at: int) -> tuple[list[str], int]:
    if pattern.startswith("(?:", at):
        inner, end = _alternatives(pattern, at + 3)
        if not pattern.startswith(")", end):
            raise _NotSimpleError
        return inner, end + 1
    if pattern[at] == "\\" and at + 1 < len(pattern):
        escaped = pattern[at + 1]
        if escaped.isalnum() and escaped not in _ESCAPES:
            raise _NotSimpleError
        return [_ESCAPES.get(escaped, escaped)], at + 2
    if pattern[at] in _SPECIAL:
        raise _NotSimpleError
    return [pattern[at]], at + 1


def _few(texts: list[str]) -> list[str]:
    if len(texts) > _MOST:
        raise _NotSimpleError
    return texts
