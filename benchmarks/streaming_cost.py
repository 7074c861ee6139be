"""How the cost of vLLM's parsers grows with a stream: what rule FIT117 knows, measured in real vLLMs.

    python benchmarks/streaming_cost.py [VERSION ...]

Every parser gets one output of SHORT tokens and one eight times as long, one token a delta; one that is cheap on those,
a second pair. What it spent itself is written to parsers/streaming_cost.json.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from long_outputs import BUILTIN, long_output

from reasonctl.parsers import Target, names
from reasonctl.parsers.streaming_cost import FILE

ROOT = Path(__file__).parent.parent
ENVIRONMENT = ROOT / ".vllm"
SCRIPT = Path(__file__).with_name("vllm_growth.py")
PAIRS = ((1_000, 8_000), (4_000, 32_000))
CHEAP = 0.3
"""Seconds that the first pair may cost for the second to be measured."""


def main() -> None:
    known: dict[str, Any] = json.loads(FILE.read_text()) if FILE.is_file() else {}
    for version in sys.argv[1:] or ("0.33.0", "0.32.0"):
        known[version] = measured(version)
    FILE.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


def measured(version: str) -> dict[str, list[list[float]]]:
    """By name: (tokens, seconds) of each stream, in pairs."""
    target = Target("vllm", tuple(int(part) for part in version.split(".")))  # type: ignore[arg-type]
    found: dict[str, list[list[float]]] = {}
    with far_end(version) as far:
        for name in (name for name in BUILTIN if name in names(target)):
            rows: list[list[float]] = []
            for pair in PAIRS:
                rows += [[tokens, round(own(far, name, tokens), 4)] for tokens in pair]
                if rows[-1][1] > CHEAP:
                    break
            found[name] = rows
            print(version, name, " ".join(f"{tokens:g}: {seconds:.3f} s" for tokens, seconds in rows), flush=True)
    return found


def far_end(version: str) -> subprocess.Popen[str]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment |= {"VLLM_LOGGING_LEVEL": "ERROR", "HF_HUB_OFFLINE": "1"}
    if (overlay := ENVIRONMENT / f"vllm-{version}").is_dir():
        environment["PYTHONPATH"] = str(overlay)
    far = subprocess.Popen(
        [ENVIRONMENT / "bin" / "python", SCRIPT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        text=True,
    )
    assert far.stdout is not None
    assert json.loads(far.stdout.readline())["vllm"].startswith(version)
    return far


def own(far: subprocess.Popen[str], name: str, tokens: int) -> float:
    """CPU seconds a parser spends on a stream of so many tokens."""
    output = long_output(name, tokens)
    case = {
        "parser": name,
        "spec": output.spec.to_json(),
        "ids": list(output.pieces.ids),
        "texts": list(output.pieces.texts),
        "kwargs": dict(output.kwargs),
    }
    assert far.stdin is not None and far.stdout is not None
    far.stdin.write(json.dumps(case) + "\n")
    far.stdin.flush()
    answer: dict[str, Any] = json.loads(far.stdout.readline())
    if "error" in answer:
        raise RuntimeError(f"{name}: {answer['error']}")
    return float(answer["own"])


if __name__ == "__main__":
    main()
