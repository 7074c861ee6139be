"""An audit in an HTML report: the matrix of prompt states, what clients get, and how parsers fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import html_budget
from .markup import Child, Html, el, exact, fields, join, table
from .terms import first_failure, model_rows
from .wording import live_said, variant_name

_LETTER = {"open": "O", "closed": "C", "closed-bare": "B", "none": "–", "error": "!"}
_MEANS = {
    "open": "the prompt ends inside a thinking block",
    "closed": "the prompt closes thinking: the model answers at once",
    "closed-bare": "an end marker without a start before it",
    "none": "no marker: the model opens thinking itself, or does not think",
    "error": "the template raised, or ran out of time",
}
_FIRST = ("single_turn", "system", "multi_turn", "tools", "tool_result")


def show(facts: Mapping[str, Any], target: str) -> Html:
    """One model or server: everything that was looked at."""
    flags = facts.get("serve_flags")
    return join(
        _model(facts.get("model") or {}),
        matrix(facts.get("prompt_states") or []),
        _requests(facts.get("parser") or {}),
        _candidates(facts.get("parser") or {}),
        el("p", "live: ", live_said(facts["live"])) if facts.get("live") else None,
        _history(facts.get("history") or []),
        html_budget.in_audit(facts["budget"], target) if facts.get("budget") else None,
        el("p", "paste ", el("code", " ".join(map(str, flags)), class_="paste")) if flags else None,
    )


def matrix(states: Sequence[Mapping[str, Any]]) -> Html | None:
    """How prompts end: a row a kind of request, a column a conversation; under it the endings, each once."""
    if not states:
        return None
    found = {(_key(row), row["conversation"]): row for row in states}
    variants = list(dict.fromkeys(_key(row) for row in states))
    named = dict.fromkeys(str(row["conversation"]) for row in states)
    columns = [*(name for name in _FIRST if name in named), *(name for name in named if name not in _FIRST)]
    endings = _endings(states, columns)
    rows = [
        [el("code", key), *(_cell(found.get((key, column)), key, column, endings) for column in columns)]
        for key in variants
    ]
    head = ["request", *(column.replace("_", " ") for column in columns)]
    return join(
        el("h4", "How prompts end"),
        el("div", table(head, rows, class_="matrix"), class_="roving", data_hint="state"),
        el(
            "ol",
            *(_ending(number, row) for number, row in enumerate(endings.values(), 1)),
            class_="endings",
        ),
    )


def state(name: str) -> Html:
    """A state's word in its colour, with its letter."""
    return el(
        "span",
        el("b", _LETTER.get(name, "?"), aria_hidden="true"),
        name,
        class_=f"state s-{name}",
        title=_MEANS.get(name),
    )


def _key(row: Mapping[str, Any]) -> str:
    return variant_name(row["variant"])


def _end(row: Mapping[str, Any]) -> tuple[str, str]:
    return str(row["state"]), str(row.get("error") or row.get("tail") or "")


