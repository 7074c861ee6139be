"""What a reader copies out of a report: flags, commands, JSON. No line break may be put into one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .wording import visible

STAND_IN = "\ufdd0"
"""Stands for a blank that no line may be broken at. A noncharacter, one column wide, and never part of a text."""
_VALUE = r"""(?:'[^']*'|"[^"]*"|\{.*\}|[^\s;,()]+)"""
_FLAG = rf"--?[a-z][\w-]*(?:=|[ ](?={_VALUE}))?(?:(?<=[= ]){_VALUE})?"
_PASTE = re.compile(
    rf"(?:extra_body=\{{.*\}}"
    rf"|reasonctl [a-z][a-z-]*(?: (?:{_FLAG}|[A-Z]+\b|[^\s;,()]*[./:][^\s;,()]*))*"
    rf"|(?:pip|uv) install [^\s;,()]+(?: [^\s;,()]*['\[][^\s;()]*)*"
    rf"|(?<![\w-]){_FLAG})"
)


class Advice(str):
    """Prose with things to paste in it, which are kept on one line, however long that is."""

    __slots__ = ()


class Whole(Advice):
    """A text that is to be pasted from its first character to its last."""

    __slots__ = ()


def unbroken(text: str) -> str:
    """The text, escaped, with the blanks inside what is to be pasted held together by `STAND_IN`."""
    if isinstance(text, Whole):
        return visible(text).replace(STAND_IN, "\\ufdd0").replace(" ", STAND_IN)
    return _PASTE.sub(lambda found: found[0].replace(" ", STAND_IN), visible(text).replace(STAND_IN, "\\ufdd0"))


def runs(text: str, width: int) -> Iterator[tuple[str, bool]]:
    """The words of an `unbroken` text in stretches: (stretch, whether it is one word wider than `width` columns)."""
    from rich.cells import cell_len

    words: list[str] = []
    for word in text.split():
        if cell_len(word) <= width:
            words.append(word)
            continue
        if words:
            yield " ".join(words), False
        yield word, True
        words = []
    if words:
        yield " ".join(words), False
