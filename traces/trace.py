"""A recorded run of a model: what was asked, what came out, and how the server split it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, overload

Segment = tuple[Literal["reasoning", "content"], str]
"""A piece of text and the field the server sent it in."""


@dataclass(frozen=True, slots=True)
class TraceDelta:
    """One streamed delta as it was recorded. `text` or `token_ids` is None where the recording has only the other."""

    text: str | None
    token_ids: tuple[int, ...] | None = None


class TraceDeltas(Sequence[TraceDelta]):
    """The deltas of a long stream in columns; equal to any sequence of the same deltas.

    Args:
        texts: the text of each, None where it has none.
        ids: the ids of each; likewise.
    """

    def __init__(self, texts: Sequence[str | None], ids: Sequence[Sequence[int] | None]) -> None:
        self.texts = texts
        self.ids = ids

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, place: int) -> TraceDelta: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[TraceDelta]: ...
    def __getitem__(self, place: int | slice) -> TraceDelta | Sequence[TraceDelta]:
        if isinstance(place, slice):
            return TraceDeltas(self.texts[place], self.ids[place])
        ids = self.ids[place]
        return TraceDelta(self.texts[place], None if ids is None else tuple(ids))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the server made of the output.

    `has_split` is true where the recording shows that a reasoning parser was at work (a reasoning field with text, or
    a trace that states the split); a capture with nothing but content proves nothing of the kind. `reasoning_field` is
    the name the reasoning came in, which a client has to read (`reasoning`, `reasoning_content`, `content[].thinking`,
    `response.reasoning_text`, `message.thinking`, ...). `usage` has the API's own keys, and `prompt_tokens` and
    `completion_tokens` where they are known. `traps` counts chunks that trip real clients: `null-content` (the first
    chunk has `"content": null`), `both-fields` (reasoning and content in one delta), `empty-delta` (a delta with
    neither text, tool call, role nor finish reason).
    """

    reasoning: str | None = None
    content: str | None = None
    has_split: bool = False
    parser: str | None = None
    server: str | None = None
    tool_calls: tuple[Any, ...] = ()
    finish_reason: str | None = None
    stop_reason: str | int | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)
    reasoning_field: str | None = None
    traps: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Trace:
    """One output of one model, whichever format it came in.

    Args:
        id: the trace's own id, the response's (with `#N` for a further choice), else `FILE:LINE`.
        path: the file as the user named it.
        line: 1-based line on which the trace starts.
        source: the format it was read from (a name of `formats.FORMATS`).
        model: the model's name as recorded.
        request: the chat-completion body, as far as it was recorded; empty where it was not.
        output_text: the raw output; None where only ids, or only the split, were recorded.
        output_ids: its token ids; None where they were not recorded.
        deltas: the stream as it arrived; empty where the recording was no stream.
        segments: for a recording that lost its markers, the texts in the order they arrived.
        streamed: the recording was a stream.
        lossy: the markers are missing from the text. Token ids, with their tokenizer, bring them back.
        token_texts: texts of single tokens that the recording shows, by id.
        extra: keys of the recording that have no place above, kept as they were.
        api: the API that answered: `chat`, `completions` or a name of `dialects.DIALECTS`.
        broken: why the recording is not whole, None where nothing says so.
        entry: which of a file's recorded requests it answers: `log.entries[2] POST /v1/chat/completions`.
    """

    id: str
    path: str
    line: int
    source: str
    model: str | None = None
    request: Mapping[str, Any] = field(default_factory=dict)
    prompt_text: str | None = None
    prompt_ids: tuple[int, ...] | None = None
    output_text: str | None = None
    output_ids: tuple[int, ...] | None = None
    deltas: Sequence[TraceDelta] = ()
    recorded: Recorded | None = None
    segments: tuple[Segment, ...] = ()
    streamed: bool = False
    lossy: bool = False
    token_texts: Mapping[int, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    api: str = "chat"
    broken: str | None = None
    entry: str | None = None

    @property
    def finish_reason(self) -> str | None:
        """Why the run ended, None where it is not known."""
        return self.recorded.finish_reason if self.recorded else None

    @property
    def bare(self) -> bool:
        """Nothing is known of the request: no messages, no prompt."""
        return self.prompt_text is None and self.prompt_ids is None and not self.request.get("messages")


@dataclass(frozen=True, slots=True)
class BrokenLine:
    """A part of a file that could not be read; what stands around it was. `mend`: what to do, where that is known."""

    path: str
    line: int
    reason: str
    mend: str | None = None
