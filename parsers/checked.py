"""When each parser model was last held against the real vLLM: version, number of cases, seed.

`checked.json` beside this file is what `reasonctl vllm check --write` writes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("checked.json")


@dataclass(frozen=True, slots=True)
class LastCheck:
    """One check of one name that found no difference."""

    version: str
    """Of vLLM."""
    cases: int
    seed: int


def last_checks(name: str, file: Path = FILE) -> tuple[LastCheck, ...]:
    """The last check of a name against each version, the newest version first; empty for one never checked."""
    return tuple(
        LastCheck(version, entry["cases"], entry["seed"])
        for version, entry in sorted(_read(file).get(name, {}).items(), key=lambda pair: _place(pair[0]), reverse=True)
    )


def write_checks(version: str, checks: Mapping[str, LastCheck | None], file: Path = FILE) -> None:
    """Put the checks of some names against one version in place of what was there.

    Args:
        version: of vLLM.
        checks: by name; None for one that differed: it counts as not checked any more.
        file: the data file.

    Raises:
        OSError: it cannot be written.
    """
    known = _read(file)
    for name, check in checks.items():
        entries = known.setdefault(name, {})
        entries.pop(version, None)
        if check is not None:
            entries[version] = {"cases": check.cases, "seed": check.seed}
    lines = [
        f" {json.dumps(name)}: {json.dumps(dict(sorted(entries.items(), key=lambda pair: _place(pair[0]))))}"
        for name, entries in sorted(known.items())
        if entries
    ]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _read(file: Path) -> dict[str, dict[str, dict[str, int]]]:
    if not file.exists():
        return {}
    known: dict[str, dict[str, dict[str, int]]] = json.loads(file.read_text(encoding="utf-8"))
    return known


def _place(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
