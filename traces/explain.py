"""Which parsers explain a trace, and whether the trace itself speaks for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..parsers import ROWS, ParserRow, paired
from ..parsers.markers import holds_marker
from ..prompts.state import StateName
from .splits import HARMONY, NO_PARSER, foreign_markers, sound
from .trace import Trace
from .work import Result

_PLAINEST = "qwen3"
_TURN_ENDS = frozenset(("<|eom|>", "<|end_message|>"))
"""End markers that close every kind of block, so that they say nothing of thinking."""


_FIRST = frozenset(marker for row in ROWS.values() for marker in (*row.start[:1], *row.end[:1]))
_CLEAN = "every check passes and no marker is left"


@dataclass(frozen=True, slots=True)
class Explained:
    """`parsers` explain the trace, the plainest first; `why` says what speaks for them, or why there is none.

    `shown`: prompt, output, recorded split or model name point to these very parsers. Without that they are those that
    leave an output alone which shows no thinking: nothing to recommend one for. `fragile`: they split it right in full
    and token by token, and otherwise where more tokens share a delta; nobody does better.
    """

    parsers: tuple[str, ...] = ()
    why: str = ""
    shown: bool = False
    fragile: bool = False


def explain(
    results: Sequence[Result],
    trace: Trace,
    prompt: str | None = None,
    *,
    state: StateName | None = None,
    kwargs: Mapping[str, Any] | None = None,
) -> Explained:
    """Every check passes, no family's marker is left, the trace shows the parser's own marks, and then whatever sets
    some of them apart (the recorded split, a split at all, the model's own parser).

    Args:
        results: what parsers made of the trace.
        trace: what was recorded.
        prompt: the prompt's text, where the trace itself does not hold it.
        state: what the prompt leaves the model in, where it is known.
        kwargs: the effective chat-template kwargs.
    """
    parsers = [one for one in results if not one.call_swallowed and one.parser != NO_PARSER]
    passed = [one for one in parsers if one.status == "ok"]
    clean = [one for one in passed if _by_design(one) or not any(foreign_markers(mode) for mode in one.modes)]
    fragile = [one for one in parsers if one.status == "suspect" and _sound(one, trace)]
    raw = next((one.raw for one in parsers if one.raw), "")
    before = trace.prompt_text or prompt or ""
    thinks = state == "open" or _thinks(
        trace, raw, closed=state in ("closed", "closed-bare") or _switched_off(kwargs or {})
    )
    awake = [one for one in clean if one.served or not _asleep(one, kwargs or {})]
    speaking = _speaking(awake, trace, before, thinks=thinks)
    if speaking:
        by_design = all(map(_by_design, speaking))
        return _best(speaking, trace, before, "it keeps the thought in content, by design" if by_design else _CLEAN)
    weak = _speaking(fragile, trace, before, thinks=thinks) if thinks else []
    if weak:
        why = "right in full and token by token, and no parser is right in larger deltas too"
        return replace(_best(weak, trace, before, why), fragile=True)
    if clean and not thinks:
        return Explained(_plainest_first(clean), "nothing in the trace shows thinking, and these leave it alone")
    if clean:
        return Explained(why="every parser that passes looks for marks this trace has none of")
    return Explained(
        why="every parser that passes leaves a marker in the text" if passed else "no parser passes every check"
    )


def _speaking(found: Sequence[Result], trace: Trace, before: str, *, thinks: bool) -> list[Result]:
    """Those that the trace points to."""
    named = frozenset(paired(trace.model) if trace.model else ())
    return [
        one
        for one in found
        if not (thinks and _passes_through(one))
        and (_as_recorded(one, trace, thinks=thinks) or one.parser in named or _speaks(one, f"{before}{one.raw}"))
    ]


def _best(found: Sequence[Result], trace: Trace, before: str, why: str) -> Explained:
    named = frozenset(paired(trace.model) if trace.model else ())
    for reason, wanted in (
        ("the split is the recorded one", [one for one in found if one.matches_recorded]),
        (f"the parser table pairs it with {trace.model}", [one for one in found if one.parser in named]),
    ):
        if wanted and len(wanted) < len(found):
            why = f"{why}; {reason}"
        found = wanted or found
    return Explained(_plainest_first(found, before), why, shown=True)


def _asleep(result: Result, kwargs: Mapping[str, Any]) -> bool:
    """The parser is off unless asked, was not asked, and then lets any output pass as content."""
    row = ROWS[result.parser]
    switches = [kwarg.name for kwarg in row.kwargs if kwarg.switches_thinking]
    # Engine parsers split by the output's markers whatever their switch says: gemma4's moves the grammar alone.
    sleeps = row.family != "engine" and bool(switches) and not row.default_on and not row.needs_start_in_output
    asked = any(kwargs.get(name) not in (None, False, "no_think") for name in switches)
    return sleeps and not asked and _passes_through(result)


def _by_design(result: Result) -> bool:
    """The parser that served leaves the thought in content, its markers about it: that is what it is for."""
    return result.served and ROWS[result.parser].keeps_thought


def _sound(result: Result, trace: Trace) -> bool:
    """Nothing is wrong with what a server gives that puts one token into a delta."""
    return sound(result.real_modes, result.raw, ROWS.get(result.parser), trace.finish_reason)


def _thinks(trace: Trace, raw: str, *, closed: bool) -> bool:
    """Output or recording show a thought. Behind a prompt that closed thinking, what was recorded as one may be the
    answer that a parser misfiled.
    """
    recorded = not closed and trace.recorded is not None and bool((trace.recorded.reasoning or "").strip())
    return recorded or holds_marker(raw) or all(part in raw for part in HARMONY) or _phrased(raw)


def _switched_off(kwargs: Mapping[str, Any]) -> bool:
    return any(kwargs.get(name) is False for name in ("enable_thinking", "thinking"))


def _phrased(raw: str) -> bool:
    """Granite's markers are phrases, which count where they open the output."""
    return raw.lstrip().startswith(ROWS["granite"].start)


def _passes_through(result: Result) -> bool:
    """All of the output is content."""
    return not (result.full.reasoning or "").strip() and (result.full.content or "").strip() == result.raw.strip()


def _as_recorded(result: Result, trace: Trace, *, thinks: bool) -> bool:
    """It gives the thought that the server returned."""
    said = trace.recorded.reasoning if trace.recorded is not None else None
    return thinks and result.matches_recorded is True and bool((said or "").strip())


def _speaks(result: Result, spoken: str) -> bool:
    """What the parser looks for stands in prompt or output."""
    row = ROWS[result.parser]
    if not row.start:  # its format stands in the tokenizer's configuration: a thought set apart shows that it is there
        return bool((result.full.reasoning or "").strip() and (result.full.content or "").strip())
    return _holds(row, spoken) or any(text in spoken for text in row.implicit_ends)


def _holds(row: ParserRow, text: str) -> bool:
    """A marker of the parser's stands in the text: not one that closes any block, or that is another parser's first."""
    own = (*row.start[:1], *row.end[:1])
    return any(
        marker in text
        for marker in (*row.start, *row.end)
        if marker not in _TURN_ENDS and (marker in own or marker not in _FIRST)
    )


def _plainest_first(results: Sequence[Result], before: str = "") -> tuple[str, ...]:
    """Of parsers that are equally good the engine's for bare <think> blocks comes first; then those whose markers the
    prompt or the output holds.
    """

    def rank(result: Result) -> tuple[bool, bool, str]:
        held = _holds(ROWS[result.parser], f"{before}{result.raw}")
        return result.parser != _PLAINEST, not held, result.parser

    return tuple(result.parser for result in sorted(results, key=rank))
