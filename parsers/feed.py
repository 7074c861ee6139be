"""What a parser is fed: token ids become pieces of text as in vLLM's detokenizer, and pieces become deltas."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Literal

from ..errors import InputError
from .base import Vocabulary
from .columns import Deltas, Piece, Pieces, RawDelta
from .detokenizer import Detokenizer

__all__ = [
    "Chunking",
    "Deltas",
    "Piece",
    "Pieces",
    "RawDelta",
    "chunk",
    "parse_chunking",
    "parse_chunkings",
    "pieces",
    "recut",
    "text_deltas",
    "text_pieces",
]

Kind = Literal["recorded", "whole", "tokens", "char", "random", "holdback"]
_PLAIN: Mapping[str, Kind] = {"recorded": "recorded", "whole": "whole", "char": "char"}
_NUMBERED: Mapping[str, Kind] = {"random": "random", "holdback": "holdback"}
_RANDOM_MOST = 8
"""Tokens in the largest delta of a `random` chunking."""


@dataclass(frozen=True, slots=True)
class Chunking:
    """How pieces share deltas. `number`: tokens a delta, the seed, or the characters held back."""

    kind: Kind
    number: int = 1

    def __str__(self) -> str:
        if self.kind == "tokens":
            return "token" if self.number == 1 else str(self.number)
        return f"{self.kind}:{self.number}" if self.kind in ("random", "holdback") else self.kind


def parse_chunking(text: str) -> Chunking:
    """`recorded`, `whole`, `token`, `N`, `char`, `random:SEED` or `holdback:N`. Raises InputError for anything else."""
    kind, _, number = text.strip().partition(":")
    if kind == "token" and not number:
        return Chunking("tokens")
    if kind.isascii() and kind.isdigit() and int(kind) > 0 and not number:
        return Chunking("tokens", int(kind))
    if kind in _PLAIN and ":" not in text:
        return Chunking(_PLAIN[kind])
    if kind in _NUMBERED and number.isascii() and number.isdigit():
        return Chunking(_NUMBERED[kind], int(number))
    raise InputError(
        f"{text!r} is no chunking",
        source="--chunking",
        mend="use recorded, whole, token, a number, char, random:SEED or holdback:N",
    )


def parse_chunkings(text: str) -> tuple[Chunking, ...]:
    """A comma list of chunkings, each once, in order."""
    return tuple(dict.fromkeys(parse_chunking(part) for part in text.split(",")))


def pieces(
    vocabulary: Vocabulary,
    ids: Sequence[int],
    *,
    prompt_ids: Sequence[int] | None = None,
    skip_special_tokens: bool = True,
    stop_ids: frozenset[int] = frozenset(),
    stop: Sequence[str] = (),
    include_stop: bool = False,
) -> Pieces:
    """The texts of an output's tokens, as vLLM's detokenizer makes them (v1/engine/detokenizer.py, 0.33.0).

    Bytes of an unfinished character are held back until it is whole, and lost where it never is.

    Args:
        vocabulary: the model's tokenizer. One with a `backend` (a `tokenizers.Tokenizer`) is decoded as DecodeStream
            would, one with `token_text` gives each id's text itself.
        ids: the generated ids.
        prompt_ids: the prompt's ids, which the stream is primed with; None: no prompt is known.
        skip_special_tokens: leave special tokens out of the text.
        stop_ids: ids that end a run: as the last id one keeps its id and loses its text. Empty where something else
            ended the run.
        stop: stop strings. At the first one completed the text is cut before it and later ids are dropped.
        include_stop: the request's `include_stop_str_in_output`: stop strings and stop tokens keep their text.
    """
    stopped = bool(ids) and ids[-1] in stop_ids and not include_stop
    texts = _texts(vocabulary, ids, prompt_ids, skip_special_tokens)
    if stopped:
        texts = [*texts[:-1], ""]
    cuts: dict[int, str] = {}
    if any(stop):
        texts = _cut_at_stop(texts, [text for text in stop if text], include_stop, cuts)
    return Pieces(texts, ids[: len(texts)], cuts)


def text_pieces(vocabulary: Vocabulary, text: str) -> Pieces:
    """A text, tokenized whole: the ids are the tokenizer's, the text is the text's own, unchanged."""
    ids, spans = _tokenize(vocabulary, text)
    # Tokens that share a character (its bytes) show it with the last of them; what no token covers goes to the next.
    ends = [min(end, start) for (_, end), (start, _) in pairwise(spans)]
    shown = list(accumulate((*ends, len(text)) if ids else (), max))
    if not ids:
        return Pieces([text], [None]) if text else Pieces([], [])
    return Pieces([text[begin:end] for begin, end in pairwise((0, *shown))], ids)


def text_deltas(vocabulary: Vocabulary, texts: Sequence[str]) -> Deltas:
    """Recorded text deltas with their ids: a token belongs to the delta in which its last character arrives."""
    ids, spans = _tokenize(vocabulary, "".join(texts))
    ends: list[int] = []
    at = arrived = 0
    for text in texts:
        arrived += len(text)
        while at < len(ids) and spans[at][1] <= arrived:
            at += 1
        ends.append(at)
    return Deltas(texts, ids, [*ends[:-1], len(ids)] if ends else [])


def chunk(found: Sequence[Piece], chunking: Chunking) -> Deltas:
    """Join pieces into deltas. No text and no id is lost or reordered; `recorded` has no pieces to join and raises."""
    made = Pieces.of(found)
    match chunking.kind:
        case "whole":
            return _groups(made, (len(made),))
        case "tokens" if chunking.number == 1 and made.all_tokens:
            return Deltas(made.texts, made.token_ids, source=made)
        case "tokens":
            return _groups(made, _endless(chunking.number))
        case "random":
            return _groups(made, _random_sizes(chunking.number))
        case "char":
            return Deltas.of(_characters(made))
        case "holdback":
            return Deltas.of(_held_back(made, chunking.number))
        case "recorded":
            raise ValueError("recorded deltas are given, not made")


def recut(found: Sequence[Piece], recorded: Sequence[RawDelta]) -> Deltas:
    """Deltas that group the pieces as a recording grouped its ids.

    The recording's own texts stand where they add up to the same text: they may lag behind their ids, as with stop
    strings. Where they do not (it was decoded otherwise), each delta gets the texts of its ids. Ids that are no pieces
    any more (dropped after a stop string) are left out; pieces the recording does not reach join the last delta.
    """
    made, given = Pieces.of(found), Deltas.of(recorded)
    if len(given.ids) == len(made.token_ids) and given.text == made.text:
        return given
    ends = [min(len(made), end) for end in (range(1, len(given) + 1) if given.ends is None else given.ends)]
    return _grouped(made, [*ends[:-1], len(made)] if ends else [])


def _groups(made: Pieces, sizes: Iterable[int]) -> Deltas:
    ends: list[int] = []
    at = 0
    for size in sizes:
        if at >= len(made):
            break
        at = min(len(made), at + size)
        ends.append(at)
    return _grouped(made, ends)


def _grouped(made: Pieces, ends: list[int]) -> Deltas:
    """Deltas of the pieces up to each end."""
    texts = ["".join(made.texts[begin:end]) for begin, end in pairwise((0, *ends))]
    if made.all_tokens:
        return Deltas(texts, made.token_ids, ends)
    tokens = [0, *accumulate(token_id is not None for token_id in made.ids)]
    return Deltas(texts, made.token_ids, [tokens[end] for end in ends])


def _endless(size: int) -> Iterator[int]:
    while True:
        yield size


def _random_sizes(seed: int) -> Iterator[int]:
    generator = random.Random(seed)  # noqa: S311 (a chunking has to be repeatable, not secret)
    while True:
        yield generator.randint(1, _RANDOM_MOST)


def _characters(found: Sequence[Piece]) -> Iterator[RawDelta]:
    waiting: list[int] = []
    for piece in found:
        if piece.id is not None:
            waiting.append(piece.id)
        for character in piece.text:
            yield RawDelta(character, tuple(waiting))
            waiting.clear()
    if waiting:
        yield RawDelta("", tuple(waiting))


def _held_back(found: Sequence[Piece], behind: int) -> Iterator[RawDelta]:
    held = ""
    cut = 0
    for number, piece in enumerate(found):
        held += piece.text
        cut += len(piece.cut)
        ready = len(held) if number == len(found) - 1 else max(0, len(held) + cut - behind)
        yield RawDelta(held[:ready], () if piece.id is None else (piece.id,))
        held = held[ready:]


def _cut_at_stop(texts: Sequence[str], stop: Sequence[str], include: bool, cuts: dict[int, str]) -> list[str]:
    """The texts up to the token that completes the first stop string, cut there; all of them where none does."""
    longest = max(map(len, stop))
    tail = ""
    for number, text in enumerate(texts):
        if not text:
            continue
        window = tail + text
        ends = [(at + len(one), at) for one in stop if (at := _find_new(window, one, len(text))) >= 0]
        if ends:
            end, begin = min(ends, key=lambda pair: pair[0])
            kept = list(texts[: number + 1])
            _shorten(kept, len(window) - (end if include else begin), cuts)
            return kept
        tail = window[max(0, len(window) - longest + 1) :]
    return list(texts)


def _find_new(window: str, text: str, new: int) -> int:
    return window.find(text, max(0, len(window) - new + 1 - len(text)))


def _shorten(texts: list[str], surplus: int, cuts: dict[int, str]) -> None:
    for at in range(len(texts) - 1, -1, -1):
        if surplus <= 0:
            return
        text = texts[at]
        rest = max(0, len(text) - surplus)
        texts[at], cuts[at] = text[:rest], text[rest:]
        surplus -= len(text) - rest


def _texts(vocabulary: Vocabulary, ids: Sequence[int], prompt_ids: Sequence[int] | None, skip: bool) -> Sequence[str]:
    token_text = getattr(vocabulary, "token_text", None)
    if token_text is not None:
        return list(map(token_text, ids))
    backend = getattr(vocabulary, "backend", None)
    if backend is not None:
        detokenizer = getattr(vocabulary, "detokenizer", None) or Detokenizer(backend)
        return detokenizer.texts(ids, prompt_ids, skip_special_tokens=skip)
    return list(_window_texts(vocabulary, ids, prompt_ids, skip))


def _window_texts(
    vocabulary: Vocabulary, ids: Sequence[int], prompt_ids: Sequence[int] | None, skip: bool
) -> Iterator[str]:
    """The same for a tokenizer without a stream: decode a small window with and without the new token."""
    window = list(prompt_ids or ())[-5:]
    known = vocabulary.decode(window, skip_special_tokens=skip)
    for token_id in ids:
        window.append(token_id)
        text = vocabulary.decode(window, skip_special_tokens=skip)
        if len(text) <= len(known) or text.endswith("�"):
            yield ""
            continue
        yield text[len(known) :]
        window = [token_id]
        known = vocabulary.decode(window, skip_special_tokens=skip)


def _tokenize(vocabulary: Vocabulary, text: str) -> tuple[list[int], list[tuple[int, int]]]:
    """Ids of a text and, for each, the characters of the text it stands for."""
    backend = getattr(vocabulary, "backend", None)
    if backend is not None:
        encoding = backend.encode(text, add_special_tokens=False)
        return list(encoding.ids), list(encoding.offsets)
    ids = vocabulary.encode(text)
    ends = [min(end, len(text)) for end in accumulate(map(len, _texts(vocabulary, ids, None, False)))]
    return ids, list(pairwise((0, *ends)))
