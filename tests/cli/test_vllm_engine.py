"""`--vllm` on the command line, over a tiny fake vLLM: whose parsers ran, what is lost, what an upgrade changes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reasonctl.cli import main

from ..parsers.fake_vllm import UNRULY, fake_vllm

Call = Callable[..., tuple[int, str, str]]
CLOSED = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"


@pytest.fixture(scope="module")
def fake(tmp_path_factory: pytest.TempPathFactory) -> str:
    return fake_vllm(tmp_path_factory.mktemp("fake"))


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["reasonctl", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        return int(stop.value.code or 0), captured.out, captured.err

    return run


def as_json(call: Call, *arguments: str) -> tuple[int, dict[str, Any]]:
    code, out, _ = call(*arguments, "--format", "json")
    report: dict[str, Any] = json.loads(out)
    return code, report


def traces(folder: Path, *outputs: str, **more: Any) -> str:
    path = folder / "t.jsonl"
    lines = ({"id": f"t{number}", "output": {"text": text}, **more} for number, text in enumerate(outputs, 1))
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return str(path)


def rules(report: dict[str, Any]) -> list[tuple[str, str | None]]:
    return [(finding["rule"], finding["subject"].get("trace")) for finding in report["findings"]]


def test_replay_runs_its_parsers_and_is_judged_as_its_version(call: Call, tmp_path: Path) -> None:
    path = traces(tmp_path, "I think.</think>It is 4.", recorded={"finish_reason": "stop", "parser": "qwen3"})
    value = fake_vllm(tmp_path / "fake", version="0.31.0")
    code, report = as_json(call, "replay", path, "--vllm", value)
    assert (code, report["target"]) == (0, "vllm==0.31.0")
    assert report["engine"] == {"kind": "vllm", "vllm_version": "0.31.0", "python": sys.version.split()[0]}
    (result,) = report["facts"]["results"]
    assert result["full"] == {"reasoning": "I think.", "content": "It is 4."}
    # This fake counts every token it is shown.
    assert (result["parser"], result["reasoning_tokens"]) == ("qwen3", 9)
    assert "upgrades" not in report["facts"]


def test_a_target_that_is_given_wins(call: Call, fake: str, tmp_path: Path) -> None:
    path = traces(tmp_path, "a</think>b")
    _, report = as_json(call, "replay", path, "--parser", "deepseek_r1", "--vllm", fake, "--target", "vllm==0.30.0")
    assert (report["target"], report["engine"]["vllm_version"]) == ("vllm==0.30.0", "0.33.0")


def test_without_a_parser_all_that_it_registers_are_run(call: Call, fake: str, tmp_path: Path) -> None:
    _, report = as_json(call, "replay", traces(tmp_path, "a</think>b"), "--vllm", fake)
    assert report["facts"]["parsers"] == ["deepseek_r1", "qwen3"]


def test_a_parser_that_it_lacks_is_a_wrong_call(call: Call, fake: str, tmp_path: Path) -> None:
    code, out, err = call("replay", traces(tmp_path, "a"), "--parser", "granite", "--vllm", fake)
    assert (code, out) == (2, "")
    assert err == ("reasonctl: vLLM 0.33.0 registers no reasoning parser 'granite'; it has deepseek_r1, qwen3\n")


def serve_with_plugin(folder: Path, text: str = UNRULY) -> str:
    (folder / "unruly.py").write_text(text, encoding="utf-8")
    (folder / "serve.sh").write_text(
        "vllm serve m --reasoning-parser unruly --reasoning-parser-plugin unruly.py\n", encoding="utf-8"
    )
    return str(folder / "serve.sh")


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_int904_what_a_plugin_loses_is_reported_and_the_rest_is_complete(
    call: Call, fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: str
) -> None:
    monkeypatch.setenv("REASONCTL_VLLM_SECONDS", "1")
    words = ("||one", "|exit|", "|segv|", "|hang|", "|chatter|", "|raise|", "||last")
    arguments = ("--serve", serve_with_plugin(tmp_path), "--vllm", fake, "--jobs", jobs, "--select", "INT,RPL414")
    code, report = as_json(call, "replay", traces(tmp_path, *words), *arguments)
    assert code == 1
    assert rules(report) == [("INT904", "t2"), ("INT904", "t3"), ("INT904", "t4"), ("RPL414", "t6")]
    assert [finding["message"] for finding in report["findings"][:3]] == [
        "its process ended with status 7",
        "its process was ended by SIGSEGV",
        "no answer within 1 s",
    ]
    results = {row["trace"]: row for row in report["facts"]["results"] if row["parser"] == "unruly"}
    assert [results[f"t{number}"]["full"]["reasoning"] for number in (1, 5, 7)] == ["||one", "|chatter|", "||last"]
    assert [results[f"t{number}"]["status"] for number in range(1, 8)].count("error") == 4


def test_a_plugin_that_breaks_when_loaded_loses_its_own_results(call: Call, fake: str, tmp_path: Path) -> None:
    serve = serve_with_plugin(tmp_path, "raise RuntimeError('broken')")
    code, report = as_json(call, "replay", traces(tmp_path, "a"), "--serve", serve, "--vllm", fake, "--select", "INT")
    assert code == 1
    (finding,) = report["findings"]
    assert finding["message"] == "unruly: unruly.py could not be loaded: RuntimeError: broken"


def test_a_plugin_that_is_not_there_is_a_wrong_call_only_where_it_is_loaded(
    call: Call, fake: str, tmp_path: Path
) -> None:
    serve = serve_with_plugin(tmp_path)
    (tmp_path / "unruly.py").unlink()
    code, _, err = call("replay", traces(tmp_path, "a"), "--serve", serve, "--vllm", fake)
    assert code == 2
    assert "--reasoning-parser-plugin unruly.py: no such file; put the file there" in err
    assert err.startswith(f"reasonctl: {serve}:1:")


def test_a_vllm_that_does_not_come_up_is_exit_3(call: Call, tmp_path: Path) -> None:
    code, out, err = call("replay", traces(tmp_path, "a"), "--vllm", sys.executable)
    assert (code, out) == (3, "")
    assert err.count("\n") == 1
    assert f"--vllm {sys.executable}: there is no vLLM in that Python" in err


@pytest.mark.parametrize("command", ["audit", "validate-config"])
def test_one_is_enough_where_nothing_is_compared(call: Call, fake: str, command: str) -> None:
    code, _, err = call(command, "fixture:qwen3", "--vllm", fake, "--vllm", fake)
    assert (code, err) == (2, "reasonctl: --vllm: one is compared with nothing here; give it once\n")


def upgraded(tmp_path: Path) -> tuple[str, str]:
    """Two versions: to the older one qwen3 is blind for the prompt in a stream."""
    return (
        fake_vllm(tmp_path / "old", version="0.19.0", layout="blind"),
        fake_vllm(tmp_path / "new", version="0.33.0"),
    )


def test_rpl417_an_upgrade_that_splits_a_trace_differently_is_an_error(call: Call, tmp_path: Path) -> None:
    old, new = upgraded(tmp_path)
    path = traces(tmp_path, "It is 4.", prompt={"text": CLOSED}, recorded={"finish_reason": "stop", "parser": "qwen3"})
    code, report = as_json(call, "replay", path, "--vllm", old, "--vllm", new, "--select", "RPL417")
    assert (code, report["engine"]["vllm_version"]) == (1, "0.19.0")
    (finding,) = report["findings"]
    assert finding["message"] == (
        "qwen3 splits this trace otherwise in vLLM 0.33.0 than in 0.19.0: streamed at one token a delta, "
        "streamed at 3 tokens a delta, streamed in one delta"
    )
    assert finding["subject"] == {"trace": "t1", "parser": "qwen3", "upgrade": "0.19.0 to 0.33.0"}
    assert finding["evidence"] == {
        "before": {"reasoning": "It is 4.", "content": None},
        "after": {"reasoning": None, "content": "It is 4."},
        "modes": ["token", "3", "whole"],
    }
    facts = report["facts"]
    assert [entry["vllm_version"] for entry in facts["vllm"]] == ["0.19.0", "0.33.0"]
    assert facts["upgrades"] == {"0.33.0": {"qwen3": {"same": 0, "differs": 1}}}
    (row,) = facts["upgrade"]
    assert (row["parser"], row["same"], row["full"]) == ("qwen3", False, {"reasoning": "It is 4.", "content": None})
    assert [entry["chunking"] for entry in row["differs"]] == ["token", "3", "whole"]
    text = call("replay", path, "--vllm", old, "--vllm", new, "--select", "RPL417")[1]
    assert "from vLLM 0.19.0 to 0.33.0" in text
    assert 'reasoning "It is 4."' in text.partition("before and after")[2]


def test_an_upgrade_that_splits_alike_passes(call: Call, tmp_path: Path) -> None:
    old, new = upgraded(tmp_path)
    path = traces(tmp_path, "I think.</think>It is 4.")
    code, report = as_json(call, "replay", path, "--vllm", old, "--vllm", new)
    assert (code, [rule for rule, _ in rules(report) if rule == "RPL417"]) == (0, [])
    assert report["facts"]["upgrades"] == {
        "0.33.0": {"deepseek_r1": {"same": 1, "differs": 0}, "qwen3": {"same": 1, "differs": 0}}
    }


def test_where_no_parser_is_known_every_one_counts_and_else_only_those_meant(call: Call, tmp_path: Path) -> None:
    old, new = upgraded(tmp_path)
    both = ("--vllm", old, "--vllm", new, "--select", "RPL417")
    path = traces(tmp_path, "It is 4.", prompt={"text": CLOSED})
    _, report = as_json(call, "replay", path, *both)
    assert [finding["subject"]["parser"] for finding in report["findings"]] == ["deepseek_r1", "qwen3"]
    _, report = as_json(call, "replay", path, *both, "--parser", "qwen3", "--parser", "all", "--jobs", "2")
    assert [finding["subject"]["parser"] for finding in report["findings"]] == ["qwen3"]
    assert report["facts"]["upgrades"]["0.33.0"]["deepseek_r1"] == {"same": 0, "differs": 1}


def test_two_of_one_version_are_told_apart_by_their_names(call: Call, tmp_path: Path) -> None:
    first, second = (fake_vllm(tmp_path / name) for name in ("a", "b"))
    _, report = as_json(call, "replay", traces(tmp_path, "a</think>b"), "--vllm", first, "--vllm", second)
    assert list(report["facts"]["upgrades"]) == [f"0.33.0 ({second})"]


def test_audit_puts_its_probes_to_the_running_parsers(call: Call, fake: str) -> None:
    code, report = as_json(
        call, "audit", "--model", "fixture:qwen3-thinking", "--parser", "deepseek_r1", "--vllm", fake
    )
    candidates = {candidate["name"]: candidate for candidate in report["facts"]["parser"]["candidates"]}
    assert sorted(candidates) == ["deepseek_r1", "qwen3"]
    assert candidates["deepseek_r1"]["probes"]["passed"] > 0
    assert (code, report["engine"]["kind"]) == (1, "vllm")
    # This fake takes any end marker in the prompt for the end of this turn's thinking.
    assert "FIT121" in [finding["rule"] for finding in report["findings"]]


def test_audit_knows_the_names_of_a_plugin(call: Call, fake: str, tmp_path: Path) -> None:
    serve = serve_with_plugin(tmp_path)
    arguments = ("audit", "--model", "fixture:qwen3-thinking", "--serve", serve, "--target", "vllm==0.29.0")
    _, report = as_json(call, *arguments)  # the plugin registers the name: what it does is not known without a vLLM
    assert not {"FIT102", "SRV202"} & {finding["rule"] for finding in report["findings"]}
    assert ("parser", "skipped") in [(row["surface"], row["status"]) for row in report["coverage"]]
    _, report = as_json(call, *arguments, "--vllm", fake)
    assert not {"FIT102", "SRV202"} & {finding["rule"] for finding in report["findings"]}
    assert "unruly" in [candidate["name"] for candidate in report["facts"]["parser"]["candidates"]]


def test_audit_reports_what_a_parser_lost(
    call: Call, fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REASONCTL_VLLM_SECONDS", "0.3")
    serve = serve_with_plugin(tmp_path, UNRULY.replace('word == "hang"', "True"))
    arguments = ("audit", "--model", "fixture:qwen3-thinking", "--serve", serve, "--vllm", fake, "--select", "INT904")
    code, report = as_json(call, *arguments)
    (finding,) = report["findings"]
    assert code == 1
    assert finding["message"].startswith("no answer within 0.3 s: unruly on ")
    fits = {candidate["name"]: candidate["fit"] for candidate in report["facts"]["parser"]["candidates"]}
    assert fits["unruly"] in ("fail", "unsupported")
    assert fits["deepseek_r1"] in ("pass", "fail")


def test_validate_config_is_judged_as_the_running_version(call: Call, tmp_path: Path) -> None:
    budget = tmp_path / "budget.json"
    budget.write_text('{"thinking_token_budget": 64}', encoding="utf-8")
    value = fake_vllm(tmp_path / "fake", version="0.17.1")
    _, report = as_json(call, "validate-config", str(budget), "--dialect", "vllm", "--vllm", value)
    assert (report["target"], report["engine"]["vllm_version"]) == ("vllm==0.17.1", "0.17.1")
