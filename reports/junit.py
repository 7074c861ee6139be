"""`--format junit`: a suite per input, a case per subject, failing where a finding counts towards the exit code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree import ElementTree

from ..checks.finding import Finding
from ..checks.report import Report
from .wording import input_name, place, subject_name, variant_name, verdict_line, visible


@dataclass
class _Case:
    """One `testcase`: the findings about its subject, and why it was skipped where it was."""

    findings: list[Finding] = field(default_factory=list)
    skipped: str | None = None


def render(report: Report) -> str:
    """The report as `testsuites`. What was looked at without a finding is a passing case: a green run is not empty.

    A finding that does not count (below `--fail-on`, low confidence, suppressed) never fails its case; `system-out`
    tells it.
    """
    suites = _suites(report)
    root = ElementTree.Element("testsuites", name="reasonctl")
    totals = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    for name, cases in suites.items():
        suite = ElementTree.SubElement(root, "testsuite", name=name)
        counts = dict.fromkeys(totals, 0)
        for title, case in cases.items():
            element = ElementTree.SubElement(suite, "testcase", classname=f"reasonctl.{report.command}", name=title)
            counts["tests"] += 1
            counts["skipped"] += case.skipped is not None
            counts["failures"] += _fill(report, element, case)
        for key, number in counts.items():
            suite.set(key, str(number))
            totals[key] += number
        out = ElementTree.SubElement(suite, "system-out")
        out.text = verdict_line(report)
    for key, number in totals.items():
        root.set(key, str(number))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _suites(report: Report) -> dict[str, dict[str, _Case]]:
    """Suite name to its cases by title, in the order of facts, then findings, then coverage."""
    main = input_name(report)
    suites: dict[str, dict[str, _Case]] = {}

    def case(suite: str, title: str) -> _Case:
        return suites.setdefault(suite, {}).setdefault(title, _Case())

    for suite, title in _examined(report, main):
        case(suite, title)
    for finding in report.findings:
        subject = dict(finding.subject)
        suite = visible(str(subject.pop("trace"))) if "trace" in subject else input_name(report, finding)
        case(suite, subject_name(subject) or "as a whole").findings.append(finding)
    for row in report.coverage:
        if row.status == "absent":
            continue
        entry = case(main, f"looked at {visible(row.surface)}")
        if row.status == "skipped":
            entry.skipped = visible(row.reason or "not evaluated")
    return suites


def _examined(report: Report, main: str) -> Iterator[tuple[str, str]]:
    """(suite, title) of everything the facts say was run, with the titles that findings about it have."""
    facts = report.facts
    for candidate in (facts.get("parser") or {}).get("candidates", []):
        if candidate["name"] == facts["parser"].get("configured"):
            yield main, f"parser {candidate['name']}"
    for result in facts.get("results", []):
        yield visible(str(result["trace"])), f"parser {result['parser']}"
    for row in facts.get("resolutions", []):
        request = {"reasoning_effort": row["effort"], "thinking_token_budget": row["request_budget"]}
        named = {key: value for key, value in request.items() if value is not None}
        yield main, f"{variant_name(named)}, max_tokens={row['max_tokens']}"


def _fill(report: Report, element: ElementTree.Element, case: _Case) -> bool:
    """Write a case's outcome; true where it failed."""
    counting = [finding for finding in case.findings if report.policy.counts(finding)]
    others = [finding for finding in case.findings if finding not in counting]
    if counting:
        first = counting[0]
        failure = ElementTree.SubElement(
            element, "failure", type=f"{first.rule} {first.slug}", message=visible(first.message)
        )
        failure.text = "\n".join(map(_told, counting))
    elif case.skipped is not None:
        ElementTree.SubElement(element, "skipped", message=case.skipped)
    if others:
        out = ElementTree.SubElement(element, "system-out")
        out.text = "\n".join(map(_told, others))
    return bool(counting)


def _told(finding: Finding) -> str:
    where = place(finding)
    lines = [f"{finding.severity} {finding.rule} {finding.slug}: {visible(finding.message)}"]
    lines += [f"  at: {where}"] if where else []
    lines += [f"  instead: {visible(finding.hint)}"] if finding.hint else []
    lines += [f"  suppressed: {visible(finding.suppressed)}"] if finding.suppressed is not None else []
    return "\n".join(lines)
