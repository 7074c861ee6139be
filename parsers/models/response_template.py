"""hf and beam: messages told apart by the `response_template` of the tokenizer's configuration.

Models `ResponseTemplateParser` (vllm/parser/response_template.py) and `BeamParser` (vllm/parser/beam.py), 0.33.0 and
0.32.0, with no tool parser: tool calls stay in the answer as they were written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any

from ..base import Delta, ParserModel, ParserRaisedError, Split, Vocabulary
from ..target import Target
from ..versions import Change, applies
from .template_literals import literals
from .template_reader import Event, Reader
from .template_spec import CONTENT, THINKING, TOOLS, Template, serving_template

_PROBE = "\0"
"""Decides what the prompt's end left open; no model writes it."""


def build_response_template(
    name: str, vocabulary: Vocabulary, kwargs: Mapping[str, Any], *, target: Target
) -> ParserModel:
    """The model of hf or beam. Raises ParserRaisedError where vLLM's constructor raises for this tokenizer."""
    template = serving_template(vocabulary)
    return TemplateModel(vocabulary, template, kwargs, target, reads_prompt_at_once=name == "beam")


class TemplateModel(ParserModel):
    """One output.

    Args:
        reads_prompt_at_once: a prompt that cannot be read refuses the request, and not only its output.
    """

    skip_special_tokens = False

    def __init__(
        self,
        vocabulary: Vocabulary,
        template: Template,
        kwargs: Mapping[str, Any],
        target: Target,
        *,
        reads_prompt_at_once: bool,
    ) -> None:
        self._vocabulary = vocabulary
        self._template = template
        self._off = not kwargs.get("enable_thinking", True)
        self._reads_prompt_at_once = reads_prompt_at_once
        self._completes_closers = applies(Change.CLOSER_REST, target)
        self._counts = applies(Change.TEMPLATE_COUNT, target)
        self._prefix = ""
        self._message: _Message | None = None

    def is_reasoning_end(self, ids: Sequence[int]) -> bool:
        try:
            reader = Reader(self._template, self._vocabulary.decode(ids))
        except ParserRaisedError:
            return False
        return _has_ended(reader, self._template, off=self._off)

    def begin(self, prompt_ids: Sequence[int] | None, *, streaming: bool) -> None:
        self._prefix = "" if prompt_ids is None else self._vocabulary.decode(prompt_ids)
        if self._reads_prompt_at_once:
            Reader(self._template, self._prefix)

    def split(self, text: str, ids: Sequence[int]) -> Split:
        delta = self.feed(text, ids, finished=True) or Delta()
        return Split(delta.reasoning, delta.content)

    def feed(self, text: str, ids: Sequence[int], *, finished: bool = False) -> Delta | None:
        if self._message is None:
            self._message = _Message(Reader(self._template, self._prefix), self._template)
        return self._message.feed(text, finished=finished, completes_closers=self._completes_closers)

    def count_reasoning_tokens(self, ids: Sequence[int]) -> int:
        """Tokens whose text is read as reasoning, each token decoded alone."""
        if not self._counts or THINKING not in self._template.fields:
            return 0
        reader = Reader(self._template, self._prefix)
        texts = [self._vocabulary.decode([token_id]) for token_id in ids]
        start = len(reader.text)
        spans = _thoughts((*reader.initial, *reader.feed("".join(texts))))
        count = number = 0
        for text in texts:
            end = start + len(text)
            while number < len(spans) and spans[number][1] <= start:
                number += 1
            count += number < len(spans) and spans[number][0] < end
            start = end
        return count


class _Message:
    """What a reader's events become as messages to the client."""

    def __init__(self, reader: Reader, template: Template) -> None:
        self._reader = reader
        self._template = template
        self._prompt_end = len(reader.text)
        self._over = False
        # The last field opened and not closed, with the end of its opener.
        self._open: tuple[str, int] | None = None
        self._track(reader.initial)

    def feed(self, text: str, *, finished: bool, completes_closers: bool) -> Delta | None:
        if self._over:
            return None
        reasoning: list[str] = []
        content: list[str] = []
        events = self._reader.feed(text)
        self._track(events)
        self._route(events, reasoning, content)
        if finished:
            self._over = True
            if len(self._reader.text) > self._prompt_end:
                if completes_closers:
                    self._route(self._reader.feed(self._rest_of_closer()), reasoning, content)
                self._route(self._reader.finish(), reasoning, content)
        delta = Delta("".join(reasoning) or None, "".join(content) or None)
        return None if delta == Delta() else delta

    def _track(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.kind == "open":
                self._open = (event.field, event.end)
            elif event.kind == "close":
                self._open = None

    def _route(self, events: Iterable[Event], reasoning: list[str], content: list[str]) -> None:
        for event in events:
            if event.kind == "text":
                (reasoning if event.field == THINKING else content).append(event.text)
            elif event.field == TOOLS:
                content.append(self._reader.text[max(event.begin, self._prompt_end) : event.end])

    def _rest_of_closer(self) -> str:
        """What is missing of a closer that goes on with the next message's start, where the output stops in that."""
        if self._open is None:
            return ""
        field, begin = self._open
        closer = self._template.fields[field].close
        said = self._reader.text[begin:]
        for spelling in (closer.literals or ()) if closer is not None else ():
            for start in literals(self._template.anchor):
                if not start or spelling == start or not spelling.endswith(start):
                    continue
                for cut in range(len(spelling) - 1, len(spelling) - len(start) - 1, -1):
                    if said.endswith(spelling[:cut]):
                        return spelling[cut:]
        return ""


def _has_ended(reader: Reader, template: Template, *, off: bool) -> bool:
    """Whether a prompt, read up to its end, leaves no reasoning to come."""
    thinking = template.fields.get(THINKING)
    if thinking is None:
        return True
    if thinking.repeats:
        return False
    active: str | None = None
    for event in reader.initial:
        if event.kind == "open":
            active = event.field
        elif event.kind == "close":
            if event.field == THINKING:
                return True
            active = None
    if active in (CONTENT, TOOLS):
        return True
    for event in reader.feed(_PROBE):
        if event.kind == "open" and event.field != THINKING and event.end > event.begin:
            return True
        if event.field == THINKING and event.kind != "text":
            return event.kind == "close"
    return active != THINKING and off


def _thoughts(events: Iterable[Event]) -> list[tuple[int, float]]:
    """Where reasoning stands in the text: from behind its opener to its closer, or without an end."""
    spans: list[tuple[int, float]] = []
    begin: int | None = None
    for event in events:
        if event.field != THINKING or event.kind == "text":
            continue
        if event.kind == "open":
            begin = event.end
        elif begin is not None:
            spans.append((begin, event.begin))
            begin = None
    return spans if begin is None else [*spans, (begin, inf)]
