"""The process that a bridge leads to: JSON lines out and in, each answer within its time, gone when this process is."""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from ...errors import ReasonctlError
from .far.supervisor import MARK
from .program import LOADER, program
from .spec import EngineSpec

_SLACK = 15.0
"""Seconds after its own time within which the other side has to say that a request ran out of it."""
_END_SECONDS = 5.0
"""How long the other side may take to end by itself once nobody asks any more."""
_LOOK = 0.5
"""Seconds between two looks at whether the process still runs: something it left may hold its pipes open."""
_TAIL = 40
_LINE = 65536
_PART = 1 << 20
_FAULT = re.compile(
    r"\w(?:Error|Exception)\b|\berror\b|no such|not found|denied|refused|cannot|unable|fail", re.IGNORECASE
)
"""Wrappers end with advice (docker: `See 'docker run --help'`); the line that tells why stands before it."""


class BridgeError(ReasonctlError):
    """The other interpreter never came up, or cannot be brought up again (exit code 3)."""


class LostError(Exception):
    """The request has no answer: whoever should have made it crashed, or ran out of time. The next one may have."""


class HungError(LostError):
    """It ran out of time."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no answer within {seconds:g} s")


class TakenOverError(LostError):
    """Whoever answered before was ended from outside, between two requests; this one may have gone down with it."""


class FarProcess:
    """One interpreter with a vLLM, from its start to its end.

    It runs in a session of its own, so that Ctrl-C reaches this process alone. Its first process watches our end of its
    standard input and kills everything that came from it when that closes, however this process ends.
    """

    def __init__(self, spec: EngineSpec) -> None:
        self._said: deque[str] = deque(maxlen=_TAIL)
        self._parts: list[bytes] = []
        self._at_end = False
        self._next = 1
        self.restarts = 0
        """How often another runner took over."""
        self.over = False
        """It has ended, or does not listen any more."""
        try:
            self._process = subprocess.Popen(
                [*spec.command, "-c", LOADER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=spec.environment(),
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            raise BridgeError(f"--vllm: {spec.command[0]} cannot be started: {error.strerror or error}") from None
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        assert stdin is not None and stdout is not None and stderr is not None  # noqa: S101  (pipes were asked for)
        self._stdin, self._stdout, self._stderr = stdin, stdout, stderr
        os.set_blocking(self._stdin.fileno(), False)
        os.set_blocking(self._stdout.fileno(), False)
        self._drain = threading.Thread(target=self._read_stderr, daemon=True)
        self._drain.start()
        self._unsent = program()

    def ask(self, op: str, fields: Mapping[str, Any], *, seconds: float) -> dict[str, Any]:
        """One answer for one request.

        Args:
            op: what is asked for.
            fields: its arguments, JSON-valued.
            seconds: how long the other side may take to answer.

        Raises:
            LostError: a crash or a hang cost this answer; another runner has taken over, or the process is `over`.
            BridgeError: the process is gone, or has no vLLM.
        """
        number = self._next
        self._next += 1
        request = {"id": number, "op": op, "seconds": seconds, **fields}
        data = memoryview(self._unsent + json.dumps(request).encode() + b"\n")
        self._unsent = b""
        # The other side says itself when it ran out of time, unless it is not there yet, or deaf.
        ends = time.monotonic() + seconds + (0.0 if op == "hello" else min(_SLACK, seconds + 1.0))
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdout, selectors.EVENT_READ)
            selector.register(self._stdin, selectors.EVENT_WRITE)
            while True:
                left = ends - time.monotonic()
                if left <= 0:
                    self.over = True
                    raise HungError(seconds)
                ready = [key.fileobj for key, _ in selector.select(min(left, _LOOK))]
                if self._stdin in ready:
                    data = data[self._write(data) :]
                    if not data:
                        selector.unregister(self._stdin)
                ended = self._process.poll() is not None
                if self._stdout in ready or ended:
                    for line in self._lines():
                        answer = self._answer(line, number, seconds)
                        if answer is not None:
                            return answer
                if ended or self._at_end:
                    self.over = True
                    raise BridgeError(self._end())

    def listen(self) -> None:
        """Take in what was said unasked: that a runner died between two requests."""
        for line in self._lines():
            with contextlib.suppress(LostError):
                self._answer(line, 0, 0.0)
        self.over = self.over or self._at_end or self._process.poll() is not None

    @property
    def pid(self) -> int:
        """The command's own process."""
        return self._process.pid

    def close(self) -> None:
        """End it, and wait until it is gone."""
        with contextlib.suppress(OSError):
            self._stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        # Whatever is left of its session: a wrapper that hangs, or what a keeper that was killed could not end.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._drain.join(_END_SECONDS)
        self._stdout.close()
        if not self._drain.is_alive():
            self._stderr.close()

    def last_words(self) -> str:
        """The last line on its standard error that names a fault, else the last one, empty without any."""
        said = [line for line in self._said if line.strip()]
        return next((line for line in reversed(said) if _FAULT.search(line)), said[-1] if said else "")

    def _write(self, data: memoryview) -> int:
        try:
            return self._stdin.write(data[:_LINE]) or 0
        except BlockingIOError:
            return 0
        except OSError:  # found out by its end
            return len(data)

    def _lines(self) -> list[bytes]:
        """Whole lines that came by now."""
        while True:
            try:
                part = self._stdout.read(_PART)
            except BlockingIOError:
                break
            if not part:
                self._at_end = part == b""
                break
            self._parts.append(part)
            if len(part) < _PART:
                break
        if not self._parts or b"\n" not in self._parts[-1]:
            return []
        *lines, rest = b"".join(self._parts).split(b"\n")
        self._parts = [rest]
        return lines

    def _answer(self, line: bytes, number: int, seconds: float) -> dict[str, Any] | None:
        """What a line says to the request `number`; None where it says nothing to it."""
        at = line.find(MARK)
        if at < 0:
            return None
        try:
            answer = json.loads(line[at + 1 :])
        except ValueError:
            return None
        if "lost" in answer:
            self.restarts += 1
            if answer["lost"] != number:
                raise TakenOverError(_how(answer["how"]))
            raise HungError(seconds) if answer["how"].get("hung") else LostError(_how(answer["how"]))
        if "failed" in answer and "id" not in answer:
            raise BridgeError(answer["failed"])
        return answer if answer.pop("id", None) == number else None

    def _end(self) -> str:
        try:
            status = self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            return "it closed its standard output"
        self._drain.join(_LOOK)
        how = f"it was ended by {_signal(status)}" if status < 0 or status > 128 else f"it ended with status {status}"
        said = self.last_words()
        return f"{how} ({said})" if said else how

    def _read_stderr(self) -> None:
        rest = b""
        while True:
            part = self._stderr.read(_LINE)
            if not part:
                break
            *lines, rest = (rest + part).split(b"\n")
            rest = rest[-_LINE:]
            self._said.extend(line[:500].decode("utf-8", "replace").strip() for line in lines[-_TAIL:])
        if rest:
            self._said.append(rest[:500].decode("utf-8", "replace").strip())


def _how(how: Mapping[str, Any]) -> str:
    if "signal" in how:
        return f"its process was ended by {how['signal']}"
    return f"its process ended with status {how.get('status')}"


def _signal(status: int) -> str:
    number = -status if status < 0 else status - 128
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"
