"""Starting and ending a server: whatever happens, the reason is told and no process is left."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from reasonctl.engine import server as server_module
from reasonctl.engine.server import Launch, ServerError, VllmServer, engine_named
from reasonctl.errors import InputError

from .fake_vllm import fake_vllm


@pytest.fixture
def launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A launch of the fake server; keyword arguments replace parts of it."""
    monkeypatch.setattr(server_module, "END_SECONDS", 2.0)
    spec = engine_named(fake_vllm(tmp_path / "lib"))

    def make(**more: Any) -> Launch:
        return Launch(spec, tmp_path / "model", "lab", "qwen3", tmp_path / "server.log", **more)

    return make


def living(pattern: str) -> dict[int, str]:
    """Command lines of living processes that a pattern finds, in their names or arguments, by process id."""
    found: dict[int, str] = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            name = (place / "comm").read_text()
        except OSError:
            continue
        process = int(place.name)
        if re.search(pattern, words + name) and is_alive(process) and process != os.getpid():
            found[process] = words
    return found


def log_of(launch: Launch) -> str:
    return launch.log.read_text()


def environment_of(launch: Launch) -> dict[str, str]:
    found: dict[str, str] = json.loads(re.findall(r"^environment (.*)$", log_of(launch), re.MULTILINE)[0])
    return found


def cores(launch: Launch) -> list[int]:
    return [int(number) for number in re.findall(r"^core (\d+)$", log_of(launch), re.MULTILINE)]


def gone(launch: Launch) -> bool:
    """Nothing the server was or made is alive: neither it, nor its core, nor the warden."""
    return not living(re.escape(str(launch.model))) and not [p for p in cores(launch) if is_alive(p)]


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_it_is_up_inside_and_gone_outside(launch: Any) -> None:
    plan = launch()
    seen: list[float] = []
    with VllmServer(plan, watch=lambda seconds, line: seen.append(seconds)) as server:
        assert server.alive
        assert (server.device, server.runner) == ("cpu", "v1")
        assert server.url.startswith("http://127.0.0.1:")
        assert [Path(f"/proc/{core}/comm").read_text() for core in cores(plan)] == ["VLLM::FakeCore\n"]
        folder = environment_of(plan)["TMPDIR"]
        assert Path(folder).is_dir()
    assert gone(plan)
    assert not Path(folder).exists()
    assert seen == sorted(seen)


def test_what_it_is_started_with(launch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "secret")
    plan = launch(runner="v2", arguments=("--extra",), environment={"VLLM_MINE": "1"}, positions=99)
    with VllmServer(plan):
        words = log_of(plan).splitlines()[0].split()
    assert {"--enforce-eager", "--extra", "99", "--reasoning-parser", "qwen3"} <= set(words)
    environment = environment_of(plan)
    assert environment["HF_HUB_OFFLINE"] == environment["VLLM_NO_USAGE_STATS"] == environment["VLLM_MINE"] == "1"
    assert (environment["VLLM_USE_V2_MODEL_RUNNER"], environment["VLLM_LOGGING_LEVEL"]) == ("1", "INFO")
    assert "VLLM_API_KEY" not in environment


@pytest.mark.parametrize(
    ("fail", "said"),
    [
        ("refuse", r"it ended with status 1; .*server\.log\):\n(.*\n)*  ValueError: this model is no model$"),
        ("killed", r"it was ended by SIGKILL; "),
    ],
)
def test_a_server_that_ends_is_told_with_its_last_lines(launch: Any, fail: str, said: str) -> None:
    plan = launch(arguments=("--fail", fail))
    with pytest.raises(ServerError) as stop, VllmServer(plan):
        pass
    assert re.search(said, str(stop.value))
    assert stop.value.exit_code == 3
    assert gone(plan)


def test_a_server_that_never_gets_healthy(launch: Any) -> None:
    plan = launch(arguments=("--fail", "unhealthy"), seconds=2.0)
    with pytest.raises(ServerError, match=r"it was not healthy within 2 s; the end of its log \(.*\):\n(.*\n)*  llm"):
        VllmServer(plan).__enter__()
    assert gone(plan)


