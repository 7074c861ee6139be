"""Which parsers explain a trace: those whose marks it shows, never those that let everything pass as content."""

from __future__ import annotations

from typing import Any

import pytest

from reasonctl.parsers import ROWS
from reasonctl.traces.context import Context, Setting
from reasonctl.traces.explain import Explained, explain
from reasonctl.traces.native import trace_of
from reasonctl.traces.replay import Plan, TraceFacts, replay_trace
from reasonctl.traces.trace import Trace

HEAD = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
OPEN = HEAD + "<think>\n"
CLOSED = HEAD + "<think>\n\n</think>\n\n"
CALL = '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>'


def make(text: str | None = None, prompt: str | None = None, finish: str | None = "stop", **more: Any) -> Trace:
    recorded = {"finish_reason": finish} | more.pop("recorded", {})
    value = {"id": "t", "output": {"text": text}, "recorded": recorded} | more
    if prompt is not None:
        value["prompt"] = {"text": prompt}
    return trace_of(value, path="f.jsonl", line=1)


def run(trace: Trace, *parsers: str) -> TraceFacts:
    with Context(Setting()) as context:
        return replay_trace(trace, context, Plan(parsers=parsers, named=parsers))


def holding(marker: str) -> set[str]:
    return {name for name, row in ROWS.items() if any(marker in text for text in (*row.start, *row.end))}


def test_what_sets_some_apart() -> None:
    wrong_markers = run(make("[THINK]hm[/THINK]4", finish="length"), "qwen3", "minimax_m2_append_think")
    assert (wrong_markers.best, wrong_markers.why) == ((), "every parser that passes leaves a marker in the text")
    assert explain((), make("4")) == Explained((), "no parser passes every check")
    named = run(make("hm</think>4", model="zai-org/GLM-4.5"), "qwen3", "glm45")
    assert named.best == ("glm45",)
    assert "GLM-4.5" in named.why


def test_granites_phrases_are_explained_by_granite_alone() -> None:
    facts = run(make("Here is my thought process: hm. Here is my response: 4"))
    assert (facts.best, facts.shown, facts.fragile) == (("granite",), True, True)


@pytest.mark.parametrize("recorded", [{}, {"reasoning": "hm", "content": "4"}])
def test_think_markers_are_explained_by_parsers_of_think_markers(recorded: dict[str, Any]) -> None:
    facts = run(make("<think>hm</think>4", recorded=recorded))
    assert facts.best[0] == "qwen3"
    assert facts.shown
    assert set(facts.best) <= holding("think")
    assert not {"deepseek_v3", "cohere_command3", "gemma4", "granite"} & set(facts.best)


@pytest.mark.parametrize(
    "trace",
    [
        make(f"I look it up.{CALL}", OPEN),
        make(f"I look it up.{CALL}", recorded={"reasoning": "I look it up.", "content": None, "parser": "deepseek_r1"}),
    ],
    ids=["prompt-open", "reasoning-recorded"],
)
def test_a_pass_through_explains_no_trace_that_thinks(trace: Trace) -> None:
    facts = run(trace, *ROWS)
    assert facts.best[0] == "qwen3"
    by_name = {result.parser: result for result in facts.results}
    for name in ("deepseek_v3", "poolside_v1", "cohere_command3"):
        assert by_name[name].status == "ok"
        assert by_name[name].full.content == by_name[name].raw
        assert name not in facts.best
    for name in facts.best:
        assert by_name[name].full.content != by_name[name].raw


def test_a_recorded_thought_without_any_mark_is_explained_by_nobody() -> None:
    facts = run(make("It is 4.", recorded={"reasoning": "It is 4.", "content": None, "parser": "deepseek_r1"}))
    assert (facts.best, facts.why) == ((), "every parser that passes looks for marks this trace has none of")


