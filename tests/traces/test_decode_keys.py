"""Keys given twice are found however they are written, without looking at each object."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reasonctl.traces.decode import BadValueError, loads


class Pairs:
    """An object as written, keys twice and all."""

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        self.pairs = pairs


TEXTS = st.text('a":\\ \t\0é', max_size=4)
VALUES = st.recursive(
    st.one_of(st.none(), st.integers(), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.lists(st.tuples(TEXTS, inner), max_size=3).map(Pairs)),
    max_leaves=8,
)


def written(value: object, colon: str) -> str:
    if isinstance(value, Pairs):
        return "{" + ", ".join(f"{json.dumps(key)}{colon}{written(one, colon)}" for key, one in value.pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(written(one, colon) for one in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def holds_twice(value: object) -> bool:
    if isinstance(value, Pairs):
        keys = [key for key, _ in value.pairs]
        return len(set(keys)) < len(keys) or any(holds_twice(one) for _, one in value.pairs)
    return isinstance(value, list) and any(map(holds_twice, value))


@given(VALUES, st.sampled_from((":", ": ", " :", "\t: ")))
@example(Pairs([("a", 1), ("a", ":")]), ":")
@example(Pairs([("a", 1), ("a", 1), ("b\\", 2)]), ": ")
@example(Pairs([("a", ['":']), ("a", "\0:")]), ":")
def test_a_key_twice_is_refused_and_nothing_else(value: object, colon: str) -> None:
    text = written(value, colon)
    if holds_twice(value):
        with pytest.raises(BadValueError, match="stands twice"):
            loads(text)
    else:
        assert loads(text) == json.loads(text)
