"""What a dialect is, and what its events say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..trace import Segment

Part = Literal["event", "whole"]
"""A piece of a stream, or an answer that was not streamed."""
Memory = dict[str, Any]
"""What a dialect has to remember between the events of one response; each stream has one of its own."""


@dataclass(slots=True)
class Said:
    """What one event, or one whole answer, adds to a response.

    Args:
        id, model: of the response, where the event names them.
        segments: texts, in the order the event holds them.
        reasoning_field: the name the reasoning came in, which a client has to read.
        calls: tool calls, in the form of `delta.tool_calls` of a chat chunk.
        finish_reason: in the chat API's words; one it has no word for is kept as it is.
        stop_reason: the stop string that ended the run.
        usage: token counts, under the API's own names and the chat API's.
        request: what the answer repeats of the request, as a chat-completion body.
        choice: the index of the choice.
        ends: this is the last event of the response.
        restated: everything in it was said before; it counts only where nothing was.
        error: the server's words, where this is an error.
        others: what the same event says of further choices.
    """

    id: str | None = None
    model: str | None = None
    segments: list[Segment] = field(default_factory=list)
    reasoning_field: str | None = None
    calls: list[dict[str, Any]] = field(default_factory=list)
    finish_reason: str | None = None
    stop_reason: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    request: dict[str, Any] = field(default_factory=dict)
    choice: int = 0
    ends: bool = False
    restated: bool = False
    error: str | None = None
    others: list[Said] = field(default_factory=list)

    def reason(self, text: Any, name: str) -> None:
        """Add reasoning that came in the field `name`; nothing where the value is no text."""
        if isinstance(text, str):
            if text:
                self.reasoning_field = self.reasoning_field or name
            self.segments.append(("reasoning", text))

    def answer(self, text: Any) -> None:
        """Add content; nothing where the value is no text."""
        if isinstance(text, str):
            self.segments.append(("content", text))

    def call(self, index: int, *, id: Any = None, name: Any = None, arguments: Any = None) -> None:
        """Add a tool call, or the next piece of one; arguments that are no text are written as JSON."""
        import json

        if arguments is not None and not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        function = {key: one for key, one in (("name", name), ("arguments", arguments)) if isinstance(one, str)}
        self.calls.append({"index": index, "function": function} | ({"id": id} if isinstance(id, str) else {}))


@dataclass(frozen=True)
class Dialect:
    """One API.

    Args:
        name: what `--from` and `Trace.source` call it.
        called: what messages call an answer in it.
        part: whether a JSON object is an event of this API, a whole answer, or neither.
        said: what such an object adds to its response, given what the earlier events of the response left in memory.
        begins: whether an event is the first of a response.
        belongs: how well an event goes on with the stream of this memory; 0 where nothing speaks for it.
        strict: an event that goes on with no stream starts one; otherwise it goes to the latest.
        request: a request body as the chat-completion body that asks the same, with its own keys kept.
    """

    name: str
    called: str
    part: Callable[[Mapping[str, Any]], Part | None]
    said: Callable[[Mapping[str, Any], Memory], Said]
    begins: Callable[[Mapping[str, Any]], bool]
    belongs: Callable[[Mapping[str, Any], Memory], int]
    request: Callable[[Mapping[str, Any]], dict[str, Any]]
    strict: bool = False


def mapping(value: Any) -> Mapping[str, Any]:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def objects(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list; none where the value is no list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def text_of(value: Any) -> str | None:
    """The value where it is text, else None."""
    return value if isinstance(value, str) else None


def tokens(usage: Mapping[str, Any], prompt: Any, completion: Any) -> dict[str, Any]:
    """Token counts under the API's own names, and under the chat API's two where the counts are numbers."""
    named = (("prompt_tokens", prompt), ("completion_tokens", completion))
    return {**usage, **{key: one for key, one in named if isinstance(one, int)}}


def set_keys(**values: Any) -> dict[str, Any]:
    """The keys that have a value."""
    return {key: one for key, one in values.items() if one is not None}


def function_tool(name: Any, description: Any, parameters: Any) -> dict[str, Any]:
    """A tool as the chat API offers it."""
    return {"type": "function", "function": set_keys(name=name, description=description, parameters=parameters)}
