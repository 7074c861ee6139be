"""Chunks and whole responses become one trace for every choice of every response."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonctl.traces.chunks import ChunkAssembler
from reasonctl.traces.response import Origin
from reasonctl.traces.trace import Trace, TraceDelta


def chunk(
    delta: dict[str, Any] | None = None, *, finish: str | None = None, index: int = 0, **more: Any
) -> dict[str, Any]:
    choice = {"index": index, "delta": delta or {}, "finish_reason": finish} | more.pop("choice", {})
    return {"object": "chat.completion.chunk", "model": "m", "choices": [choice]} | more


def usage(**more: Any) -> dict[str, Any]:
    return {"object": "chat.completion.chunk", "choices": [], "usage": {"completion_tokens": 7}} | more


def traces(values: Sequence[dict[str, Any] | None]) -> list[Trace]:
    """The traces of chunks given one a line; None is `[DONE]`."""
    assembler = ChunkAssembler(Origin("f.sse", "sse"))
    found: list[Trace] = []
    for line, value in enumerate(values, 1):
        found += assembler.done() if value is None else assembler.chunk(line, value)
    return [*found, *assembler.end()]


def whole(value: dict[str, Any]) -> list[Trace]:
    return list(ChunkAssembler(Origin("f.json", "response")).response(1, value))


def test_raw_content_is_the_output() -> None:
    (trace,) = traces([chunk({"role": "assistant", "content": ""}, id="c1"), chunk({"content": "<think>a"}, id="c1")])
    assert (trace.id, trace.line, trace.output_text, trace.lossy) == ("c1", 1, "<think>a", False)
    assert trace.deltas == (TraceDelta("<think>a"),)
    assert trace.recorded is not None
    assert (trace.recorded.has_split, trace.recorded.content, trace.finish_reason) == (False, "<think>a", None)


def test_reasoning_under_either_name() -> None:
    for name in ("reasoning", "reasoning_content"):
        (trace,) = traces([chunk({name: "hm"}), chunk({"content": "4"}, finish="stop")])
        assert trace.lossy
        assert trace.segments == (("reasoning", "hm"), ("content", "4"))
        assert trace.recorded is not None
        assert (trace.recorded.reasoning, trace.recorded.content) == ("hm", "4")
        assert (trace.recorded.reasoning_field, trace.finish_reason) == (name, "stop")


def test_both_names_with_one_text_count_once() -> None:
    (trace,) = traces([chunk({"reasoning": "hm", "reasoning_content": "hm"}), chunk({"content": "4"})])
    assert trace.segments == (("reasoning", "hm"), ("content", "4"))


def test_null_and_empty_reasoning_is_no_split() -> None:
    (trace,) = traces([chunk({"reasoning_content": ""}), chunk({"content": "4", "reasoning_content": None})])
    assert not trace.lossy
    assert trace.recorded is not None
    assert not trace.recorded.has_split


def test_one_chunk_may_carry_both() -> None:
    (trace,) = traces([chunk({"content": "4", "reasoning": "hm"})])
    assert trace.segments == (("reasoning", "hm"), ("content", "4"))


def test_content_parts() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "h"}, {"type": "text", "text": "m"}]}
    (trace,) = traces(
        [chunk({"content": [thinking]}), chunk({"content": [{"type": "text", "text": "4"}]}), chunk({"content": "!"})]
    )
    assert trace.segments == (("reasoning", "hm"), ("content", "4"), ("content", "!"))
    assert trace.recorded is not None
    assert trace.recorded.reasoning_field == "content[].thinking"


def test_choices_are_traces_of_their_own() -> None:
    first, second = traces(
        [
            chunk({"content": "a"}, id="c"),
            chunk({"content": "x"}, index=1, id="c"),
            chunk({"content": "b"}, finish="stop", id="c"),
            chunk({"content": "y"}, index=1, finish="length", id="c"),
            usage(id="c"),
        ]
    )
    assert [(t.id, t.output_text, t.finish_reason) for t in (first, second)] == [
        ("c", "ab", "stop"),
        ("c#1", "xy", "length"),
    ]
    assert first.recorded is not None
    assert first.recorded.usage == {"completion_tokens": 7}


def test_usage_behind_the_finish_reason_belongs_to_its_response() -> None:
    (trace,) = traces([chunk({"content": "a"}, finish="stop"), chunk({"role": "assistant", "content": ""}), usage()])
    assert trace.output_text == "a"
    assert trace.recorded is not None
    assert trace.recorded.usage == {"completion_tokens": 7}


def test_several_responses_without_ids() -> None:
    values = [chunk({"role": "assistant", "content": ""}), chunk({"content": "a"}), chunk({}, finish="stop"), usage()]
    found = traces([*values, *values, None, *values])
    assert [(t.id, t.output_text) for t in found] == [("f.sse:1", "a"), ("f.sse:6", "a"), ("f.sse:10", "a")]


def test_responses_that_share_one_id() -> None:
    one = [chunk({"content": "a"}, id="chatcmpl-0"), chunk({}, finish="stop", id="chatcmpl-0"), None]
    assert [t.output_text for t in traces([*one, *one])] == ["a", "a"]


def test_streams_that_are_interleaved() -> None:
    found = traces(
        [
            chunk({"content": "a"}, id="1"),
            chunk({"content": "x"}, id="2"),
            chunk({"content": "b"}, id="1", finish="stop"),
            chunk({"content": "y"}, id="2", finish="stop"),
        ]
    )
    assert sorted((t.id, t.output_text) for t in found) == [("1", "ab"), ("2", "xy")]


@given(st.integers(1, 200))
def test_streams_that_never_end_do_not_pile_up(count: int) -> None:
    assembler = ChunkAssembler(Origin("f", "sse"))
    found = [t for n in range(count) for t in assembler.chunk(n, chunk({"content": str(n)}, id=f"c{n}"))]
    assert len(assembler._open) <= 64
    assert len([*found, *assembler.end()]) == count


def test_tool_calls_are_put_together_and_make_it_lossy() -> None:
    name = {"index": 0, "id": "call-1", "type": "function", "function": {"name": "look", "arguments": ""}}
    (trace,) = traces(
        [
            chunk({"tool_calls": [name]}),
            chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"q":'}}]}),
            chunk({"tool_calls": [{"index": 0, "function": {"arguments": " 1}"}}]}, finish="tool_calls"),
        ]
    )
    assert trace.lossy
    assert trace.recorded is not None
    assert trace.recorded.tool_calls == (
        {"type": "function", "id": "call-1", "function": {"name": "look", "arguments": '{"q": 1}'}},
    )


def test_token_ids_as_vllm_sends_them() -> None:
    (trace,) = traces(
        [
            chunk({"role": "assistant", "content": ""}, prompt_token_ids=[5, 6]),
            chunk({"reasoning": "hm"}, choice={"token_ids": [1, 2]}),
            chunk({}, choice={"token_ids": [3]}),
            chunk({"content": "4"}, finish="stop", choice={"token_ids": [4, 9], "stop_reason": 9}),
        ]
    )
    assert trace.lossy
    assert (trace.prompt_ids, trace.output_ids) == ((5, 6), (1, 2, 3, 4, 9))
    assert trace.deltas == (TraceDelta(None, (1, 2)), TraceDelta(None, (3,)), TraceDelta(None, (4, 9)))
    assert trace.recorded is not None
    assert trace.recorded.stop_reason == 9


def test_ids_that_are_not_complete_are_none() -> None:
    (trace,) = traces([chunk({"content": "a"}, choice={"token_ids": [1]}), chunk({"content": "b"})])
    assert trace.output_ids is None
    assert trace.deltas == (TraceDelta("a"), TraceDelta("b"))


def test_token_texts_from_log_probabilities_and_lone_tokens() -> None:
    logprobs = {"content": [{"token": "h"}, {"token": "m"}]}
    (trace,) = traces([chunk({"reasoning": "hm"}, choice={"token_ids": [1, 2], "logprobs": logprobs})])
    assert trace.token_texts == {1: "h", 2: "m"}
    (trace,) = traces([chunk({"content": "<think>", "token_id": 8}), chunk({"content": "x", "token_id": 9})])
    assert trace.token_texts == {8: "<think>", 9: "x"}
    assert trace.output_ids == (8, 9)


def test_a_whole_response() -> None:
    (first, second) = whole(
        {
            "id": "r",
            "object": "chat.completion",
            "model": "m",
            "created": 5,
            "prompt_token_ids": [1],
            "choices": [
                {"index": 0, "message": {"content": "4", "reasoning": None}, "finish_reason": "stop"},
                {"index": 1, "message": {"content": None, "reasoning_content": "hm"}, "finish_reason": "length"},
            ],
            "usage": {"total_tokens": 3},
        }
    )
    assert (first.output_text, first.streamed, first.deltas, first.extra["created"]) == ("4", False, (), 5)
    assert second.segments == (("reasoning", "hm"),)
    assert second.prompt_ids == (1,)


def test_groq_keeps_its_usage_elsewhere() -> None:
    (trace,) = traces([chunk({"content": "a"}, finish="stop", x_groq={"usage": {"completion_tokens": 3}})])
    assert trace.recorded is not None
    assert trace.recorded.usage == {"completion_tokens": 3}


def test_text_completions() -> None:
    (trace,) = traces(
        [{"id": "c", "choices": [{"index": 0, "text": "<think>a"}]}, {"id": "c", "choices": [{"text": "b"}]}]
    )
    assert trace.output_text == "<think>ab"


@pytest.mark.parametrize(
    ("delta", "name"),
    [
        ({"reasoning_text": "hm"}, "reasoning_text"),
        ({"thinking": "hm"}, "thinking"),
        (
            {"reasoning": None, "reasoning_details": [{"type": "reasoning.text", "text": "hm", "index": 0}]},
            "reasoning_details",
        ),
        ({"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}, "reasoning"),
        ({"thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s"}]}, "thinking_blocks"),
        ({"reasoning": "", "reasoning_content": "hm"}, "reasoning_content"),
        (
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "closed": True}]},
            "content[].thinking",
        ),
        (
            {"content": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}]},
            "content[].thinking",
        ),
    ],
)
def test_every_name_that_reasoning_comes_under(delta: dict[str, Any], name: str) -> None:
    for trace in (
        *traces([chunk(delta), chunk({"content": "4"}, finish="stop")]),
        *whole(_answer({"content": "4"} | delta)),
    ):
        if trace.streamed or "content" not in delta:
            assert [one for one in trace.segments if one[1]] == [("reasoning", "hm"), ("content", "4")]
        assert trace.recorded is not None
        assert (trace.recorded.reasoning, trace.recorded.reasoning_field) == ("hm", name)


def _answer(message: dict[str, Any]) -> dict[str, Any]:
    return {"choices": [{"message": message, "finish_reason": "stop"}]}


def test_details_that_are_encrypted_are_no_reasoning() -> None:
    (trace,) = traces(
        [chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]}), chunk({"content": "4"})]
    )
    assert (trace.lossy, trace.output_text) == (False, "4")


def test_azures_first_chunk_without_id_or_choices_is_no_stream() -> None:
    first = {"choices": [], "id": "", "model": "", "object": "", "prompt_filter_results": [{}]}
    (trace,) = traces([first, chunk({"content": "4"}, id="a"), chunk({}, finish="stop", id="a"), None])
    assert (trace.id, trace.model, trace.finish_reason) == ("a", "m", "stop")


def test_chunks_that_trip_clients_are_counted() -> None:
    (trace,) = traces(
        [
            chunk({"role": "assistant", "content": None}),
            chunk({"reasoning": "hm"}),
            chunk({}),
            chunk({"reasoning": "", "content": ""}),
            chunk({"reasoning": "!", "content": "4"}),
            chunk({}, finish="stop"),
        ]
    )
    assert trace.recorded is not None
    assert trace.recorded.traps == {"null-content": 1, "empty-delta": 2, "both-fields": 1}
    (trace,) = traces([chunk({"role": "assistant", "content": ""}), chunk({"content": "4"}, finish="stop")])
    assert trace.recorded is not None
    assert trace.recorded.traps == {}
    (trace,) = whole(_answer({"content": None, "reasoning": "hm"}))
    assert trace.recorded is not None
    assert trace.recorded.traps == {}


def test_which_endpoint_answered() -> None:
    assert [one.api for one in traces([chunk({"content": "4"})])] == ["chat"]
    assert [one.api for one in traces([{"choices": [{"index": 0, "text": "4", "finish_reason": None}]}])] == [
        "completions"
    ]
