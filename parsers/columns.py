"""What a parser is fed, held in columns: a long output has no object for each of its tokens."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import NamedTuple, cast, overload

_NONE: Mapping[int, str] = MappingProxyType({})


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
    ids: Sequence[int] = ()


def places(ids: Sequence[int], wanted: frozenset[int]) -> list[int]:
    """Where any of these ids stands, in order."""
    found: list[int] = []
    for token_id in wanted.intersection(ids):
        place = -1
        with suppress(ValueError):
            while True:
                place = ids.index(token_id, place + 1)
                found.append(place)
    return sorted(found)


class Pieces(Sequence[Piece]):
    """The pieces of one output; equal to any sequence of the same ones.

    Args:
        texts: the text of each.
        ids: the id of each.
        cuts: `Piece.cut` of those that have one, by place.
    """

    def __init__(self, texts: Sequence[str], ids: Sequence[int | None], cuts: Mapping[int, str] = _NONE) -> None:
        self.texts = texts
        self.ids = ids
        self.cuts = cuts

    @classmethod
    def of(cls, found: Iterable[Piece]) -> Pieces:
        if isinstance(found, Pieces):
            return found
        each = list(found)
        cuts = {number: piece.cut for number, piece in enumerate(each) if piece.cut}
        return cls([piece.text for piece in each], [piece.id for piece in each], cuts)

    @cached_property
    def text(self) -> str:
        """All texts."""
        return "".join(self.texts)

    @cached_property
    def token_ids(self) -> Sequence[int]:
        """The ids of those that have one."""
        if None in self.ids:
            return [one for one in self.ids if one is not None]
        return cast(Sequence[int], self.ids)

    @cached_property
    def ends(self) -> list[int]:
        """Where each piece ends, in characters."""
        return list(accumulate(map(len, self.texts)))

    @cached_property
    def all_tokens(self) -> bool:
        """Whether every piece has an id."""
        return len(self.token_ids) == len(self.ids)

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, place: int) -> Piece: ...
    @overload
    def __getitem__(self, place: slice) -> Pieces: ...
    def __getitem__(self, place: int | slice) -> Piece | Pieces:
        if isinstance(place, slice):
            return Pieces.of([self[number] for number in range(*place.indices(len(self)))])
        at = range(len(self))[place]
        return Piece(self.texts[at], self.ids[at], self.cuts.get(at, ""))

    def __iter__(self) -> Iterator[Piece]:
        cuts = self.cuts
        for number, (text, token_id) in enumerate(zip(self.texts, self.ids, strict=True)):
            yield Piece(text, token_id, cuts.get(number, ""))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


class Deltas(Sequence[RawDelta]):
    """The deltas of one stream; equal to any sequence of the same ones.

    Args:
        texts: the text of each.
        ids: the ids of all, in order.
        ends: how many of the ids have come by the end of each delta; None: one each.
        source: the pieces they are, where each is one.
    """

    def __init__(
        self,
        texts: Sequence[str],
        ids: Sequence[int],
        ends: Sequence[int] | None = None,
        *,
        source: Pieces | None = None,
    ) -> None:
        self.texts = texts
        self.ids = ids
        self.ends = ends
        self._source = source

    @classmethod
    def of(cls, found: Iterable[tuple[str, Sequence[int]]]) -> Deltas:
        if isinstance(found, Deltas):
            return found
        texts: list[str] = []
        ids: list[int] = []
        ends: list[int] = []
        for text, its in found:
            texts.append(text)
            ids.extend(its)
            ends.append(len(ids))
        return cls(texts, ids, ends)

    @cached_property
    def text(self) -> str:
        """All texts."""
        return "".join(self.texts) if self._source is None else self._source.text

    def between(self, begin: int, end: int) -> str:
        """The text of the deltas from `begin` up to, not with, `end`."""
        if end - begin == len(self.texts):
            return self.text
        return "".join(self.texts[begin:end])

    def ids_between(self, begin: int, end: int) -> Sequence[int]:
        """The ids of the deltas from `begin` up to, not with, `end`."""
        if self.ends is None:
            return self.ids[begin:end]
        return self.ids[self.ends[begin - 1] if begin else 0 : self.ends[end - 1] if end else 0]

    def holding(self, wanted: frozenset[int]) -> list[int]:
        """The numbers of the deltas that bring any of these ids, in order."""
        found = places(self.ids, wanted)
        if self.ends is None:
            return found
        return sorted({bisect_right(self.ends, place) for place in found})

    def at_character(self, place: int) -> int:
        """The number of the delta that brings the character at `place` of `text`."""
        return bisect_right(self._text_ends, place)

    @cached_property
    def _text_ends(self) -> list[int]:
        return list(accumulate(map(len, self.texts))) if self._source is None else self._source.ends

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, place: int) -> RawDelta: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[RawDelta]: ...
    def __getitem__(self, place: int | slice) -> RawDelta | Sequence[RawDelta]:
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(len(self)))]
        at = range(len(self))[place]
        if self.ends is None:
            return RawDelta(self.texts[at], (self.ids[at],))
        return RawDelta(self.texts[at], tuple(self.ids[self.ends[at - 1] if at else 0 : self.ends[at]]))

    def __iter__(self) -> Iterator[RawDelta]:
        if self.ends is None:
            for text, token_id in zip(self.texts, self.ids, strict=True):
                yield RawDelta(text, (token_id,))
        else:
            for text, (begin, end) in zip(self.texts, pairwise((0, *self.ends)), strict=True):
                yield RawDelta(text, tuple(self.ids[begin:end]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]
