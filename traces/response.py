"""One response of a server, as far as it has arrived, and the traces it becomes: one for every choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .dialects.base import Said
from .trace import Recorded, Segment, Trace, TraceDelta

_BROKE_OFF = "the stream breaks off: neither a finish reason nor an end mark has come"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where responses come from.

    Args:
        path: the file as the user named it.
        source: its format, a name of `formats.FORMATS`.
        api: the API that answered.
        request: the chat-completion body, as far as it was recorded.
        model: the model's name where the answers do not tell it.
        entry: the recorded request, among several of a file, that was answered.
    """

    path: str
    source: str
    api: str = "chat"
    request: Mapping[str, Any] = field(default_factory=dict)
    model: str | None = None
    entry: str | None = None


@dataclass(slots=True)
class Choice:
    """One of the answers of a response."""

    segments: list[Segment] = field(default_factory=list)
    deltas: list[tuple[list[Segment], tuple[int, ...] | None]] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    ids_missing: bool = False
    token_texts: dict[int, str] = field(default_factory=dict)
    tool_calls: dict[int, dict[str, Any]] = field(default_factory=dict)
    reasoning_field: str | None = None
    finish_reason: str | None = None
    stop_reason: str | int | None = None
    traps: dict[str, int] = field(default_factory=dict)
    seen: bool = False

    def trap(self, name: str) -> None:
        """Count one thing that trips real clients."""
        self.traps[name] = self.traps.get(name, 0) + 1

    def add(self, segments: list[Segment], ids: tuple[int, ...] | None, reasoning_field: str | None) -> None:
        """The texts of one delta, and its token ids where the server sent them."""
        self.reasoning_field = self.reasoning_field or reasoning_field
        self.segments.extend(segments)
        if ids is not None:
            self.ids.extend(ids)
        elif any(text for _, text in segments):
            self.ids_missing = True
        if ids or any(text for _, text in segments):
            self.deltas.append((segments, ids))

    def add_calls(self, calls: Any) -> None:
        """Pieces of tool calls, as `delta.tool_calls` of a chunk holds them."""
        for place, call in enumerate(calls if isinstance(calls, list) else ()):
            if not isinstance(call, dict):
                continue
            index = call["index"] if isinstance(call.get("index"), int) else place
            known = self.tool_calls.setdefault(index, {"type": "function", "function": {"name": "", "arguments": ""}})
            if isinstance(call.get("id"), str):
                known["id"] = call["id"]
            function = call.get("function")
            for key in ("name", "arguments"):
                if isinstance(function, dict) and isinstance(function.get(key), str):
                    known["function"][key] += function[key]

    def has(self, kind: str) -> bool:
        """Some text of this kind has arrived."""
        return any(text for one, text in self.segments if one == kind)


@dataclass(slots=True, eq=False)
class Response:
    """One response, as far as it has arrived. `parts` counts the values it came in; `whole`: it was not streamed.

    `ended`: the stream's own end mark has come (`[DONE]`, `message_stop`, ...).
    """

    line: int
    whole: bool = False
    id: str | None = None
    model: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    prompt_ids: tuple[int, ...] | None = None
    prompt_text: str | None = None
    choices: dict[int, Choice] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    request: dict[str, Any] = field(default_factory=dict)
    api: str | None = None
    parts: int = 0
    ended: bool = False

    @property
    def finished(self) -> bool:
        """Every choice has told why it ended."""
        return bool(self.choices) and all(choice.finish_reason for choice in self.choices.values())

    def choice(self, index: int) -> Choice:
        """The choice of this index, made where it is new."""
        found = self.choices.get(index)
        if found is None:
            found = self.choices[index] = Choice()
        return found

    def say(self, said: Said) -> None:
        """Take what one event of another API than the chat API says."""
        self.id = self.id or said.id
        self.model = self.model or said.model
        self.usage = {**self.usage, **said.usage}
        self.request = {**self.request, **said.request}
        silent = not (said.segments or said.calls or said.finish_reason)
        if silent and said.choice not in self.choices:
            return
        choice = self.choice(said.choice)
        if said.restated:
            _restate(choice, said)
        else:
            choice.add(said.segments, None, said.reasoning_field)
            choice.add_calls(said.calls)
        choice.finish_reason = said.finish_reason or choice.finish_reason
        choice.stop_reason = said.stop_reason or choice.stop_reason

    def traces(self, origin: Origin) -> Iterator[Trace]:
        """One trace for every choice, in the order of their indices."""
        name = self.id or f"{origin.path}:{self.line}"
        streamed = not self.whole
        for index, choice in sorted(self.choices.items()):
            lossy = choice.reasoning_field is not None or bool(choice.tool_calls)
            ids = tuple(choice.ids) if choice.ids and not choice.ids_missing else None
            reasoning = [text for kind, text in choice.segments if kind == "reasoning"]
            content = [text for kind, text in choice.segments if kind == "content"]
            yield Trace(
                name if index == 0 else f"{name}#{index}",
                origin.path,
                self.line,
                origin.source,
                api=self.api or origin.api,
                model=self.model or origin.model,
                request={**self.request, **origin.request} if self.request else origin.request,
                prompt_text=self.prompt_text,
                prompt_ids=self.prompt_ids,
                output_text=None if lossy else "".join(content),
                output_ids=ids,
                deltas=_deltas(choice, lossy=lossy, with_ids=ids is not None) if streamed else (),
                recorded=Recorded(
                    reasoning="".join(reasoning) if reasoning else None,
                    content="".join(content) if content else None,
                    has_split=choice.reasoning_field is not None,
                    tool_calls=tuple(call for _, call in sorted(choice.tool_calls.items())),
                    finish_reason=choice.finish_reason,
                    stop_reason=choice.stop_reason,
                    usage=self.usage,
                    reasoning_field=choice.reasoning_field,
                    traps=choice.traps if streamed else {},
                ),
                segments=tuple(choice.segments) if lossy else (),
                streamed=streamed,
                lossy=lossy,
                token_texts=choice.token_texts,
                extra=self.extra,
                broken=_BROKE_OFF if streamed and not self.ended and choice.finish_reason is None else None,
                entry=origin.entry,
            )


def _restate(choice: Choice, said: Said) -> None:
    """Of an answer that a stream's last event repeats, take what the stream itself did not show."""
    reasoning = [one for one in said.segments if one[0] == "reasoning" and one[1]]
    content = [one for one in said.segments if one[0] == "content" and one[1]]
    if reasoning and not choice.has("reasoning"):
        choice.reasoning_field = choice.reasoning_field or said.reasoning_field
        choice.segments[:0] = reasoning
        choice.deltas[:0] = [([one], None) for one in reasoning]
        choice.ids_missing = True
    if content and not choice.has("content"):
        choice.add(content, None, None)
    if not choice.tool_calls:
        choice.add_calls(said.calls)


def _deltas(choice: Choice, *, lossy: bool, with_ids: bool) -> tuple[TraceDelta, ...]:
    """The stream's deltas. Of a recording that lost its markers only ids, where there are any: see `rebuild`."""
    if lossy:
        return tuple(TraceDelta(None, ids or ()) for _, ids in choice.deltas) if with_ids else ()
    return tuple(
        TraceDelta("".join(text for _, text in segments), (ids or ()) if with_ids else None)
        for segments, ids in choice.deltas
    )
