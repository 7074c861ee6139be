"""A tokenizer for traces whose model is unknown: every marker of the parser table is one token, the rest are words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any

from .base import Vocabulary
from .table import ROWS

_WORDS = re.compile(r"\s*\w+|\s*[^\w\s]|\s+")
_HARD_CODED = ("hunyuan_a13b",)
"""Parsers that compare fixed ids of one model's vocabulary: no other tokenizer can stand in for it."""
_TOLD_BY_MODEL = ("hf", "beam")
"""Parsers whose format stands in the tokenizer's configuration, which no recording shows."""
_NEEDS_MODEL = {
    "hunyuan_a13b": "it compares fixed ids of one model's vocabulary: give --model",
    "openai_gptoss": "it reads the token ids of gpt-oss's own vocabulary: give --model",
    "hf": "its format stands in the tokenizer's configuration: give --model",
    "beam": "its format stands in the tokenizer's configuration: give --model",
}


class AssumedVocabulary:
    """Cuts any text and gives it back unchanged. No token is special, so nothing is hidden when decoding.

    Ids of words are given out as they appear and hold for this instance. Memory is bounded: of more than twice `words`
    different words the oldest are forgotten, never in the middle of an `encode`. A forgotten word gets a new id when it
    comes back, and decoding its old one raises KeyError; call `forget` between traces to start over.

    Args:
        extra_markers: further texts that are one token each, such as a checkpoint's own suffixed markers.
        words: how many different words a generation holds.
    """

    def __init__(self, extra_markers: Sequence[str] = (), *, words: int = 200_000) -> None:
        markers = sorted({*table_markers(), *extra_markers}, key=lambda marker: (-len(marker), marker))
        self._vocab = {marker: token_id for token_id, marker in enumerate(markers)}
        self._markers = tuple(markers)
        self._cut = re.compile(f"({'|'.join(map(re.escape, markers))})")
        self._words = words
        self._next_id = len(markers)
        self._ids: dict[str, int] = {}
        self._texts: dict[int, str] = {}
        self._old_ids: dict[str, int] = {}
        self._old_texts: dict[int, str] = {}
        self.kept: dict[object, Any] = {}
        """What others have derived from this vocabulary; dropped whenever words are."""

    @property
    def vocab(self) -> Mapping[str, int]:
        """The markers alone: words come and go."""
        return MappingProxyType(self._vocab)

    @property
    def special_ids(self) -> frozenset[int]:
        return frozenset()

    @property
    def special_tokens(self) -> Mapping[str, int]:
        return {}

    @property
    def chat_template(self) -> str | None:
        return None

    @property
    def init_kwargs(self) -> Mapping[str, Any]:
        return {}

    def encode(self, text: str) -> list[int]:
        if len(self._ids) > self._words:
            self._old_ids, self._old_texts = self._ids, self._texts
            self._ids, self._texts = {}, {}
            self.kept.clear()
        ids = []
        for at, part in enumerate(self._cut.split(text)):
            if at % 2:
                ids.append(self._vocab[part])
            else:
                ids.extend(self._id(word) for word in _WORDS.findall(part))
        return ids

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        return "".join(map(self.token_text, ids))

    def token_text(self, token_id: int) -> str:
        """The text of one token. Raises KeyError for an id that was never given out, or is forgotten."""
        if 0 <= token_id < len(self._markers):
            return self._markers[token_id]
        text = self._texts.get(token_id)
        return self._old_texts[token_id] if text is None else text

    def forget(self) -> None:
        """Forget every word; markers keep their ids, and no id is given out twice."""
        self._ids, self._texts, self._old_ids, self._old_texts = {}, {}, {}, {}
        self.kept.clear()

    def _id(self, word: str) -> int:
        found = self._ids.get(word)
        if found is None:
            found = self._old_ids.get(word)
            if found is None:
                found = self._next_id
                self._next_id += 1
            self._ids[word] = found
            self._texts[found] = word
        return found


def why_not(name: str, vocabulary: Vocabulary) -> str | None:
    """Why this parser says nothing on a tokenizer that is assumed or made of a recording; None where it does."""
    made_up = isinstance(vocabulary, AssumedVocabulary) or (
        name in _TOLD_BY_MODEL and hasattr(vocabulary, "token_text")
    )
    return _NEEDS_MODEL.get(name) if made_up else None


@cache
def table_markers() -> frozenset[str]:
    """Every start, end, implicit-end, turn-boundary, tool and demanded token of the parser table."""
    return frozenset(
        marker
        for name, row in ROWS.items()
        if name not in _HARD_CODED
        for group in (
            row.start,
            row.end,
            row.implicit_ends,
            row.turn_boundaries,
            row.tool_markers,
            row.demanded_tokens,
        )
        for marker in group
    )
