"""Imports vLLM once, and forks a runner again and again."""

from __future__ import annotations

import json
import mmap
import os
import signal
import struct
from typing import Any

from .keeper import die_with
from .layouts import load

MARK = b"\x1e"
"""Stands before each line that is an answer; whatever else arrives there is a wrapper's noise."""
PROTOCOL = 2


def supervise(requests: int, answers: int) -> None:
    """Serve until killed: a runner's death is told to whoever asks, and another takes its place."""
    supervisor = os.getpid()
    try:
        vllm = load()
    except BaseException as error:  # whatever an import raises is why there is no vLLM here
        say(answers, {"failed": " ".join(f"{type(error).__name__}: {error}".split())})
        return
    # What the runner is at: the id of the request, 0 between two.
    busy = mmap.mmap(-1, 8)
    while True:
        pid = os.fork()
        if pid == 0:
            die_with(supervisor)
            from .runner import serve

            serve(vllm, requests, answers, busy)
            os._exit(1)
        _, status = os.waitpid(pid, 0)
        (number,) = struct.unpack("q", busy[:8])
        busy[:8] = struct.pack("q", 0)
        # A line begun and not ended must not swallow this one.
        os.write(answers, b"\n")
        say(answers, {"lost": number, "how": _how(os.waitstatus_to_exitcode(status))})


def say(answers: int, value: dict[str, Any]) -> None:
    """One answer, all of it."""
    data = MARK + json.dumps(value).encode() + b"\n"
    while data:
        data = data[os.write(answers, data) :]


def _how(status: int) -> dict[str, Any]:
    if status == -signal.SIGALRM:
        return {"hung": True}
    return {"signal": signal.Signals(-status).name} if status < 0 else {"status": status}
