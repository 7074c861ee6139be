"""What a machine's stretches become as messages to the client (`_events_to_delta` and `_strip_trailing_reasoning` of
vllm/parser/engine/parser_engine.py, 0.33.0 and 0.32.0).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..base import Delta
from .engine_dialects import Dialect
from .engine_machine import Machine


class Shape(Protocol):
    """What a format makes of a message, before white space is trimmed."""

    def __call__(self, delta: Delta | None, *, finished: bool) -> Delta | None: ...


class Stream:
    """What a machine's stretches become as messages: white space waits until it is known to matter.

    Attributes:
        reasoning: all reasoning so far, before any trimming.
    """

    def __init__(self, machine: Machine, dialect: Dialect, shape: Shape, *, ended: bool) -> None:
        self.machine = machine
        machine.ended = machine.ended or ended
        self.reasoning: list[str] = []
        self._dialect = dialect
        self._shape = shape
        self._content_begun = False
        self._answer_begun = False
        self._blank_content: list[str] = []
        self._blank_reasoning: list[str] = []

    @property
    def is_over(self) -> bool:
        """Whether the server stops asking the parser: reasoning has ended, and newlines to trim have passed."""
        return self.machine.ended and (self._answer_begun or not self._dialect.trims_content)

    def feed(self, text: str, ids: Sequence[int]) -> Delta | None:
        self.machine.feed(text, ids)
        delta = self._shape(self._message(finished=False), finished=False)
        if not self._dialect.trims_reasoning or delta is None or delta.reasoning is None:
            return delta
        reasoning = self._trimmed(delta.reasoning)
        return Delta(reasoning, delta.content) if reasoning or delta.content is not None else None

    def finish(self) -> Delta | None:
        self.machine.finish()
        return self._shape(self._message(finished=True), finished=True)

    def _trimmed(self, reasoning: str) -> str | None:
        """`reasoning` without white space at its end, which comes before the next reasoning or never."""
        kept = reasoning.rstrip()
        if not kept:
            self._blank_reasoning.append(reasoning)
            return None
        whole = "".join((*self._blank_reasoning, kept))
        self._blank_reasoning = [reasoning[len(kept) :]]
        return whole

    def _message(self, *, finished: bool) -> Delta | None:
        reasoning, content = self.machine.take()
        if not self._content_begun and (content or self._blank_content):
            # An answer that is white space so far waits for the rest of it.
            self._content_begun = bool(content.strip())
            self._blank_content.append(content)
            content = ""
            if self._content_begun or finished:
                content = "".join(self._blank_content)
                self._blank_content.clear()
        if reasoning and self._dialect.fills_content:
            self.reasoning.append(reasoning)
        if self._dialect.trims_content and not self._answer_begun:
            content = content.lstrip("\n")
            self._answer_begun = bool(content)
        return Delta(reasoning or None, content or None) if reasoning or content else None


def joined(first: Delta | None, second: Delta | None) -> Delta | None:
    """Two messages as one."""
    if first is None or second is None or second == Delta():
        return first or (second if second != Delta() else None)
    return Delta(_concatenated(first.reasoning, second.reasoning), _concatenated(first.content, second.content))


def _concatenated(first: str | None, second: str | None) -> str | None:
    return (first or "") + second if second else first
