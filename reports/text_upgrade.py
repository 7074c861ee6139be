"""Several vLLMs in one replay: which parsers split the traces alike in both, and which do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from .page import STYLE, Page, split_text, styled
from .terms import mode_name
from .wording import visible

_NAMES = 4


def upgrades(page: Page, facts: Mapping[str, Any]) -> None:
    """A table for each version that is held against the first; nothing where there is one only."""
    versions = [str(entry.get("vllm_version")) for entry in facts.get("vllm") or []]
    for after, rows in (facts.get("upgrades") or {}).items():
        page.blank()
        page.line(Text(f"from vLLM {visible(versions[0])} to {visible(after)}", "bold"), indent=2)
        alike: dict[tuple[int, int], list[str]] = {}
        for parser, row in rows.items():
            alike.setdefault((row["same"], row["differs"]), []).append(parser)
        shown = sorted(alike.items(), key=lambda item: -item[0][1])
        page.table(
            ("parser", "splits as before", "differently"),
            [(_names(names, page), str(same or "-"), _differs(differs)) for (same, differs), names in shown],
            right=(1, 2),
        )


def changed(page: Page, facts: Mapping[str, Any], trace: str) -> None:
    """What a trace's parsers made of it before and make of it after, where that is not the same."""
    rows = [row for row in facts.get("upgrade") or [] if row["trace"] == trace and row["differs"]]
    alike: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        alike.setdefault(repr((row["after"], row["differs"])), []).append(row)
    for group in list(alike.values())[: None if page.verbose else _NAMES]:
        first = group[0]
        page.blank()
        page.line(
            Text(_names([row["parser"] for row in group], page), "bold"), styled("  before and after", "dim"), indent=4
        )
        for version, side in ((first["before"], "before"), (first["after"], "after")):
            modes: dict[str, tuple[Mapping[str, Any], list[str]]] = {}
            for entry in first["differs"]:
                split = entry[side]
                modes.setdefault(repr(_split(split)), (split, []))[1].append(mode_name(entry["chunking"]))
            page.fields(
                [(f"{version}, {', '.join(names)}", split_text(split, page.limit)) for split, names in modes.values()],
                indent=6,
            )


def _split(mode: Mapping[str, Any]) -> tuple[Any, ...]:
    return mode.get("reasoning"), mode.get("content"), mode.get("error")


def _differs(number: int) -> Text:
    return Text(str(number), STYLE["error"]) if number else styled("-")


def _names(names: Sequence[str], page: Page) -> str:
    most = len(names) if page.verbose else _NAMES
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
