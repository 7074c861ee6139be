"""`--format gitlab`: a Code Quality report (https://docs.gitlab.com/ci/testing/code_quality/) for merge requests."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from ..checks.finding import Severity
from ..checks.report import Report
from .wording import input_name, visible

_SEVERITY: dict[Severity, str] = {"error": "critical", "warning": "minor", "info": "info"}


def render(report: Report) -> str:
    """A JSON list with an entry for every finding that is not suppressed; fingerprints are unique within the list."""
    seen: Counter[str] = Counter()
    entries: list[dict[str, Any]] = []
    for finding in report.findings:
        if finding.suppressed is not None:
            continue
        mark = finding.fingerprint
        seen[mark] += 1
        where = finding.location
        entries.append(
            {
                "description": visible(f"{finding.message}; {finding.hint}" if finding.hint else finding.message),
                "check_name": f"{finding.rule}-{finding.slug}",
                "fingerprint": mark if seen[mark] == 1 else f"{mark}-{seen[mark]}",
                "severity": _SEVERITY[finding.severity],
                "location": {
                    "path": where.path.removeprefix("./") if where else input_name(report, finding),
                    "lines": {"begin": where.line if where else 1},
                },
            }
        )
    return json.dumps(entries, indent=1, ensure_ascii=False) + "\n"