def _endings(states: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> dict[tuple[str, str], Mapping[str, Any]]:
    """The different endings; those of the first conversations first."""
    ordered = sorted(states, key=lambda row: columns.index(str(row["conversation"])))
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row in ordered:
        found.setdefault(_end(row), row)
    return found


def _cell(
    row: Mapping[str, Any] | None, key: str, column: str, endings: Mapping[tuple[str, str], Mapping[str, Any]]
) -> Html:
    if row is None:
        return el("span", "not tried", class_="dim")
    name = str(row["state"])
    number = list(endings).index(_end(row)) + 1
    return el(
        "button",
        el("b", _LETTER.get(name, "?"), aria_hidden="true"),
        name,
        el("sup", number),
        type="button",
        class_=f"state s-{name}",
        data_end=number,
        aria_label=f"{key}, {column.replace('_', ' ')}: {name}, ending {number}",
    )


def _ending(number: int, row: Mapping[str, Any]) -> Html:
    after = row.get("tokens_after_open")
    return el(
        "li",
        state(str(row["state"])),
        " ",
        el("span", exact(str(row["error"])), class_="bad")
        if row.get("error")
        else el("q", exact(str(row.get("tail") or ""), 200), class_="raw"),
        el("span", f" {after} tokens after the marker", class_="dim") if after else None,
        data_end=number,
    )


def _model(model: Mapping[str, Any]) -> Html | None:
    rows: list[tuple[Child, Child]] = [*model_rows(model)]
    markers = [_marker(marker) for marker in model.get("markers") or []]
    if markers:
        rows.append(("markers", join(*(join(marker, " ") for marker in markers))))
    rows += [("note", str(note)) for note in model.get("notes") or []]
    return fields(rows)


def _marker(marker: Mapping[str, Any]) -> Html:
    ids = marker.get("ids") or []
    said = f"token {ids[0]}" if marker.get("single_token") and ids else f"{len(ids)} tokens" if ids else "no token"
    special = ", special" if marker.get("special") else ""
    return join(el("code", exact(str(marker["text"]))), el("span", f" {said}{special}", class_="dim"))


def _requests(parser: Mapping[str, Any]) -> Html | None:
    """What each kind of request gets; kinds that fare alike are one row."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in parser.get("requests") or []:
        key = (row["conversation"], row["state"], row["gets"], row["ok"], row.get("rule"))
        groups.setdefault(key, []).append(row)
    if not groups:
        return None
    rows = [
        (
            str(conversation).replace("_", " "),
            join(*(join(el("code", variant_name(row["variant"])), " ") for row in alike)),
            state(str(name)),
            str(gets),
            el("span", "✓ ok", class_="good") if ok else el("span", f"✕ {rule or 'wrong'}", class_="bad"),
        )
        for (conversation, name, gets, ok, rule), alike in groups.items()
    ]
    return join(
        el("h4", "What clients get with ", el("code", str(parser.get("judged") or parser.get("configured")))),
        table(("conversation", "request", "prompt ends", "the client gets", ""), rows),
    )


def _candidates(parser: Mapping[str, Any]) -> Html | None:
    candidates = parser.get("candidates") or []
    if not candidates:
        return None
    marked = [name for name in (parser.get("judged"), parser.get("recommended"), parser.get("configured")) if name]
    first = [row for row in candidates if row["name"] in marked]
    rest = [row for row in candidates if row["name"] not in marked]
    head = ("parser", "fit", "probes", "")
    return join(
        el("h4", "How parsers fit"),
        table(head, [_candidate(row, parser) for row in first]) if first else None,
        el(
            "details",
            el("summary", _counts(rest)),
            table(head, [_candidate(row, parser) for row in rest]),
        )
        if rest
        else None,
    )


def _counts(rest: Sequence[Mapping[str, Any]]) -> str:
    """`31 other parsers: 4 pass, 20 fail, 7 unsupported`."""
    words = [f"{sum(row['fit'] == fit for row in rest)} {fit}" for fit in ("pass", "fail", "unsupported")]
    return f"{len(rest)} other parsers: {', '.join(word for word in words if not word.startswith('0 '))}"


def _candidate(row: Mapping[str, Any], parser: Mapping[str, Any]) -> tuple[Child, ...]:
    roles = [role for role in ("configured", "recommended") if parser.get(role) == row["name"]]
    fit = str(row["fit"])
    mark = {"pass": ("✓", "good"), "fail": ("✕", "bad")}.get(fit, ("–", "dim"))
    probes = row.get("probes") or {}
    passed, failed = int(probes.get("passed", 0)), int(probes.get("failed", 0))
    said = str(row.get("reason") or first_failure(row))
    return (
        join(el("code", str(row["name"])), *(el("span", role, class_="chip") for role in roles)),
        el("span", f"{mark[0]} {fit}", class_=mark[1]),
        _meter(passed, failed) if passed + failed else None,
        exact(said, 300),
    )


def _meter(passed: int, failed: int) -> Html:
    """A bar of probes, the failed ones at its end."""
    total = passed + failed
    bar = el(
        "svg",
        el("rect", x=0, y=0, width=passed, height=1, class_="pass"),
        el("rect", x=passed, y=0, width=failed, height=1, class_="fail") if failed else None,
        viewBox=f"0 0 {total} 1",
        preserveAspectRatio="none",
        class_="meter",
        aria_hidden="true",
    )
    return join(bar, f" {passed} of {total}")


def _history(rows: Sequence[Mapping[str, Any]]) -> Html | None:
    if not rows:
        return None
    told = [(el("code", str(row["field"])), str(row["tool_loop"]), str(row["next_user_turn"])) for row in rows]
    return join(
        el("h4", "What becomes of earlier reasoning"),
        table(("handed over as", "in a tool loop", "on the next user turn"), told),
    )
