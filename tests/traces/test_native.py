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
        ({"output": {"deltas": {}}}, "output.deltas is an object, where a list of objects belongs"),
        ({"output": {"deltas": ["a"]}}, r"output.deltas\[0\] is a text, where an object belongs"),
        ({"output": {"deltas": [{}]}}, "neither"),
        ({"output": {"text": "a"}, "request": []}, "request"),
        ({"output": {"text": "a"}, "recorded": {"reasoning": ["a"]}}, "recorded.reasoning"),
        ({"output": {"text": "abc", "deltas": [{"text": "ab"}, {"text": "z"}]}}, "output.text .* differ at place 3"),
        ({"output": {"text": "ab", "deltas": [{"text": "a"}]}}, "differ at place 2"),
        ({"output": {"token_ids": [1, 2], "deltas": [{"token_ids": [1]}]}}, "output.token_ids .* differ at place 2"),
        (
            {"output": {"text": "a"}, "request": {"messages": "x"}},
            "request.messages is a text, where a list of objects",
        ),
        (
            {"output": {"text": "a"}, "request": {"chat_template_kwargs": []}},
            "request.chat_template_kwargs is a list, where",
        ),
        (
            {"output": {"text": "a"}, "request": {"reasoning_effort": 7}},
            "request.reasoning_effort is a number, where a text",
        ),
        ({"output": {"text": "a"}, "request": {"stop": 5}}, "request.stop is a number, where a text or a list"),
        ({"output": {"text": "a"}, "request": {"stop": ["a", 5]}}, r"request.stop\[1\] is a number, where a text"),
        ({"output": {"text": "a"}, "request": {"max_tokens": "x"}}, "request.max_tokens is a text, where a number"),
        ({"output": {"text": "a"}, "request": {"tools": 3}}, "request.tools is a number, where a list of objects"),
        (
            {"output": {"text": "a"}, "request": {"stop_token_ids": [True]}},
            r"request.stop_token_ids\[0\] is true or false, where a token id",
        ),
        ({"output": {"text": "a"}, "schema": "reasonctl.trace/2"}, "reasonctl.trace/2"),
    ],
)
def test_what_is_no_trace(value: dict[str, Any], says: str) -> None:
    with pytest.raises(TraceFormError, match=says):
        read(**value)


BELONGS = {
    "a text": ("abc", "x"),
    "a number": (12, 1.5),
    "true or false": (True, False),
    "an object": ({},),
    "a list of objects": ([{}],),
    "a text or a list of texts": (["x"],),
    "a list of token ids": ([1, 2], [0]),
}
FIELDS = {
    "model": "a text",
    "prompt": "an object",
    "prompt.text": "a text",
    "prompt.token_ids": "a list of token ids",
    "output.text": "a text",
    "output.token_ids": "a list of token ids",
    "output.deltas": "a list of objects",
    "request": "an object",
    "request.messages": "a list of objects",
    "request.chat_template_kwargs": "an object",
    "request.reasoning_effort": "a text",
    "request.max_tokens": "a number",
    "request.max_completion_tokens": "a number",
    "request.thinking_token_budget": "a number",
    "request.include_reasoning": "true or false",
    "request.tools": "a list of objects",
    "request.stop": "a text or a list of texts",
    "request.stop_token_ids": "a list of token ids",
    "request.skip_special_tokens": "true or false",
    "request.add_generation_prompt": "true or false",
    "request.continue_final_message": "true or false",
    "request.model": "a text",
    "recorded": "an object",
    "recorded.reasoning": "a text",
    "recorded.content": "a text",
    "recorded.parser": "a text",
    "recorded.server": "a text",
    "recorded.finish_reason": "a text",
    "recorded.usage": "an object",
}


@pytest.mark.parametrize("field", FIELDS)
def test_the_mend_is_about_the_field_that_is_wrong(field: str) -> None:
    """It names the field and the type that belongs there, and what it says is enough."""
    wanted = FIELDS[field]
    *outer, key = field.split(".")

    def holding(value: Any) -> dict[str, Any]:
        trace: dict[str, Any] = {"output": {"text": "ab"}}
        inner = trace.setdefault(outer[0], {}) if outer else trace
        inner[key] = value
        return trace

    others = [
        value for name, values in BELONGS.items() for value in values if name not in _TAKEN.get(wanted, (wanted,))
    ]
    for wrong in others:
        with pytest.raises(TraceFormError) as error:
            read(**holding(wrong))
        where = f"{field}[0]" if wrong and isinstance(wrong, list) and wanted in _LISTS else field
        assert str(error.value).startswith(f"{where} is ")
        assert error.value.mend.startswith(f"make {where} ") or f"entry of {field} a whole number" in error.value.mend
        if where == field:
            assert str(error.value).endswith(f"where {wanted} belongs")
            assert error.value.mend == f"make {field} {wanted}, or leave it out"
    if field not in ("output.text", "output.token_ids", "output.deltas"):
        for right in BELONGS[wanted]:
            assert read(**holding(right)).output_text == "ab"


_TAKEN = {
    "a text or a list of texts": ("a text or a list of texts", "a text"),
    "a text": ("a text",),
    "a list of objects": ("a list of objects",),
}
"""What else is taken where a type belongs."""
_LISTS = ("a list of objects", "a text or a list of texts", "a list of token ids")


def test_a_part_is_named_and_never_quoted() -> None:
    with pytest.raises(TraceFormError) as error:
        read(output={"text": "a"}, request={"stop": {"key": "sk-secret"}, "messages": [{}]})
    assert "secret" not in f"{error.value} {error.value.mend}"


def test_deltas_of_text_alone() -> None:
    assert read(output={"deltas": [{"text": "a"}]}).deltas == (TraceDelta("a", None),)
