"""Which field each character of an output went to: what a parser returned, laid over what it was fed.

A parser returns two texts and not where they came from. It takes markers away, strips white space, holds text back, may
drop some and may write some of its own; what it keeps stays in order within each field.
"""

from __future__ import annotations

import heapq
import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, groupby, pairwise
from operator import not_
from typing import Literal, NamedTuple

from ..parsers.markers import any_of

Kind = Literal["reasoning", "content", "marker", "lost"]

_PATIENCE = 4000
"""Steps, besides some for each place of change, after which the way that has come furthest is followed to its end."""
_PROBES = (16, 4, 1)
"""Characters by which text is found again after some was dropped or written."""
_HAIR = 1e-3
"""The cost of what parsers do on purpose: less than any character that is lost."""
_TORN = 2.0
"""The cost of a loss that begins or ends where no known text stands: else words would be pieced together."""
_OWN = 4.0
"""How many characters a parser drops as readily as it writes one of its own."""
_SPACE = re.compile(r"\s+")


class Span(NamedTuple):
    """A run of characters that fared alike. `marker` is all that is taken away on purpose: markers, labels, white space
    beside them; `lost` is text that reached no field.
    """

    kind: Kind
    length: int


@dataclass(frozen=True, slots=True)
class Wording:
    """The texts a parser is known to treat apart.

    Args:
        start, end: its markers.
        removed: further texts it may take away; `added`: those it may write.
        calls: openings of tool calls; text behind one may be `taken` out by the parser itself.
    """

    start: tuple[str, ...] = ()
    end: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    takes_calls: bool = False


@dataclass(frozen=True, slots=True)
class _Way:
    """One explanation of the text up to `at`: what of each field it has used up, and the step that led here."""

    at: int
    reasoning: int
    content: int
    cost: float
    kind: Kind | None = None
    before: _Way | None = None


def align(
    text: str, reasoning: str | None, content: str | None, wording: Wording, breaks: Iterable[int] = ()
) -> list[Span]:
    """Lay reasoning and content over the text they were made from.

    Args:
        text: the output as the parser was fed it.
        reasoning, content: what it returned; None is as good as empty.
        wording: the texts it treats apart.
        breaks: places in `text` (characters) where a field may change although no known text stands there: where a
            token was that shows none.

    Returns:
        Spans of one character or more that cover the text once, in order: the explanation that loses the fewest
        characters and has the parser write the fewest of its own, the best of those tried where it took too long.
    """
    if not text:
        return []
    return _Alignment(text, reasoning or "", content or "", wording, breaks).best()


def by_token(
    spans: Iterable[Span], texts: Sequence[str], silent: frozenset[int] = frozenset()
) -> tuple[list[Span], dict[int, list[Span]]]:
    """The same in tokens.

    Args:
        spans: of characters.
        texts: what each token shows, together the text.
        silent: places of tokens that show nothing by themselves (a special token that decoding skips). Another token
            without text is a part of the next one: bytes of its first character.

    Returns:
        Spans whose lengths are tokens, every token in one of them; and, by their places, the spans of characters of
        those tokens that have a part in more than one: such a token counts where most of it went.
    """
    ends = list(accumulate(map(len, texts)))
    kinds: list[Kind | None] = [None] * len(texts)
    parts: dict[int, list[Span]] = {}
    at = 0
    for kind, length in spans:
        first, last = bisect_right(ends, at), bisect_left(ends, at + length)
        kinds[first : last + 1] = [kind] * (last + 1 - first)
        for place in {first, last}:
            begin, end = ends[place] - len(texts[place]), ends[place]
            if begin < at or end > at + length:
                parts.setdefault(place, []).append(Span(kind, min(end, at + length) - max(begin, at)))
        at += length
    for place, found in parts.items():
        kinds[place] = max(found, key=lambda part: part.length).kind
    for place in reversed([place for place, text in enumerate(texts) if not text]):
        if place in silent:
            kinds[place] = "marker"
            continue
        after = next((one for one in range(place + 1, len(texts)) if one not in silent or texts[one]), None)
        kinds[place] = kinds[after] if after is not None else "lost"
    runs = [Span(kind, len(list(run))) for kind, run in groupby(kinds) if kind is not None]
    return runs, dict(sorted(parts.items()))


