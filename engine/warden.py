"""Keeps a server, and ends all that came of it as soon as whoever started this goes away, however that happens.

Run as a program: warden.py SECONDS LOG FOLDER COMMAND...  LOG is the descriptor that the command's output goes to,
FOLDER its own for what it must not leave behind. It says `pid N` on standard output once the command runs, and ends
itself with the command's status when that ends. When its standard input closes, the command is asked to end, and after
SECONDS everything that is left of it is killed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)


def main(seconds: float, log: int, folder: str, command: list[str]) -> int:
    """Run the command and watch over it; its exit status, or 128 and the number of the signal that ended it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # whoever started this tells it by closing its standard input
    _adopt_orphans()
    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    except OSError as error:
        sys.stdout.write(f"failed {error.strerror or error}\n")
        return 127
    sys.stdout.write(f"pid {child.pid}\n")
    sys.stdout.flush()
    threading.Thread(target=_end_when_left, args=(child, seconds), daemon=True).start()
    status = child.wait()
    _kill_rest(child.pid)
    shutil.rmtree(folder, ignore_errors=True)
    return status if status >= 0 else 128 - status


def _end_when_left(child: subprocess.Popen[bytes], seconds: float) -> None:
    while os.read(0, 4096):
        pass
    with contextlib.suppress(ProcessLookupError):
        child.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(seconds)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def _adopt_orphans() -> None:
    """Make processes whose parent ends children of this one, so that none gets out of sight (Linux only)."""
    with contextlib.suppress(OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def _kill_rest(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    while rest := _descendants():
        for process in rest:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)  # each of them is, or becomes, a child of this process
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _descendants() -> list[int]:
    """Living processes that came from this one."""
    parents: dict[int, int] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            state, parent = place.read_text(errors="replace").rpartition(")")[2].split()[:2]
            if state not in "ZX":
                parents[int(place.parent.name)] = int(parent)
    found: list[int] = []
    front = {os.getpid()}
    while front:
        front = {child for child, parent in parents.items() if parent in front}
        found += front
    return found


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:]))
