"""The examples of README.md and docs/ are real: each `console` block is a command and what it prints.

python tests/readme.py            exits 1 where a block is not what its command prints now, or a made file is old
python tests/readme.py --write    puts what the commands print now into the pages, and makes docs/rules/,
                                  docs/reference/commands.md and checks/reproduced.json, which follow from the rules,
                                  the command line and the pages
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```console\n\$ (?P<command>.+)\n(?P<output>(?:.*\n)*?)```$", re.MULTILINE)
REPRODUCED = ROOT / "checks" / "reproduced.json"
_FINDING = re.compile(r"\b(?:error|warning|info|note) (?P<rule>[A-Z]{3}\d{3}) [a-z0-9-]+\b")


def pages() -> tuple[Path, ...]:
    """Every page with examples: the pitfalls first, since each of theirs is about one rule."""
    docs = sorted((ROOT / "docs").rglob("*.md"))
    return tuple(sorted((ROOT / "README.md", *docs), key=lambda page: page.name != "pitfalls.md"))


def output_of(command: str) -> str:
    """What the command prints where it is piped, run in this process; then its exit code where it is not 0."""
    program, *args = shlex.split(command)
    if program != "reasonctl":
        raise ValueError(f"only reasonctl commands are run, not {program}")
    from reasonctl.cli import main

    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    kept = {key: value for key, value in os.environ.items() if key not in ("FORCE_COLOR", "CLICOLOR_FORCE")}
    with (
        mock.patch.dict(os.environ, kept | {"COLUMNS": "100", "NO_COLOR": "1"}, clear=True),
        mock.patch.object(sys, "argv", ["reasonctl", *args]),
        contextlib.chdir(ROOT),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as stop:
            code = stop.code
    if code == 3:
        raise RuntimeError(f"{command}: {err.getvalue()}")
    lines = [line.rstrip() for line in (out.getvalue() + err.getvalue()).rstrip("\n").split("\n")]
    if code:
        lines.append(f"(exit code {code})")
    return "\n".join(lines) + "\n"


def refreshed(text: str, *, only: str = "") -> str:
    """A page with the output of every block, or of those whose command holds `only`, made anew."""

    def block(found: re.Match[str]) -> str:
        command = found["command"]
        return f"```console\n$ {command}\n{output_of(command)}```" if only in command else found[0]

    return BLOCK.sub(block, text)


def reproduced() -> dict[str, str]:
    """For each rule that an example shows, by id: the first command that shows it on files that the package ships."""
    found: dict[str, str] = {}
    for page in pages():
        for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
            for finding in _FINDING.finditer(block["output"]):
                if "docs/" not in block["command"]:
                    found.setdefault(finding["rule"], block["command"])
    return dict(sorted(found.items()))


def made() -> Iterator[tuple[Path, str]]:
    """The files that are made, each with what it must hold: after the pages' own examples are as they should be."""
    from reasonctl.cli.reference import command_page
    from reasonctl.cli.rules import family_pages

    yield REPRODUCED, json.dumps(reproduced(), indent=1, ensure_ascii=False) + "\n"
    for name, text in family_pages().items():
        yield ROOT / "docs" / "rules" / name, text
    yield ROOT / "docs" / "reference" / "commands.md", command_page()


def main() -> int:
    stale = 0
    for page in pages():
        stale += _settle(page, refreshed(page.read_text(encoding="utf-8")))
    for path, text in made():
        stale += _settle(path, text)
    for page in pages():  # what `explain` prints comes from a file that was made just now
        stale += _settle(page, refreshed(page.read_text(encoding="utf-8"), only="reasonctl explain"))
    return int(stale > 0)


def _settle(path: Path, now: str) -> bool:
    """Write what the file must hold, or say that it differs."""
    if path.exists() and path.read_text(encoding="utf-8") == now:
        return False
    if "--write" in sys.argv[1:]:
        path.parent.mkdir(exist_ok=True)
        path.write_text(now, encoding="utf-8")
        return False
    print(f"{path.relative_to(ROOT)} is not as made now: python tests/readme.py --write", file=sys.stderr)
    return True


if __name__ == "__main__":
    sys.exit(main())
