"""What a running server did with thinking budgets: what was to come and what came, case by case."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rich.text import Text

from ..checks.report import Report
from .page import STYLE, Page, styled
from .terms import COUNTING
from .wording import counted

_WIDE = 92
"""Columns from which on a case has all of its numbers beside it."""
_MIDDLE = 56
_SEEN = 3
"""The column of the thinking tokens that came."""


def show(page: Page, report: Report) -> Collection[int]:
    """Headline, the server and the model, the table of cases, the refusals."""
    facts = report.facts
    cases: Sequence[Mapping[str, Any]] = facts.get("cases") or []
    passed = sum(case["ok"] is True for case in cases)
    page.line(
        styled(report.verdict.upper(), report.verdict),
        Text(f"  {passed} of {counted(len(cases), 'case')} as predicted", "bold"),
    )
    page.fields(_head(facts), indent=2)
    page.blank()
    answered = [case for case in cases if "refused" not in case["predicted"]]
    _table(page, answered)
    refusals = [case for case in cases if "refused" in case["predicted"]]
    for case in refusals:
        page.line(_refusal(case), indent=2)
    for note in dict.fromkeys(case["note"] for case in answered if case.get("note")):
        page.line(f"* {note}", indent=2)
    if any(map(_counts_otherwise, answered)):
        page.line("** usage is what this vLLM's parser counts there, and not what was thought", indent=2)
    page.blank()
    page.fields([("not shown", _not_shown(report))], indent=0)
    return ()


def _table(page: Page, cases: Sequence[Mapping[str, Any]]) -> None:
    """All that is known of each case; on a narrow page less of it, rather than torn words."""
    rows = [_row(case) for case in cases]
    head = ("case", "prompt", "thinking", "seen", "", "end", "answer", "finish", "usage")
    if page.width >= _WIDE:
        page.table(head, rows, right=(2, 3, 6, 8), keep=(1, 4, 5, 7))
        return
    shown = (0, 1, _SEEN, 4, 5) if page.width >= _MIDDLE else (0, _SEEN, 4)
    pairs = zip(cases, rows, strict=True)
    told = [[_differing(case, row[at]) if at == _SEEN else row[at] for at in shown] for case, row in pairs]
    titles = [head[at] for at in shown]
    page.table(titles, told, right=(titles.index("seen"),), keep=range(1, len(titles)), firm=True)
    page.line(styled("seen: thinking tokens; the rest on a wider page, or with --format json", "dim"), indent=2)


def _differing(case: Mapping[str, Any], seen: str | Text) -> str | Text:
    wanted = case["predicted"].get("thinking_tokens")
    return f"{seen}, not {wanted}" if wanted is not None and str(wanted) != str(seen) else seen


def _counts_otherwise(case: Mapping[str, Any]) -> bool:
    """The usage is as predicted, and still not the thinking tokens: the parser cannot see what the prompt did."""
    seen = case["observed"]
    usage, thought = seen.get("reasoning_tokens_reported"), seen.get("thinking_tokens")
    as_predicted = usage == case["predicted"].get("reasoning_tokens")
    return as_predicted and usage is not None and thought is not None and usage != thought


def _not_shown(report: Report) -> str:
    absent = [f"{row.surface} ({row.reason})" for row in report.coverage if row.status == "absent"]
    return ", ".join([*absent, *(["your own model's lengths (--endpoint)"] if report.facts["model"]["lab"] else [])])


def _head(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    server, model = facts["server"], facts["model"]
    known = "" if server["runner_known"] else " (assumed)"
    what = [f"{server['kind']} {server['version'] or 'of unknown version'}", server["device"]]
    what += [f"runner {server['runner'].upper()}{known}" if server["runner"] else None]
    rows = [("server", ", ".join(part for part in what if part))]
    if model["lab"]:
        rows.append(("model", f"lab {model['lab']}: {model['style']}; thinks for {model['thinking_tokens']} tokens"))
    else:
        rows.append(("model", model["name"]))
    rows.append(("parser", model["parser"] or "none"))
    counting = COUNTING.get(facts["rule"], facts["rule"]).replace("<start>", "the start marker")
    charged = next((case["charged"] for case in facts["cases"] if case["prompt_state"] == "open"), 0)
    rows.append(("counting", counting + (f"; here {charged}" if charged and "are charged" in counting else "")))
    if server["log"]:
        rows.append(("log", server["log"]))
    return rows


def _row(case: Mapping[str, Any]) -> list[str | Text]:
    wanted, seen = case["predicted"], case["observed"]
    ok = case["ok"]
    word, style = {True: ("ok", "pass"), False: ("differs", "fail"), None: ("open", "incomplete")}[ok]
    ended = seen.get("end") or "-"
    usage = seen.get("reasoning_tokens_reported")
    if case.get("lost"):
        word, style, ended = "lost", "fail", "-"
    if "refused" in seen:
        word, ended = "refused", "-"
    return [
        Text(case["name"] + _mark(case), STYLE["head"] if ok is False else ""),
        case["prompt_state"],
        _shown(wanted.get("thinking_tokens")),
        _shown(seen.get("thinking_tokens")),
        Text(word, STYLE[style]),
        ended,
        _shown(seen.get("answer_tokens")),
        seen.get("finish_reason") or "-",
        _shown(usage),
    ]


def _mark(case: Mapping[str, Any]) -> str:
    return " *" if case.get("note") else " **" if _counts_otherwise(case) else ""


def _refusal(case: Mapping[str, Any]) -> Text:
    wanted, seen = case["predicted"]["refused"], case["observed"].get("refused")
    ok = case["ok"] is True
    what = f"HTTP {seen['status']}" if seen else "taken"
    told = "as it should be" if ok else f"but HTTP {wanted['status']} with {wanted['text']!r} was to come"
    name = case["name"].removeprefix("refused: ")
    return Text.assemble((f"{name}: ", ""), (what, STYLE["pass" if ok else "fail"]), f", {told}")


def _shown(value: Any) -> str:
    return "-" if value is None else str(value)
