"""Every result of a real run names a line that is there, in each format that shows findings at their lines."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

from reasonctl import fixtures
from reasonctl.cli import main

TOP = Path(__file__).resolve().parents[2]
HERE = "fixtures"
RUNS = [
    ("audit", f"{HERE}/serve", "--model", f"{HERE}/models/qwen3-thinking"),
    ("audit", "--model", f"{HERE}/models/qwen3", "--parser", "deepseek_r1"),
    ("audit", "--model", f"{HERE}/models/gpt-oss", "--parser", "qwen3"),
    ("audit", "--model", f"{HERE}/models/split-markers", "--parser", "deepseek_r1"),
    ("audit", "--model", f"{HERE}/models/qwen3", "--parser", "qwen3", "--client", f"{HERE}/clients/old-field.ts"),
    ("audit", "--model", "fixture:qwen3", "--parser", "qwen4"),
    ("replay", f"{HERE}/traces/qwen3-open.jsonl", f"{HERE}/traces/trips-clients.jsonl", "--model", "fixture:qwen3"),
    ("replay", f"{HERE}/traces/call-in-thought.jsonl", f"{HERE}/traces/mentions-marker.jsonl"),
    ("validate-config", f"{HERE}/budgets/slimserve-faulty.yaml"),
    ("validate-config", f"{HERE}/budgets/slimserve-map.json", "--model", "fixture:qwen3"),
]


@pytest.mark.parametrize("arguments", RUNS, ids=" ".join)
def test_every_place_is_a_line_that_is_there(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(TOP)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    out = {name: tmp_path / name for name in ("sarif", "gitlab", "concise")}
    formats = [word for name, path in out.items() for word in ("--format", f"{name}={path}")]
    monkeypatch.setattr(sys, "argv", ["reasonctl", *arguments, "--exit-zero", "--no-config", *formats])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 0, capsys.readouterr().err
    (run,) = json.loads(out["sarif"].read_text("utf-8"))["runs"]
    places = [one["locations"][0]["physicalLocation"] for one in run["results"]]
    sarif = [(unquote(one["artifactLocation"]["uri"]), one["region"]["startLine"]) for one in places]
    entries = [one["location"] for one in json.loads(out["gitlab"].read_text("utf-8"))]
    lines = [line.split(": ")[0].rsplit(":", 2) for line in out["concise"].read_text("utf-8").splitlines()]
    assert sarif == [(one["path"], one["lines"]["begin"]) for one in entries]
    assert sarif == [(path, int(number)) for path, number, _ in lines]
    assert sarif
    for (path, line), one in zip(sarif, places, strict=True):
        file = fixtures.ROOT / "models" / path.removeprefix("fixture:") if path.startswith("fixture:") else TOP / path
        text = file.read_text("utf-8").splitlines()
        assert line <= len(text), f"{path}:{line}"
        assert one["region"]["startColumn"] <= len(text[line - 1]) + 1, f"{path}:{line}"
        assert path.startswith("fixture:") or one["artifactLocation"]["uriBaseId"] == "%SRCROOT%"
