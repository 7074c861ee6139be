"""What a replay showed: for each trace how the parsers split it, and which of them explain the recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rich.text import Text

from ..checks.finding import Finding
from ..checks.report import Report
from .page import STYLE, Page, split_text, styled
from .terms import FAILED, mode_name
from .text_failure import explained, failure, heading, one_line, told
from .text_rates import names_of, rates
from .text_upgrade import changed, upgrades
from .wording import compact, counted, judged_as, shortened

_TRACES, _TRACES_VERBOSE = 5, 20
"""Traces whose splits are shown; those with something wrong come first."""
_SPLITS, _SPLITS_ALONE = 3, 12
"""Ways of splitting one trace that are shown, the second where it is the only one and all is asked for; the parser that
served it and the one that explains it come first."""
_INPUTS, _INPUTS_VERBOSE = 4, 40
_LINES = 100
"""Findings of traces that are not shown, a line each, where notes are shown too."""
_TEXT = 400
"""Characters of one quoted text, of several traces, where all is asked for."""
_PARSERS = 4
_SCHEMA = "reasonctl.trace/1"


def show(page: Page, report: Report) -> Collection[int]:
    """Headline, rates where there are several traces, then trace by trace, the worst first.

    Returns the `id` of each finding that is told here, beside its trace or in the table of all traces.
    """
    facts = report.facts
    results: Sequence[Mapping[str, Any]] = facts.get("results") or []
    traces = _by_trace(results)
    number = int(facts.get("traces", len(traces)))
    if number > 1:
        page.limit = min(page.limit, _TEXT)
    page.line(
        styled(report.verdict.upper(), report.verdict),
        Text(f"  {counted(number, 'trace')}, {_parsers(facts.get('parsers') or [])}", "bold"),
    )
    _inputs(page, report)
    if number > 1:
        rates(page, facts, number)
    upgrades(page, facts)
    best = {row["trace"]: row for row in facts.get("best") or []}
    ordered = _worst_first(traces, report.findings)
    shown = ordered[: _TRACES_VERBOSE if page.verbose else _TRACES]
    own: dict[str, list[Finding]] = {}
    for finding in report.findings:
        own.setdefault(str(finding.subject.get("trace")), []).append(finding)
    for name in shown:
        _told(page, facts, name, traces[name], own.get(name, []), best.get(name))
        changed(page, facts, name)
    if number > len(shown):
        _left(page, number - len(shown), _wrong_left(report, traces, shown))
        if page.verbose:
            _lines(page, [finding for name in ordered[len(shown) :] for finding in own.get(name, [])])
    page.blank()
    return {
        id(f) for name, found in own.items() if name in shown or (facts.get("rules") and name in traces) for f in found
    }


def _parsers(parsers: Sequence[str]) -> str:
    return names_of(parsers, _PARSERS) if len(parsers) <= _PARSERS else f"{len(parsers)} parsers"


def _wrong_left(report: Report, traces: Mapping[str, Sequence[Mapping[str, Any]]], shown: Sequence[str]) -> int:
    """How many traces that are not shown have an error or a warning."""
    outcomes = report.facts.get("outcomes")
    if outcomes is None:
        return sum(_wrong(rows) for name, rows in traces.items() if name not in shown)
    told = {str(f.subject.get("trace")) for f in report.findings if f.severity != "info"}
    return int(sum(outcomes.values())) - len(told.intersection(shown))


def _left(page: Page, number: int, wrong: int) -> None:
    """How many traces are not shown, and whether anything is wrong with them."""
    state = "nothing wrong with " + ("it" if number == 1 else "any of them")
    if wrong:
        state = f"{wrong} with something wrong" if number > 1 else "something is wrong with it"
    where = "--format json has all" if page.verbose else "--verbose"
    page.blank()
    page.line(styled(f"{counted(number, 'more trace')}, {state} ({where})", "dim"), indent=2)


def _lines(page: Page, findings: Sequence[Finding]) -> None:
    """Findings of traces that are not shown, a line each."""
    for finding in findings[:_LINES]:
        one_line(page, finding, about=str(finding.subject.get("trace")), indent=4)
    if len(findings) > _LINES:
        page.line(styled(f"... and {len(findings) - _LINES} more (--format concise)", "dim"), indent=4)


def _told(
    page: Page,
    facts: Mapping[str, Any],
    name: str,
    rows: Sequence[Mapping[str, Any]],
    findings: Sequence[Finding],
    best: Mapping[str, Any] | None,
) -> None:
    """One trace: as a failure where a parser that served fails on it, else who splits it how."""
    recorded = (facts.get("recorded") or {}).get(name)
    comparison = (facts.get("comparisons") or {}).get(name)
    heading(page, name, rows, recorded, (facts.get("streams") or {}).get(name))
    if comparison is not None:
        failed = comparison["rows"][0]["parser"]
        failure(page, recorded, next((row for row in rows if row["parser"] == failed), rows[0]), comparison, findings)
        return
    alone = int(facts.get("traces", 1)) == 1
    _trace(page, rows, best, recorded, most=_SPLITS_ALONE if alone and page.verbose else _SPLITS)
    _compared(page, (facts.get("compared") or {}).get(name) or {}, (best or {}).get("parsers") or ())
    told(page, findings, rows[0], explained(page, findings, rows[0]))


def _worst_first(traces: Mapping[str, Sequence[Mapping[str, Any]]], findings: Iterable[Finding]) -> list[str]:
    """Traces with most errors first, then warnings, then those a parser fails on; else in the order they came."""
    weight: Counter[str] = Counter()
    for finding in findings:
        weight[str(finding.subject.get("trace"))] += {"error": 1000, "warning": 10}.get(finding.severity, 0)
    return sorted(traces, key=lambda name: (-weight[name], not _wrong(traces[name])))


def _wrong(rows: Iterable[Mapping[str, Any]]) -> bool:
    return any(row["status"] in ("suspect", "error") for row in rows)


def _inputs(page: Page, report: Report) -> None:
    facts = report.facts
    tokenizer = {
        "model": "the model's own",
        "trace": "token texts in the trace",
        "assumed": "assumed: every marker one token, words cut by a pattern (--model gives the real one)",
    }.get(str(facts.get("tokenizer")), str(facts.get("tokenizer")))
    rows = [("judged as", judged_as(report))]
    server = facts.get("server")
    if server:
        place = f"{server['path']}:{server['line']}"
        rows.append(("served with", f"{_served(server.get('parser'))} ({place})"))
    inputs = facts.get("inputs") or []
    most = _INPUTS_VERBOSE if page.verbose else _INPUTS
    shown = inputs if len(inputs) <= most + 1 else inputs[:most]
    rows += [("input", _input(entry)) for entry in shown]
    if len(inputs) > len(shown):
        more = sum(int(entry.get("traces", 0)) for entry in inputs[len(shown) :])
        rows.append(("", f"and {len(inputs) - len(shown)} more files with {counted(more, 'trace')}"))
    if facts.get("tokenizer"):
        rows.append(("tokenizer", tokenizer))
    page.fields(rows)


def _input(entry: Mapping[str, Any]) -> str:
    """`capture.sse: 2 traces (sse), model Qwen/Qwen3-8B, recorded from vllm 0.33.0 with qwen3`."""
    number = counted(int(entry["traces"]), "trace") if "traces" in entry else ""
    form = _SCHEMA if entry.get("format") == "trace" else entry.get("format")
    words = [" ".join(word for word in (number, f"({form})" if form else "") if word)]
    words += [f"model {entry['model']}"] if entry.get("model") else []
    by = [f"from {entry['server']}"] if entry.get("server") else []
    others = " and others" if entry.get("further_parsers") else ""
    by += [f"with {_served(entry['parser'])}{others}"] if entry.get("parser") else []
    words += [f"recorded {' '.join(by)}"] if by else []
    return f"{entry.get('path')}: {', '.join(word for word in words if word)}"


def _served(parser: str | None) -> str:
    return parser if parser and parser != "none" else "no reasoning parser"


def _by_trace(results: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    traces: dict[str, list[Mapping[str, Any]]] = {}
    for row in results:
        traces.setdefault(str(row["trace"]), []).append(row)
    return traces


def _trace(
    page: Page,
    rows: Sequence[Mapping[str, Any]],
    best: Mapping[str, Any] | None,
    recorded: Mapping[str, Any] | None,
    *,
    most: int,
) -> None:
    """What was recorded, which parsers explain it, and who splits it how: who served and who explains it first."""
    recorded = recorded or next((row["recorded"] for row in rows if row.get("recorded")), None)
    names = list((best or {}).get("parsers") or ())
    fields: list[tuple[str, str | Text]] = [("recorded", split_text(recorded, page.limit))] if recorded else []
    if best and (names or best.get("why")):
        why = f": {compact(best['why'])}" if best.get("why") else ""
        fields.append(("explained by", Text.assemble(Text(names_of(names, 6) or "no parser", "bold"), Text(why))))
    page.fields(fields, indent=4)
    groups = _alike(row for row in rows if row["status"] != "unsupported")
    served = (recorded or {}).get("parser") or next((row["parser"] for row in rows if row.get("recorded")), None)

    def rank(row: Mapping[str, Any]) -> tuple[bool, bool, bool]:
        return row["parser"] != served, row["parser"] not in names[:1], row.get("matches_recorded") is not True

    groups.sort(key=lambda group: min(map(rank, group)))
    shown = groups if len(groups) <= most + 1 else groups[:most]
    for group in shown:
        _group(page, sorted(group, key=lambda row: row["parser"] not in names[:1]), recorded)
    left = [row["parser"] for group in groups[len(shown) :] for row in group]
    if left:
        where = "--format json" if page.verbose else "--verbose"
        how = "splits it in another way" if len(left) == 1 else "split it in other ways"
        words = f"{counted(len(left), 'more parser')} {how}: {names_of(left, 3)} ({where})"
        page.line(styled(words, "dim"), indent=4)
    _unsupported(page, [row for row in rows if row["status"] == "unsupported"], alone=not groups)


def _compared(page: Page, statuses: Mapping[str, str], best: Collection[str]) -> None:
    """How many of the parsers that were run for comparison do not explain the trace, or could not be run."""
    failed = sum(status != "unsupported" and name not in best for name, status in statuses.items())
    unsupported = sum(status == "unsupported" for status in statuses.values())
    words = [f"{failed} more {'does' if failed == 1 else 'do'} not explain it"] if failed else []
    words += [f"{unsupported} cannot be run here"] if unsupported else []
    if words:
        page.fields([("compared", styled(f"{', '.join(words)} (--parser all)", "dim"))], indent=4)


def _alike(rows: Iterable[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Results that split the trace in the same way, in every mode."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        streams = [(entry["chunking"], _split(entry)) for entry in row.get("stream") or []]
        checks = sorted((row.get("checks") or {}).items())
        key = repr((row["status"], _split(row.get("full") or {}), streams, checks, row.get("matches_recorded")))
        groups.setdefault(key, []).append(row)
    return list(groups.values())


def _split(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    return (entry.get("reasoning"), entry.get("content"), entry.get("error"))


def _group(page: Page, rows: Sequence[Mapping[str, Any]], recorded: Mapping[str, Any] | None) -> None:
    """Who splits it so and how that went, then the whole-output split and each streamed one that differs from it."""
    row = rows[0]
    page.line(Text(names_of([row["parser"] for row in rows], 4), "bold"), "  ", _status(row), indent=4)
    modes: dict[tuple[Any, ...], tuple[Mapping[str, Any], list[str]]] = {}
    full = row.get("full") or {}
    modes[_split(full)] = (full, [mode_name(None)])
    for entry in row.get("stream") or []:
        modes.setdefault(_split(entry), (entry, []))[1].append(mode_name(str(entry["chunking"])))
    if len(modes) == 1:
        page.fields([("", _shown(page, full, recorded))], indent=4)
        return
    for entry, names in modes.values():
        page.line(styled(f"{', '.join(names)}:", "label"), indent=6)
        page.fields([("", _shown(page, entry, recorded))], indent=6)


def _shown(page: Page, entry: Mapping[str, Any], recorded: Mapping[str, Any] | None) -> Text:
    """The split, or that it is the recorded one."""
    if recorded is not None and not entry.get("error"):
        if all((entry.get(key) or "") == (recorded.get(key) or "") for key in ("reasoning", "content")):
            return styled("just what was recorded", "dim")
        if all((entry.get(key) or "").strip() == (recorded.get(key) or "").strip() for key in ("reasoning", "content")):
            return styled("what was recorded, but for white space at the ends", "dim")
    return split_text(entry, page.limit)


def _status(row: Mapping[str, Any]) -> Text:
    """`suspect: marker leaked; not as recorded; 12 reasoning tokens in usage`."""
    status = str(row["status"])
    failed = [FAILED.get(name, name) for name, value in (row.get("checks") or {}).items() if value is False]
    words = [", ".join(failed)] if failed else []
    if row.get("reason"):
        words.append(shortened(compact(row["reason"]), 80))
    if row.get("matches_recorded") is not None:
        words.append("as recorded" if row["matches_recorded"] else "not as recorded")
    if row.get("reasoning_tokens") is not None:
        words.append(f"{counted(int(row['reasoning_tokens']), 'reasoning token')} in usage")
    style = {"ok": STYLE["pass"], "suspect": STYLE["warning"]}.get(status, STYLE["error"])
    return Text.assemble(Text(status, style), f": {'; '.join(words)}" if words else "")


def _unsupported(page: Page, rows: Sequence[Mapping[str, Any]], *, alone: bool) -> None:
    """What could not be run, with the reasons where they are few or asked for."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        reasons.setdefault(str(row.get("reason") or "no reason given"), []).append(row["parser"])
    if len(reasons) > 1 and not page.verbose and not alone:
        names = names_of([row["parser"] for row in rows], 4)
        page.fields([("not run", styled(f"{names} (--verbose says why)", "dim"))], indent=4)
        return
    page.fields(
        [("not run", styled(f"{names_of(names, 3)}: {reason}", "dim")) for reason, names in reasons.items()], indent=4
    )
