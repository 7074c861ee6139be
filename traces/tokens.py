"""A tokenizer that is known only through the token texts in a trace."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ..parsers.assumed import table_markers
from ..parsers.feed import Piece
from .trace import Trace

_WORDS = re.compile(r"\s*\w+|\s*[^\w\s]|\s+")


def pieces_of(trace: Trace) -> list[Piece] | None:
    """The output as (text, id) of every token, where the trace shows them all; None where it does not.

    They come from deltas of one token each, else from token texts that the recording holds for all ids and that add up
    to the output's text, where that is known.
    """
    if trace.output_ids is None:
        return None
    if trace.deltas and all(
        d.text is not None and d.token_ids is not None and len(d.token_ids) <= 1 for d in trace.deltas
    ):
        found = [Piece(d.text or "", d.token_ids[0] if d.token_ids else None) for d in trace.deltas]
        if trace.output_text is None or "".join(piece.text for piece in found) == trace.output_text:
            return found
    if not all(one in trace.token_texts for one in trace.output_ids):
        return None
    texts = [trace.token_texts[one] for one in trace.output_ids]
    if trace.output_text is not None and "".join(texts) != trace.output_text:
        return None
    return [Piece(text, one) for text, one in zip(texts, trace.output_ids, strict=True)]


class TraceVocabulary:
    """A `parsers.base.Vocabulary` made of one trace's tokens; nothing in it is special.

    A marker of the parser table that the output spells with several tokens is no token here; one that does not occur in
    it is taken to be one, since its absence shows nothing. Other texts are cut as the assumed tokenizer cuts them.

    Args:
        found: the trace's tokens. An id with a second text (bytes of a character) counts as another token.
        prompt_ids: the prompt's ids, whose texts are not known; no new token gets one of them.

    Attributes:
        pieces: `found`, with such ids replaced.
    """

    special_ids: frozenset[int] = frozenset()
    special_tokens: Mapping[str, int] = MappingProxyType({})
    chat_template: str | None = None
    init_kwargs: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, found: Sequence[Piece], prompt_ids: Sequence[int] = ()) -> None:
        self._texts: dict[int, str] = {}
        self._ids: dict[str, int] = {}
        taken = [*prompt_ids, *(piece.id for piece in found if piece.id is not None)]
        self._next = 1 + max(taken, default=0)
        self.pieces = [
            piece if piece.id is None else Piece(piece.text, self._own(piece.id, piece.text)) for piece in found
        ]
        whole = "".join(piece.text for piece in found)
        for marker in sorted(table_markers()):
            if marker not in self._ids and marker not in whole:
                self._new(marker)
        self._markers = frozenset(table_markers() & self._ids.keys())
        ordered = sorted(self._markers, key=lambda text: (-len(text), text))
        self._cut = re.compile(f"({'|'.join(map(re.escape, ordered))})")

    @property
    def vocab(self) -> Mapping[str, int]:
        return MappingProxyType(self._ids)

    def encode(self, text: str) -> list[int]:
        found: list[int] = []
        for at, part in enumerate(self._cut.split(text)):
            found.extend(self._id(word) for word in ([part] if at % 2 else _WORDS.findall(part)))
        return found

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        return "".join(self._known(ids))

    def token_text(self, token_id: int) -> str:
        """The text of one token. Raises KeyError for an id the trace does not show."""
        return self._texts[token_id]

    def _known(self, ids: Iterable[int]) -> Iterable[str]:
        return (self._texts.get(one, "") for one in ids)

    def _own(self, token_id: int, text: str) -> int:
        if self._texts.get(token_id, text) != text:
            return self._id(text)
        self._texts[token_id] = text
        self._ids.setdefault(text, token_id)
        return token_id

    def _id(self, text: str) -> int:
        found = self._ids.get(text)
        return self._new(text) if found is None else found

    def _new(self, text: str) -> int:
        found = self._next
        self._next += 1
        self._ids[text] = found
        self._texts[found] = text
        return found
