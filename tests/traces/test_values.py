"""JSON values in every layout they come in, with what is broken costing only itself."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonctl.traces import values as module
from reasonctl.traces.source import Source
from reasonctl.traces.trace import BrokenLine
from reasonctl.traces.values import json_values, member_values

Layout = Callable[[list[Any]], str]
LAYOUTS: dict[str, Layout] = {
    "lines": lambda many: "".join(json.dumps(one) + "\n" for one in many),
    "lines with gaps": lambda many: "\n\n".join(json.dumps(one) for one in many),
    "crlf lines": lambda many: "".join(json.dumps(one) + "\r\n" for one in many),
    "array": json.dumps,
    "pretty array": lambda many: json.dumps(many, indent=2),
    "array, one a line": lambda many: "[\n" + ",\n".join(json.dumps(one) for one in many) + "\n]\n",
    "pretty, one after the other": lambda many: "\n".join(json.dumps(one, indent=1) for one in many),
    "glued": lambda many: "".join(json.dumps(one, indent=1) for one in many),
}


def read(text: str | bytes, **options: Any) -> list[Any]:
    data = text.encode() if isinstance(text, str) else text
    source = Source("x.json", io.BytesIO(data))
    return [item if isinstance(item, BrokenLine) else item[1] for item in json_values(source, **options)]


objects = st.lists(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
            lambda inner: st.lists(inner, max_size=3),
            max_leaves=4,
        ),
        min_size=1,
        max_size=3,
    ),
    min_size=1,
    max_size=5,
)


@pytest.mark.parametrize("layout", LAYOUTS)
@given(many=objects, window=st.integers(1, 200))
def test_every_layout_gives_the_same_values(layout: str, many: list[Any], window: int) -> None:
    before = module._WINDOW
    module._WINDOW = window
    try:
        assert read(LAYOUTS[layout](many)) == many
    finally:
        module._WINDOW = before


def test_places_count_lines() -> None:
    source = Source("x", io.BytesIO(b'\n{"a": 1}\n\n{"a": 2}\n'))
    assert list(json_values(source)) == [(2, {"a": 1}), (4, {"a": 2})]
    pretty = Source("x", io.BytesIO(json.dumps([{"a": 1}, {"a": 2}], indent=1).encode()))
    assert [item[0] for item in json_values(pretty) if isinstance(item, tuple)] == [2, 5]


def test_a_broken_line_costs_that_line() -> None:
    found = read('{"a": 1}\n{"a": \n{"a": 3}\n')
    assert [found[0], found[2]] == [{"a": 1}, {"a": 3}]
    assert found[1] == BrokenLine("x.json", 2, found[1].reason)
    assert "column" in found[1].reason


def test_the_first_line_may_be_the_broken_one() -> None:
    found = read('{"a": 1\n{"a": 2}\n')
    assert isinstance(found[0], BrokenLine)
    assert found[1] == {"a": 2}


def test_all_lines_broken() -> None:
    assert [item.line for item in read('{"a": 1\n{"a": 2\n')] == [1, 2]


def test_a_broken_element_of_an_array_does_not_cost_those_behind_it() -> None:
    found = read('[\n{"a": 1},\n{"a" 2},\n{"a": 3}\n]\n')
    assert [item for item in found if not isinstance(item, BrokenLine)] == [{"a": 1}, {"a": 3}]
    assert [item.line for item in found if isinstance(item, BrokenLine)] == [3]


def test_a_cut_array_gives_what_is_whole() -> None:
    text = json.dumps([{"a": 1}, {"b": "x" * 50}], indent=1)
    found = read(text[:40])
    assert found[0] == {"a": 1}
    assert isinstance(found[1], BrokenLine)


def test_a_long_string_across_many_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WINDOW", 7)
    value = [{"text": "y" * 5000, "n": -12.5e10}, {"u": "\U0001f642"}]
    assert read(json.dumps(value, indent=1)) == value


def test_a_break_early_in_a_file_does_not_read_on_for_its_end() -> None:
    text = '{\n"a" 1}\n' + "".join(json.dumps({"n": n}, indent=1) + "\n" for n in range(60_000))
    raw = io.BytesIO(text.encode())
    items = json_values(Source("x", raw))
    assert isinstance(next(items), BrokenLine)
    assert raw.tell() < 300_000 < len(text)
    assert sum(isinstance(item, tuple) for item in items) == 60_000


def test_arrays_stay_whole_where_an_expression_takes_them() -> None:
    assert read('[{"a": 1}, {"a": 2}]', open_arrays=False) == [[{"a": 1}, {"a": 2}]]


def test_not_utf8_costs_its_line() -> None:
    found = read(b'{"a": "\xe9"}\n{"a": 2}\n')
    assert isinstance(found[0], BrokenLine)
    assert "UTF-8" in found[0].reason
    assert found[1] == {"a": 2}


def test_a_line_nested_beyond_measure_costs_itself() -> None:
    found = read('{"a": 1}\n' + "[" * 100_000 + "\n" + '{"a": 3}\n')
    assert [found[0], found[2]] == [{"a": 1}, {"a": 3}]
    assert isinstance(found[1], BrokenLine)


@given(objects)
def test_one_list_out_of_an_object(many: list[Any]) -> None:
    text = json.dumps({"before": [1, {"interactions": []}], "interactions": many, "after": {"x": 1}}, indent=1)
    source = Source("x", io.BytesIO(text.encode()))
    found = [item[1] for item in member_values(source, frozenset({("interactions",)})) if isinstance(item, tuple)]
    assert found == many


def test_a_broken_object_says_where() -> None:
    source = Source("x", io.BytesIO(b'{"version": 1,\n "interactions": [{"a": 1},\n nonsense]}'))
    first, broken = member_values(source, frozenset({("interactions",)}))
    assert first == (2, {"a": 1})
    assert isinstance(broken, BrokenLine)
    assert broken.line == 3
