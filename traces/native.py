"""The project's own trace lines, `reasonctl.trace/1`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, cast

from .forms import Fault, ids_fault, request_fault, type_fault
from .trace import Recorded, Segment, Trace, TraceDeltas

SCHEMA = "reasonctl.trace/1"
_INT = frozenset((int,))
_OBJECT = frozenset((dict,))
_TEXT_OR_NONE = frozenset((str, type(None)))
_LIST_OR_NONE = frozenset((list, type(None)))
_KEYS = frozenset(("schema", "id", "model", "request", "prompt", "output", "recorded"))


class TraceFormError(ValueError):
    """A value that calls itself a trace and is not one: what is wrong with it, and the mend."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.mend = fault.mend


def trace_of(value: Mapping[str, Any], *, path: str, line: int) -> Trace:
    """The trace a `reasonctl.trace/1` object holds. Unknown keys are kept in `extra`.

    Raises:
        TraceFormError: a part has another type than the format says, or there is no output.
    """
    schema = value.get("schema", SCHEMA)
    if schema != SCHEMA:
        said = f"schema {schema!r} is not {SCHEMA}" if isinstance(schema, str) else f"its schema is not {SCHEMA}"
        raise TraceFormError(Fault(said, f"write it as {SCHEMA}, the only one that is read"))
    request = _mapping(value, "request")
    fault = request_fault(request)
    if fault is not None:
        raise TraceFormError(fault)
    prompt = _mapping(value, "prompt")
    output = _mapping(value, "output")
    recorded = _recorded(_mapping(value, "recorded"))
    text = _text(output, "text", "output.")
    ids = _ids(output, "output.")
    deltas = _deltas(output)
    if deltas and None not in deltas.texts:
        joined = "".join(cast(Sequence[str], deltas.texts))
        if text is not None and text != joined:
            raise TraceFormError(_differ("text", "texts", _from_where(text, joined)))
        text = joined
    if deltas and None not in deltas.ids:
        streamed = tuple(chain.from_iterable(cast(Sequence[Sequence[int]], deltas.ids)))
        if ids is not None and ids != streamed:
            raise TraceFormError(_differ("token_ids", "ids", _from_where(ids, streamed)))
        ids = streamed
    segments: tuple[Segment, ...] = ()
    if text is None and ids is None:
        if recorded is None or (recorded.reasoning is None and recorded.content is None):
            message = "output holds none of text, token_ids and deltas"
            raise TraceFormError(Fault(message, "give one of them, or recorded.reasoning and recorded.content"))
        parts: tuple[Segment, ...] = (("reasoning", recorded.reasoning or ""), ("content", recorded.content or ""))
        segments = tuple(part for part in parts if part[1])
    identity = value.get("id")
    return Trace(
        id=str(identity) if isinstance(identity, (str, int)) else f"{path}:{line}",
        path=path,
        line=line,
        source="trace",
        model=_text(value, "model", ""),
        request=request,
        prompt_text=_text(prompt, "text", "prompt."),
        prompt_ids=_ids(prompt, "prompt."),
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


def _differ(key: str, called: str, where: str) -> Fault:
    message = f"output.{key} and the {called} of output.deltas differ {where}"
    return Fault(message, f"leave output.{key} out: the deltas hold it all; or record it again")


def _from_where(one: Sequence[Any], other: Sequence[Any]) -> str:
    same = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return f"at place {same + 1}"


def _recorded(value: Mapping[str, Any]) -> Recorded | None:
    if not value:
        return None
    finish = _text(value, "finish_reason", "recorded.")
    stop = value.get("stop_reason")
    calls = value.get("tool_calls")
    return Recorded(
        reasoning=_text(value, "reasoning", "recorded."),
        content=_text(value, "content", "recorded."),
        has_split="reasoning" in value or "content" in value,
        parser=_text(value, "parser", "recorded."),
        server=_text(value, "server", "recorded."),
        tool_calls=tuple(calls) if isinstance(calls, list) else (),
        finish_reason=finish,
        stop_reason=stop if isinstance(stop, (str, int)) else None,
        usage=_mapping(value, "usage", "recorded."),
        reasoning_field="reasoning" if value.get("reasoning") else None,
    )


def _deltas(output: Mapping[str, Any]) -> TraceDeltas:
    deltas = output.get("deltas")
    if deltas is None:
        return TraceDeltas((), ())
    if not isinstance(deltas, list):
        raise TraceFormError(type_fault("output.deltas", deltas, "a list of objects"))
    if not _OBJECT.issuperset(map(type, deltas)):
        at, wrong = next((at, one) for at, one in enumerate(deltas) if type(one) is not dict)
        raise TraceFormError(type_fault(f"output.deltas[{at}]", wrong, "an object", needed=True))
    texts = [delta.get("text") for delta in deltas]
    ids = [delta.get("token_ids") for delta in deltas]
    if not _TEXT_OR_NONE.issuperset(map(type, texts)):
        at, wrong = next((at, one) for at, one in enumerate(texts) if type(one) not in _TEXT_OR_NONE)
        raise TraceFormError(type_fault(f"output.deltas[{at}].text", wrong, "a text"))
    if not _LIST_OR_NONE.issuperset(map(type, ids)):
        at, wrong = next((at, one) for at, one in enumerate(ids) if type(one) not in _LIST_OR_NONE)
        raise TraceFormError(type_fault(f"output.deltas[{at}].token_ids", wrong, "a list of token ids"))
    if None in texts and None in ids and (None, None) in zip(texts, ids, strict=True):
        at = next(at for at, pair in enumerate(zip(texts, ids, strict=True)) if pair == (None, None))
        message = f"output.deltas[{at}] holds neither text nor token_ids"
        raise TraceFormError(Fault(message, f"give output.deltas[{at}] one of them, or take it out"))
    if not _are_ids([*chain.from_iterable(filter(None, ids))]):
        faults = (ids_fault(f"output.deltas[{at}].token_ids", one) for at, one in enumerate(ids) if one)
        raise TraceFormError(next(fault for fault in faults if fault is not None))
    return TraceDeltas(texts, ids)


def _mapping(value: Mapping[str, Any], key: str, where: str = "") -> Mapping[str, Any]:
    one = value.get(key)
    if one is None:
        return {}
    if not isinstance(one, dict):
        raise TraceFormError(type_fault(f"{where}{key}", one, "an object", needed=key == "output"))
    return one


def _text(value: Mapping[str, Any], key: str, where: str) -> str | None:
    one = value.get(key)
    if one is not None and not isinstance(one, str):
        raise TraceFormError(type_fault(f"{where}{key}", one, "a text"))
    return one


def _ids(value: Mapping[str, Any], where: str) -> tuple[int, ...] | None:
    ids = value.get("token_ids")
    if ids is None:
        return None
    if not _are_ids(ids):
        raise TraceFormError(ids_fault(f"{where}token_ids", ids) or type_fault(where, ids, "a list of token ids"))
    return tuple(ids)


def _are_ids(ids: Any) -> bool:
    return type(ids) is list and _INT.issuperset(map(type, ids)) and min(ids, default=0) >= 0