class _Alignment:
    """The cheapest way from the text's start to its end: A*, so that what is plain is found at once."""

    def __init__(self, text: str, reasoning: str, content: str, wording: Wording, breaks: Iterable[int]) -> None:
        self._text = text
        self._fields = (reasoning, content)
        self._added = tuple(one for one in wording.added if one)
        self._known = dict(_found(text, (*wording.start, *wording.end, *wording.removed)))
        calls = [begin for begin, _ in _found(text, wording.calls)]
        self._call = min(calls, default=len(text)) if wording.takes_calls else len(text)
        edges = {place for span in self._known.items() for place in span}
        self._breaks = sorted({*edges, *calls, *(place for place in breaks if 0 < place < len(text)), len(text)})
        self._break_set = {0, *self._breaks}
        ends = set(wording.end)
        self._sides = [(end, text[begin:end] in ends) for begin, end in self._known.items()]
        self._side_places = [end for end, _ in self._sides]
        self._weights = [_weights(one) for one in (*self._fields, text)]
        self._needed = self._needs_a_field()
        self._open: list[tuple[float, float, int, _Way]] = []
        self._reached: dict[tuple[int, int, int], float] = {}
        self._number = 0

    def best(self) -> list[Span]:
        self._offer(_Way(0, 0, 0, 0.0))
        hurry = False
        tried = 0
        while True:
            *_, way = heapq.heappop(self._open)
            if self._reached[way.at, way.reasoning, way.content] < way.cost:
                continue
            if way.at == len(self._text) and (hurry or not self._rest(way)):
                return _spans(way)
            tried += 1
            if tried == min(_PATIENCE + 4 * len(self._breaks), 3 * _PATIENCE):
                hurry = True
                self._open = [(-one.at, one.cost, number, one) for _, _, number, one in self._open]
                heapq.heapify(self._open)
            for found in self._steps(way):
                self._offer(found, hurry=hurry)

    def _offer(self, way: _Way, *, hurry: bool = False) -> None:
        """Take a way up, unless its place was reached more cheaply. In a hurry the furthest goes first."""
        key = (way.at, way.reasoning, way.content)
        if way.cost >= self._reached.get(key, math.inf):
            return
        self._reached[key] = way.cost
        self._number += 1
        rank = (-way.at, way.cost) if hurry else (way.cost + self._rest(way), -way.at - way.reasoning)
        heapq.heappush(self._open, (*rank, self._number, way))

    def _rest(self, way: _Way) -> float:
        """What the way from here costs at least: text without room in a field, or fields without text to fill them."""
        left = sum(self._weigh(number, self._used(way, number)) for number in (0, 1))
        if way.at == len(self._text):
            return _OWN * self._unwritten(way)
        needed = self._needed[-1] - self._needed[way.at]
        lost = max(0, needed - left)
        return float(lost or (0 if self._added else _OWN * max(0, left - self._weigh(2, way.at))))

    def _unwritten(self, way: _Way) -> int:
        """Characters of the fields that nothing explains, once the text has ended."""
        left = 0
        for number in (0, 1):
            rest = self._fields[number][self._used(way, number) :]
            for added in self._added:
                rest = rest.replace(added, "", 1)
            left += len(_SPACE.sub("", rest))
        return left

    def _steps(self, way: _Way) -> Iterator[_Way]:
        at = way.at
        if at == len(self._text):
            left = _OWN * self._unwritten(way)
            yield replace(way, reasoning=len(self._fields[0]), content=len(self._fields[1]), cost=way.cost + left)
            return
        stop = self._breaks[bisect_right(self._breaks, at)]
        reached = False
        for number in (0, 1):
            run = _common(self._text, at, stop, self._fields[number], self._used(way, number))
            if run:
                yield self._taken(way, number, run)
            reached |= at + run == stop
        if at in self._known:
            yield _Way(self._known[at], way.reasoning, way.content, way.cost + _HAIR, "marker", way)
        space = _SPACE.match(self._text, at, stop)
        if space is not None:
            yield _Way(space.end(), way.reasoning, way.content, way.cost + _HAIR, "marker", way)
        if not reached:
            yield from self._dropped(way, stop)
        elif at not in self._known:
            yield self._lost(way, stop)
        yield from self._own_text(way, stop)

    def _taken(self, way: _Way, number: int, run: int) -> _Way:
        kind: Kind = "content" if number else "reasoning"
        cost = way.cost + (_HAIR / 2 if way.kind not in (kind, None) else 0) + self._odd(way.at, number)
        cost += _TORN if way.kind == "lost" and way.at not in self._break_set else 0
        used = [way.reasoning, way.content]
        used[number] += run
        return _Way(way.at + run, used[0], used[1], cost, kind, way)

    def _odd(self, at: int, number: int) -> float:
        """A little for content behind a start marker and reasoning behind an end marker: it settles ties."""
        place = bisect_right(self._side_places, at) - 1
        if place < 0:
            return 0.0
        ended = self._sides[place][1]
        return 0.0 if ended == bool(number) else _HAIR / 4

    def _dropped(self, way: _Way, stop: int) -> Iterator[_Way]:
        """Some text is in no field: as far as either goes on again, and at most to the next place of change."""
        ends = {stop}
        for number in (0, 1):
            field, used = self._fields[number], self._used(way, number)
            if field[used : used + 1].strip():
                found = (self._text.find(field[used : used + size], way.at + 1, stop + size - 1) for size in _PROBES)
                ends.update(place for place in found if place > 0)
        for end in sorted(ends):
            yield self._lost(way, end)

    def _lost(self, way: _Way, end: int) -> _Way:
        weight = self._weigh(2, way.at, end)
        taken_out = way.at >= self._call or not weight
        cost = way.cost + (_HAIR if taken_out else weight + _HAIR)
        cost += _TORN if way.kind != "lost" and way.at not in self._break_set else 0
        return _Way(end, way.reasoning, way.content, cost, "marker" if taken_out else "lost", way)

    def _own_text(self, way: _Way, stop: int) -> Iterator[_Way]:
        """The parser writes something that the output does not hold."""
        for number in (0, 1):
            for size, cost in self._own(way, number, stop):
                used = [way.reasoning, way.content]
                used[number] += size
                yield _Way(way.at, used[0], used[1], way.cost + cost, way.kind, way)

    def _own(self, way: _Way, number: int, stop: int) -> Iterator[tuple[int, float]]:
        """How many characters at the front of a field's rest may be the parser's own, and what it costs to say so."""
        field, used = self._fields[number], self._used(way, number)
        for added in self._added:
            if field.startswith(added, used):
                yield len(added), _HAIR
        space = _SPACE.match(field, used)
        if space is not None:
            yield space.end() - used, _HAIR
        wanted = self._text[way.at : min(stop, way.at + _PROBES[0])]
        if wanted.strip() and not field.startswith(wanted, used):
            place = field.find(wanted, used)
            if place > used:
                yield place - used, _OWN * self._weigh(number, used, place) + _TORN

    def _needs_a_field(self) -> list[int]:
        """Up to each place of the text, characters that are lost where no field holds them."""
        flags = bytearray(_solid(self._text))
        for begin, end in self._known.items():
            flags[begin:end] = bytes(end - begin)
        flags[self._call :] = bytes(len(flags) - self._call)
        return list(accumulate(flags, initial=0))

    def _weigh(self, which: int, begin: int, end: int = -1) -> int:
        """Characters but for white space: 0 of the reasoning, 1 of the content, 2 of the text."""
        return self._weights[which][end] - self._weights[which][begin]

    @staticmethod
    def _used(way: _Way, number: int) -> int:
        return way.content if number else way.reasoning


