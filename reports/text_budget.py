"""What requests are granted: a table of thinking against answer, one row a request, one column a `max_tokens`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from ..checks.report import Report
from .page import STYLE, Page, styled
from .wording import compact, variant_name, visible

_FEW_TOKENS = 256
"""Below this an answer is called starved (BUD307's default)."""


def show(page: Page, report: Report) -> None:
    """Headline, the budget as it was read, the table of resolutions."""
    facts = report.facts
    page.line(
        styled(report.verdict.upper(), report.verdict),
        Text(f"  {visible(str(facts.get('dialect')))} thinking budget, {visible(str(facts.get('form')))}", "bold"),
    )
    rows: list[tuple[str, str | Text]] = []
    if facts.get("path"):
        rows.append(("read", str(facts["path"])))
    if facts.get("budgets") is not None:
        rows.append(("budgets", _budgets(facts["budgets"])))
    rows.append(("judged by", str(facts.get("rules") or f"the rules of {report.target}")))
    page.fields(rows)
    _table(page, facts.get("resolutions") or [])
    page.blank()


def _budgets(budgets: Any) -> str:
    return variant_name(budgets) if isinstance(budgets, Mapping) and budgets else compact(budgets)


def _table(page: Page, resolutions: Sequence[Mapping[str, Any]]) -> None:
    if not resolutions:
        return
    ceilings = list(dict.fromkeys(row["max_tokens"] for row in resolutions))
    requests: dict[tuple[Any, ...], dict[Any, Mapping[str, Any]]] = {}
    for row in resolutions:
        key = (row["effort"], row["request_budget"], repr(row.get("request")))
        requests.setdefault(key, {})[row["max_tokens"]] = row
    rows = []
    for cells in requests.values():
        first = next(iter(cells.values()))
        rows.append(
            (
                styled(_request(first)),
                styled(_source(first)),
                *(_cell(cells[ceiling]) if ceiling in cells else Text("-", STYLE["dim"]) for ceiling in ceilings),
                styled(str(first.get("note") or ""), "dim"),
            )
        )
    page.blank()
    page.table(("the request says", "cutoff comes from", *(f"max_tokens {ceiling}" for ceiling in ceilings), ""), rows)
    page.line(styled("thinking tokens at most | tokens left for the answer then", "dim"), indent=2)


def _request(row: Mapping[str, Any]) -> str:
    effort = f"effort {row['effort']}" if row["effort"] is not None else "no effort"
    if row["request_budget"] is None:
        return effort
    return f"thinking_token_budget {row['request_budget']}" + (f", {effort}" if row["effort"] is not None else "")


def _source(row: Mapping[str, Any]) -> str:
    return {"request": "the request", "scalar": "the one budget", "none": "no cutoff"}.get(
        row["source"], str(row["source"])
    )


def _cell(row: Mapping[str, Any]) -> Text:
    """`1024 | 3071 left`; `!!` where nothing is left, `!` where little is."""
    if row["cutoff"] is None:
        return Text("no cutoff", STYLE["dim"])
    left = int(row["answer_capacity"])
    mark, style = (
        ("  !!", STYLE["error"]) if left == 0 else ("  !", STYLE["warning"]) if left < _FEW_TOKENS else ("", "")
    )
    return Text.assemble(
        Text(f"{row['cutoff']:>5}", STYLE["reasoning"]),
        " | ",
        Text(f"{left:>5} left", STYLE["content"]),
        Text(mark, style),
    )
