"""The project's own trace lines: what may be left out, what is derived, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from reasonctl.traces.native import TraceFormError, trace_of
from reasonctl.traces.trace import Trace, TraceDelta


def read(**value: Any) -> Trace:
    return trace_of(value, path="t.jsonl", line=3)


def test_only_the_output_is_needed() -> None:
    trace = read(output={"text": "hm</think>4"})
    assert (trace.id, trace.output_text, trace.output_ids, trace.deltas) == ("t.jsonl:3", "hm</think>4", None, ())
    assert (trace.recorded, trace.prompt_text, trace.lossy, trace.bare) == (None, None, False, True)


def test_text_and_ids_come_from_deltas() -> None:
    trace = read(output={"deltas": [{"text": "a", "token_ids": [1]}, {"text": "b", "token_ids": [2, 3]}]})
    assert (trace.output_text, trace.output_ids, trace.streamed) == ("ab", (1, 2, 3), True)
    assert trace.token_texts == {1: "a"}
    assert read(output={"deltas": [{"token_ids": [1]}]}).output_text is None


def test_everything_is_kept() -> None:
    trace = read(
        schema="reasonctl.trace/1",
        id="t1",
        model="m",
        request={"messages": [{"role": "user", "content": "hi"}], "reasoning_effort": "low"},
        prompt={"text": "p", "token_ids": [7]},
        output={"token_ids": [1]},
        recorded={
            "server": "vllm 0.33.0",
            "parser": "qwen3",
            "reasoning": "r",
            "content": None,
            "tool_calls": [{"id": 1}],
            "finish_reason": "stop",
            "usage": {"total_tokens": 9},
        },
        note="mine",
    )
    assert (trace.id, trace.model, trace.prompt_text, trace.prompt_ids) == ("t1", "m", "p", (7,))
    assert (trace.bare, trace.request["reasoning_effort"], trace.extra) == (False, "low", {"note": "mine"})
    recorded = trace.recorded
    assert recorded is not None
    assert (recorded.parser, recorded.reasoning, recorded.has_split) == ("qwen3", "r", True)
    assert (recorded.usage, recorded.tool_calls, trace.finish_reason) == ({"total_tokens": 9}, ({"id": 1},), "stop")


def test_a_finish_reason_alone_is_no_split() -> None:
    trace = read(output={"text": "x"}, recorded={"finish_reason": "stop"})
    assert trace.recorded is not None
    assert not trace.recorded.has_split


def test_a_split_without_an_output_is_lossy() -> None:
    trace = read(output={}, recorded={"reasoning": "hm", "content": "4"})
    assert trace.lossy
    assert trace.segments == (("reasoning", "hm"), ("content", "4"))


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"output": {}}, "none of text"),
        ({"output": {"text": 4}}, "output.text"),
        ({"output": {"token_ids": "1 2"}}, "output.token_ids"),
        ({"output": {"token_ids": [1, -2]}}, "output.token_ids"),
        ({"output": {"token_ids": [True]}}, "output.token_ids"),
        ({"output": {"deltas": {}}}, "no list"),
        ({"output": {"deltas": ["a"]}}, "no object"),
        ({"output": {"deltas": [{}]}}, "neither"),
        ({"output": {"text": "a"}, "request": []}, "request"),
        ({"output": {"text": "a"}, "recorded": {"reasoning": ["a"]}}, "recorded.reasoning"),
        ({"output": {"text": "abc", "deltas": [{"text": "ab"}, {"text": "z"}]}}, "output.text .* differ at place 3"),
        ({"output": {"text": "ab", "deltas": [{"text": "a"}]}}, "differ at place 2"),
        ({"output": {"token_ids": [1, 2], "deltas": [{"token_ids": [1]}]}}, "output.token_ids .* differ at place 2"),
        ({"output": {"text": "a"}, "request": {"messages": "x"}}, "request.messages is no list of objects"),
        ({"output": {"text": "a"}, "request": {"chat_template_kwargs": []}}, "request.chat_template_kwargs is no obj"),
        ({"output": {"text": "a"}, "request": {"reasoning_effort": 7}}, "request.reasoning_effort is no text"),
        ({"output": {"text": "a"}, "request": {"stop": 5}}, "request.stop is no text or list of texts"),
        ({"output": {"text": "a"}, "request": {"stop": ["a", 5]}}, "request.stop is no text or list of texts"),
        ({"output": {"text": "a"}, "request": {"max_tokens": "x"}}, "request.max_tokens is no number"),
        ({"output": {"text": "a"}, "request": {"tools": 3}}, "request.tools is no list"),
        ({"output": {"text": "a"}, "request": {"stop_token_ids": [True]}}, "request.stop_token_ids is no list"),
        ({"output": {"text": "a"}, "schema": "reasonctl.trace/2"}, "reasonctl.trace/2"),
    ],
)
def test_what_is_no_trace(value: dict[str, Any], says: str) -> None:
    with pytest.raises(TraceFormError, match=says):
        read(**value)


def test_deltas_of_text_alone() -> None:
    assert read(output={"deltas": [{"text": "a"}]}).deltas == (TraceDelta("a", None),)
