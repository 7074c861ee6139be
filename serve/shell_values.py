"""What the words of a shell script become: variables, defaults, arrays, positional arguments."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..budgets.document import Locate
from .secret import holds_secret
from .words import Word, split_words
from .work import MAX_VALUE, Work, bounded

_PARAMETER = re.compile(r"\$(?:([A-Za-z_]\w*|[@*#?$!0-9-])|\{(.*)\})", re.DOTALL)
_ELEMENT = re.compile(r"([A-Za-z_]\w*)\[([^@*\]][^\]]*)\]((?::?[-=+?]).*)?", re.DOTALL)
_BRACED = re.compile(r"([A-Za-z_]\w*|[@*0-9]+)(\[[@*]\])?(?:(:?[-=+?]|##?|%%?)(.*))?", re.DOTALL)

_STRIPPED = 4096
"""Characters of a value of which a pattern may take away a part: every length of the part is tried."""


@dataclass
class Values:
    """The variables of one way through a script. A value of None is one that nothing in the script tells."""

    arrays: dict[str, list[Word] | None] = field(default_factory=dict)
    variables: dict[str, str | None] = field(default_factory=dict)
    arguments: list[list[Word]] = field(default_factory=list)
    work: Work = field(default_factory=Work)
    revealing: bool = False
    """Whether the values of secrets are given out; else they count as unknown."""

    def expanded(self, words: Sequence[Word]) -> list[Word]:
        return [part for word in words for part in self.parts(word)]

    def value(self, word: Word, start: int) -> str | None:
        """The text of a word from `start` on, None where something in it is unknown."""
        parts = self.parts(replace_start(word, start), split=False)
        if any(part.dynamic for part in parts):
            return None
        return bounded(" ".join(part.text for part in parts))

    def parts(self, word: Word, *, split: bool = True) -> list[Word]:
        """The words that one word becomes. An unknown expansion stays in it, and the word is `dynamic`."""
        if not word.expansions:
            return [word]
        done: list[Word] = []
        chars: list[str] = []
        offsets: list[int] = []
        dynamic = False
        position = 0
        kept: list[tuple[int, int, bool]] = []
        started = False

        def flush(at: int) -> None:
            nonlocal chars, offsets, dynamic, kept, started
            done.append(
                replace(word, text="".join(chars), offsets=(*offsets, at), dynamic=dynamic, expansions=tuple(kept))
            )
            chars, offsets, dynamic, kept, started = [], [], False, [], False

        for begin, end, quoted in word.expansions:
            if begin > position:
                started = True
            chars += word.text[position:begin]
            offsets += word.offsets[position:begin]
            position = end
            origin = word.offsets[begin]
            value = self.expansion(word.text[begin:end], word, begin)
            size = len(value or "") if not isinstance(value, list) else sum(len(item.text) + 1 for item in value)
            self.work.take(size, word.location)
            if value is None or len(chars) + size > MAX_VALUE:
                dynamic = started = True
                kept.append((len(chars), len(chars) + end - begin, quoted))
                chars += word.text[begin:end]
                offsets += word.offsets[begin:end]
            elif isinstance(value, str):
                pieces = [value] if quoted or not split else re.split(r"\s+", value)
                for number, piece in enumerate(pieces):
                    if number and started:
                        flush(origin)
                    if piece or quoted:
                        started = True
                    chars += piece
                    offsets += [origin] * len(piece)
            else:
                for number, item in enumerate(value):
                    if number:
                        flush(origin)
                    chars += item.text
                    offsets += item.offsets[:-1] if item.locate is word.locate else [origin] * len(item.text)
                    dynamic |= item.dynamic
                    started = True
        if position < len(word.text):
            started = True
        chars += word.text[position:]
        offsets += word.offsets[position:-1]
        if started:
            flush(word.offsets[-1])
        return done

    def expansion(self, text: str, word: Word, begin: int) -> str | list[Word] | None:
        """What an expansion gives: a text, the words of an array, None where it is not known."""
        match = _PARAMETER.fullmatch(text)
        if match is None:
            return None
        if match[1] is not None:
            return self.parameter(match[1])
        element = _ELEMENT.fullmatch(match[2])
        if element is not None:
            return self.element(element[1], element[2], word, begin + 2 + element.start(2)) if not element[3] else None
        braced = _BRACED.fullmatch(match[2])
        if braced is None:
            return None
        name, whole, how, other = braced.groups()
        found = self.array_of(name) if whole else self.parameter(name)
        if how is None:
            return found
        if how in ("#", "##", "%", "%%"):
            short = isinstance(found, str) and len(found) <= _STRIPPED
            return _stripped(found, how, other) if short and isinstance(found, str) else None
        return self.defaulted(name, found, how, other or "", word, begin + text.index(how) + len(how))

    def element(self, name: str, subscript: str, word: Word, at: int) -> str | None:
        """An array's element, by its number or its key."""
        if not self.revealing and holds_secret(name):
            return None
        key = self.text_of(subscript, word, at)
        items = self.arrays.get(name)
        if key is not None and key.isdigit() and items:
            found = items[int(key)] if int(key) < len(items) else None
            return found.text if found is not None and not found.dynamic else None
        return self.variables.get(f"{name}[{key}]") if key is not None else None

    def defaulted(
        self, name: str, found: str | list[Word] | None, how: str, other: str, word: Word, at: int
    ) -> str | list[Word] | None:
        is_set = found is not None or name in self.variables or name in self.arrays
        empty = how.startswith(":") and not found
        if how.endswith("+"):
            return self.text_of(other, word, at) if is_set and not empty else "" if not self.outer(name) else None
        if is_set and not empty:
            return found
        if how.endswith(("-", "=")):
            value = self.text_of(other, word, at)
            if how.endswith("="):
                self.variables[name] = value
            return value
        return None

    def outer(self, name: str) -> bool:
        """Whether a variable may be set from outside: it is none that the script itself sets."""
        return name not in self.variables

    def text_of(self, text: str, word: Word, at: int) -> str | None:
        self.work.cut(text, word.location)
        words = split_words(text, lambda offset: word.place(min(at + offset, len(word.text))))
        values = [self.value(part, 0) for part in words if not part.operator]
        return None if any(value is None for value in values) else " ".join(value or "" for value in values)

    def array_of(self, name: str) -> list[Word] | None:
        if name in self.arrays:
            return self.arrays[name]
        value = self.variables.get(name)
        return None if value is None else []

    def parameter(self, name: str) -> str | list[Word] | None:
        if name in ("@", "*"):
            return self.arguments[-1] if self.arguments else None
        if name.isdigit():
            given = self.arguments[-1] if self.arguments else []
            index = int(name) - 1
            return given[index].text if 0 <= index < len(given) and not given[index].dynamic else None
        if not self.revealing and holds_secret(name):
            return None
        if name in self.arrays and name not in self.variables:
            items = self.arrays[name]
            return items[0].text if items else None if items is None else ""
        return self.variables.get(name)


def replace_start(word: Word, start: int) -> Word:
    """The part of a word behind its first `start` characters."""
    if not start:
        return word
    return replace(
        word,
        text=word.text[start:],
        offsets=word.offsets[start:],
        expansions=tuple((b - start, e - start, q) for b, e, q in word.expansions if b >= start),
    )


def _stripped(value: str, how: str, pattern: str) -> str:
    """`${NAME#pattern}` and its kin."""
    ends = range(len(value) + 1)
    if how[0] == "#":
        order = reversed(ends) if how == "##" else iter(ends)
        return next((value[i:] for i in order if fnmatch.fnmatchcase(value[:i], pattern)), value)
    order = iter(ends) if how == "%%" else reversed(ends)
    return next((value[:i] for i in order if fnmatch.fnmatchcase(value[i:], pattern)), value)


def behind(locate: Locate, start: int) -> Locate:
    """Places in a text that begins at `start` of the one `locate` is for."""
    return lambda offset: locate(start + offset)
