"""Text in pieces to terminals and the words between: what may be the start of a terminal is held until it is decided.

Models vllm/parser/engine/incremental_lexer.py (0.33.0, unchanged from 0.32.0).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from ..markers import any_of


class Lexeme(NamedTuple):
    """A stretch of text, the terminal it is (None: words), and the number of tokens that begin in it."""

    terminal: str | None
    text: str
    tokens: int


class Lexicon:
    """The literals to look for, prepared for looking. Immutable; shared by every output of the same format."""

    def __init__(self, literals: Sequence[tuple[str, str]]) -> None:
        self._terminals = dict(literals)
        lengths: dict[str, set[int]] = {}
        for text in self._terminals:
            lengths.setdefault(text[0], set()).add(len(text))
        self._lengths = {first: sorted(found, reverse=True) for first, found in lengths.items()}
        self.first = re.compile("[" + re.escape("".join(sorted(lengths))) + "]") if lengths else re.compile(r"(?!)")
        self._holding: dict[frozenset[str], re.Pattern[str]] = {}
        self.prefixes = frozenset(text[:end] for text in self._terminals for end in range(1, len(text)))
        self.longest = max(map(len, self._terminals), default=0)

    def any_of(self, terminals: frozenset[str]) -> re.Pattern[str]:
        """Finds a literal of one of these terminals."""
        if terminals not in self._holding:
            self._holding[terminals] = any_of(
                text for text, terminal in self._terminals.items() if terminal in terminals
            )
        return self._holding[terminals]

    def stops_inside(self, text: str) -> bool:
        """Whether `text` ends in the middle of a literal, as far as can be told."""
        tail = text[max(0, len(text) - self.longest + 1) :]
        return any(tail[found.start() :] in self.prefixes for found in self.first.finditer(tail))

    def match(self, text: str, at: int) -> tuple[str, str] | None:
        """The longest literal that stands at `at`, as (terminal, literal)."""
        for length in self._lengths[text[at]]:
            terminal = self._terminals.get(text[at : at + length])
            if terminal is not None:
                return terminal, text[at : at + length]
        return None


@lru_cache(maxsize=64)
def lexicon(literals: tuple[tuple[str, str], ...]) -> Lexicon:
    """The lexicon of (literal, terminal) pairs."""
    return Lexicon(literals)


class Lexer:
    """Cuts one output's text, piece by piece. Holds back less than the longest literal."""

    def __init__(self, words: Lexicon) -> None:
        self.lexicon = words
        self._held = ""
        self._at = 0
        self._token_starts: deque[int] = deque()

    @property
    def holds(self) -> bool:
        return bool(self._held)

    def is_plain(self, text: str, terminals: frozenset[str]) -> bool:
        """Whether `text` holds no literal of these terminals, and no beginning of any literal at its end."""
        words = self.lexicon
        return words.first.search(text) is None or (
            words.any_of(terminals).search(text) is None and not words.stops_inside(text)
        )

    def feed(self, text: str, tokens: Sequence[str] = (), count: int = 0) -> list[Lexeme]:
        """Cut `text` behind what was held.

        Args:
            tokens: the texts of the tokens it is made of, as far as known.
            count: how many tokens it counts for; those not found in it count for its first character.
        """
        if text:
            self._note_starts(text, tokens, count)
            self._held += text
        return self._cut(final=False)

    def flush(self) -> list[Lexeme]:
        """What is held, decided as if nothing came after it."""
        return self._cut(final=True)

    def _cut(self, *, final: bool) -> list[Lexeme]:
        text, words, found = self._held, self.lexicon, list[Lexeme]()
        begin = at = 0
        while candidate := words.first.search(text, at):
            at = candidate.start()
            # Also a whole literal is held while a longer one may come of it: `<invoke name=` before a quote.
            if not final and len(text) - at < words.longest and text[at:] in words.prefixes:
                break
            match = words.match(text, at)
            if match is None:
                at += 1
                continue
            if at > begin:
                found.append(self._lexeme(None, text[begin:at]))
            found.append(self._lexeme(*match))
            begin = at = at + len(match[1])
        else:
            at = len(text)
        if at > begin:
            found.append(self._lexeme(None, text[begin:at]))
        self._held = text[at:]
        return found

    def _lexeme(self, terminal: str | None, text: str) -> Lexeme:
        self._at += len(text)
        tokens = 0
        while self._token_starts and self._token_starts[0] < self._at:
            self._token_starts.popleft()
            tokens += 1
        return Lexeme(terminal, text, tokens)

    def _note_starts(self, text: str, tokens: Sequence[str], count: int) -> None:
        base = self._at + len(self._held)
        if len(tokens) == count and "".join(tokens) == text:
            every = accumulate(map(len, tokens), initial=base)
            starts = [start for start, token in zip(every, tokens, strict=False) if token]
        else:
            starts = self._found_starts(text, tokens, base)
        self._token_starts.extend([base] * (count - len(starts)))
        self._token_starts.extend(starts)

    def _found_starts(self, text: str, tokens: Sequence[str], base: int) -> list[int]:
        """Where those of the tokens that stand in `text` one behind the other do."""
        starts: list[int] = []
        absent: set[str] = set()
        end = 0
        for token in tokens:
            if not token or token in absent:
                continue
            place = text.find(token, end)
            if place < 0:
                absent.add(token)
                continue
            starts.append(base + place)
            end = place + len(token)
        return starts
