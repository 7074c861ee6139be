"""What a replay showed: for each trace how the parsers split it, and which of them explain the recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.text import Text

from ..checks.report import Report
from .page import STYLE, Page, split_text, styled
from .wording import compact, counted, judged_as, shortened, visible

_TRACES = 5
"""Traces whose splits are shown; those with something wrong come first."""
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


def show(page: Page, report: Report) -> None:
    """Headline, the parsers' scores where there are several traces, then trace by trace."""
    facts = report.facts
    results: Sequence[Mapping[str, Any]] = facts.get("results") or []
    traces = _by_trace(results)
    parsers = facts.get("parsers") or []
    page.line(
        styled(report.verdict.upper(), report.verdict),
        Text(f"  {counted(int(facts.get('traces', len(traces))), 'trace')}, {_names(parsers, 4)}", "bold"),
    )
    _inputs(page, report)
    if len(traces) > 1:
        _scores(page, results)
    best = {row["trace"]: row for row in facts.get("best") or []}
    wrong = [name for name, rows in traces.items() if any(row["status"] in ("suspect", "error") for row in rows)]
    ordered = [*wrong, *(name for name in traces if name not in set(wrong))]
    shown = ordered if page.verbose else ordered[:_TRACES]
    for name in shown:
        _trace(page, name, traces[name], best.get(name), (facts.get("recorded") or {}).get(name))
        _compared(page, (facts.get("compared") or {}).get(name) or {})
    if len(ordered) > len(shown):
        page.blank()
        left = ordered[len(shown) :]
        state = "with something wrong too" if set(left) & set(wrong) else "without anything wrong"
        page.line(styled(f"{counted(len(left), 'more trace')} {state} (--verbose)", "dim"), indent=2)
    page.blank()


def _inputs(page: Page, report: Report) -> None:
    facts = report.facts
    tokenizer = {
        "model": "the model's own",
        "trace": "token texts in the trace",
        "assumed": "assumed: every marker one token, words cut by a pattern (--model gives the real one)",
    }.get(str(facts.get("tokenizer")), str(facts.get("tokenizer")))
    rows = [("judged as", judged_as(report))]
    for entry in facts.get("inputs") or []:
        words = [str(entry[key]) for key in ("format", "model", "server", "parser") if entry.get(key)]
        number = counted(int(entry["traces"]), "trace") if "traces" in entry else ""
        rows.append(("input", ", ".join(part for part in (str(entry.get("path")), number, *words) if part)))
    if facts.get("tokenizer"):
        rows.append(("tokenizer", tokenizer))
    page.fields(rows)


def _scores(page: Page, results: Iterable[Mapping[str, Any]]) -> None:
    """How many traces each parser gets right; parsers that fare alike are one row."""
    scores: dict[str, Counter[str]] = {}
    for row in results:
        scores.setdefault(row["parser"], Counter())[row["status"]] += 1
        scores[row["parser"]]["as recorded"] += row.get("matches_recorded") is True
    columns = (*_STATUSES, "as recorded")
    alike: dict[tuple[int, ...], list[str]] = {}
    for name, score in scores.items():
        alike.setdefault(tuple(score[column] for column in columns), []).append(name)
    most = 1000 if page.verbose else 3
    rows = [(_names(names, most), *(str(number or "-") for number in score)) for score, names in alike.items()]
    page.blank()
    page.table(("parser", *columns), rows, right=range(1, 6))


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
    line = rows[0].get("line")
    page.line(Text(visible(name), "bold"), styled(f"  line {line}" if line is not None else "", "dim"), indent=2)
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
