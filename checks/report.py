"""A report: what a command looked at, what it found, and what that means for the exit code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ..errors import ReasonctlError
from .finding import CONFIDENCES, SEVERITIES, Confidence, Coverage, Finding, Severity
from .rule import rules_digest

DRAWN = "strips"
"""The key of facts that only a drawing needs: it is large, and no part of `reasonctl.report/1`."""
Verdict = Literal["pass", "fail", "incomplete"]


@dataclass(frozen=True, slots=True)
class Policy:
    """Which findings count.

    Args:
        fail_on: the lowest severity that counts, or `never`.
        min_confidence: the lowest confidence that counts.
        fail_on_incomplete: a surface that could not be examined counts too.
        exit_zero: turns exit code 1 into 0.
        select: rule ids to report; None means all.
        ignore: rule ids to leave out.
        severities: the severity that findings of a rule id get, whatever the rule gives them.
    """

    fail_on: Severity | Literal["never"] = "error"
    min_confidence: Confidence = "medium"
    fail_on_incomplete: bool = False
    exit_zero: bool = False
    select: frozenset[str] | None = None
    ignore: frozenset[str] = frozenset()
    severities: Mapping[str, Severity] = field(default_factory=dict)

    def reports(self, rule: str) -> bool:
        """Findings of this rule are reported."""
        return (self.select is None or rule in self.select) and rule not in self.ignore

    def shows(self, finding: Finding) -> bool:
        return self.reports(finding.rule)

    def graded(self, finding: Finding) -> Finding:
        """The finding with the severity that its rule was given."""
        severity = self.severities.get(finding.rule, finding.severity)
        return finding if severity == finding.severity else replace(finding, severity=severity)

    def counts(self, finding: Finding) -> bool:
        return finding.suppressed is None and self.weighs(finding.severity, finding.confidence)

    def weighs(self, severity: Severity, confidence: Confidence) -> bool:
        """A finding of this severity and confidence counts, where nothing suppresses it."""
        if self.fail_on == "never":
            return False
        grave = SEVERITIES.index(severity) <= SEVERITIES.index(self.fail_on)
        return grave and CONFIDENCES.index(confidence) <= CONFIDENCES.index(self.min_confidence)


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of one checking command, in every format's terms.

    `facts` is the command's own part of the JSON report, JSON-valued. `policy` decides the verdict and the exit code,
    which therefore never depend on the format. `unlisted` are findings that were made and not kept, by severity and
    confidence, where a format that shows few of many needs no more of them. `refused` are the parts of a gate that
    could not be run: then the exit code is theirs, a wrong call before a failed tool.
    """

    command: str
    target: str
    engine: Mapping[str, Any]
    facts: Mapping[str, Any]
    findings: Sequence[Finding]
    coverage: Sequence[Coverage]
    policy: Policy = Policy()
    unlisted: Mapping[tuple[Severity, Confidence], int] = field(default_factory=dict)
    refused: Sequence[ReasonctlError] = ()

    @property
    def counting(self) -> list[Finding]:
        """The findings that make the command fail."""
        return [finding for finding in self.findings if self.policy.counts(finding)]

    @property
    def failed(self) -> bool:
        """Whether any finding counts, those that are not listed included."""
        return bool(self.counting) or any(self.policy.weighs(*kind) for kind, number in self.unlisted.items() if number)

    @property
    def incomplete(self) -> bool:
        return any(row.status in ("partial", "skipped") for row in self.coverage)

    @property
    def verdict(self) -> Verdict:
        if self.failed:
            return "fail"
        return "incomplete" if self.incomplete else "pass"

    @property
    def exit_code(self) -> int:
        """0 or 1, unless a part was refused; other calls that went wrong never get as far as a report."""
        if self.refused:
            return min(error.exit_code for error in self.refused)
        failed = self.failed or (self.policy.fail_on_incomplete and self.incomplete)
        return int(failed and not self.policy.exit_zero)

    @property
    def summary(self) -> dict[str, int]:
        live = [finding for finding in self.findings if finding.suppressed is None]
        counts: dict[str, int] = {severity: sum(f.severity == severity for f in live) for severity in SEVERITIES}
        for (severity, _), number in self.unlisted.items():
            counts[severity] += number
        return counts | {"suppressed": len(self.findings) - len(live)}

    def as_json(self) -> dict[str, Any]:
        """The report as `reasonctl.report/1`."""
        from .. import __version__

        return {
            "schema": "reasonctl.report/1",
            "tool": {"name": "reasonctl", "version": __version__, "rules_digest": rules_digest()},
            "command": self.command,
            "target": self.target,
            "engine": dict(self.engine),
            "verdict": self.verdict,
            "facts": _undrawn(self.facts),
            "findings": [finding.as_json() for finding in self.findings],
            "coverage": [row.as_json() for row in self.coverage],
            "summary": self.summary,
        }


def _undrawn(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts without drawings, a gate's runs likewise."""
    kept = {key: value for key, value in facts.items() if key != DRAWN}
    if isinstance(kept.get("runs"), list):
        kept["runs"] = [{**run, "facts": _undrawn(run["facts"])} if "facts" in run else run for run in kept["runs"]]
    return kept


def make_report(
    command: str,
    *,
    target: str,
    engine: Mapping[str, Any],
    facts: Mapping[str, Any],
    findings: Iterable[Finding],
    coverage: Iterable[Coverage],
    policy: Policy,
    unlisted: Mapping[tuple[Severity, Confidence], int] | None = None,
) -> Report:
    """A report with the findings the policy shows, most severe first, in an order that two runs share."""
    shown = ordered(policy.graded(f) for f in findings if policy.shows(f))
    return Report(command, target, dict(engine), dict(facts), tuple(shown), tuple(coverage), policy, unlisted or {})


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """Most severe first, in an order that two runs share."""
    return sorted(findings, key=_order)


def _order(finding: Finding) -> tuple[Any, ...]:
    place = finding.location
    where = (place.path, place.line, place.column) if place else ("", 0, 0)
    return (SEVERITIES.index(finding.severity), finding.rule, where, repr(sorted(finding.subject.items())))
