"""What a parser is fed: token ids become pieces of text as in vLLM's detokenizer, and pieces become deltas."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Literal, NamedTuple

from ..errors import InputError
from .base import Vocabulary

Kind = Literal["recorded", "whole", "tokens", "char", "random", "holdback"]
_PLAIN: Mapping[str, Kind] = {"recorded": "recorded", "whole": "whole", "char": "char"}
_NUMBERED: Mapping[str, Kind] = {"random": "random", "holdback": "holdback"}
_RANDOM_MOST = 8
"""Tokens in the largest delta of a `random` chunking."""


@dataclass(frozen=True, slots=True)
class Piece:
    """The text that one token brought, empty where none is shown yet. `id` is None for text without a token.

    `cut` is what a stop string took off its end: never sent, but it was there while the server held text back.
    """

    text: str
    id: int | None
    cut: str = ""


class RawDelta(NamedTuple):
    """One message of the engine: new text and new token ids, either may be empty."""

    text: str
    ids: tuple[int, ...] = ()


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
) -> list[Piece]:
    """The texts of an output's tokens, as vLLM's detokenizer makes them (v1/engine/detokenizer.py, 0.33.0).

    Bytes of an unfinished character are held back until it is whole, and lost where it never is.

    Args:
        vocabulary: the model's tokenizer. One with a `backend` (a `tokenizers.Tokenizer`) is decoded by DecodeStream,
            one with `token_text` gives each id's text itself.
        ids: the generated ids.
        prompt_ids: the prompt's ids, which the stream is primed with; None: no prompt is known.
        skip_special_tokens: leave special tokens out of the text.
        stop_ids: ids that end a run: as the last id one keeps its id and loses its text. Empty where something else
            ended the run.
        stop: stop strings. At the first one completed the text is cut before it and later ids are dropped.
        include_stop: the request's `include_stop_str_in_output`: stop strings and stop tokens keep their text.
    """
    stopped = bool(ids) and ids[-1] in stop_ids and not include_stop
    shown = ids[:-1] if stopped else ids
    texts = _texts(vocabulary, shown, prompt_ids, skip_special_tokens)
    found, cut = _cut_at_stop(map(Piece, texts, shown), stop, include_stop)
    if stopped and not cut:
        found.append(Piece("", ids[-1]))
    return found


def text_pieces(vocabulary: Vocabulary, text: str) -> list[Piece]:
    """A text, tokenized whole: the ids are the tokenizer's, the text is the text's own, unchanged."""
    ids, spans = _tokenize(vocabulary, text)
    # Tokens that share a character (its bytes) show it with the last of them; what no token covers goes to the next.
    ends = [min(end, start) for (_, end), (start, _) in pairwise(spans)]
    shown = list(accumulate((*ends, len(text)) if ids else (), max))
    found = [Piece(text[begin:end], token_id) for begin, end, token_id in zip((0, *shown), shown, ids, strict=False)]
    return found or ([Piece(text, None)] if text else [])


def text_deltas(vocabulary: Vocabulary, texts: Sequence[str]) -> list[RawDelta]:
    """Recorded text deltas with their ids: a token belongs to the delta in which its last character arrives."""
    ids, spans = _tokenize(vocabulary, "".join(texts))
    deltas = []
    at = arrived = 0
    for number, text in enumerate(texts):
        arrived += len(text)
        first = at
        last = number == len(texts) - 1
        while at < len(ids) and (last or spans[at][1] <= arrived):
            at += 1
        deltas.append(RawDelta(text, tuple(ids[first:at])))
    return deltas


def chunk(found: Sequence[Piece], chunking: Chunking) -> Iterator[RawDelta]:
    """Join pieces into deltas. No text and no id is lost or reordered; `recorded` has no pieces to join and raises."""
    match chunking.kind:
        case "whole":
            yield from _groups(found, (len(found),))
        case "tokens":
            yield from _groups(found, _endless(chunking.number))
        case "random":
            yield from _groups(found, _random_sizes(chunking.number))
        case "char":
            yield from _characters(found)
        case "holdback":
            yield from _held_back(found, chunking.number)
        case "recorded":
            raise ValueError("recorded deltas are given, not made")


def recut(found: Sequence[Piece], recorded: Sequence[RawDelta]) -> list[RawDelta]:
    """Deltas that group the pieces as a recording grouped its ids.

    The recording's own texts stand where they add up to the same text: they may lag behind their ids, as with stop
    strings. Where they do not (it was decoded otherwise), each delta gets the texts of its ids. Ids that are no pieces
    any more (dropped after a stop string) are left out; pieces the recording does not reach join the last delta.
    """
    ids = [piece.id for piece in found if piece.id is not None]
    own = sum(len(delta.ids) for delta in recorded) == len(ids)
    if own and "".join(delta.text for delta in recorded) == "".join(piece.text for piece in found):
        return list(recorded)
    deltas = []
    at = 0
    for number, delta in enumerate(recorded):
        until = len(found) if number == len(recorded) - 1 else min(len(found), at + len(delta.ids))
        deltas.append(_join(found[at:until]))
        at = until
    return deltas


def _join(group: Sequence[Piece]) -> RawDelta:
    return RawDelta("".join(piece.text for piece in group), tuple(piece.id for piece in group if piece.id is not None))


def _groups(found: Sequence[Piece], sizes: Iterable[int]) -> Iterator[RawDelta]:
    at = 0
    for size in sizes:
        if at >= len(found):
            return
        yield _join(found[at : at + size])
        at += size


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


def _cut_at_stop(found: Iterable[Piece], stop: Sequence[str], include: bool) -> tuple[list[Piece], bool]:
    """Pieces up to the token that completes the first stop string, their text cut there, and whether one did."""
    longest = max(map(len, stop), default=0)
    kept: list[Piece] = []
    tail = ""
    for piece in found:
        kept.append(piece)
        if not piece.text:
            continue
        window = tail + piece.text
        ends = [(at + len(text), at) for text in stop if (at := _find_new(window, text, len(piece.text))) >= 0]
        if ends:
            end, begin = min(ends, key=lambda pair: pair[0])
            return _shorten(kept, len(window) - (end if include else begin)), True
        tail = window[max(0, len(window) - longest + 1) :]
    return kept, False


def _find_new(window: str, text: str, new: int) -> int:
    return window.find(text, max(0, len(window) - new + 1 - len(text)))


def _shorten(kept: list[Piece], surplus: int) -> list[Piece]:
    for at in range(len(kept) - 1, -1, -1):
        if surplus <= 0:
            break
        cut = min(surplus, len(kept[at].text))
        rest = len(kept[at].text) - cut
        kept[at] = Piece(kept[at].text[:rest], kept[at].id, kept[at].text[rest:])
        surplus -= cut
    return kept


def _texts(vocabulary: Vocabulary, ids: Sequence[int], prompt_ids: Sequence[int] | None, skip: bool) -> Iterator[str]:
    token_text = getattr(vocabulary, "token_text", None)
    if token_text is not None:
        return map(token_text, ids)
    backend = getattr(vocabulary, "backend", None)
    if backend is not None:
        return _stream_texts(backend, ids, prompt_ids, skip)
    return _window_texts(vocabulary, ids, prompt_ids, skip)


def _stream_texts(backend: Any, ids: Sequence[int], prompt_ids: Sequence[int] | None, skip: bool) -> Iterator[str]:
    """`FastIncrementalDetokenizer`: one DecodeStream, primed with the prompt, replaced where it loses its thread."""
    from tokenizers.decoders import DecodeStream

    stream = DecodeStream(ids=list(prompt_ids or ()), skip_special_tokens=skip)
    for token_id in ids:
        try:
            text = stream.step(backend, token_id)
        except (OverflowError, TypeError):
            text = None
        except Exception as error:
            if not str(error).startswith("Invalid prefix encountered"):
                raise
            stream = DecodeStream(skip_special_tokens=skip)
            text = stream.step(backend, token_id)
        yield text or ""


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
