"""The tokenizer of a model whose prompts code builds: over any library that knows each token's bytes."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from .tokenizer import LoadCheck


class CodedTokenizer:
    """What parsers and prompt states ask of a tokenizer (`parsers.base.Vocabulary`); `tokenizer.Tokenizer`'s face.

    Args:
        folder: where the model lies.
        loader: the library and its version.
        size: how many ids there are.
        piece: the bytes of an id, a special token's own spelling for those.
        cut: the ids of a text without special tokens.
        special_tokens: the declared ones with their ids, in order.
        kept: special tokens that an output shows though special tokens are skipped.
        spelled: makes `vocab`.
        supports_grammar: the library writes grammars for it, which vLLM's parser for it goes by.
    """

    toy = False
    chat_template: str | None = None
    init_kwargs: Mapping[str, Any] = MappingProxyType({})

    def __init__(
        self,
        *,
        folder: Path,
        loader: str,
        size: int,
        piece: Callable[[int], bytes],
        cut: Callable[[str], list[int]],
        special_tokens: Mapping[str, int],
        kept: frozenset[str],
        spelled: Callable[[], Mapping[str, int]],
        supports_grammar: bool = False,
    ) -> None:
        self.folder = folder
        self.supports_grammar = supports_grammar
        self.mode = "auto"
        self.size = size
        self.special_tokens = special_tokens
        self.special_ids = frozenset(one for text, one in special_tokens.items() if text not in kept)
        self._loader = loader
        self._piece = piece
        self._cut = cut
        self._spelled = spelled
        longest_first = sorted(special_tokens, key=lambda text: (-len(text), text))
        self._special = re.compile(f"({'|'.join(map(re.escape, longest_first))})")

    @functools.cached_property
    def vocab(self) -> Mapping[str, int]:
        """Every token, in the spelling that the server's tokenizer gives it, to its id."""
        return self._spelled()

    def encode(self, text: str) -> list[int]:
        """Ids of `text`, without bos or eos; markers in it become their special tokens."""
        ids: list[int] = []
        for part in self._special.split(text):
            if part in self.special_tokens:
                ids.append(self.special_tokens[part])
            elif part:
                ids += self._cut(part)
        return ids

    def encode_with_ends(self, text: str) -> tuple[list[int], list[int]]:
        """Ids of `text`, and for each the offset in `text`, in characters, at which its token ends."""
        ids = self.encode(text)
        return ids, list(self.joined(ids)[1])

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        """The text of a run of ids."""
        shown = (one for one in ids if not (skip_special_tokens and one in self.special_ids))
        return b"".join(map(self._piece, shown)).decode("utf-8", "replace")

    def joined(self, ids: Sequence[int]) -> tuple[str, tuple[int, ...]]:
        """The whole text of a run of ids, and the character at which each token ends; one begun counts as ended."""
        pieces = [self._piece(one) for one in ids]
        ends: list[int] = []
        characters = 0
        for piece in pieces:
            characters += sum(byte & 0xC0 != 0x80 for byte in piece)
            ends.append(characters)
        return b"".join(pieces).decode("utf-8", "replace"), tuple(ends)

    def start_check(self, python: str = sys.executable) -> None:
        """Nothing to start: the library that the server uses read the file itself."""

    def check(self, python: str = sys.executable) -> LoadCheck:
        """That library is the loader, so nothing can differ."""
        return LoadCheck(self._loader, built=type(self).__name__, size=self.size)
