"""The budget cases from the field. Needs ../shared beside the repository."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from reasonctl.budgets.counting import Markers, Rule, counter, play
from reasonctl.cli import app

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases" / "field-cases.jsonl"
if not CASES.exists():
    pytest.skip(
        "../shared/cases is not beside this clone; tests/budgets restates what it teaches", allow_module_level=True
    )

BY_ID: dict[str, dict[str, Any]] = {
    case["id"].split("-")[0]: case for case in map(json.loads, CASES.read_text(encoding="utf-8").splitlines())
}
BODY: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def check(folder: Path, name: str, content: Any, *args: str) -> tuple[int, dict[str, Any]]:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    done = CliRunner().invoke(app, ["validate-config", str(path), "--format", "json", *args])
    return done.exit_code, json.loads(done.stdout)


def severities(report: dict[str, Any]) -> dict[str, str]:
    return {finding["rule"]: finding["severity"] for finding in report["findings"]}


def test_b01_and_b02_a_request_it_refuses_and_a_default_it_drops(tmp_path: Path) -> None:
    case = BY_ID["B02"]
    code, report = check(tmp_path, "serve.sh", case["input"]["serve"])
    assert code == 1
    assert severities(report) == {case["expected"]["rule"]: case["expected"]["severity"]}
    assert {row["cutoff"] for row in report["facts"]["resolutions"]} == {None}
    case = BY_ID["B01"]
    code, report = check(tmp_path, "serve.sh", case["input"]["serve"])
    assert (code, severities(report)) == (0, {})
    (tmp_path / "r.json").write_text(json.dumps(BODY | case["input"]["request"]), encoding="utf-8")
    code, report = check(tmp_path, "serve.sh", case["input"]["serve"], "--requests", str(tmp_path / "r.json"))
    assert (code, severities(report)) == (1, {case["expected"]["rule"]: case["expected"]["severity"]})
    assert case["expected"]["error_contains"] in report["findings"][0]["evidence"]["error"]
    assert {row["cutoff"] for row in report["facts"]["resolutions"]} == {None}


def test_b03_a_map_and_its_requests(tmp_path: Path) -> None:
    given = BY_ID["B03"]["input"]
    wanted = BY_ID["B03"]["expected"]["effective"]
    for request, cutoff in zip(given["requests"], wanted, strict=True):
        body = BODY | {"max_tokens": request["max_tokens"], "reasoning_effort": request["effort"]}
        if "budget" in request:
            body["thinking_token_budget"] = request["budget"]
        (tmp_path / "r.json").write_text(json.dumps(body), encoding="utf-8")
        args = ("--requests", str(tmp_path / "r.json"), "--max-tokens", str(request["max_tokens"]))
        code, report = check(tmp_path, "b.json", given["map"], *args)
        assert code == 0
        (seen,) = report["facts"]["requests"]
        assert [row["cutoff"] for row in seen["resolutions"]] == [cutoff]
        key = (request["effort"], request.get("budget"))
        rows = [row for row in report["facts"]["resolutions"] if (row["effort"], row["request_budget"]) == key]
        assert [row["cutoff"] for row in rows] == [cutoff]


def test_b04_a_map_without_medium(tmp_path: Path) -> None:
    case = BY_ID["B04"]
    code, report = check(tmp_path, "b.json", case["input"]["map"], "--max-tokens", "12000")
    assert (code, severities(report)) == (1, {case["expected"]["rule"]: case["expected"]["severity"]})


def test_b06_values(tmp_path: Path) -> None:
    case = BY_ID["B06"]
    for budgets, verdict in zip(case["input"]["maps"], case["expected"]["verdicts"], strict=True):
        code, report = check(tmp_path, "b.json", budgets, "--max-tokens", "12000")
        found = severities(report)
        if verdict == "error":
            assert code == 1
            assert found in ({"BUD304": "error"}, {"BUD305": "error"})
        else:
            assert code == 0
            assert found == {"BUD317" if "unlimited" in verdict else "BUD316": "info"}


def test_b09_a_budget_of_zero(tmp_path: Path) -> None:
    case = BY_ID["B09"]
    body = BODY | {"thinking_token_budget": case["input"]["budget"], "max_tokens": 4096}
    code, report = check(tmp_path, "r.json", body)
    assert (code, severities(report)) == (0, {case["expected"]["rule"]: case["expected"]["severity"]})
    assert report["facts"]["requests"][0]["resolutions"][0]["cutoff"] == 0


def test_b16_a_budget_beyond_max_tokens(tmp_path: Path) -> None:
    case = BY_ID["B16"]
    budget, limit = case["input"]["budget"], case["input"]["max_tokens"]
    expected = {case["expected"]["rule"]: case["expected"]["severity"]}
    code, report = check(tmp_path, "r.json", BODY | {"thinking_token_budget": budget, "max_tokens": limit})
    assert (code, severities(report)) == (0, expected)
    thinking = {"type": "enabled", "budget_tokens": budget}
    code, report = check(tmp_path, "r.json", BODY | {"thinking": thinking, "max_tokens": limit})
    assert (code, severities(report)) == (1, {"BUD319": "error"})
    code, report = check(tmp_path, "b.json", str(budget), "--max-tokens", str(limit))
    assert (code, severities(report)) == (0, expected)
    assert {row["cutoff"] for row in report["facts"]["resolutions"] if row["effort"] != "none"} == {limit - 1}


def test_b18_the_runner_that_refused(tmp_path: Path) -> None:
    case = BY_ID["B18"]
    (tmp_path / "r.json").write_text(json.dumps(BODY | case["input"]["request"]), encoding="utf-8")
    command = "VLLM_USE_V2_MODEL_RUNNER=1 vllm serve m --reasoning-parser kimi_k2"
    args = ("--requests", str(tmp_path / "r.json"))
    for version in ("0.22.0", "0.23.0"):
        code, report = check(tmp_path, "serve.sh", command, *args, "--target", f"vllm=={version}")
        assert (code, severities(report)) == (1, {case["expected"]["rule"]: case["expected"]["severity"]})
    code, report = check(tmp_path, "serve.sh", command, *args, "--target", "vllm==0.33.0")
    assert (code, severities(report)) == (0, {})


RUNNERS: tuple[Rule, ...] = ("vllm-v1", "vllm-v2")
TOKENS: dict[str, int] = {"<think>": 1, "</think>": 2, "<tool_call>": 3, "\\n": 4, "Time is up.": 5}


def ids(texts: list[Any]) -> list[int]:
    """Numbers are ordinary tokens."""
    return [TOKENS[text] if isinstance(text, str) else 100 + text for text in texts]


def played(rule: Rule, case: dict[str, Any], said: list[Any], forced: tuple[int, ...] = (2,)) -> str:
    """What a server of this kind makes of a case's script: forced stretches in brackets."""
    names = {number: text for text, number in TOKENS.items()}
    given = case["input"]
    follow = counter(rule, Markers((1,), (2,), forced), given["budget"], ids(given["prompt_ids"]))
    words: list[str] = []
    for one in play(follow, ids(said), 40):
        word = names.get(one.token, str(one.token - 100))
        if one.forced and words and words[-1].endswith("]") and word == "</think>":
            words[-1] = words[-1][:-1] + "</think>]"
        else:
            words.append(f"[{word}]" if one.forced else word)
    return " ".join(words)


