"""What requests are granted: a table of thinking against answer, one row a request, one column a `max_tokens`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from rich.text import Text

from ..checks.report import Report
from .page import STYLE, Page, styled
from .terms import ANSWER_RESERVE, request_name, source_name
from .wording import compact, variant_name, visible

_REST, _COLUMN = 60, 18
"""Columns of a page that the table's other cells, and one `max_tokens`, take at their widest."""


def show(page: Page, report: Report) -> None:
    """Headline, the budget as it was read, the table of resolutions, and the requests that get none."""
    servers = report.facts.get("servers")
    for facts in servers if isinstance(servers, Sequence) else [report.facts]:
        if facts.get("engine"):
            page.line(Text(visible(f"-     {facts.get('name')}: a {facts['engine']} server, not evaluated"), "bold"))
            page.blank()
            continue
        if facts.get("name"):
            page.line(Text(visible(f"{facts['name']}  judged as {facts.get('target')}"), "bold"))
        else:
            _headline(page, report, facts)
        _budget(page, facts, report.target)
        page.blank()


def _headline(page: Page, report: Report, facts: Mapping[str, Any]) -> None:
    page.line(
        styled(report.verdict.upper(), report.verdict),
        Text(f"  {visible(str(facts.get('dialect')))} thinking budget, {visible(str(facts.get('form')))}", "bold"),
    )


def show_in_audit(page: Page, facts: Mapping[str, Any], target: str) -> None:
    """The budget of an audit, below what it says of the parser: the same without a headline."""
    page.blank()
    _budget(page, facts, target)


def _budget(page: Page, facts: Mapping[str, Any], target: str) -> None:
    rows: list[tuple[str, str | Text]] = []
    if facts.get("path"):
        rows.append(("read", _read(facts)))
    if facts.get("budgets") is not None:
        rows.append(("budgets", _budgets(facts["budgets"])))
    rows.append(("judged by", str(facts.get("rules") or f"the rules of {target}")))
    if facts.get("prompts"):
        template = PurePath(str(facts["prompts"].get("template"))).name
        rows.append(("template", f"{template} of {facts['prompts'].get('model')}"))
    page.fields(rows)
    _table(page, facts)
    _ungranted(page, facts.get("requests") or [])


def _read(facts: Mapping[str, Any]) -> str:
    """Where the budget stands, with its place unless that is the top of the file."""
    place, where = facts.get("location"), facts.get("where")
    if not place or (place["line"], place["column"]) == (1, 1):
        return str(facts["path"])
    return f"{facts['path']}:{place['line']}:{place['column']}" + (f", {where}" if where else "")


def _budgets(budgets: Any) -> str:
    return variant_name(budgets) if isinstance(budgets, Mapping) and budgets else compact(budgets)


def _table(page: Page, facts: Mapping[str, Any]) -> None:
    resolutions: Sequence[Mapping[str, Any]] = facts.get("resolutions") or []
    if not resolutions:
        if facts.get("dialect") == "slimserve":
            page.line(styled("the server would not start with this: no request gets anything", "warning"), indent=2)
        return
    ceilings = list(dict.fromkeys(row["max_tokens"] for row in resolutions))
    requests: dict[tuple[Any, ...], dict[Any, Mapping[str, Any]]] = {}
    for row in resolutions:
        requests.setdefault((row["effort"], row["request_budget"]), {})[row["max_tokens"]] = row
    reserve = int(facts.get("answer_reserve", ANSWER_RESERVE))
    prompts = facts.get("prompts")
    rows: list[tuple[Text, ...]] = []
    unbudgeted = [cells for cells in requests.values() if all(row["source"] == "none" for row in cells.values())]
    if facts.get("dialect") != "slimserve" and len(unbudgeted) > 1:  # where no effort brings one, they are all alike
        requests = {key: cells for key, cells in requests.items() if cells not in unbudgeted}
        blank = [Text("-", "dim")] if prompts else []
        rows.append(
            (Text("no budget, any effort"), Text("no cutoff"), *blank, *(Text("no cutoff", "dim"),) * len(ceilings))
        )
    for cells in requests.values():
        first = next(iter(cells.values()))
        cutoffs = [_cell(cells[ceiling], reserve) if ceiling in cells else Text("-", "dim") for ceiling in ceilings]
        prompt = [_prompt(prompts, first["effort"])] if prompts else []
        said = request_name(first)
        if page.width < _REST + _COLUMN * len(ceilings):
            said = said.replace("thinking_token_budget ", "budget ")  # which would be broken in two
        rows.append((styled(said), styled(source_name(first)), *prompt, *cutoffs))
    head = ["the request says", "cutoff comes from", *(["prompt says"] if prompts else [])]
    page.blank()
    page.table((*head, *(f"max_tokens {ceiling}" for ceiling in ceilings)), rows)
    legend = "thinking tokens at most | tokens left for the answer then"
    page.line(
        styled(legend + (", at default limits" if facts.get("max_tokens_from") == "default" else ""), "dim"), indent=2
    )


def _prompt(prompts: Mapping[str, Any], effort: str | None) -> Text:
    """What the model's template makes of an effort: the level it writes, off, or an exception."""
    row = next((row for row in prompts["efforts"] if row["effort"] == effort), None)
    if row is None:
        return Text("-", STYLE["dim"])
    if row.get("refused"):
        return Text("refused !!", STYLE["error"])
    if row["state"] in ("closed", "closed-bare"):
        return Text("off")
    if not prompts.get("reads_effort"):
        return Text("no effort read", STYLE["dim"])
    written = effort or prompts.get("default_effort")
    return styled(str(written)) if written else Text("-", STYLE["dim"])


def _ungranted(page: Page, requests: Sequence[Mapping[str, Any]]) -> None:
    """Requests whose budget is turned down or never read."""
    rows = []
    for request in requests:
        if request.get("standing") in ("refused", "ignored"):
            place = request.get("location")
            at = f" ({place['path']}:{place['line']})" if place else ""
            asked = f"{request['request']}{at}, {request['endpoint']}: {request_name(request)}"
            rows.append((styled(str(request["standing"]), "error"), styled(asked)))
    page.table(("", ""), rows)


def _cell(row: Mapping[str, Any], reserve: int) -> Text:
    """`1024 | 3071 left`; `!!` where nothing is left, `!` where less than `reserve` tokens are."""
    if row["cutoff"] is None:
        return Text("no cutoff", STYLE["dim"])
    left = int(row["answer_capacity"])
    mark, style = ("  !!", STYLE["error"]) if left == 0 else ("  !", STYLE["warning"]) if left < reserve else ("", "")
    cutoff = Text(f"{row['cutoff']:>5}", STYLE["reasoning"])
    return Text.assemble(cutoff, " | ", Text(f"{left:>5} left", STYLE["content"]), Text(mark, style))