def test_a_port_that_is_taken(launch: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        plan = launch(port=taken.getsockname()[1], seconds=20.0)
        with pytest.raises(ServerError, match=r"Address already in use"):
            VllmServer(plan).__enter__()
    assert gone(plan)


def test_somebody_elses_server_on_the_port_is_not_taken_for_ours(launch: Any, tmp_path: Path) -> None:
    first = launch()
    with VllmServer(first) as other:
        port = int(other.url.rpartition(":")[2])
        second = Launch(first.spec, tmp_path / "second", "lab", None, tmp_path / "second.log", port=port, seconds=20.0)
        with pytest.raises(ServerError, match="Address already in use"):
            VllmServer(second).__enter__()
        assert other.alive
        assert gone(second)
    assert gone(first)


@pytest.mark.parametrize("fail", ["own-session", "stubborn"])
def test_what_does_not_want_to_end_is_ended(launch: Any, fail: str) -> None:
    plan = launch(arguments=("--fail", fail))
    with VllmServer(plan):
        assert [is_alive(core) for core in cores(plan)] == [True]
    assert gone(plan)


def test_a_server_killed_meanwhile_is_found_out(launch: Any) -> None:
    plan = launch()
    with VllmServer(plan) as server:
        with pytest.raises(OSError, match=r"."):
            urllib.request.urlopen(f"{server.url}/die", timeout=10)
        server._process.wait(10)  # type: ignore[union-attr]
        with pytest.raises(ServerError, match="it was ended by SIGKILL"):
            server.check()
        assert not [core for core in cores(plan) if is_alive(core)]
    assert gone(plan)


CALLER = """
import sys, time
from pathlib import Path
from reasonctl.engine.server import Launch, VllmServer, engine_named
spec = engine_named(sys.argv[1])
with VllmServer(Launch(spec, Path(sys.argv[2]), "lab", None, Path(sys.argv[3]))) as server:
    print("up", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_it_goes_with_whoever_started_it(launch: Any, tmp_path: Path, number: signal.Signals) -> None:
    plan = launch()
    command = [sys.executable, "-c", CALLER, plan.spec.text, str(plan.model), str(plan.log)]
    caller = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert caller.stdout is not None
    assert caller.stdout.readline() == "up\n"
    (core,) = cores(plan)
    (warden,) = [one for one, words in living(re.escape(str(plan.model))).items() if "warden.py" in words]
    watched = [os.pidfd_open(core), os.pidfd_open(warden)]
    caller.send_signal(number)
    caller.wait(30)
    caller.stdout.close()
    for one in watched:
        assert select.select([one], [], [], 60)[0]
        os.close(one)
    assert gone(plan)
    assert not Path(environment_of(plan)["TMPDIR"]).exists()


@pytest.mark.parametrize("form", ["image:vllm/vllm-openai:v0.33.0", "pod:a/b"])
def test_a_container_is_not_started_from_here(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for tool in ("docker", "kubectl"):
        (tmp_path / tool).write_text("#!/bin/sh\n")
        (tmp_path / tool).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(InputError, match="name it with --endpoint"):
        VllmServer(Launch(engine_named(form), tmp_path, "lab", None, tmp_path / "log"))


def test_without_a_vllm_it_says_how_to_name_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no vLLM in this environment; name one with --vllm"):
        VllmServer(Launch(None, tmp_path, "lab", None, tmp_path / "log"))


def test_no_gpu_is_said_before_anything_starts(launch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "_has_gpu", lambda: False)
    with pytest.raises(InputError, match="no NVIDIA GPU here; use --device cpu"):
        VllmServer(launch(device="cuda"))


def test_a_vllm_for_another_device_is_refused(launch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "_has_gpu", lambda: True)
    plan = launch(device="cuda")
    with pytest.raises(InputError, match="this vLLM runs on cpu"):
        VllmServer(plan).__enter__()
    assert gone(plan)


def test_a_log_that_cannot_be_written(launch: Any, tmp_path: Path) -> None:
    plan = launch()
    with pytest.raises(InputError, match="name another log"):
        VllmServer(Launch(plan.spec, plan.model, "lab", None, tmp_path)).__enter__()