@lru_cache(maxsize=32)
def _weights(text: str) -> list[int]:
    """Up to each place, the characters that are no white space. Parsers of one output return few different texts."""
    return list(accumulate(_solid(text), initial=0))


def _solid(text: str) -> bytes:
    """For each character 1, 0 for white space."""
    return bytes(map(not_, map(str.isspace, text)))


def _found(text: str, wanted: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Where any of these texts stands, the longest at each place: begin and end."""
    texts = [one for one in wanted if one]
    if texts:
        for match in any_of(texts).finditer(text):
            yield match.span()


def _common(text: str, at: int, stop: int, field: str, used: int) -> int:
    """How many characters of `text` from `at`, up to `stop`, stand at `used` of the field too."""
    size = min(stop - at, len(field) - used)
    if text.startswith(field[used : used + size], at):
        return size
    low, high = 0, size
    while high - low > 1:
        middle = (low + high) // 2
        if text.startswith(field[used + low : used + middle], at + low):
            low = middle
        else:
            high = middle
    return low


def _spans(last: _Way) -> list[Span]:
    """The steps that led to the last place, equal neighbours joined."""
    steps: list[_Way] = []
    way: _Way | None = last
    while way is not None:
        steps.append(way)
        way = way.before
    steps.reverse()
    found: list[Span] = []
    for before, after in pairwise(steps):
        if after.at == before.at or after.kind is None:
            continue
        length = after.at - before.at
        if found and found[-1].kind == after.kind:
            found[-1] = Span(after.kind, found[-1].length + length)
        else:
            found.append(Span(after.kind, length))
    return found
