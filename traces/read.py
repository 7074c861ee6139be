"""Traces out of a file, in whichever of the known formats it is; told apart by looking at the content."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

from ..errors import InputError
from .decode import BadValueError, NotJsonError, loads
from .formats import FORMATS
from .jq import Jq, JqEndedError, JqError
from .kinds import kind_of
from .pairs import HAR_ENTRIES, MAPPINGS, Interaction, listed_pairs
from .response import Origin
from .source import READ, Source, decodes, open_source
from .sse import looks_like_sse, sse_values
from .surrogates import whole_trace
from .take import FORCED, Taker, from_body, from_interaction
from .trace import BrokenLine, Trace
from .values import json_values
from .vcr import interactions, looks_like_cassette

_OTHER_JQ = "give --jq an expression that holds for every value, such as one with .key? and // empty"
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
        format: a name of FORMATS; None looks at the content.
        jq: an expression that maps the file's JSON values to values of a known format.
        watch: called with the number of bytes of the file read so far.

    Raises:
        InputError: the file cannot be read, is in a format that is not read, or holds no trace.
    """
    if format is not None and format not in FORMATS:
        raise InputError(f"{format!r} is no format", source="--from", mend=f"use one of {', '.join(FORMATS)}")
    if jq is not None and format in ("vcr", "har"):
        mend = f"use one of {', '.join(FORCED)}, text"
        raise InputError(f"what --jq yields is no {_FILES[format]}", source="--from", mend=mend)
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
                f"no trace in it ({first.reason if first else _MISSING.get(name, 'no answer in it')})",
                source=source.name,
                line=first.line if first else None,
                mend=(
                    first.mend
                    if first and first.mend
                    else f"leave out --from {format}: the format is told by looking"
                    if format is not None
                    else f"--from {'|'.join(FORMATS)} forces a format, --jq maps other JSON"
                    if first
                    else "give a recording of at least one answer"
                ),
            )


_FILES = {"vcr": "cassette", "har": "HAR file"}
_MISSING = {
    "sse": "no event with a message in it",
    "chunks": "no choice in any of its messages",
    "response": "no choice in it",
    "trace": "no line of reasonctl.trace/1",
    "text": "no text",
    "vcr": "no interaction with an answer of a model in it",
    "har": "no entry with an answer of a model in it",
    "pairs": "no answer of a model in it",
    "canitoolcall": "no fixture",
}
"""What a file of each format lacks where nothing in it is broken and it holds no trace."""
_CONTAINERS = {"chunk": "chunks", "error": "chunks", "cassette": "vcr", "fixture": "canitoolcall", "pair": "pairs"}
"""The format of a file whose first value is of a kind; other kinds are formats by the same name."""
_HAR = re.compile(r'\{\s*"log"\s*:\s*\{')
_WIREMOCK = re.compile(r'\{\s*"mappings"\s*:\s*\[')


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
    if _HAR.match(start):
        return "har"
    if _WIREMOCK.match(start):
        return "pairs"
    for value in _first_values(start):
        kind = kind_of(value)
        return _CONTAINERS.get(kind, kind) if kind is not None else "chunks"
    looks_cut = start.startswith(("[{", '{"', "{\n", "{ ", "[\n"))
    return "chunks" if looks_cut else "text"


def _first_values(text: str) -> Iterator[Any]:
    """The first JSON value of a text that may be cut: a whole line, an element of an array, or the whole."""
    decoder = json.JSONDecoder()
    for candidate in (text, text[1:].lstrip() if text[0] == "[" else ""):
        try:
            value, _ = decoder.raw_decode(candidate)
        except RecursionError:  # JSON all the same: its reader says what is wrong with it
            yield None
            return
        except ValueError:
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
    only = name if forced else None
    origin = Origin(source.name, name)
    start = source.head.lstrip("\ufeff \t\r\n\x1e")
    if name == "text":
        yield _plain_text(source)
    elif name in ("vcr", "har") or (name == "pairs" and _WIREMOCK.match(start)):
        yield from _from_interactions(source, name)
    elif name == "sse" or (forced and looks_like_sse(start)):
        yield from Taker(origin, only=only).all(sse_values(source.lines(), source.name, bare=not forced))
    else:
        yield from Taker(origin, only=only).all(json_values(source))


def _from_interactions(source: Source, name: str) -> Iterator[Trace | BrokenLine]:
    listed = interactions(source) if name == "vcr" else listed_pairs(source, HAR_ENTRIES if name == "har" else MAPPINGS)
    for item in listed:
        yield from from_interaction(item, source.name, name) if isinstance(item, Interaction) else [item]


def _plain_text(source: Source) -> Trace:
    text = source.text.read()
    if not decodes(text):
        raise InputError("this is not UTF-8", source=source.name)
    return _text_trace(text, source.name, 1)


def _text_trace(text: str, path: str, line: int) -> Trace:
    return Trace(id=f"{path}:{line}", path=path, line=line, source="text", output_text=text)


def _mapped(source: Source, program: Jq, only: str | None) -> Iterator[Trace | BrokenLine]:
    """What the jq expression makes of every value; texts it yields may be event streams, JSON or raw output."""
    taker = Taker(Origin(source.name, "chunks"), only=only)
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
            yield BrokenLine(source.name, line, f"--jq fails on this value ({error})", _OTHER_JQ)
        except JqEndedError as error:
            mend = "give --jq an expression that ends"
            raise InputError(
                f"--jq had to be stopped on this value ({error})", source=source.name, line=line, mend=mend
            ) from None
    yield from taker.end()


def _from_result(result: Any, line: int, path: str, taker: Taker, only: str | None) -> Iterator[Trace | BrokenLine]:
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
            yield from from_body(result, line, Origin(path, "chunks"), only)
        elif only is not None:
            yield BrokenLine(path, line, f"--jq yields plain text here, not what --from {only} names")
        else:
            yield _text_trace(result, path, line)
    elif isinstance(result, list):
        for element in result:
            yield from taker.take(line, element)
    else:
        yield from taker.take(line, result)
