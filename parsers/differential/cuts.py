"""The ways in which one output reaches a parser: one token a delta, several, all at once, text late, text alone."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat

from ..feed import Chunking, Piece, chunk
from .case import Stream


def cuts(rng: random.Random, pieces: Sequence[Piece], stop: Sequence[str]) -> Iterator[Stream]:
    """The output as deltas: 1, 3, 7 tokens and all at once, at random, with text held back, with text alone."""
    behind = max(map(len, stop), default=1) - 1
    for size in (1, 3, 7, max(1, len(pieces))):
        yield _finish(rng, _late(_groups(pieces, repeat(size)), behind))
    groups = _groups(pieces, (rng.choice((1, 1, 2, 5)) for _ in pieces))
    yield _finish(rng, _late(groups, behind))
    yield _finish(rng, _late(groups, rng.choice((1, 4, 12))))
    yield _finish(rng, [*chunk(pieces, Chunking("holdback", rng.choice((0, 1, 5, 20))))])
    if rng.random() < 0.2:
        yield _finish(rng, [(text, ()) for text, _ in _late(groups, 0)])
    if rng.random() < 0.1:
        yield _finish(rng, [*chunk(pieces, Chunking("char"))])
    if rng.random() < 0.2:
        yield _finish(rng, _scrambled(rng, pieces))


def _scrambled(rng: random.Random, pieces: Sequence[Piece]) -> list[tuple[str, tuple[int, ...]]]:
    """Text and ids cut apart from each other, so that either may be late by any amount."""
    [(text, ids)] = _late([pieces], 0)
    deltas: list[tuple[str, tuple[int, ...]]] = []
    while text or ids:
        characters, tokens = rng.choice((0, 0, 1, 3, 8, 20)), rng.choice((0, 0, 1, 2, 4))
        deltas.append((text[:characters], ids[:tokens]))
        text, ids = text[characters:], ids[tokens:]
    return deltas


def _finish(rng: random.Random, deltas: Sequence[tuple[str, tuple[int, ...]]]) -> Stream:
    if not deltas or rng.random() < 0.1:
        return (*deltas, ("", ()))
    return tuple((text, ids) for text, ids in deltas)


def _groups(pieces: Sequence[Piece], sizes: Iterable[int]) -> list[Sequence[Piece]]:
    groups: list[Sequence[Piece]] = []
    at = 0
    for size in sizes:
        if at >= len(pieces):
            break
        groups.append(pieces[at : at + size])
        at += size
    return groups


def _late(groups: Sequence[Sequence[Piece]], behind: int) -> list[tuple[str, tuple[int, ...]]]:
    """One delta a group: ids at once, text `behind` characters late, the rest with the last: what stop strings cause.

    What a stop string cut off counts: it was there while the server held text back.
    """
    deltas = []
    text, sent, made = "", 0, 0
    for number, group in enumerate(groups):
        text += "".join(piece.text for piece in group)
        made += sum(len(piece.text) + len(piece.cut) for piece in group)
        until = len(text) if number == len(groups) - 1 else max(sent, min(len(text), made - behind))
        deltas.append((text[sent:until], tuple(piece.id for piece in group if piece.id is not None)))
        sent = until
    return deltas
