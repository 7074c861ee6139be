"""Why a parser failed on a trace: the rule that explains it, and the steps that lead there."""

from __future__ import annotations

import json
from dataclasses import dataclass

from ..parsers import ROWS, ParserRow
from ..parsers.run import ModeResult
from ..prompts.state import State, prompt_state
from ..traces.replay import Result
from ..traces.splits import leaked
from .replayed import ReplayFacts

_TAIL = 60


@dataclass(frozen=True, slots=True)
class Cause:
    """A rule of another family, and the chain of what was seen: (step, what it showed)."""

    rule: str
    chain: tuple[tuple[str, str], ...]


def cause(facts: ReplayFacts, result: Result) -> Cause | None:
    """The FIT rule that explains a failure; None where nothing does, or no model and no serve command is known.

    Every step was run: the prompt was rendered or recorded, the kwargs are the effective ones, and the parser gave on
    this output what the finding shows.
    """
    if not facts.given:
        return None
    found = _rule(facts, result)
    if found is None:
        return None
    rule, why = found
    steps = [("parser", why)]
    state = _state(facts)
    if state is not None:
        said = json.dumps(state.tail[-_TAIL:], ensure_ascii=False)
        steps.insert(0, ("prompt", f"{state.state}: it ends in {said}"))
        kwargs = json.dumps(dict(facts.trace.kwargs), ensure_ascii=False)
        assumed = " (no request known: taken as plain)" if facts.trace.prompt_from == "plain" else ""
        steps.insert(1, ("request", f"effective chat-template kwargs {kwargs}{assumed}"))
    if result.matches_recorded:
        steps.append(("check", f"with exactly this, {result.parser} gives what was recorded"))
    return Cause(rule, tuple(steps))


def _rule(facts: ReplayFacts, result: Result) -> tuple[str, str] | None:
    row = ROWS.get(result.parser)
    name = result.parser
    if result.status == "error":
        missing = "could not locate" in str(result.reason)
        return ("FIT103", f"{name} cannot be built: {result.reason}") if missing else None
    if row is None:
        return None
    state = _state(facts)
    modes = list(facts.real_modes(result))
    all_reasoning = any((mode.reasoning or "").strip() and not (mode.content or "").strip() for mode in modes)
    no_reasoning = not any((mode.reasoning or "").strip() for mode in modes)
    if result.call_swallowed:
        return "FIT111", f"to {name} a tool call is no end of thinking, so the call is filed as reasoning"
    if state is not None and state.state in ("closed", "closed-bare") and all_reasoning:
        return "FIT105", f"{name} files output without markers as reasoning, although the prompt closed thinking"
    if state is not None and state.state == "open" and no_reasoning:
        off = not row.default_on and not any(facts.trace.kwargs.get(kwarg.name) for kwarg in row.kwargs)
        if off:
            return "FIT113", f"{name} stays off unless the request asks for thinking, so it passes all text through"
        if row.needs_start_in_output:
            return "FIT104", f"{name} waits for a start marker that stands in the prompt"
    in_full = _blameless(result.full, row)
    if state is not None and state.state == "none" and _history_closed(facts, row.end) and _leaks(facts, result):
        return "FIT121", f"streaming, {name} takes an earlier turn's end marker for this turn's"
    if in_full and result.checks.stream_equals_full is True:
        return ("FIT108", f"{name} decides delta by delta") if result.checks.chunk_invariant is False else None
    if in_full and result.checks.stream_equals_full is False:
        return "FIT107", f"{name} decides by the prompt or delta by delta when streaming, by the output in full"
    if result.checks.answered is False and all_reasoning:
        return "FIT105", f"{name} never sees thinking end in this output: its end marker is {row.end[0]!r}"
    if _leaks(facts, result):
        return "FIT106", f"{name} lets a marker through on this output"
    return None


def _blameless(full: ModeResult, row: ParserRow) -> bool:
    return full.error is None and not leaked(full, row) and bool((full.content or "").strip())


def _state(facts: ReplayFacts) -> State | None:
    """The prompt's state behind the request's last message; where that is unknown, behind the last turn boundary."""
    prompt = facts.trace.prompt
    if prompt is None:
        return None
    last = facts.trace.last_message
    if last and last in prompt:
        return prompt_state(prompt, prompt.rfind(last) + len(last))
    boundaries = {token for row in ROWS.values() for token in row.turn_boundaries}
    return prompt_state(prompt, max(0, *(prompt.rfind(token) for token in boundaries)))


def _history_closed(facts: ReplayFacts, ends: tuple[str, ...]) -> bool:
    return any(end in (facts.trace.prompt or "") for end in ends)


def _leaks(facts: ReplayFacts, result: Result) -> bool:
    return any(leaked(mode, ROWS.get(result.parser)) for mode in facts.real_modes(result))
