"""What starting up costs: `reasonctl --help` and the quick commands against `python -c "import typer, rich"`.

Wall time of whole processes, the least of RUNS each, taken in turns so that load on the machine meets all alike. Exit 1
where `--help` costs more than LIMIT times the baseline.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

RUNS = int(os.environ.get("RUNS", "15"))
LIMIT = 3.0
BASELINE = [sys.executable, "-c", "import typer, rich"]
TOOL = [sys.executable, "-m", "reasonctl"]
COMMANDS = {
    "import typer, rich": BASELINE,
    "reasonctl --help": [*TOOL, "--help"],
    "reasonctl audit --help": [*TOOL, "audit", "--help"],
    "reasonctl explain INT904": [*TOOL, "explain", "INT904"],
    "reasonctl rules": [*TOOL, "rules"],
    "reasonctl parsers qwen3": [*TOOL, "parsers", "qwen3"],
}


def main() -> int:
    best = dict.fromkeys(COMMANDS, float("inf"))
    for command in COMMANDS.values():  # once unmeasured: bytecode is written, files come into the cache
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    for _ in range(RUNS):
        for name, command in COMMANDS.items():
            best[name] = min(best[name], seconds(command))
    base = best["import typer, rich"]
    for name, least in best.items():
        print(f"{name:28} {least * 1000:7.1f} ms  {least / base:5.2f} x")
    ratio = best["reasonctl --help"] / base
    print(f"--help costs {ratio:.2f} times the baseline (limit {LIMIT:.1f}; least of {RUNS} runs)")
    return int(ratio > LIMIT)


def seconds(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())
