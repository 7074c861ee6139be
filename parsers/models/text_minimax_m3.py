"""minimax_m3: one block, told by text in streams and by runs of ids in prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..base import Delta, Split, Vocabulary
from .delegating import LegacyModel
from .delimited import find_delimiters
from .partial import partial_suffix
from .runs import begins_at_end, holds, last_of, stands_at

START = "<mm:think>"
END = "</mm:think>"


class MinimaxM3Model(LegacyModel):
    """Reasoning behind a start marker, or from the first character on where `thinking_mode` is enabled.

    vllm/reasoning/minimax_m3_reasoning_parser.py, 0.33.0, compares what all text so far and all text before come to.
    While a thought grows that is the new text less what may begin the end marker; only where a marker completes does
    this model look at the whole, and after that the stream is out of the parser's hands.
    """

    def __init__(self, vocabulary: Vocabulary, kwargs: Mapping[str, Any]) -> None:
        super().__init__()
        raised = "MiniMaxM3ReasoningParser reasoning parser could not locate think start/end tokens in the tokenizer!"
        find_delimiters(vocabulary, START, END, raised=raised)
        self._start_ids = tuple(vocabulary.encode(START))
        self._end_ids = tuple(vocabulary.encode(END))
        self._initial = kwargs.get("thinking_mode") == "enabled"
        self._parts: list[str] = []
        self._held = ""
        self._tail = ""
        self._opened = False
        self._over = False
        self._silent = _SilentIds(self._start_ids, self._end_ids)

    def is_reasoning_end(self, ids: Sequence[int]) -> bool:
        return last_of(ids, self._start_ids, self._end_ids) == 1

    def split(self, text: str, ids: Sequence[int]) -> Split:
        if not self._initial and text.startswith(END):
            return Split(None, text.removeprefix(END) or None)
        before, start, thought = text.partition(START)
        if not start:
            if not self._initial:
                return Split(None, text)
            before, thought = "", text
        reasoning, _, after = thought.partition(END)
        return Split(reasoning, (before + after) or None)

    def count_reasoning_tokens(self, ids: Sequence[int]) -> int:
        count, depth, at = 0, int(self._initial), 0
        while at < len(ids):
            if ids[at] == self._start_ids[0] and stands_at(ids, at, self._start_ids):
                depth += 1
                at += len(self._start_ids)
            elif ids[at] == self._end_ids[0] and stands_at(ids, at, self._end_ids):
                depth = max(0, depth - 1)
                at += len(self._end_ids)
            else:
                count += depth > 0
                at += 1
        return count

    def _classify(self, text: str, ids: Sequence[int]) -> Delta | None:
        if not text:
            return None
        window = self._tail + text
        grows = (self._opened or (self._initial and START not in window)) and END not in window
        self._tail = window[1 - len(END) :]
        delta = self._grown(text) if grows else self._compared(text)
        self._parts.append(text)
        return delta

    def _ends(self, ids: Sequence[int]) -> bool:
        if self._over or self._initial or self._parts:
            return self._over
        return self._silent.end(ids)

    def _grown(self, text: str) -> Delta | None:
        window = self._held + text
        ready = len(window) - partial_suffix(window, END)
        self._held = window[ready:]
        return Delta(reasoning=window[:ready]) if ready else None

    def _compared(self, text: str) -> Delta | None:
        """A delta in which a marker may complete: what everything comes to, less what it came to before."""
        before = "".join(self._parts)
        now = before + text
        reasoning, content = self._seen(now)
        known_reasoning, known_content = self._seen(before)
        self._over = END in now or content is not None
        self._opened = now.startswith(START)
        thought = now.removeprefix(START)
        self._held = thought[len(thought) - partial_suffix(thought, END) :]
        if self._opened and not self._over:
            # What follows is compared with nothing older, so nothing older is kept.
            self._tail = thought[1 - len(END) :]
        reasoning, content = _beyond(reasoning, known_reasoning), _beyond(content, known_content)
        return None if reasoning is None and content is None else Delta(reasoning, content)

    def _seen(self, text: str) -> tuple[str | None, str | None]:
        """Reasoning and content that a stream of this text would have shown."""
        if not self._initial:
            if len(text) < len(END) and END.startswith(text):
                return None, None
            text = text.removeprefix(END)
        before, start, thought = text.partition(START)
        if not start:
            if not self._initial:
                return None, text[: len(text) - partial_suffix(text, START)] or None
            before, thought = "", text
        reasoning, end, after = thought.partition(END)
        if not end:
            reasoning = reasoning[: len(reasoning) - partial_suffix(reasoning, END)]
        return reasoning or None, (before + after) or None


class _SilentIds:
    """What ids decide before any text has come: an end marker, or anything that is no start, ends the phase."""

    def __init__(self, start: Sequence[int], end: Sequence[int]) -> None:
        self._start = start
        self._end = end
        self._tail: tuple[int, ...] = ()
        self._started = False
        self._ended = False

    def end(self, ids: Sequence[int]) -> bool:
        window = (*self._tail, *ids)
        self._started = self._started or holds(window, self._start)
        self._ended = self._ended or holds(window, self._end)
        longest = max(len(self._start), len(self._end)) - 1
        self._tail = window[len(window) - min(longest, len(window)) :]
        if self._ended:
            return True
        if begins_at_end(window, self._start) or begins_at_end(window, self._end):
            return False
        return not self._started and bool(window)


def _beyond(now: str | None, before: str | None) -> str | None:
    """What a text adds to an earlier one; all of it where it does not continue it."""
    return (now or "").removeprefix(before or "") or None
