"""`--format json`: the report as `reasonctl.report/1`, the same bytes for the same outcome."""

from __future__ import annotations

import json

from ..checks.report import Report


def render(report: Report) -> str:
    """The report's JSON, indented, in a fixed order, without timestamps, ending in a newline."""
    return json.dumps(report.as_json(), indent=1, ensure_ascii=False) + "\n"
