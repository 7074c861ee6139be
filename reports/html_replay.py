"""Replayed traces in an HTML report: how parsers fared, and a card a trace, whose tokens the page's script draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..checks.finding import SEVERITIES, Finding
from ..checks.report import DRAWN
from .html_findings import split
from .html_tokens import Tokens, strip_json
from .markup import Child, Html, el, exact, fields, join, table
from .wording import SEVERITY_WORD, counted, shortened

_FAILED = {
    "stream_equals_full": "streaming differs",
    "chunk_invariant": "chunking matters",
    "no_marker_leak": "marker leaked",
    "text_conserved": "text lost",
    "answered": "no answer",
}
_MODES = {"full": "in full", "token": "token by token", "whole": "at once", "char": "by characters"}
_WRONG = ("suspect", "error")
_NAMES = 6
"""Parsers that are named in one row."""
_PLAIN = 400
"""Characters of each field in the splits that stand in place of the drawing until it is opened."""
_PARTS = 200
"""Parts of a bar."""
_LANES: Mapping[str, tuple[int, int]] = {"reasoning": (0, 4), "content": (4, 4), "marker": (0, 8), "lost": (8, 4)}
"""Where a kind stands in a bar: from which height, and how high."""


@dataclass
class Drawing:
    """What the page's script is given: every token there is, and the strips in the order of their cards.

    `anchors` says where the trace of an id is drawn.
    """

    tokens: Tokens
    strips: list[dict[str, Any]] = field(default_factory=list)
    anchors: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, runs: Sequence[Mapping[str, Any]]) -> Drawing:
        """A drawing of all traces that the facts of these runs hold."""
        drawn = [trace for facts in runs for trace in facts.get(DRAWN) or []]
        made = cls(Tokens(trace["strip"] for trace in drawn if trace["strip"] is not None))
        for trace in drawn:
            made.anchors.setdefault(str(trace["trace"]), f"trace-{len(made.anchors) + 1}")
        return made

    def as_json(self) -> dict[str, Any]:
        return {"tokens": self.tokens.as_json(), "strips": self.strips}

    def add(self, strip: Mapping[str, Any]) -> int:
        """Take a strip up; its place."""
        self.strips.append(strip_json(self.tokens, strip))
        return len(self.strips) - 1


def show(facts: Mapping[str, Any], findings: Sequence[Finding], drawing: Drawing) -> Html:
    """One replay.

    Args:
        facts: its own.
        findings: those of the report.
        drawing: takes its strips up.
    """
    own: dict[str, list[Finding]] = {}
    for finding in findings:
        own.setdefault(str(finding.subject.get("trace")), []).append(finding)
    drawn = facts.get(DRAWN) or []
    weights = {"error": 1000, "warning": 10, "info": 0}

    def rank(trace: Mapping[str, Any]) -> tuple[int, bool]:
        found = own.get(str(trace["trace"]), [])
        wrong = any(row["status"] in _WRONG for row in trace["results"])
        return -sum(weights[finding.severity] for finding in found), not wrong

    ordered = sorted(drawn, key=rank)
    number = int(facts.get("traces", len(drawn)))
    left = number - len(drawn)
    return join(
        fields(_inputs(facts)),
        _scores(facts.get("scores") or {}, number) if number > 1 else None,
        _upgrades(facts),
        el("h4", counted(number, "trace")),
        _legend() if drawn else None,
        *(_card(trace, own.get(str(trace["trace"]), []), drawing) for trace in ordered),
        el("p", f"{counted(left, 'more trace')}, with less to show, not drawn (--format json has all)", class_="dim")
        if left > 0
        else None,
    )


def _legend() -> Html:
    said = (
        ("reasoning", "reasoning"),
        ("content", "content"),
        ("marker", "marker: taken away on purpose"),
        ("lost", "lost: reached no field"),
        ("leak", "a marker that reached the client"),
    )
    keys = [el("span", words, class_=f"key {kind}") for kind, words in said]
    return el("p", *keys, class_="legend")


def _inputs(facts: Mapping[str, Any]) -> list[tuple[Child, Child]]:
    rows: list[tuple[Child, Child]] = []
    server = facts.get("server")
    if server:
        said = f"{server.get('parser') or 'no reasoning parser'} ({server['path']}:{server['line']})"
        rows.append(("served with", said))
    for entry in facts.get("inputs") or []:
        words = [str(entry[key]) for key in ("format", "model", "server", "parser") if entry.get(key)]
        rows.append(("input", ", ".join([str(entry["path"]), counted(int(entry["traces"]), "trace"), *words])))
    told = {
        "trace": "token texts in the trace",
        "assumed": "assumed: every marker one token (--model gives the real one)",
    }
    rows.append(("tokenizer", told.get(str(facts.get("tokenizer")), "the model's own")))
    return rows


def _scores(scores: Mapping[str, Mapping[str, int]], traces: int) -> Html | None:
    """How many traces each parser gets right; parsers that fare alike are one row."""
    columns = ("ok", "suspect", "error", "unsupported", "as recorded")
    alike: dict[tuple[int, ...], list[str]] = {}
    for name, score in scores.items():
        alike.setdefault(tuple(int(score.get(column, 0)) for column in columns), []).append(name)
    rows = [(_names(names), *(_share(number, traces) for number in score)) for score, names in alike.items()]
    return table(("parser", *columns), rows, class_="scores") if rows else None


def _share(number: int, traces: int) -> str:
    if not number:
        return "–"
    return f"{number} ({100 * number / traces:.3g}%)" if traces >= 10 else str(number)


def _upgrades(facts: Mapping[str, Any]) -> Html | None:
    """Which parsers split as before in another vLLM, and which do not."""
    versions = [str(entry.get("vllm_version")) for entry in facts.get("vllm") or []]
    tables = [
        join(
            el("h4", f"From vLLM {versions[0]} to {after}"),
            table(
                ("parser", "splits as before", "differently"),
                [
                    (name, int(row["same"]), el("span", int(row["differs"]), class_="bad") if row["differs"] else "–")
                    for name, row in sorted(rows.items(), key=lambda item: (-item[1]["differs"], item[0]))
                ],
            ),
        )
        for after, rows in (facts.get("upgrades") or {}).items()
    ]
    return join(*tables) if tables else None


def _card(trace: Mapping[str, Any], findings: Sequence[Finding], drawing: Drawing) -> Html:
    name = str(trace["trace"])
    strip = trace["strip"]
    statuses = {str(row["parser"]): row for row in trace["results"]}
    rows = strip["rows"] if strip is not None else []
    head = el(
        "summary",
        _chip(findings, rows),
        el("strong", name),
        el("span", _lead(trace, findings), class_="lead"),
        _bar(rows[0]["spans"], rows[0]["leaks"]) if rows and rows[0]["spans"] else None,
    )
    place = f"{trace['path']}:{trace['line']}"
    about: list[tuple[Child, Child]] = [] if name == place else [("recorded in", place)]
    if strip is not None and strip["prompt"] is not None:
        ends = join(el("b", strip["state"] or ""), " ", el("q", exact(strip["prompt"][-80:]), class_="raw"))
        about.append(("prompt ends", ends))
    if trace.get("best"):
        about.append(("explained by", f"{', '.join(trace['best'][:_NAMES])}: {trace['why']}"))
    about += [(SEVERITY_WORD[one.severity], _linked(one)) for one in findings]
    unrun = [row for row in trace["results"] if row["status"] == "unsupported"]
    return el(
        "details",
        head,
        fields(about),
        _outcomes(rows, statuses) if rows else None,
        el("div", class_="strip", data_strip=drawing.add(strip)) if strip is not None and strip["texts"] else None,
        _unrun(unrun),
        class_="card trace",
        id=drawing.anchors.get(name),
    )


def _chip(findings: Sequence[Finding], rows: Sequence[Mapping[str, Any]]) -> Html:
    """The gravest finding's severity; without one, whether what came first is free of markers."""
    gravest = min((SEVERITIES.index(finding.severity) for finding in findings), default=len(SEVERITIES))
    if gravest < SEVERITIES.index("info"):
        return el("span", SEVERITY_WORD[SEVERITIES[gravest]], class_=f"chip {SEVERITIES[gravest]}")
    if rows and rows[0]["leaks"]:
        return el(
            "span", "leak", class_="chip warning", title="a marker reached the client; no parser is accused of it"
        )
    return el("span", "✓", class_="chip good", title="nothing found")


