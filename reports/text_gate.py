"""The runs of a gate, one line each: what was run, by which server's rules, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from ..checks.report import Report
from .page import Page, styled
from .terms import counts
from .wording import shortened, visible


def show(page: Page, report: Report) -> None:
    """A table of the runs. Findings and gaps follow it, those of all runs together."""
    page.table(("", "run", "judged as", ""), map(_row, report.facts["runs"]), indent=0, keep=(0, 2))
    page.blank()


def _row(run: Mapping[str, Any]) -> tuple[Text, ...]:
    verdict = str(run["verdict"])
    if "error" in run:
        return styled("not run", "incomplete"), styled(run["name"]), Text(""), styled(shortened(run["error"], 200))
    return (
        styled(verdict, verdict),
        styled(visible(run["name"])),
        styled(visible(run["target"])),
        styled(counts(run["summary"])),
    )
