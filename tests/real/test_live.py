"""`verify` and `record` on a real vLLM: one server a family, started once and used by everything that needs it."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from reasonctl.cli import main
from reasonctl.engine.lab import build_lab
from reasonctl.engine.lab_families import family
from reasonctl.engine.server import Launch, ServerError, VllmServer, engine_named
from reasonctl.engine.speech import Speaker

from ..engine.lab_server import editing, proxy, renaming, swallowing, without_budget
from .driver import ENVIRONMENT

pytestmark = pytest.mark.vllm
Run = Callable[..., tuple[int, str, str]]
ENGINE = str(ENVIRONMENT / "bin" / "python")
FAMILIES = ("gemma4", "plamo3", "mistral", "minimax_m2", "seed_oss")
"""Besides qwen3, whose server is used for more. The others differ from these in their scripts alone, and vLLM counts by
tokens: they run against the counting that is held against vLLM's own code."""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["reasonctl", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        return int(stop.value.code or 0), captured.out, captured.err

    return call


def engine_processes(mark: str) -> list[int]:
    """Processes of an engine (their names start with VLLM::) or of its server that carry this mark around."""
    found: list[int] = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes() + (place / "environ").read_bytes()
            state = (place / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if mark.encode() in words and state not in "ZX" and int(place.name) != os.getpid():
            found.append(int(place.name))
    return found


@contextmanager
def served(folder: Path, name: str) -> Iterator[VllmServer]:
    lab = build_lab(folder / name, name)
    mark = f"reasonctl-test-{os.getpid()}-{name}"
    launch = Launch(
        engine_named(ENGINE),
        folder / name,
        "lab",
        lab.parser,
        folder / "server.log",
        arguments=lab.arguments,
        environment={"REASONCTL_TEST_MARK": mark},
    )
    with VllmServer(launch) as server:
        assert len(engine_processes(mark)) >= 3  # the server, VLLM::EngineCore, VLLM::Worker
        yield server
    assert engine_processes(mark) == []


def report_of(run: Run, *arguments: str) -> tuple[int, dict[str, Any]]:
    code, out, err = run("verify", *arguments, "--quiet", "--format", "json")
    assert out, err
    return code, json.loads(out)


def failures(report: dict[str, Any]) -> list[Any]:
    return [one for one in report["facts"]["cases"] if one["ok"] is not True or one["differs"]]


def found(report: dict[str, Any]) -> set[str]:
    return {finding["rule"] for finding in report["findings"]}


@pytest.mark.parametrize("name", FAMILIES)
def test_every_prediction_is_met(run: Run, tmp_path: Path, name: str) -> None:
    with served(tmp_path, name) as server:
        code, report = report_of(run, "--lab", name, "--endpoint", server.url, "--runner", "v1")
        _is_audited(run, server.url, tmp_path / name, name)
    assert (failures(report), report["findings"]) == ([], [])
    assert (code, report["verdict"]) == (0, "pass")
    assert report["facts"]["server"]["version"] == "0.32.0"
    assert len(report["facts"]["cases"]) >= 30


def test_one_server_for_all_that_is_asked_of_it(run: Run, tmp_path: Path) -> None:
    with served(tmp_path, "qwen3") as server:
        code, report = report_of(run, "--lab", "qwen3", "--endpoint", server.url, "--runner", "v1")
        assert (code, failures(report), report["findings"]) == (0, [], [])
        _records(run, server.url, tmp_path)
        _is_audited(run, server.url, tmp_path / "qwen3", "qwen3")
        _is_spoilt_by_proxies(run, server.url)
        os.kill(_core(tmp_path), signal.SIGKILL)
        with pytest.raises(ServerError, match=r"the vLLM server did not hold up: .*; the end of its log"):
            server.check(seconds=60)


def _records(run: Run, url: str, folder: Path) -> None:
    """Streamed or not, cut or not, thinking or not: nothing is lost, and the replay gives what the server gave."""
    file = folder / "traces.jsonl"
    for more in (
        ("--thinking-token-budget", "9"),
        ("--chat-template-kwargs", '{"enable_thinking": false}'),
        ("--reasoning-effort", "none"),
        ("--extra-body", '{"stop": [" simply"], "n": 2}'),
        ("--max-tokens", "7"),
        (),
    ):
        words = (
            "record",
            "--endpoint",
            url,
            "--served-model-name",
            "lab",
            "--parser",
            "qwen3",
            "-o",
            str(file),
            "--append",
            *more,
        )
        code, _, err = run(*words)
        assert code == 0, err
        assert "token ids in all, prompt ids in all" in err
    traces = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(traces) == 14
    assert traces[0]["recorded"]["server"] == "vllm 0.32.0"
    assert (
        traces[0]["output"]["text"]
        == " 1 2 3 4 5 6 7 8</think>\n\n So the answer to your question is simply four my friend."
    )
    assert traces[0]["prompt"]["text"].endswith("<|im_start|>assistant\n<think>\n")
    code, out, _ = run(
        "replay", str(file), "--model", str(folder / "qwen3"), "--target", "vllm==0.32.0", "--format", "json"
    )
    report = json.loads(out)
    results = report["facts"]["results"]
    assert [row["matches_recorded"] for row in results] == [True] * 14, report["findings"]
    assert {row["tokenizer"] for row in results} == {"model"}
    # Without the model the texts speak for themselves.
    code, out, _ = run("replay", str(file), "--target", "vllm==0.32.0", "--format", "json")
    assert [row["matches_recorded"] for row in json.loads(out)["facts"]["results"]] == [True] * 14


def _is_audited(run: Run, url: str, folder: Path, name: str) -> None:
    """Without the model's files, the audit sees the prompts that it renders from them; every answer is explained."""
    parser = family(name).parser
    assert parser is not None
    words = ("--parser", parser, "--no-config", "--format", "json")
    _, out, err = run("audit", "--endpoint", url, *words, "--quiet")
    assert out, err
    live = json.loads(out)
    _, out, _ = run("audit", str(folder), *words, "--target", "vllm==0.32.0")
    states, wanted = (
        {
            (row["conversation"], json.dumps(row["variant"])): (row["state"], row["marker"], row["tokens_after_open"])
            for row in report["facts"]["prompt_states"]
        }
        for report in (live, json.loads(out))
    )
    shared = states.keys() & wanted.keys()
    assert len(shared) >= 24
    assert {key: states[key] for key in shared} == {key: wanted[key] for key in shared}
    assert parser in live["facts"]["live"]["explained_by"]
    assert "ENG508" not in found(live)
    (row,) = [row for row in live["coverage"] if row["surface"] == "live server"]
    assert (row["status"], row["reason"]) == ("examined", None)
    # With the files, ours are held against the server's own.
    _, out, _ = run("audit", "--endpoint", url, "--model", str(folder), *words, "--quiet")
    assert json.loads(out)["facts"]["model"]["prompts"]["differing"] == 0
    with proxy(url) as between:
        _, out, _ = run("audit", "--endpoint", between.url, *words, "--quiet")
    assert "ENG508" not in found(json.loads(out))
    with proxy(url, answer=editing) as between:
        code, out, _ = run("audit", "--endpoint", between.url, *words, "--quiet")
    assert (code, "ENG508" in found(json.loads(out))) == (1, True)


def _is_spoilt_by_proxies(run: Run, url: str) -> None:
    end = Speaker(family("qwen3"), 40).markers.natural_end[0]
    words = ("--lab", "qwen3", "--runner", "v1", "--budget", "9")
    for between, rule in (
        (proxy(url, request=without_budget), "ENG501"),
        (proxy(url, answer=swallowing(end)), "ENG503"),
        (proxy(url, answer=renaming), "ENG507"),
    ):
        with between:
            code, report = report_of(run, *words, "--endpoint", between.url)
        assert (code, rule in found(report)) == (1, True), report["findings"]


def _core(folder: Path) -> int:
    """The process of the engine's core, as the log of the server in this folder tells it."""
    numbers = re.findall(r"\(EngineCore pid=(\d+)\)", (folder / "server.log").read_text())
    return int(numbers[-1])


def test_a_folder_that_vllm_refuses_is_exit_3_with_the_reason(run: Run, tmp_path: Path) -> None:
    build_lab(tmp_path / "m", "qwen3")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    (tmp_path / "m" / "config.json").write_text(json.dumps(config | {"architectures": ["NoSuchForCausalLM"]}))
    log = tmp_path / "server.log"
    words = ("--model", str(tmp_path / "m"), "--parser", "qwen3", "--vllm", ENGINE, "--log", str(log))
    code, out, err = run("verify", *words, "--quiet")
    assert (code, out) == (3, "")
    assert "it ended with status 1; the end of its log" in err
    assert "NoSuchForCausalLM" in err
    assert engine_processes(str(tmp_path / "m")) == []
