"""Starts vLLM's OpenAI server and ends it: in a session of its own, on a loopback port, gone however we end."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal

from ..errors import InputError, ReasonctlError
from ..parsers.bridge.spec import EngineSpec, parse_engine
from .endpoint import Endpoint

Device = Literal["auto", "cpu", "cuda"]
Runner = Literal["v1", "v2"]

START_SECONDS = 900.0
"""How long a server may take until it is healthy: a CPU that imports vLLM from a cold disk takes minutes."""
END_SECONDS = 10.0
"""How long it may take to end when asked to."""
_LOOK = 0.2
_LAST_LINES = 12
_POSITIONS = 4096
_CACHE_BYTES = 256 << 20
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_PREFIX = re.compile(r"^\((?:APIServer|EngineCore|Worker|VllmWorker)[^)]*\)\s?")


class ServerError(ReasonctlError):
    """The server never came up, or went away (exit code 3). The message ends with the last lines of its log."""


@dataclass(frozen=True)
class Launch:
    """What is started.

    Args:
        spec: the interpreter with the vLLM; None takes this one.
        model: the model folder.
        name: what the model is served as.
        parser: `--reasoning-parser`; None gives none.
        log: the file that everything the server prints goes to; replaced.
        device: `cuda` and `cpu` are insisted on, `auto` takes what the vLLM is made for.
        runner: sets VLLM_USE_V2_MODEL_RUNNER; None leaves it to vLLM.
        positions: `--max-model-len`; None takes the model's own.
        arguments: further words of the command line.
        environment: further variables.
        port: a port to insist on; None takes a free one.
        seconds: how long it may take to be healthy.
    """

    spec: EngineSpec | None
    model: Path
    name: str
    parser: str | None
    log: Path
    device: Device = "auto"
    runner: Runner | None = None
    positions: int | None = _POSITIONS
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    port: int | None = None
    seconds: float = START_SECONDS


class VllmServer:
    """A running server. A context manager: it is up inside, and gone outside, with all of its processes.

    Args:
        launch: what to start.
        watch: called now and then while it starts, with the seconds gone and the last line it printed.

    Attributes:
        url: where it listens.
        device, runner: what it really runs on, as its log tells; known once it is up.
        started_in: seconds it took.

    Raises:
        InputError: there is no vLLM, or no such device, here.
        ServerError: it failed, or was not healthy in time.
    """

    def __init__(self, launch: Launch, *, watch: Callable[[float, str], None] | None = None) -> None:
        self._launch = launch
        self._watch = watch
        self._command = _interpreter(launch.spec)
        self._mark = f"reasonctl-{secrets.token_hex(8)}"
        self._process: subprocess.Popen[bytes] | None = None
        self._child: int | None = None
        self._folder: Path | None = None
        self.url = ""
        self.device = ""
        self.runner: Runner = "v1"
        self.started_in = 0.0
        if launch.device == "cuda" and not _has_gpu():
            raise InputError("there is no NVIDIA GPU here", source="--device cuda", mend="use --device cpu")

    def __enter__(self) -> VllmServer:
        begun = time.monotonic()
        try:
            self._start()
            self._wait(begun)
        except BaseException:
            self.close()
            raise
        self.started_in = time.monotonic() - begun
        log = self._log()
        self.runner = "v2" if "Using V2 Model Runner" in log else "v1"
        devices = re.findall(r"device_config=(\w+)", log)
        self.device = devices[-1] if devices else ("cuda" if _has_gpu() else "cpu")
        if self._launch.device not in ("auto", self.device):
            self.close()
            raise InputError(
                f"this vLLM runs on {self.device}",
                source=f"--device {self._launch.device}",
                mend=f"name one made for {self._launch.device} with --vllm",
            )
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        """It still runs."""
        return self._process is not None and self._process.poll() is None

    def check(self, *, seconds: float = 0.0) -> None:
        """Raise ServerError if it has ended.

        Args:
            seconds: how long its end is waited for, where there is a reason to expect it.
        """
        if seconds and self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
        if not self.alive:
            raise self._failed(self._ended())

    def close(self) -> None:
        """End it and all that came of it, and wait until they are gone."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(OSError):
                if process.stdin is not None:
                    process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(2 * END_SECONDS)
            for group in (self._child, process.pid):  # what a warden that was itself killed has left
                if group is not None:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.killpg(group, signal.SIGKILL)
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _start(self) -> None:
        launch = self._launch
        port = launch.port or _free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._folder = Path(tempfile.mkdtemp(prefix="rsn-"))  # short: sockets lie in it
        try:
            log = launch.log.open("wb")
        except OSError as error:
            raise InputError(
                f"cannot be written: {error.strerror or error}", source=str(launch.log), mend="name another log"
            ) from None
        words = [*self._command, "-m", "vllm.entrypoints.openai.api_server", *self._arguments(port)]
        with log:
            self._process = self._spawn(words, log)
        said = self._process.stdout.readline().decode().split(None, 1) if self._process.stdout is not None else []
        if said[:1] != ["pid"]:
            raise ServerError(
                f"{self._command[0]} cannot be started: {said[1].strip() if len(said) > 1 else 'no reason'}"
            )
        self._child = int(said[1])

    def _spawn(self, words: list[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
        warden = [sys.executable, "-I", str(Path(__file__).with_name("warden.py"))]
        return subprocess.Popen(
            [*warden, str(END_SECONDS), str(log.fileno()), str(self._folder), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            pass_fds=(log.fileno(),),
            env=self._environment(),
            start_new_session=True,
        )

    def _arguments(self, port: int) -> list[str]:
        launch = self._launch
        words = ["--model", str(launch.model), "--served-model-name", launch.name, self._mark]
        words += ["--host", "127.0.0.1", "--port", str(port), "--enforce-eager", "--max-num-seqs", "16"]
        if launch.positions is not None:
            words += ["--max-model-len", str(launch.positions)]
        if launch.parser is not None:
            words += ["--reasoning-parser", launch.parser]
        if _has_gpu() and launch.device != "cpu":
            # A small model needs little of a card that others may use.
            words += ["--kv-cache-memory-bytes", str(_CACHE_BYTES)]
        return [*words, *launch.arguments]

    def _environment(self) -> dict[str, str]:
        spec = self._launch.spec
        own = spec.environment() if spec is not None else dict(os.environ)
        own |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
        own |= {"VLLM_LOGGING_LEVEL": "INFO", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_HOST_IP": "127.0.0.1"}
        own |= {"TMPDIR": str(self._folder), "TOKENIZERS_PARALLELISM": "false"}
        own.pop("VLLM_API_KEY", None)  # a key of another server's would lock us out of ours
        own.pop("PYTHONDONTWRITEBYTECODE", None)  # it would make every start as slow as the first
        if self._launch.runner is not None:
            own["VLLM_USE_V2_MODEL_RUNNER"] = "1" if self._launch.runner == "v2" else "0"
        return {**own, **self._launch.environment}

    def _wait(self, begun: float) -> None:
        """Until it is healthy, and is ours: on a port that was taken somebody else may answer."""
        with Endpoint(self.url, seconds=5.0) as endpoint:
            while True:
                self.check()
                gone = time.monotonic() - begun
                if gone > self._launch.seconds:
                    raise self._failed(f"it was not healthy within {self._launch.seconds:g} s")
                if _answers(self.url) and _serves(endpoint, self._mark):
                    return
                if self._watch is not None:
                    self._watch(gone, self._last_line())
                time.sleep(_LOOK)

    def _ended(self) -> str:
        status = self._process.wait() if self._process is not None else 0
        return f"it was ended by {_signal_name(status - 128)}" if status > 128 else f"it ended with status {status}"

    def _failed(self, reason: str) -> ServerError:
        lines = [line for line in self._log().splitlines() if line.strip()][-_LAST_LINES:]
        shown = "".join(f"\n  {_PREFIX.sub('', _COLOUR.sub('', line)).rstrip()}" for line in lines)
        return ServerError(
            f"the vLLM server did not hold up: {reason}; the end of its log ({self._launch.log}):{shown}"
        )

    def _log(self) -> str:
        try:
            return self._launch.log.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def _last_line(self) -> str:
        with contextlib.suppress(OSError), self._launch.log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 2048))
            lines = [line for line in file.read().decode("utf-8", "replace").splitlines() if line.strip()]
            return _PREFIX.sub("", _COLOUR.sub("", lines[-1])).strip() if lines else ""
        return ""


def _interpreter(spec: EngineSpec | None) -> tuple[str, ...]:
    if spec is None:
        import importlib.util

        if importlib.util.find_spec("vllm") is None:
            raise InputError(
                "there is no vLLM in this environment",
                mend="name one with --vllm, such as --vllm .vllm/bin/python, or a running server with --endpoint",
            )
        return (sys.executable,)
    kind = spec.text.partition(":")[0]
    if kind in ("image", "pod"):
        raise InputError(
            "a server in a container cannot be started from here",
            source=f"--vllm {spec.text}",
            mend="start it there and name it with --endpoint",
        )
    return spec.command


def engine_named(text: str | None) -> EngineSpec | None:
    """The interpreter a `--vllm` value names, None for this one. Raises InputError."""
    return parse_engine(text) if text is not None else None


def _has_gpu() -> bool:
    return Path("/dev/nvidiactl").exists() or Path("/dev/dxg").exists()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _answers(url: str) -> bool:
    """Whether `/health` says 200. Asked without a client of its own: most of the time nothing listens yet."""
    from urllib.error import URLError
    from urllib.request import ProxyHandler, build_opener

    try:
        with build_opener(ProxyHandler({})).open(f"{url}/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError, ValueError):
        return False


def _serves(endpoint: Endpoint, name: str) -> bool:
    try:
        listed = endpoint.get("/models", of_api=True)
    except ReasonctlError:
        return False
    entries = listed.get("data") if isinstance(listed, dict) else None
    return isinstance(entries, list) and any(isinstance(one, dict) and one.get("id") == name for one in entries)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
