"""BUD320, BUD322 and BUD327: what a serve command says about how a budget will end a thought."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from reasonctl.budgets.config import parse_config
from reasonctl.budgets.facts import BudgetFacts, gather
from reasonctl.budgets.request import Request, endpoint_of
from reasonctl.checks.bud import check_budget
from reasonctl.checks.finding import Finding
from reasonctl.parsers.target import parse_target

CHAT: dict[str, Any] = {"messages": [], "max_tokens": 9000}
BUDGET = CHAT | {"thinking_token_budget": 256}


def judged(serve: str, *bodies: dict[str, Any], target: str = "vllm") -> tuple[BudgetFacts, list[Finding]]:
    nodes = [parse_config(json.dumps(body), path="r.json").documents[0] for body in bodies]
    requests = [Request(f"#{number}", endpoint_of(node, None), node) for number, node in enumerate(nodes, 1)]
    facts = gather(parse_config(serve, path="c"), target=parse_target(target), dialect="vllm", requests=requests)
    return facts, list(check_budget(facts))


def phrase(text: str, *, runner: str | None, flags: str = "--reasoning-parser qwen3", start: bool = False) -> str:
    strings = {"reasoning_end_str": text} | ({"reasoning_start_str": "<think>"} if start else {})
    env = {"v1": "VLLM_USE_V2_MODEL_RUNNER=0 ", "v2": "VLLM_USE_V2_MODEL_RUNNER=1 "}.get(runner or "", "")
    return f"{env}vllm serve m {flags} --reasoning-config {shlex.quote(json.dumps(strings))}"


@pytest.mark.parametrize(
    ("text", "runner", "target", "said", "output"),
    [
        (
            "Time is up.</think>",
            "v1",
            "vllm",
            "gets it into its answer",
            "one two</think>It is four, and [Time is up.</think>] here",
        ),
        ("Time is up.</think>", None, "vllm==0.21.0", "gets it into its answer", "[Time is up.</think>]"),
        ("</think> So:", "v2", "vllm", "stops at </think> and drops ' So:'", "[</think>]"),
        ("Enough. </think> So:", None, "vllm", "drops ' So:'", "[Enough. </think>]"),
        ("</think> So:", "v1", "vllm", "gets it into its answer", "[</think> So:]"),
        ("Time is up.", "v2", "vllm", "over and over", "[Time is up.Time is up."),
        ("Time is up.", "v1", "vllm", "sees no end of the thought", "[Time is up.]"),
    ],
)
def test_bud320_end_phrase_order(text: str, runner: str | None, target: str, said: str, output: str) -> None:
    _, findings = judged(phrase(text, runner=runner), target=target)
    (finding,) = findings
    assert (finding.rule, finding.slug, finding.severity) == ("BUD320", "end-phrase-order", "error")
    assert said in finding.message
    assert output in finding.evidence["output"]
    assert finding.location is not None
    assert finding.location.column > 30
    assert finding.hint


@pytest.mark.parametrize(
    ("text", "runner", "target"),
    [
        ("Time is up.</think>", "v2", "vllm"),
        ("Time is up.</think>", None, "vllm"),
        ("</think>", "v1", "vllm"),
        ("</think>", None, "vllm==0.21.0"),
        ("\n</think>\n\n", None, "vllm"),
    ],
)
def test_bud320_is_silent_on_phrases_in_order(text: str, runner: str | None, target: str) -> None:
    assert judged(phrase(text, runner=runner), BUDGET, target=target)[1] == []


def test_bud320_without_a_parser_the_phrase_is_all_the_counter_knows() -> None:
    _, (finding,) = judged(phrase("Stop.</think>", runner=None, flags="", start=True))
    assert (finding.rule, finding.evidence["end"], finding.evidence["runner"]) == ("BUD320", "</think>", "v2")
    assert "name a parser whose end marker is </think>" in finding.hint
    _, (v3,) = judged(phrase("Stop.</think>", runner=None, flags="--reasoning-parser deepseek_v3", start=True))
    assert v3.rule == "BUD320"
    assert judged(phrase("</think>", runner=None, flags="--reasoning-parser deepseek_v3", start=True))[1] == []


def test_bud320_where_either_runner_may_serve_confidence_is_medium() -> None:
    _, (finding,) = judged(phrase("Time is up.</think>", runner=None), target="vllm==0.28.0")
    assert (finding.rule, finding.confidence, finding.evidence["runner"]) == ("BUD320", "medium", "v1")
    _, (certain,) = judged(phrase("Time is up.</think>", runner="v1"))
    assert certain.confidence == "high"


DRAFTS = '--speculative-config \'{"method": "mtp", "num_speculative_tokens": 2}\''


@pytest.mark.parametrize(
    ("target", "env", "runners"),
    [
        ("vllm==0.20.0", "", None),
        ("vllm==0.28.0", "VLLM_USE_V2_MODEL_RUNNER=1 ", ["v2"]),
        ("vllm==0.28.0", "", ["v2"]),
        ("vllm==0.30.0", "", ["v2"]),
    ],
)
def test_bud327_speculative_decoding(target: str, env: str, runners: list[str] | None) -> None:
    serve = f"{env}vllm serve m --reasoning-parser qwen3 {DRAFTS}"
    (finding,) = [found for found in judged(serve, BUDGET, target=target)[1] if found.rule == "BUD327"]
    assert (finding.severity, finding.confidence) == ("warning", "medium")
    assert finding.evidence["runners"] == (runners or ["v1"])
    assert "reasonctl verify" in finding.hint
    assert finding.subject == {"key": "--speculative-config"}


@pytest.mark.parametrize(
    ("target", "env", "flags", "body"),
    [
        ("vllm==0.33.0", "", DRAFTS, BUDGET),
        ("vllm==0.31.0", "", DRAFTS, BUDGET),
        ("vllm==0.30.0", "", "", BUDGET),
        ("vllm==0.30.0", "", DRAFTS, CHAT),
        ("vllm==0.30.0", "VLLM_USE_V2_MODEL_RUNNER=0 ", DRAFTS, BUDGET),
        ("vllm==0.30.0", "", DRAFTS, CHAT | {"thinking_token_budget": -1}),
    ],
)
def test_bud327_is_silent_where_drafts_are_counted(target: str, env: str, flags: str, body: dict[str, Any]) -> None:
    serve = f"{env}vllm serve m --reasoning-parser qwen3 {flags}"
    assert [found.rule for found in judged(serve, body, target=target)[1] if found.rule == "BUD327"] == []


def test_bud322_a_release_that_does_not_start_with_v2() -> None:
    serve = "VLLM_USE_V2_MODEL_RUNNER=1 vllm serve m --reasoning-parser qwen3"
    _, (finding,) = judged(serve, BUDGET, target="vllm==0.22.0")
    assert finding.rule == "BUD322"
    assert "does not start with VLLM_USE_V2_MODEL_RUNNER=1" in finding.message
