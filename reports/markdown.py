"""`--format markdown`: the verdict and the findings as a table, for a pull-request comment or a job summary."""

from __future__ import annotations

from ..checks.finding import Finding
from ..checks.report import Report
from .wording import SEVERITY_WORD, about, input_name, place, tally, visible

_SPECIAL = str.maketrans(
    {char: f"\\{char}" for char in "\\`*_[]|~$"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;", "@": "&#64;"}
)


def render(report: Report) -> str:
    """Heading with the verdict, a table of the findings that are not suppressed, and what was not looked at."""
    lines = [
        f"### reasonctl {report.command}: {report.verdict}",
        "",
        f"{tally(report)}, judged as {_plain(report.target)}.",
    ]
    shown = [finding for finding in report.findings if finding.suppressed is None]
    if shown:
        lines += ["", "| | rule | where | what | instead |", "|---|---|---|---|---|"]
        lines += [_row(report, finding) for finding in shown]
    skipped = [row for row in report.coverage if row.status in ("partial", "skipped")]
    if skipped:
        lines += [
            "",
            "Not fully evaluated: " + "; ".join(_plain(_reason(row.surface, row.reason)) for row in skipped) + ".",
        ]
    return "\n".join(lines) + "\n"


def _row(report: Report, finding: Finding) -> str:
    where = place(finding) or input_name(report, finding)
    subject = about(finding)
    cells = (
        SEVERITY_WORD[finding.severity],
        f"{finding.rule} {finding.slug}",
        f"{where} ({subject})" if subject else where,
        finding.message,
        finding.hint,
    )
    return "| " + " | ".join(_plain(visible(cell)) for cell in cells) + " |"


def _reason(surface: str, reason: str | None) -> str:
    return visible(f"{surface} ({reason})" if reason else surface)


def _plain(text: str) -> str:
    """Text that Markdown shows as it is: no formatting, no HTML, no mention of a person."""
    return text.translate(_SPECIAL)
