"""`reasonctl doctor`: what it shows, and when its exit code is 1."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from reasonctl.cli import doctor
from reasonctl.doctor import machine, packages, trial

COMMAND = "doctor"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(machine, "vllms", lambda start: (machine.FoundVllm("0.33.0", "x:y", "cache", False),))
    monkeypatch.setattr(machine, "gpu", lambda: machine.Gpu(False, problem="nvidia-smi shows none"))


def test_json_says_everything(run: Run) -> None:
    code, out, err = run("--format", "json")
    facts = json.loads(out)
    assert (code, err, facts["schema"], facts["broken"]) == (0, "", "reasonctl.doctor/1", [])
    assert list(facts) == [
        "schema", "reasonctl", "python", "libraries", "extras", "vllms", "gpu", "tools", "settings", "broken",
    ]  # fmt: skip
    assert facts["reasonctl"]["models"] == "vllm==0.33.0"
    assert facts["vllms"] == [{"version": "0.33.0", "engine": "x:y", "where": "cache", "complete": False}]
    assert facts["settings"] == {"path": None, "tables": None, "problem": None}
    assert {"transformers", "tokenizers", "typer"} <= {one["name"] for one in facts["libraries"]}


def test_text_says_it_in_lines(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = packages.Library("gguf", ">=0.17", None, "not installed")
    monkeypatch.setattr(packages, "extras", lambda _: [packages.Extra("gguf", (missing,), "models in .gguf files")])
    code, out, _ = run()
    assert code == 0
    lines = [" ".join(line.split()) for line in out.splitlines()]
    at = lines.index("extras none")
    assert lines[at + 1 : at + 3] == [
        "gguf is missing; not evaluated without it: models in .gguf files",
        "pip install 'reasonctl[gguf]'",
    ]
    assert "vLLM 0.33.0 (cache, its Python files): --vllm x:y" in lines
    assert "GPU none: verify serves on the CPU; nvidia-smi shows none" in lines
    assert "settings no reasonctl.toml here or above; reasonctl init writes one" in lines
    assert lines[-1] == "OK a shipped fixture was rendered, tokenized and split as it should be"


def test_the_settings_that_commands_go_by_here(run: Run, tmp_path: Path) -> None:
    (tmp_path / "reasonctl.toml").write_text('[[audit]]\nmodel = "fixture:qwen3"\n')
    facts = json.loads(run("--format", "json")[1])
    assert facts["settings"] == {"path": str(tmp_path / "reasonctl.toml"), "tables": 1, "problem": None}
    (tmp_path / "reasonctl.toml").write_text("targets = 3\n")
    code, out, _ = run("--format", "json")
    settings = json.loads(out)["settings"]
    assert code == 0
    assert settings["path"] == "reasonctl.toml"
    assert "did you mean target?" in settings["problem"]


def test_a_broken_tool_is_exit_code_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    jq = packages.Library("jq", ">=1.8", "1.0", "1.0 is installed, >=1.8 is needed")
    monkeypatch.setattr(packages, "libraries", lambda _: (jq,))
    code, out, _ = run()
    assert code == 1
    assert out.splitlines()[-2:] == [
        "broken  jq: 1.0 is installed, >=1.8 is needed",
        "BROKEN  mend it with: pip install --force-reinstall reasonctl",
    ]
    monkeypatch.setattr(packages, "libraries", lambda _: ())
    monkeypatch.setattr(trial, "trial", lambda: "no fixture")
    code, out, _ = run("--format", "json")
    assert (code, json.loads(out)["broken"]) == (1, ["trial run: no fixture"])
    monkeypatch.setattr(packages, "requirements", lambda: None)
    assert doctor.look(Path.cwd())["broken"] == ["reasonctl is not installed as a package: pip install reasonctl"]


def test_another_format_is_a_wrong_call(run: Run) -> None:
    assert run("--format", "sarif")[0] == 2
