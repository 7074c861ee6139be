"""Putting the markers back into a recording that only has the split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..parsers import ROWS, paired
from .trace import Segment, Trace, TraceDelta

DEFAULT_MARKERS = ("<think>", "</think>")


def markers_of(parser: str | None, model: str | None) -> tuple[str, str]:
    """The start and end marker a parser takes away, the first of several; `<think>` where nothing tells.

    Args:
        parser: the parser that served the trace, or is assumed to have; None where none is known.
        model: the model's name, by which the parser table pairs one.
    """
    names = [parser] if parser is not None else list(paired(model)) if model else []
    for name in names:
        row = ROWS.get(name)
        if row is not None and row.start and row.end:
            label = next((text for text in row.stripped if text == "thought\n"), "")
            return row.start[0] + label, row.end[0]
    return DEFAULT_MARKERS


def rebuild(trace: Trace, markers: tuple[str, str], *, opened: bool) -> Trace:
    """The trace with a text that reads as the model wrote it, as far as that can be told. It stays marked lossy.

    Every change from reasoning to content becomes an end marker, every change back a start marker, each a delta of its
    own, since that is how a model emits them. A run that ended in reasoning gets no end marker, unless a tool call
    followed it.

    Args:
        trace: a lossy trace.
        markers: what stands before and behind reasoning.
        opened: the prompt ends inside a thinking block, so the output carries no start marker.
    """
    start, end = markers
    deltas: list[TraceDelta] = []
    thinking = False
    seen = False
    for kind, text in _nonempty(trace.segments):
        if kind == "reasoning" and not thinking:
            if seen or not opened:
                deltas.append(TraceDelta(start))
            thinking = True
        elif kind == "content" and thinking:
            deltas.append(TraceDelta(end))
            thinking = False
        elif kind == "content" and opened and not seen:
            deltas.append(TraceDelta(end))  # an empty thought: the server shows nothing of it
        seen = True
        deltas.append(TraceDelta(text))
    if thinking and trace.recorded is not None and trace.recorded.tool_calls:
        deltas.append(TraceDelta(end))
    text = "".join(delta.text or "" for delta in deltas)
    return replace(trace, output_text=text, output_ids=None, deltas=tuple(deltas) if trace.streamed else ())


def _nonempty(segments: Sequence[Segment]) -> list[Segment]:
    return [segment for segment in segments if segment[1]]
