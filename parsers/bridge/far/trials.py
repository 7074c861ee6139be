"""What a parser's author wants to know: many outputs at once, and what the server asks besides the split.

The structured-output manager of the engine core holds a reasoning parser of its own and asks it about ids alone
(vLLM 0.33.0, v1/structured_output/__init__.py); that one is built here as it is there, without the `Parser` around it.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from types import FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

from . import runs

if TYPE_CHECKING:
    from .runner import Far

_SHOWN = 200
"""Characters of a value's `repr` that are kept."""
_METHODS = (
    "is_reasoning_end",
    "is_reasoning_end_streaming",
    "extract_content_ids",
    "extract_reasoning",
    "extract_reasoning_streaming",
    "count_reasoning_tokens",
    "adjust_request",
)
_WINDOW = 200
"""Deltas at the begin and at the end of a long stream whose times are compared."""


def trials(far: Far, batch: dict[str, Any]) -> dict[str, Any]:
    """Many outputs, one after the other.

    Args:
        far: this runner.
        batch: `parser`, `tokenizer` and `cases`, each as `runs.run` takes it without those two; `asks` in one are
            further questions, each answered under its name: `content_ids`, `ends` (what `is_reasoning_end_streaming`
            says after each token), `ended` (what `is_reasoning_end` says of prompt and output), `adjusted_twice`, and
            `beside`, with `other` a second case: both streamed in turns, each by its first stream.

    Returns:
        `answers`, in that order. An exception of a question is {"error", "message"} in place of its answer.
    """
    shared = {"parser": batch["parser"], "tokenizer": batch["tokenizer"]}
    return {"answers": [_trial(far, {**shared, **case}) for case in batch["cases"]]}


def describe(far: Far, case: dict[str, Any]) -> dict[str, Any]:
    """What the parser's class says of itself.

    Args:
        far: this runner.
        case: `parser`, `tokenizer`, `kwargs`.

    Returns:
        `class`, `module`, `start` and `end` (the delimiter strings), `engine`, `one_instance` (two are the same
        object), and `defined`: for each method of the contract the class that has it. Or `error` and `message`.
    """
    answer: dict[str, Any] = {}
    try:
        first, second = _reasoning(far, case), _reasoning(far, case)
        answer |= {"class": type(first).__name__, "module": type(first).__module__}
        answer["start"] = getattr(first, "reasoning_start_str", None)
        answer["end"] = getattr(first, "reasoning_end_str", None)
        answer["engine"] = bool(getattr(first, "engine_based_streaming", False))
        answer["one_instance"] = first is second
        answer["defined"] = {name: _defined(type(first), name) for name in _METHODS}
    except Exception as error:
        runs.raised(answer, error)
    return answer


def shared_state(far: Far, case: dict[str, Any]) -> dict[str, Any]:
    """What the parser's own classes and their modules hold by now: `state`, texts by `Class.name` or `module.name`.

    vLLM's own classes and modules are left out, and so is what is no state: functions, classes, modules.
    """
    cls = far.vllm.manager.get_reasoning_parser(case["parser"])
    own = [each for each in cls.__mro__ if each is not object and each.__module__.partition(".")[0] != "vllm"]
    state: dict[str, str] = {}
    for each in own:
        state |= {f"{each.__qualname__}.{name}": text for name, text in _values(vars(each))}
    for module in {each.__module__ for each in own}:
        state |= {f"{module}.{name}": text for name, text in _values(vars(sys.modules.get(module, os)))}
    return {"state": state}


def cost(far: Far, case: dict[str, Any]) -> dict[str, Any]:
    """What a delta costs inside the reasoning parser at the begin of a long stream, and at its end.

    Args:
        far: this runner.
        case: `parser`, `tokenizer`, `kwargs`, `head`, a [text, ids] that opens the stream, `texts` and `ids` of a short
            stretch of thought that is repeated, `tokens`, how many in all, and `most`, seconds after which it stops
            where it has come to.

    Returns:
        `tokens` that were fed, `early` and `late`: the median seconds of a delta. Or `error` and `message`.
    """
    answer: dict[str, Any] = {}
    try:
        times = _times(far, case)
        answer["tokens"] = len(times)
        answer["early"] = statistics.median(times[:_WINDOW])
        answer["late"] = statistics.median(times[-_WINDOW:])
    except Exception as error:
        runs.raised(answer, error)
    return answer


OPS = {"trials": trials, "describe": describe, "shared_state": shared_state, "cost": cost}


def _trial(far: Far, case: dict[str, Any]) -> dict[str, Any]:
    asks = case.get("asks", ())
    answer = runs.run(far, {**case, "messages": True})
    for ask in asks:
        try:
            answer[ask] = _ASKED[ask](far, case)
        except Exception as error:
            answer[ask] = {}
            runs.raised(answer[ask], error)
    return answer


