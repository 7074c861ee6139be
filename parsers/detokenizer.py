"""Token ids to texts, one for each id, as vLLM's detokenizer streams them; by table wherever that is the same.

vLLM steps a `tokenizers.decoders.DecodeStream` (v1/engine/detokenizer.py `FastIncrementalDetokenizer`, 0.33.0 and
0.32.0), which decodes a window of ids anew for each. With the decoders known here the text that an id adds does not
depend on what stands before it, as long as every token is whole characters: then a look-up gives it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from .base import Vocabulary

_REPLACEMENT = "�"
_PART = _REPLACEMENT
"""Stands in a table for the text of an id that may be a part of a character; a stream's text never ends like this."""
_TAIL = 8
"""Prompt ids that are decoded to see that a stream primed with the prompt is under way."""
_PER_TOKEN = frozenset(("Replace", "ByteFallback"))
"""Decoders that turn one token at a time into text (byte-fallback tokens aside, which are never looked up)."""


class Detokenizer:
    """The texts of one tokenizer's ids.

    Args:
        backend: a `tokenizers.Tokenizer`.
    """

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._tables: dict[bool, _Table] = {}
        self._bytes = _Bytes(backend)
        # What was decoded last and how: an output's texts are asked for one by one, and then all at once.
        self._last: tuple[tuple[int, ...], bool, list[str], str] = ((), False, [], "")

    def texts(
        self, ids: Sequence[int], prompt_ids: Sequence[int] | None, *, skip_special_tokens: bool
    ) -> Sequence[str]:
        """What each id adds to the text; empty where bytes of an unfinished character are held back. Not to be changed.

        Args:
            ids: the generated ids.
            prompt_ids: the prompt's ids, which the stream is primed with.
            skip_special_tokens: leave special tokens out.
        """
        prompt = list(prompt_ids or ())
        if not self._adds_up:
            found = [""] * len(ids)
            _Stream(self._backend, prompt, skip_special_tokens).fill(found, ids, 0, None)
            return found
        table = self._table(skip_special_tokens)
        found = list(map(table.__getitem__, ids))
        at = 0
        if not self._is_primed(prompt, skip_special_tokens):
            at = _Stream(self._backend, prompt, skip_special_tokens).fill(found, ids, 0, table)
        if self._decodes_bytes:
            rest = self._join_parts(found, ids, at)
            if at == 0 and isinstance(ids, tuple):
                self._last = (ids, skip_special_tokens, found, rest)
            return found
        while (at := _next_part(found, at)) < len(found):
            # A stream stands behind any whole token as one that is primed with that token alone.
            last = next((n for n in range(at - 1, -1, -1) if found[n]), None)
            stream = _Stream(self._backend, prompt if last is None else [ids[last]], skip_special_tokens)
            at = stream.fill(found, ids, at, table)
        return found

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """All ids at once, as the tokenizer decodes them."""
        if self._decodes_bytes:
            known_ids, skipped, found, rest = self._last
            if known_ids is ids and skipped == skip_special_tokens:
                return "".join(found) + rest
            found = list(map(self._table(skip_special_tokens).__getitem__, ids))
            rest = self._join_parts(found, ids, 0)
            return "".join(found) + rest
        text: str = self._backend.decode(list(ids), skip_special_tokens=skip_special_tokens)
        return text

    def _join_parts(self, found: list[str], ids: Sequence[int], at: int) -> str:
        """Give parts of characters in `found`, from `at` on, the text with which they are shown; what never is."""
        waiting = b""
        while (at := at if waiting else _next_part(found, at)) < len(found):
            if text := found[at]:
                waiting += self._bytes[ids[at]] if text == _PART else text.encode()
                shown = waiting.decode("utf-8", "replace")
                # A stream waits where its text ends like this, and shows all at once when it no longer does.
                waits = shown.endswith(_REPLACEMENT)
                found[at], waiting = ("", waiting) if waits else (shown, b"")
            at += 1
        return waiting.decode("utf-8", "replace")

    def _table(self, skip: bool) -> _Table:
        if skip not in self._tables:
            self._tables[skip] = _Table(self._backend, self._reference, skip)
        return self._tables[skip]

    @cached_property
    def _decoder(self) -> Mapping[str, Any]:
        decoder = self._backend.decoder
        return {} if decoder is None else dict(json.loads(decoder.__getstate__()))

    @property
    def _decodes_bytes(self) -> bool:
        return self._decoder.get("type") == "ByteLevel"

    @cached_property
    def _adds_up(self) -> bool:
        """Whether a token of whole characters adds the same text behind whatever has shown some text before it."""
        return self._decodes_bytes or (_keeps_tokens_apart(self._decoder) and bool(self._reference))

    @cached_property
    def _reference(self) -> list[int]:
        """An id to decode others behind, where a decoder treats the first token of a text as no other."""
        if self._decodes_bytes:
            return []
        for letter in "aetn":
            token_id = self._backend.token_to_id(letter)
            if token_id is not None and self._backend.decode([token_id], skip_special_tokens=False) == letter:
                return [token_id]
        return []

    def _is_primed(self, prompt: list[int], skip: bool) -> bool:
        """Whether a stream is where it is between whole characters, when it is primed with the prompt."""
        tail = ""
        for part in (prompt[-_TAIL:], prompt):
            tail = tail or self._backend.decode(part, skip_special_tokens=skip)
        return (bool(tail) or self._decodes_bytes) and not tail.endswith(_REPLACEMENT)