def audited(serve: str, *budget: str) -> dict[str, str]:
    """The budget findings of an audit of the fixture qwen3, with the case's serve command; and every error."""
    done = CliRunner().invoke(app, ["audit", "--model", "fixture:qwen3", "--serve", serve, *budget, "--format", "json"])
    found = json.loads(done.stdout)["findings"]
    return {f["rule"]: f["severity"] for f in found if f["rule"].startswith("BUD") or f["severity"] == "error"}


def test_b08_the_prompts_newline_counts(tmp_path: Path) -> None:
    case = BY_ID["B08"]
    wanted = case["expected"]["generated_reasoning_tokens"]
    counts: dict[Rule, int] = {"vllm-v1": wanted, "vllm-v2": wanted, "slimserve": 3}
    for rule, tokens in counts.items():
        said = played(rule, case, [7] * 6)
        assert said.split().index(f"[{case['expected']['forced']}]") == tokens
    template = tmp_path / "open.jinja"
    template.write_text(
        "{% for m in messages %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}<think>\n{% endif %}"
    )
    budget = str(case["input"]["budget"])
    model = ["--model", "fixture:qwen3", "--chat-template", str(template), "--parser", "qwen3"]
    done = CliRunner().invoke(app, ["audit", *model, "--budget", budget, "--format", "json"])
    found = {f["rule"]: f["severity"] for f in json.loads(done.stdout)["findings"]}
    assert found[case["expected"]["rule"]] == case["expected"]["severity"]