def _content_ids(far: Far, case: dict[str, Any]) -> Any:
    found = _reasoning(far, case).extract_content_ids(list(case["ids"]))
    return None if found is None else [int(token_id) for token_id in found]


def _ends(far: Far, case: dict[str, Any]) -> list[Any]:
    """As the structured-output manager asks: of all ids so far, the prompt's included, and of those of this step."""
    parser = _reasoning(far, case)
    # Releases that lack the streaming question ask the other one at every step.
    ends = getattr(parser, "is_reasoning_end_streaming", lambda every, _: parser.is_reasoning_end(every))
    every = list(case["prompt_ids"] or ())
    found = []
    for token_id in case["ids"]:
        every.append(token_id)
        found.append(runs.truth(ends(list(every), [token_id])))
    return found


def _ended(far: Far, case: dict[str, Any]) -> Any:
    return runs.truth(_reasoning(far, case).is_reasoning_end([*(case["prompt_ids"] or ()), *case["ids"]]))


def _adjusted_twice(far: Far, case: dict[str, Any]) -> dict[str, Any]:
    """Whether `adjust_request` gives a request back, and the same one when asked again."""
    parser = _reasoning(far, case)
    if not hasattr(parser, "adjust_request"):
        return {"given": True, "same": True}
    request = far.vllm.request(case["request_kwargs"])
    once = parser.adjust_request(request=request)
    first = getattr(once, "skip_special_tokens", None)
    again = None if once is None else parser.adjust_request(request=once)
    same = again is not None and again.skip_special_tokens == first
    return {"given": once is not None, "same": same}


def _beside(far: Far, case: dict[str, Any]) -> list[list[Any]]:
    """Two requests at once: the messages of each, as a client of that request gets them."""
    shared = {"parser": case["parser"], "tokenizer": case["tokenizer"]}
    streams = [_fed(far, one) for one in (case, {**shared, **case["other"]})]
    found: list[list[Any]] = [[], []]
    waiting = [0, 1]
    while waiting:
        for number in tuple(waiting):
            try:
                found[number].append(next(streams[number]))
            except StopIteration:
                waiting.remove(number)
    return found


_ASKED = {
    "content_ids": _content_ids,
    "ends": _ends,
    "ended": _ended,
    "adjusted_twice": _adjusted_twice,
    "beside": _beside,
}


def _fed(far: Far, case: dict[str, Any]) -> Iterator[Any]:
    parser = runs.build_one(far, case)
    request = far.vllm.request(case["request_kwargs"])
    deltas = runs.deltas_of(case["streams"][0])
    for number, (text, ids) in enumerate(deltas, 1):
        yield runs.message(parser.delta(text, list(ids), case["prompt_ids"], request, finished=number == len(deltas)))


def _times(far: Far, case: dict[str, Any]) -> list[float]:
    parser = _reasoning(far, case)
    texts: Sequence[str] = case["texts"]
    unit: Sequence[int] = case["ids"]
    engine = bool(getattr(parser, "engine_based_streaming", False))
    asked = None if engine else getattr(parser, "is_reasoning_end_streaming", None)
    before, before_ids = case["head"]
    if before:
        parser.extract_reasoning_streaming("", before, before, [], list(before_ids), list(before_ids))
    found: list[float] = []
    ends = time.monotonic() + case["most"]
    for number in range(case["tokens"]):
        text, ids = texts[number % len(texts)], [unit[number % len(unit)]]
        now, now_ids = before + text, before_ids + ids
        begun = time.perf_counter()
        parser.extract_reasoning_streaming(before, now, text, before_ids, now_ids, ids)
        if asked is not None:  # an engine says itself that it has seen the end
            asked(now_ids, ids)
        found.append(time.perf_counter() - begun)
        before, before_ids = now, now_ids
        if number > 2 * _WINDOW and time.monotonic() > ends:
            break
    return found


def _reasoning(far: Far, case: dict[str, Any]) -> Any:
    made = far.vllm.manager.get_reasoning_parser(case["parser"])
    return made(far.tokenizers[case["tokenizer"]], chat_template_kwargs=dict(case["kwargs"]))


def _defined(cls: type, name: str) -> str | None:
    return next((each.__name__ for each in cls.__mro__ if name in vars(each)), None)


def _values(names: Any) -> Iterator[tuple[str, str]]:
    for name, value in list(names.items()):
        if name.startswith("__") or name == "_abc_impl" or isinstance(value, _NO_STATE) or callable(value):
            continue
        yield name, _shown(value)


def _shown(value: Any) -> str:
    try:
        held = getattr(value, "__dict__", None)
        return (repr(value) if held is None else f"{value!r} {held!r}")[:_SHOWN]
    except Exception as error:
        return type(error).__name__


_NO_STATE = (FunctionType, MethodType, ModuleType, type, property, classmethod, staticmethod)
