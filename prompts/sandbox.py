"""Starts and ends the processes that foreign templates run in; what is done there is `prompts.child`."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import ReasonctlError

START_SECONDS = 120.0
"""How long the child may take to import transformers; a second on a laptop, far more on a cold network disk."""
SLACK_SECONDS = 2.0
"""Past its own alarm a worker gets this long to be gone before it is killed from here."""


@dataclass(frozen=True)
class Limits:
    """What one template may use: seconds for one rendering and for all, bytes of memory, characters of output."""

    render_seconds: float = 5.0
    template_seconds: float = 15.0
    memory_bytes: int = 512 << 20
    output_chars: int = 8_000_000


class WorkerGoneError(Exception):
    """The worker ended before it answered: `timed_out`, or with this exit `status` (negative: the signal)."""

    def __init__(self, *, timed_out: bool, status: int | None) -> None:
        self.timed_out = timed_out
        self.status = status
        super().__init__(f"timed_out={timed_out} status={status}")


class Worker:
    """One template's process. Close it; an open one ends with this process, however that ends."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._deadline = time.monotonic() + limits.template_seconds
        self._child = _child()
        self._socket, other = socket.socketpair()
        with other:
            self._pid: int | None = self._child.fork(other, limits)
        self._buffer = b""

    def ask(self, request: Mapping[str, Any], answers: int) -> Iterator[dict[str, Any]]:
        """Send one request and yield its answers. Raises WorkerGoneError where the worker ends instead."""
        try:
            self._socket.sendall(json.dumps(request).encode() + b"\n")
        except OSError:
            raise self._gone(timed_out=False) from None
        for _ in range(answers):
            yield json.loads(self._line())

    def close(self) -> None:
        """End the process and wait for it."""
        if self._pid is not None:
            pid, self._pid = self._pid, None
            self._socket.close()
            self._child.reap(pid)

    def _line(self) -> bytes:
        now = time.monotonic()
        deadline = min(now + self._limits.render_seconds, max(now, self._deadline)) + SLACK_SECONDS
        chunks = [self._buffer]
        while b"\n" not in chunks[-1]:
            ready, _, _ = select.select([self._socket], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise self._gone(timed_out=True)
            try:
                data = self._socket.recv(1 << 20)
            except ConnectionResetError:
                data = b""
            if not data:
                raise self._gone(timed_out=False)
            chunks.append(data)
        line, _, self._buffer = b"".join(chunks).partition(b"\n")
        return line

    def _gone(self, *, timed_out: bool) -> WorkerGoneError:
        pid, self._pid = self._pid, None
        self._socket.close()
        status = self._child.reap(pid, wait=not timed_out) if pid is not None else None
        return WorkerGoneError(timed_out=timed_out or status == -signal.SIGALRM, status=status)


class _Child:
    """The process that has transformers imported and forks the workers."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._lock = threading.Lock()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (lives as long as the child)
        self._control, other = socket.socketpair()
        package = __name__.rpartition(".")[0]
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", f"{package}.child"],
                stdin=other.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                env={**os.environ, **_ENVIRONMENT},
                # Ctrl-C goes to this process only; the child ends when the control socket closes.
                start_new_session=True,
            )
        self._buffer = b""
        self._ready = False

    def fork(self, channel: socket.socket, limits: Limits) -> int:
        request = json.dumps({"op": "fork", "limits": asdict(limits)}).encode()
        with self._lock:
            self._await_ready()
            socket.send_fds(self._control, [request], [channel.fileno()])
            return int(json.loads(self._line(START_SECONDS))["pid"])

    def reap(self, pid: int, *, wait: bool = False) -> int | None:
        """Kill a worker if it still runs; its exit status, negative for a signal. None if the child itself is gone.

        With `wait` the worker is known to be ending: its own status is wanted, not that of the kill.
        """
        with self._lock, contextlib.suppress(OSError, ReasonctlError):
            self._control.sendall(json.dumps({"op": "reap", "pid": pid, "wait": wait}).encode())
            return int(json.loads(self._line(START_SECONDS))["status"])
        return None

    @property
    def alive(self) -> bool:
        return self._process.poll() is None and self.owner == os.getpid()

    def close(self) -> None:
        if self.owner == os.getpid():
            self._control.close()
            self._process.kill()
            self._process.wait()
            self._errors.close()

    def _await_ready(self) -> None:
        if not self._ready:
            self._line(START_SECONDS)
            self._ready = True

    def _line(self, seconds: float) -> bytes:
        deadline = time.monotonic() + seconds
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self._control], [], [], max(0.0, deadline - time.monotonic()))
            data = self._control.recv(65536) if ready else b""
            if not data:
                raise self._failed()
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _failed(self) -> ReasonctlError:
        self._process.kill()
        self._process.wait()
        self._errors.seek(0)
        last = self._errors.read().decode(errors="replace").strip().splitlines()[-1:]
        return ReasonctlError(
            f"the process that renders templates did not start or has died: {' '.join(last) or 'no message'}"
        )


_ENVIRONMENT = {
    # One thread each: the child forks, and address space counts against the memory limit.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    # Nothing but transformers' template code is wanted.
    "USE_TORCH": "0",
    "TRANSFORMERS_VERBOSITY": "error",
    "HF_HUB_OFFLINE": "1",
}

_children: list[_Child] = []
_children_lock = threading.Lock()


def warm_up() -> None:
    """Start the child now, so that it imports while this process does something else."""
    _child()


def _child() -> _Child:
    """The one child of this process, started on first use and again after it died."""
    with _children_lock:
        if _children and not _children[0].alive:
            _children.pop().close()
        if not _children:
            _children.append(_Child())
        return _children[0]


@atexit.register
def _close() -> None:
    while _children:
        _children.pop().close()
