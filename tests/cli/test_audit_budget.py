"""`reasonctl audit --budget`: a budget judged against a model, a parser and a runner."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

COMMAND = "audit"
Run = Callable[..., tuple[int, str, str]]
QWEN3 = ("--model", "fixture:qwen3", "--parser", "qwen3")
BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 9000}
DEFAULT = "--override-generation-config '{\"thinking_token_budget\": 512}'"


def as_json(run: Run, *arguments: str) -> tuple[int, dict[str, Any]]:
    code, out, err = run(*arguments, "--format", "json")
    assert out, err
    report: dict[str, Any] = json.loads(out)
    return code, report


def budget_rules(report: dict[str, Any], *severities: str) -> list[str]:
    wanted = severities or ("error", "warning", "info")
    return sorted(f["rule"] for f in report["findings"] if f["rule"].startswith("BUD") and f["severity"] in wanted)


def status(report: dict[str, Any]) -> str:
    (found,) = [row["status"] for row in report["coverage"] if row["surface"] == "budget"]
    return str(found)


@pytest.mark.parametrize("form", ["512", "file", "body"])
def test_a_budget_that_fits_passes_and_is_shown(run: Run, tmp_path: Path, form: str) -> None:
    given = form
    if form != "512":
        path = tmp_path / "b.json"
        path.write_text(json.dumps({"thinking_token_budget": 512} | (BODY if form == "body" else {})))
        given = str(path)
    code, report = as_json(run, *QWEN3, "--budget", given)
    assert (code, status(report)) == (0, "examined")
    assert budget_rules(report) == ["BUD325", "BUD326"]
    budget = report["facts"]["budget"]
    assert (budget["dialect"], budget["budgets"]) == ("vllm", 512)
    assert {"form", "resolutions", "requests", "prompts", "max_tokens", "refused"} <= budget.keys()
    asked = {(row["selected"], row["source"]) for row in budget["resolutions"] if row["request_budget"]}
    assert asked == {(512, "request")}
    (finding,) = [f for f in report["findings"] if f["rule"] == "BUD326"]
    assert finding["subject"]["model"] == "fixture:qwen3"
    assert finding["location"]["path"] == ("--budget" if form == "512" else given)


def test_the_text_shows_the_table(run: Run) -> None:
    code, out, _ = run(*QWEN3, "--budget", "512")
    assert code == 0
    said = " ".join(out.split())
    assert "judged by vLLM's rules" in said
    assert "512 | 3583" in said
    assert "looked at template, prompt, tokenizer, parser, budget" in said


def test_no_budget_is_absent(run: Run) -> None:
    code, report = as_json(run, *QWEN3)
    assert (code, status(report), budget_rules(report)) == (0, "absent", [])
    assert "budget" not in report["facts"]


def test_a_servers_own_budget_counts_where_it_is_read(run: Run) -> None:
    command = f"slimserve m --reasoning-parser qwen3 {DEFAULT}"
    code, report = as_json(run, "--model", "fixture:qwen3", "--serve", command)
    assert (code, budget_rules(report)) == (0, ["BUD325"])
    assert report["facts"]["budget"]["form"] == "serve"
    code, report = as_json(
        run, "--model", "fixture:qwen3", "--serve", f"vllm serve m --reasoning-parser qwen3 {DEFAULT}"
    )
    assert (code, budget_rules(report)) == (1, ["BUD310"])


def test_deepseek_v31_wants_both_strings(run: Run) -> None:
    serve = "vllm serve m --reasoning-parser deepseek_v3"
    both = '--reasoning-config \'{"reasoning_start_str": "<think>", "reasoning_end_str": "</think>"}\''
    model = ("--model", "fixture:deepseek-v31", "--budget", "512")
    code, report = as_json(run, *model, "--serve", serve)
    assert (code, budget_rules(report, "error")) == (1, ["BUD312"])
    code, report = as_json(run, *model, "--serve", f"{serve} {both}")
    assert (code, budget_rules(report)) == (0, ["BUD325"])
    code, report = as_json(run, *model)
    assert (code, budget_rules(report, "error"), report["facts"]["parser"]["recommended"]) == (0, [], "deepseek_v3")
    flags = report["facts"]["serve_flags"]
    assert flags[2] == "--reasoning-config"
    assert json.loads(flags[3]) == {"reasoning_start_str": "<think>", "reasoning_end_str": "</think>"}


def test_no_parser_is_advised_where_none_names_strings(run: Run) -> None:
    for parser in ("", " --reasoning-parser openai_gptoss"):
        serve = ("--serve", f"vllm serve m{parser}", "--budget", "512")
        _, report = as_json(run, "--model", "fixture:gpt-oss", *serve)
        (refused,) = [f for f in report["findings"] if f["rule"] == "BUD312"]
        assert "harmony" in refused["hint"]
        assert "--reasoning-parser" not in refused["hint"]


def test_requests_bring_their_own_budgets(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    nested = BODY | {"extra_body": {"thinking_token_budget": 64}}
    path.write_text(json.dumps([BODY | {"thinking_token_budget": 64}, nested]))
    code, report = as_json(run, *QWEN3, "--requests", str(path))
    assert (code, budget_rules(report, "error")) == (1, ["BUD318"])
    assert [row["standing"] for row in report["facts"]["budget"]["requests"]] == ["granted", "granted"]
    path.write_text(json.dumps(BODY))
    assert budget_rules(as_json(run, *QWEN3, "--requests", str(path))[1]) == []


def test_a_parser_in_structured_outputs_alone_is_one_defect(run: Run) -> None:
    serve = "vllm serve m --structured-outputs-config.reasoning_parser qwen3"
    code, report = as_json(run, "--model", "fixture:qwen3", "--serve", serve, "--budget", "64")
    found = {f["rule"]: f["severity"] for f in report["findings"] if f["severity"] == "error"}
    assert (code, found) == (1, {"SRV206": "error"})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--budget", ""), "--budget"),
        (("--budget", "nowhere.json"), "no such file"),
        (("--budget", "-", "--requests", "-"), "cannot both read standard input"),
    ],
)
def test_a_budget_that_cannot_be_read_is_refused(run: Run, arguments: tuple[str, ...], said: str) -> None:
    code, _, err = run(*QWEN3, *arguments)
    assert code == 2
    assert said in err
