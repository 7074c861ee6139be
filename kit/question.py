"""What is put to a parser, and what comes back: one output of one request, whole and cut into deltas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..checks.probes import Cell
from ..parsers.run import ModeResult

Message = tuple[str | None, str | None] | None
"""What one delta says to the client: (reasoning, content); None where nothing is sent."""

ASKS = ("content_ids", "ends", "ended", "adjusted_twice")
"""What the structured-output manager and the renderer ask a parser, besides the split (see `bridge/far/trials.py`)."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One way of cutting an output. `label` names it as `--chunking` does, or says what is special about it."""

    label: str
    deltas: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class Question:
    """One output behind one prompt.

    Attributes:
        cell: the prompt and the request's kwargs.
        text: the output as the parser sees it.
        ids: its token ids.
        streams: the ways it is cut.
        asks: of `ASKS`, and `beside`.
        whole: the output is split in full, too; where only the prompt or ids are asked about, nothing is split.
        other: with `beside`, the request that runs at the same time.
    """

    cell: Cell
    text: str
    ids: tuple[int, ...]
    streams: tuple[Stream, ...] = ()
    asks: tuple[str, ...] = ()
    other: Question | None = None
    whole: bool = True

    def to_json(self) -> dict[str, Any]:
        """The case as the far side takes it."""
        case: dict[str, Any] = {
            "kwargs": dict(self.cell.kwargs),
            "request_kwargs": dict(self.cell.request_kwargs),
            "prompt_ids": list(self.cell.prompt_ids),
            "text": self.text,
            "ids": list(self.ids),
            "streams": [[[text, list(ids)] for text, ids in stream.deltas] for stream in self.streams],
            "asks": list(self.asks),
            "whole": self.whole,
        }
        return case if self.other is None else case | {"other": self.other.to_json()}


@dataclass(frozen=True, slots=True)
class Streamed:
    """One stream's messages, and their sum. `result.error` is the class of what was raised, `message` its text."""

    result: ModeResult
    messages: tuple[Message, ...] = ()
    tokens: int | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a question.

    Attributes:
        full: the split of the whole output.
        streams: as in the question.
        ended: what `is_reasoning_end` says of the prompt: True, False, None, or the name of another type.
        tokens: what usage would report; None where nobody counts.
        asked: the answers to `asks`; {"error", "message"} where one raised.
        raised: the message of what the full mode raised.
        unbuilt: what the constructor raises for this request.
        lost: why there is no answer at all: it hung, or its process ended.
        unlost: of what is lost, the mode that was answered when it was asked alone: `full` or `stream`.
        unasked: it was not even asked: too much was lost before.
    """

    full: ModeResult
    streams: tuple[Streamed, ...] = ()
    ended: bool | str | None = None
    tokens: int | str | None = None
    asked: Mapping[str, Any] = field(default_factory=dict)
    raised: str = ""
    unbuilt: str | None = None
    lost: str | None = None
    unlost: str | None = None
    unasked: bool = False

    @property
    def modes(self) -> tuple[ModeResult, ...]:
        """In full, then each stream."""
        return (self.full, *(stream.result for stream in self.streams))

    @property
    def first_error(self) -> str | None:
        """What was raised first, as `Class: message`; None where nothing was."""
        texts = [(self.full.error, self.raised), *((s.result.error, s.message) for s in self.streams)]
        return next((f"{error}: {text}" if text else error for error, text in texts if error is not None), None)


NOTHING = ModeResult(None, None, None, 0)


def lost(why: str, *, unasked: bool = False) -> Answer:
    """The answer that never came."""
    return Answer(NOTHING, lost=why, unasked=unasked)


def read_answer(question: Question, found: Mapping[str, Any]) -> Answer:
    """The far side's answer to a question."""
    full = found["full"]
    streams = []
    for stream, part in zip(question.streams, found["streams"], strict=True):
        messages = tuple(None if one is None else (one[0], one[1]) for one in part.get("deltas", ()))
        streams.append(
            Streamed(
                summed(stream.label, messages, len(stream.deltas), part.get("error")),
                messages,
                part.get("tokens"),
                part.get("message", ""),
            )
        )
    parts = (*([full] if question.whole else []), *found["streams"])
    everywhere = "error" in found and all("error" in part for part in parts)
    return Answer(
        full=ModeResult(None, full.get("reasoning"), full.get("content"), 0, full.get("error")),
        streams=tuple(streams),
        ended=found.get("ended"),
        tokens=full.get("tokens"),
        asked={name: found[name] for name in question.asks if name in found},
        raised=full.get("message", ""),
        unbuilt=f"{found['error']}: {found.get('message', '')}" if everywhere else None,
    )


def summed(label: str, messages: Sequence[Message], deltas: int, error: str | None = None) -> ModeResult:
    """What a client has in the end of these messages."""
    if error is not None:
        return ModeResult(label, None, None, deltas, error)
    sides = [[part for one in messages if one is not None and (part := one[side]) is not None] for side in (0, 1)]
    reasoning, content = ("".join(parts) if parts else None for parts in sides)
    return ModeResult(label, reasoning, content, deltas)
