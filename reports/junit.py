"""`--format junit`: a suite per input, a case per subject, failing where a finding counts towards the exit code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree import ElementTree

from ..checks.finding import Finding
from ..checks.report import Report
from .inputs import Input, Owners, inputs
from .wording import counted, input_name, place, subject_name, variant_name, verdict_line, visible

_LOST = "INT904"
"""The rule that says that the tool, a parser or a server crashed or hung: JUnit's `error`, every other a `failure`."""
_COUNTS = ("tests", "failures", "errors", "skipped")


@dataclass
class _Case:
    """One `testcase`: the findings about its subject, and why it was skipped or not looked at wholly."""

    findings: list[Finding] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    """What makes it fail without a finding of its own."""
    lost: list[str] = field(default_factory=list)
    """Why it could not be run at all."""


@dataclass
class _Suite:
    command: str
    cases: dict[str, _Case] = field(default_factory=dict)

    def case(self, title: str) -> _Case:
        return self.cases.setdefault(title, _Case())


def render(report: Report) -> str:
    """The report as `testsuites`. What was looked at without a finding is a passing case: a green run is not empty.

    A finding that does not count (below `--fail-on`, low confidence, suppressed) never fails its case; `system-out`
    tells it. A case fails exactly where the exit code would be no 0 without `--exit-zero`.
    """
    suites = _suites(report)
    root = ElementTree.Element("testsuites", name="reasonctl")
    totals = dict.fromkeys(_COUNTS, 0)
    verdict = verdict_line(report)
    for name, suite in suites.items():
        if not suite.cases:
            continue
        element = ElementTree.SubElement(root, "testsuite", name=name)
        counts = dict.fromkeys(_COUNTS, 0)
        for title, case in suite.cases.items():
            child = ElementTree.SubElement(element, "testcase", classname=f"reasonctl.{suite.command}", name=title)
            counts["tests"] += 1
            outcome = _fill(report, child, case)
            if outcome is not None:
                counts[outcome] += 1
        for key, number in counts.items():
            element.set(key, str(number))
            totals[key] += number
        out = ElementTree.SubElement(element, "system-out")
        out.text = verdict
    for key, number in totals.items():
        root.set(key, str(number))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _suites(report: Report) -> dict[str, _Suite]:
    """Suite name to its cases by title, in the order of facts, then findings, then coverage."""
    suites: dict[str, _Suite] = {}

    def suite(one: Input | None, name: str = "") -> _Suite:
        command = one.run.command if one is not None else report.command
        return suites.setdefault(one.name if one is not None else name, _Suite(command))

    examined = inputs(report)
    owners = Owners(examined)
    for one in examined:
        suite(one)  # in the order of the facts, whatever is found
    for one in examined:
        if one.run.error is not None:
            suite(one).case("as a whole").lost.append(visible(one.run.error))
        for title, outcome, why in _examined(one):
            case = suite(one).case(title)
            if outcome != "ok":
                (case.skipped if outcome == "skipped" else case.notes).append(why)
    for finding in report.findings:
        owner = owners.of(finding)
        for title in _titles(finding, owner):
            suite(owner, input_name(report, finding)).case(title).findings.append(finding)
    for one in examined:
        _unexplained(one, suite(one))
    for row in report.coverage:
        if row.status == "absent":
            continue
        owner, reason = owners.covering(row)
        if owner is not None and owner.run.error is not None:
            continue
        case = suite(owner, input_name(report)).case(f"looked at {visible(row.surface)}")
        if row.status == "examined":
            continue
        said = visible(reason or "not evaluated")
        if report.policy.fail_on_incomplete:
            case.failed.append(said)
        else:
            (case.skipped if row.status == "skipped" else case.notes).append(said)
    heavy = sum(number for kind, number in report.unlisted.items() if report.policy.weighs(*kind))
    if heavy:
        suite(None, input_name(report)).case("findings that are not listed").failed.append(
            f"{counted(heavy, 'more finding')} of these rules"
        )
    return suites


