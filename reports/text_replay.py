"""What a replay showed: for each trace how the parsers split it, and which of them explain the recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rich.text import Text

from ..checks.finding import Finding
from ..checks.report import Report
from .page import STYLE, Page, split_text, styled
from .text_failure import explained, failure, told
from .text_upgrade import changed, upgrades
from .wording import SEVERITY_WORD, compact, counted, judged_as, shortened, visible

_TRACES = 5
"""Traces whose splits are shown; those with something wrong come first."""
_MANY = 10
"""Traces from which on shares are told."""
_SPLITS = 3
"""Ways of splitting one trace that are shown; the parser that served it and the one that explains it come first."""
_FAILED = {
    "stream_equals_full": "streaming differs",
    "chunk_invariant": "chunking matters",
    "no_marker_leak": "marker leaked",
    "text_conserved": "text lost",
    "answered": "no answer",
}
_STATUSES = ("ok", "suspect", "error", "unsupported")


def show(page: Page, report: Report) -> Collection[int]:
    """Headline, rates where there are several traces, then trace by trace, the worst first.

    Returns the `id` of each finding that is told here, beside its trace or in the table of all traces.
    """
    facts = report.facts
    results: Sequence[Mapping[str, Any]] = facts.get("results") or []
    traces = _by_trace(results)
    number = int(facts.get("traces", len(traces)))
    parsers = facts.get("parsers") or []
    page.line(
        styled(report.verdict.upper(), report.verdict),
        Text(f"  {counted(number, 'trace')}, {_names(parsers, 4)}", "bold"),
    )
    _inputs(page, report)
    if number > 1:
        _scores(page, facts.get("scores") or _counted(results), number)
        _rules(page, facts.get("rules") or {}, number)
    upgrades(page, facts)
    best = {row["trace"]: row for row in facts.get("best") or []}
    ordered = _worst_first(traces, report.findings)
    shown = ordered if page.verbose else ordered[:_TRACES]
    own: dict[str, list[Finding]] = {}
    for finding in report.findings:
        own.setdefault(str(finding.subject.get("trace")), []).append(finding)
    for name in shown:
        _told(page, facts, name, traces[name], own.get(name, []), best.get(name))
        changed(page, facts, name)
    if number > len(shown):
        page.blank()
        wrong = sum(_wrong(rows) for name, rows in traces.items() if name not in shown)
        wrong += int(facts.get("wrong_beside", 0))
        state = f", {wrong} with something wrong" if wrong else " without anything wrong"
        page.line(styled(f"{counted(number - len(shown), 'more trace')}{state} (--verbose)", "dim"), indent=2)
    page.blank()
    return {
        id(f) for name, found in own.items() if name in shown or (facts.get("rules") and name in traces) for f in found
    }


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
    if comparison is not None:
        _heading(page, name, rows, recorded, (facts.get("streams") or {}).get(name))
        failed = comparison["rows"][0]["parser"]
        failure(page, recorded, next((row for row in rows if row["parser"] == failed), rows[0]), comparison, findings)
        return
    _trace(page, name, rows, best, recorded)
    _compared(page, (facts.get("compared") or {}).get(name) or {})
    explained(page, findings, rows[0])
    told(page, findings)


def _worst_first(traces: Mapping[str, Sequence[Mapping[str, Any]]], findings: Iterable[Finding]) -> list[str]:
    """Traces with most errors first, then warnings, then those a parser fails on; else in the order they came."""
    weight: Counter[str] = Counter()
    for finding in findings:
        weight[str(finding.subject.get("trace"))] += {"error": 1000, "warning": 10}.get(finding.severity, 0)
    return sorted(traces, key=lambda name: (-weight[name], not _wrong(traces[name])))


def _wrong(rows: Iterable[Mapping[str, Any]]) -> bool:
    return any(row["status"] in ("suspect", "error") for row in rows)


def _heading(
    page: Page, name: str, rows: Sequence[Mapping[str, Any]], recorded: Mapping[str, Any] | None, deltas: int | None
) -> None:
    page.blank()
    words = [_place(rows[0])] if rows[0].get("line") is not None else []
    words += [counted(deltas, "delta")] if deltas else []
    words += [f"finish_reason {recorded['finish_reason']}"] if recorded and recorded.get("finish_reason") else []
    page.line(Text(visible(name), "bold"), styled(f"  {', '.join(map(visible, words))}", "dim"), indent=2)


def _place(row: Mapping[str, Any]) -> str:
    """`capture.jsonl:4`, or the line alone where the trace is named by its file."""
    path = row.get("path")
    return f"line {row['line']}" if path is None or str(row["trace"]).startswith(path) else f"{path}:{row['line']}"


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
        rows.append(("served with", f"{server.get('parser') or 'no reasoning parser'} ({place})"))
    for entry in facts.get("inputs") or []:
        words = [str(entry[key]) for key in ("format", "model", "server", "parser") if entry.get(key)]
        number = counted(int(entry["traces"]), "trace") if "traces" in entry else ""
        rows.append(("input", ", ".join(part for part in (str(entry.get("path")), number, *words) if part)))
    if facts.get("tokenizer"):
        rows.append(("tokenizer", tokenizer))
    page.fields(rows)


def _counted(results: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """How many traces each parser gets right, from the results themselves."""
    scores: dict[str, dict[str, int]] = {}
    for row in results:
        score = scores.setdefault(row["parser"], dict.fromkeys((*_STATUSES, "as recorded"), 0))
        score[row["status"]] += 1
        score["as recorded"] += row.get("matches_recorded") is True
    return scores


def _scores(page: Page, scores: Mapping[str, Mapping[str, int]], traces: int) -> None:
    """How many traces each parser gets right; parsers that fare alike are one row."""
    columns = (*_STATUSES, "as recorded")
    alike: dict[tuple[int, ...], list[str]] = {}
    for name, score in scores.items():
        alike.setdefault(tuple(score[column] for column in columns), []).append(name)
    most = 1000 if page.verbose else 3
    rows = [(_names(names, most), *(_rate(number, traces) for number in score)) for score, names in alike.items()]
    page.blank()
    page.table(("parser", *columns), rows, right=range(1, 6))


def _rules(page: Page, rules: Mapping[str, Mapping[str, Any]], traces: int) -> None:
    """How many traces each rule fired on, and what explains them."""
    rows = []
    for name, row in rules.items():
        if row["severity"] == "info" and not page.verbose:
            continue
        causes = ", ".join(f"{cause} {number}" for cause, number in (row.get("causes") or {}).items())
        head = f"{SEVERITY_WORD[row['severity']]} {name} {row['slug']}"
        rows.append((styled(head, str(row["severity"])), _rate(int(row["traces"]), traces), causes))
    if rows:
        page.blank()
        page.table(("finding", "traces", "cause"), rows, right=(1,))


def _rate(number: int, traces: int) -> str:
    """`37 (3.1%)`; of a few traces the number alone; `-` for none."""
    if not number:
        return "-"
    return f"{number} ({100 * number / traces:.3g}%)" if traces >= _MANY else str(number)


def _by_trace(results: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    traces: dict[str, list[Mapping[str, Any]]] = {}
    for row in results:
        traces.setdefault(str(row["trace"]), []).append(row)
    return traces


def _trace(
    page: Page,
    name: str,
    rows: Sequence[Mapping[str, Any]],
    best: Mapping[str, Any] | None,
    recorded: Mapping[str, Any] | None,
) -> None:
    page.blank()
    place = f"  {_place(rows[0])}" if rows[0].get("line") is not None else ""
    page.line(Text(visible(name), "bold"), styled(place, "dim"), indent=2)
    recorded = recorded or next((row["recorded"] for row in rows if row.get("recorded")), None)
    if recorded:
        page.line(Text("recorded", "bold"), indent=4)
        page.fields([("", split_text(recorded, page.limit))], indent=4)
    groups = _alike(row for row in rows if row["status"] != "unsupported")
    served = (recorded or {}).get("parser") or next((row["parser"] for row in rows if row.get("recorded")), None)
    explains = ((best or {}).get("parsers") or [None])[0]

    def rank(row: Mapping[str, Any]) -> int:
        recorded_so = row["parser"] == served or row.get("matches_recorded") is True
        return 0 if recorded_so else 1 if row["parser"] == explains else 2

    groups.sort(key=lambda group: min(map(rank, group)))
    shown = groups if page.verbose else groups[:_SPLITS]
    for group in shown:
        _group(page, group)
    left = [row["parser"] for group in groups[len(shown) :] for row in group]
    if left:
        page.line(
            styled(f"{counted(len(left), 'more parser')} split it otherwise: {_names(left, 3)} (--verbose)", "dim"),
            indent=4,
        )
    _unsupported(page, [row for row in rows if row["status"] == "unsupported"])
    if best and best.get("parsers"):
        why = f": {compact(best['why'])}" if best.get("why") else ""
        page.fields([("explains it", Text.assemble(Text(_names(best["parsers"], 6), "bold"), Text(why)))], indent=4)


def _compared(page: Page, statuses: Mapping[str, str]) -> None:
    """How many of the parsers that were run for comparison do not explain the trace, or could not be run."""
    failed = sum(status in ("suspect", "error") for status in statuses.values())
    unsupported = sum(status == "unsupported" for status in statuses.values())
    words = [f"{failed} more do not explain it"] if failed else []
    words += [f"{unsupported} have no built-in model or no fitting tokenizer"] if unsupported else []
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


def _group(page: Page, rows: Sequence[Mapping[str, Any]]) -> None:
    """Who splits it so and how that went, then the whole-output split and each streamed one that differs from it."""
    row = rows[0]
    page.line(Text(_names([row["parser"] for row in rows], 4), "bold"), "  ", _status(row), indent=4)
    modes: dict[tuple[Any, ...], tuple[Mapping[str, Any], list[str]]] = {}
    full = row.get("full") or {}
    modes[_split(full)] = (full, ["whole output"])
    for entry in row.get("stream") or []:
        modes.setdefault(_split(entry), (entry, []))[1].append(_chunking(str(entry["chunking"])))
    agree = len(modes) == 1 and row.get("stream")
    page.fields(
        [
            ("however it is cut" if agree else ", ".join(names), split_text(entry, page.limit))
            for entry, names in modes.values()
        ],
        indent=6,
    )


def _chunking(name: str) -> str:
    """`token` in words: what one delta of the stream holds."""
    if name.isdigit():
        return f"{counted(int(name), 'token')} a delta"
    return {
        "token": "token by token",
        "whole": "all in one delta",
        "char": "character by character",
        "recorded": "as recorded",
    }.get(name, name)


def _status(row: Mapping[str, Any]) -> Text:
    """`suspect: marker leaked; as recorded; 12 reasoning tokens`."""
    status = str(row["status"])
    failed = [_FAILED.get(name, name) for name, value in (row.get("checks") or {}).items() if value is False]
    words = [", ".join(failed)] if failed else []
    if row.get("reason"):
        words.append(shortened(compact(row["reason"]), 80))
    if row.get("matches_recorded") is not None:
        words.append("as recorded" if row["matches_recorded"] else "not as recorded")
    if row.get("reasoning_tokens") is not None:
        words.append(counted(int(row["reasoning_tokens"]), "reasoning token"))
    style = {"ok": STYLE["pass"], "suspect": STYLE["warning"]}.get(status, STYLE["error"])
    return Text.assemble(Text(status, style), f": {'; '.join(words)}" if words else "")


def _unsupported(page: Page, rows: Sequence[Mapping[str, Any]]) -> None:
    reasons: dict[str, list[str]] = {}
    for row in rows:
        reasons.setdefault(str(row.get("reason") or "no reason given"), []).append(row["parser"])
    page.fields(
        [("not run", styled(f"{_names(names, 3)}: {reason}", "dim")) for reason, names in reasons.items()], indent=4
    )


def _names(names: Sequence[str], most: int) -> str:
    shown = ", ".join(map(visible, names[:most]))
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
