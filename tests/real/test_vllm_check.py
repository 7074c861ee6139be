"""`reasonctl vllm check`: every built-in parser is the real vLLM's, and a broken one is found with a small input.

More cases than by default: `--parser-cases N` (see conftest.py).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import pytest

from reasonctl.cli import main
from reasonctl.parsers.base import Split
from reasonctl.parsers.models.delimited import DelimitedModel
from reasonctl.parsers.table import ROWS, names
from reasonctl.parsers.target import Target

from .driver import ENVIRONMENT

pytestmark = pytest.mark.vllm
PYTHON = ENVIRONMENT / "bin" / "python"
ENGINES = {"0.33.0": f"{ENVIRONMENT / 'vllm-0.33.0'}:{PYTHON}", "0.32.0": str(PYTHON)}
VERSIONS = {"0.33.0": (0, 33, 0), "0.32.0": (0, 32, 0)}


def check(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["reasonctl", "vllm", "check", "-q", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    return int(stop.value.code or 0), capfd.readouterr().out


@pytest.mark.parametrize("version", ENGINES)
def test_every_parser_is_the_real_one(
    version: str, parser_cases: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--vllm", ENGINES[version], "--cases", str(parser_cases), "--seed", version[2:4], "--format", "json")
    code, out = check(monkeypatch, capfd, *arguments)
    (report,) = json.loads(out)["checks"]
    differing = {each["name"]: each["smallest"] or each["lost_over"] for each in report["parsers"] if each["different"]}
    assert differing == {}
    assert code == 0
    assert report["engine"]["vllm_version"] == version
    compared = {each["name"]: (each["cases"], each["skipped"]) for each in report["parsers"]}
    modelled = [name for name in names(Target("vllm", VERSIONS[version])) if ROWS[name].modelled]
    assert {name: compared[name] for name in modelled} == dict.fromkeys(modelled, (parser_cases, None))
    assert set(compared) == set(names(Target("vllm", VERSIONS[version])))


def test_a_broken_model_is_reported_with_a_small_input(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """One that leaves an answer's first line end away, where there is any thought."""
    split = DelimitedModel.split

    def broken(self: DelimitedModel, text: str, ids: Sequence[int]) -> Split:
        found = split(self, text, ids)
        return Split(found.reasoning, found.content and found.content.removeprefix("\n"))

    monkeypatch.setattr(DelimitedModel, "split", broken)
    arguments = ("--vllm", ENGINES["0.33.0"], "--cases", "60", "--parser", "deepseek_r1")
    code, out = check(monkeypatch, capfd, *arguments)
    assert code == 1
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[-1] == "FAIL 1 of 1 parsers differ"
    assert "prompt unknown" in lines
    assert "kwargs {}" in lines
    (output,) = (line for line in lines if line.startswith("output "))
    # The end marker and a line end: nothing of it could be left out.
    assert output.startswith('output "</think>\\n" [')
    assert 'in full: content "\\n" ""' in lines
