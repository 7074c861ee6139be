"""Traces out of a file, in whichever of the known formats it is; told apart by looking at the content."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

from ..errors import InputError
from .chunks import ChunkAssembler
from .decode import BadValueError, NotJsonError, loads
from .forms import choices_fault, request_fault
from .jq import Jq, JqEndedError, JqError
from .kinds import FOREIGN, foreign_kind, kind_of
from .native import TraceFormError, trace_of
from .source import READ, Source, decodes, open_source
from .sse import DONE, looks_like_sse, sse_values
from .surrogates import whole_trace
from .trace import BrokenLine, Trace
from .values import Value, json_values, parse_line
from .vcr import Interaction, interactions, looks_like_cassette

FORMATS = ("trace", "sse", "chunks", "response", "vcr", "text")
"""The names `--from` takes: `reasonctl.trace/1`, server-sent events, JSON or JSON lines of chat chunks, whole
chat completions, VCR cassettes, plain text."""


_USELESS = 1000
"""Values in a row, made of one, that are no recording; an expression may yield them without end."""


def read_traces(
    path: str,
    *,
    format: str | None = None,
    jq: str | None = None,
    watch: Callable[[int], None] | None = None,
) -> Iterator[Trace | BrokenLine]:
    """Every trace of a file, and every part of it that could not be read, in the order they stand there.

    Args:
        path: a file, plain or compressed with gzip or zstd; `-` is stdin.
        format: one of FORMATS; None looks at the content.
        jq: an expression that maps the file's JSON values to values of a known format.
        watch: called with the number of bytes of the file read so far.

    Raises:
        InputError: the file cannot be read, is in a format that is not read, or holds no trace.
    """
    if format is not None and format not in FORMATS:
        raise InputError(f"{format!r} is no format", source="--from", mend=f"use one of {', '.join(FORMATS)}")
    if jq is not None and format == "vcr":
        raise InputError(
            "what --jq yields is no cassette", source="--from", mend=f"use one of {', '.join(_FORCED)}, text"
        )
    with ExitStack() as stack:
        program = stack.enter_context(Jq(jq)) if jq is not None else None
        source = stack.enter_context(open_source(path, watch))
        if not source.head and source.problem is not None:
            raise InputError(source.problem, source=source.name, mend="copy or record it again")
        name = format or ("chunks" if program else sniff(source))
        items = _mapped(source, program, format) if program else _items(source, name, forced=format is not None)
        first: BrokenLine | None = None
        found = False
        last = 1
        for item in items:
            if isinstance(item, BrokenLine):
                first = first or item
            found = found or isinstance(item, Trace)
            last = item.line
            yield whole_trace(item) if isinstance(item, Trace) else item
        if source.problem is not None:
            broken = BrokenLine(source.name, last, source.problem)
            first = first or broken
            yield broken
        if not found:
            raise InputError(
                f"no trace in it ({first.reason if first else _MISSING[name]})",
                source=source.name,
                line=first.line if first else None,
                mend=(
                    f"leave out --from {format}: the format is told by looking"
                    if format is not None
                    else f"--from {'|'.join(FORMATS)} forces a format, --jq maps other JSON"
                    if first
                    else "give a recording of at least one answer"
                ),
            )


_MISSING = {
    "sse": "no event with a message in it",
    "vcr": "no interaction with a chat completion in it",
    "chunks": "no choice in any of its messages",
    "response": "no choice in it",
    "trace": "no line of reasonctl.trace/1",
    "text": "no text",
}
"""What a file of each format lacks where nothing in it is broken and it holds no trace."""


def sniff(source: Source) -> str:
    """The format of a source, by its first bytes. Raises InputError for an empty one and for one that is not read."""
    head = source.head
    start = head.lstrip("\ufeff \t\r\n\x1e")
    if not start:
        raise InputError("this is empty", source=source.name, mend=f"give {READ}")
    if looks_like_sse(start):
        return "sse"
    if looks_like_cassette(start):
        return "vcr"
    if start[0] not in "{[":
        return "text"
    if start.startswith("{") and start[1:].lstrip().startswith('"log"') and '"entries"' in start:
        raise _refused(source.name, 1, "har")
    for value in _first_values(start):
        foreign = foreign_kind(value)
        if foreign is not None:
            raise _refused(source.name, 1, foreign)
        kind = kind_of(value)
        if kind is not None:
            return {"chunk": "chunks", "cassette": "vcr", "error": "chunks"}.get(kind, kind)
        return "chunks"
    looks_cut = start.startswith(("[{", '{"', "{\n", "{ ", "[\n"))
    return "chunks" if looks_cut else "text"


def _first_values(text: str) -> Iterator[Any]:
    """The first JSON value of a text that may be cut: a whole line, an element of an array, or the whole."""
    decoder = json.JSONDecoder()
    for candidate in (text, text[1:].lstrip() if text[0] == "[" else ""):
        try:
            value, _ = decoder.raw_decode(candidate)
        except (ValueError, RecursionError):
            continue
        yield from value[:1] if isinstance(value, list) else [value]
        return
    for line in text.split("\n"):
        if line.startswith("{"):
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                continue
            return


def _items(source: Source, name: str, *, forced: bool) -> Iterator[Trace | BrokenLine]:
    if name == "text":
        yield _plain_text(source)
    elif name == "vcr":
        for item in interactions(source):
            yield from _from_interaction(item, source.name) if isinstance(item, Interaction) else [item]
    elif name == "sse":
        events = sse_values(source.lines(), source.name, bare=not forced)
        yield from _Taker(source.name, "sse", only="sse" if forced else None).all(events)
    else:
        yield from _Taker(source.name, name, only=name if forced else None).all(json_values(source))


def _plain_text(source: Source) -> Trace:
    text = source.text.read()
    if not decodes(text):
        raise InputError("this is not UTF-8", source=source.name)
    return _text_trace(text, source.name, 1)


def _text_trace(text: str, path: str, line: int) -> Trace:
    return Trace(id=f"{path}:{line}", path=path, line=line, source="text", output_text=text)


def _mapped(source: Source, program: Jq, only: str | None) -> Iterator[Trace | BrokenLine]:
    """What the jq expression makes of every value; texts it yields may be event streams, JSON or raw output."""
    taker = _Taker(source.name, "chunks", only=only)
    for item in json_values(source, open_arrays=False):
        if isinstance(item, BrokenLine):
            yield item
            continue
        line, value = item
        try:
            useless = 0
            for result in program.results(value):
                for found in _from_result(result, line, source.name, taker, only):
                    useless = useless + 1 if isinstance(found, BrokenLine) else 0
                    yield found
                if useless > _USELESS:
                    mend = "give --jq an expression that yields recordings"
                    reason = f"--jq yields more than {_USELESS} values in a row that are no recording"
                    raise InputError(reason, source=source.name, line=line, mend=mend)
        except JqError as error:
            yield BrokenLine(source.name, line, f"--jq fails on this value ({error})")
        except JqEndedError as error:
            mend = "give --jq an expression that ends"
            raise InputError(
                f"--jq had to be stopped on this value ({error})", source=source.name, line=line, mend=mend
            ) from None
    yield from taker.end()


def _from_result(result: Any, line: int, path: str, taker: _Taker, only: str | None) -> Iterator[Trace | BrokenLine]:
    if only == "text":
        if isinstance(result, str):
            yield _text_trace(result, path, line)
        else:
            yield BrokenLine(path, line, "--jq yields no text here, which --from text names")
    elif isinstance(result, str):
        try:
            known = kind_of(loads(result)) is not None
        except BadValueError:
            known = True  # and said to be broken
        except NotJsonError:
            known = looks_like_sse(result)
        if known:
            yield from _from_body(result, line, path, {}, "chunks", only)
        elif only is not None:
            yield BrokenLine(path, line, f"--jq yields plain text here, not what --from {only} names")
        else:
            yield _text_trace(result, path, line)
    elif isinstance(result, list):
        for element in result:
            yield from taker.take(line, element)
    else:
        yield from taker.take(line, result)


def _from_interaction(item: Interaction, path: str) -> Iterator[Trace | BrokenLine]:
    fault = request_fault(item.request)
    for found in _from_body(item.body, item.line, path, item.request, "vcr"):
        broken = isinstance(found, Trace) and fault is not None
        yield BrokenLine(path, item.line, f"the request of this interaction is none ({fault})") if broken else found


def _from_body(
    body: Any, line: int, path: str, request: Mapping[str, Any], name: str, only: str | None = None
) -> Iterator[Trace | BrokenLine]:
    """The traces of one answer: a stream as text, a parsed answer, or none where it is about something else."""
    taker = _Taker(path, name, request=request, only=only, quiet=True)
    if not isinstance(body, str):
        elements = body if isinstance(body, list) else [body]
        yield from taker.all((line, element) for element in elements)
    elif looks_like_sse(body.lstrip()):
        yield from taker.all(sse_values(((line, one) for one in body.splitlines()), path))
    elif body.lstrip().startswith("{"):
        whole = parse_line(path, line, body)
        lines = body.splitlines()
        if isinstance(whole, BrokenLine) and len(lines) > 1:
            yield from taker.all(parse_line(path, line, one) for one in lines if one.strip())
        else:
            yield from taker.all([whole])


class _Taker:
    """Turns JSON values into traces, and says of those that are none what they are.

    `only` refuses every other form (`--from`); `quiet` passes over values that are about something else, as a cassette
    holds answers of every kind.
    """

    def __init__(
        self,
        path: str,
        name: str,
        *,
        request: Mapping[str, Any] | None = None,
        only: str | None = None,
        quiet: bool = False,
    ) -> None:
        self._path = path
        self._chunks = ChunkAssembler(path, source=name, request=request)
        self._only = only
        self._quiet = quiet
        self._refused: set[str] = set()
        self._took = False

    def all(self, values: Iterable[Value | BrokenLine]) -> Iterator[Trace | BrokenLine]:
        """The traces of all values, those still under way at the end included."""
        for item in values:
            if isinstance(item, BrokenLine):
                yield item
            else:
                yield from self.take(*item)
        yield from self.end()

    def take(self, line: int, value: Any) -> Iterator[Trace | BrokenLine]:
        if value is DONE:
            yield from self._chunks.done()
            return
        kind = kind_of(value)
        self._took = self._took or kind is not None
        if kind == "response" and self._chunks.is_open(value):
            kind = "chunk"  # the last chunk of a text completion carries its usage
        if kind is not None and self._only is not None and kind not in _FORCED[self._only]:
            yield self._broken(line, f"this is {_CALLED[kind]}, not what --from {self._only} names")
        elif kind in ("chunk", "response") and (fault := choices_fault(value)) is not None:
            yield self._broken(line, f"this is no {_CALLED[kind].removeprefix('a ')} ({fault})")
        elif kind == "chunk":
            yield from self._chunks.chunk(line, value)
        elif kind == "response":
            yield from self._chunks.response(line, value)
        elif kind == "trace":
            try:
                yield trace_of(value, path=self._path, line=line)
            except TraceFormError as error:
                yield self._broken(line, f"this is no trace ({error})")
        elif kind == "error":
            yield self._broken(line, f"the server answered with an error ({_error_text(value)})")
        elif kind == "cassette":
            yield self._broken(line, "this is a cassette inside another format")
        else:
            yield from self._unknown(line, value)

    def end(self) -> Iterator[Trace]:
        yield from self._chunks.end()

    def _unknown(self, line: int, value: Any) -> Iterator[BrokenLine]:
        foreign = foreign_kind(value)
        if foreign is not None and not self._took and not self._quiet:
            raise _refused(self._path, line, foreign)
        if foreign is not None:
            if foreign not in self._refused:
                self._refused.add(foreign)
                yield self._broken(line, f"{FOREIGN[foreign]} is not read by this release")
        elif not self._quiet:
            yield self._broken(line, "this JSON is in no form that is read")

    def _broken(self, line: int, reason: str) -> BrokenLine:
        return BrokenLine(self._path, line, reason)


_FORCED: Mapping[str, tuple[str, ...]] = {
    "trace": ("trace",),
    "sse": ("chunk", "response", "error"),
    "chunks": ("chunk", "error"),
    "response": ("response", "error"),
}
"""The kinds of values that each forced format takes."""
_CALLED = {
    "trace": "a reasonctl trace",
    "chunk": "a chat chunk",
    "response": "a whole chat completion",
    "cassette": "a cassette",
    "error": "an error",
}


def _refused(path: str, line: int, foreign: str) -> InputError:
    return InputError(
        f"{FOREIGN[foreign]} is not read by this release",
        source=path,
        line=line,
        mend="record through the OpenAI chat API, or map it with --jq",
    )


def _error_text(value: Mapping[str, Any]) -> str:
    error = value.get("error", value)
    text = error.get("message") if isinstance(error, dict) else error
    return " ".join(str(text or error).split())[:200]
