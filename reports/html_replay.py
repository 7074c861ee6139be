"""Replayed traces in an HTML report: how parsers fared, and a card a trace, whose tokens the page's script draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..checks.finding import SEVERITIES, Finding
from ..checks.report import DRAWN
from .html_outcomes import bar, outcomes
from .html_tokens import Tokens, strip_json
from .markup import Child, Html, el, exact, fields, join, table
from .text_rates import names_of, score_table, sentence
from .wording import SEVERITY_WORD, counted

_WRONG = ("suspect", "error")
_NAMES = 6
"""Parsers that are named in one row."""


@dataclass
class Drawing:
    """What the page's script is given: every token there is, and the strips in the order of their cards.

    `anchors` says where the trace of an id is drawn first; two runs may draw it.
    """

    tokens: Tokens
    strips: list[dict[str, Any]] = field(default_factory=list)
    anchors: dict[str, str] = field(default_factory=dict)
    cards: int = 0

    @classmethod
    def of(cls, runs: Sequence[Mapping[str, Any]]) -> Drawing:
        """A drawing of all traces that the facts of these runs hold."""
        drawn = [trace for facts in runs for trace in facts.get(DRAWN) or []]
        made = cls(Tokens(trace["strip"] for trace in drawn if trace["strip"] is not None))
        for number, trace in enumerate(drawn, 1):
            made.anchors.setdefault(str(trace["trace"]), f"trace-{number}")
        return made

    def as_json(self) -> dict[str, Any]:
        return {"tokens": self.tokens.as_json(), "strips": self.strips}

    def add(self, strip: Mapping[str, Any]) -> int:
        """Take a strip up; its place."""
        self.strips.append(strip_json(self.tokens, strip))
        return len(self.strips) - 1

    def place(self, traces: Sequence[Mapping[str, Any]]) -> list[str]:
        """The ids of the cards of a run's traces, in their order."""
        self.cards += len(traces)
        return [f"trace-{self.cards - len(traces) + number}" for number in range(1, len(traces) + 1)]


def show(facts: Mapping[str, Any], findings: Sequence[Finding], drawing: Drawing) -> Html:
    """One replay.

    Args:
        facts: its own.
        findings: those of this run.
        drawing: takes its strips up.
    """
    own: dict[str, list[Finding]] = {}
    for finding in findings:
        own.setdefault(str(finding.subject.get("trace")), []).append(finding)
    drawn = facts.get(DRAWN) or []
    weights = {"error": 1000, "warning": 10, "info": 0}

    def rank(trace: Mapping[str, Any]) -> tuple[int, bool]:
        found = own.get(str(trace["trace"]), [])
        wrong = any(row["status"] in _WRONG for row in trace["results"])
        return -sum(weights[finding.severity] for finding in found), not wrong

    cards = dict(zip(map(id, drawn), drawing.place(drawn), strict=True))
    ordered = sorted(drawn, key=rank)
    number = int(facts.get("traces", len(drawn)))
    left = number - len(drawn)
    return join(
        fields(_inputs(facts)),
        el("p", sentence(facts["outcomes"], number)) if number > 1 and "outcomes" in facts else None,
        _scores(facts.get("scores") or {}, number) if number > 1 else None,
        _upgrades(facts),
        el("h4", counted(number, "trace")),
        _legend() if drawn else None,
        *(_card(trace, own.get(str(trace["trace"]), []), drawing, cards[id(trace)]) for trace in ordered),
        el("p", f"{counted(left, 'more trace')}, with less to show, not drawn (--format json has all)", class_="dim")
        if left > 0
        else None,
    )


def _legend() -> Html:
    said = (
        ("reasoning", "reasoning"),
        ("content", "content"),
        ("marker", "marker: taken away on purpose"),
        ("lost", "lost: reached no field"),
        ("leak", "a marker that reached the client"),
    )
    keys = [el("span", words, class_=f"key {kind}") for kind, words in said]
    return el("p", *keys, class_="legend")


def _inputs(facts: Mapping[str, Any]) -> list[tuple[Child, Child]]:
    rows: list[tuple[Child, Child]] = []
    server = facts.get("server")
    if server:
        said = f"{server.get('parser') or 'no reasoning parser'} ({server['path']}:{server['line']})"
        rows.append(("served with", said))
    for entry in facts.get("inputs") or []:
        words = [str(entry[key]) for key in ("format", "model", "server", "parser") if entry.get(key)]
        rows.append(("input", ", ".join([str(entry["path"]), counted(int(entry["traces"]), "trace"), *words])))
    told = {
        "trace": "token texts in the trace",
        "assumed": "assumed: every marker one token (--model gives the real one)",
    }
    rows.append(("tokenizer", told.get(str(facts.get("tokenizer")), "the model's own")))
    return rows


