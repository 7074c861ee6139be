"""What is known and lived with: ignores and the baseline, put to findings, and those of them that met none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date

from ..checks.finding import Finding
from ..checks.internal import StaleSuppression
from ..checks.report import Report
from .baseline import Baseline, Entry
from .settings import Ignore

OWN = ("INT901", "INT902", "INT903", "INT904")
"""The tool's word on its own run and on what is expected of it: no baseline covers that, or a run that lost results
would look like a whole one, and an expectation would hold nothing."""


class Suppressions:
    """The ignores of a settings file and a baseline, and which of them have met a finding so far.

    Args:
        ignores: in the order of the file; the first that matches gives the reason.
        baseline: None without one.
        today: the day that `expires` is held against.
    """

    def __init__(self, ignores: Sequence[Ignore] = (), baseline: Baseline | None = None, *, today: date) -> None:
        self._ignores = ignores
        self._baseline = baseline
        self._today = today
        self._known = {entry.fingerprint for entry in baseline.entries} if baseline is not None else set()
        self._met: set[int] = set()
        self._met_entries: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._ignores or self._known)

    def put_to(self, report: Report) -> Report:
        """The report with `suppressed` set where an ignore or the baseline covers a finding; its paths are final."""
        return replace(report, findings=tuple(map(self._judged, report.findings))) if self else report

    def stale(self, shown: Callable[[str], bool]) -> Iterator[Finding]:
        """INT901 for every ignore and every entry of the baseline that has met nothing.

        Args:
            shown: whether the run reports findings of a rule; what is switched off cannot be missed.
        """
        for number, ignore in enumerate(self._ignores):
            if number not in self._met and all(map(shown, ignore.rules)):
                subject = f" about {json.dumps(dict(ignore.subject), ensure_ascii=False)}" if ignore.subject else ""
                yield StaleSuppression.finding(
                    f"the ignore of {ignore.rule}{subject} matches no finding",
                    hint="remove it: what it was for is mended, or is called otherwise now",
                    subject={"key": f"ignore {ignore.rule}{subject}"},
                    location=ignore.place,
                    evidence={"reason": ignore.reason},
                )
        if self._baseline is None:
            return
        for entry in self._baseline.entries:
            if entry.fingerprint not in self._met_entries and shown(entry.rule):
                yield self._stale_entry(entry, self._baseline)

    def _stale_entry(self, entry: Entry, baseline: Baseline) -> Finding:
        about = " of ".join(part for part in (entry.rule, entry.path) if part)
        return StaleSuppression.finding(
            f"the baseline's {about} is found no more",
            hint=f"write the baseline anew: reasonctl baseline write {baseline.shown}",
            subject={"key": f"baseline {entry.fingerprint}"},
            location=entry.place,
            evidence={"subject": dict(entry.subject)},
        )

    def _judged(self, finding: Finding) -> Finding:
        if finding.suppressed is not None:
            return finding
        reason: str | None = None
        for number, ignore in enumerate(self._ignores):
            if not _matches(ignore, finding):
                continue
            self._met.add(number)
            if ignore.expires is not None and ignore.expires < self._today:
                ended = f"it was ignored until {ignore.expires.isoformat()}: {ignore.reason}"
                finding = replace(finding, hint="; ".join(part for part in (finding.hint, ended) if part))
            elif reason is None:
                reason = ignore.reason
        if finding.fingerprint in self._known and finding.rule not in OWN:
            self._met_entries.add(finding.fingerprint)
            if reason is None and self._baseline is not None:
                reason = f"in the baseline {self._baseline.shown}"
        return finding if reason is None else replace(finding, suppressed=reason)


def _matches(ignore: Ignore, finding: Finding) -> bool:
    return finding.rule in ignore.rules and all(
        key in finding.subject and _same(finding.subject[key], value) for key, value in ignore.subject.items()
    )


def _same(one: object, other: object) -> bool:
    """Equal as JSON, in which true is not 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
