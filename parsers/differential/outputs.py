"""What a model might generate: structured outputs, mangled ones, and anything that a parser may trip over."""

from __future__ import annotations

import random
from collections.abc import Callable

from .family import Family
from .vocabulary import SpecVocabulary

WORDS = (
    "Hello", " world", " four", "The", " answer", " is", "\n\n", "  ", " \n", "</", "think", ">\n", "<th", "ink>",
    "ok.", "name", " \"", "tool", "_call", "\\n", "``", "$$", "é", "四", " 🙂", "\\\\", "\\(",
)  # fmt: skip
"""Ordinary tokens of every vocabulary."""
BROKEN = (
    b'\xf0\x9f', b'\x99\x82', b'\xe4\xbd', b' \xe4', b'\xbd\xa0', b'\xff\xfe',
)  # fmt: skip
"""And tokens that are part of a character, or of none."""
_TEXTS = (
    "Let me see.", "2 + 2 = 4\n", " ", "\n", "\n\n", "It is 4.", "naïve 你好 🙂👍", "a < b > c", "x", "  \n  ", "\t",
    "a\\nb", "`\\n`", "$\\nu$", "\\\\n", "\\r\\n", "```py\\n```", "\\(\\nu\\)", "\\[\\n\\]", "\\", "$$\\n$$", "<",
    "</", "\\r", "\"", "'",
)  # fmt: skip


class Outputs:
    """Outputs of one family in one vocabulary, out of one random state.

    Args:
        rng: the random state.
        family: what the parser looks for.
        vocabulary: the tokenizer.
        ends: the start and the end marker, as this tokenizer has them.
    """

    def __init__(self, rng: random.Random, family: Family, vocabulary: SpecVocabulary, ends: tuple[str, str]) -> None:
        self._rng = rng
        self._family = family
        self._vocabulary = vocabulary
        self._start, self._end = self._ends = ends

    def generated(self) -> list[int]:
        """The ids of one output."""
        if self._family.outputs and self._rng.random() < 0.5:
            return self._mangled()
        return self._structured() if self._rng.random() < 0.6 else self._random()

    def _mangled(self) -> list[int]:
        """One or two of the family's own outputs, cut short, with something of it left out, doubled or thrown in."""
        rng = self._rng
        text = "".join(rng.choices(self._family.outputs, k=rng.choice((1, 1, 1, 2))))
        for _ in range(rng.choice((0, 0, 0, 1, 1, 2, 4))):
            at = rng.randrange(len(text) + 1)
            until = min(len(text), at + rng.choice((0, 0, 0, 1, 2, 5, 20)))
            thrown = (*self._family.shards, *self._ends, *_TEXTS[:6], text[at : at + rng.randrange(1, 30)], "")
            text = text[:at] + rng.choice(thrown) + text[until:]
        if rng.random() < 0.2:
            text = text[: rng.randrange(len(text) + 1)]
        return self._vocabulary.encode(text) if rng.random() < 0.8 else self._vocabulary.spell(text)

    def _structured(self) -> list[int]:
        """A thought, its end, an answer, with now and then a marker or call where none belongs."""
        rng = self._rng
        ids: list[int] = []
        if rng.random() < 0.5:
            ids += self._marker(self._start)
        ids += self._thought()
        if rng.random() < 0.8:
            ids += self._marker(self._end)
            if rng.random() < 0.15:
                ids += self._marker(self._end)
            if rng.random() < 0.5:
                ids += self._vocabulary.spell(rng.choice(("\n", "\n\n", " ", "\n \n")))
        if rng.random() < 0.85:
            ids += self._thought()
        if rng.random() < 0.35:
            ids += self._call()
        if rng.random() < 0.2:
            ids += self._marker(self._start) + self._thought()
            if rng.random() < 0.6:
                ids += self._marker(self._end) + self._thought()
        return ids

    def _thought(self) -> list[int]:
        rng = self._rng
        ids: list[int] = []
        for _ in range(rng.choice((0, 1, 1, 2, 3, 5))):
            ids += self._vocabulary.spell(
                rng.choice(_TEXTS) if rng.random() < 0.6 else "".join(rng.choices(WORDS, k=3))
            )
            if rng.random() < 0.07:
                ids += self._atom()
        return ids

    def _call(self) -> list[int]:
        text = self._rng.choice(self._family.calls)
        if self._rng.random() < 0.3:
            text = text[: self._rng.randrange(len(text) + 1)]
        return self._vocabulary.encode(text) if self._rng.random() < 0.8 else self._vocabulary.spell(text)

    def _marker(self, text: str) -> list[int]:
        """Mostly the token; now and then its text, spelled by other tokens."""
        return self._vocabulary.encode(text) if self._rng.random() < 0.9 else self._vocabulary.spell(text)

    def _random(self) -> list[int]:
        return [token_id for _ in range(self._rng.randrange(0, 24)) for token_id in self._atom()]

    def _atom(self) -> list[int]:
        """One thing a parser may trip over."""
        rng, vocabulary = self._rng, self._vocabulary
        markers = (self._start, self._end, *self._family.tools, *self._family.shards)
        atoms: tuple[Callable[[], list[int]], ...] = (
            lambda: vocabulary.spell(rng.choice(_TEXTS)),
            lambda: [rng.choice(list(vocabulary.markers.values()))],
            lambda: vocabulary.encode(rng.choice((self._start, self._end))),
            lambda: vocabulary.encode(rng.choice(markers)),
            lambda: vocabulary.spell(rng.choice(markers)),
            lambda: vocabulary.spell((marker := rng.choice(markers))[: rng.randrange(1, len(marker) + 1)]),
            lambda: [rng.randrange(256, 256 + len(vocabulary.spec.pieces))],
            lambda: [rng.randrange(256, 256 + len(vocabulary.spec.pieces))],
            lambda: list("🙂é你".encode()[: rng.randrange(1, 10)]),
            lambda: [rng.randrange(256)],
            self._call,
        )
        return rng.choice(atoms)()
