"""The cases from the field, each put to the command a user would run. Needs ../shared beside the repository."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reasonctl import parsers

SHARED = Path(__file__).resolve().parents[3] / "shared"
CASES = SHARED / "cases" / "field-cases.jsonl"
if not CASES.exists():
    pytest.skip("../shared/cases is not beside this clone; tests/ restates what it teaches", allow_module_level=True)

ALL: list[dict[str, Any]] = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
REPLAYS = [case for case in ALL if case["id"].startswith("R") and parsers.row(case["input"]["parser"]).modelled]
COUNTS = [case for case in ALL if case["id"].startswith("L")]
CHUNKINGS = {
    "stream_given_deltas": "recorded",
    "stream_1_per_delta": "token",
    "stream_3_per_delta": "3",
    "stream_all_per_delta": "whole",
}


def replay(trace: dict[str, Any], folder: Path, *args: str) -> dict[str, Any]:
    path = folder / "case.jsonl"
    path.write_text(json.dumps(trace), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "reasonctl", "replay", str(path), "--format", "json", *args],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report["facts"]


def trace_of(given: dict[str, Any]) -> dict[str, Any]:
    output: dict[str, Any] = {"text": given["model_output"]}
    if given.get("deltas"):
        output["deltas"] = [{"text": delta["text"]} for delta in given["deltas"]]
    return {
        "id": "case",
        "request": {"chat_template_kwargs": given.get("chat_template_kwargs") or {}},
        "prompt": {"text": given["prompt_tail"]},
        "output": output,
        "recorded": {"finish_reason": given.get("finish_reason")},
    }


@pytest.mark.parametrize("case", REPLAYS, ids=[case["id"] for case in REPLAYS])
def test_replay_gives_what_vllm_gave(case: dict[str, Any], tmp_path: Path) -> None:
    given = case["input"]
    facts = replay(trace_of(given), tmp_path, "--parser", given["parser"])
    (result,) = facts["results"]
    got = {row["chunking"]: row for row in result["stream"]} | {None: result["full"]}
    for mode, seen in case["observed_vllm_0_33_0"].items():
        ours = got[CHUNKINGS.get(mode)]
        assert ours["reasoning"] == seen["reasoning"], mode
        if given.get("tool_parser") is None:
            assert ours["content"] == seen["content"], mode
        else:
            calls = given["model_output"][given["model_output"].index("<tool_call>") :]
            assert calls.split("</tool_call>")[0] in (ours["content"] or ""), mode


@pytest.mark.parametrize("case", COUNTS, ids=[case["id"] for case in COUNTS])
def test_token_counts(case: dict[str, Any], tmp_path: Path) -> None:
    given = case["input"]
    args = [part for name in given["parsers"] for part in ("--parser", name)]
    facts = replay(trace_of(given), tmp_path, *args)
    counts = {result["parser"]: result["reasoning_tokens"] for result in facts["results"]}
    assert counts == case["expected"]["observed_vllm_0_33_0"]
