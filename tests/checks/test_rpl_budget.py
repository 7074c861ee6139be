"""RPL410, RPL411 and RPL404's budgets: what a server lets through, what it does not, and where a budget was lost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonctl.budgets.counting import Markers, counter
from reasonctl.checks.finding import Finding
from reasonctl.checks.replayed import ReplayFacts
from reasonctl.checks.rpl import findings
from reasonctl.checks.rpl_granted import budget_of
from reasonctl.parsers import Target
from reasonctl.parsers.assumed import AssumedVocabulary
from reasonctl.serve.read import read_serve
from reasonctl.traces.context import Context, Setting
from reasonctl.traces.native import trace_of
from reasonctl.traces.replay import Plan, TraceFacts, replay_trace

HEAD = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
OPEN = HEAD + "<think>\n"
BARE_OPEN = HEAD + "<think>"
SLIM = Target("slimserve")
VLLM = Target()


def words(number: int) -> str:
    """A thought of so many tokens of the assumed tokenizer."""
    return " hm" * number


def facts_of(
    text: str,
    prompt: str | None = BARE_OPEN,
    *,
    serve: str | None = None,
    target: Target = VLLM,
    finish: str = "stop",
    api: str | None = None,
    parser: str = "qwen3",
    usage: dict[str, Any] | None = None,
    **request: Any,
) -> ReplayFacts:
    value: dict[str, Any] = {"id": "t", "output": {"text": text}, "request": request}
    value["recorded"] = {"finish_reason": finish, "parser": parser, "usage": usage or {}}
    if prompt is not None:
        value["prompt"] = {"text": prompt}
    trace = trace_of(value, path="f.jsonl", line=1)
    if api is not None:
        from dataclasses import replace

        trace = replace(trace, api=api)
    command = read_serve(serve)[0] if serve is not None else None
    with Context(Setting()) as context:
        facts: TraceFacts = replay_trace(trace, context, Plan(target=target, explain=True, budgeted=serve is not None))
    return ReplayFacts(facts, target, given=True, command=command)  # type: ignore[arg-type]


def one(rule: str, *args: Any, **more: Any) -> Finding | None:
    return next((f for f in findings(facts_of(*args, **more)) if f.rule == rule), None)


@pytest.mark.parametrize(
    ("prompt", "budget", "tokens", "allowed"),
    [
        (BARE_OPEN, 4, 4, None),
        (BARE_OPEN, 4, 5, 4),
        (OPEN, 4, 3, None),  # the line break behind the marker is charged
        (OPEN, 4, 5, 3),
        (BARE_OPEN, 0, 0, None),
        (BARE_OPEN, 0, 1, 0),
        (BARE_OPEN, -1, 500, None),
        (None, 4, 4, None),
        (None, 4, 5, 4),
    ],
)
def test_what_vllm_lets_through(prompt: str | None, budget: int, tokens: int, allowed: int | None) -> None:
    finding = one("RPL410", f"{words(tokens)}</think>4", prompt, thinking_token_budget=budget)
    assert (finding.evidence["allowed"] if finding is not None else None) == allowed


def test_a_block_that_reopens_has_a_budget_of_its_own() -> None:
    text = f"{words(4)}</think>4<think>{words(4)}</think>5"
    assert one("RPL410", text, thinking_token_budget=4) is None
    over = one("RPL410", f"{words(4)}</think>4<think>{words(6)}</think>5", thinking_token_budget=4)
    assert over is not None
    assert (over.evidence["blocks"], over.evidence["thinking_tokens"]) == ([4, 6], 6)


@pytest.mark.parametrize(
    ("request_", "asked", "cutoff"),
    [
        ({"thinking_token_budget": 64}, 64, 64),
        ({"thinking_token_budget": 64, "max_tokens": 40}, 64, 39),
        ({"thinking_token_budget": 64, "reasoning_effort": "none"}, None, None),
        ({"thinking_token_budget": -1}, -1, None),
        ({"reasoning_effort": "low"}, 8, 8),
        ({}, 20, 20),
        ({"reasoning_effort": "max"}, 20, 20),
    ],
)
def test_what_slimserve_grants(request_: dict[str, Any], asked: int | None, cutoff: int | None) -> None:
    serve = """slimserve serve m --override-generation-config '{"thinking_token_budget": {"low": 8, "medium": 20}}'"""
    budget = budget_of(facts_of("x</think>4", serve=serve, target=SLIM, **request_))
    assert (None if budget is None else (budget.asked, budget.cutoff)) == (None if asked is None else (asked, cutoff))


def test_slimserve_charges_generated_tokens_only() -> None:
    assert one("RPL410", f"{words(7)}</think>4", OPEN, target=SLIM, thinking_token_budget=4) is None
    over = one("RPL410", f"{words(8)}</think>4", OPEN, target=SLIM, thinking_token_budget=4)
    assert over is not None
    assert over.cause is None


CAUSES: dict[str, dict[str, Any]] = {
    "BUD318": {"extra_body": {"thinking_token_budget": 2}},
    "BUD319": {"thinking_token_budget": 2, "api": "responses"},
    "BUD322": {"thinking_token_budget": 2, "target": Target("vllm", (0, 18, 0))},
    "BUD310": {
        "serve": """vllm serve m --reasoning-parser qwen3 --override-generation-config.thinking_token_budget 2"""
    },
    "BUD312": {"thinking_token_budget": 2, "serve": "vllm serve m"},
    "SRV206": {"thinking_token_budget": 2, "serve": "vllm serve m --structured-outputs-config.reasoning_parser qwen3"},
    "BUD313": {"thinking_token_budget": 2, "prompt": HEAD},
    "BUD327": {
        "thinking_token_budget": 2,
        "serve": """vllm serve m --reasoning-parser qwen3 --speculative-config '{"method": "mtp"}'""",
    },
}


@pytest.mark.parametrize("rule", CAUSES)
def test_where_an_overrun_budget_was_lost(rule: str) -> None:
    finding = one("RPL410", f"{words(5)}</think>4", **CAUSES[rule])
    assert finding is not None
    assert (finding.cause, finding.severity) == (rule, "error")
    assert finding.evidence["chain"]


def test_a_server_that_does_not_charge_the_prompt_is_told() -> None:
    finding = one("RPL410", f"{words(4)}</think>4", OPEN, thinking_token_budget=4)
    assert finding is not None
    assert (finding.cause, finding.evidence["allowed"]) == ("BUD314", 3)


def test_an_overrun_that_nothing_explains_is_for_verify() -> None:
    finding = one(
        "RPL410", f"{words(5)}</think>4", serve="vllm serve m --reasoning-parser qwen3", thinking_token_budget=2
    )
    assert finding is not None
    assert (finding.cause, "reasonctl verify" in finding.hint) == (None, True)


def test_counting_on_an_assumed_tokenizer_is_low_unless_usage_tells() -> None:
    finding = one("RPL410", f"{words(5)}</think>4", thinking_token_budget=2)
    assert finding is not None
    assert finding.confidence == "low"
    usage = {"completion_tokens_details": {"reasoning_tokens": 40}}
    told = one("RPL410", f"{words(5)}</think>4", usage=usage, thinking_token_budget=20)
    assert told is not None
    assert (told.confidence, told.evidence["thinking_tokens"]) == ("medium", 40)


@pytest.mark.parametrize(
    ("request_", "serve", "rule"),
    [
        ({"max_tokens": 6}, None, "FIT109"),
        ({"max_tokens": 6, "thinking_token_budget": 6}, None, "BUD306"),
        ({"max_tokens": 300, "thinking_token_budget": 200}, None, "BUD307"),
        ({"max_tokens": 6, "thinking_token_budget": -1}, None, "BUD317"),
        ({"max_tokens": 6, "chat_template_kwargs": {"thinking_token_budget": 2}}, None, "BUD318"),
        (
            {"max_tokens": 6},
            "vllm serve m --reasoning-parser qwen3 --override-generation-config.thinking_token_budget 2",
            "BUD310",
        ),
    ],
)
def test_why_no_answer_was_left(request_: dict[str, Any], serve: str | None, rule: str) -> None:
    finding = one("RPL411", words(6), finish="length", serve=serve, **request_)
    assert finding is not None
    assert (finding.cause, finding.severity) == (rule, "warning")


def test_an_answer_that_was_begun_was_not_eaten() -> None:
    assert one("RPL411", f"{words(3)}</think>It", finish="length") is None
    assert one("RPL411", words(3), finish="stop") is None


def test_a_bare_capture_that_was_cut_in_its_thought() -> None:
    def rules(text: str) -> set[str]:
        value = {"id": "t", "output": {"text": text}, "recorded": {"finish_reason": "length"}}
        with Context(Setting()) as context:
            facts = replay_trace(trace_of(value, path="f", line=1), context, Plan())
        return {finding.rule for finding in findings(ReplayFacts(facts))}

    assert "RPL411" in rules("<think>still thinking about")
    assert "RPL411" not in rules("<think>hm</think>It is")


def test_the_mend_is_a_budget_that_was_tried() -> None:
    finding = one("RPL411", words(600), finish="length", max_tokens=600)
    assert finding is not None
    (mend,) = finding.evidence["mends"]
    assert mend["change"] == 'extra_body={"thinking_token_budget": 344}'


@pytest.mark.parametrize(("limit", "rule"), [(5, "BUD306"), (100, "BUD307"), (4096, None)])
def test_reasoning_alone_where_the_budget_was_reached(limit: int, rule: str | None) -> None:
    finding = one("RPL404", f"{words(4)}</think>", thinking_token_budget=4, max_tokens=limit)
    assert finding is not None
    assert finding.cause == rule


@settings(deadline=None)
@given(
    budget=st.integers(0, 12),
    natural=st.integers(0, 20),
    opened=st.sampled_from([BARE_OPEN, OPEN, HEAD]),
    rule=st.sampled_from(["vllm-v1", "vllm-v2", "slimserve"]),
)
def test_what_a_server_enforces_is_never_an_overrun(budget: int, natural: int, opened: str, rule: Any) -> None:
    """The model wants to think `natural` tokens; the server's own counter decides how many it gets."""
    vocabulary = AssumedVocabulary()
    start, end = tuple(vocabulary.encode("<think>")), tuple(vocabulary.encode("</think>"))
    thought = vocabulary.encode(" hm")
    script = [*(start if opened == HEAD else ()), *thought * natural, *end, *vocabulary.encode("4")]
    count = counter(rule, Markers(start, end, end), budget, vocabulary.encode(opened))
    output: list[int] = []
    while script:
        forced = count.forced(output)
        if forced is not None:
            script = [*end, *vocabulary.encode("4")]
        output.append(script.pop(0))
    text = vocabulary.decode(output)
    target = SLIM if rule == "slimserve" else VLLM
    assert one("RPL410", text, opened, target=target, thinking_token_budget=budget) is None
    kept = text.split("</think>")[0].count(" hm")
    if kept < natural:
        more = text.replace("</think>", f"{words(5)}</think>")
        assert one("RPL410", more, opened, target=target, thinking_token_budget=budget) is not None
