"""The answers of other APIs than the chat API, streamed and whole, become the traces a chat completion would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonctl.traces.dialects import DIALECTS
from reasonctl.traces.events import EventAssembler
from reasonctl.traces.read import read_traces
from reasonctl.traces.response import Origin
from reasonctl.traces.trace import BrokenLine, Segment, Trace

CALL = {"type": "function", "id": "c1", "function": {"name": "f", "arguments": '{"a":1}'}}


def responses(*deltas: dict[str, Any], id: str = "r1", status: str = "completed", **last: Any) -> list[dict[str, Any]]:
    """A stream of the Responses API: events numbered, items named."""
    response = {"id": id, "object": "response", "model": "m", "output": [], "status": "in_progress"}
    ends = {**response, "status": status, "usage": {"input_tokens": 5, "output_tokens": 7}, **last}
    kind = "response.completed" if status == "completed" else "response.incomplete"
    events = [{"type": "response.created", "response": response}, *deltas, {"type": kind, "response": ends}]
    return [{"sequence_number": number, **event} for number, event in enumerate(events)]


def item(key: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "response.output_item.added", "item": {"id": key, "type": kind, **more}}


def thought(text: str, name: str = "rs") -> dict[str, Any]:
    return {"type": "response.reasoning_text.delta", "item_id": name, "delta": text}


def words(text: str, name: str = "ms") -> dict[str, Any]:
    return {"type": "response.output_text.delta", "item_id": name, "delta": text}


def block(index: int, kind: str, *deltas: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    """One content block of an Anthropic stream."""
    return [
        {"type": "content_block_start", "index": index, "content_block": {"type": kind, **more}},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def anthropic(*events: dict[str, Any], id: str = "msg_1", reason: str = "end_turn") -> list[dict[str, Any]]:
    message = {
        "id": id,
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "usage": {"input_tokens": 5},
    }
    end = {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": {"output_tokens": 7},
    }
    return [{"type": "message_start", "message": message}, {"type": "ping"}, *events, end, {"type": "message_stop"}]


def ollama(*messages: dict[str, Any], reason: str = "stop") -> list[dict[str, Any]]:
    last = {"done": True, "done_reason": reason, "prompt_eval_count": 5, "eval_count": 7}
    lines = [{"model": "m", "message": {"role": "assistant", **one}, "done": False} for one in messages]
    return [*lines, {"model": "m", "message": {"role": "assistant", "content": ""}, **last}]


def cohere(*deltas: dict[str, Any]) -> list[dict[str, Any]]:
    usage = {"tokens": {"input_tokens": 5, "output_tokens": 7}}
    return [
        {"type": "message-start", "id": "co1", "delta": {"message": {"role": "assistant"}}},
        *({"type": "content-delta", "index": 0, "delta": {"message": {"content": one}}} for one in deltas),
        {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": usage}},
    ]


def gemini(*parts: dict[str, Any]) -> list[dict[str, Any]]:
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 7}
    common = {"responseId": "g1", "modelVersion": "m"}
    chunks: list[dict[str, Any]] = [{"candidates": [{"content": {"parts": [part]}}], **common} for part in parts]
    chunks[-1]["candidates"][0]["finishReason"] = "STOP"
    return [*chunks, {"candidates": [], "usageMetadata": usage, **common}]


def bedrock(*deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"messageStart": {"role": "assistant"}},
        *({"contentBlockDelta": {"contentBlockIndex": 0, "delta": delta}} for delta in deltas),
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"messageStop": {"stopReason": "end_turn"}},
        {"metadata": {"usage": {"inputTokens": 5, "outputTokens": 7}}},
    ]


STREAMS: dict[str, list[dict[str, Any]]] = {
    "responses": responses(item("rs", "reasoning"), thought("h"), thought("m"), item("ms", "message"), words("4")),
    "anthropic": anthropic(
        *block(0, "thinking", {"thinking": "h"}, {"thinking": "m"}, {"signature": "s"}, thinking=""),
        *block(1, "text", {"text": "4"}, text=""),
    ),
    "ollama": ollama({"content": "", "thinking": "h"}, {"content": "", "thinking": "m"}, {"content": "4"}),
    "cohere": cohere({"thinking": "h"}, {"thinking": "m"}, {"text": "4"}),
    "gemini": gemini({"text": "h", "thought": True}, {"text": "m", "thought": True}, {"text": "4"}),
    "bedrock": bedrock({"reasoningContent": {"text": "h"}}, {"reasoningContent": {"text": "m"}}, {"text": "4"}),
}
WHOLE: dict[str, dict[str, Any]] = {
    "responses": {
        "id": "r1",
        "object": "response",
        "model": "m",
        "status": "completed",
        "output": [
            {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "4"}]},
        ],
        "usage": {"input_tokens": 5, "output_tokens": 7},
    },
    "anthropic": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "4"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 5, "output_tokens": 7},
    },
    "ollama": {
        "model": "m",
        "response": "4",
        "thinking": "hm",
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 5,
        "eval_count": 7,
    },
    "cohere": {
        "id": "co1",
        "finish_reason": "COMPLETE",
        "message": {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "4"}],
        },
        "usage": {"tokens": {"input_tokens": 5, "output_tokens": 7}},
    },
    "gemini": {
        "candidates": [
            {"content": {"parts": [{"text": "hm", "thought": True}, {"text": "4"}]}, "finishReason": "STOP"}
        ],
        "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 7},
        "modelVersion": "m",
        "responseId": "g1",
    },
    "bedrock": {
        "output": {
            "message": {
                "role": "assistant",
                "content": [{"reasoningContent": {"reasoningText": {"text": "hm"}}}, {"text": "4"}],
            }
        },
        "stopReason": "end_turn",
        "usage": {"inputTokens": 5, "outputTokens": 7},
    },
}
IDS = {"responses": "r1", "anthropic": "msg_1", "cohere": "co1", "gemini": "g1"}


def sse(events: list[dict[str, Any]]) -> str:
    return "".join(f"event: {one.get('type', 'x')}\r\ndata: {json.dumps(one)}\r\n\r\n" for one in events)


def lines(events: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(one) + "\n" for one in events)


def read(folder: Path, content: str, **options: Any) -> list[Trace | BrokenLine]:
    path = folder / "recording"
    path.write_text(content, encoding="utf-8", newline="")
    return list(read_traces(str(path), **options))


def one(folder: Path, events: list[dict[str, Any]]) -> Trace:
    (trace,) = read(folder, lines(events))
    assert isinstance(trace, Trace)
    return trace


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("layout", [sse, lines, json.dumps], ids=["sse", "lines", "array"])
def test_a_stream(name: str, layout: Any, tmp_path: Path) -> None:
    (trace,) = read(tmp_path, layout(STREAMS[name]))
    assert isinstance(trace, Trace)
    assert (trace.source, trace.api) == (name, name)
    assert trace.id == IDS.get(name, f"{trace.path}:{trace.line}")
    texts = [segment for segment in trace.segments if segment[1]]
    assert texts == [("reasoning", "h"), ("reasoning", "m"), ("content", "4")]
    assert (trace.streamed, trace.lossy, trace.output_text, trace.deltas) == (True, True, None, ())
    recorded = trace.recorded
    assert recorded is not None
    assert (recorded.reasoning, recorded.content, recorded.finish_reason) == ("hm", "4", "stop")
    assert (recorded.usage["prompt_tokens"], recorded.usage["completion_tokens"]) == (5, 7)
    assert trace.model == (None if name in ("cohere", "bedrock") else "m")


@pytest.mark.parametrize("name", DIALECTS)
def test_a_whole_answer(name: str, tmp_path: Path) -> None:
    for content in (json.dumps(WHOLE[name], indent=1), lines([WHOLE[name]])):
        (trace,) = read(tmp_path, content)
        assert isinstance(trace, Trace)
        assert (trace.source, trace.streamed, trace.lossy) == (name, False, True)
        assert trace.recorded is not None
        assert (trace.recorded.reasoning, trace.recorded.content, trace.finish_reason) == ("hm", "4", "stop")
        assert trace.recorded.usage["completion_tokens"] == 7


@pytest.mark.parametrize("name", DIALECTS)
def test_one_answer_after_another(name: str, tmp_path: Path) -> None:
    events = [*STREAMS[name], *STREAMS[name]]
    if name == "gemini":
        events = [*STREAMS[name], *({**event, "responseId": "g2"} for event in STREAMS[name])]
    found = [item for item in read(tmp_path, lines([*events, WHOLE[name]])) if isinstance(item, Trace)]
    assert [(item.recorded and item.recorded.reasoning, item.streamed) for item in found] == [
        ("hm", True),
        ("hm", True),
        ("hm", False),
    ]


@pytest.mark.parametrize("name", DIALECTS)
@given(data=st.data())
def test_a_stream_cut_anywhere_gives_what_had_arrived(name: str, data: st.DataObject) -> None:
    events = STREAMS[name]
    count = data.draw(st.integers(0, len(events)))
    assembler = EventAssembler(DIALECTS[name], Origin("f", "sse"))
    found: list[Any] = []
    for number, event in enumerate(events[:count], 1):
        found += assembler.take(number, event)
    found += assembler.end()
    texts = [text for trace in found for _, text in trace.segments if text] or [
        trace.output_text for trace in found if trace.output_text
    ]
    whole = "".join(texts)
    assert "hm4".startswith(whole)
    assert len(found) <= 1
    assert (count == len(events)) <= (whole == "hm4")


@pytest.mark.parametrize("lead", [1, 2, 3, 4])
def test_interleaved_streams_of_the_responses_api(lead: int) -> None:
    """Only the first and the last event name their response: the rest is told apart by items and by numbers."""
    first, second = (
        responses(
            item(f"rs{n}", "reasoning"),
            thought(f"hm{n}", f"rs{n}"),
            item(f"ms{n}", "message"),
            words(f"4{n}", f"ms{n}"),
            id=f"r{n}",
        )
        for n in "ab"
    )
    pairs = zip(first[lead:] + [None] * lead, second, strict=True)
    mixed = [*first[:lead], *(event for pair in pairs for event in pair if event is not None)]
    assembler = EventAssembler(DIALECTS["responses"], Origin("f", "sse"))
    found = [trace for number, event in enumerate(mixed, 1) for trace in assembler.take(number, event)]
    found += assembler.end()
    split = {trace.id: [text for _, text in trace.segments if text] for trace in found if isinstance(trace, Trace)}
    assert split == {"ra": ["hma", "4a"], "rb": ["hmb", "4b"]}


def test_ollama_streams_of_two_models_at_once(tmp_path: Path) -> None:
    first, second = STREAMS["ollama"], [{**line, "model": "n"} for line in STREAMS["ollama"]]
    mixed = [line for pair in zip(first, second, strict=True) for line in pair]
    found = [item for item in read(tmp_path, lines(mixed)) if isinstance(item, Trace)]
    assert [(item.model, item.recorded and item.recorded.reasoning) for item in found] == [("m", "hm"), ("n", "hm")]


def test_text_with_its_markers_is_not_lossy(tmp_path: Path) -> None:
    trace = one(tmp_path, ollama({"content": "<think>"}, {"content": "hm</think>"}, {"content": "4"}))
    assert (trace.lossy, trace.output_text, len(trace.deltas)) == (False, "<think>hm</think>4", 3)
    generated = [{"model": "m", "response": text, "done": False} for text in ("<think>hm", "</think>4")]
    trace = one(tmp_path, [*generated, {"model": "m", "response": "", "done": True}])
    assert (trace.output_text, trace.finish_reason) == ("<think>hm</think>4", "stop")


def calls(trace: Trace) -> Any:
    assert trace.recorded is not None
    return [
        json.loads(call["function"]["arguments"]) | {"name": call["function"]["name"]}
        for call in trace.recorded.tool_calls
    ]


@pytest.mark.parametrize(
    ("events", "name"),
    [
        (
            responses(
                item("rs", "reasoning"),
                thought("hm"),
                {**item("fc", "function_call", name="f", call_id="c1"), "output_index": 1},
                {"type": "response.function_call_arguments.delta", "item_id": "fc", "output_index": 1, "delta": '{"a"'},
                {"type": "response.function_call_arguments.delta", "item_id": "fc", "output_index": 1, "delta": ":1}"},
                output=[{"type": "function_call", "name": "f", "call_id": "c1", "arguments": '{"a":1}'}],
            ),
            "responses",
        ),
        (
            anthropic(
                *block(0, "thinking", {"thinking": "hm"}),
                *block(1, "tool_use", {"partial_json": '{"a"'}, {"partial_json": ":1}"}, id="c1", name="f", input={}),
                reason="tool_use",
            ),
            "anthropic",
        ),
        (
            ollama(
                {"content": "", "thinking": "hm"},
                {"content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]},
            ),
            "ollama",
        ),
        (
            [
                *cohere({"thinking": "hm"})[:-1],
                {
                    "type": "tool-call-start",
                    "index": 0,
                    "delta": {"message": {"tool_calls": {"id": "c1", "function": {"name": "f", "arguments": ""}}}},
                },
                {
                    "type": "tool-call-delta",
                    "index": 0,
                    "delta": {"message": {"tool_calls": {"function": {"arguments": '{"a":1}'}}}},
                },
                {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL"}},
            ],
            "cohere",
        ),
        (gemini({"text": "hm", "thought": True}, {"functionCall": {"name": "f", "args": {"a": 1}}}), "gemini"),
        (
            [
                *bedrock({"reasoningContent": {"text": "hm"}})[:-2],
                {"contentBlockStart": {"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "c1", "name": "f"}}}},
                {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"toolUse": {"input": '{"a":1}'}}}},
                {"messageStop": {"stopReason": "tool_use"}},
            ],
            "bedrock",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_tool_calls_are_put_together(events: list[dict[str, Any]], name: str, tmp_path: Path) -> None:
    trace = one(tmp_path, events)
    assert (trace.api, calls(trace), trace.finish_reason) == (name, [{"a": 1, "name": "f"}], "tool_calls")
    assert trace.recorded is not None
    assert (trace.recorded.reasoning, trace.recorded.content or "") == ("hm", "")


@pytest.mark.parametrize(
    ("events", "finish"),
    [
        (responses(words("4"), status="incomplete", incomplete_details={"reason": "max_output_tokens"}), "length"),
        (anthropic(*block(0, "text", {"text": "4"}), reason="max_tokens"), "length"),
        (anthropic(*block(0, "text", {"text": "4"}), reason="refusal"), "refusal"),
        (ollama({"content": "4"}, reason="length"), "length"),
    ],
)
def test_why_a_run_ended(events: list[dict[str, Any]], finish: str, tmp_path: Path) -> None:
    assert one(tmp_path, events).finish_reason == finish


def test_a_summary_stands_for_reasoning_only_where_there_is_none(tmp_path: Path) -> None:
    def summary(text: str) -> dict[str, Any]:
        return {"type": "response.reasoning_summary_text.delta", "item_id": "rs", "delta": text}

    added = {"type": "response.reasoning_summary_part.added"}
    trace = one(tmp_path, responses(item("rs", "reasoning"), added, summary("a"), added, summary("b"), words("4")))
    assert trace.recorded is not None
    assert (trace.recorded.reasoning, trace.recorded.reasoning_field) == ("a\n\nb", "response.reasoning_summary_text")
    trace = one(tmp_path, responses(thought("hm"), summary("a"), words("4")))
    assert trace.recorded is not None
    assert (trace.recorded.reasoning, trace.recorded.reasoning_field) == ("hm", "response.reasoning_text")


def test_what_the_last_event_repeats_counts_where_the_stream_did_not_show_it(tmp_path: Path) -> None:
    trace = one(tmp_path, responses(words("4"), output=WHOLE["responses"]["output"]))
    assert trace.segments == (("reasoning", "hm"), ("content", "4"))
    trace = one(tmp_path, responses(output=WHOLE["responses"]["output"])[-1:])
    assert (trace.segments, trace.streamed) == ((("reasoning", "hm"), ("content", "4")), False)


def test_what_a_response_tells_of_its_request(tmp_path: Path) -> None:
    tool = {"type": "function", "name": "f", "parameters": {"type": "object"}}
    known = {"tools": [tool], "reasoning": {"effort": "high"}, "max_output_tokens": 64}
    trace = one(tmp_path, responses(words("4"), **known))
    assert trace.request == {
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
        "reasoning_effort": "high",
        "max_tokens": 64,
    }


ERRORS: list[tuple[list[dict[str, Any]], str]] = [
    (
        [*responses(words("4"))[:2], {"type": "error", "sequence_number": 2, "code": "x", "message": "overloaded"}],
        "overloaded",
    ),
    (responses(words("4"), status="failed", error={"code": "x", "message": "no\nGPU"}), "no GPU"),
    (
        [*STREAMS["anthropic"][:4], {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}],
        "Overloaded",
    ),
    ([*STREAMS["ollama"][:1], {"error": "model runner has stopped"}], "model runner has stopped"),
]


@pytest.mark.parametrize(("events", "says"), ERRORS)
def test_an_error_in_the_stream_is_named_and_the_rest_is_read(
    events: list[dict[str, Any]], says: str, tmp_path: Path
) -> None:
    found = read(tmp_path, sse(events))
    broken = [item for item in found if isinstance(item, BrokenLine)]
    assert [says in item.reason for item in broken] == [True]
    assert len([item for item in found if isinstance(item, Trace)]) == 1


def test_several_candidates_are_several_traces(tmp_path: Path) -> None:
    both = [{"index": n, "content": {"parts": [{"text": text}]}, "finishReason": "STOP"} for n, text in enumerate("45")]
    found = read(tmp_path, json.dumps({"candidates": both, "responseId": "g"}))
    assert [(item.id, item.output_text) for item in found if isinstance(item, Trace)] == [("g", "4"), ("g#1", "5")]


ASKED: Segment = ("content", "")


@pytest.mark.parametrize(
    ("name", "body", "expected"),
    [
        (
            "responses",
            {
                "model": "m",
                "instructions": "Be brief.",
                "input": [
                    {"role": "user", "content": [{"type": "input_text", "text": "2 + 2?"}]},
                    {"type": "function_call", "name": "f", "call_id": "c", "arguments": "{}"},
                    {"type": "function_call_output", "call_id": "c", "output": "4"},
                ],
                "reasoning": {"effort": "low"},
            },
            {
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "2 + 2?"},
                    {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
                    },
                    {"role": "tool", "tool_call_id": "c", "content": "4"},
                ],
                "reasoning_effort": "low",
                "model": "m",
            },
        ),
        ("responses", {"input": "2 + 2?"}, {"messages": [{"role": "user", "content": "2 + 2?"}]}),
        (
            "anthropic",
            {
                "system": [{"type": "text", "text": "Be brief."}],
                "messages": [
                    {"role": "user", "content": "2 + 2?"},
                    {
                        "role": "assistant",
                        "content": [
                            {"type": "thinking", "thinking": "hm"},
                            {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}},
                        ],
                    },
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "4"}]},
                ],
                "tools": [{"name": "f", "input_schema": {"type": "object"}}],
                "stop_sequences": ["X"],
                "max_tokens": 9,
            },
            {
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "2 + 2?"},
                    {
                        "role": "assistant",
                        "content": "",
                        "reasoning": "hm",
                        "tool_calls": [
                            {"type": "function", "id": "c", "function": {"name": "f", "arguments": '{"a": 1}'}}
                        ],
                    },
                    {"role": "tool", "tool_call_id": "c", "content": "4"},
                ],
                "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
                "stop": ["X"],
                "max_tokens": 9,
            },
        ),
        (
            "ollama",
            {"messages": [{"role": "user", "content": "2 + 2?"}], "think": False, "options": {"num_predict": 9}},
            {
                "messages": [{"role": "user", "content": "2 + 2?"}],
                "chat_template_kwargs": {"enable_thinking": False},
                "max_tokens": 9,
            },
        ),
        (
            "ollama",
            {"prompt": "2 + 2?", "think": "low"},
            {"messages": [{"role": "user", "content": "2 + 2?"}], "reasoning_effort": "low"},
        ),
        (
            "gemini",
            {
                "systemInstruction": {"parts": [{"text": "Be brief."}]},
                "contents": [
                    {"role": "user", "parts": [{"text": "2 + 2?"}]},
                    {"role": "model", "parts": [{"text": "4"}]},
                ],
                "generationConfig": {"maxOutputTokens": 9},
            },
            {
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "2 + 2?"},
                    {"role": "assistant", "content": "4"},
                ],
                "max_tokens": 9,
            },
        ),
        (
            "bedrock",
            {"messages": [{"role": "user", "content": [{"text": "2 + 2?"}]}], "inferenceConfig": {"maxTokens": 9}},
            {"messages": [{"role": "user", "content": "2 + 2?"}], "max_tokens": 9},
        ),
    ],
)
def test_requests_as_the_chat_api_would_ask(name: str, body: dict[str, Any], expected: dict[str, Any]) -> None:
    asked = DIALECTS[name].request(body)
    assert {key: asked.get(key) for key in expected} == expected


KEYS = (
    *("type", "output", "message", "content", "delta", "done", "response", "candidates", "parts", "index", "choices"),
    *("error", "id", "usage", "text", "contentBlockDelta", "messageStart", "sequence_number", "item", "output_index"),
    *("tool_calls", "function", "arguments", "finish_reason", "item_id", "stopReason", "input", "tools", "messages"),
)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(KEYS),
                inner
                | st.sampled_from(
                    ["response.completed", "message_start", "content_block_delta", "content-delta", "message"]
                ),
                max_size=5,
            )
        ),
        max_leaves=20,
    )
)
def test_no_value_breaks_a_dialect(value: Any) -> None:
    if not isinstance(value, dict):
        return
    for dialect in DIALECTS.values():
        if dialect.part(value) is None:
            continue
        assembler = EventAssembler(dialect, Origin("f", "sse"))
        list(assembler.take(1, value))
        list(assembler.end())
        assert isinstance(dialect.request(value), dict)
