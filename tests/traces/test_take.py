"""Whatever stands in place of a part of a recording costs that recording at most, never the run."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

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
