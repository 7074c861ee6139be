"""One trace that a parser fails on: what the client got, why, what mends it, and how other parsers fare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from ..checks.finding import Finding
from ..checks.rule import all_rules
from .page import STYLE, Cell, Page, split_text, styled
from .paste import Advice
from .terms import mode_name
from .wording import SEVERITY_WORD, compact, counted, shortened, variant_name, visible

_HEADS = {"full": "whole", "recorded": "recorded", "token": "token", "whole": "at once", "char": "char"}
_WORDS = {"ok": "pass", "differs": "warning"}
_DOUBTS = {"assumed": "the tokenizer is assumed", "lossy": "the text was rebuilt"}
_ENDS = 200
"""Characters at either end of a text that are compared."""
_FAULTS = {
    "leak": "marker leaked",
    "lost": "text lost",
    "no call": "tool call filed as reasoning",
    "no answer": "no answer",
    "differs": "split at the wrong place",
}


def heading(
    page: Page, name: str, rows: Sequence[Mapping[str, Any]], recorded: Mapping[str, Any] | None, deltas: int | None
) -> None:
    """The trace's name, where it stands and what kind of run it is: `t1  capture.jsonl:4, 41 deltas`."""
    page.blank()
    words = [_place(rows[0])] if rows[0].get("line") is not None else []
    entry = str(rows[0].get("entry") or "")
    words += [entry] if entry not in name else []
    words += [counted(deltas, "delta")] if deltas else []
    words += [f"finish_reason {recorded['finish_reason']}"] if recorded and recorded.get("finish_reason") else []
    page.line(Text(visible(name), "bold"), styled(f"  {', '.join(words)}", "dim"), indent=2)


def _place(row: Mapping[str, Any]) -> str:
    """`capture.jsonl:4`, or the line alone where the trace is named by its file."""
    path = row.get("path")
    return f"line {row['line']}" if path is None or str(row["trace"]).startswith(path) else f"{path}:{row['line']}"


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
    mended = explained(page, findings, served)
    _table(page, comparison)
    told(page, findings, served, mended)


def explained(page: Page, findings: Sequence[Finding], result: Mapping[str, Any]) -> Sequence[str]:
    """The cause, step by step, and the mends of the same finding; returns the changes that were told.

    Args:
        page: where it goes.
        findings: those of one trace; the first that has a chain tells it.
        result: what the parser made of the trace, for what keeps the confidence down.
    """
    first = next((finding for finding in findings if finding.evidence.get("chain")), None)
    if first is not None:
        _cause(page, first, result)
    story = first or next((finding for finding in findings if finding.evidence.get("mends")), None)
    mended = (story.evidence.get("mends") if story is not None else None) or ()
    if mended:
        _mends(page, mended)
    return [str(mend["change"]) for mend in mended]


