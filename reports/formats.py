"""Not written yet."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ..checks.report import Report

NAMES = ("text", "json")


def write(report: Report, outputs: Sequence[tuple[str, Path | None]], *, verbose: bool, quiet: bool) -> None:
    """Placeholder until reports/ is written."""
    print(json.dumps(report.as_json(), indent=1, default=str))
