"""Asks a Python's own transformers what tokenizer it builds from a folder; that Python may be another one than this."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SCRIPT = """
import json, os, sys, threading
threading.Thread(target=lambda: (os.read(int(sys.argv[1]), 1), os._exit(1)), daemon=True).start()
sys.path[:] = [entry for entry in sys.path if entry]
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
request = json.load(sys.stdin)
answer = {"version": None, "error": None}
try:
    import transformers
    answer["version"] = transformers.__version__
    built = transformers.AutoTokenizer.from_pretrained(
        request["folder"], local_files_only=True, trust_remote_code=False
    )
    answer["class"] = type(built).__name__
    answer["size"] = len(built)
    answer["special_tokens"] = {k: str(v) for k, v in built.special_tokens_map.items() if isinstance(v, str)}
    answer["results"] = []
    for text in request["texts"]:
        ids = [int(i) for i in built.encode(text, add_special_tokens=False)]
        answer["results"].append({"ids": ids, "text": built.decode(ids, skip_special_tokens=False)})
except Exception as error:
    answer["error"] = " ".join(f"{type(error).__name__}: {error}".split())[:400]
json.dump(answer, out)
out.close()
"""


class Running:
    """A check under way. It ends with this process, however that ends: the child watches a pipe that we hold open."""

    def __init__(self, python: str, folder: Path, texts: Sequence[str]) -> None:
        watched, self._lifeline = os.pipe()
        try:
            self._process = subprocess.Popen(
                [python, "-c", SCRIPT, str(watched)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env={**os.environ, "USE_TORCH": "0", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"},
                pass_fds=[watched],
            )
        except OSError:
            os.close(self._lifeline)
            raise
        finally:
            os.close(watched)
        stdin, self._process.stdin = self._process.stdin, None
        if stdin is not None:
            # A Python that dies at once says so by its exit status.
            with contextlib.suppress(BrokenPipeError), stdin:
                stdin.write(json.dumps({"folder": str(folder), "texts": list(texts)}))

    def finish(self, seconds: float) -> dict[str, Any]:
        """The check's answer; its `error` says what went wrong, a hang included."""
        try:
            text, _ = self._process.communicate(timeout=seconds)
            answer: dict[str, Any] = json.loads(text)
            return answer
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            return {"error": f"no tokenizer within {seconds:g} s"}
        except ValueError:
            return {"error": f"the Python ended with status {self._process.returncode} and no answer"}
        finally:
            os.close(self._lifeline)
