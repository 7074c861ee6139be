"""Every exit code of every command: what it means never depends on the command, nor on the format of a report."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reasonctl.cli import app, main
from reasonctl.reports.formats import NAMES

from ..engine.lab_server import LabServer

FIXTURES = Path(__file__).parents[2] / "fixtures"
CHECKING = ("audit", "replay", "validate-config", "verify", "check-parser", "gate")
TRACE = str(FIXTURES / "traces" / "qwen3-open.jsonl")
CALL = str(FIXTURES / "traces" / "call-in-thought.jsonl")
BUDGET = str(FIXTURES / "budgets" / "slimserve-map.json")
PLUGIN = str(Path(__file__).parents[1] / "kit" / "plugins")
GATE = '[[validate-config]]\nbudget = "{budget}"\nmax-tokens = 12000\n'

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run reasonctl with these words in an empty folder: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["reasonctl", *words])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        return int(stop.value.code or 0), captured.out, captured.err

    return call


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The addresses of a server that counts rightly and of one that is off by one."""
    right = LabServer(tmp_path_factory.mktemp("right") / "qwen3", "qwen3")
    wrong = LabServer(tmp_path_factory.mktemp("wrong") / "qwen3", "qwen3", change=_unlimited)
    try:
        with right.serve() as one, wrong.serve() as other:
            yield one.url, other.url
    finally:
        right.close()
        wrong.close()


def _unlimited(body: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key != "thinking_token_budget"}


def words(command: str, code: int, folder: Path, servers: tuple[str, str]) -> list[str]:
    """A call of a checking command that must end with this code."""
    settings = folder / "reasonctl.toml"
    budget = BUDGET if code == 0 else str(FIXTURES / "budgets" / "slimserve-faulty.yaml")
    verify = ["--lab", "qwen3", "--runner", "v1", "--endpoint"]
    if command == "gate":
        settings.write_text(GATE.format(budget=budget if code < 2 else "none.json"))
        if code == 3:
            settings.write_text('[[verify]]\nlab = "qwen3"\nendpoint = "http://127.0.0.1:9"\n')
        return [command, "--config", str(settings)]
    calls = {
        "audit": (
            ["--model", "fixture:qwen3", "--parser", "qwen3"],
            ["--model", "fixture:qwen3", "--parser", "ernie45"],
        ),
        "replay": ([TRACE, "--parser", "qwen3"], [CALL]),
        "validate-config": ([BUDGET, "--max-tokens", "12000"], [budget]),
        "verify": ([*verify, servers[0]], [*verify, servers[1]]),
        "check-parser": (["--name", "qwen3", "--examples", "20"], [f"{PLUGIN}/plg602_fault.py", "--name", "my-glim"]),
    }
    missing = {"verify": ["--lab", "none"]}
    if code == 2:
        return [command, *missing.get(command, ["none-here.json"])]
    if code == 3:
        if command == "verify":
            return [command, "--lab", "qwen3", "--endpoint", "http://127.0.0.1:9"]
        return [command, *calls[command][0], "--vllm", sys.executable]  # a Python without vLLM
    return [command, *calls[command][code]]


@pytest.mark.parametrize("code", [0, 1, 2, 3])
@pytest.mark.parametrize("command", CHECKING)
def test_every_code_of_every_checking_command(
    command: str, code: int, run: Run, tmp_path: Path, servers: tuple[str, str]
) -> None:
    call = words(command, code, tmp_path, servers)
    got, out, err = run(*call, "--quiet")
    assert got == code, err or out
    assert "Traceback" not in out + err
    if code >= 2:
        last = err.splitlines()
        assert last
        assert any(line.startswith(("reasonctl: ", f"reasonctl {command}: ")) for line in last)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("command", [one for one in CHECKING if one != "audit"])
def test_no_format_changes_a_code(command: str, name: str, run: Run, tmp_path: Path, servers: tuple[str, str]) -> None:
    call = words(command, 1, tmp_path, servers)
    assert run(*call, "--format", name)[0] == 1


@pytest.mark.parametrize("command", CHECKING)
def test_exit_zero_turns_1_into_0_and_nothing_else(
    command: str, run: Run, tmp_path: Path, servers: tuple[str, str]
) -> None:
    codes = [run(*words(command, code, tmp_path, servers), "--exit-zero", "--quiet")[0] for code in (1, 2, 3)]
    assert codes == [0, 2, 3]


OTHERS = {
    "render": (["--model", "fixture:qwen3"], ["--model", "none/here.jinja"]),
    "parsers": (["qwen3"], ["qwenn3"]),
    "rules": ([], ["--format", "yaml"]),
    "explain": (["FIT105"], ["FIT999"]),
    "record": (None, ["--endpoint", "nowhere", "--served-model-name", "m"]),
    "doctor": ([], ["--format", "yaml"]),
    "init": (None, ["none-here"]),
    "new-parser": (None, ["x", "--model", "none-here"]),
    "lab": (["list"], ["build", "x", "--family", "none"]),
    "vllm": (["list"], ["check", "--vllm", "none-here"]),
    "config": (["show"], ["show", "--config", "none.toml"]),
    "baseline": (None, ["write", "known.json"]),
}


@pytest.mark.parametrize("command", OTHERS)
def test_the_other_commands(command: str, run: Run) -> None:
    right, wrong = OTHERS[command]
    if right is not None:
        code, out, err = run(command, *right)
        assert code == 0, err
        assert out
    code, out, err = run(command, *wrong)
    assert code == 2, out + err
    assert "Traceback" not in err
    assert len(err.splitlines()) == 1


def test_every_command_is_here() -> None:
    known = {str(one.name) for one in app.registered_commands} | {str(one.name) for one in app.registered_groups}
    assert known == {*CHECKING, *OTHERS}
