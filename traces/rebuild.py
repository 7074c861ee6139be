"""Putting the markers back into a recording that only has the split."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..parsers import ROWS, paired
from .trace import Segment, Trace, TraceDelta


@dataclass(frozen=True, slots=True)
class Markers:
    """What a model writes around its reasoning and its answer.

    Args:
        start, end: before and behind reasoning.
        answer, done: before and behind content.
        between: what stands before every part but the first.
        opener: the start marker as it stands in a prompt, where the output never has one.
    """

    start: str
    end: str
    answer: str = ""
    done: str = ""
    between: str = ""
    opener: str = ""

    def opened_by(self, prompt: str) -> bool:
        """Whether a prompt ends inside a thinking block."""
        return prompt.rfind((self.start or self.opener).rstrip()) > prompt.rfind(self.end)


_TOKENS = re.compile(r"<[^<>]*>|\[/?THINK\]|\s?\w+|\s+|[^\w\s]")
DEFAULT_MARKERS = Markers("<think>", "</think>")
_MUSE = Markers(" to=self<|message|>", "<|eom|>", " to=user<|message|>", between="<|start|>assistant")
_HARMONY = Markers(
    "<|channel|>analysis<|message|>", "<|end|>", "<|channel|>final<|message|>", between="<|start|>assistant"
)
_WHOLE: Mapping[str, Markers] = {
    # Source: vLLM 0.33.0 vllm/parser and vllm/reasoning, and the models' own chat templates.
    "openai_gptoss": _HARMONY,
    "cohere_command3": Markers("<|START_THINKING|>", "<|END_THINKING|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    "cohere_command4": Markers("<|START_THINKING|>", "<|END_THINKING|>", "<|START_TEXT|>", "<|END_TEXT|>"),
    "gemma4": Markers("<|channel>thought\n", "<channel|>"),
    "hunyuan_a13b": Markers("<think>\n", "\n</think>\n", "<answer>\n", "\n</answer>"),
    "inkling": Markers("<|content_thinking|>", "<|end_message|>", "<|content_text|>", between="<|message_model|>"),
    "kimi_k3": Markers(
        "<|open|>think<|sep|>", "<|close|>think<|sep|>", "<|open|>response<|sep|>", "<|close|>response<|sep|>"
    ),
    "step3": Markers("", "</think>", opener="<think>"),
    "muse": _MUSE,
    "muse_glimmer": _MUSE,
    "musespark1x": _MUSE,
}
"""Parsers whose models write more than a marker before and one behind their reasoning."""


def markers_of(parser: str | None, model: str | None) -> Markers:
    """The markers a parser takes away, the first of several; `<think>` where nothing tells.

    Args:
        parser: the parser that served the trace, or is assumed to have; None where none is known.
        model: the model's name, by which the parser table pairs one.
    """
    names = [parser] if parser is not None else list(paired(model)) if model else []
    for name in names:
        if name in _WHOLE:
            return _WHOLE[name]
        row = ROWS.get(name)
        if row is not None and row.start and row.end:
            return Markers(row.start[0], row.end[0])
    return DEFAULT_MARKERS


def rebuild(trace: Trace, markers: Markers, *, opened: bool) -> Trace:
    """The trace with a text that reads as the model wrote it, as far as that can be told. It stays marked lossy.

    Every part of reasoning and of content gets the markers around it, each token of them a delta of its own, since that
    is how a model emits them. A run that ended in reasoning gets no end marker, unless a tool call followed it, and one
    that was cut in its content gets none behind that.

    Args:
        trace: a lossy trace.
        markers: what stands around reasoning and content.
        opened: the prompt ends inside a thinking block, so the output carries no start marker.
    """
    recorded = trace.recorded
    called = recorded is not None and bool(recorded.tool_calls)
    cut = recorded is not None and recorded.finish_reason == "length"
    parts = _parts(trace.segments, markers, opened=opened, called=called, cut=cut)
    deltas = tuple(TraceDelta(part) for part in parts if part)
    text = "".join(delta.text or "" for delta in deltas)
    return replace(trace, output_text=text, output_ids=None, deltas=deltas if trace.streamed else ())


def _parts(segments: Sequence[Segment], markers: Markers, *, opened: bool, called: bool, cut: bool) -> Iterator[str]:
    at: str | None = "reasoning" if opened else None
    said = False
    for kind, text in segments:
        if not text:
            continue
        if kind != at:
            if at is not None:
                yield from _tokens(markers.end if at == "reasoning" else markers.done)
                yield from _tokens(markers.between)
            yield from _tokens(markers.start if kind == "reasoning" else markers.answer)
            at = kind
        yield text
        said = True
    if at == "reasoning" and said and called:
        yield from _tokens(markers.end)
    elif at == "content" and not cut:
        yield from _tokens(markers.done)


def _tokens(marker: str) -> list[str]:
    """What stands between angles or brackets is one token, and so is a word."""
    return _TOKENS.findall(marker)
