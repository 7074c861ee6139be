"""Budgets in an HTML report: for each request a bar of its tokens, thinking up to the cutoff and what is left then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .markup import Child, Html, el, exact, fields, join, table
from .terms import ANSWER_RESERVE, request_name, source_name
from .wording import compact, counted


def show(facts: Mapping[str, Any], target: str) -> Html:
    """What was read, by which rules, and a bar for every kind of request at every `max_tokens`."""
    rows: list[tuple[Child, Child]] = []
    place = facts.get("location")
    if facts.get("path"):
        at = f":{place['line']}:{place['column']}" if place else ""
        rows.append(("read", f"{facts['path']}{at}" + (f", {facts['where']}" if facts.get("where") else "")))
    if facts.get("budgets") is not None:
        rows.append(("budgets", el("code", compact(facts["budgets"]))))
    rows.append(("judged by", str(facts.get("rules") or f"the rules of {target}")))
    if facts.get("refused"):
        rows.append(("refused", el("span", exact(str(facts["refused"])), class_="bad")))
    return join(
        fields(rows),
        bars(facts.get("resolutions") or [], int(facts.get("answer_reserve", ANSWER_RESERVE)), facts.get("prompts")),
        _ungranted(facts.get("requests") or []),
    )


def in_audit(facts: Mapping[str, Any], target: str) -> Html:
    """The budget an audit was given."""
    return join(el("h4", "Budgets"), show(facts, target))


def bars(
    resolutions: Sequence[Mapping[str, Any]], reserve: int = ANSWER_RESERVE, prompts: Mapping[str, Any] | None = None
) -> Html | None:
    """A bar a row, all of one scale: thinking tokens up to the cutoff, the end marker, the answer's.

    Args:
        resolutions: rows of `validate-config`.
        reserve: tokens below which an answer is short.
        prompts: what the model's template makes of efforts, where a model is known.
    """
    if not resolutions:
        return None
    widest = max(int(row["max_tokens"]) for row in resolutions)
    refused = {row["effort"] for row in (prompts or {}).get("efforts") or [] if row.get("refused")}
    rows = [
        (
            request_name(row),
            source_name(row),
            int(row["max_tokens"]),
            _bar(row, widest),
            join(
                _said(row, reserve),
                el("span", " the template refuses it", class_="bad") if row["effort"] in refused else None,
            ),
        )
        for row in resolutions
    ]
    return join(
        table(("the request says", "cutoff from", "max_tokens", "tokens", ""), rows, class_="bars"),
        el(
            "p",
            el("span", "thinking at most", class_="key reasoning"),
            el("span", "left for the answer then", class_="key content"),
            el("span", "no cutoff: thinking may take all", class_="key open"),
            class_="legend",
        ),
    )


def _bar(row: Mapping[str, Any], widest: int) -> Html:
    limit, cutoff = int(row["max_tokens"]), row["cutoff"]
    if cutoff is None:
        parts = [el("rect", x=0, y=0, width=limit, height=10, class_="open")]
    else:
        left = int(row["answer_capacity"])
        parts = [el("rect", x=0, y=0, width=int(cutoff), height=10, class_="reasoning")]
        parts += [el("rect", x=limit - left, y=4, width=left, height=6, class_="content")] if left else []
    return el(
        "svg",
        *parts,
        el("rect", x=0, y=0, width=limit, height=10, class_="frame"),
        viewBox=f"0 0 {widest} 10",
        preserveAspectRatio="none",
        class_="bar",
        role="img",
        aria_label=_words(row),
    )


def _words(row: Mapping[str, Any]) -> str:
    if row["cutoff"] is None:
        return f"no cutoff within {row['max_tokens']} tokens"
    return f"{row['cutoff']} thinking, {row['answer_capacity']} left of {row['max_tokens']}"


def _said(row: Mapping[str, Any], reserve: int) -> Html:
    if row["cutoff"] is None:
        return el("span", "no cutoff", class_="dim")
    left = int(row["answer_capacity"])
    said = join(el("b", int(row["cutoff"]), class_="t-reasoning"), " | ", el("b", left, class_="t-content"), " left")
    if left == 0:
        return join(said, el("span", " ✕ no answer", class_="bad"))
    return join(said, el("span", " ! short", class_="warn")) if left < reserve else said


def _ungranted(requests: Sequence[Mapping[str, Any]]) -> Html | None:
    """Requests whose budget is turned down or never read."""
    rows = [
        (
            el("span", str(request["standing"]), class_="bad"),
            f"{request['request']}, {request['endpoint']}",
            request_name(request),
            str(request.get("refused") or ""),
        )
        for request in requests
        if request.get("standing") in ("refused", "ignored")
    ]
    if not rows:
        return None
    return join(
        el("h4", f"{counted(len(rows), 'request')} whose budget is not granted"),
        table(("", "request", "asks", ""), rows),
    )
