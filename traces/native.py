"""The project's own trace lines, `reasonctl.trace/1`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, cast

from .forms import request_fault
from .trace import Recorded, Segment, Trace, TraceDeltas

SCHEMA = "reasonctl.trace/1"
_INT = frozenset((int,))
_OBJECT = frozenset((dict,))
_TEXT_OR_NONE = frozenset((str, type(None)))
_LIST_OR_NONE = frozenset((list, type(None)))
_KEYS = frozenset(("schema", "id", "model", "request", "prompt", "output", "recorded"))


class TraceFormError(ValueError):
    """A value that calls itself a trace and is not one; the message says what is wrong with it."""


def trace_of(value: Mapping[str, Any], *, path: str, line: int) -> Trace:
    """The trace a `reasonctl.trace/1` object holds. Unknown keys are kept in `extra`.

    Raises:
        TraceFormError: a part has another type than the format says, or there is no output.
    """
    schema = value.get("schema", SCHEMA)
    if schema != SCHEMA:
        raise TraceFormError(f"schema {schema!r} is not {SCHEMA}")
    request = _mapping(value, "request")
    fault = request_fault(request)
    if fault is not None:
        raise TraceFormError(fault)
    prompt = _mapping(value, "prompt")
    output = _mapping(value, "output")
    recorded = _recorded(_mapping(value, "recorded"))
    text = _text(output, "text", "output")
    ids = _ids(output, "output")
    deltas = _deltas(output)
    if deltas and None not in deltas.texts:
        joined = "".join(cast(Sequence[str], deltas.texts))
        if text is not None and text != joined:
            raise TraceFormError(f"output.text and the texts of output.deltas differ {_from_where(text, joined)}")
        text = joined
    if deltas and None not in deltas.ids:
        streamed = tuple(chain.from_iterable(cast(Sequence[Sequence[int]], deltas.ids)))
        if ids is not None and ids != streamed:
            raise TraceFormError(f"output.token_ids and the ids of output.deltas differ {_from_where(ids, streamed)}")
        ids = streamed
    segments: tuple[Segment, ...] = ()
    if text is None and ids is None:
        if recorded is None or (recorded.reasoning is None and recorded.content is None):
            raise TraceFormError("output holds none of text, token_ids and deltas")
        parts: tuple[Segment, ...] = (("reasoning", recorded.reasoning or ""), ("content", recorded.content or ""))
        segments = tuple(part for part in parts if part[1])
    identity = value.get("id")
    return Trace(
        id=str(identity) if isinstance(identity, (str, int)) else f"{path}:{line}",
        path=path,
        line=line,
        source="trace",
        model=_text(value, "model", "trace"),
        request=request,
        prompt_text=_text(prompt, "text", "prompt"),
        prompt_ids=_ids(prompt, "prompt"),
        output_text=text,
        output_ids=ids,
        deltas=deltas,
        recorded=recorded,
        segments=segments,
        streamed=bool(deltas),
        lossy=text is None and ids is None,
        token_texts={
            ids[0]: text for text, ids in zip(deltas.texts, deltas.ids, strict=True) if text and ids and len(ids) == 1
        },
        extra={key: one for key, one in value.items() if key not in _KEYS},
        broken=broken if isinstance(broken := value.get("broken"), str) else None,
    )


def _from_where(one: Sequence[Any], other: Sequence[Any]) -> str:
    same = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return f"at place {same + 1}"


def _recorded(value: Mapping[str, Any]) -> Recorded | None:
    if not value:
        return None
    finish = _text(value, "finish_reason", "recorded")
    stop = value.get("stop_reason")
    calls = value.get("tool_calls")
    return Recorded(
        reasoning=_text(value, "reasoning", "recorded"),
        content=_text(value, "content", "recorded"),
        has_split="reasoning" in value or "content" in value,
        parser=_text(value, "parser", "recorded"),
        server=_text(value, "server", "recorded"),
        tool_calls=tuple(calls) if isinstance(calls, list) else (),
        finish_reason=finish,
        stop_reason=stop if isinstance(stop, (str, int)) else None,
        usage=_mapping(value, "usage"),
        reasoning_field="reasoning" if value.get("reasoning") else None,
    )


def _deltas(output: Mapping[str, Any]) -> TraceDeltas:
    deltas = output.get("deltas")
    if deltas is None:
        return TraceDeltas((), ())
    if not isinstance(deltas, list):
        raise TraceFormError("output.deltas is no list")
    if not _OBJECT.issuperset(map(type, deltas)):
        raise TraceFormError("an entry of output.deltas is no object")
    texts = [delta.get("text") for delta in deltas]
    ids = [delta.get("token_ids") for delta in deltas]
    if not _TEXT_OR_NONE.issuperset(map(type, texts)):
        raise TraceFormError("output.deltas[].text is no text")
    if not _LIST_OR_NONE.issuperset(map(type, ids)):
        raise TraceFormError("output.deltas[].token_ids is no list of token ids")
    if None in texts and None in ids and (None, None) in zip(texts, ids, strict=True):
        raise TraceFormError("an entry of output.deltas holds neither text nor token_ids")
    _checked([*chain.from_iterable(filter(None, ids))], "output.deltas[]")
    return TraceDeltas(texts, ids)


def _token_texts(deltas: TraceDeltas) -> Mapping[int, str]:
    """The texts of tokens that have a delta of their own."""
    each = zip(deltas.texts, deltas.ids, strict=True)
    return {ids[0]: text for text, ids in each if text and ids and len(ids) == 1}


def _mapping(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    one = value.get(key)
    if one is None:
        return {}
    if not isinstance(one, dict):
        raise TraceFormError(f"{key} is no object")
    return one


def _text(value: Mapping[str, Any], key: str, where: str) -> str | None:
    one = value.get(key)
    if one is not None and not isinstance(one, str):
        raise TraceFormError(f"{where}.{key} is no text")
    return one


def _ids(value: Mapping[str, Any], where: str) -> tuple[int, ...] | None:
    ids = value.get("token_ids")
    return None if ids is None else _checked(ids, where)


def _checked(ids: Any, where: str) -> tuple[int, ...]:
    if type(ids) is not list or not _INT.issuperset(map(type, ids)) or min(ids, default=0) < 0:
        raise TraceFormError(f"{where}.token_ids is no list of token ids")
    return tuple(ids)