def test_an_answer_without_thought_points_to_no_parser() -> None:
    facts = run(make("It is 4."))
    assert not facts.shown
    assert {"deepseek_v3", "cohere_command3"} <= set(facts.best)
    assert facts.why == "nothing in the trace shows thinking, and these leave it alone"


def test_a_closed_prompt_shows_whose_markers_count() -> None:
    facts = run(make("It is 4.", CLOSED))
    assert facts.best[0] == "qwen3"
    assert facts.shown
    assert set(facts.best) <= holding("think")


@pytest.mark.parametrize("parser", ["deepseek_r1", "step3"])
def test_an_answer_that_was_filed_as_reasoning_is_no_thought(parser: str) -> None:
    """vLLM issue 17349, as `record` keeps it: the prompt closed thinking, and the answer came as reasoning."""
    recorded = {"parser": parser, "reasoning": "It is 4.", "content": None}
    facts = run(make("It is 4.", CLOSED, recorded=recorded))
    assert facts.best[0] == "qwen3"
    assert facts.shown
    assert parser not in facts.best
    off = run(make("It is 4.", recorded=recorded, request={"chat_template_kwargs": {"enable_thinking": False}}))
    assert (off.shown, off.why.startswith("nothing in the trace shows thinking")) == (False, True)
    opened = run(make("It is 4.", OPEN, recorded=recorded, finish="length"))
    assert not {"deepseek_v3", "cohere_command3"} & set(opened.best)


def test_a_parser_that_is_off_is_not_recommended_for_leaving_an_answer_alone() -> None:
    """deepseek_v3 and its like pass everything on until they are asked to think."""
    off = run(make("It is 4.", CLOSED), *ROWS)
    by_name = {result.parser: result.status for result in off.results}
    for name in ("deepseek_v3", "poolside_v1", "hy_v3"):
        assert by_name[name] == "ok"
        assert name not in off.best
    alone = run(make("It is 4.", CLOSED), "deepseek_v3", "minimax_m3")
    assert not explain(alone.results[:2], make("It is 4.", CLOSED)).shown
    served = run(make("It is 4.", CLOSED, recorded={"parser": "deepseek_v3"}))
    assert (served.best, served.shown) == (("deepseek_v3",), True)
    asked = run(make("hm</think>4", OPEN, request={"chat_template_kwargs": {"thinking": True}}), *ROWS)
    assert "deepseek_v3" in asked.best


def test_a_second_pair_of_markers_speaks_for_those_whose_first_it_is() -> None:
    """mistral reads <think> with some tokenizers; a trace with <think> does not point to it."""
    assert "mistral" not in run(make("It is 4.", CLOSED), *ROWS).best
    assert run(make("[THINK]hm[/THINK]4"), *ROWS).best == ("mistral",)


def test_turn_tokens_speak_for_no_parser() -> None:
    facts = run(make("It is 4.", "<|eom|><|end_message|>"))
    assert not facts.shown


def test_a_model_the_table_knows_speaks_for_its_parser() -> None:
    facts = run(make("It is 4.", model="google/gemma-4-31B-it"))
    assert (facts.best, facts.shown) == (("gemma4",), True)


def test_a_parser_that_larger_deltas_trip_explains_what_nobody_does_better() -> None:
    trace = make("<think>hm hm hm</think>4")
    facts = run(trace, "deepseek_r1", "qwen3")
    alone = explain(facts.results[:1], trace)
    assert (alone.parsers, alone.shown, alone.fragile) == (("deepseek_r1",), True, True)
    assert "larger deltas" in alone.why
    both = explain(facts.results, trace)
    assert (both.parsers, both.fragile) == (("qwen3",), False)


def test_a_parser_that_keeps_the_thought_in_content_explains_only_what_it_served() -> None:
    name = "minimax_m2_append_think"
    served = run(make("plan it</think>391", OPEN, recorded={"parser": name}))
    assert (served.best, served.why) == ((name,), "it keeps the thought in content, by design")
    assert name not in run(make("plan it</think>391", OPEN)).best
