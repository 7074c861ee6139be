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
        self.terminals = dict(literals)
        firsts = "".join(sorted({text[0] for text in self.terminals}))
        self.first = re.compile(f"[{re.escape(firsts)}]" if firsts else r"(?!)")
        self.any = any_of(self.terminals)
        self._holding: dict[frozenset[str], re.Pattern[str]] = {}
        self.prefixes = frozenset(text[:end] for text in self.terminals for end in range(1, len(text)))
        self.longest = max(map(len, self.terminals), default=0)

    def any_of(self, terminals: frozenset[str]) -> re.Pattern[str]:
        """Finds a literal of one of these terminals."""
        if terminals not in self._holding:
            self._holding[terminals] = any_of(
                text for text, terminal in self.terminals.items() if terminal in terminals
            )
        return self._holding[terminals]

    def undecided(self, text: str, begin: int = 0) -> int | None:
        """Where, from `begin` on, that starts of which a literal may come when the text goes on."""
        places = self.first.finditer(text, max(begin, len(text) - self.longest + 1))
        return next((found.start() for found in places if text[found.start() :] in self.prefixes), None)


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
            words.any_of(terminals).search(text) is None and words.undecided(text) is None
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
        begin = 0
        while True:
            literal = words.any.search(text, begin)
            end = len(text) if literal is None else literal.start()
            # Also a whole literal is held while a longer one may come of it: `<invoke name=` before a quote.
            held = None if final else words.undecided(text, begin)
            if held is not None and held <= end:
                literal, end = None, held
            if end > begin:
                found.append(self._lexeme(None, text[begin:end]))
            if literal is None:
                self._held = text[end:]
                return found
            found.append(self._lexeme(words.terminals[literal[0]], literal[0]))
            begin = literal.end()

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
