"""Findings of an HTML report: one card a rule, with what the rule says, and under it what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from ..checks.finding import SEVERITIES, Finding
from ..checks.report import Report
from ..checks.rule import Rule, all_rules
from .evidence import cell_name, is_split, telling
from .markup import Child, Html, el, exact, fields, join, table
from .wording import SEVERITY_WORD, about, compact, counted, place, variant_name

_MOST = 20
"""Findings of one rule that are shown."""
_LONG = 400
"""Characters of one quoted text."""


def findings(report: Report, traces: Mapping[str, str]) -> Html | None:
    """The findings that are not suppressed, the gravest first; None where there are none.

    Args:
        report: whose they are.
        traces: where a trace is drawn, by its id.
    """
    live = [finding for finding in report.findings if finding.suppressed is None]
    if not live and not report.unlisted:
        return None
    rules = all_rules()
    live.sort(key=lambda finding: (SEVERITIES.index(finding.severity), finding.rule))
    cards = [
        _card(report, rules.get(rule), list(group), traces)
        for (_, rule), group in groupby(live, key=lambda finding: (finding.severity, finding.rule))
    ]
    left = sum(report.unlisted.values())
    return el(
        "section",
        el("h2", "Findings"),
        *cards,
        el("p", f"{counted(left, 'more finding')} of these rules, not listed", class_="dim") if left else None,
        id="findings",
    )


def suppressed(report: Report) -> Html | None:
    """The findings that an ignore or a baseline covers, each with the reason given."""
    rows = [
        (
            f"{finding.rule} {finding.slug}",
            _where(finding),
            finding.message,
            el("strong", finding.suppressed),
        )
        for finding in report.findings
        if finding.suppressed is not None
    ]
    if not rows:
        return None
    head = ("rule", "where", "what", "suppressed because")
    return el(
        "section",
        el("details", el("summary", el("h2", f"Suppressed ({len(rows)})")), table(head, rows)),
        id="suppressed",
    )


def _card(report: Report, rule: type[Rule] | None, group: Sequence[Finding], traces: Mapping[str, str]) -> Html:
    first = group[0]
    counts = any(report.policy.counts(finding) for finding in group)
    head = el(
        "summary",
        el("span", SEVERITY_WORD[first.severity], class_=f"chip {first.severity}"),
        el("code", first.rule),
        el("strong", first.slug),
        el("span", counted(len(group), "finding") if len(group) > 1 else first.message, class_="lead"),
        el("span", "fails the run", class_="chip fail") if counts else None,
    )
    items = [el("li", _finding(finding, traces, told=len(group) == 1)) for finding in group[:_MOST]]
    more = len(group) - _MOST
    return el(
        "details",
        head,
        el("ol", *items, class_="findings"),
        el("p", f"and {counted(more, 'more')} of this rule (--format json has all)", class_="dim")
        if more > 0
        else None,
        _about(rule) if rule is not None else None,
        class_=f"card {first.severity}",
        open=first.severity == "error" or counts,
    )


def _about(rule: type[Rule]) -> Html:
    """What `reasonctl explain` says."""
    return el(
        "div",
        el("h4", f"What {rule.id} means"),
        fields([("what", prose(rule.what)), ("why", prose(rule.why)), ("instead", prose(rule.instead))]),
        el(
            "details",
            el("summary", "example, versions, sources"),
            lines(rule.example),
            fields([("versions", rule.versions), *(("source", source) for source in rule.sources)]),
        ),
        class_="rule",
    )


def lines(text: str) -> Html:
    """Text as it is laid out."""
    return el("pre", join(*(join(exact(line), Html("\n")) for line in text.strip().split("\n"))))


def prose(text: str) -> Html:
    """Text of our own in one paragraph; what stands between backticks is code."""
    parts = " ".join(text.split()).split("`")
    return join(*(el("code", part) if index % 2 else part for index, part in enumerate(parts)))


def _finding(finding: Finding, traces: Mapping[str, str], *, told: bool) -> Html:
    """One finding; without its message where that is `told` already."""
    rows: list[tuple[Child, Child]] = []
    where = _where(finding)
    if where:
        rows.append(("at", where))
    drawn = traces.get(str(finding.subject.get("trace")))
    if drawn is not None:
        rows.append(("drawn", el("a", f"trace {finding.subject['trace']}", href=f"#{drawn}")))
    if finding.confidence != "high":
        rows.append(("confidence", finding.confidence))
    if finding.cause:
        rows.append(("cause", el("code", finding.cause)))
    rows += [_evidence(key, value) for key, value in telling(finding.evidence)]
    test = finding.evidence.get("pytest")
    if isinstance(test, str):
        rows.append(("a test", el("details", el("summary", "to paste"), lines(test))))
    if finding.hint:
        rows.append(("instead", el("strong", prose(finding.hint))))
    return join(None if told else el("p", finding.message, class_="message"), fields(rows))


def _where(finding: Finding) -> Html | None:
    parts = [el("code", place(finding))] if place(finding) else []
    subject = about(finding)
    if subject:
        parts.append(el("span", subject, class_="subject"))
    return join(*(join(part, " ") for part in parts)) if parts else None


def _evidence(key: str, value: Any) -> tuple[Child, Child]:
    label = key.replace("_", " ")
    if key == "chain":
        steps = (
            join(
                *(
                    join(exact(compact(part), _LONG), "  ")
                    for part in (step if isinstance(step, list | tuple) else [step])
                )
            )
            for step in value
        )
        return "because", el("ol", *(el("li", step) for step in steps), class_="chain")
    if is_split(value):
        return label, split(value)
    if key == "request" and value == {}:
        return label, "a plain one"
    if key == "cells":
        return "seen with", "; ".join(map(cell_name, value[:8])) + (
            f"; {len(value) - 8} more" if len(value) > 8 else ""
        )
    if isinstance(value, str) and key in ("prompt", "prompt_tail", "output"):
        return label.removesuffix(" tail"), el("q", exact(value, _LONG), class_="raw")
    if isinstance(value, Mapping) and {"output", "got"} <= value.keys():
        return label, join(cell_name(value), ": ", el("q", exact(str(value["output"]), _LONG), class_="raw"))
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return label, exact(", ".join(value), _LONG)
    if isinstance(value, str):
        return label, exact(value, _LONG)
    if isinstance(value, Mapping) and key == "request":
        return label, el("code", exact(compact(dict(value)), _LONG))
    if isinstance(value, Mapping) and all(isinstance(one, str | int | float | bool | None) for one in value.values()):
        return label, exact(variant_name(value), _LONG)
    return label, el("code", exact(compact(value), _LONG))


def split(value: Mapping[str, Any], limit: int | None = _LONG) -> Html:
    """Reasoning and content of a split, or what was raised in place of them."""
    if value.get("error"):
        return el("span", f"raised {value['error']}", class_="bad")
    return join(
        *(
            el(
                "div",
                el("span", field, class_=f"field {field}"),
                el("q", exact(value[field], limit), class_="raw")
                if value[field] is not None
                else el("em", "null", class_="dim"),
            )
            for field in ("reasoning", "content")
            if field in value
        )
    )