def test_b11_a_reopened_block() -> None:
    case = BY_ID["B11"]
    wanted = case["expected"]["tokens"].replace("[forced </think>]", "[</think>]")
    for rule in RUNNERS:
        assert played(rule, case, case["input"]["script"]).startswith(wanted)
    found = audited("vllm serve m --reasoning-parser qwen3", "--budget", str(case["input"]["budget"]))
    assert found.pop("BUD326") == "warning"
    assert found == {case["expected"]["rule"]: case["expected"]["severity"]}


def test_b12_a_phrase_on_v1(tmp_path: Path) -> None:
    case = BY_ID["B12"]
    assert played("vllm-v1", case, case["input"]["script"], (5, 2)) == case["expected"]["observed_v1_0_33_0"]
    assert played("vllm-v2", case, case["input"]["script"], (5, 2)) == case["expected"]["expected"]
    config = json.dumps({"reasoning_end_str": case["input"]["reasoning_end_str"]})
    serve = f"vllm serve m --reasoning-parser qwen3 --reasoning-config {shlex.quote(config)}"
    expected = {case["expected"]["rule"]: case["expected"]["severity"]}
    assert audited(f"VLLM_USE_V2_MODEL_RUNNER=0 {serve}") == expected
    assert audited(serve) == {}
    code, report = check(tmp_path, "serve.sh", f"VLLM_USE_V2_MODEL_RUNNER=0 {serve}")
    assert (code, severities(report)) == (1, expected)


def test_b14_a_tool_call_in_the_thought() -> None:
    case = BY_ID["B14"]
    wanted = case["expected"]["observed_v1_0_33_0"].replace("[forced </think>]", "[</think>]")
    for rule in RUNNERS:
        assert played(rule, case, case["input"]["script"]) == wanted
    serve = "vllm serve m --reasoning-parser qwen3 --enable-auto-tool-choice --tool-call-parser hermes"
    found = audited(serve, "--budget", str(case["input"]["budget"]))
    assert found[case["expected"]["rule"]] == case["expected"]["severity"]
    assert "error" not in found.values()


@pytest.mark.parametrize(
    ("config", "limit", "asked", "cutoffs"),
    [
        (
            {"low": 4096, "medium": 8192, "high": 16384, "xhigh": 32768},
            32768,
            {},
            {"low": 4096, "medium": 8192, "high": 16384, "xhigh": 32767, None: 8192, "minimal": 8192, "none": None},
        ),
        ({"medium": 8192, "xhigh": 32768}, 32768, {"xhigh": 1024}, {}),
        (16384, 32768, {}, {"low": 16384, None: 16384}),
        (16384, 8192, {"high": 1024}, {"high": 8191}),
        (16384, 2048, {}, {"max": 2047}),
    ],
)
def test_slimserves_own_test_vectors(
    tmp_path: Path, config: Any, limit: int, asked: dict[str, int], cutoffs: dict[str | None, int | None]
) -> None:
    """Restated from facts/slimserve-budgets.md."""
    bodies = [
        BODY | {"reasoning_effort": effort, "thinking_token_budget": tokens, "max_tokens": limit}
        for effort, tokens in asked.items()
    ]
    args: tuple[str, ...] = ()
    if bodies:
        (tmp_path / "r.json").write_text(json.dumps(bodies), encoding="utf-8")
        args = ("--requests", str(tmp_path / "r.json"))
    _, report = check(tmp_path, "b.json", config, "--max-tokens", str(limit), *args)
    rows = {(row["effort"], row["request_budget"]): row["cutoff"] for row in report["facts"]["resolutions"]}
    for effort, cutoff in cutoffs.items():
        assert rows[effort, None] == cutoff
    for effort, tokens in asked.items():
        assert rows[effort, tokens] == tokens


@pytest.mark.parametrize("bad", [{"low": 5}, {"medium": 5, "turbo": 6}, {"medium": None}, {"medium": 1.5}, -2])
def test_slimserve_refuses_at_boot(tmp_path: Path, bad: Any) -> None:
    code, _ = check(tmp_path, "b.json", bad, "--max-tokens", "32768")
    assert code == 1


@pytest.mark.parametrize("good", [{"medium": 5}, {"low": 5, "medium": 6, "high": 0}, 256, -1, 0])
def test_slimserve_starts_with(tmp_path: Path, good: Any) -> None:
    code, _ = check(tmp_path, "b.json", good, "--max-tokens", "32768")
    assert code == 0
