"""Every way a call can go wrong: one line, the right exit code, no traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reasonctl.fixtures import ROOT


def run(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "reasonctl", *args],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["nope"], "No such command 'nope'"),
        (["validate-config"], "Missing argument 'CONFIG...'"),
        (["rules", "--nope"], "No such option: --nope"),
        (["explain", "FIT999"], "no rule is called 'FIT999'; did you mean"),
        (["validate-config", "no-such-file.json"], "no-such-file.json"),
        (["validate-config", "x.json", "--fail-on", "sometimes"], "--fail-on: 'sometimes' is none of"),
        (["validate-config", "x.json", "--format", "yaml"], "--format: 'yaml' is none of"),
        (["validate-config", "x.json", "--format", "json", "--format", "sarif"], "two formats would share stdout"),
        (["validate-config", "x.json", "--select", "BUD999"], "--select: no rule is called 'BUD999'"),
        (["validate-config", "x.json", "--target", "sglang"], "--target: 'sglang' names no server"),
        (["parsers", "qwen33"], "qwen3"),
        (["parsers", ""], "registers no reasoning parser ''"),
        (["audit", "--model"], "Option '--model' requires an argument; see reasonctl audit --help"),
        (["validate-config", "x.json", "--target", ""], "--target: '' names no server"),
        (["validate-config", "x.json", "--select", ""], "--select: it is empty"),
        (["validate-config", "x.json", "--format", "json="], "--format: 'json=' names no file"),
        (["validate-config", "x.json", "--format", "json=a", "--format", "sarif=./a"], "would be written to a"),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_code_2(args: list[str], said: str) -> None:
    done = run(*args)
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_bare_call_prints_the_help() -> None:
    done = run()
    assert done.returncode == 2
    assert "validate-config" in done.stdout + done.stderr


def test_the_version() -> None:
    from reasonctl import __version__

    assert run("--version").stdout == f"reasonctl {__version__}\n"


def test_a_reader_that_leaves_early_is_no_finding_and_no_traceback() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "reasonctl", "rules"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout and process.stderr
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait() == 141


def test_debug_shows_the_traceback() -> None:
    done = run("validate-config", "no-such-file.json", "--debug")
    assert done.returncode == 2
    assert "Traceback" in done.stderr


@pytest.mark.parametrize("stream", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("command", ["rules", "validate-config {budget}", "audit --model fixture:qwen3 --parser qwen3"])
def test_a_closed_stream_changes_no_exit_code(command: str, stream: str) -> None:
    budget = ROOT / "budgets" / "slimserve-map.json"
    line = f"{sys.executable} -m reasonctl {command.format(budget=budget)} {stream}"
    assert subprocess.run(["/bin/sh", "-c", line], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("command", ["rules", "--help", "parsers", "render --model fixture:qwen3"])
def test_no_room_for_the_output_is_one_line_and_exit_code_2(command: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "reasonctl", *command.split()],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.startswith("reasonctl: standard output: cannot ")
    assert "No space left on device; make room" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_report_is_never_written_over_an_input(tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    trace.write_text('{"output": {"text": "hi"}}\n')
    for extra in (["--format", "json", "--output", str(trace)], ["--format", f"json={trace}"]):
        done = run("replay", str(trace), "--parser", "qwen3", *extra)
        assert done.returncode == 2
        assert "written over this input" in done.stderr
    assert trace.read_text() == '{"output": {"text": "hi"}}\n'