def _lead(trace: Mapping[str, Any], findings: Sequence[Finding]) -> str:
    if findings and findings[0].severity != "info":
        return findings[0].message
    strip = trace["strip"]
    if strip is None:
        return str(trace["why"])
    words = [counted(len(strip["texts"]), "token")]
    words += [counted(len(strip["deltas"]), "delta")] if strip["deltas"] else []
    words += [f"finish_reason {trace['finish_reason']}"] if trace.get("finish_reason") else []
    return ", ".join(words)


def _linked(finding: Finding) -> Html:
    return join(el("code", finding.rule), f" {finding.slug}: {finding.message}")


def _outcomes(rows: Sequence[Mapping[str, Any]], statuses: Mapping[str, Mapping[str, Any]]) -> Html:
    """A row an outcome: who gives it, a bar of it, its counts, what is wrong with it. Parsers that raise come last."""
    ordered = sorted(rows, key=lambda row: not row["spans"])
    told = [
        (
            number if row["spans"] else "",
            _who(row["parsers"]),
            _bar(row["spans"], row["leaks"]) if row["spans"] else el("span", f"raised {row['error']}", class_="bad"),
            _counts(row) if row["spans"] else None,
            _verdict(row, statuses),
        )
        for number, row in enumerate(ordered, 1)
    ]
    splits = [_plain(number, row, statuses) for number, row in enumerate(ordered, 1) if row["spans"]]
    return join(
        table(("", "parser", "reasoning above, content below", "tokens", ""), told, class_="outcomes"),
        el("div", *splits, class_="plain"),
    )


