"""How a trace was split, outcome by outcome: who gives it, a bar of it, what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .html_findings import split
from .markup import Child, Html, el, exact, join, table
from .terms import FAILED, mode_name
from .wording import counted, shortened

_PLAIN = 240
"""Characters of each field in the splits that stand in place of the drawing until it is opened."""
_PARTS = 200
"""Parts of a bar."""
_LANES: Mapping[str, tuple[int, int]] = {"reasoning": (0, 4), "content": (4, 4), "marker": (0, 8), "lost": (8, 4)}
"""Where a kind stands in a bar: from which height, and how high."""
_NAMES = 6
"""Parsers that are named in one row."""


def outcomes(
    rows: Sequence[Mapping[str, Any]], statuses: Mapping[str, Mapping[str, Any]], accused: Mapping[str, Sequence[str]]
) -> Html:
    """A row an outcome: who gives it, a bar of it, its counts, what is wrong with it. Parsers that raise come last."""
    ordered = sorted(rows, key=lambda row: not row["spans"])
    told = [
        (
            number if row["spans"] else "",
            _who(row["parsers"]),
            bar(row["spans"], row["leaks"]) if row["spans"] else el("span", f"raised {row['error']}", class_="bad"),
            _counts(row) if row["spans"] else None,
            _verdict(row, statuses, accused),
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
    return el("span", ", ".join(map(mode_name, modes)), class_="dim") if modes else None


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


def _verdict(
    row: Mapping[str, Any], statuses: Mapping[str, Mapping[str, Any]], accused: Mapping[str, Sequence[str]]
) -> Html | None:
    """What the findings and the checks say of the parsers, the first of those that were asked for before others."""
    broken = dict.fromkeys(rule for name, _ in row["parsers"] for rule in accused.get(name, ()))
    words: list[Child] = [el("span", f"✕ {rule}", class_="bad") for rule in broken]
    if row["leaks"]:
        words.append(el("span", "marker leaked", class_="bad"))
    if row["own"]:
        words.append(el("span", f"writes {counted(row['own'], 'character')} of its own", class_="warn"))
    result = next((statuses[name] for name, _ in row["parsers"] if name in statuses), None)
    if result is not None:
        failed = [check for check, passed in result["checks"].items() if passed is False]
        kinds = {kind for kind, _ in row["spans"]}
        here = {"no_marker_leak": False, "text_conserved": "lost" in kinds, "answered": "content" not in kinds}
        words += [el("span", FAILED[check], class_="bad") for check in failed if here.get(check, True)]
        if result.get("reason"):
            words.append(el("span", exact(shortened(str(result["reason"]), 160)), class_="bad"))
        if result.get("matches_recorded"):
            words.append("as recorded")
        if result["status"] == "ok" and not broken:
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


def bar(spans: Sequence[Sequence[Any]], leaks: Sequence[Sequence[int]]) -> Html:
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
