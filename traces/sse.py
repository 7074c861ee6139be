"""Server-sent events out of lines: what `curl -N` leaves in a file, with keep-alives, comments and a cut end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from .decode import BadValueError, NotJsonError, loads
from .source import decodes
from .trace import BrokenLine
from .values import TAKEN_OUT, Value

DONE = object()
"""The value of `data: [DONE]`: the stream at hand is over."""

_FIELD = re.compile(r"(?:data|event|id|retry)\s?:|:")
_STATUS_LINE = re.compile(r"(?:< ?)?HTTP/[\d.]+ \d{3}")
_MAX_PENDING = 10_000
"""Lines of one event's data; more is no event but something else that says `data:`."""


def looks_like_sse(head: str) -> bool:
    """Whether a text begins as an event stream: a field, a comment or an HTTP status comes first, and data follows that
    is JSON, or nothing but fields and comments.
    """
    lines = [line for line in head.split("\n") if line.strip()]
    if not lines or not (_FIELD.match(lines[0]) or _STATUS_LINE.match(lines[0])):
        return False
    if any(re.match(r"data:\s*(?:[{\[]|$)", line) for line in lines):
        return True
    return len(lines) > 1 and all(map(_FIELD.match, lines)) and any(line.startswith("data:") for line in lines)


def sse_values(lines: Iterable[tuple[int, str]], name: str, *, bare: bool = True) -> Iterator[Value | BrokenLine]:
    """The JSON value of every event, and DONE for the mark that ends a stream.

    Args:
        lines: (1-based number, text without its line end).
        name: the input, for what a broken event is reported under.
        bare: JSON without a field name counts from the start, not only behind a first event.

    Events are told apart by blank lines, as the standard has it, and by a data line that is a whole value of its own,
    since captures that went through `grep` or a log have lost the blank lines. Data over several lines is joined.
    Other fields, comments and unknown lines are passed over.
    Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
    """
    pending: list[tuple[int, str]] = []
    for number, line in lines:
        text = line.rstrip(" \t")
        if text.startswith("data:"):
            data = text[5:].removeprefix(" ")
            bare = True
        elif text.startswith("{") and bare and not pending:
            data = text  # an error body in place of a stream, or a capture that lost its field names
        elif not text:
            yield from _broken(pending, name)
            pending.clear()
            continue
        else:
            continue
        if data.strip() == "[DONE]":
            yield from _broken(pending, name)
            pending.clear()
            yield number, DONE
            continue
        if not data.strip() and not pending:
            continue
        found = _value(data)
        if found is None and pending and data.rstrip().endswith(("}", "]")):
            found = _value("\n".join([*(part for _, part in pending), data]))
            if found is not None:
                yield pending[0][0], found[0]
                pending.clear()
                continue
        if found is not None:
            yield from _broken(pending, name)
            pending.clear()
            yield number, found[0]
            continue
        pending.append((number, data))
        if len(pending) > _MAX_PENDING:
            yield from _broken(pending, name)
            pending.clear()
    yield from _broken(pending, name, at_end=True)


def _value(data: str) -> tuple[Any] | None:
    if not decodes(data):
        return None
    try:
        return (loads(data),)
    except NotJsonError:
        return None


def _broken(pending: list[tuple[int, str]], name: str, *, at_end: bool = False) -> Iterator[BrokenLine]:
    if not pending:
        return
    number = pending[0][0]
    if not all(decodes(part) for _, part in pending):
        yield BrokenLine(name, number, "the data of this event is not UTF-8", "save it as UTF-8")
        return
    try:
        loads("\n".join(part for _, part in pending))
        reason = "the data of this event is not JSON"
    except BadValueError as error:
        reason = f"the data of this event cannot be taken ({error})"
    except NotJsonError as error:
        reason = (
            "the stream is cut in the middle of this event"
            if at_end
            else f"the data of this event is not JSON ({error})"
        )
    yield BrokenLine(name, number, reason, "record it again" if at_end else TAKEN_OUT)