def _next_part(found: list[str], begin: int) -> int:
    try:
        return found.index(_PART, begin)
    except ValueError:
        return len(found)


class Alone(dict[int, str]):
    """The text of each id, decoded by itself; filled as ids are asked for.

    Args:
        vocabulary: what decodes them; the texts hold as long as its ids keep theirs.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        self._vocabulary = vocabulary

    def __missing__(self, token_id: int) -> str:
        text = self[token_id] = self._vocabulary.decode([token_id])
        return text


class _Table(dict[int, str]):
    """Text by id, filled as ids are asked for."""

    def __init__(self, backend: Any, reference: list[int], skip: bool) -> None:
        super().__init__()
        self._backend = backend
        self._reference = reference
        self._skip = skip
        self._before = len(backend.decode(reference, skip_special_tokens=skip)) if reference else 0

    def __missing__(self, token_id: int) -> str:
        try:
            text: str = self._backend.decode([*self._reference, token_id], skip_special_tokens=self._skip)[
                self._before :
            ]
        except (OverflowError, TypeError):  # no id at all; the stream knows what becomes of it
            text = _PART
        if _REPLACEMENT in text or self._is_byte(token_id):
            text = _PART
        self[token_id] = text
        return text

    def _is_byte(self, token_id: int) -> bool:
        if not self._reference:
            return False
        token: str | None = self._backend.id_to_token(token_id)
        return token is not None and len(token) == 6 and token.startswith("<0x") and token.endswith(">")


class _Bytes(dict[int, bytes]):
    """The bytes of each id of a byte-level vocabulary, filled as ids are asked for."""

    def __init__(self, backend: Any) -> None:
        super().__init__()
        self._backend = backend

    def __missing__(self, token_id: int) -> bytes:
        try:
            token = self._backend.id_to_token(token_id) or ""
        except (OverflowError, TypeError):
            token = ""
        found = self[token_id] = spelled_bytes(token)
        return found


def spelled_bytes(token: str) -> bytes:
    """The bytes that a token of a byte-level vocabulary stands for.

    One that is not spelled in its alphabet, as added tokens may be, stands for its own text.
    """
    spelled = [_BYTE_OF.get(char) for char in token]
    own = [byte for byte in spelled if byte is not None]
    return bytes(own) if len(own) == len(token) else token.encode()


def _byte_level_alphabet() -> dict[str, int]:
    """How byte-level vocabularies spell bytes: printable Latin-1 as itself, the others from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    spare = iter(range(0x100, 0x200))
    return {chr(byte if byte in printable else next(spare)): byte for byte in range(0x100)}


_BYTE_OF = _byte_level_alphabet()


class _Stream:
    """A `DecodeStream`, replaced where it loses its thread as vLLM replaces it."""

    def __init__(self, backend: Any, prompt: list[int], skip: bool) -> None:
        from tokenizers.decoders import DecodeStream

        self._make = DecodeStream
        self._backend = backend
        self._skip = skip
        self._stream = DecodeStream(ids=prompt, skip_special_tokens=skip)

    def fill(self, found: list[str], ids: Sequence[int], at: int, table: _Table | None) -> int:
        """Step through `ids` from `at`, noting each one's text, and return where the table can go on."""
        whole = False
        for number in range(at, len(ids)):
            known = _PART if table is None else table[ids[number]]
            if whole and known not in ("", _PART):
                return number
            text = self._step(ids[number])
            found[number] = text or ""
            whole = bool(text) or (whole and known is not _PART)
        return len(ids)

    def _step(self, token_id: int) -> str | None:
        try:
            text: str | None = self._stream.step(self._backend, token_id)
        except (OverflowError, TypeError):
            return None
        except Exception as error:
            if not str(error).startswith("Invalid prefix encountered"):
                raise
            self._stream = self._make(skip_special_tokens=self._skip)
            text = self._stream.step(self._backend, token_id)
        return text


def _keeps_tokens_apart(decoder: Mapping[str, Any]) -> bool:
    """Whether it only spells each token and takes at most a blank off the front, as SentencePiece-style ones do."""
    kind = decoder.get("type")
    if kind == "Metaspace":
        return True
    if kind != "Sequence":
        return False
    parts = list(decoder["decoders"])
    if parts and parts[-1]["type"] == "Strip":
        strip = parts.pop()
        if strip["start"] > 1 or strip["stop"] or strip["content"] != " ":
            return False
    if parts and parts[-1]["type"] == "Fuse":
        parts.pop()
    return all(
        part["type"] in _PER_TOKEN and (part["type"] != "Replace" or "String" in part["pattern"]) for part in parts
    )
