"""`--format github`: workflow commands that GitHub Actions turns into annotations at the lines they name."""

from __future__ import annotations

from ..checks.finding import Finding, Severity
from ..checks.report import Report
from .wording import input_name, place, verdict_line, visible

_COMMAND: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "notice"}


def render(report: Report) -> str:
    """One annotation a finding, most severe first (a step shows ten of each kind), then the verdict as a plain line.

    Escapes follow GitHub's toolkit (`packages/core/src/command.ts`): `%`, carriage return and newline everywhere, and
    in properties `:` and `,` as well.
    """
    lines = [_annotation(report, finding) for finding in report.findings if finding.suppressed is None]
    return "\n".join([*lines, f"reasonctl {report.command}: {verdict_line(report)}"]) + "\n"


def _annotation(report: Report, finding: Finding) -> str:
    properties = {"title": f"{finding.rule} {finding.slug}"}
    if finding.location:
        where = finding.location
        properties = {"file": visible(where.path), "line": str(where.line), "col": str(where.column), **properties}
    about = "" if place(finding) else f"{input_name(report, finding)}: "
    text = f"{about}{visible(finding.message)}" + (f"\n{visible(finding.hint)}" if finding.hint else "")
    listed = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{_COMMAND[finding.severity]} {listed}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