def _examined(one: Input) -> Iterator[tuple[str, str, str]]:
    """(title, `ok`, `skipped` or `noted`, why) of everything the facts say was run, titled as findings about it are."""
    facts = one.facts
    parser = facts.get("parser") if one.run.command == "audit" else None
    for candidate in (parser or {}).get("candidates", []):
        if parser and candidate["name"] == parser.get("configured"):
            yield f"parser {candidate['name']}", "ok", ""
    for item in facts.get("inputs") or []:
        yield f"{counted(item['traces'], 'trace')} read", "ok", ""
    for result in facts.get("results") or []:
        status = str(result["status"])
        outcome = {"ok": "ok", "unsupported": "skipped"}.get(status, "noted")
        why = visible(str(result.get("reason") or status))
        yield subject_name({"trace": result["trace"], "parser": result["parser"]}), outcome, why
    for row in facts.get("resolutions") or []:
        request = {"reasoning_effort": row["effort"], "thinking_token_budget": row["request_budget"]}
        named = {key: value for key, value in request.items() if value is not None}
        yield f"{variant_name(named)}, max_tokens={row['max_tokens']}", "ok", ""
    for case in facts.get("cases") or []:
        open_ = case["ok"] is None and not case.get("lost")
        yield visible(str(case["name"])), "skipped" if open_ else "ok", "inconclusive"


def _titles(finding: Finding, owner: Input | None) -> list[str]:
    """The cases that a finding belongs to: of a verification those it was made of, else the one of its subject."""
    subject = dict(finding.subject)
    if owner is not None and owner.run.command == "verify":
        known = {str(case["name"]) for case in owner.facts.get("cases") or []}
        named = [case.get("name") for case in finding.evidence.get("cases") or [subject.get("request") or {}]]
        hit = [visible(str(name)) for name in named if name in known]
        if hit:
            return hit
    for key in ("server", "model"):
        if owner is not None and subject.get(key) == getattr(owner, key):
            subject.pop(key, None)
    return [subject_name(subject) or "as a whole"]


def _unexplained(one: Input, suite: _Suite) -> None:
    """A case of a verification that differs fails with the finding of its kind, which lists the first few alone."""
    if one.run.command != "verify":
        return
    found = [finding for case in suite.cases.values() for finding in case.findings]
    for case in one.facts.get("cases") or []:
        told = suite.case(visible(str(case["name"])))
        if case["ok"] is False and not told.findings:
            told.findings += found[:1]


def _fill(report: Report, element: ElementTree.Element, case: _Case) -> str | None:
    """Write a case's outcome; which of the suite's counts it belongs to, None where it passed."""
    counting = [finding for finding in case.findings if report.policy.counts(finding)]
    others = [_told(finding) for finding in case.findings if not report.policy.counts(finding)] + case.notes
    outcome = None
    if counting or case.failed or case.lost:
        lost = [finding for finding in counting if finding.rule == _LOST]
        outcome = "errors" if lost or case.lost else "failures"
        first = next(iter(lost or counting), None)
        failure = ElementTree.SubElement(
            element,
            "error" if outcome == "errors" else "failure",
            type=f"{first.rule} {first.slug}" if first is not None else "refused" if case.lost else "incomplete",
            message=visible(first.message) if first is not None else (case.lost + case.failed)[0],
        )
        failure.text = "\n".join([*case.lost, *map(_told, counting), *case.failed])
    elif case.skipped:
        outcome = "skipped"
        ElementTree.SubElement(element, "skipped", message="; ".join(case.skipped))
    if others:
        out = ElementTree.SubElement(element, "system-out")
        out.text = "\n".join(others)
    return outcome


def _told(finding: Finding) -> str:
    where = place(finding)
    lines = [f"{finding.severity} {finding.rule} {finding.slug}: {visible(finding.message)}"]
    lines += [f"  at: {where}"] if where else []
    lines += [f"  instead: {visible(finding.hint)}"] if finding.hint else []
    lines += [f"  suppressed: {visible(finding.suppressed)}"] if finding.suppressed is not None else []
    return "\n".join(lines)
