"""Every RPL rule fires on a trace that shows it and stays silent on its neighbour; the cause names what explains it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reasonctl.checks import rpl_upgrade
from reasonctl.checks.finding import Finding
from reasonctl.checks.replayed import ReplayFacts
from reasonctl.checks.rpl import RULES, findings
from reasonctl.parsers import Target
from reasonctl.traces.context import Context, Setting
from reasonctl.traces.native import trace_of
from reasonctl.traces.replay import Plan, replay_trace
from reasonctl.traces.trace import Recorded, Trace
from reasonctl.traces.upgrade import Change

HEAD = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
OPEN = HEAD + "<think>\n"
CLOSED = HEAD + "<think>\n\n</think>\n\n"
CALL = '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>'


def make(text: str, prompt: str | None = None, finish: str | None = "stop", **more: Any) -> Trace:
    recorded = {"finish_reason": finish} | more.pop("recorded", {})
    value: dict[str, Any] = {"id": "t", "output": {"text": text}, "recorded": recorded} | more
    if prompt is not None:
        value["prompt"] = {"text": prompt}
    return trace_of(value, path="f.jsonl", line=4)


def found(
    trace: Trace, *parsers: str, named: tuple[str, ...] | None = None, given: bool = False, **plan: Any
) -> list[Finding]:
    with Context(Setting()) as context:
        about = parsers if named is None else named
        facts = replay_trace(trace, context, Plan(parsers=parsers, named=about, explain=given, **plan))
    return list(findings(ReplayFacts(facts, plan.get("target", Target()), given=given)))


def rules(*args: Any, **more: Any) -> set[str]:
    return {finding.rule for finding in found(*args, **more)}


def one(rule: str, *args: Any, **more: Any) -> Finding:
    (finding,) = [finding for finding in found(*args, **more) if finding.rule == rule]
    return finding


CASES: dict[str, tuple[tuple[Trace, str], tuple[Trace, str]]] = {
    # rule: (what shows it, its neighbour), each a trace and the parser that is asked
    "RPL401": ((make("It is 4.", CLOSED), "deepseek_r1"), (make("It is 4.", CLOSED), "qwen3")),
    "RPL402": ((make("<think>hm hm</think>4"), "deepseek_r1"), (make("<think>hm hm</think>4"), "qwen3")),
    "RPL403": ((make("hm</think>4", OPEN), "deepseek_v3"), (make("hm</think>4", OPEN), "deepseek_r1")),
    "RPL404": ((make("It is 4."), "deepseek_r1"), (make("It is", finish="length"), "deepseek_r1")),
    "RPL405": (
        (make("hm</think>4", recorded={"content": "hm</think>4", "reasoning": None}), "qwen3"),
        (make("hm</think>4", recorded={"content": "4", "reasoning": "hm"}), "qwen3"),
    ),
    "RPL406": (
        (make("<think>hm</think>4", request={"chat_template_kwargs": {"enable_thinking": False}}), "minicpmv"),
        (make("<think>hm</think>4"), "minicpmv"),
    ),
    "RPL407": ((make(f"I look.{CALL}", OPEN), "deepseek_r1"), (make(f"I look.{CALL}", OPEN), "qwen3")),
    "RPL408": (
        (make("hm</think>4", OPEN, recorded={"parser": "deepseek_v3"}), "deepseek_v3"),
        (make("hm</think>4", OPEN, recorded={"parser": "qwen3"}), "qwen3"),
    ),
    "RPL410": (
        (make("hm hm hm</think>4", OPEN, request={"thinking_token_budget": 2}), "qwen3"),
        (make("hm hm hm</think>4", OPEN, request={"thinking_token_budget": 4}), "qwen3"),
    ),
    "RPL411": ((make("hm", OPEN, finish="length"), "qwen3"), (make("hm</think>4", OPEN, finish="length"), "qwen3")),
    "RPL413": (
        (make("hm</think>4 <think>hm hm</think>5", OPEN), "qwen3"),
        (make("hm</think>4 </think>5", OPEN), "qwen3"),
    ),
    "RPL415": (
        (
            replace(make("hm</think>4"), source="sse", recorded=Recorded("hm", "4", reasoning_field="reasoning")),
            "qwen3",
        ),
        (replace(make("hm</think>4"), source="sse", recorded=Recorded(None, "hm</think>4")), "qwen3"),
    ),
    "RPL416": (
        (replace(make("hm</think>4"), streamed=True, recorded=Recorded(traps={"both-fields": 2})), "qwen3"),
        (replace(make("hm</think>4"), streamed=True, recorded=Recorded()), "qwen3"),
    ),
    "RPL412": (
        (replace(make("x"), output_text=None, segments=(("reasoning", "hm"), ("content", "4")), lossy=True), "qwen3"),
        (make("hm</think>4"), "qwen3"),
    ),
    "RPL414": (
        (
            make(
                "",
                output={"deltas": [{"text": "</", "token_ids": [1]}, {"text": "think>4", "token_ids": [2]}]},
            ),
            "deepseek_r1",
        ),
        (make("</think>4"), "deepseek_r1"),
    ),
}
"""RPL409 has tests of its own, since it needs every parser of a target."""


@pytest.mark.parametrize("rule", CASES)
def test_fires_on_its_case(rule: str) -> None:
    trace, parser = CASES[rule][0]
    finding = one(rule, trace, parser)
    assert finding.severity == next(r.severity for r in RULES if r.id == rule)
    assert finding.location is not None
    assert (finding.location.path, finding.location.line) == ("f.jsonl", 4)
    assert finding.subject["trace"] == "t"
    assert finding.message
    assert finding.hint


@pytest.mark.parametrize("rule", CASES)
def test_is_silent_on_its_neighbour(rule: str) -> None:
    trace, parser = CASES[rule][1]
    assert rule not in rules(trace, parser)


def test_every_rule_is_explained() -> None:
    elsewhere = ("RPL409", "RPL417")
    assert [rule.id for rule in RULES if rule.id in CASES or rule.id in elsewhere] == [rule.id for rule in RULES]
    for rule in RULES:
        for text in (rule.what, rule.why, rule.example, rule.instead):
            assert len(text.split()) > 5, rule.id
        assert rule.sources, rule.id


def test_findings_are_about_subjects_only() -> None:
    trace = make("hm</think>4", OPEN)
    assert "RPL403" in rules(trace, "deepseek_v3", "qwen3")
    assert rules(trace, "deepseek_v3", "qwen3", named=("qwen3",)) == set()
    assert rules(trace) == set()
    served = rules(trace, "deepseek_v3", "qwen3", named=(), serve_parser="deepseek_v3")
    assert served == {"RPL403", "RPL408"}


def test_a_leak_that_only_larger_deltas_show_is_the_delta_size() -> None:
    finding = one("RPL402", make("<think>hm hm</think>4"), "deepseek_r1")
    assert finding.evidence["also"] == ["RPL403"]
    assert finding.evidence["streamed"] == {"reasoning": "<think>hm hm", "content": "4"}
    assert "RPL403" not in rules(make("<think>hm hm</think>4"), "deepseek_r1")


def test_a_weakness_with_larger_deltas_makes_no_wrong_parser() -> None:
    trace = make("<think>hm hm</think>4", recorded={"parser": "deepseek_r1"})
    assert rules(trace) == {"RPL402"}


def test_the_wrong_parser_names_those_that_pass() -> None:
    finding = one("RPL408", make("hm</think>4", OPEN, recorded={"parser": "deepseek_v3"}))
    assert finding.hint == "--reasoning-parser qwen3"
    assert finding.evidence["expected"] == {"reasoning": "hm", "content": "4"}
    assert "qwen3" in finding.evidence["passing"]
    assert "deepseek_v3" not in finding.evidence["passing"]


def test_a_parser_that_never_fills_reasoning_is_told_of() -> None:
    """Field case R24: users read it as a bug, and it is what the parser is for."""
    name = "minimax_m2_append_think"
    trace = make("plan it</think>\n\n391", "]~b]ai\n<think>\n", recorded={"parser": name})
    (finding,) = found(trace)
    assert (finding.rule, finding.severity, finding.subject) == ("RPL415", "warning", {"trace": "t", "parser": name})
    assert "by design" in finding.message
    assert finding.hint == (
        "--reasoning-parser minimax_m2 files such thoughts as reasoning; else let clients cut content at </think>"
    )
    assert finding.evidence["client"] == {"reasoning": None, "content": "<think>plan it</think>\n\n391"}
    assert "RPL415" not in rules(make("391", CLOSED, recorded={"parser": name}))
    assert "RPL415" not in rules(make("plan it</think>\n\n391", OPEN, recorded={"parser": "minimax_m2"}))


def test_only_parsers_whose_marks_the_trace_shows_are_recommended() -> None:
    granite = "Here is my thought process: hm hm. Here is my response: 4"
    finding = one("RPL408", make(granite, recorded={"parser": "deepseek_r1"}))
    assert finding.evidence["passing"] == ["granite"]
    assert finding.message.endswith("; granite splits right but in larger deltas")
    assert finding.hint == "--reasoning-parser granite"


def test_an_answer_without_any_mark_recommends_no_parser() -> None:
    found_ = {f.rule: f for f in found(make("It is 4.", recorded={"parser": "deepseek_r1"}))}
    assert set(found_) == {"RPL404"}
    assert found_["RPL404"].hint == (
        "no parser to recommend: those that pass let any output through; give --model or --serve for the cause"
    )


def test_a_parser_that_larger_deltas_alone_trip_is_said_to_be_right_without_them() -> None:
    trace = make("Here is my thought process: hm hm. Here is my response: 4", recorded={"parser": "granite"})
    hint = str(one("RPL402", trace).hint)
    assert "while one delta holds one token, granite splits it right" in hint
    assert "--model" not in hint


def test_no_hint_says_a_thing_twice() -> None:
    for (trace, parser), _ in CASES.values():
        for finding in found(trace, parser):
            assert str(finding.hint).count("--model") <= 1, finding.hint
            assert str(finding.hint).count("--serve") <= 1, finding.hint


def test_a_parser_that_swallows_the_call_too_is_no_mend_though_it_gives_what_was_recorded() -> None:
    text = f"I look.{CALL}"
    recorded = {"parser": "deepseek_r1", "reasoning": text, "content": None}
    finding = one("RPL408", make(text, OPEN, recorded=recorded))
    assert finding.hint == "--reasoning-parser qwen3"
    assert finding.evidence["expected"] == {"reasoning": "I look.", "content": CALL}
    assert not {"ernie45", "step3"} & set(finding.evidence["passing"])


def test_a_recorded_split_is_held_against_the_parser_that_served() -> None:
    recorded = {"parser": "deepseek_r1", "reasoning": "hm", "content": "4"}
    trace = make("hm</think>\n\n4", recorded=recorded)
    assert "RPL405" in rules(trace)
    assert "RPL405" not in rules(trace, "qwen3")


def test_a_stream_without_its_deltas_is_recognised() -> None:
    """In full deepseek_r1 takes the answer for a thought; what was recorded is what it streams."""
    trace = make("It is 4.", CLOSED, recorded={"parser": "deepseek_r1", "reasoning": None, "content": "It is 4."})
    finding = one("RPL405", trace, given=True)
    assert finding.message == "the server returned another split than deepseek_r1 gives on this output, in full"
    assert finding.hint == "streamed, it gives exactly what was recorded: this trace lacks the deltas of its stream"
    assert finding.cause is None
    other = make("It is 4.", CLOSED, recorded={"parser": "deepseek_r1", "reasoning": "It", "content": "is 4."})
    assert "deltas of its stream" not in str(one("RPL405", other, given=True).hint)


def test_a_lossy_trace_is_never_held_against_anyone() -> None:
    parts = (("reasoning", "hm"), ("content", "4"))
    recorded = Recorded(reasoning="other", content="4", has_split=True, parser="qwen3", finish_reason="stop")
    trace = replace(make("x"), output_text=None, segments=parts, lossy=True, recorded=recorded)
    assert rules(trace) == {"RPL412"}


def test_a_raw_capture_shows_no_parser_to_hold_it_against() -> None:
    raw = replace(make("x"), output_text="hm</think>4", recorded=Recorded(content="hm</think>4", finish_reason="stop"))
    assert rules(raw, "qwen3") == set()
    assert "RPL405" in rules(raw, "qwen3", serve_parser="qwen3")


def test_no_parser_explains() -> None:
    finding = one("RPL409", make("<thought>hm</thought>4"))
    assert (finding.severity, finding.subject) == ("warning", {"trace": "t"})
    assert "RPL409" not in rules(make("hm</think>4"))
    assert "RPL409" not in rules(make("<thought>hm</thought>4"), "qwen3", named=())


def test_confidence_is_what_was_looked_at() -> None:
    trace = make("It is 4.", CLOSED)
    assert one("RPL401", trace, "deepseek_r1").confidence == "medium"
    pieces = [("It", 1), (" is", 2), (" 4", 3), (".", 4)]
    deltas = [{"text": text, "token_ids": [token_id]} for text, token_id in pieces]
    real = make("", CLOSED, output={"deltas": deltas})
    assert one("RPL401", real, "deepseek_r1").confidence == "high"
    older = Target("vllm", (0, 31, 0))
    assert one("RPL401", real, "deepseek_r1", target=older).confidence == "medium"


def test_the_fingerprint_knows_no_line() -> None:
    first = one("RPL401", make("It is 4.", CLOSED), "deepseek_r1")
    moved = one("RPL401", replace(make("It is 4.", CLOSED), line=99), "deepseek_r1")
    assert first.fingerprint == moved.fingerprint


@pytest.mark.parametrize(
    ("trace", "parser", "rule", "cause"),
    [
        (make("It is 4.", CLOSED), "deepseek_r1", "RPL404", "FIT105"),
        (make("hm</think>4", OPEN), "poolside_v1", "RPL403", "FIT113"),
        (make("hm</think>4", OPEN), "minimax_m2_append_think", "RPL403", None),
        (
            make("<think>hm</think>4", CLOSED.replace("\n\n", "x") + "<|im_end|>\n" + HEAD),
            "deepseek_r1",
            "RPL403",
            "FIT121",
        ),
        (make(f"I look.{CALL}", OPEN), "deepseek_r1", "RPL407", "FIT111"),
        (make("[THINK]hm[/THINK]4", HEAD), "deepseek_r1", "RPL404", "FIT105"),
        (make("<think>hm hm</think>4", HEAD), "deepseek_r1", "RPL402", "FIT108"),
        (CASES["RPL414"][0][0], "deepseek_r1", "RPL414", "FIT103"),
    ],
)
def test_the_cause(trace: Trace, parser: str, rule: str, cause: str | None) -> None:
    made = [finding for finding in found(trace, parser, given=True) if finding.rule == rule]
    if cause is None:
        assert made == []
        return
    assert made[0].cause == cause
    assert made[0].evidence["chain"]


def test_without_a_model_there_is_no_cause_and_the_hint_says_what_to_give() -> None:
    finding = one("RPL403", make("hm</think>4", OPEN), "deepseek_v3")
    assert finding.cause is None
    assert "--model or --serve" in finding.hint


def test_the_chain_tells_prompt_request_and_parser() -> None:
    finding = one("RPL403", make("hm</think>4", OPEN), "poolside_v1", given=True)
    assert [step for step, _ in finding.evidence["chain"]] == ["prompt", "request", "parser", "proof"]
    assert "<think>" in finding.evidence["chain"][0][1]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (False, True, "the upgrade mends it: every check passes in 0.33.0 only"),
        (True, False, "it was right before: stay"),
        (True, True, "every check passes in both"),
        (False, False, "qwen3 fails in both"),
    ],
)
def test_what_an_upgrade_changes_is_judged(before: bool, after: bool, said: str) -> None:
    change = Change("qwen3", "0.32.0", "0.33.0", ())
    assert rpl_upgrade._advice(change, before=before, after=after).startswith(said)


def test_where_no_parser_explains_a_trace_it_is_said_where_to_look() -> None:
    channels = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>4<|return|>"
    assert "openai_gptoss" in str(one("RPL409", make(channels, recorded={"parser": "deepseek_r1"})).hint)
    assert str(one("RPL409", make("", recorded={"parser": "qwen3"})).hint).startswith("the output is empty")
    assert str(one("RPL409", make("<thought>hm</thought>4")).hint).startswith("look at the output itself")


def test_a_server_without_a_parser_is_called_that() -> None:
    finding = one("RPL403", make("<think>hm</think>4", recorded={"parser": "none"}))
    assert finding.message == "a server without a parser leaves '<think>' in content, in full"
