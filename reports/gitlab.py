"""`--format gitlab`: a Code Quality report (https://docs.gitlab.com/ci/testing/code_quality/) for merge requests."""

from __future__ import annotations

import json
from typing import Any

from ..checks.finding import Finding, Location, Severity
from ..checks.report import Report
from .inputs import Owners, from_top, inputs, marks
from .wording import visible

_SEVERITY: dict[Severity, str] = {"error": "critical", "warning": "minor", "info": "info"}


def render(report: Report, below: str = "") -> str:
    """A JSON list with an entry for every finding that is not suppressed; fingerprints are unique within the list.

    Args:
        report: what to tell.
        below: where the folder of the report's paths is in the repository, `deploy/`.
    """
    owners = Owners(inputs(report))
    live = [finding for finding in report.findings if finding.suppressed is None]
    entries = [
        _entry(finding, owners.place(report, finding), mark, below)
        for finding, mark in zip(live, marks(live), strict=True)
    ]
    return json.dumps(entries, indent=1, ensure_ascii=False) + "\n"


def _entry(finding: Finding, place: Location, mark: str, below: str) -> dict[str, Any]:
    return {
        "description": visible(f"{finding.message}; {finding.hint}" if finding.hint else finding.message),
        "check_name": f"{finding.rule}-{finding.slug}",
        "fingerprint": mark,
        "severity": _SEVERITY[finding.severity],
        "location": {"path": from_top(place.path, below).removeprefix("./"), "lines": {"begin": max(place.line, 1)}},
    }
