"""`--format markdown`: the verdict and the findings as tables, for a pull-request comment or a job summary."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from ..checks.finding import SEVERITIES, Finding
from ..checks.report import Report
from .inputs import Owners, Run, inputs, runs
from .wording import SEVERITY_WORD, about, counted, shortened, tally, visible

COMMENT = 65_536
"""What GitHub takes as one comment: characters by its own message, so bytes are never more. GitLab takes a million."""
_OPEN = 25
"""Findings that are shown unfolded."""
_CELL = 1_000
"""Characters of one text."""
_SPECIAL = str.maketrans({char: f"\\{char}" for char in "\\`*_[]|~$"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"})
_HEAD = ("| | rule | where | what | instead |", "|---|---|---|---|---|")


def render(report: Report, limit: int = COMMENT) -> str:
    """Heading with the verdict, what fails the call, then folded: the rest, what is suppressed, what was not seen.

    Args:
        report: what to tell.
        limit: bytes of UTF-8 that it may take. What does not fit is left out by whole rows, and said to be.
    """
    page = _Page(limit)
    page.add(f"### reasonctl {report.command}: {report.verdict}", "", f"{tally(report)}, judged as {_target(report)}.")
    told = [run for run in runs(report) if run.name is not None]
    if told:
        page.table(("| run | judged as | verdict |", "|---|---|---|"), map(_run, told), what="run")
    owners = Owners(inputs(report))
    live = [finding for finding in report.findings if finding.suppressed is None]
    quiet = [finding for finding in report.findings if finding.suppressed is not None]
    first = (report.counting or [finding for finding in live if finding.severity != "info"])[:_OPEN]
    shown = {id(finding) for finding in first}
    rest = [finding for finding in live if id(finding) not in shown]
    page.findings([_row(report, owners, finding) for finding in first], first)
    skipped = [_reason(row.surface, row.reason) for row in report.coverage if row.status in ("partial", "skipped")]
    if skipped:
        page.add("", f"Not fully evaluated: {shortened('; '.join(map(_plain, skipped)), 4 * _CELL)}.")
    for title, folded in ((_kinds(rest, "more " if first else ""), rest), (f"{len(quiet)} suppressed", quiet)):
        page.findings([_row(report, owners, finding) for finding in folded], folded, title=title)
    return page.text()


class _Page:
    """Collects lines while they fit."""

    _SPARE = 250
    """Bytes kept for the ends of folded parts, and for a last line that says what did not fit."""

    def __init__(self, limit: int) -> None:
        self._left = limit - self._SPARE
        self._lines: list[str] = []
        self._cut: Counter[str] = Counter()

    def _take(self, lines: Sequence[str]) -> bool:
        size = sum(len(_bytes(line)) + 1 for line in lines)
        if size > self._left:
            return False
        self._left -= size
        self._lines += lines
        return True

    def add(self, *lines: str) -> None:
        if not self._take(lines):
            self._cut["line"] += 1

    def table(self, head: Sequence[str], rows: Iterable[str], *, what: str) -> None:
        fits = self._take(["", *head])
        for row in rows:
            fits = fits and self._take([row])
            if not fits:
                self._cut[what] += 1

    def findings(self, rows: Sequence[str], findings: Sequence[Finding], *, title: str | None = None) -> None:
        """A table of findings, folded under `title` where there is one."""
        start = ["", f"<details><summary>{title}</summary>"] if title is not None else []
        opened = bool(rows) and self._take([*start, "", *_HEAD, rows[0]])
        fits = opened
        for index, (row, finding) in enumerate(zip(rows, findings, strict=True)):
            fits = fits and (index == 0 or self._take([row]))
            if not fits:
                self._cut["suppressed" if finding.suppressed is not None else SEVERITY_WORD[finding.severity]] += 1
        if opened and title is not None:
            self._lines += ["", "</details>"]

    def text(self) -> str:
        if self._cut:
            said = ", ".join(
                f"{number} suppressed" if kind == "suppressed" else counted(number, kind)
                for kind, number in self._cut.items()
            )
            self._lines += ["", f"Left out here for want of room: {said}. `--format json` has everything."]
        return "\n".join(self._lines) + "\n"


def _run(run: Run) -> str:
    return f"| {_cell(run.name or run.command)} | {_cell(run.target)} | {_cell(run.verdict)} |"


def _row(report: Report, owners: Owners, finding: Finding) -> str:
    place = owners.place(report, finding)
    where = f"{place.path}:{place.line}:{place.column}" if finding.location is not None else place.path
    subject = about(finding)
    cells = (
        SEVERITY_WORD[finding.severity],
        f"{finding.rule} {finding.slug}",
        f"{where} ({subject})" if subject else where,
        finding.message,
        finding.hint if finding.suppressed is None else f"suppressed: {finding.suppressed}",
    )
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _kinds(findings: Sequence[Finding], more: str) -> str:
    """`3 warnings, 12 notes`, or with `more` where they continue a table."""
    counts = Counter(finding.severity for finding in findings)
    return ", ".join(counted(counts[kind], f"{more}{SEVERITY_WORD[kind]}") for kind in SEVERITIES if counts[kind])


def _target(report: Report) -> str:
    judged = list(dict.fromkeys(str(one.facts.get("target") or one.run.target) for one in inputs(report)))
    judged = judged or [report.target]
    return _cell(", ".join(judged))


def _cell(text: str) -> str:
    return _plain(shortened(visible(text), _CELL))


def _reason(surface: str, reason: str | None) -> str:
    return visible(f"{surface} ({reason})" if reason else surface)


def _plain(text: str) -> str:
    """Text that Markdown shows as it is: no formatting, no HTML, no mention of a person, no link to an issue.

    GitHub looks for `@name` and `#1` in what is rendered, so an entity hides nothing; a space of no width does, as
    Renovate writes it (its `lib/util/markdown.ts`).
    """
    return re.sub(r"@|#(?=\d)", r"\g<0>&#8203;", text.translate(_SPECIAL))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")
