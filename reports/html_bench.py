"""A parser's test bench in an HTML report: which cases go right in which mode, and what generated outputs must hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .markup import Child, Html, el, exact, fields, join, table
from .terms import shared_by_requests
from .wording import compact, counted, visible

_COLUMNS: Sequence[tuple[str, ...]] = (("full",), ("stream",), ("prompt", "ids"))
_COMPARED = (("fixed", "good"), ("broke", "bad"), ("left", "warn"))


def show(facts: Mapping[str, Any]) -> Html:
    """The parser, its cases over all prompts, what had to hold, and how vLLMs compare."""
    cases = [case for case in facts.get("cases") or [] if case["weighs"]]
    return join(
        fields(_head(facts)),
        table(("case", "in full", "streamed", "asked"), _cases(cases)) if cases else None,
        _generated(facts.get("generated") or {}),
        *(_compared(pair) for pair in _pairs(facts.get("comparison"))),
    )


def _head(facts: Mapping[str, Any]) -> list[tuple[Child, Child]]:
    markers = facts.get("markers") or {}
    told = [el("code", exact(str(text))) for text in (markers.get("start"), markers.get("end")) if text]
    rows: list[tuple[Child, Child]] = [("parser", el("code", str(facts.get("name"))))]
    rows += [("plugin", str(facts["file"]))] if facts.get("file") else []
    rows += [("markers", join(*(join(one, " ") for one in told)))] if told else []
    rows += [("tokenizer", f"of {facts['model']}" if facts.get("tokenizer") == "model" else "assumed, of the markers")]
    return rows


def _cases(cases: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Child, ...]]:
    for name in dict.fromkeys(str(case["name"]) for case in cases):
        own = [case for case in cases if case["name"] == name]
        yield name.replace("-", " "), *(_cell([case for case in own if case["mode"] in modes]) for modes in _COLUMNS)


def _cell(cases: Sequence[Mapping[str, Any]]) -> Html | None:
    """How many of one case's prompts went right, and what was wrong with the others."""
    if not cases:
        return None
    wrong = [case for case in cases if case["ok"] is not True]
    of = f" ({len(cases) - len(wrong)} of {len(cases)})" if len(cases) > 1 else ""
    if not wrong:
        return el("span", f"✓ ok{of}", class_="good")
    said = "; ".join(dict.fromkeys(visible(str(case.get("wrong") or "lost")) for case in wrong))
    return join(el("span", f"✕ wrong{of}", class_="bad"), el("span", f" {said}", class_="dim"))


def _generated(generated: Mapping[str, Any]) -> Html | None:
    if not generated.get("examples"):
        return None
    rows = []
    for name, row in generated["invariants"].items():
        smallest = row.get("smallest")
        rows.append(
            (
                name.replace("-", " "),
                el("span", f"✕ {row['broken']:,} break it", class_="bad")
                if row["broken"]
                else el("span", "cannot be told", class_="warn")
                if row.get("shared")
                else el("span", "✓ holds", class_="good"),
                join(el("q", exact(str(smallest["output"]), 200), class_="raw"), f" {compact(smallest['wrong'])}")
                if smallest is not None
                else shared_by_requests(row["shared"])
                if row.get("shared")
                else None,
            )
        )
    title = f"{generated['examples']:,} generated outputs, {generated['well_formed']:,} of them well-formed"
    return join(el("h4", title), table(("has to hold", "", "the smallest that breaks it"), rows))


def _pairs(comparison: Mapping[str, Any] | None) -> Sequence[Mapping[str, Any]]:
    if comparison is None:
        return ()
    others: Sequence[Mapping[str, Any]] = comparison.get("others", [comparison])
    return others


def _compared(pair: Mapping[str, Any]) -> Html:
    """One vLLM against another: what it mended, what it broke, what stayed wrong."""
    rows = [
        (el("span", word, class_=style), counted(len(pair[word]), "case"), exact(", ".join(map(str, pair[word])), 400))
        for word, style in _COMPARED
    ]
    return join(el("h4", f"{pair['other']} against {pair['base']}"), table(("", "", ""), rows))
