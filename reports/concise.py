"""`--format concise`: a line a finding, `path:line:column: severity RULE slug [where]: message; hint`."""

from __future__ import annotations

from ..checks.finding import Finding
from ..checks.report import Report
from .wording import about, input_name, place, visible


def render(report: Report) -> str:
    """A line for every finding that is not suppressed, most severe first; nothing at all where there is none."""
    return "".join(_line(report, finding) + "\n" for finding in report.findings if finding.suppressed is None)


def _line(report: Report, finding: Finding) -> str:
    where = " › ".join(part for part in (visible(report.target), about(finding)) if part)
    start = place(finding) or f"{input_name(report, finding)}:1:1"
    text = visible("; ".join(part for part in (finding.message, finding.hint) if part))
    return f"{start}: {finding.severity} {finding.rule} {finding.slug} [{where}]: {text}"
