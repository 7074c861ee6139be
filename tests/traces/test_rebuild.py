"""A recording that lost its markers gets them back where they stood."""

from __future__ import annotations

import pytest

from reasonctl.parsers import ROWS, names
from reasonctl.parsers.assumed import AssumedVocabulary
from reasonctl.parsers.feed import parse_chunkings
from reasonctl.parsers.run import Output, run_parser
from reasonctl.parsers.target import Target
from reasonctl.traces.rebuild import DEFAULT_MARKERS, Markers, markers_of, rebuild
from reasonctl.traces.trace import Recorded, Segment, Trace

MARKS = Markers("<t>", "</t>")


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
        ("qwen3", None, DEFAULT_MARKERS),
        ("seed_oss", "Qwen/Qwen3-8B", Markers("<seed:think>", "</seed:think>")),
        (None, "ByteDance-Seed/Seed-OSS-36B-Instruct", Markers("<seed:think>", "</seed:think>")),
        (None, "magistral-medium-latest", Markers("[THINK]", "[/THINK]")),
        ("gemma4", None, Markers("<|channel>thought\n", "<channel|>")),
        (None, "nobody/knows", DEFAULT_MARKERS),
        (None, None, DEFAULT_MARKERS),
        ("minimax_m2_append_think", None, DEFAULT_MARKERS),
        ("a-plugin", None, DEFAULT_MARKERS),
    ],
)
def test_whose_markers(parser: str | None, model: str | None, markers: Markers) -> None:
    assert markers_of(parser, model) == markers


@pytest.mark.parametrize(
    ("model", "text"),
    [
        ("gpt-oss:20b", "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>4"),
        ("command-a-reasoning-08-2025", "<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>4<|END_RESPONSE|>"),
        (
            "moonshotai/Kimi-K3",
            "<|open|>think<|sep|>hm<|close|>think<|sep|><|open|>response<|sep|>4<|close|>response<|sep|>",
        ),
        ("google/gemma-4-31B-it", "<|channel>thought\nhm<channel|>4"),
        ("hunyuan-a13b-instruct", "<think>\nhm\n</think>\n<answer>\n4\n</answer>"),
    ],
)
def test_models_that_wrap_their_answer(model: str, text: str) -> None:
    trace = rebuild(lossy(("reasoning", "hm"), ("content", "4")), markers_of(None, model), opened=False)
    assert trace.output_text == text
    assert all(len(delta.text or "") < len(text) / 2 for delta in trace.deltas)


OFF = ("hy_v3", "minimax_m2_append_think", "hunyuan_a13b", "beam", "hf", "openai_gptoss")
"""Switched off by default; writes markers itself; compares ids of one vocabulary; need a real tokenizer."""


@pytest.mark.parametrize("name", [name for name in names(Target()) if ROWS[name].modelled and name not in OFF])
def test_every_parser_gives_a_rebuilt_split_back(name: str) -> None:
    trace = rebuild(lossy(("reasoning", "Two and two."), ("content", "It is 4.")), markers_of(name, None), opened=False)
    vocabulary = AssumedVocabulary()
    output = Output(vocabulary, text=trace.output_text, deltas=[(one.text, ()) for one in trace.deltas])
    kwargs = {"enable_thinking": True, "thinking": True}
    run = run_parser(name, vocabulary, kwargs, output, chunkings=parse_chunkings("recorded,token"))
    if run.unsupported is not None:
        pytest.fail(run.unsupported)
    for mode in (run.full, *run.stream):
        assert ((mode.reasoning or "").strip(), (mode.content or "").strip()) == ("Two and two.", "It is 4.")
