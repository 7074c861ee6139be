"""BUD312, 314: budgets that the engine refuses for want of strings, and budgets that the prompt spends."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reasonctl.budgets.config import parse_config
from reasonctl.budgets.facts import BudgetFacts, gather
from reasonctl.budgets.request import Request, endpoint_of
from reasonctl.budgets.strings import without_strings
from reasonctl.budgets.template import EffortPrompt, Marker, TemplateFacts
from reasonctl.checks.bud import check_budget
from reasonctl.checks.finding import Finding
from reasonctl.parsers.table import ROWS
from reasonctl.parsers.target import parse_target

CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 9000}
STRINGS = '{"reasoning_start_str": "<think>", "reasoning_end_str": "</think>"}'


def facts_of(serve: str | None, *bodies: dict[str, Any], target: str = "vllm", **how: Any) -> BudgetFacts:
    requests = []
    for number, body in enumerate(bodies, 1):
        node = parse_config(json.dumps(body), path="r.json").documents[0]
        requests.append(Request(f"#{number}", endpoint_of(node, None), node))
    config = parse_config(serve or json.dumps(bodies[0]), path="c")
    judged = parse_target(target)
    dialect = "slimserve" if judged.product == "slimserve" else "vllm"
    return gather(config, target=judged, dialect=dialect, requests=requests if serve else (), **how)


def found(rule: str, facts: BudgetFacts) -> list[Finding]:
    return [finding for finding in check_budget(facts) if finding.rule == rule]


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ("", "no --reasoning-parser is set"),
        ("--reasoning-parser none", "no --reasoning-parser is set"),
        ("--reasoning-parser=", "no --reasoning-parser is set"),
        ("--structured-outputs-config.reasoning_parser qwen3", "--structured-outputs-config alone"),
        ('--structured-outputs-config \'{"reasoning_parser": "qwen3"}\'', "--structured-outputs-config alone"),
        ("--reasoning-parser deepseek_v3", "deepseek_v3 names no start and end strings"),
        ('--reasoning-config \'{"reasoning_parser": "granite"}\'', "granite names no start and end strings"),
        ("--reasoning-config.reasoning_end_str '</think>'", "no --reasoning-parser is set"),
        ("--reasoning-parser muse --reasoning-config.reasoning_end_str x", "muse names no start and end strings"),
        ("--reasoning-parser qwen3", None),
        (f"--reasoning-config '{STRINGS}'", None),
        (f"--reasoning-parser deepseek_v3 --reasoning-config '{STRINGS}'", None),
        ("--reasoning-config.reasoning_parser qwen3", None),
        ("--reasoning-parser hf", None),
        ('--reasoning-parser "$PARSER"', None),
        ('--reasoning-config "$CONFIG"', None),
    ],
)
def test_budget_refused(flags: str, reason: str | None) -> None:
    facts = facts_of(f"vllm serve m {flags}", CHAT | {"thinking_token_budget": 256})
    findings = found("BUD312", facts)
    (request,) = facts.as_json()["requests"]
    rows = [row for row in facts.as_json()["resolutions"] if row["request_budget"] is not None]
    if reason is None:
        assert findings == []
        assert (request["standing"], request["refused"], len(rows)) == ("granted", None, 1)
        return
    (finding,) = findings
    assert finding.severity == "error"
    assert reason in finding.message
    assert finding.hint
    assert finding.location is not None
    assert finding.location.path == "r.json"
    assert finding.evidence["serve"]["path"] == "c"
    assert (request["standing"], request["resolutions"], rows) == ("refused", [], [])
    assert reason in request["refused"]
    assert [f.rule for f in check_budget(facts)] == ["BUD312"], "no ceiling of a budget that is refused"


@pytest.mark.parametrize(
    "budget", [{}, {"thinking_token_budget": None}, {"thinking_token_budget": -1}, {"thinking_token_budget": "x"}]
)
def test_what_the_engine_never_sees_it_does_not_refuse(budget: dict[str, Any]) -> None:
    assert found("BUD312", facts_of("vllm serve m", CHAT | budget)) == []


def test_every_endpoint_is_said_once() -> None:
    budgeted = CHAT | {"thinking_token_budget": 256}
    message = CHAT | {"thinking": {"type": "enabled", "budget_tokens": 2000}}
    facts = facts_of("vllm serve m", budgeted, budgeted, {"prompt": "x", "thinking_token_budget": 9}, message)
    findings = found("BUD312", facts)
    assert [(f.evidence["endpoint"], f.evidence["requests"]) for f in findings] == [
        ("chat", 2),
        ("completions", 1),
        ("messages", 1),
    ]
    ignored = {"input": "x", "thinking_token_budget": 9}, budgeted | {"use_beam_search": True}
    assert found("BUD312", facts_of("vllm serve m", *ignored)) == []


@pytest.mark.parametrize(
    ("target", "flags", "refused"),
    [
        ("vllm==0.19.0", "--reasoning-parser qwen3", True),
        ("vllm==0.19.0", "--reasoning-parser qwen3 --reasoning-config {}", False),
        ("vllm==0.20.0", "--reasoning-parser qwen3", False),
        ("vllm==0.25.0", "--reasoning-parser granite", True),
        ("vllm==0.18.0", "", False),
        ("slimserve", "", False),
    ],
)
def test_budget_refused_by_version(target: str, flags: str, refused: bool) -> None:
    facts = facts_of(f"vllm serve m {flags}", CHAT | {"thinking_token_budget": 256}, target=target)
    assert len(found("BUD312", facts)) == refused


def test_no_serve_command_says_nothing() -> None:
    assert found("BUD312", facts_of(None, CHAT | {"thinking_token_budget": 256})) == []


def test_parsers_without_strings_are_those_of_the_table() -> None:
    said = {name for name, row in ROWS.items() if any("thinking budget is refused" in quirk for quirk in row.quirks)}
    assert said | {"openai_gptoss"} == set(without_strings(parse_target("vllm")))


def test_a_runner_that_refuses_grants_nothing() -> None:
    serve = "VLLM_USE_V2_MODEL_RUNNER=1 vllm serve m --reasoning-parser qwen3"
    facts = facts_of(serve, CHAT | {"thinking_token_budget": 256}, target="vllm==0.25.0")
    assert [finding.rule for finding in check_budget(facts)] == ["BUD322"]
    assert (facts.requests[0].standing, facts.requests[0].rows) == ("refused", ())


def template(state: str = "open", after: int | None = 1, marker: str = "<think>") -> TemplateFacts:
    prompts: dict[str | None, EffortPrompt] = {
        None: EffortPrompt(None, state, 0, marker=marker, after_open=after),
        "none": EffortPrompt("none", "closed", 1, marker="</think>", after_open=0),
    }
    return TemplateFacts("m", "t.jinja", True, prompts, (Marker("<think>", (1,)), Marker("</think>", (2,))))


def test_prompt_tokens_charged() -> None:
    bodies = [CHAT | {"thinking_token_budget": 64}, CHAT | {"thinking_token_budget": 512}]
    (finding,) = found("BUD314", facts_of("vllm serve m --reasoning-parser qwen3", *bodies, template=template()))
    assert finding.severity == "info"
    assert "a budget of 64 allows 63, the prompt's 1 token behind <think>" in finding.message
    assert finding.evidence == {"marker": "<think>", "charged": 1, "allowed": 63, "requests": 2}
    (short,) = found("BUD314", facts_of(None, CHAT | {"thinking_token_budget": 2}, template=template(after=5)))
    assert short.evidence["allowed"] == 0


@pytest.mark.parametrize(
    ("extra", "about", "target"),
    [
        ({}, template(after=0), "vllm"),
        ({}, template(after=None), "vllm"),
        ({}, template("none"), "vllm"),
        ({}, template(marker="<other>"), "vllm"),
        ({}, template(), "slimserve"),
        ({}, None, "vllm"),
        ({"reasoning_effort": "none"}, template(), "vllm"),
        ({"thinking_token_budget": 0}, template(), "vllm"),
        ({"thinking_token_budget": -1}, template(), "vllm"),
        ({"thinking_token_budget": None}, template(), "vllm"),
        ({"chat_template_kwargs": {"enable_thinking": False}}, template(), "vllm"),
        ({"continue_final_message": True}, template(), "vllm"),
    ],
)
def test_prompts_that_charge_nothing(extra: dict[str, Any], about: TemplateFacts | None, target: str) -> None:
    body = CHAT | {"thinking_token_budget": 64} | extra
    assert found("BUD314", facts_of(None, body, template=about, target=target)) == []