def _scores(scores: Mapping[str, Mapping[str, int]], traces: int) -> Html | None:
    """How many of its traces each parser gets right."""
    head, rows = score_table(scores, traces)
    return table(head, [(names_of(names, _NAMES), *cells) for names, cells in rows], class_="scores") if rows else None


def _upgrades(facts: Mapping[str, Any]) -> Html | None:
    """Which parsers split as before in another vLLM, and which do not."""
    versions = [str(entry.get("vllm_version")) for entry in facts.get("vllm") or []]
    tables = [
        join(
            el("h4", f"From vLLM {versions[0]} to {after}"),
            table(
                ("parser", "splits as before", "differently"),
                [
                    (name, int(row["same"]), el("span", int(row["differs"]), class_="bad") if row["differs"] else "–")
                    for name, row in sorted(rows.items(), key=lambda item: (-item[1]["differs"], item[0]))
                ],
            ),
        )
        for after, rows in (facts.get("upgrades") or {}).items()
    ]
    return join(*tables) if tables else None


def _card(trace: Mapping[str, Any], findings: Sequence[Finding], drawing: Drawing, place: str) -> Html:
    name = str(trace["trace"])
    strip = trace["strip"]
    statuses = {str(row["parser"]): row for row in trace["results"]}
    rows = strip["rows"] if strip is not None else []
    head = el(
        "summary",
        _chip(findings, rows),
        el("strong", name),
        el("span", _lead(trace, findings), class_="lead"),
        bar(rows[0]["spans"], rows[0]["leaks"]) if rows and rows[0]["spans"] else None,
    )
    stands = f"{trace['path']}:{trace['line']}"
    about: list[tuple[Child, Child]] = [] if name == stands else [("recorded in", stands)]
    if strip is not None and strip["prompt"] is not None:
        ends = join(el("b", strip["state"] or ""), " ", el("q", exact(strip["prompt"][-80:]), class_="raw"))
        about.append(("prompt ends", ends))
    if trace.get("best"):
        about.append(("explained by", f"{', '.join(trace['best'][:_NAMES])}: {trace['why']}"))
    about += [(SEVERITY_WORD[one.severity], _linked(one)) for one in findings]
    unrun = [row for row in trace["results"] if row["status"] == "unsupported"]
    return el(
        "details",
        head,
        fields(about),
        outcomes(rows, statuses, _accused(findings)) if rows else None,
        el("div", class_="strip", data_strip=drawing.add(strip)) if strip is not None and strip["texts"] else None,
        _unrun(unrun),
        class_="card trace",
        id=place,
    )


def _chip(findings: Sequence[Finding], rows: Sequence[Mapping[str, Any]]) -> Html:
    """The gravest finding's severity; without one, whether what came first is free of markers."""
    gravest = min((SEVERITIES.index(finding.severity) for finding in findings), default=len(SEVERITIES))
    if gravest < SEVERITIES.index("info"):
        return el("span", SEVERITY_WORD[SEVERITIES[gravest]], class_=f"chip {SEVERITIES[gravest]}")
    if rows and rows[0]["leaks"]:
        return el(
            "span", "leak", class_="chip warning", title="a marker reached the client; no parser is accused of it"
        )
    return el("span", "✓", class_="chip good", title="nothing found")


def _lead(trace: Mapping[str, Any], findings: Sequence[Finding]) -> str:
    if findings and findings[0].severity != "info":
        return findings[0].message
    strip = trace["strip"]
    if strip is None:
        return str(trace["why"])
    words = [counted(len(strip["texts"]), "token")]
    words += [counted(len(strip["deltas"]), "delta")] if strip["deltas"] else []
    words += [f"finish_reason {trace['finish_reason']}"] if trace.get("finish_reason") else []
    return ", ".join(words)


def _linked(finding: Finding) -> Html:
    return join(el("code", finding.rule), f" {finding.slug}: {finding.message}")


def _accused(findings: Sequence[Finding]) -> dict[str, list[str]]:
    """By parser, the rules it breaks on this trace."""
    found: dict[str, list[str]] = {}
    for finding in findings:
        if finding.severity != "info" and finding.rule not in found.setdefault(str(finding.subject.get("parser")), []):
            found[str(finding.subject.get("parser"))].append(finding.rule)
    return found


def _unrun(rows: Sequence[Mapping[str, Any]]) -> Html | None:
    reasons: dict[str, list[str]] = {}
    for row in rows:
        reasons.setdefault(str(row.get("reason") or "no reason given"), []).append(str(row["parser"]))
    if not reasons:
        return None
    told = [el("li", names_of(names, _NAMES), ": ", exact(reason, 300)) for reason, names in reasons.items()]
    return el("details", el("summary", f"not run: {counted(len(rows), 'parser')}"), el("ul", *told), class_="dim")
