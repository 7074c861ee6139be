"""A failing parser on one trace beside itself mended and beside parsers that do better, mode by mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..parsers import ROWS
from ..parsers.run import ModeResult
from .explain import Explained
from .splits import ModeWord, has_tool_call, mode_word
from .whatif import HELD, WhatIf
from .work import Result, Work

_BETTER = 2
"""Parsers that do better which are shown."""


@dataclass(frozen=True, slots=True)
class Row:
    """One parser: under which kwargs it ran, a word for each mode, and whether that is what was recorded.

    `change` is None for the run as it was served, and for another parser. `uncounted`: it files reasoning, and usage
    would report 0 reasoning tokens.
    """

    parser: str
    words: tuple[ModeWord, ...]
    served: bool = False
    change: Mapping[str, Any] | None = None
    as_recorded: bool = False
    uncounted: bool = False

    def as_json(self) -> dict[str, Any]:
        return {
            "parser": self.parser,
            "served": self.served,
            "change": dict(self.change) if self.change is not None else None,
            "modes": list(self.words),
            "as_recorded": self.as_recorded,
            "reasoning_tokens_zero": self.uncounted,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """The rows, and the chunkings their words stand for (None: in full). `rest` are parsers that do not explain it."""

    chunkings: tuple[str | None, ...]
    rows: tuple[Row, ...]
    rest: int = 0
    not_run: int = 0
    right: ModeResult | None = field(default=None, repr=False)

    def as_json(self) -> dict[str, Any]:
        return {
            "modes": ["full" if one is None else one for one in self.chunkings],
            "rows": [row.as_json() for row in self.rows],
            "do_not_explain_it": self.rest,
            "not_run": self.not_run,
        }


def compare(
    work: Work, failing: Result, changed: Sequence[WhatIf], everything: Sequence[Result], explained: Explained
) -> Comparison:
    """Set a failing parser beside what does better.

    Args:
        work: the trace, and who runs parsers on it.
        failing: the result that is looked into.
        changed: what was tried with it.
        everything: all results on this trace.
        explained: the parsers that explain it, the plainest first.
    """
    best = explained.parsers
    by_name = {result.parser: result for result in everything}
    healing = [one for one in changed if one.kind in ("kwargs", "specials") and one.sound]
    mended = next((one for one in healing if one.same_prompt is not False), None)
    right = by_name[best[0]].full if best else mended.result.full if mended is not None else None
    others = _others(failing.parser, best) if explained.shown else []
    shown = [failing, *(by_name[name] for name in others)]
    chunkings = (None, *dict.fromkeys([*(mode.chunking for mode in failing.stream), str(HELD)]))
    rows = [_row(work, result, right, chunkings) for result in shown]
    if mended is not None:
        rows.insert(1, _row(work, mended.result, right, chunkings, mended.change))
    named = {failing.parser, *best}
    return Comparison(
        chunkings,
        tuple(rows),
        sum(r.status != "unsupported" and r.parser not in named for r in everything),
        sum(r.status == "unsupported" for r in everything),
        right,
    )


def _others(failing: str, best: Sequence[str]) -> list[str]:
    """Of parsers that explain the trace the plainest, and one of another kind, whose weaknesses are others."""
    names = [name for name in best if name != failing]
    kinds = {ROWS[name].family for name in names[:1]}
    return [*names[:1], *[name for name in names if ROWS[name].family not in kinds][: _BETTER - 1]]


def _row(
    work: Work,
    result: Result,
    right: ModeResult | None,
    chunkings: Sequence[str | None],
    change: Mapping[str, Any] | None = None,
) -> Row:
    row = ROWS.get(result.parser)
    modes = {mode.chunking: mode for mode in result.modes}
    if str(HELD) not in modes and not result.crashed:
        held = work.on(work.prepared, chunkings=(HELD,)).run(result.parser)
        modes |= {mode.chunking: mode for mode in held.stream}
    finish, called = work.prepared.trace.finish_reason, has_tool_call(result.raw, row)
    return Row(
        result.parser,
        tuple(
            mode_word(modes[one], result.raw, row, finish, called=called, right=right) if one in modes else "raises"
            for one in chunkings
        ),
        served=result.served and change is None,
        change=change,
        as_recorded=result.matches_recorded is True,
        uncounted=result.reasoning_tokens == 0 and bool((result.full.reasoning or "").strip()),
    )
