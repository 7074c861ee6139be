"""Events out of lines, whatever the line ends, the cuts between bytes and the noise around them."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonctl.traces.source import Source
from reasonctl.traces.sse import DONE, looks_like_sse, sse_values
from reasonctl.traces.trace import BrokenLine


class Dribble(io.RawIOBase):
    """Bytes that arrive in the given portions, as a pipe hands them out."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self._data = data
        self._sizes = sizes or [1 << 20]
        self._turn = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        size = min(len(view), self._sizes[self._turn % len(self._sizes)])
        self._turn += 1
        data, self._data = self._data[:size], self._data[size:]
        view[: len(data)] = data
        return len(data)


def events(data: bytes, sizes: list[int] | None = None) -> list[Any]:
    source = Source("capture.sse", Dribble(data, sizes or []))  # type: ignore[arg-type]
    return [item if isinstance(item, BrokenLine) else item[1] for item in sse_values(source.lines(), "capture.sse")]


def of(text: str) -> list[Any]:
    return list(sse_values(enumerate(text.split("\n"), 1), "x"))


payloads = st.lists(
    st.dictionaries(
        st.sampled_from(["a", "text", "ключ"]),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.integers(),
        max_size=3,
    ),
    max_size=6,
)
NOISE = [": keep-alive", "event: message", "id: 7", "retry: 10", ":", "x-header: 1"]
noise = st.lists(st.sampled_from(NOISE), max_size=3)


@given(
    payloads,
    st.data(),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.integers(1, 40), max_size=5),
    st.booleans(),
    st.booleans(),
)
def test_the_same_events_however_it_is_cut(
    values: list[Any], data: st.DataObject, end: str, sizes: list[int], ascii_only: bool, space: bool
) -> None:
    lines: list[str] = []
    for value in values:
        lines += data.draw(noise)
        lines += [f"data:{' ' if space else ''}{json.dumps(value, ensure_ascii=ascii_only)}", ""]
    raw = "".join(line + end for line in [*lines, "data: [DONE]", ""]).encode()
    assert events(raw, sizes) == [*values, DONE]


@given(payloads, st.integers(1, 30))
def test_a_cut_costs_at_most_the_event_it_hits(values: list[Any], back: int) -> None:
    raw = "".join(f"data: {json.dumps(value)}\n\n" for value in values).encode()
    found = events(raw[: max(0, len(raw) - back)])
    whole = [item for item in found if not isinstance(item, BrokenLine)]
    assert whole == values[: len(whole)]
    assert sum(isinstance(item, BrokenLine) for item in found) <= 1


def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    assert events(b'\xef\xbb\xbfdata: {"a": 1}\n\n') == [{"a": 1}]


def test_data_over_several_lines_is_joined() -> None:
    assert of('data: {\ndata: "a": 1}\n\ndata: {"b": 2}\n') == [(1, {"a": 1}), (4, {"b": 2})]


def test_a_capture_that_lost_its_blank_lines() -> None:
    assert of('data: {"a": 1}\ndata: {"a": 2}\ndata: [DONE]') == [(1, {"a": 1}), (2, {"a": 2}), (3, DONE)]


def test_a_broken_event_costs_that_event_and_names_its_line() -> None:
    found = of('data: {"a": 1}\n\ndata: {"a": \n\ndata: {"a": 3}\n\n')
    assert [found[0], found[2]] == [(1, {"a": 1}), (5, {"a": 3})]
    broken = found[1]
    assert isinstance(broken, BrokenLine)
    assert broken.line == 3
    assert "not JSON" in broken.reason


def test_a_broken_event_directly_before_a_good_one() -> None:
    found = of('data: {"a": 1\ndata: {"a": 2}\n')
    assert isinstance(found[0], BrokenLine)
    assert found[1] == (2, {"a": 2})


def test_a_stream_cut_in_the_middle_says_so() -> None:
    (_, broken) = of('data: {"a": 1}\n\ndata: {"choi')
    assert isinstance(broken, BrokenLine)
    assert broken.line == 3
    assert "cut" in broken.reason


def test_bytes_that_are_no_utf8_cost_their_event() -> None:
    found = events(b'data: {"a": "\xff"}\n\ndata: {"a": 2}\n\n')
    assert isinstance(found[0], BrokenLine)
    assert "UTF-8" in found[0].reason
    assert found[1] == {"a": 2}


def test_an_error_body_in_place_of_an_event_is_seen() -> None:
    assert of('data: {"a": 1}\n\n{"error": "overloaded"}\n') == [(1, {"a": 1}), (3, {"error": "overloaded"})]


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ('data: {"a": 1}\n', True),
        ("event: ping\ndata: {}\n", True),
        (': connected\n\ndata: {"a": 1}\n', True),
        ("HTTP/1.1 200 OK\ncontent-type: text/event-stream\n\ndata: {}\n", True),
        ("data: [DONE]\n", True),
        ("The line data: {} starts an event.\n", False),
        ("Sure:\n\ndata: {}\n", False),
        ("data: is not always JSON\n", False),
        ("", False),
    ],
)
def test_telling_a_stream_from_text(head: str, expected: bool) -> None:
    assert looks_like_sse(head) is expected
