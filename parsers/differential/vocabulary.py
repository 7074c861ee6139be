"""A byte-level vocabulary written by hand, so that a test says exactly which token holds which bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Spec:
    """A tokenizer: id i is byte i below 256, then `pieces`, then `markers`.

    Attributes:
        pieces: ordinary tokens, text or the bytes of what is no whole text. No single byte, no doubles.
        markers: added tokens and how they are flagged: `plain`, `flagged` (decoding may skip it) or `declared`
            (flagged, and among what transformers calls `all_special_tokens`).
        fixed: ids and texts that stand for whatever else has these ids, as in the vocabulary of one model. The other
            side is not told of them: they are for parsers that ask no tokenizer.
        placed: further ordinary tokens, at ids of their own behind all others.
        printable_first: byte tokens stand in tiktoken's order, not by value: those that are shown as themselves first.
    """

    pieces: tuple[str | bytes, ...] = ()
    markers: tuple[tuple[str, str], ...] = ()
    chat_template: str | None = None
    init_kwargs: Mapping[str, Any] = field(default_factory=dict)
    fixed: tuple[tuple[int, str], ...] = ()
    placed: tuple[tuple[int, str], ...] = ()
    printable_first: bool = False

    def to_json(self) -> dict[str, Any]:
        """The description that the other interpreter builds the same tokenizer from."""
        return {
            "pieces": [list(piece) if isinstance(piece, bytes) else piece for piece in self.pieces],
            "markers": [list(marker) for marker in self.markers],
            "chat_template": self.chat_template,
            "init_kwargs": dict(self.init_kwargs),
            "placed": [list(token) for token in self.placed],
            "printable_first": self.printable_first,
        }


def _byte_spellings() -> list[str]:
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


class SpecVocabulary:
    """`Vocabulary` over a `Spec`, with what tests need on top: ids of texts, and texts as a stream shows them."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        spelling = _byte_spellings()
        order = sorted(range(256), key=lambda byte: spelling[byte] != chr(byte)) if spec.printable_first else range(256)
        self._bytes: list[bytes] = [bytes([byte]) for byte in order]
        self._bytes += [piece if isinstance(piece, bytes) else piece.encode() for piece in spec.pieces]
        spelled = ["".join(spelling[byte] for byte in raw) for raw in self._bytes]
        behind = len(spelled) + len(spec.placed)
        self.markers: dict[str, int] = {text: behind + place for place, (text, _) in enumerate(spec.markers)}
        placed = [(text.encode(), token_id) for token_id, text in spec.placed]
        self._vocab = {text: token_id for token_id, text in enumerate(spelled)} | self.markers
        self._vocab |= {"".join(spelling[byte] for byte in raw): token_id for raw, token_id in placed}
        if len(self._vocab) != behind + len(self.markers):
            raise ValueError("a piece or marker stands twice")
        fixed = [(text.encode(), token_id) for token_id, text in spec.fixed]
        own = [*((raw, token_id) for token_id, raw in enumerate(self._bytes)), *placed]
        self._pieces = [entry for group in (fixed, own) for entry in sorted(group, key=lambda entry: -len(entry[0]))]
        marked = [(text.encode(), token_id) for text, token_id in self.markers.items()]
        self._raw = {token_id: raw for raw, token_id in (*own, *marked, *fixed)}

    @property
    def vocab(self) -> Mapping[str, int]:
        return self._vocab

    @property
    def special_ids(self) -> frozenset[int]:
        return frozenset(self.markers[text] for text, flag in self.spec.markers if flag != "plain")

    @property
    def special_tokens(self) -> Mapping[str, int]:
        return {text: self.markers[text] for text, flag in self.spec.markers if flag == "declared"}

    @property
    def chat_template(self) -> str | None:
        return self.spec.chat_template

    @property
    def init_kwargs(self) -> Mapping[str, Any]:
        return self.spec.init_kwargs

    def encode(self, text: str) -> list[int]:
        """Markers become their token; the rest is cut greedily, longest piece first."""
        at = min(((text.find(marker), -len(marker), marker) for marker in self.markers if marker in text), default=None)
        if at is not None:
            start, _, marker = at
            return [*self.spell(text[:start]), self.markers[marker], *self.encode(text[start + len(marker) :])]
        return self.spell(text)

    def spell(self, text: str) -> list[int]:
        """The ids of `text` without any marker token: a marker in it is spelled by ordinary tokens."""
        raw, ids = text.encode(), []
        while raw:
            piece, token_id = next(entry for entry in self._pieces if raw.startswith(entry[0]))
            ids.append(token_id)
            raw = raw[len(piece) :]
        return ids

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        hidden = self.special_ids if skip_special_tokens else frozenset()
        return b"".join(self._raw[token_id] for token_id in ids if token_id not in hidden).decode(errors="replace")

    def texts(self, ids: Iterable[int], *, hidden: frozenset[int] = frozenset()) -> list[str]:
        """What each id adds to a stream: an unfinished character waits for its end; `hidden` ids add nothing."""
        texts, waiting = [], b""
        for token_id in ids:
            waiting += b"" if token_id in hidden else self._raw[token_id]
            text = waiting.decode(errors="replace")
            if text.endswith("\ufffd") and len(waiting) < 8:
                text = ""
            else:
                waiting = b""
            texts.append(text)
        return texts
