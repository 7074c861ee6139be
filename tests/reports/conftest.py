"""Reports made by hand, one for each command, with everything in them that the formats have to cope with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reasonctl.checks.finding import Coverage, Finding, Location
from reasonctl.checks.report import Policy, Report, make_report

ENGINE = {"kind": "builtin", "models": "vllm==0.33.0"}


def state(conversation: str, variant: dict[str, Any], name: str, tail: str, **more: Any) -> dict[str, Any]:
    marker = {"open": "<think>", "closed": "</think>"}.get(name)
    row = {"conversation": conversation, "variant": variant, "state": name, "marker": marker, "tail": tail}
    return {**row, "tokens_after_open": 1 if name == "open" else 0, "error": None, **more}


def candidate(name: str, fit: str, passed: int, failed: int, **more: Any) -> dict[str, Any]:
    probes = {"passed": passed, "failed": failed, "skipped": 0}
    return {"name": name, "fit": fit, "probes": probes, "failures": [], "reason": None, **more}


OFF = {"enable_thinking": False}
FAILURE = {
    "probe": "answers at once",
    "conversation": "single_turn",
    "variant": OFF,
    "mode": "full",
    "chunking": None,
    "symptom": "content-null",
    "output": "It is 4.",
    "expected": {"reasoning": None, "content": "It is 4."},
    "got": {"reasoning": "It is 4.", "content": None},
}

CONTENT_NULL = Finding(
    rule="FIT105",
    slug="content-null",
    severity="error",
    confidence="high",
    message="turn thinking off and the answer comes back as reasoning",
    hint="--reasoning-parser qwen3",
    subject={"parser": "deepseek_r1", "variant": OFF},
    location=Location("deploy/my qwen.sh", 3, 14),
    evidence={
        "request": {"chat_template_kwargs": OFF},
        "prompt": "<|im_start|>assistant\n<think>\n\n</think>\n\n",
        "output": "It is 4.",
        "client": {"reasoning": "It is 4.", "content": None},
        "because": "the template closes thinking in the prompt; deepseek_r1 files unmarked output as reasoning",
        "also": ["FIT107"],
    },
)


def audit_facts(**parser: Any) -> dict[str, Any]:
    return {
        "model": {
            "source": "models/qwen3",
            "kind": "folder",
            "model_type": "qwen3",
            "architectures": ["Qwen3ForCausalLM"],
            "template": {"origin": "chat_template.jinja", "sha256": "41d37c0a" * 8, "reads": ["enable_thinking"]},
            "markers": [{"text": "</think>", "ids": [151668], "single_token": True, "special": False}],
        },
        "prompt_states": [
            state("single_turn", {}, "open", "<think>\n"),
            state("single_turn", {"enable_thinking": True}, "open", "<think>\n"),
            state("single_turn", OFF, "closed", "<think>\n\n</think>\n\n"),
            state("multi_turn", {}, "open", "<think>\n"),
            state("multi_turn", OFF, "closed", "<think>\n\n</think>\n\n"),
            state("tool_result", {}, "none", "<|im_start|>assistant\n"),
            state("system", {}, "error", "", error="raise_exception: no [bold]system[/bold] messages"),
        ],
        "history": [
            {"field": "reasoning", "tool_loop": "dropped", "next_user_turn": "dropped"},
            {"field": "reasoning_content", "tool_loop": "kept", "next_user_turn": "dropped"},
            {"field": "inline", "tool_loop": "kept", "next_user_turn": "dropped"},
        ],
        "parser": {
            "configured": "deepseek_r1",
            "judged": "deepseek_r1",
            "recommended": "qwen3",
            "candidates": [
                candidate("qwen3", "pass", 24, 0),
                candidate("mimo", "pass", 24, 0),
                candidate("deepseek_r1", "fail", 16, 8, failures=[FAILURE]),
                candidate("muse", "unsupported", 0, 0, reason="no built-in model yet"),
            ],
            **parser,
        },
        "serve_flags": ["--reasoning-parser", "qwen3"],
    }


@pytest.fixture
def audit_report() -> Report:
    """A folder audited with the wrong parser: an error with a place, a warning and a note without, a suppression."""
    opens = Finding(
        rule="TPL001",
        slug="prompt-opens-thinking",
        severity="info",
        confidence="high",
        message="a plain prompt ends inside a thinking block",
        hint="read reasoning from the field",
        subject={"model": "models/qwen3", "variant": {}},
    )
    ignored = Finding(
        rule="TPL002",
        slug="off-switch-ignored",
        severity="warning",
        confidence="high",
        message="no kwarg closes the block",
        hint="",
        location=Location("models/qwen3/chat_template.jinja", 85),
        suppressed="never switched off here",
    )
    unsure = Finding(
        rule="FIT107",
        slug="stream-differs",
        severity="warning",
        confidence="medium",
        message="streaming says otherwise",
        hint="ask for whole outputs",
        subject={"parser": "deepseek_r1", "conversation": "multi_turn"},
    )
    return make_report(
        "audit",
        target="vllm==0.33.0",
        engine=ENGINE,
        facts=audit_facts(),
        findings=[opens, unsure, CONTENT_NULL, ignored],
        coverage=[
            Coverage("template", "examined"),
            Coverage("tokenizer", "examined"),
            Coverage("server", "absent", "no --endpoint"),
            Coverage("budget", "skipped", "no --budget"),
        ],
        policy=Policy(),
    )


@pytest.fixture
def passing_report() -> Report:
    """The same folder with the right parser."""
    return make_report(
        "audit",
        target="vllm==0.33.0",
        engine=ENGINE,
        facts=audit_facts(configured="qwen3", judged="qwen3"),
        findings=[],
        coverage=[Coverage("template", "examined"), Coverage("parser", "examined")],
        policy=Policy(),
    )


def result(trace: str, parser: str, status: str = "ok", **more: Any) -> dict[str, Any]:
    split = more.pop("full", {"reasoning": "Two and two.", "content": "It is 4."})
    streams = more.pop("stream", [split, split])
    checks = {"stream_equals_full": True, "chunk_invariant": True, "no_marker_leak": True, "text_conserved": True}
    return {
        "trace": trace,
        "line": int(trace[1:]),
        "parser": parser,
        "status": status,
        "full": split,
        "stream": [
            {"chunking": name, "deltas": 3, **entry} for name, entry in zip(("token", "3"), streams, strict=True)
        ],
        "reasoning_tokens": 12,
        "checks": {**checks, "answered": True, **more.pop("checks", {})},
        "matches_recorded": None,
        "reason": None,
        **more,
    }


@pytest.fixture
def replay_report() -> Report:
    """Two traces: one that only its own parser splits wrongly, one whose text tries to take over the terminal."""
    leak = {"reasoning": None, "content": "Two and two.</think>It is 4."}
    hostile = {"reasoning": "[bold red]\x1b[31mred\x1b[0m", "content": "left\u202eright\nnext"}
    finding = Finding(
        rule="RPL403",
        slug="replay-marker-leak",
        severity="error",
        confidence="high",
        message="</think> stands in content",
        hint="--default-chat-template-kwargs '{\"enable_thinking\": true}'",
        cause="FIT113",
        subject={"trace": "t1", "parser": "poolside_v1"},
        location=Location("capture.jsonl", 1),
        evidence={
            "chain": [
                ["template", "a plain request ends in <think>"],
                ["parser", "poolside_v1 stays off unless asked"],
            ]
        },
    )
    return make_report(
        "replay",
        target="vllm==0.33.0",
        engine=ENGINE,
        facts={
            "traces": 2,
            "parsers": ["poolside_v1", "deepseek_r1", "qwen3", "muse"],
            "tokenizer": "assumed",
            "results": [
                result(
                    "t1", "poolside_v1", "suspect", full=leak, checks={"no_marker_leak": False}, matches_recorded=True
                ),
                result("t1", "deepseek_r1", stream=[{"reasoning": "Two and two.", "content": "It is 4."}, leak]),
                result("t1", "qwen3"),
                result("t1", "mimo"),
                result("t1", "muse", "unsupported", full={}, stream=[{}, {}], reason="no built-in model yet"),
                result("t2", "poolside_v1", full=hostile),
                result("t2", "deepseek_r1", "error", full={"error": "RuntimeError"}, reason="RuntimeError: no token"),
            ],
            "best": [{"trace": "t1", "parsers": ["qwen3", "mimo"], "why": "every check passes"}],
        },
        findings=[finding],
        coverage=[Coverage("trace", "examined"), Coverage("tokenizer", "partial", "assumed; give --model")],
        policy=Policy(),
    )


def resolution(effort: str | None, max_tokens: int, selected: int | None, source: str, **more: Any) -> dict[str, Any]:
    cutoff = None if selected is None or selected < 0 else min(selected, max_tokens - 1)
    return {
        "effort": effort,
        "request_budget": None,
        "max_tokens": max_tokens,
        "selected": selected,
        "source": source,
        "cutoff": cutoff,
        "answer_capacity": None if cutoff is None else max(max_tokens - cutoff - 1, 0),
        **more,
    }


@pytest.fixture
def budget_report() -> Report:
    """A map whose medium budget starves the answer at 4096 tokens."""
    rows = [
        row
        for limit in (4096, 12000)
        for row in (
            resolution("low", limit, 1024, "map[low]"),
            resolution(None, limit, 4096, "map[medium]"),
            resolution("none", limit, None, "none"),
            resolution("low", limit, 6000, "request", request_budget=6000),
        )
    ]
    finding = Finding(
        rule="BUD306",
        slug="budget-reaches-ceiling",
        severity="warning",
        confidence="high",
        message="medium leaves nothing for the answer at max_tokens 4096",
        hint="max_tokens of at least 4353",
        subject={"key": "medium"},
        location=Location("budget.json", 3, 3),
    )
    return make_report(
        "validate-config",
        target="slimserve",
        engine=ENGINE,
        facts={
            "dialect": "slimserve",
            "form": "map",
            "budgets": {"low": 1024, "medium": 4096},
            "resolutions": rows,
            "path": "budget.json",
        },
        findings=[finding],
        coverage=[Coverage("budget", "examined")],
        policy=Policy(),
    )


@pytest.fixture
def recordings_report(replay_report: Report) -> Report:
    """The same two traces, in a file each; a third file where nothing went wrong."""
    paths = {"t1": "capture.jsonl", "t2": "more/capture.jsonl"}
    read = [{"path": path, "format": "trace", "traces": 1} for path in (*paths.values(), "good.jsonl")]
    results = [{**row, "path": paths[row["trace"]]} for row in replay_report.facts["results"]]
    return replace(replay_report, facts={**replay_report.facts, "inputs": read, "results": results})


def case(name: str, ok: bool | None, **more: Any) -> dict[str, Any]:
    outcome = {"thinking_tokens": 63, "forced_end": True}
    shape = {"predicted": outcome, "observed": outcome, "differs": [], "lost": None, "note": None}
    return {"name": name, "request": {}, "endpoint": "chat", "prompt_state": "open", "ok": ok, **shape, **more}


@pytest.fixture
def verify_report() -> Report:
    """A server that cuts one token late in two cases, lost one to a time-out and proves nothing in another."""
    cases = [
        case("open, budget 0", True),
        case("open, budget 64", False, differs=["thinking_tokens"]),
        case("open, budget 65", False, differs=["thinking_tokens"]),
        case("two at once", None, lost="no answer within 60 s"),
        case("budget 10000", None),
    ]
    late = Finding(
        rule="ENG502",
        slug="cutoff-off-by-n",
        severity="error",
        confidence="high",
        message="open, budget 64: 64 thinking tokens (and 1 more case)",
        hint="tell the server's authors",
        subject={"server": "vllm 0.32.0", "parser": "qwen3"},
        evidence={"cases": [cases[1]]},
    )
    lost = Finding(
        rule="INT904",
        slug="result-lost",
        severity="error",
        confidence="high",
        message="two at once: no answer within 60 s",
        hint="the other cases stand",
        subject={"server": "vllm 0.32.0", "request": {"name": "two at once"}},
    )
    return make_report(
        "verify",
        target="vllm==0.32.0",
        engine=ENGINE,
        facts={"server": {"kind": "vllm", "version": "0.32.0"}, "model": {"name": "lab"}, "cases": cases},
        findings=[late, lost],
        coverage=[Coverage("budget", "partial", "1 of 5 cases cannot be judged")],
        policy=Policy(),
    )


def server_finding(path: str, line: int, **subject: Any) -> Finding:
    return Finding(
        rule="TPL002",
        slug="off-switch-ignored",
        severity="warning",
        confidence="high",
        message="nothing switches thinking off",
        hint="",
        subject={"model": "models/qwen3", "server": "chat", **subject},
        location=Location(path, line),
    )


@pytest.fixture
def servers_report() -> Report:
    """Two compose files with a server of the same name each, and the same defect in the template of both."""
    servers = [
        {"name": "chat", "location": {"path": path, "line": 2, "column": 3}, **audit_facts()}
        for path in ("a/compose.yaml", "b/compose.yaml")
    ]
    return make_report(
        "audit",
        target="vllm==0.33.0",
        engine=ENGINE,
        facts={"servers": servers},
        findings=[
            server_finding("models/qwen3/chat_template.jinja", 85),
            server_finding("models/qwen3/chat_template.jinja", 85),
            server_finding("b/compose.yaml", 7, parser="deepseek_r1"),
        ],
        coverage=[
            Coverage("template", "examined", "chat"),
            Coverage("tokenizer", "skipped", "chat: no tokenizer.json"),
            Coverage("template", "examined", "chat"),
            Coverage("tokenizer", "examined", "chat"),
        ],
        policy=Policy(),
    )


@pytest.fixture
def gate_report(
    audit_report: Report,
    servers_report: Report,
    recordings_report: Report,
    budget_report: Report,
    verify_report: Report,
) -> Report:
    """All of them as one gate runs them."""
    named = [
        replace(finding, subject={"model": "models/qwen3", **finding.subject}) for finding in audit_report.findings
    ]
    audit_report = replace(audit_report, findings=named)
    parts = (audit_report, servers_report, recordings_report, budget_report, verify_report)
    names = ("models/qwen3", "deploy", "capture.jsonl", "budget.json", "lab")
    return make_report(
        "gate",
        target="vllm==0.33.0",
        engine=ENGINE,
        facts={
            "config": "reasonctl.toml",
            "runs": [
                {
                    "name": f"{part.command} {name}",
                    "command": part.command,
                    "target": part.target,
                    "engine": dict(part.engine),
                    "verdict": part.verdict,
                    "summary": part.summary,
                    "facts": dict(part.facts),
                }
                for part, name in zip(parts, names, strict=True)
            ],
        },
        findings=[finding for part in parts for finding in part.findings],
        coverage=[
            replace(row, reason=f"{part.command} {name}: {row.reason}" if row.reason else f"{part.command} {name}")
            for part, name in zip(parts, names, strict=True)
            for row in part.coverage
        ],
        policy=Policy(),
    )