def _splits(
    page: Page,
    recorded: Mapping[str, Any] | None,
    served: Mapping[str, Any],
    comparison: Mapping[str, Any],
    findings: Sequence[Finding],
) -> None:
    full = served.get("full") or {}
    words = dict(zip(comparison["modes"], comparison["rows"][0]["modes"], strict=True))
    shown = next((f.evidence for f in findings if f.evidence.get("streamed")), {})
    streamed, chunking = shown.get("streamed") or full, str(shown.get("chunking"))
    as_recorded = recorded is not None and served.get("matches_recorded")
    expected = comparison.get("expected")
    rows: list[tuple[str, str | Text]] = []
    if recorded is not None:
        own = words.get("recorded", words.get("full"))
        rows.append(("the client got", _with(split_text(recorded, page.limit), own if as_recorded else None)))
    if not as_recorded:
        giver = "without a parser" if served["parser"] == "none" else f"{served['parser']} gives"
        rows.append((giver, _with(split_text(full, page.limit), words.get("full"))))
    if not _same(streamed, full):
        if as_recorded and recorded is not None and _same(recorded, streamed):
            rows.append(("in full", _with(split_text(full, page.limit), words.get("full"))))
        else:
            label = mode_name(chunking) if chunking in words else "streamed"
            rows.append((label, _with(split_text(streamed, page.limit), words.get(chunking))))
    if expected is not None:
        right = as_recorded and recorded is not None and _same(recorded, expected)
        rows.append(("it should be", "what the client got" if right else split_text(expected, page.limit)))
    page.fields(rows, indent=4)


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Equal as far as a reader sees: of long texts evidence has both ends, and white space there says nothing."""
    return all(_ends(one.get(key)) == _ends(other.get(key)) for key in ("reasoning", "content", "error"))


def _ends(text: str | None) -> tuple[str, str]:
    said = (text or "").strip()
    return said[:_ENDS], said[-_ENDS:]


def _with(split: Text, word: str | None) -> Text:
    """The split, and what is wrong with it."""
    wrong = _FAULTS.get(word or "ok")
    return Text.assemble(split, styled(f"   {wrong}" if wrong else "", "error"))


def _cause(page: Page, finding: Finding, result: Mapping[str, Any]) -> None:
    page.blank()
    doubts = _doubts(result)
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
    """What mends it and what its replay showed: a line each where they fit, else each change on a line of its own."""
    page.blank()
    rows = [
        ("fix" if not number else "or", str(mend["side"]), str(mend["change"]), f"replayed: {mend['replayed']}")
        for number, mend in enumerate(mended)
    ]
    if _fits(page, rows, indent=4):
        page.table(("", "", "", ""), rows, indent=4)
        return
    for first, side, change, outcome in rows:
        page.fields([(f"{first:<3}  {side}", Advice(change)), ("", outcome)], indent=4)


def _fits(page: Page, rows: Sequence[Sequence[Cell]], *, indent: int) -> bool:
    """No cell of the table would be wrapped."""
    widths = [max(cell_len(styled(cell).plain) for cell in column) for column in zip(*rows, strict=True)]
    return indent + sum(widths) + 2 * (len(widths) - 1) <= page.width


def _table(page: Page, comparison: Mapping[str, Any]) -> None:
    """A column for each mode where that fits, else the modes in words behind each parser."""
    page.blank()
    modes = [_head(str(mode)) for mode in comparison["modes"]]
    rows: list[list[Cell]] = []
    for row in comparison["rows"]:
        words = [styled(word, _WORDS.get(word, "error")) for word in row["modes"]]
        remarks = ["= recorded"] if row["as_recorded"] else []
        remarks += ["usage says 0"] if row["reasoning_tokens_zero"] else []
        how = "as served" if row["served"] else variant_name(row["change"]) if row["change"] is not None else ""
        name = Text.assemble(Text(visible(row["parser"]), "bold"), f"  {how}" if how else "")
        rows.append([name, *words, styled(", ".join(remarks), "dim")])
    head = ("on this output", *modes, "")
    if _fits(page, [head, *rows], indent=4):
        page.table(head, rows, indent=4)
    else:
        page.line(styled("on this output", "dim"), indent=4)
        for cells in rows:
            name, *told, remark = map(styled, cells)
            page.line(name, Text.assemble("  ", remark) if remark.plain else "", indent=6)
            page.line(_in_words(modes, told), indent=8)
    _footnotes(page, comparison)


def _in_words(modes: Sequence[str], words: Sequence[Text]) -> Text:
    """`leak` for all modes alike, else `ok whole, token; leak held 12`."""
    alike: dict[str, tuple[Text, list[str]]] = {}
    for mode, word in zip(modes, words, strict=True):
        alike.setdefault(word.plain, (word, []))[1].append(mode)
    if len(alike) == 1:
        return Text.assemble(words[0], " in every mode")
    return Text("; ").join(Text.assemble(word, f": {', '.join(names)}") for word, names in alike.values())


def _footnotes(page: Page, comparison: Mapping[str, Any]) -> None:
    rest, not_run = comparison.get("do_not_explain_it"), comparison.get("not_run")
    left = [f"{rest} more {'does' if rest == 1 else 'do'} not explain it"] if rest else []
    left += [f"{not_run} cannot be run here"] if not_run else []
    if left:
        page.line(styled(f"{', '.join(left)} (--parser all)", "dim"), indent=4)
    notes = []
    if any(row["reasoning_tokens_zero"] for row in comparison["rows"]):
        notes.append("usage says 0: the server would report 0 reasoning tokens")
    for place, mode in enumerate(comparison["modes"]):
        # Worth a word where late text alone makes a difference.
        if str(mode).startswith("holdback:") and any(
            row["modes"][place] not in ("ok", row["modes"][0]) for row in comparison["rows"]
        ):
            late = str(mode).removeprefix("holdback:")
            notes.append(f"{_head(str(mode))}: text comes {late} characters behind its ids, as with stop strings")
    for note in notes:
        page.line(styled(note, "dim"), indent=4)


def _head(mode: str) -> str:
    if mode.isdigit():
        return f"by {mode}"
    return _HEADS.get(mode) or mode.replace("holdback:", "held ")


def told(page: Page, findings: Sequence[Finding], result: Mapping[str, Any], mended: Sequence[str] = ()) -> None:
    """The findings of one trace, a line each, and what to do where no mend was replayed: what several say, once.

    Args:
        page: where it goes.
        findings: those of one trace, the gravest first.
        result: what the parser made of it, for what keeps the confidence down.
        mended: changes that were told already; hints that say them again are left out.
    """
    shown = [finding for finding in findings if page.verbose or finding.severity != "info"]
    if not shown:
        return
    page.blank()
    doubted = [finding for finding in shown if finding.confidence != "high"]
    alike = len(doubted) > 1 and len({finding.confidence for finding in shown}) == 1
    for number, finding in enumerate(shown):
        entry = f" ({result['entry']})" if result.get("entry") else ""  # the heading has told it
        message = finding.message.removesuffix(entry)
        one_line(page, replace(finding, message=message), indent=4, confidence=not alike)
        repeated = any(change in (finding.hint or "") for change in mended) or _said_elsewhere(shown, number)
        if finding.hint and not repeated:
            page.fields([("instead", Advice(finding.hint))], indent=6)
    if alike:
        doubts = _doubts(result)
        because = f": {' and '.join(doubts)}" if doubts else ""
        page.line(styled(f"confidence {shown[0].confidence}{because}", "dim"), indent=4)


def _doubts(result: Mapping[str, Any]) -> list[str]:
    """Why a result is not wholly sure, in words."""
    return [why for key, why in _DOUBTS.items() if key == result.get("tokenizer") or result.get(key)]


def _said_elsewhere(findings: Sequence[Finding], number: int) -> bool:
    """A later hint is the same, or one begins with this one."""
    hint = findings[number].hint or ""
    return any(
        (other.hint or "").startswith(hint) and (other.hint != hint or later > number)
        for later, other in enumerate(findings)
    )


def one_line(
    page: Page, finding: Finding, *, about: str | None = None, indent: int = 0, confidence: bool = True
) -> None:
    """Severity, rule, `about` and message of a finding, and what qualifies it."""
    marks = [] if finding.confidence == "high" or not confidence else [f"confidence {finding.confidence}"]
    marks += [f"suppressed: {compact(finding.suppressed)}"] if finding.suppressed is not None else []
    page.line(
        Text(f"{SEVERITY_WORD[finding.severity]} {finding.rule} ", STYLE[finding.severity]),
        Text(f"{finding.slug}: ", STYLE["head"]),
        Text(f"{visible(about)}: ") if about is not None else "",
        finding.message,
        styled(f"  ({'; '.join(marks)})" if marks else "", "dim"),
        indent=indent,
    )
