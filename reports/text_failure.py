"""One trace that a parser fails on: what the client got, why, what mends it, and how other parsers fare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from ..checks.finding import Finding
from ..checks.rule import all_rules
from .page import STYLE, Page, split_text, styled
from .wording import SEVERITY_WORD, compact, shortened, variant_name, visible

_HEADS = {"full": "whole", "recorded": "recorded", "token": "token", "whole": "at once", "char": "char"}
_WORDS = {"ok": "pass", "differs": "warning"}
_DOUBTS = {"assumed": "assumed tokenizer", "lossy": "rebuilt text"}
_NARROW = 100
"""Columns below which a parser's kwargs and remarks get lines of their own."""
_SHORT = 40
"""Characters of an outcome that are not wrapped."""
_FAULTS = {
    "leak": "marker leaked",
    "lost": "text lost",
    "no call": "tool call filed as reasoning",
    "no answer": "no answer",
    "differs": "split at the wrong place",
}


def failure(
    page: Page,
    recorded: Mapping[str, Any] | None,
    served: Mapping[str, Any],
    comparison: Mapping[str, Any],
    findings: Sequence[Finding],
) -> None:
    """The block of one trace.

    Args:
        page: where it goes.
        recorded: what the server returned, None where that is not known.
        served: the result of the parser that fails.
        comparison: it beside itself mended and beside other parsers.
        findings: those of this trace, the gravest first.
    """
    _splits(page, recorded, served, comparison, findings)
    explained(page, findings, served)
    _table(page, comparison)
    told(page, findings)


def explained(page: Page, findings: Sequence[Finding], result: Mapping[str, Any]) -> None:
    """The cause, step by step, and the mends.

    Args:
        page: where it goes.
        findings: those of one trace; the first that has a chain tells it.
        result: what the parser made of the trace, for what keeps the confidence down.
    """
    first = next((finding for finding in findings if finding.evidence.get("chain")), None)
    if first is not None:
        _cause(page, first, result)
    mended = next((finding.evidence["mends"] for finding in findings if finding.evidence.get("mends")), None)
    if mended is not None:
        _mends(page, mended)


def _splits(
    page: Page,
    recorded: Mapping[str, Any] | None,
    served: Mapping[str, Any],
    comparison: Mapping[str, Any],
    findings: Sequence[Finding],
) -> None:
    full = served.get("full") or {}
    rows: list[tuple[str, str | Text]] = []
    wrong = _FAULTS.get(next((word for word in comparison["rows"][0]["modes"] if word != "ok"), ""), "")
    if recorded is not None:
        as_recorded = served.get("matches_recorded")
        rows.append(("the client got", _with(split_text(recorded, page.limit), wrong if as_recorded else "")))
    if recorded is None or not served.get("matches_recorded"):
        rows.append((f"{served['parser']} gives", _with(split_text(full, page.limit), wrong)))
    streamed = next((f.evidence["streamed"] for f in findings if f.evidence.get("streamed")), None)
    if streamed is not None and any(streamed.get(key) != full.get(key) for key in ("reasoning", "content", "error")):
        rows.append(("streamed", split_text(streamed, page.limit)))
    expected = comparison.get("expected")
    if expected is not None:
        rows.append(("it should be", split_text(expected, page.limit)))
    page.fields(rows, indent=4)


def _with(split: Text, wrong: str) -> Text:
    return Text.assemble(split, styled(f"   {wrong}" if wrong else "", "error"))


def _cause(page: Page, finding: Finding, result: Mapping[str, Any]) -> None:
    page.blank()
    doubts = [_DOUBTS[key] for key in ("assumed", "lossy") if key == result.get("tokenizer") or result.get(key)]
    doubt = f" ({', '.join(doubts)})" if doubts and finding.confidence != "high" else ""
    ran = "every step was run" if finding.evidence.get("every_step_run", True) else "not every step could be run"
    head = "cause" if finding.cause else "seen"
    rule = all_rules().get(finding.cause or "")
    name = f" {finding.cause}{f' {rule.slug}' if rule is not None else ''}" if finding.cause else ""
    page.line(
        Text(f"{head}{name}", STYLE["head"]),
        styled(f"    confidence: {finding.confidence}{doubt}, {ran}", "dim"),
        indent=4,
    )
    page.fields(
        [(f"{number}  {step}", _shown(page, text)) for number, (step, text) in enumerate(_steps(finding), 1)], indent=6
    )


def _steps(finding: Finding) -> list[tuple[str, str]]:
    return [(str(step), str(text)) for step, text in finding.evidence["chain"]]


def _shown(page: Page, text: str) -> str:
    return shortened(visible(text), max(page.limit, 240))


def _mends(page: Page, mended: Sequence[Mapping[str, Any]]) -> None:
    page.blank()
    rows = [
        ("fix" if not number else "or", str(mend["side"]), str(mend["change"]), f"replayed: {mend['replayed']}")
        for number, mend in enumerate(mended)
    ]
    short = all(len(row[3]) <= _SHORT for row in rows)
    page.table(("", "", "", ""), rows, indent=4, keep=(3,) if short else ())


def _table(page: Page, comparison: Mapping[str, Any]) -> None:
    page.blank()
    modes = [_head(str(mode)) for mode in comparison["modes"]]
    narrow = page.width < _NARROW
    rows = []
    for row in comparison["rows"]:
        words = [styled(word, _WORDS.get(word, "error")) for word in row["modes"]]
        remarks = ["= recorded"] if row["as_recorded"] else []
        remarks += ["usage says 0"] if row["reasoning_tokens_zero"] else []
        how = "as served" if row["served"] else variant_name(row["change"]) if row["change"] is not None else ""
        name, remark = Text(visible(row["parser"]), "bold"), styled(", ".join(remarks), "dim")
        if narrow:
            lines = [Text(f"\n  {part}") for part in (how, remark.plain) if part]
            rows.append((Text.assemble(name, *lines), *words))
        else:
            rows.append((Text.assemble(name, f"  {how}" if how else ""), *words, remark))
    head = ("on this output", *modes, *(() if narrow else ("",)))
    page.table(head, rows, indent=4, keep=range(1, 1 + len(modes)))
    left = []
    if comparison.get("do_not_explain_it"):
        left.append(f"{comparison['do_not_explain_it']} more do not explain it")
    if comparison.get("not_run"):
        left.append(f"{comparison['not_run']} cannot be run here")
    if left:
        page.line(styled(f"{', '.join(left)} (--parser all)", "dim"), indent=4)


def _head(mode: str) -> str:
    if mode.isdigit():
        return f"by {mode}"
    return _HEADS.get(mode) or mode.replace("holdback:", "held ")


def told(page: Page, findings: Sequence[Finding]) -> None:
    """The findings of one trace, a line each; what to do where no mend was replayed."""
    shown = [finding for finding in findings if page.verbose or finding.severity != "info"]
    mended = any(finding.evidence.get("mends") for finding in findings)
    if shown:
        page.blank()
    for finding in shown:
        marks = [] if finding.confidence == "high" else [f"confidence {finding.confidence}"]
        marks += [f"suppressed: {compact(finding.suppressed)}"] if finding.suppressed is not None else []
        page.line(
            Text(f"{SEVERITY_WORD[finding.severity]} {finding.rule} ", STYLE[finding.severity]),
            Text(f"{finding.slug}: ", STYLE["head"]),
            finding.message,
            styled(f"  ({'; '.join(marks)})" if marks else "", "dim"),
            indent=4,
        )
        if not mended and finding.hint:
            page.fields([("instead", finding.hint)], indent=6)
