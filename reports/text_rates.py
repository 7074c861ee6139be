"""What many traces have in common: how many have something wrong, how each parser fares, which rules fire."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .page import Cell, Page, styled
from .wording import SEVERITY_WORD, counted, visible

_MANY = 10
"""Traces from which on shares are told."""
_STATUSES = ("ok", "suspect", "error", "unsupported")
_SHOWN_AS = {"unsupported": "not run"}


def rates(page: Page, facts: Mapping[str, Any], traces: int) -> None:
    """The share of traces with something wrong in a sentence, then a table of parsers and one of rules."""
    if "outcomes" in facts:
        page.blank()
        page.line(sentence(facts["outcomes"], traces), indent=2)
    _scores(page, facts.get("scores") or counted_scores(facts.get("results") or []), traces)
    _rules(page, facts.get("rules") or {}, traces)


def names_of(names: Sequence[str], most: int) -> str:
    """`a, b and 3 more`; one more than `most` is named, since that is no longer than to count it."""
    shown = names if len(names) <= most + 1 else names[:most]
    return ", ".join(map(visible, shown)) + (f" and {len(names) - len(shown)} more" if len(names) > len(shown) else "")


def counted_scores(results: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """How many traces each parser gets right, from the results themselves."""
    scores: dict[str, dict[str, int]] = {}
    for row in results:
        score = scores.setdefault(row["parser"], dict.fromkeys((*_STATUSES, "as recorded"), 0))
        score[row["status"]] += 1
        score["as recorded"] += row.get("matches_recorded") is True
    return scores


def sentence(outcomes: Mapping[str, int], traces: int) -> str:
    """`12 of 50 traces (24%) have an error, 3 (6%) a warning and no error; the other 35 are clean.`"""
    errors, warnings, lost = (outcomes.get(key, 0) for key in ("error", "warning", "lost"))
    clean = traces - errors - warnings - lost
    parts = [
        (errors, "an error"),
        (warnings, "a warning and no error" if errors else "a warning"),
        (lost, "no result (INT904)"),
    ]
    told = [(number, what) for number, what in parts if number]
    if not told:
        return "neither error nor warning in " + ("both traces" if traces == 2 else f"all {traces} traces")
    said: list[str] = []
    for number, what in told:
        have = ("has " if number == 1 else "have ") if not said else ""
        of = f"{number} of {counted(traces, 'trace')}" if not said else str(number)
        said.append(f"{of}{_percent(number, traces, ' ({})')} {have}{what}")
    rest = "" if not clean else "; the other one is clean" if clean == 1 else f"; the other {clean} are clean"
    return ", ".join(said) + rest


def _scores(page: Page, scores: Mapping[str, Mapping[str, int]], traces: int) -> None:
    head, found = score_table(scores, traces)
    rows = [[names_of(names, 1000 if page.verbose else 3), *cells] for names, cells in found]
    page.blank()
    page.table(head, rows, right=range(1, len(head)))


def score_table(
    scores: Mapping[str, Mapping[str, int]], traces: int
) -> tuple[list[str], list[tuple[list[str], list[str]]]]:
    """How many traces each parser gets right: the head, and rows of parsers that fare alike, the best first.

    Args:
        scores: `scores` of a replay's facts.
        traces: how many there are; a column tells how many a parser was run on where that is not all of them.
    """
    columns = ["explains", *_STATUSES, "as recorded"]
    if all(score.get("explains", score["ok"]) == score["ok"] for score in scores.values()):
        columns.remove("explains")
    columns = [name for name in columns if name == "ok" or any(score.get(name) for score in scores.values())]
    alike: dict[tuple[int, ...], list[str]] = {}
    for name, score in scores.items():
        ran = sum(score[status] for status in _STATUSES)
        alike.setdefault((ran, *(score.get(column, 0) for column in columns)), []).append(name)
    own = len({numbers[0] for numbers in alike}) > 1 or any(numbers[0] != traces for numbers in alike)
    rows = [
        (names, [*([str(ran)] if own else []), *(rate(number, ran) for number in numbers)])
        for (ran, *numbers), names in sorted(alike.items(), key=lambda item: (*(-one for one in item[0][1:3]), item[1]))
    ]
    return ["parser", *(["traces"] if own else []), *(_SHOWN_AS.get(column, column) for column in columns)], rows


def _rules(page: Page, rules: Mapping[str, Mapping[str, Any]], traces: int) -> None:
    """How many traces each rule fired on, and what explains them."""
    rows: list[Sequence[Cell]] = []
    for name, row in rules.items():
        if row["severity"] == "info" and not page.verbose:
            continue
        causes = ", ".join(f"{cause} {number}" for cause, number in (row.get("causes") or {}).items())
        head = f"{SEVERITY_WORD[row['severity']]} {name} {row['slug']}"
        rows.append((styled(head, str(row["severity"])), rate(int(row["traces"]), traces), causes))
    if rows:
        columns = 3 if any(row[2] for row in rows) else 2
        page.blank()
        page.table(("finding", "traces", "cause")[:columns], [row[:columns] for row in rows], right=(1,))


def rate(number: int, traces: int) -> str:
    """`37 (3%)`; of a few traces the number alone; `-` for none."""
    return f"{number}{_percent(number, traces, ' ({})')}" if number else "-"


def _percent(number: int, traces: int, frame: str) -> str:
    """A whole percentage; 0% and 100% are said of none and all alone."""
    if traces < _MANY:
        return ""
    whole = round(100 * number / traces)
    if number < traces and whole == 100:
        return frame.format(">99%")
    return frame.format("<1%" if number and not whole else f"{whole}%")
