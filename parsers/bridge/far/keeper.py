"""Three processes, so that nothing a parser does can outlive the run or cost more than one result.

The *keeper* imports nothing foreign. It waits until whoever asks is gone, then kills all that came from it. Below it
the *supervisor* imports vLLM once and forks the *runner*, which answers requests; where that one dies, it forks another
in milliseconds. Standard input carries one JSON request a line. Answers go, one JSON a line behind a mark, to a copy of
standard output, whose own number then leads to standard error: what vLLM or a parser prints is no answer.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import sys
import tempfile
import time
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_ROUNDS = 400
"""How often what came from us is looked for and killed, 5 ms apart; a process that forks for ever is caught by then."""
_GONE = select.POLLHUP | select.POLLERR | select.POLLNVAL | getattr(select, "POLLRDHUP", 0)


FOLDERS: list[str] = []
"""The folder that a plugin works in, gone when the keeper ends; whoever is forked below it knows it too."""


def main() -> None:
    """Fork the supervisor and keep watch. Never returns."""
    FOLDERS.append(tempfile.mkdtemp(prefix="reasonctl-plugin-"))
    requests, answers = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    _no_core()
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    keeper = os.getpid()
    child = os.fork()
    if child == 0:
        die_with(keeper)
        from .supervisor import supervise

        supervise(requests, answers)
        os._exit(0)
    os.close(answers)
    _keep(child, requests)


def die_with(parent: int) -> None:
    """On Linux the kernel kills this process when its parent is gone, whatever it is doing."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _keep(child: int, requests: int) -> None:
    """Wait for the end of the supervisor or of the requests, then leave nothing behind."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    over: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: over.append(number))
    signal.signal(signal.SIGCHLD, lambda *_: None)
    watch = select.poll()
    watch.register(requests, getattr(select, "POLLRDHUP", 0))
    watch.register(woken, select.POLLIN)
    gone = False
    while (status := _reaped(child)) is None and not gone and not over:
        gone = any(number == requests and event & _GONE for number, event in watch.poll())
        with contextlib.suppress(BlockingIOError):
            os.read(woken, 4096)
    _end_descendants()
    for folder in FOLDERS:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0 if status is None else status if status >= 0 else 128 - status)


def _reaped(child: int) -> int | None:
    """Collect whoever ended; the exit status of `child` if it did (negative: the signal)."""
    found = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                found = os.waitstatus_to_exitcode(status)
    return found


def _end_descendants() -> None:
    """Kill all that came from this process. Where there is no /proc, that is its process group, itself included."""
    if not os.path.exists("/proc/self/stat"):  # noqa: PTH110  (no import that is not needed)
        os.killpg(os.getpgrp(), signal.SIGKILL)
    for _ in range(_ROUNDS):
        found = _descendants()
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        _reaped(0)
        time.sleep(0.005)


def _descendants() -> list[int]:
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdecimal():
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                    parent = int(file.read().rpartition(b")")[2].split()[1])
                children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    waiting = [os.getpid()]
    while waiting:
        own = children.get(waiting.pop(), [])
        found += own
        waiting += own
    return found


def _no_core() -> None:
    """A parser that crashes need not leave the memory of a whole vLLM on the disk."""
    import resource

    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def _prctl(option: int, value: Any) -> None:
    if sys.platform == "linux":
        with contextlib.suppress(ImportError, OSError, AttributeError):
            import ctypes

            ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
