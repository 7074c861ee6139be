"""Characters in halves: JSON can spell one half of a surrogate pair (`\\ud83d`), which no text on a wire can hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from .trace import Segment, Trace, TraceDelta, TraceDeltas

_T = TypeVar("_T")


def whole(value: _T) -> _T:
    """A JSON value with pairs joined and lone halves replaced by U+FFFD, as a tokenizer's decoder and HTTP do."""
    if isinstance(value, str):
        return _joined(value) if holds_half(value) else value  # type: ignore[return-value]
    if isinstance(value, dict):
        return {whole(key): whole(one) for key, one in value.items()}  # type: ignore[return-value]
    if isinstance(value, list):
        return [whole(one) for one in value]  # type: ignore[return-value]
    if isinstance(value, tuple):
        return tuple(whole(one) for one in value)  # type: ignore[return-value]
    return value


def holds_half(value: Any) -> bool:
    """Whether a JSON value has half a character somewhere."""
    if isinstance(value, str):
        if value.isascii():
            return False
        try:
            value.encode()
        except UnicodeEncodeError:
            return True
        return False
    if isinstance(value, dict):
        return any(map(holds_half, value)) or any(map(holds_half, value.values()))
    return isinstance(value, (list, tuple)) and any(map(holds_half, value))


def whole_trace(trace: Trace) -> Trace:
    """A trace whose every text can be encoded. Of a character that two deltas share, both halves go to the second."""
    if not _is_split(trace):
        return trace
    recorded = trace.recorded
    if recorded is not None:
        recorded = replace(
            recorded,
            reasoning=whole(recorded.reasoning),
            content=whole(recorded.content),
            parser=whole(recorded.parser),
            server=whole(recorded.server),
            finish_reason=whole(recorded.finish_reason),
            stop_reason=whole(recorded.stop_reason),
            tool_calls=whole(recorded.tool_calls),
            usage=whole(recorded.usage),
        )
    return replace(
        trace,
        id=whole(trace.id),
        model=whole(trace.model),
        request=whole(trace.request),
        prompt_text=whole(trace.prompt_text),
        output_text=whole(trace.output_text),
        deltas=_deltas(trace.deltas),
        segments=_segments(trace.segments),
        token_texts={one: whole(text) for one, text in trace.token_texts.items()},
        recorded=recorded,
        extra=whole(trace.extra),
    )


def _is_split(trace: Trace) -> bool:
    # Most traces are told by a few long strings: this runs on every one.
    deltas = trace.deltas
    texts = [*filter(None, deltas.texts if isinstance(deltas, TraceDeltas) else [delta.text for delta in deltas])]
    texts += [text for _, text in trace.segments]
    texts += trace.token_texts.values()
    texts += [text for text in (trace.id, trace.model, trace.prompt_text, trace.output_text) if text]
    if holds_half("".join(texts)) or holds_half(trace.request) or holds_half(trace.extra):
        return True
    recorded = trace.recorded
    if recorded is None:
        return False
    names = (recorded.parser, recorded.server, recorded.finish_reason, recorded.stop_reason)
    return holds_half((recorded.reasoning, recorded.content, *names, recorded.tool_calls, recorded.usage))


def _deltas(deltas: Sequence[TraceDelta]) -> Sequence[TraceDelta]:
    texts = _shifted([delta.text for delta in deltas])
    return tuple(
        delta if text == delta.text else replace(delta, text=text) for delta, text in zip(deltas, texts, strict=True)
    )


def _segments(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    found: list[Segment] = []
    begin = 0
    for at, (kind, _) in enumerate(segments):
        if at + 1 == len(segments) or segments[at + 1][0] != kind:
            texts = _shifted([text for _, text in segments[begin : at + 1]])
            found += [(kind, text or "") for text in texts]
            begin = at + 1
    return tuple(found)


def _shifted(texts: list[str | None]) -> list[str | None]:
    found: list[str | None] = []
    held = ""
    for at, text in enumerate(texts):
        if text is None:
            found.append(None)
            continue
        text = held + text  # noqa: PLW2901
        held = ""
        if text and "\ud800" <= text[-1] <= "\udbff" and any(texts[at + 1 :]):
            text, held = text[:-1], text[-1]  # noqa: PLW2901
        found.append(whole(text))
    return found


def _joined(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
