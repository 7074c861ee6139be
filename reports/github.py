"""`--format github`: workflow commands that GitHub Actions turns into annotations at the lines they name."""

from __future__ import annotations

from ..checks.finding import SEVERITIES, Finding, Severity
from ..checks.report import Report
from . import concise
from .inputs import Owners, from_top, inputs
from .wording import SEVERITY_WORD, counted, place, verdict_line, visible

SHOWN = 10
"""Annotations of one kind that GitHub shows of a step (its REST API, "update a check run", says so of Actions)."""
_COMMAND: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "notice"}


def render(report: Report, below: str = "") -> str:
    """The first ten annotations of each kind, most severe first; the rest as a folded list; the verdict as a line.

    Escapes follow GitHub's toolkit (`packages/core/src/command.ts`): `%`, carriage return and newline everywhere, and
    in properties `:` and `,` as well.

    Args:
        report: what to tell.
        below: where the folder of the report's paths is in the repository, `deploy/`.
    """
    owners = Owners(inputs(report))
    live = [finding for finding in report.findings if finding.suppressed is None]
    kinds = {severity: [finding for finding in live if finding.severity == severity] for severity in SEVERITIES}
    lines = [_annotation(report, owners, finding, below) for found in kinds.values() for finding in found[:SHOWN]]
    more = {severity: len(found) - SHOWN for severity, found in kinds.items() if len(found) > SHOWN}
    if more:
        said = ", ".join(counted(number, f"more {SEVERITY_WORD[severity]}") for severity, number in more.items())
        rest = [finding for found in kinds.values() for finding in found[SHOWN:]]
        lines.append(f"::group::{_data(said)} (GitHub shows {SHOWN} annotations of a kind for each step)")
        lines += [_plain(concise.line(report, finding, owners)) for finding in rest]
        lines.append("::endgroup::")
    return "\n".join([*lines, _plain(f"reasonctl {report.command}: {verdict_line(report)}")]) + "\n"


def _annotation(report: Report, owners: Owners, finding: Finding, below: str) -> str:
    properties = {"title": f"{finding.rule} {finding.slug}"}
    if finding.location:
        where = finding.location
        file = visible(from_top(where.path, below))
        properties = {"file": file, "line": str(where.line), "col": str(where.column), **properties}
    about = "" if place(finding) else f"{visible(owners.place(report, finding).path)}: "
    text = f"{about}{visible(finding.message)}" + (f"\n{visible(finding.hint)}" if finding.hint else "")
    listed = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{_COMMAND[finding.severity]} {listed}::{_data(text)}"


def _plain(text: str) -> str:
    """A line that the runner takes for no command: neither `::` at its start nor the old `##[` anywhere in it."""
    text = text.replace("##[", "# #[")
    return f"| {text}" if text.lstrip().startswith("::") else text


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
