"""Token ids and text side by side: cuts a delta at its marker tokens, also where text arrives later than its ids.

Models vllm/parser/engine/token_id_scanner.py (0.33.0, unchanged from 0.32.0).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..columns import places
from .engine_grammar import DROP


@dataclass(frozen=True, slots=True)
class Words:
    """Text between markers.

    Attributes:
        tokens: the texts of its tokens, each decoded alone.
        count: its number of tokens; more or fewer than `tokens` where text and ids did not arrive together.
    """

    text: str
    tokens: tuple[str, ...] = ()
    count: int = 0


@dataclass(frozen=True, slots=True)
class Marker:
    """A token that is a terminal by its id, and the text it stands for."""

    terminal: str
    text: str


Item = Words | Marker


class Scanner:
    """Cuts deltas at the tokens of `terminals`. One per output.

    A marker whose text is not in its delta waits until the text arrives: the text before it belongs to the state
    before it. Each character is looked at a fixed number of times, however long a marker waits.

    Args:
        terminals: terminal by token id.
        alone: the text of each id, decoded alone.
    """

    def __init__(self, terminals: Mapping[int, str], alone: Mapping[int, str]) -> None:
        self.ids = frozenset(terminals)
        self._terminals = terminals
        self._alone = alone
        # Markers that wait for their text, each with the number of tokens before it, and the tokens after the last.
        self._late: deque[tuple[Marker, int]] = deque()
        self._tokens_after = 0
        # Text that came meanwhile, and the end of it in which the first late marker may still begin.
        self._waiting: list[str] = []
        self._window = ""

    @property
    def waits(self) -> bool:
        return bool(self._late)

    def has_marker(self, ids: Sequence[int]) -> bool:
        return not self.ids.isdisjoint(ids)

    def scan(self, text: str, ids: Sequence[int]) -> list[Item]:
        """What one delta holds, in order, after what was late."""
        items: list[Item] = []
        extra = 0
        if self._late:
            items, text, extra = self._settle(text, len(ids))
        markers = places(ids, self.ids)
        if not markers:
            if text:
                items.append(Words(text, self._texts(ids), extra + len(ids)))
            return items
        found = self._cut(ids, markers)
        if extra:
            found.insert(0, Words("", count=extra))
        if text:
            return items + self._align(text, found)
        # Without text, what the ids decode to alone is no guide: only the markers are kept, and wait.
        count = 0
        for item in found:
            if isinstance(item, Words):
                count += item.count
            else:
                self._late.append((item, count))
                count = 0
        self._tokens_after += count
        return items

    def flush(self) -> list[Item]:
        """What still waits when the output ends."""
        items: list[Item] = []
        if self._waiting:
            items.append(Words("".join(self._waiting), count=self._late[0][1]))
        items.extend(marker for marker, _ in self._late)
        if self._tokens_after and self._late:
            items.append(Words("", count=self._tokens_after))
        self._late.clear()
        self._waiting.clear()
        self._window, self._tokens_after = "", 0
        return items

    def _texts(self, ids: Sequence[int]) -> tuple[str, ...]:
        return tuple(map(self._alone.__getitem__, ids))

    def _cut(self, ids: Sequence[int], markers: Sequence[int]) -> list[Item]:
        """The ids as words and markers, which stand at these places, each token decoded alone."""
        items: list[Item] = []
        begin = 0
        for place in (*markers, len(ids)):
            tokens = self._texts(ids[begin:place])
            if text := "".join(tokens):
                items.append(Words(text, tokens, len(tokens)))
            if place < len(ids):
                items.append(Marker(self._terminals[ids[place]], self._alone[ids[place]]))
            begin = place + 1
        return items

    def _settle(self, text: str, count: int) -> tuple[list[Item], str, int]:
        """Late markers whose text has arrived. Also returns the text behind them, and the tokens it had before."""
        items: list[Item] = []
        after, self._tokens_after = self._tokens_after, 0
        marker, before = self._late[0]
        window = self._window + text
        place = window.find(marker.text)
        if place < 0:
            self._keep_waiting(text, window, count)
            self._tokens_after = after
            return items, "", 0
        whole = "".join((*self._waiting, text))
        self._waiting.clear()
        self._window = ""
        place += len(whole) - len(window)
        at = 0
        while place >= 0:
            if place > at:
                items.append(Words(whole[at:place], count=before))
            items.append(marker)
            at = place + len(marker.text)
            self._late.popleft()
            if not self._late:
                return items, whole[at:], after
            marker, before = self._late[0]
            place = whole.find(marker.text, at)
        self._keep_waiting(whole[at:], whole[at:], count)
        self._tokens_after = after
        return items, "", 0

    def _keep_waiting(self, text: str, window: str, count: int) -> None:
        """Put `text` to what waits for the first late marker; `window` has been searched for it in vain."""
        marker, before = self._late[0]
        if text:
            self._waiting.append(text)
        if self._waiting:
            self._late[0] = (marker, before + count)
        self._window = window[-(len(marker.text) - 1) :] if len(marker.text) > 1 else ""

    def _align(self, text: str, found: list[Item]) -> list[Item]:
        """Fit what the ids say to the text that came: more text before it is text that was held back."""
        alone = "".join(item.text for item in found)
        place = text.find(alone)
        if not alone or place > 0:
            return [Words(text if not alone else text[:place]), *found]
        return found if place == 0 else self._anchor(text, found)

    def _anchor(self, text: str, found: list[Item]) -> list[Item]:
        """Where tokens decode otherwise alone than together: take `text`, cut at its markers' texts."""
        markers = [item for item in found if isinstance(item, Marker)]
        tokens: list[list[str]] = [[] for _ in range(len(markers) + 1)]
        counts = [0] * (len(markers) + 1)
        group = 0
        for item in found:
            if isinstance(item, Marker):
                group += 1
            else:
                tokens[group].extend(item.tokens)
                counts[group] += item.count
        found_at = _text_places(text, markers)
        last_found = max((number for number, place in enumerate(found_at) if place >= 0), default=-1)
        items: list[Item] = []
        at = 0
        for number, (marker, place) in enumerate(zip(markers, found_at, strict=True)):
            if place >= 0:
                if place > at:
                    items.append(Words(text[at:place], tuple(tokens[number]), counts[number]))
                items.append(marker)
                at = place + len(marker.text)
                continue
            # An end-of-sequence token's text never comes, so nothing is held for it.
            if number > last_found and at < len(text) and marker.terminal != DROP:
                self._waiting.append(text[at:])
                self._window += text[at:]
                at = len(text)
            self._late.append((marker, counts[number]))
        if at < len(text):
            items.append(Words(text[at:], tuple(tokens[-1]), counts[-1]))
        return items


def _text_places(text: str, markers: Sequence[Marker]) -> list[int]:
    """Where each marker's text stands, taking from the right so that an earlier look-alike is not mistaken for it."""
    found = [-1] * len(markers)
    end = len(text)
    absent: set[str] = set()
    for number in range(len(markers) - 1, -1, -1):
        wanted = markers[number].text
        if wanted in absent:
            continue
        place = text.rfind(wanted, 0, end)
        if place < 0:
            absent.add(wanted)
        else:
            found[number] = end = place
    return found
