"""`--format html`: one file with everything in it, to be looked at in a browser or printed; it asks no network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from .. import __version__
from ..checks.finding import Finding
from ..checks.report import Report
from . import html_audit, html_bench, html_budget, html_replay, html_verify
from .html_findings import findings, suppressed
from .html_replay import Drawing
from .inputs import Owners, Run, inputs, runs
from .markup import Child, Html, el, embedded, exact, join, table
from .terms import counts
from .wording import counted, judged_as, verdict_line

_MARK = {"pass": "✓", "fail": "✕", "incomplete": "◐"}
_STATUS = {"examined": "✓ examined", "partial": "◐ in part", "skipped": "✕ not evaluated", "absent": "– not given"}

_TITLES: Mapping[str, str] = {
    "audit": "The model and its parsers",
    "replay": "Traces",
    "validate-config": "Budgets",
    "verify": "The server's cases",
    "check-parser": "The test bench",
}
"""What a command's part is called where it is the whole report."""


def render(report: Report) -> str:
    """The report as an HTML document. The same outcome gives the same bytes."""
    parts = runs(report)
    drawing = Drawing.of([run.facts for run in parts])
    owners = Owners(inputs(report))
    sections = [_run(report, run, number, drawing, owners) for number, run in enumerate(parts, 1)]
    gate = len(parts) > 1 or any(run.name is not None for run in parts)
    body = [
        _header(report),
        _nav(report, parts) if gate else None,
        el(
            "main",
            findings(report, drawing.anchors),
            *sections,
            suppressed(report),
            _coverage(report),
            id="main",
        ),
        el("footer", f"reasonctl {__version__}. This page stands alone: it loads nothing and sends nothing."),
        el("div", id="hint", role="tooltip", hidden=True),
        el("script", embedded(drawing.as_json()), type="application/json", id="drawing") if drawing.strips else None,
    ]
    script, style = _asset("report.js"), _asset("report.css")
    head = [
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=_policy(script, style)),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("title", f"{report.verdict}: reasonctl {report.command}"),
        Html(f"<style>{style}</style>"),
    ]
    page = join(el("head", *head), el("body", *body, Html(f"<script>{script}</script>")))
    return f'<!doctype html>\n<html lang="en">{page}</html>\n'


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _policy(script: str, style: str) -> str:
    """Only this file's own script and style run, whatever a text manages to smuggle in; nothing is fetched."""
    own = {name: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for name, text in
           (("script", script), ("style", style))}  # fmt: skip
    return (
        f"default-src 'none'; script-src 'sha256-{own['script']}'; style-src 'sha256-{own['style']}'; base-uri 'none'"
    )


def _header(report: Report) -> Html:
    said = verdict_line(report).partition("  ")[2]
    return el(
        "header",
        el("a", "skip to the report", href="#main", class_="skip"),
        el(
            "div",
            el("span", f"reasonctl {report.command}", class_="tool"),
            el("button", "theme: as the system", type="button", id="theme", hidden=True),
            class_="top",
        ),
        el("h1", _verdict(report.verdict), el("span", said)),
        el("p", f"judged as {judged_as(report)}", class_="dim"),
    )


def _verdict(verdict: str) -> Html:
    mark = el("span", _MARK.get(verdict, "?"), aria_hidden="true")
    return el("span", mark, f" {verdict.upper()} ", class_=f"verdict {verdict}")


def _nav(report: Report, parts: tuple[Run, ...]) -> Html:
    """A gate's runs, each with its verdict."""
    rows = [
        (
            _verdict(run.verdict),
            el("a", run.name or run.command, href=f"#run-{number}"),
            run.target,
            exact(run.error, 300) if run.error else counts(told.get("summary") or {}),
        )
        for number, (run, told) in enumerate(zip(parts, report.facts["runs"], strict=True), 1)
    ]
    config = report.facts.get("config")
    title = f"{counted(len(parts), 'run')} of {config}" if config else counted(len(parts), "run")
    return el("nav", el("h2", title), table(("", "run", "judged as", ""), rows), aria_label="runs")


def _run(report: Report, run: Run, number: int, drawing: Drawing, owners: Owners) -> Html | None:
    """What one command looked at; None for one of which there is nothing to draw."""
    if run.error is not None:
        drawn: Child = el("p", exact(run.error), class_="bad")
    else:
        drawn = _drawn(report, run, drawing, owners)
    if not drawn:
        return None
    title = run.name or _TITLES.get(run.command, run.command)
    return el("section", el("h2", title), drawn, id=f"run-{number}")


def _drawn(report: Report, run: Run, drawing: Drawing, owners: Owners) -> Html | None:
    facts: Mapping[str, Any] = run.facts
    if run.command == "audit":
        return _each(facts, run.target, html_audit.show)
    if run.command == "replay":
        return html_replay.show(facts, _own(report, run, owners), drawing)
    if run.command == "validate-config":
        return _each(facts, run.target, html_budget.show)
    if run.command == "check-parser" and "cases" in facts:
        return html_bench.show(facts)
    return html_verify.show(facts) if run.command == "verify" else None


def _own(report: Report, run: Run, owners: Owners) -> Sequence[Finding]:
    """The findings that one run made."""
    if run.name is None:
        return report.findings
    owned = ((finding, owners.of(finding)) for finding in report.findings)
    return [finding for finding, one in owned if one is not None and one.run.facts is run.facts]


def _each(facts: Mapping[str, Any], target: str, show: Callable[[Mapping[str, Any], str], Html]) -> Html:
    """The facts drawn; of several servers one after the other."""
    servers = facts.get("servers")
    if not isinstance(servers, list):
        return show(facts, target)
    return join(*(join(el("h3", str(server.get("name"))), _server(server, target, show)) for server in servers))


def _server(server: Mapping[str, Any], target: str, show: Callable[[Mapping[str, Any], str], Html]) -> Html:
    if server.get("engine"):
        return el("p", f"a {server['engine']} server, not evaluated", class_="dim")
    return show(server, str(server.get("target") or target))


def _coverage(report: Report) -> Html | None:
    """What was looked at, and above all what was not."""
    order = ("skipped", "partial", "examined", "absent")
    rows = sorted(report.coverage, key=lambda row: order.index(row.status))
    styles = {"examined": "good", "partial": "warn", "skipped": "bad", "absent": "dim"}
    told = [
        (row.surface, el("span", _STATUS[row.status], class_=styles[row.status]), exact(row.reason or "", 1000))
        for row in rows
    ]
    if not told:
        return None
    return el("section", el("h2", "What was looked at"), table(("surface", "", ""), told), id="coverage")
