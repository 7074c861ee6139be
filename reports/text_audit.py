"""What an audit looked at: the model, how its prompts end, and which parser suits them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.text import Text

from ..checks.finding import Finding
from ..checks.report import Report
from . import text_budget
from .page import STYLE, Page, styled
from .paste import Whole
from .terms import first_failure, model_rows
from .wording import compact, judged_as, live_said, quoted, shortened, variant_name, visible

_STATE_STYLE = {"open": "magenta", "closed": "green", "closed-bare": "green", "none": "", "error": STYLE["error"]}
_SHOWN_CANDIDATES = 5


def show(page: Page, report: Report) -> None:
    """Headline, model, prompt states and fit; once per server where there are several."""
    servers = report.facts.get("servers")
    for facts in servers if isinstance(servers, Sequence) else [report.facts]:
        if facts.get("engine"):
            page.line(Text(visible(f"-     {facts.get('name')}: a {facts['engine']} server, not evaluated"), "bold"))
            page.blank()
            continue
        _headline(page, report, facts)
        _model(page, report, facts)
        _states(page, facts.get("prompt_states") or [])
        _parser(page, facts.get("parser") or {})
        if facts.get("live"):
            page.blank()
            page.fields([("live", live_said(facts["live"]))])
        if facts.get("budget"):
            text_budget.show_in_audit(page, facts["budget"], str(facts.get("target") or report.target))
        flags = facts.get("serve_flags")
        if flags:
            page.blank()
            page.fields([("paste", Whole(" ".join(map(str, flags))))])
        page.blank()


def _headline(page: Page, report: Report, facts: Mapping[str, Any]) -> None:
    name = facts.get("name") or (facts.get("model") or {}).get("source") or "the model"
    verdict = report.verdict if "name" not in facts else "fail" if _counting(report, facts) else "pass"
    page.line(
        styled(verdict.upper(), verdict),
        Text("  "),
        Text(visible(f"{name}: {_headword(report, facts)}"), "bold"),
    )


def _headword(report: Report, facts: Mapping[str, Any]) -> str:
    """The answer in a few words: does the parser fit, or what stands in the way."""
    parser = facts.get("parser") or {}
    judged = parser.get("judged") or parser.get("configured")
    fit = {row["name"]: row["fit"] for row in parser.get("candidates") or []}.get(judged)
    blamed = next(iter(_counting(report, facts)), None)
    if judged and fit == "fail":
        return f"{judged} does not fit" + (f" ({blamed.slug})" if blamed else ", and no finding counts")
    if judged and fit == "unsupported":
        return f"{judged} cannot be run on this model" + (f" ({blamed.slug})" if blamed else "")
    if blamed:
        return f"{blamed.rule} {blamed.slug}"
    if judged and fit == "pass":
        return f"{judged} fits"
    return "no reasoning parser to judge" if not judged else f"{judged} was not run"


def _counting(report: Report, facts: Mapping[str, Any]) -> list[Finding]:
    """The findings that count and are about this server; about anything, where there is only one."""
    if "name" not in facts:
        return list(report.counting)
    place = facts.get("location") or {}
    source = (facts.get("model") or {}).get("source")
    return [
        finding
        for finding in report.counting
        if finding.subject.get("server", facts["name"]) == facts["name"]
        and finding.subject.get("model", source) == source
        and (not place or "server" not in finding.subject or _same_file(finding, place))
    ]


def _same_file(finding: Finding, place: Mapping[str, Any]) -> bool:
    """A finding at another server of that name in another file is not about this one."""
    path = finding.location.path if finding.location is not None else None
    return path == place.get("path") or not str(path).endswith((".yaml", ".yml", ".sh", ".json", ".service"))


def _model(page: Page, report: Report, facts: Mapping[str, Any]) -> None:
    model = facts.get("model") or {}
    rows: list[tuple[str, str | Text]] = [("judged as", judged_as(report, facts))]
    rows += model_rows(model)
    markers = [_marker(marker) for marker in model.get("markers") or []]
    if markers:
        rows.append(("markers", ", ".join(markers)))
    rows += [("note", note) for note in model.get("notes") or []]
    rows += [("" if index else "history", line) for index, line in enumerate(_history(facts.get("history") or []))]
    page.fields(rows)


def _marker(marker: Mapping[str, Any]) -> str:
    ids = marker.get("ids")
    if not ids:
        return visible(marker["text"])
    tokens = f"{ids[0]}" if marker.get("single_token") else f"{len(ids)} tokens"
    return f"{visible(marker['text'])} ({tokens}{', special' if marker.get('special') else ''})"


def _history(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """`reasoning: kept in a tool loop, dropped on the next user turn`, fields with one fate together."""
    fates: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        fates.setdefault((row["tool_loop"], row["next_user_turn"]), []).append(row["field"])
    return [
        f"{', '.join(fields)}: {loop} in a tool loop, {turn} on the next user turn"
        for (loop, turn), fields in fates.items()
    ]


def _states(page: Page, states: Sequence[Mapping[str, Any]]) -> None:
    """How prompts end: one row for each ending of a plain question, then only what other conversations change."""
    if not states:
        return
    base = {_key(row["variant"]): row for row in states if row["conversation"] == "single_turn"}
    rows: list[tuple[Text, ...]] = []
    for group in _grouped(base.values()):
        rows.append(_state_row(_variants(page, [row["variant"] for row in group]), group[0], page))
    others = [row for row in states if row["conversation"] != "single_turn"]
    moved = [row for row in others if _ending(row) != _ending(base.get(_key(row["variant"]), {}))]
    for group in _grouped(moved, conversation=True):
        label = f"{group[0]['conversation']}: {_variants(page, [row['variant'] for row in group])}"
        rows.append(_state_row(label, group[0], page))
    same = dict.fromkeys(row["conversation"] for row in others if row not in moved)
    same_names = ", ".join(name for name in same if not any(row["conversation"] == name for row in moved))
    if same_names:
        rows.append((styled(same_names, "dim"), styled("as above", "dim"), Text()))
    page.blank()
    page.table(("request", "prompt ends", "in"), rows)


def _state_row(label: str, row: Mapping[str, Any], page: Page) -> tuple[Text, ...]:
    state = str(row["state"])
    tail = quoted(row["tail"], 60) if row.get("tail") else ""
    if row.get("error"):
        tail = shortened(compact(row["error"]), page.limit)
    if row.get("tokens_after_open"):
        tail += f"  +{row['tokens_after_open']} after the marker"
    return styled(label), Text(state, _STATE_STYLE.get(state, "")), styled(tail, "dim")


def _grouped(rows: Iterable[Mapping[str, Any]], *, conversation: bool = False) -> list[list[Mapping[str, Any]]]:
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        key = (row["conversation"] if conversation else None, *_ending(row))
        groups.setdefault(key, []).append(row)
    return list(groups.values())


def _ending(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What makes two prompts end alike. The texts of two conversations differ, so their tails are not compared."""
    return (row.get("state"), row.get("marker"), bool(row.get("error")))


