"""A recording that lost its markers gets them back where they stood."""

from __future__ import annotations

import pytest

from reasonctl.traces.rebuild import markers_of, rebuild
from reasonctl.traces.trace import Recorded, Segment, Trace

MARKS = ("<t>", "</t>")


def lossy(*segments: Segment, streamed: bool = True, calls: tuple[str, ...] = ()) -> Trace:
    recorded = Recorded(tool_calls=calls, has_split=True)
    return Trace("t", "f", 1, "sse", segments=segments, lossy=True, streamed=streamed, recorded=recorded)


@pytest.mark.parametrize(
    ("segments", "opened", "text"),
    [
        ((("reasoning", "hm"), ("content", "4")), False, "<t>hm</t>4"),
        ((("reasoning", "h"), ("reasoning", "m"), ("content", "4"), ("content", "!")), True, "hm</t>4!"),
        ((("reasoning", "hm"),), True, "hm"),
        ((("content", "4"),), False, "4"),
        ((("content", "4"),), True, "</t>4"),
        ((("reasoning", "a"), ("content", "b"), ("reasoning", "c"), ("content", "d")), True, "a</t>b<t>c</t>d"),
        ((("content", ""), ("reasoning", ""), ("reasoning", "hm"), ("content", "4")), False, "<t>hm</t>4"),
        ((), True, ""),
    ],
)
def test_markers_stand_where_the_field_changed(segments: tuple[Segment, ...], opened: bool, text: str) -> None:
    trace = rebuild(lossy(*segments), MARKS, opened=opened)
    assert trace.output_text == text
    assert "".join(delta.text or "" for delta in trace.deltas) == text
    assert trace.lossy


def test_a_tool_call_behind_reasoning_ended_it() -> None:
    assert rebuild(lossy(("reasoning", "hm"), calls=("call",)), MARKS, opened=False).output_text == "<t>hm</t>"


def test_a_response_that_was_no_stream_has_no_deltas() -> None:
    assert rebuild(lossy(("reasoning", "hm"), streamed=False), MARKS, opened=True).deltas == ()


@pytest.mark.parametrize(
    ("parser", "model", "markers"),
    [
        ("qwen3", None, ("<think>", "</think>")),
        ("seed_oss", "Qwen/Qwen3-8B", ("<seed:think>", "</seed:think>")),
        (None, "ByteDance-Seed/Seed-OSS-36B-Instruct", ("<seed:think>", "</seed:think>")),
        ("gemma4", None, ("<|channel>thought\n", "<channel|>")),
        (None, "nobody/knows", ("<think>", "</think>")),
        (None, None, ("<think>", "</think>")),
        ("minimax_m2_append_think", None, ("<think>", "</think>")),
        ("a-plugin", None, ("<think>", "</think>")),
    ],
)
def test_whose_markers(parser: str | None, model: str | None, markers: tuple[str, str]) -> None:
    assert markers_of(parser, model) == markers
