"""`--format concise`: a line a finding, `path:line:column: severity RULE slug [where]: message; hint`."""

from __future__ import annotations

from ..checks.finding import Finding
from ..checks.report import Report
from .inputs import Owners, inputs
from .wording import about, visible


def render(report: Report) -> str:
    """A line for every finding that is not suppressed, most severe first; nothing at all where there is none."""
    owners = Owners(inputs(report))
    live = [finding for finding in report.findings if finding.suppressed is None]
    return "".join(line(report, finding, owners) + "\n" for finding in live)


def line(report: Report, finding: Finding, owners: Owners) -> str:
    """One finding on one line, with the target that it was judged as where that is one."""
    place = owners.place(report, finding)
    target = owners.target(report, finding)
    where = " › ".join(part for part in (visible(target), about(finding)) if part)
    start = f"{visible(place.path)}:{place.line}:{place.column}"
    text = visible("; ".join(part for part in (finding.message, finding.hint) if part))
    head = " ".join([finding.severity, finding.rule, finding.slug, *([f"[{where}]"] if where else [])])
    return f"{start}: {head}: {text}"
