"""Whatever stands in place of a part of a recording costs that recording at most, never the run."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonctl.traces.response import Origin
from reasonctl.traces.surrogates import whole_trace
from reasonctl.traces.take import Taker
from reasonctl.traces.trace import BrokenLine, Trace

from .test_canitoolcall import FIXTURE
from .test_dialects import STREAMS, WHOLE
from .test_pairs import SHAPES

CHUNK = {
    "id": "c",
    "model": "m",
    "choices": [
        {
            "index": 0,
            "delta": {
                "content": "a",
                "reasoning": "b",
                "reasoning_details": [{"text": "b"}],
                "tool_calls": [{"index": 0, "id": "c1", "function": {"name": "f", "arguments": "{"}}],
            },
            "token_ids": [1],
            "logprobs": {"content": [{"token": "a"}]},
            "finish_reason": None,
        }
    ],
    "usage": {"completion_tokens": 1},
    "prompt_token_ids": [1],
}
RECORDINGS: list[list[Any]] = [
    *STREAMS.values(),
    *([one] for one in (*WHOLE.values(), *SHAPES.values(), FIXTURE)),
    [CHUNK, CHUNK, CHUNK],
]
OTHERS = (None, [], {}, 5, "x", True, -1, 1.5, ["a"], {"a": 1}, [[]], "\ud83d", [{}], {"type": []})


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The keys that lead to every part of a JSON value."""
    if path:
        yield path
    for key, one in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(one, (*path, key))


def changed(value: Any, chance: random.Random) -> Any:
    """The value with one or two parts of it missing, or of another type."""
    value = copy.deepcopy(value)
    for _ in range(chance.randint(1, 2)):
        found = list(places(value))
        if not found:
            break
        *path, last = chance.choice(found)
        inner = value
        for key in path:
            inner = inner[key]
        if isinstance(inner, dict) and chance.random() < 0.2:
            del inner[last]
        else:
            inner[last] = copy.deepcopy(chance.choice(OTHERS))
    return value


@settings(max_examples=300)
@given(st.randoms(use_true_random=False))
def test_parts_of_other_types_break_nothing(chance: random.Random) -> None:
    values = [changed(one, chance) if chance.random() < 0.4 else one for one in chance.choice(RECORDINGS)]
    for found in Taker(Origin("f", "sse")).all(enumerate(values, 1)):
        assert isinstance(found, (Trace, BrokenLine))
        if isinstance(found, Trace):
            trace = whole_trace(found)
            assert isinstance(trace.id, str)
            assert trace.model is None or isinstance(trace.model, str)
            "".join(text for _, text in trace.segments).encode()


@pytest.mark.parametrize(
    ("value", "reason", "mend"),
    [
        (
            {"choices": {"a": 1}},
            "choices is an object, where a list of objects belongs",
            "make choices a list of objects",
        ),
        ({"choices": [None]}, "choices[0] is null, where an object belongs", "make choices[0] an object"),
        ({"choices": [{"message": None}]}, "choices[0] holds no message, delta or text", "give choices[0] the message"),
        (
            {"object": "response", "output": "x"},
            "output is a text, where a list of objects belongs",
            "make output a list",
        ),
        ({"output": []}, "output is a list, where an object belongs", "make output an object"),
        ({"id": "a", "output": "x"}, "output is a text, where an object belongs", "make output an object"),
        (
            {"output": {}, "recorded": {}},
            "its output holds none of text, token_ids and deltas",
            "give output one of them",
        ),
        ({"schema": "reasonctl.report/1"}, "it is a report of reasonctl", "give the recordings"),
        (
            {"model": "m", "messages": []},
            "it is a request without an answer",
            "give the answer's recording, and this with",
        ),
    ],
)
def test_what_comes_near_to_a_form_is_told_what_keeps_it_from_it(value: Any, reason: str, mend: str) -> None:
    (found,) = Taker(Origin("f", "chunks")).all([(1, value)])
    assert isinstance(found, BrokenLine)
    assert found.reason == f"this JSON is in no form that is read ({reason})"
    assert str(found.mend).startswith(mend)


@pytest.mark.parametrize("value", [5, "x", [], {}, {"a": 1}, {"choices": []}])
def test_what_comes_near_to_none_is_told_how_to_map_it(value: Any) -> None:
    for found in Taker(Origin("f", "chunks")).all([(1, value)]):
        assert isinstance(found, BrokenLine)
        assert (found.reason, found.mend) == ("this JSON is in no form that is read", None)
