"""What a reasoning parser did in the battery: which cases it passes, and each failure so that it can be mended."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from rich.text import Text

from ..checks.finding import Finding
from ..checks.report import Report
from .page import STYLE, Page, split_text, styled, styled_quote
from .terms import shared_by_requests
from .wording import SEVERITY_WORD, compact, counted, judged_as, place, quoted, shortened, variant_name, visible

_COLUMNS = {"full": 0, "stream": 1, "prompt": 2, "ids": 2}
_PASTED = 1600
"""Characters of a test that are shown; a longer one stands in the file of `--emit-tests`."""
_NAMED = 8


def show(page: Page, report: Report) -> Collection[int]:
    """Headline, what was looked at, the cases, what else had to hold, the comparison, then each failure.

    Returns the `id` of each finding that is told here.
    """
    facts = report.facts
    cases = [case for case in facts.get("cases") or [] if case["weighs"]]
    page.line(styled(report.verdict.upper(), report.verdict), Text(f"  {_headline(facts, cases)}", "bold"))
    page.fields(_head(report))
    if cases:
        page.blank()
        page.table(("case", "in full", "streamed", "asked"), list(_table(cases)), keep=(0, 1, 2, 3))
    _generated(page, facts.get("generated") or {})
    _comparison(page, facts.get("comparison"))
    told = []
    for finding in report.findings:
        if page.verbose or (finding.suppressed is None and finding.severity != "info"):
            page.blank()
            _failure(page, finding)
            told.append(id(finding))
    page.blank()
    return told


def _headline(facts: Mapping[str, Any], cases: Sequence[Mapping[str, Any]]) -> str:
    name = visible(str(facts["name"]))
    if not cases:
        return f"{name}: looked at, not run"
    passed = sum(case["ok"] is True for case in cases)
    text = f"{name}: {passed} of {counted(len(cases), 'case')} right"
    examples = facts["generated"]["examples"]
    return f"{text}, {examples:,} generated outputs" if examples else text


def _head(report: Report) -> Iterator[tuple[str, str]]:
    facts = report.facts
    yield "judged as", judged_as(report)
    if facts.get("file"):
        yield "plugin", visible(str(facts["file"]))
    markers = [text for text in (facts["markers"]["start"], facts["markers"]["end"]) if text]
    words = [visible(str(facts["class"]))] if facts.get("class") else []
    words += [f"markers {'  '.join(map(visible, markers))}"] if markers else []
    if words:
        yield "parser", "   ".join(words)
    whose = {"model": f"of {facts['model']}", "table": "assumed, of the parser table's markers"}
    yield "tokenizer", whose.get(facts["tokenizer"], "assumed, of the markers the plugin names")
    if facts.get("emitted"):
        yield "tests", visible(str(facts["emitted"]))


def _table(cases: Sequence[Mapping[str, Any]]) -> Iterator[list[str | Text]]:
    """A row for each case, over all prompts: how many of them went right."""
    for name in dict.fromkeys(case["name"] for case in cases):
        cells: list[str | Text] = ["", "", ""]
        for column in range(3):
            here = [case["ok"] for case in cases if case["name"] == name and _COLUMNS[case["mode"]] == column]
            if here:
                cells[column] = _counted(here)
        yield [name.replace("-", " "), *cells]


def _counted(oks: Sequence[bool | None]) -> Text:
    right = sum(ok is True for ok in oks)
    if right == len(oks):
        return Text("ok" if right == 1 else f"ok ({right})", STYLE["pass"])
    word = "lost" if None in oks else "wrong"
    return Text(word if len(oks) == 1 else f"{word} ({len(oks) - right} of {len(oks)})", STYLE["error"])


def _generated(page: Page, generated: Mapping[str, Any]) -> None:
    if not generated.get("examples"):
        return
    page.blank()
    page.line(
        Text("generated outputs", "bold"),
        styled(f"   {generated['examples']:,}, {generated['well_formed']:,} of them well-formed", "dim"),
        indent=2,
    )
    rows = []
    for name, row in generated["invariants"].items():
        smallest = row.get("smallest")
        told = "" if smallest is None else f"{quoted(smallest['output'], 60)}: {compact(smallest['wrong'])}"
        broken = Text(f"{row['broken']:,} break it", STYLE["error"]) if row["broken"] else Text("holds", STYLE["pass"])
        if row.get("shared"):
            broken, told = Text("cannot be told", STYLE["warning"]), shared_by_requests(row["shared"])
        rows.append((name.replace("-", " "), broken, shortened(told, page.limit)))
    page.table(("has to hold", "", "the smallest that breaks it"), rows, keep=(0, 1))


def _comparison(page: Page, comparison: Mapping[str, Any] | None) -> None:
    if comparison is None:
        return
    for pair in comparison.get("others", [comparison]):
        page.blank()
        page.line(
            Text(f"{visible(pair['other'])}", "bold"), styled(f" against {visible(pair['base'])}", "dim"), indent=2
        )
        rows = [
            (Text(word, STYLE[style]), _some(pair[word], page.verbose))
            for word, style in (("fixed", "pass"), ("broke", "error"), ("left", "warning"))
        ]
        page.fields(
            [(str(word), Text.assemble(Text(str(len(pair[str(word)])), "bold"), f"  {text}")) for word, text in rows]
        )
        if pair["answers_differ"]:
            page.fields([("otherwise", f"{len(pair['answers_differ'])} cases are answered in another way, no better")])


def _some(labels: Sequence[str], verbose: bool) -> str:
    """The cases behind a number: those of several prompts once."""
    names = list(dict.fromkeys(label.partition(" (")[0] for label in labels))
    shown = names if verbose else names[:_NAMED]
    return ", ".join(map(visible, shown)) + (f" and {len(names) - len(shown)} more" if len(names) > len(shown) else "")


def _failure(page: Page, finding: Finding) -> None:
    page.line(
        Text(f"{SEVERITY_WORD[finding.severity]} {finding.rule} ", STYLE[finding.severity]),
        Text(f"{finding.slug}: ", STYLE["head"]),
        finding.message,
    )
    evidence = finding.evidence
    where = place(finding)
    rows: list[tuple[str, str | Text]] = [("at", where)] if where else []
    if finding.suppressed is not None:
        rows.append(("suppressed", finding.suppressed))
    if "prompt_tail" in evidence:
        request = evidence["request"]
        rows.append(("request", f"{variant_name(request['variant'])}, {request['conversation']}"))
        rows.append(("prompt ends", quoted(str(evidence["prompt_tail"])[-60:])))
        rows.append(("output", quoted(evidence["output"], page.limit)))
        rows += _deltas(page, evidence)
        rows.append(("came back", _value(page, evidence.get("got"))))
        if evidence.get("expected") is not None:
            rows.append(("expected", _value(page, evidence["expected"])))
        rows.append(("because", visible(str(evidence.get("because", "")))))
    else:
        rows += [(key, shortened(compact(value), page.limit)) for key, value in evidence.items() if value]
    rows.append(("mend", finding.hint))
    if finding.confidence != "high":
        rows.append(("confidence", finding.confidence))
    page.fields(rows)
    _test(page, str(evidence.get("pytest") or ""))


def _deltas(page: Page, evidence: Mapping[str, Any]) -> Iterator[tuple[str, str | Text]]:
    """The deltas as they came, and what was sent for each."""
    deltas, messages = evidence.get("deltas"), evidence.get("messages") or []
    if not deltas:
        return
    texts = [quoted(text, 60) for text, _ in deltas]
    yield "deltas", shortened("  ".join(texts), 4 * page.limit)
    sent = Text()
    for said in messages:
        sent.append("  " if sent.plain else "")
        if said is None:
            sent.append("-", STYLE["dim"])
            continue
        sides = [(side, text) for side, text in zip(("reasoning", "content"), said, strict=True) if text is not None]
        parts = [Text.assemble(f"{side[0]} ", styled_quote(text, side, 60)) for side, text in sides]
        sent.append(Text(" ").join(parts) if parts else Text("nothing"))
        if len(sent.plain) > 4 * page.limit:
            sent.append(" …")
            break
    if sent.plain:
        yield "sent", sent


def _value(page: Page, value: Any) -> str | Text:
    if isinstance(value, Mapping) and "error" in value:
        return f"raised {value['error']}" + (f": {compact(value['message'])}" if value.get("message") else "")
    if isinstance(value, Mapping):
        return split_text(value, page.limit)
    return "None" if value is None else shortened(compact(value), page.limit)


def _test(page: Page, text: str) -> None:
    """The test, line by line, unwrapped: it is to be pasted."""
    if not text:
        return
    if len(text) > _PASTED and not page.verbose:
        page.fields([("test", "long: --emit-tests DIR writes it, --verbose shows it")])
        return
    page.fields([("test", "to paste into what --emit-tests DIR writes:")])
    for line in text.splitlines():
        page.line(f"    {visible(line)}", wrap=False)
