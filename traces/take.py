"""Traces out of JSON values, one value at a time: every form that is read goes through here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from .canitoolcall import FixtureFormError, fixture_of
from .chunks import ChunkAssembler
from .dialects import DIALECTS
from .events import ERROR_MEND, EventAssembler
from .forms import choices_fault, near_miss, request_fault
from .kinds import kind_of
from .native import TraceFormError, trace_of
from .pairs import Interaction, pair_of
from .response import Origin
from .sse import DONE, looks_like_sse, sse_values
from .trace import BrokenLine, Trace
from .values import Value, parse_line

FORCED: Mapping[str, frozenset[str]] = {
    "trace": frozenset(("trace",)),
    "sse": frozenset(("chunk", "response", "error", *DIALECTS)),
    "chunks": frozenset(("chunk", "error")),
    "response": frozenset(("response", "error")),
    **{name: frozenset((name, "error")) for name in DIALECTS},
    "pairs": frozenset(("pair",)),
    "canitoolcall": frozenset(("fixture",)),
}
"""The kinds of values that each forced format takes."""
_CALLED: Mapping[str, str] = {
    "trace": "a reasonctl trace",
    "chunk": "a chat chunk",
    "response": "a whole chat completion",
    "cassette": "a cassette",
    "har": "a HAR file",
    "pair": "a request with its response",
    "fixture": "a canitoolcall fixture",
    "error": "an error",
    **{name: dialect.called for name, dialect in DIALECTS.items()},
}


def from_interaction(item: Interaction, path: str, source: str) -> Iterator[Trace | BrokenLine]:
    """The traces of one recorded request; nothing where it was about something else."""
    origin = Origin(path, source, request=item.request, model=_model(item), entry=item.entry)
    for found in from_body(item.body, item.line, origin):
        if isinstance(found, BrokenLine):
            yield replace(found, reason=_at(item, found.reason))
            continue
        fault = request_fault(found.request)
        if fault is not None:
            reason = f"the request of this interaction cannot be taken ({fault})"
            yield BrokenLine(path, item.line, _at(item, reason), fault.mend)
        else:
            yield found if item.id is None else replace(found, id=_named(found, item.id))


def _at(item: Interaction, reason: str) -> str:
    return reason if item.entry is None else f"{item.entry}: {reason}"


def _model(item: Interaction) -> str | None:
    named = item.request.get("model")
    return named if isinstance(named, str) else item.model


def _named(trace: Trace, name: str) -> str:
    _, mark, choice = trace.id.rpartition("#")
    return f"{name}#{choice}" if mark and choice.isdigit() else name


def from_body(body: Any, line: int, origin: Origin, only: str | None = None) -> Iterator[Trace | BrokenLine]:
    """The traces of one answer: a stream as text, a parsed answer, or none where it is about something else."""
    taker = Taker(origin, only=only, quiet=True)
    if not isinstance(body, str):
        elements = body if isinstance(body, list) else [body]
        yield from taker.all((line, element) for element in elements)
    elif looks_like_sse(body.lstrip()):
        yield from taker.all(sse_values(((line, one) for one in body.splitlines()), origin.path))
    elif body.lstrip().startswith("{"):
        whole = parse_line(origin.path, line, body)
        lines = body.splitlines()
        if isinstance(whole, BrokenLine) and len(lines) > 1:
            yield from taker.all(parse_line(origin.path, line, one) for one in lines if one.strip())
        else:
            yield from taker.all([whole])


class Taker:
    """Turns JSON values into traces, and says of those that are none what they are.

    `only` refuses every other form (`--from`); `quiet` passes over values that are about something else, as a cassette
    holds answers of every kind.
    """

    def __init__(self, origin: Origin, *, only: str | None = None, quiet: bool = False) -> None:
        self._origin = origin
        self._chunks = ChunkAssembler(origin)
        self._events: dict[str, EventAssembler] = {}
        self._latest: ChunkAssembler | EventAssembler = self._chunks
        self._only = FORCED.get(only) if only is not None else None
        self._forced = only
        self._quiet = quiet

    def all(self, values: Iterable[Value | BrokenLine]) -> Iterator[Trace | BrokenLine]:
        """The traces of all values, those still under way at the end included."""
        for item in values:
            if isinstance(item, BrokenLine):
                yield item
            else:
                yield from self.take(*item)
        yield from self.end()

    def take(self, line: int, value: Any) -> Iterator[Trace | BrokenLine]:
        """The traces that one value shows to be over, or why it is none."""
        if value is DONE:
            yield from self._latest.done()
            return
        kind = kind_of(value)
        if kind == "response" and self._chunks.is_open(value):
            kind = "chunk"  # the last chunk of a text completion carries its usage
        if kind is None:
            if not self._quiet:
                fault = near_miss(value)
                why = f" ({fault})" if fault is not None else ""
                mend = fault.mend if fault is not None else None
                yield self._broken(line, f"this JSON is in no form that is read{why}", mend)
        elif self._only is not None and kind not in self._only:
            yield self._broken(line, f"this is {_CALLED[kind]}, not what --from {self._forced} names")
        elif kind in ("chunk", "response"):
            yield from self._chat(line, value, kind)
        elif kind in DIALECTS:
            yield from self._event(line, value, kind)
        elif kind == "trace":
            try:
                yield trace_of(value, path=self._origin.path, line=line)
            except TraceFormError as error:
                yield self._broken(line, f"this is no trace ({error})", error.mend)
        elif kind == "fixture":
            try:
                yield fixture_of(value, path=self._origin.path, line=line)
            except FixtureFormError as error:
                yield self._broken(line, f"this is no fixture ({error})", error.mend)
        elif kind == "pair":
            item = pair_of(line, value, self._origin.path)
            yield from from_interaction(item, self._origin.path, "pairs") if isinstance(item, Interaction) else [item]
        elif kind == "error":
            yield self._broken(line, f"the server answered with an error ({_error_text(value)})", ERROR_MEND)
        else:
            yield self._broken(line, f"this is {_CALLED[kind]} inside another format")

    def end(self) -> Iterator[Trace]:
        """The traces still under way: the input is over."""
        yield from self._chunks.end()
        for events in self._events.values():
            yield from events.end()

    def _chat(self, line: int, value: Mapping[str, Any], kind: str) -> Iterator[Trace | BrokenLine]:
        fault = choices_fault(value)
        if fault is not None:
            yield self._broken(line, f"this is no {_CALLED[kind].removeprefix('a ')} ({fault})", fault.mend)
            return
        self._latest = self._chunks
        yield from self._chunks.chunk(line, value) if kind == "chunk" else self._chunks.response(line, value)

    def _event(self, line: int, value: Mapping[str, Any], name: str) -> Iterator[Trace | BrokenLine]:
        assembler = self._events.get(name)
        if assembler is None:
            dialect, origin = DIALECTS[name], self._origin
            if origin.source in ("sse", "chunks"):
                origin = replace(origin, source=name)
            request = dialect.request(origin.request) if origin.request else {}
            assembler = self._events[name] = EventAssembler(dialect, replace(origin, request=request))
        self._latest = assembler
        yield from assembler.take(line, value)

    def _broken(self, line: int, reason: str, mend: str | None = None) -> BrokenLine:
        return BrokenLine(self._origin.path, line, reason, mend)


def _error_text(value: Mapping[str, Any]) -> str:
    error = value.get("error", value)
    text = error.get("message") if isinstance(error, dict) else error
    return " ".join(str(text or error).split())[:200]
