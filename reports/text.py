"""`--format text`: for a person at a terminal. 40 to 110 columns, understood without colour, last line = verdict."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import groupby
from typing import Any

from rich.text import Text

from ..checks.finding import Finding
from ..checks.report import Report
from . import text_audit, text_budget, text_check_parser, text_gate, text_replay, text_verify
from .evidence import cell_name, is_split, telling
from .page import STYLE, Page, split_text, styled
from .paste import Advice
from .wording import SEVERITY_WORD, about, compact, place, quoted, shortened, verdict_words, visible

_FACTS: Mapping[str, Callable[[Page, Report], Collection[int] | None]] = {
    "audit": text_audit.show,
    "replay": text_replay.show,
    "validate-config": text_budget.show,
    "verify": text_verify.show,
    "check-parser": text_check_parser.show,
    "gate": text_gate.show,
}
_ALIKE = 4
"""Findings of one rule that are shown in full; the rest are counted (`--verbose` shows all)."""


def render(
    report: Report, *, width: int = 100, colour: bool = False, verbose: bool = False, quiet: bool = False
) -> str:
    """The report as text.

    Args:
        width: columns to fill.
        colour: whether to write colour codes.
        verbose: show info findings, and more rows and longer texts of the facts.
        quiet: only the verdict line.
    """
    page = Page(width=width, colour=colour, verbose=verbose)
    if not quiet:
        show = _FACTS.get(report.command)
        told = show(page, report) if show is not None else None
        _findings(page, report, told or ())
        _coverage(page, report)
    tallied, *more = verdict_words(report, hidden=not verbose and not quiet)
    verdict = report.verdict.upper()
    if len("; ".join((f"{verdict}  {tallied}", *more))) > width and not quiet:
        page.line("; ".join(more))  # the last line is the verdict, and has to fit
        more = []
    page.line(styled(verdict, report.verdict), Text(f"  {'; '.join((tallied, *more))}"), wrap=False)
    return page.text()


def _findings(page: Page, report: Report, told: Collection[int]) -> None:
    """The findings, but for those whose `id` is in `told`: the facts have shown them."""
    left = [finding for finding in report.findings if id(finding) not in told]
    shown = [f for f in left if page.verbose or (f.suppressed is None and f.severity != "info")]
    for _, group in groupby(shown, key=lambda finding: (finding.severity, finding.rule)):
        alike = list(group)
        full = alike if page.verbose else alike[:_ALIKE]
        for finding in full:
            _finding(page, finding)
        if len(alike) > len(full):
            page.line(styled(f"... and {len(alike) - len(full)} more {alike[0].rule} (--verbose)", "dim"), indent=2)
    if shown:
        page.blank()


def _finding(page: Page, finding: Finding) -> None:
    style = STYLE[finding.severity]
    page.line(
        Text(f"{SEVERITY_WORD[finding.severity]} {finding.rule} ", style),
        Text(f"{finding.slug}: ", STYLE["head"]),
        finding.message,
    )
    where = [part for part in (place(finding), about(finding)) if part]
    rows: list[tuple[str, str | Text]] = [("at", "   ".join(where))] if where else []
    if finding.suppressed is not None:
        rows.append(("suppressed", finding.suppressed))
    if finding.confidence != "high":
        rows.append(("confidence", finding.confidence))
    if finding.cause:
        rows.append(("cause", finding.cause))
    rows += _evidence(page, finding.evidence)
    if finding.hint:
        rows.append(("instead", Advice(finding.hint)))
    page.fields(rows)


def _evidence(page: Page, evidence: Mapping[str, Any]) -> list[tuple[str, str | Text]]:
    """Rows for what shows the defect: known keys first and in words, the others as they come."""
    rows: list[tuple[str, str | Text]] = []
    for key, value in telling(evidence, everything=page.verbose):
        if key == "chain":
            rows += [(str(number), _step(page, step)) for number, step in enumerate(value, 1)]
        else:
            rows.append(_row(page, key, value))
    return rows


def _row(page: Page, key: str, value: Any) -> tuple[str, str | Text]:
    label = key.replace("_", " ")
    if is_split(value):
        return label, split_text(value, page.limit)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return label, shortened(", ".join(map(visible, value)), page.limit)
    if key == "request" and value == {}:
        return label, "a plain one"
    if key == "cells":
        named = [cell_name(cell) for cell in value]
        few = named if page.verbose else named[:3]
        return "seen with", "; ".join(few) + (f"; {len(named) - len(few)} more" if len(named) > len(few) else "")
    if key in ("prompt", "prompt_tail", "output") and isinstance(value, str):
        return label.removesuffix(" tail"), quoted(value, page.limit)
    if isinstance(value, Mapping) and {"output", "got"} <= value.keys():
        return label, f"{cell_name(value)}: {quoted(value['output'], page.limit)}"
    return label, shortened(compact(value), page.limit)


def _step(page: Page, step: Any) -> str:
    parts = step if isinstance(step, list | tuple) else [step]
    return shortened("  ".join(compact(part) for part in parts), page.limit)


def _coverage(page: Page, report: Report) -> None:
    examined = dict.fromkeys(visible(row.surface) for row in report.coverage if row.status in ("examined", "partial"))
    rows: list[tuple[str, str | Text]] = [("looked at", ", ".join(examined))] if examined else []
    for row in report.coverage:
        if row.status in ("partial", "skipped"):
            label = "not evaluated" if row.status == "skipped" else "only in part"
            rows.append((label, f"{row.surface}: {row.reason}" if row.reason else row.surface))
        elif row.status == "absent" and page.verbose:
            rows.append(("not given", f"{row.surface}: {row.reason}" if row.reason else row.surface))
    page.fields(rows, indent=0)