def _key(variant: Mapping[str, Any]) -> str:
    return variant_name(dict(sorted(variant.items())))


def _variants(page: Page, variants: Sequence[Mapping[str, Any]]) -> str:
    names = [variant_name(variant) for variant in variants]
    shown = names if page.verbose else names[:4]
    return "; ".join(shown) + (f"; {len(names) - len(shown)} more" if len(names) > len(shown) else "")


def _parser(page: Page, parser: Mapping[str, Any]) -> None:
    requests = parser.get("requests") or []
    candidates = parser.get("candidates") or []
    judged = parser.get("judged") or parser.get("configured")
    if requests:
        page.blank()
        groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
        for row in requests:
            key = (row["conversation"], row["state"], row["gets"], row["ok"], row.get("rule"))
            groups.setdefault(key, []).append(row)
        rows = [_request_row(page, group) for group in groups.values()]
        page.table((f"with {judged}", "prompt ends", "the client gets", ""), rows)
    if candidates:
        page.blank()
        page.table(("parser", "fit", "probes", ""), _candidate_rows(page, parser, judged))


def _request_row(page: Page, group: Sequence[Mapping[str, Any]]) -> tuple[str | Text, ...]:
    """What a kind of request gets from the judged parser; variants that fare alike are one row."""
    row = group[0]
    variants = _variants(page, [each["variant"] for each in group])
    style = "" if row["ok"] else "error"
    return (
        variants if row["conversation"] == "single_turn" else f"{row['conversation']}: {variants}",
        Text(str(row["state"]), _STATE_STYLE.get(str(row["state"]), "")),
        styled(row["gets"], style),
        styled(str(row.get("rule") or ("ok" if row["ok"] else "")), style),
    )


def _candidate_rows(page: Page, parser: Mapping[str, Any], judged: str | None) -> list[tuple[str | Text, ...]]:
    """The judged and the recommended parser first, then the best of the others; the rest by number."""
    candidates = list(parser["candidates"])
    marked = [name for name in (judged, parser.get("recommended")) if name]
    ordered = sorted(candidates, key=lambda row: marked.index(row["name"]) if row["name"] in marked else len(marked))
    useful = [row for row in ordered if row["fit"] != "unsupported" or row["name"] in marked]
    shown = ordered if page.verbose else useful[:_SHOWN_CANDIDATES]
    roles = {"configured": "by its answers" if parser.get("inferred") else "configured", "recommended": "recommended"}
    rows: list[tuple[str | Text, ...]] = []
    for row in shown:
        role = [word for role, word in roles.items() if parser.get(role) == row["name"]]
        rows.append((_named(row["name"], role), _fit(row["fit"]), _probes(row), styled(_remark(page, row), "dim")))
    rest = [row for row in ordered if row not in shown]
    for fit in ("pass", "fail", "unsupported"):
        names = [row["name"] for row in rest if row["fit"] == fit]
        if names:
            rows.append((styled(f"{len(names)} more", "dim"), _fit(fit), Text(), styled(_few(names, fit), "dim")))
    return rows


def _named(name: str, roles: Sequence[str]) -> Text:
    return Text.assemble(
        Text(visible(name), "bold" if roles else ""), Text(f" ({', '.join(roles)})" if roles else "", "dim")
    )


def _fit(fit: str) -> Text:
    return styled(fit, {"pass": "pass", "fail": "error"}.get(fit, "dim"))


def _few(names: Sequence[str], fit: str) -> str:
    return (
        ", ".join(names) if fit == "pass" else f"{', '.join(names[:3])}{', ...' if len(names) > 3 else ''} (--verbose)"
    )


def _probes(row: Mapping[str, Any]) -> str:
    probes = row.get("probes") or {}
    ran = probes.get("passed", 0) + probes.get("failed", 0)
    return f"{probes.get('passed', 0)} of {ran}" if ran else ""


def _remark(page: Page, row: Mapping[str, Any]) -> str:
    if row.get("reason"):
        return shortened(compact(row["reason"]), page.limit)
    return first_failure(row)
