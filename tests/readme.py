"""The README's examples are real: each `console` block is a command and what it prints.

python tests/readme.py            exits 1 where a block differs from what the command prints now
python tests/readme.py --write    puts what the commands print now into the README
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"^```console\n\$ (?P<command>.+)\n(?P<output>(?:.*\n)*?)```$", re.MULTILINE)


def output_of(command: str) -> str:
    """What the command prints on a terminal of 100 columns without colour; then its exit code where it is not 0."""
    program, *args = shlex.split(command)
    if program != "reasonctl":
        raise ValueError(f"only reasonctl commands are run, not {program}")
    env = {key: value for key, value in os.environ.items() if key not in ("FORCE_COLOR", "CLICOLOR_FORCE")}
    done = subprocess.run(
        [sys.executable, "-m", "reasonctl", *args],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=env | {"COLUMNS": "100", "NO_COLOR": "1"},
    )
    lines = [line.rstrip() for line in (done.stdout + done.stderr).rstrip("\n").split("\n")]
    if done.returncode:
        lines.append(f"(exit code {done.returncode})")
    return "\n".join(lines) + "\n"


def refreshed(text: str) -> str:
    """The README with every block's output made anew."""
    return BLOCK.sub(lambda block: f"```console\n$ {block['command']}\n{output_of(block['command'])}```", text)


def main() -> int:
    text = README.read_text(encoding="utf-8")
    now = refreshed(text)
    if now == text:
        return 0
    if "--write" in sys.argv[1:]:
        README.write_text(now, encoding="utf-8")
        return 0
    for shown, real in zip(BLOCK.finditer(text), BLOCK.finditer(now), strict=True):
        if shown[0] != real[0]:
            print(f"README.md differs from what this prints: {shown['command']}\n{real['output']}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
