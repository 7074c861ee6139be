"""The other end of `vllm_driver.py`: one vLLM process per version, asked for what its parsers make of many cases."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

SCRIPT = Path(__file__).with_name("vllm_driver.py")
ENVIRONMENT = SCRIPT.parents[2] / ".vllm"
VERSIONS = ("0.33.0", "0.32.0")


class VllmDriver:
    """A process with one vLLM version's Python. A context manager; ends its process on the way out.

    Args:
        version: 0.32.0 is what the environment has installed; a newer one is laid over it from `vllm-VERSION`.
    """

    def __init__(self, version: str) -> None:
        overlay = ENVIRONMENT / f"vllm-{version}"
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        environment |= {"VLLM_LOGGING_LEVEL": "ERROR", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
        if overlay.exists():
            environment["PYTHONPATH"] = str(overlay)
        self._process = subprocess.Popen(
            [ENVIRONMENT / "bin" / "python", SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            encoding="utf-8",
        )
        self.version = version
        self._sent: set[str] = set()

    def __enter__(self) -> VllmDriver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def ask(self, request: dict[str, Any]) -> Any:
        """One answer for one request."""
        return next(self._answers([request]))

    def run(self, specs: dict[str, dict[str, Any]], cases: Iterable[dict[str, Any]]) -> Iterator[Any]:
        """What vLLM makes of each case, in order. `specs` describe the tokenizers that the cases name by key."""
        cases = list(cases)
        for key in sorted({case["tokenizer"] for case in cases} - self._sent):
            self._sent.add(key)
            self.ask({"op": "tokenizer", "key": key, "spec": specs[key]})
        return self._answers([{"op": "run", **case} for case in cases])

    def _answers(self, requests: list[dict[str, Any]]) -> Iterator[Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("the driver has no pipes")

        def send() -> None:
            for request in requests:
                stdin.write(json.dumps(request) + "\n")
            stdin.flush()

        # Written beside the reading: both pipes are finite, so sending everything first would stand still.
        sender = threading.Thread(target=send, daemon=True)
        sender.start()
        for _ in requests:
            line = stdout.readline()
            if not line:
                raise RuntimeError(f"the vLLM {self.version} driver ended with {self._process.wait()}")
            yield json.loads(line)
        sender.join()
