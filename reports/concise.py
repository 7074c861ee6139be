"""`--format concise`: a line a finding, `path:line:column: severity RULE slug [where]: message; hint`."""

from __future__ import annotations

from ..checks.finding import Finding, Location
from ..checks.report import Report
from .inputs import Owners, inputs
from .wording import about, visible


def render(report: Report) -> str:
    """A line for every finding that is not suppressed, most severe first; nothing at all where there is none."""
    owners = Owners(inputs(report))
    live = [finding for finding in report.findings if finding.suppressed is None]
    return "".join(line(report, finding, owners.place(report, finding)) + "\n" for finding in live)


def line(report: Report, finding: Finding, place: Location) -> str:
    """One finding on one line. The runs of a gate are each judged as another server: there the target is left out."""
    target = report.target if report.command != "gate" else ""
    where = " › ".join(part for part in (visible(target), about(finding)) if part)
    start = f"{visible(place.path)}:{place.line}:{place.column}"
    text = visible("; ".join(part for part in (finding.message, finding.hint) if part))
    head = " ".join([finding.severity, finding.rule, finding.slug, *([f"[{where}]"] if where else [])])
    return f"{start}: {head}: {text}"
