"""Events and answers of other APIs than the chat API, put together into traces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from .chunks import MAX_OPEN
from .dialects.base import Dialect, Memory
from .response import Origin, Response
from .trace import BrokenLine, Trace

ERROR_MEND = "record a request that the server answers, or take this one out"
_Stream = tuple[Response, Memory]


class EventAssembler:
    """Turns the events of one API, in the order they arrived, into traces. Holds only the streams that are not over.

    Most events name no response: each goes to the stream it fits best, the latest of several.
    """

    def __init__(self, dialect: Dialect, origin: Origin) -> None:
        self._dialect = dialect
        self._origin = replace(origin, api=dialect.name)
        self._open: list[_Stream] = []

    def take(self, line: int, value: Mapping[str, Any]) -> Iterator[Trace | BrokenLine]:
        """Take one event, or a whole answer; gives the traces that it shows to be over, and the server's errors."""
        if self._dialect.part(value) == "whole":
            stream: _Stream = (Response(line, whole=True), {})
        else:
            found = None if self._dialect.begins(value) else self._stream(value)
            if found is None:
                yield from self._make_room()
                found = (Response(line), {})
            else:
                self._open.remove(found)
            stream = found
            self._open.append(stream)  # the latest is the last
        response, memory = stream
        said = self._dialect.said(value, memory)
        response.parts += 1
        for one in (said, *said.others):
            response.say(one)
        if said.error is not None:
            reason = f"the server answered with an error ({' '.join(said.error.split())[:200]})"
            yield BrokenLine(self._origin.path, line, reason, ERROR_MEND)
        if response.whole:
            yield from response.traces(self._origin)
        elif said.ends:
            response.ended = True
            yield from self._close(stream)

    def done(self) -> Iterator[Trace]:
        """`[DONE]`: the stream that spoke last is over."""
        if self._open:
            self._open[-1][0].ended = True
            yield from self._close(self._open[-1])

    def end(self) -> Iterator[Trace]:
        """The input is over."""
        for stream in sorted(self._open, key=lambda one: one[0].line):
            yield from self._close(stream)

    def _stream(self, value: Mapping[str, Any]) -> _Stream | None:
        """The stream that an event goes on with; None where it starts one."""
        best, most = None, -1 if not self._dialect.strict else 0
        for stream in reversed(self._open):
            rank = self._dialect.belongs(value, stream[1])
            if rank > most:
                best, most = stream, rank
        return best

    def _make_room(self) -> Iterator[Trace]:
        for stream in [one for one in self._open if one[0].finished]:
            yield from self._close(stream)
        while len(self._open) >= MAX_OPEN:
            yield from self._close(self._open[0])

    def _close(self, stream: _Stream) -> Iterator[Trace]:
        self._open.remove(stream)
        response, _ = stream
        response.whole = response.parts == 1  # one value with everything in it was no stream
        yield from response.traces(self._origin)
