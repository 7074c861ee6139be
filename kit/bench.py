"""Where a parser is put to the test: in a real vLLM's interpreter, or as one of the built-in models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ..checks.probes import Cell
from ..parsers import build
from ..parsers.base import ParserModel, ParserRaisedError, ParserUnsupportedError, Vocabulary
from ..parsers.bridge.bridge import Bridge
from ..parsers.bridge.process import BridgeError, HungError, LostError
from ..parsers.run import ModeResult
from ..parsers.target import BUILTIN_ENGINE, Target
from .question import NOTHING, Answer, Message, Question, Stream, Streamed, lost, read_answer, summed

_SECONDS = 4.0
"""How long one output may take, and each batch besides."""
_EACH = 0.1
"""Seconds that each output of a batch adds to its time."""
_BATCH = 32
GIVEN_UP = "it hung or ended its process too often to be asked any more"
_LOSSES = 8
"""After so many outputs that ended the process, no more are asked; one that hung costs time, and counts for three."""
_HUNG = 3
_AGAIN = 24
"""So often a text that ended the process before may do so again, behind other prompts and in other deltas."""


@dataclass(frozen=True, slots=True)
class Description:
    """What the parser's class says of itself. `defined`: the class each method of the contract comes from."""

    class_name: str
    start: str | None
    end: str | None
    engine: bool
    one_instance: bool
    defined: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a delta takes, as median seconds: at the begin of a stream of so many tokens, and at its end."""

    tokens: int
    early: float
    late: float


class Bench(Protocol):
    """One parser of one vLLM, with one tokenizer."""

    def answers(self, questions: Sequence[Question]) -> list[Answer]:
        """An answer to each. What hangs or ends its process is lost alone."""

    def skips(self, cell: Cell) -> bool | None:
        """What `adjust_request` makes of `skip_special_tokens`; None where it leaves it alone.

        Raises:
            ParserUnsupportedError: this parser cannot be run here at all.
        """

    def describe(self) -> Description | str | None:
        """What its class says of itself; what its constructor raises; None where nobody knows."""

    def shared_state(self) -> Mapping[str, str]:
        """What its classes and their modules hold by now, by name."""

    def cost(
        self, cell: Cell, head: tuple[str, Sequence[int]], texts: Sequence[str], ids: Sequence[int]
    ) -> Cost | None:
        """What a long thought costs (see `bridge/far/trials.py`); None where nobody measures."""


class BridgeBench:
    """A parser in another interpreter.

    Args:
        bridge: leads there.
        name: the parser's.
        vocabulary: the tokenizer, handed over.
    """

    def __init__(self, bridge: Bridge, name: str, vocabulary: Vocabulary) -> None:
        self.bridge = bridge
        self.name = name
        self._vocabulary = vocabulary
        self._losses = 0
        self._deadly: set[str] = set()
        self._again = 0
        self._warm = False
        self._skips: dict[str, bool | None] = {}

    def answers(self, questions: Sequence[Question]) -> list[Answer]:
        different = list({id(question): question for question in questions}.values())
        found: dict[int, Answer] = {}
        for at in range(0, len(different), _BATCH):
            part = different[at : at + _BATCH]
            # What has ended a process before is asked alone, so that it takes no others with it.
            safe = [question for question in part if question.text not in self._deadly]
            for asked in (safe, *([question] for question in part if question.text in self._deadly)):
                found |= {id(question): answer for question, answer in zip(asked, self._batch(asked), strict=True)}
        return [found[id(question)] for question in questions]

    def skips(self, cell: Cell) -> bool | None:
        key = repr((sorted(cell.kwargs.items(), key=repr), sorted(cell.request_kwargs.items(), key=repr)))
        if key not in self._skips:
            asked = {"kwargs": dict(cell.kwargs), "request_kwargs": dict(cell.request_kwargs)}
            answer = self._ask("prepare", prompt_ids=list(cell.prompt_ids), **asked)
            if answer is not None and "unsupported" in answer:
                raise ParserUnsupportedError(answer["unsupported"])
            self._skips[key] = (answer or {}).get("skip_special_tokens")
        return self._skips[key]

    def describe(self) -> Description | str | None:
        answer = self._ask("describe", kwargs={})
        if answer is None:
            return None
        if "error" in answer:
            return f"{answer['error']}: {answer['message']}"
        start, end = (answer[side] if isinstance(answer[side], str) else None for side in ("start", "end"))
        return Description(
            answer["class"],
            start,
            end,
            engine=answer["engine"],
            one_instance=answer["one_instance"],
            defined=answer["defined"],
        )

    def shared_state(self) -> Mapping[str, str]:
        answer = self._ask("shared_state")
        return {} if answer is None else dict(answer["state"])

    def cost(
        self, cell: Cell, head: tuple[str, Sequence[int]], texts: Sequence[str], ids: Sequence[int]
    ) -> Cost | None:
        answer = self._ask(
            "cost",
            kwargs=dict(cell.kwargs),
            head=[head[0], list(head[1])],
            texts=list(texts),
            ids=list(ids),
            tokens=_LONG,
            most=min(_LONG_SECONDS, self.bridge.seconds / 2),
        )
        if answer is None or "error" in answer:
            return None
        return Cost(answer["tokens"], answer["early"], answer["late"])

    def _batch(self, questions: Sequence[Question]) -> list[Answer]:
        if not questions:
            return []
        if self._losses >= _LOSSES or self._again >= _AGAIN:
            return [lost(GIVEN_UP, unasked=True)] * len(questions)
        try:
            answer = self._told("trials", len(questions), cases=[question.to_json() for question in questions])
            if "failed" in answer:
                raise LostError(answer["failed"])
        except (LostError, BridgeError) as error:
            self._warm = False
            if len(questions) > 1:  # one of them it was
                return [found for question in questions for found in self._batch([question])]
            if isinstance(error, HungError):
                self._losses += _HUNG
            elif questions[0].text in self._deadly:
                self._again += 1
            else:
                self._losses += 1
                self._deadly.add(questions[0].text)
                return [self._half(questions[0], lost(str(error)))]
            return [lost(str(error))]
        return [read_answer(*pair) for pair in zip(questions, answer["answers"], strict=True)]

    def _half(self, question: Question, nothing: Answer) -> Answer:
        """What is lost of an output, with the mode that stands alone: it dies in full, or streamed, or both ways."""
        if not (question.whole and question.streams):
            return nothing
        modes = {"full": replace(question, streams=(), asks=()), "stream": replace(question, whole=False, asks=())}
        for mode, half in modes.items():
            try:
                told = self._told("trials", 1, cases=[half.to_json()])
            except (LostError, BridgeError):
                self._warm = False
                continue
            if "failed" not in told:
                return replace(read_answer(half, told["answers"][0]), lost=nothing.lost, unlost=mode)
        return nothing

    def _ask(self, op: str, **fields: Any) -> dict[str, Any] | None:
        """An answer; None where it is lost."""
        if self._losses >= _LOSSES:
            return None
        try:
            answer = self._told(op, 1, **fields)
        except (LostError, BridgeError) as error:
            self._warm = False
            self._losses += _HUNG if isinstance(error, HungError) else 1
            return None
        return None if "failed" in answer else answer

    def _told(self, op: str, count: int, **fields: Any) -> dict[str, Any]:
        """Ask with little time. A runner that has just taken over imports first what a parser needs: that takes longer.

        Raises:
            LostError, BridgeError, ParserUnsupportedError: as `Bridge.put`.
        """
        if not self._warm:
            seconds = min(self.bridge.seconds, _WARM_SECONDS)
            self.bridge.put("describe", self._vocabulary, seconds=seconds, parser=self.name, kwargs={})
            self._warm = True
        seconds = min(self.bridge.seconds, _SECONDS + _EACH * count + (_LONG_SECONDS if op == "cost" else 0.0))
        return self.bridge.put(op, self._vocabulary, seconds=seconds, parser=self.name, **fields)


_WARM_SECONDS = 40.0
_LONG = 8000
_LONG_SECONDS = 5.0


class BuiltinBench:
    """A built-in model of a parser: its split, and nothing that only vLLM's own class can say."""

    described = BUILTIN_ENGINE

    def __init__(self, name: str, vocabulary: Vocabulary, target: Target) -> None:
        self.name = name
        self._vocabulary = vocabulary
        self._target = target

    def answers(self, questions: Sequence[Question]) -> list[Answer]:
        return [self._answer(question) for question in questions]

    def skips(self, cell: Cell) -> bool | None:
        try:
            return self._build(cell).skip_special_tokens
        except ParserRaisedError:
            return None

    def describe(self) -> Description | str | None:
        try:
            build(self.name, self._vocabulary, {}, target=self._target)
        except ParserRaisedError as error:
            return str(error)
        return None

    def shared_state(self) -> Mapping[str, str]:
        return {}

    def cost(
        self, cell: Cell, head: tuple[str, Sequence[int]], texts: Sequence[str], ids: Sequence[int]
    ) -> Cost | None:
        return None

    def _answer(self, question: Question) -> Answer:
        cell = question.cell
        try:
            ended = self._build(cell).is_reasoning_end(cell.prompt_ids)
        except ParserRaisedError as error:
            return Answer(ModeResult(None, None, None, 0, error.exception), unbuilt=str(error), raised=error.message)
        full, tokens, raised = NOTHING, None, ""
        try:
            model = self._build(cell)
            model.begin(cell.prompt_ids, streaming=False)
            split = model.split(question.text, question.ids)
            full, tokens = (
                ModeResult(None, split.reasoning, split.content, 0),
                model.count_reasoning_tokens(question.ids),
            )
        except ParserRaisedError as error:
            full, raised = ModeResult(None, None, None, 0, error.exception), error.message
        asked: dict[str, Any] = {}
        if "ended" in question.asks:
            asked["ended"] = self._build(cell).is_reasoning_end([*cell.prompt_ids, *question.ids])
        streams = tuple(self._streamed(cell, stream) for stream in question.streams)
        return Answer(full, streams, ended, tokens, asked, raised)

    def _streamed(self, cell: Cell, stream: Stream) -> Streamed:
        messages: list[Message] = []
        last = len(stream.deltas)
        try:
            model = self._build(cell)
            model.begin(cell.prompt_ids, streaming=True)
            for number, (text, ids) in enumerate(stream.deltas, 1):
                delta = model.feed(text, ids, finished=number == last)
                messages.append(None if delta is None else (delta.reasoning, delta.content))
        except ParserRaisedError as error:
            return Streamed(summed(stream.label, messages, last, error.exception), tuple(messages), None, error.message)
        return Streamed(summed(stream.label, messages, last), tuple(messages))

    def _build(self, cell: Cell) -> ParserModel:
        return build(self.name, self._vocabulary, cell.kwargs, request_kwargs=cell.request_kwargs, target=self._target)
