"""Deployments that are right, with a budget that is right: the audit has nothing to say against them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from reasonctl.cli import app

from . import artefacts

BOTH = '--reasoning-config \'{"reasoning_start_str": "<think>", "reasoning_end_str": "</think>"}\''
RIGHT: dict[str, tuple[Callable[[Path], Path], str]] = {
    "qwen3": (artefacts.qwen3_folder, "--reasoning-parser qwen3"),
    "qwen3.5": (lambda shelf: artefacts.otc_folder("qwen-3.5", shelf), "--reasoning-parser qwen3"),
    "r1-distill": (
        lambda shelf: artefacts.otc_folder("deepseek-r1-distill-qwen-7b", shelf),
        "--reasoning-parser deepseek_r1",
    ),
    "glm-4.7": (
        lambda shelf: artefacts.otc_folder("glm-4.7-flash", shelf),
        "--reasoning-parser glm47 --tool-call-parser glm47 --enable-auto-tool-choice",
    ),
    "deepseek-v3.1": (
        lambda shelf: artefacts.otc_folder("deepseek-v3.1", shelf),
        f"--reasoning-parser deepseek_v3 {BOTH}",
    ),
}
BUDGET = {
    "messages": [{"role": "user", "content": "hi"}],
    "thinking_token_budget": 4096,
    "max_tokens": 16384,
}


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("models")
    yield path
    shutil.rmtree(path)


def audited(*arguments: str) -> tuple[int, dict[str, Any]]:
    done = CliRunner().invoke(app, ["audit", *arguments, "--format", "json"])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, json.loads(done.stdout)


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_deployment_with_a_right_budget_passes(name: str, shelf: Path) -> None:
    make, flags = RIGHT[name]
    path = make(shelf)
    body = shelf / f"{name}.json"
    body.write_text(json.dumps(BUDGET))
    code, report = audited("--serve", f"vllm serve {path} {flags}", "--budget", str(body))
    assert [f["rule"] for f in report["findings"] if f["severity"] == "error"] == []
    assert (code, report["verdict"]) == (0, "pass")
    (asked,) = report["facts"]["budget"]["requests"]
    assert (asked["standing"], asked["resolutions"][0]["cutoff"]) == ("granted", 4096)
    fine = {"BUD314", "BUD321", "BUD325", "BUD326"}
    assert {f["rule"] for f in report["findings"] if f["rule"].startswith("BUD")} <= fine
    if name == "deepseek-v3.1":
        bare = flags.partition(" --reasoning-config")[0]
        code, report = audited("--serve", f"vllm serve {path} {bare}", "--budget", str(body))
        assert (code, [f["rule"] for f in report["findings"] if f["severity"] == "error"]) == (1, ["BUD312"])
