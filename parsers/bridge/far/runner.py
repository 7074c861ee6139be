"""Answers requests, one after the other, each within its time."""

from __future__ import annotations

import json
import mmap
import os
import signal
import struct
import sys
from collections.abc import Callable
from typing import Any

from . import plugins, render, runs, trials, vocabularies
from .layouts import Vllm
from .supervisor import PROTOCOL, say

Op = Callable[["Far", dict[str, Any]], dict[str, Any]]


class Far:
    """What one runner holds: the vLLM of its interpreter, and the tokenizers and servers it was given, by key."""

    def __init__(self, vllm: Vllm) -> None:
        self.vllm = vllm
        self.tokenizers: dict[str, Any] = {}
        self.servers: dict[str, render.Server] = {}


def hello(far: Far, request: dict[str, Any]) -> dict[str, Any]:
    """Who answers here: the protocol, vLLM's version, its parsers' names, the Python."""
    return {
        "protocol": PROTOCOL,
        "version": far.vllm.version,
        "names": far.vllm.names(),
        "python": sys.version.split()[0],
        "executable": sys.executable,
        "layout": far.vllm.layout,
    }


def ops() -> dict[str, Op]:
    """Everything that can be asked for, by name."""
    return {"hello": hello, **plugins.OPS, **vocabularies.OPS, **runs.OPS, **trials.OPS, **render.OPS}


def serve(vllm: Vllm, requests: int, answers: int, busy: mmap.mmap) -> None:
    """Answer until the requests end. A request that takes too long ends this process, by the kernel's own alarm."""
    own = os.getpid()
    known = ops()
    far = Far(vllm)
    # Ctrl-C is for whoever asks.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with open(requests, "rb", closefd=False) as lines:
        for line in lines:
            try:
                request = json.loads(line)
            except ValueError:  # the rest of a request that a runner before this one died over
                say(answers, {"lost": -1, "how": {"status": 0}})
                continue
            busy[:8] = struct.pack("q", request["id"])
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, request["seconds"])
            try:
                answer = known[request["op"]](far, request)
            except (SystemExit, KeyboardInterrupt) as error:  # what a parser means for its server
                os._exit(error.code if isinstance(error, SystemExit) and isinstance(error.code, int) else 1)
            except Exception as error:
                answer = {"failed": " ".join(f"{type(error).__name__}: {error}".split())[:2000]}
            signal.setitimer(signal.ITIMER_REAL, 0)
            if os.getpid() != own:  # a parser forked, and this is the copy
                os._exit(0)
            say(answers, {**answer, "id": request["id"]})
            busy[:8] = struct.pack("q", 0)
    os.kill(os.getppid(), signal.SIGTERM)
