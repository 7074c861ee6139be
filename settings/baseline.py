"""A baseline: the findings that were there when it was written, by fingerprint, so that only new ones count."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..budgets.document import locator
from ..budgets.files import read_text
from ..budgets.json_text import read_json
from ..checks.finding import Finding, Location
from ..errors import InputError

SCHEMA = "reasonctl.baseline/1"
_MEND = "write it anew: reasonctl baseline write"


@dataclass(frozen=True, slots=True)
class Entry:
    """One finding of a baseline. `place` is its line in the file."""

    fingerprint: str
    rule: str
    path: str | None
    subject: Mapping[str, Any]
    place: Location


@dataclass(frozen=True, slots=True)
class Baseline:
    """A baseline file and its entries. `shown` is the file's name in reports."""

    shown: str
    entries: tuple[Entry, ...]


def read_baseline(path: Path, *, shown: str) -> Baseline:
    """The baseline in a file.

    Args:
        path: the file.
        shown: its name, as reports say it.

    Raises:
        InputError: it is missing or is no baseline.
    """
    text = read_text(path, shown=shown)
    locate = locator(text, str(path))
    try:
        root = read_json(text, locate)
    except InputError as error:
        raise InputError(error.message, source=shown, line=error.line, column=error.column, mend=_MEND) from None
    schema, findings = root.get("schema"), root.get("findings")
    if schema is None or schema.value.scalar != SCHEMA or findings is None or findings.value.items is None:
        raise InputError(f"no {SCHEMA} file", source=shown, mend=_MEND)
    entries = []
    for item in findings.value.items:
        row = item.plain()
        if not isinstance(row, dict) or not isinstance(row.get("fingerprint"), str):
            raise InputError("an entry without a fingerprint", source=shown, line=item.location.line, mend=_MEND)
        where, subject = row.get("path"), row.get("subject")
        entries.append(
            Entry(
                row["fingerprint"],
                str(row.get("rule") or "?"),
                where if isinstance(where, str) else None,
                subject if isinstance(subject, dict) else {},
                item.location,
            )
        )
    return Baseline(shown, tuple(entries))


def baseline_text(findings: Iterable[Finding]) -> str:
    """The file that covers these findings: one entry a fingerprint, sorted, without lines, messages or versions.

    `rule`, `path` and `subject` are what the fingerprint is made of; they are there for the reader of a diff.
    """
    rows = {
        finding.fingerprint: {
            "fingerprint": finding.fingerprint,
            "rule": finding.rule,
            "path": finding.location.path if finding.location else None,
            "subject": dict(finding.subject),
        }
        for finding in findings
    }
    ordered = sorted(rows.values(), key=lambda row: (str(row["rule"]), str(row["path"]), str(row["fingerprint"])))
    lines = ",\n".join(f"  {json.dumps(row, ensure_ascii=False, sort_keys=True)}" for row in ordered)
    body = f"[\n{lines}\n ]" if lines else "[]"
    return f'{{\n "schema": "{SCHEMA}",\n "findings": {body}\n}}\n'
