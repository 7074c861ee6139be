"""A Python process of our own that answers pickled requests one after another, and ends when this process does."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import IO, Any

_PR_SET_PDEATHSIG = 1
_END_SECONDS = 5.0
"""How long a child that has nothing more to do may take to end."""


class ChildGoneError(Exception):
    """The child ended before it answered, with this exit status (negative: the signal)."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the process ended with status {status}")
        self.status = status


class Child:
    """One child. It dies with this process, however that ends: it watches a pipe that only we hold open.

    Args:
        arguments: what is given to this Python: `-P -m MODULE`, where MODULE calls `parent`.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        watched, self._lifeline = _pipe_above_stderr()
        try:
            self._process = subprocess.Popen(
                [sys.executable, *arguments, str(watched), str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=[watched],
                # Ctrl-C goes to this process only; the child ends when the pipe closes.
                start_new_session=True,
            )
        except OSError:
            os.close(self._lifeline)
            raise
        finally:
            os.close(watched)

    def send(self, request: Any) -> None:
        """Hand over a request. Raises ChildGoneError."""
        try:
            _put(_pipe(self._process.stdin), request)
        except OSError:
            raise self._gone() from None

    def receive(self) -> Any:
        """The next answer. Raises ChildGoneError."""
        try:
            return pickle.load(_pipe(self._process.stdout))  # noqa: S301  (our own child wrote it)
        except (EOFError, OSError, pickle.UnpicklingError):
            raise self._gone() from None

    def close(self) -> None:
        """End a child that has answered everything."""
        with contextlib.suppress(OSError):
            _pipe(self._process.stdin).close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        self.kill()

    def kill(self) -> None:
        """End the child whatever it does."""
        self._process.kill()
        self._process.wait()
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1

    def release(self) -> None:
        """Close our ends of a dead child's pipes. Only when no thread reads or writes them any more."""
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                _pipe(pipe).close()

    def _gone(self) -> ChildGoneError:
        try:
            status = self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        return ChildGoneError(status)


def _pipe_above_stderr() -> tuple[int, int]:
    """A pipe whose numbers are not those of a standard stream that is closed here and opened in the child."""
    ends = os.pipe()
    found = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3) for end in ends]
    for end in ends:
        os.close(end)
    return found[0], found[1]


class Parent:
    """The other end, in the child."""

    def __init__(self) -> None:
        watched, pid = (int(argument) for argument in sys.argv[1:3])
        _die_with(pid, watched)
        self._requests = sys.stdin.buffer
        # What a library prints must not end up among the answers.
        self._answers = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)

    def requests(self) -> Iterator[Any]:
        """Every request, until the parent has no more."""
        while True:
            try:
                yield pickle.load(self._requests)  # noqa: S301  (our own parent wrote it)
            except EOFError:
                return

    def answer(self, value: Any) -> None:
        """Send an answer. Ends the process where the parent is gone."""
        try:
            _put(self._answers, value)
        except BrokenPipeError:
            os._exit(1)


def _die_with(parent: int, watched: int) -> None:
    """On Linux the kernel kills this process when its parent is gone; elsewhere, and before that, a thread sees it."""
    threading.Thread(target=lambda: (os.read(watched, 1), os._exit(1)), daemon=True).start()
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def _put(pipe: IO[bytes], value: Any) -> None:
    pipe.write(pickle.dumps(value))
    pipe.flush()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise BrokenPipeError
    return pipe
