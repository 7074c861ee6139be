"""A verification in an HTML report: the server, and case by case what was to come and what came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .html_audit import state
from .markup import Child, Html, el, exact, fields, join, table
from .terms import COUNTING
from .wording import compact

_OUTCOMES = {True: ("✓ ok", "good"), False: ("✕ differs", "bad"), None: ("? open", "warn")}


def show(facts: Mapping[str, Any]) -> Html:
    """The server and the model, then the cases; refusals apart."""
    cases = facts.get("cases") or []
    answered = [case for case in cases if "refused" not in case["predicted"]]
    refusals = [case for case in cases if "refused" in case["predicted"]]
    notes = dict.fromkeys(str(case["note"]) for case in answered if case.get("note"))
    head = ("case", "asks", "prompt", "thinking tokens", "end", "answer", "finish", "usage says", "")
    return join(
        _head(facts),
        table(head, map(_case, answered)) if answered else None,
        el("ul", *(el("li", el("b", "* "), note) for note in notes), class_="notes") if notes else None,
        join(
            el("h4", "Requests that must be refused"),
            table(("case", "predicted", "observed", ""), map(_refusal, refusals)),
        )
        if refusals
        else None,
    )


def _head(facts: Mapping[str, Any]) -> Html | None:
    server, model = facts.get("server") or {}, facts.get("model") or {}
    what = [f"{server.get('kind')} {server.get('version') or 'of unknown version'}", server.get("device")]
    what += [f"runner {str(server['runner']).upper()}" if server.get("runner") else None]
    rows: list[tuple[Child, Child]] = [("server", ", ".join(str(part) for part in what if part))]
    if model.get("lab"):
        rows.append(
            ("model", f"lab {model['lab']}: {model.get('style')}; thinks for {model.get('thinking_tokens')} tokens")
        )
    elif model.get("name"):
        rows.append(("model", str(model["name"])))
    if "parser" in model:
        rows.append(("parser", str(model["parser"] or "none")))
    if facts.get("rule"):
        rule = str(facts["rule"])
        rows.append(("counting", COUNTING.get(rule, rule).replace("<start>", "the start marker")))
    return fields(rows)


def _case(case: Mapping[str, Any]) -> tuple[Child, ...]:
    wanted, seen = case["predicted"], case["observed"]
    word, style = ("✕ lost", "bad") if case.get("lost") else _OUTCOMES[case["ok"]]
    asked = {key: value for key, value in case["request"].items() if value is not None}
    return (
        join(str(case["name"]), el("b", " *") if case.get("note") else None),
        el("code", exact(", ".join(f"{key}={compact(value)}" for key, value in asked.items()), 120)),
        state(str(case["prompt_state"])),
        _both(wanted, seen, "thinking_tokens"),
        _both(wanted, seen, "end" if seen.get("end") else "forced_end", {True: "forced", False: "not forced"}),
        _value(seen.get("answer_tokens")),
        _value(seen.get("finish_reason")),
        _value(seen.get("reasoning_tokens_reported")),
        el("span", word, class_=style),
    )


def _both(wanted: Mapping[str, Any], seen: Mapping[str, Any], key: str, words: Mapping[Any, str] | None = None) -> Html:
    """What was observed; what was predicted too where that is another thing."""
    one, other = ((words or {}).get(value, _value(value)) for value in (wanted.get(key), seen.get(key)))
    if one == other or wanted.get(key) is None:
        return el("span", other)
    return join(el("span", other, class_="bad"), el("span", f" predicted {one}", class_="dim"))


def _refusal(case: Mapping[str, Any]) -> tuple[Child, ...]:
    wanted, seen = case["predicted"]["refused"], case["observed"].get("refused")
    word, style = _OUTCOMES[case["ok"]]
    came = f"HTTP {seen['status']}" if seen else "taken"
    text = exact(str((seen or {}).get("text") or ""), 200)
    return (
        str(case["name"]).removeprefix("refused: "),
        join(f"HTTP {wanted['status']} ", el("span", exact(str(wanted.get("text") or ""), 200), class_="dim")),
        join(f"{came} ", el("span", text, class_="dim")),
        el("span", word, class_=style),
    )


def _value(value: Any) -> str:
    return "–" if value is None else str(value)