def _who(parsers: Sequence[Sequence[Any]]) -> Html:
    """`qwen3 mimo (token by token, by 3)`: parsers that give an outcome in the same modes stand together."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, modes in parsers:
        alike.setdefault(tuple(modes), []).append(name)
    return join(*(el("div", _codes(names), _modes(modes), class_="who") for modes, names in alike.items()))


def _codes(names: Sequence[str]) -> Html:
    shown = [join(el("code", name), " ") for name in names]
    if len(names) <= _NAMES + 1:
        return join(*shown)
    return join(
        *shown[:_NAMES], el("details", el("summary", f"and {len(names) - _NAMES} more"), *shown[_NAMES:], class_="more")
    )


def _modes(modes: Sequence[str]) -> Html | None:
    return el("span", ", ".join(map(_mode, modes)), class_="dim") if modes else None


def _mode(name: str) -> str:
    return _MODES.get(name) or (f"by {name}" if name.isdigit() else name)


def _counts(row: Mapping[str, Any]) -> Html:
    sums: dict[str, int] = {}
    for kind, length in row["spans"]:
        sums[kind] = sums.get(kind, 0) + length
    return join(
        *(
            el("span", el("b", sums[kind]), f" {kind} ", class_=f"t-{kind}")
            for kind in ("reasoning", "content", "marker", "lost")
            if kind in sums
        )
    )


def _verdict(row: Mapping[str, Any], statuses: Mapping[str, Mapping[str, Any]]) -> Html | None:
    """What the checks say of the parser that comes first."""
    words: list[Child] = []
    if row["leaks"]:
        words.append(el("span", "marker leaked", class_="bad"))
    if row["own"]:
        words.append(el("span", f"writes {counted(row['own'], 'character')} of its own", class_="warn"))
    result = next((statuses[name] for name, _ in row["parsers"] if name in statuses), None)
    if result is not None:
        failed = [check for check, passed in result["checks"].items() if passed is False]
        kinds = {kind for kind, _ in row["spans"]}
        here = {"no_marker_leak": False, "text_conserved": "lost" in kinds, "answered": "content" not in kinds}
        words += [el("span", _FAILED[check], class_="bad") for check in failed if here.get(check, True)]
        if result.get("reason"):
            words.append(el("span", exact(shortened(str(result["reason"]), 160)), class_="bad"))
        if result.get("matches_recorded"):
            words.append("as recorded")
        if result["status"] == "ok":
            words.insert(0, el("span", "✓ ok", class_="good"))
    return join(*(join(word, " ") for word in words)) if words else None


def _plain(number: int, row: Mapping[str, Any], statuses: Mapping[str, Mapping[str, Any]]) -> Html | None:
    """The split in words, for a page without its script."""
    for name, modes in row["parsers"]:
        result = statuses.get(name)
        if result is None:
            continue
        runs = {"full": result["full"]} | {stream["chunking"]: stream for stream in result["stream"]}
        found = runs.get(modes[0] if modes else "full")
        if found is not None:
            return el("div", el("b", f"{number} {name}"), split(found, _PLAIN))
    return None


def _unrun(rows: Sequence[Mapping[str, Any]]) -> Html | None:
    reasons: dict[str, list[str]] = {}
    for row in rows:
        reasons.setdefault(str(row.get("reason") or "no reason given"), []).append(str(row["parser"]))
    if not reasons:
        return None
    told = [el("li", _names(names), ": ", exact(reason, 300)) for reason, names in reasons.items()]
    return el("details", el("summary", f"not run: {counted(len(rows), 'parser')}"), el("ul", *told), class_="dim")


def _names(names: Sequence[str]) -> str:
    more = len(names) - _NAMES
    return ", ".join(names[:_NAMES]) + (f" and {more} more" if more > 0 else "")


def _bar(spans: Sequence[Sequence[Any]], leaks: Sequence[Sequence[int]]) -> Html:
    """An outcome in one line: reasoning in the upper lane, content in the lower one, what is lost below both."""
    total = sum(length for _, length in spans)
    boxes: dict[str, list[str]] = {}
    for kind, begin, length in _widened(spans, total):
        top, height = _LANES[kind]
        boxes.setdefault(kind, []).append(f"M{begin} {top}h{length}v{height}h-{length}z")
    boxes |= {"leak": [f"M{begin} 0h{length}v12h-{length}z" for begin, length in leaks[:_PARTS]]} if leaks else {}
    return el(
        "svg",
        *(el("path", d="".join(parts), class_=kind) for kind, parts in boxes.items()),
        viewBox=f"0 0 {total} 12",
        preserveAspectRatio="none",
        class_="lanes",
        role="img",
        aria_label=", ".join(f"{length} {kind}" for kind, length in spans[:8]) + (" ..." if len(spans) > 8 else ""),
    )


def _widened(spans: Sequence[Sequence[Any]], total: int) -> Iterator[tuple[str, int, int]]:
    """Kind, begin and length of every part; of very many spans, those too short to see are a part of the one before."""
    least = total / _PARTS if len(spans) > _PARTS else 0
    at = begun = 0
    now = str(spans[0][0])
    for kind, length in spans:
        if kind != now and at - begun >= least:
            yield now, begun, at - begun
            begun, now = at, str(kind)
        at += int(length)
    yield now, begun, at - begun
