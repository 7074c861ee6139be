"""Why a parser failed on a trace: the rule that explains it, the steps that lead there, and what was run as proof."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..parsers import ROWS, STATE_MARKERS, ParserRow
from ..parsers.run import ModeResult
from ..traces.replay import Result
from ..traces.splits import HARMONY, NO_PARSER, leaked
from ..traces.whatif import Kind, WhatIf
from .evidence import said
from .replayed import ReplayFacts, called, who

_TAIL = 60
_NO_TOKEN = ("could not locate", "must contain")
"""What vLLM's constructors say where a delimiter is no token."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A rule of another family, and the chain of what was seen: (step, what it showed).

    `ran` is false where a step was concluded rather than run.
    """

    rule: str
    chain: tuple[tuple[str, str], ...]
    ran: bool = True


@dataclass(frozen=True, slots=True)
class _Blame:
    """A rule, what the parser does, and what was run to prove it; `ran` is false where nothing could be."""

    rule: str
    parser: str
    proof: str | None = None
    ran: bool = True


def cause(facts: ReplayFacts, result: Result) -> Cause | None:
    """The rule that explains a failure; None where nothing does, or no model and no serve command is known."""
    if not facts.given:
        return None
    blame = _blame(facts, result)
    if blame is None:
        return None
    steps = [*_prompt_step(facts), *_request_step(facts, result), ("parser", blame.parser)]
    if blame.proof is not None:
        steps.append(("proof", blame.proof))
    if result.matches_recorded:
        modes = ", streaming and not" if result.checks.stream_equals_full and facts.trace.deltas else ""
        steps.append(("check", f"with exactly this, {who(result)} gives what was recorded{modes}"))
    return Cause(blame.rule, tuple(steps), blame.ran)


def _blame(facts: ReplayFacts, result: Result) -> _Blame | None:
    """The first explanation that holds; those that name a cause stand before those that name a symptom."""
    row = ROWS.get(result.parser)
    if result.parser == NO_PARSER:
        return _missing(result)
    if row is None:
        return None
    if result.status == "error":
        return _raised(facts, result, row)
    if not result.failing:
        return None
    for reason in (_harmony, _hidden, _earlier_text, _moved_by_effort, _switched, _call, _literal, _by_state, _symptom):
        blame = reason(facts, result, row)
        if blame is not None:
            return blame
    return None


def _missing(result: Result) -> _Blame | None:
    if not any(leaked(mode, None) for mode in result.real_modes):
        return None
    return _Blame("FIT101", "no --reasoning-parser is given: thought, markers and answer are all content")


def _raised(facts: ReplayFacts, result: Result, row: ParserRow) -> _Blame | None:
    name, reason = result.parser, str(result.reason)
    if result.refused:
        asked = _healed(facts, result, "no-effort")
        if asked is not None:
            effort = facts.trace.request.get("reasoning_effort")
            why = f"{name} cannot be built for reasoning_effort={effort}: {reason}"
            return _Blame("FIT114", why, "without the effort the same output splits right")
        tokens = any(words in reason for words in _NO_TOKEN)
        return _Blame("FIT103", f"{name} cannot be built for this tokenizer: {reason}") if tokens else None
    harmony = _harmony(facts, result, row)
    if harmony is not None:
        return harmony
    plain = [mode for mode in result.real_modes if mode.error is None]
    if plain and any(mode.error is not None for mode in result.stream):
        return _Blame("FIT119", f"{name} raises where one delta holds more than one token: {reason}")
    return None


def _harmony(facts: ReplayFacts, result: Result, row: ParserRow) -> _Blame | None:
    speaks = all(part in facts.trace.raw for part in HARMONY)
    if speaks and row.family != "harmony":
        return _Blame("FIT115", f"the output is in harmony channels, and {row.name} looks for {_texts(row)}")
    if row.family == "harmony" and not speaks and facts.trace.raw:
        return _Blame("FIT115", f"{row.name} reads harmony channels, and the output has none")
    return None


def _hidden(facts: ReplayFacts, result: Result, row: ParserRow) -> _Blame | None:
    kept = _healed(facts, result, "specials")
    if kept is None:
        return None
    return _Blame(
        "FIT112",
        f"the tokenizer flags {_texts(row)} special, so decoding leaves them out; {row.name} does not ask to keep them",
        "with skip_special_tokens=false the same ids split right",
    )


def _earlier_text(facts: ReplayFacts, result: Result, row: ParserRow) -> _Blame | None:
    """Markers that stand before this turn: typed by a user, or left by an earlier turn."""
    typed = _healed(facts, result, "user-markers")
    if typed is not None:
        return _Blame(
            "TPL006",
            f"{row.name} reads the whole prompt, and takes a marker that the user typed for the model's own",
            "with the user's markers spelled otherwise the same output splits right",
        )
    if _healed(facts, result, "alone") is None:
        return None
    state = facts.trace.state.state if facts.trace.state is not None else "none"
    bound = f" and stops at {', '.join(row.turn_boundaries)} only" if row.turn_boundaries else ""
    proof = "behind this turn's own part of the prompt alone the same output splits right"
    if facts.passing:
        why = f"{row.name} reads the whole prompt{bound}: an earlier turn's end marker counts as this turn's"
        return _Blame("FIT121", why, proof)
    why = (
        f"earlier turns stay in the prompt with their markers, this turn's own part is {state}: every parser is misled"
    )
    return _Blame("TPL005", why, proof)


def _moved_by_effort(facts: ReplayFacts, result: Result, row: ParserRow) -> _Blame | None:
    """`reasoning_effort`, or the switch the server derives from it, moves one of parser and template."""
    effort = facts.trace.request.get("reasoning_effort")
    plain = _healed(facts, result, "no-effort")
    if effort is None:
        return None
    if plain is not None and plain.same_prompt:
        return _Blame(
            "FIT114",
            f"reasoning_effort={effort} moves {row.name} and not the template",
            "without the effort the prompt is the same, and the output splits right",
        )
    other = _healed(facts, result, "kwargs")
    moved = next((one for one in _what_ifs(facts, result) if one.kind == "no-effort"), None)
    if other is not None and other.same_prompt and moved is not None and moved.same_prompt is False:
        return _Blame(
            "FIT114",
            f"reasoning_effort={effort} moves the template and not {row.name}",
            f"with {said(other.change)} the prompt is the same, and the output splits right",
        )
    return None


def _switched(facts: ReplayFacts, result: Result, row: ParserRow) -> _Blame | None:
    """A parser that is off unless asked, behind a prompt that leaves thinking on."""
    state = facts.trace.state.state if facts.trace.state is not None else None
    healed = next((one for one in _what_ifs(facts, result) if one.kind == "kwargs" and one.sound), None)
    switches = [kwarg.name for kwarg in row.kwargs if kwarg.switches_thinking]
    asked = any(facts.trace.kwargs.get(name) is not None for name in switches)
    if healed is None or healed.same_prompt is False or state in ("closed", "closed-bare"):
        return None
    if asked and state == "open":
        sent = {name: facts.trace.kwargs[name] for name in switches if facts.trace.kwargs.get(name) is not None}
        why = f"{said(sent)} switches {row.name} off, while the template leaves thinking on"
        return _Blame(
            "FIT104", why, f"with {said(healed.change)} the same output splits right", bool(healed.same_prompt)
        )
    if asked or row.default_on:
        return None
    ran = healed.same_prompt is True
    unseen = "" if ran else " (the prompt is not known: that thinking was on is read from the output)"
    return _Blame(
        "FIT113",
        f"{row.name} stays off unless asked, so it passes all text through{unseen}",
        f"with {said(healed.change)} the same output splits right",
        ran,
    )


def _call(facts: ReplayFacts, result: Result, row: ParserRow) -> _Blame | None:
    if not result.call_swallowed:
        return None
    ended = _healed(facts, result, "end-before-call")
    why = f"to {row.name} a tool call is no end of thinking, so the call is filed as reasoning"
    proof = f"with {row.end[0]} in front of the call it reaches content" if ended is not None and row.end else None
    return _Blame("FIT111", why, proof)


def _literal(facts: ReplayFacts, result: Result, row: ParserRow) -> _Blame | None:
    if _healed(facts, result, "one-end") is None:
        return None
    times = facts.trace.raw.count(row.end[0])
    return _Blame(
        "FIT110",
        f"the output holds {row.end[0]} {times} times, and {row.name} ends the thought at the first",
        "with only the last one left the same output splits right",
    )


def _by_state(facts: ReplayFacts, result: Result, row: ParserRow) -> _Blame | None:
    """What follows from the prompt's state, and from whose markers the output carries."""
    name = row.name
    state = facts.trace.state.state if facts.trace.state is not None else None
    modes = [mode for mode in result.real_modes if mode.error is None]
    all_reasoning = any((mode.reasoning or "").strip() and not (mode.content or "").strip() for mode in modes)
    no_reasoning = not any((mode.reasoning or "").strip() for mode in modes)
    if state in ("closed", "closed-bare") and all_reasoning:
        rule = "FIT109" if facts.trace.finish_reason == "length" else "FIT105"
        why = f"{name} files output without markers as reasoning, although the prompt closed thinking"
        return _Blame(rule, why, f"run {_shown_in(modes)}, all of it is reasoning and content is null")
    if no_reasoning and _healed(facts, result, "start-marker") is not None:
        where = "that stands in the prompt" if state == "open" else "that the output does not have"
        proof = f"with {row.start[0]} in front the same output splits right"
        return _Blame("FIT104", f"{name} waits for a start marker {where}", proof, state == "open")
    foreign = _foreign(facts.trace.raw, row)
    if foreign is not None:
        passing = f"{facts.passing[0]} reads them: it splits the output right" if facts.passing else None
        rule = "FIT105" if all_reasoning else "FIT106"
        return _Blame(rule, f"the model writes {foreign}, and {name} looks for {_texts(row)}", passing)
    if all_reasoning and state == "none" and facts.trace.thoughtless:
        return _Blame("FIT120", f"the template knows nothing of thinking, and {name} files whole answers as reasoning")
    if all_reasoning and state != "open" and not any(marker in facts.trace.raw for marker in (*row.start, *row.end)):
        return _Blame("FIT105", f"{name} files an answer without markers as reasoning")
    return None


def _shown_in(modes: Sequence[ModeResult]) -> str:
    wrong = [mode for mode in modes if (mode.reasoning or "").strip() and not (mode.content or "").strip()]
    return " and ".join(called(mode) for mode in wrong)


def _symptom(facts: ReplayFacts, result: Result, row: ParserRow) -> _Blame | None:
    """No cause is found: what the parser does wrong, as an audit names it."""
    name = row.name
    blameless = result.full.error is None and not leaked(result.full, row) and bool((result.full.content or "").strip())
    if blameless and result.checks.stream_equals_full is True:
        early = "decides delta by delta: larger deltas are split otherwise"
        return _Blame("FIT108", f"{name} {early}") if result.checks.chunk_invariant is False else None
    if blameless and result.checks.stream_equals_full is False:
        return _Blame("FIT107", f"{name} decides by prompt or delta when it streams, by the output in full")
    if any(leaked(mode, row) for mode in result.real_modes):
        return _Blame("FIT106", f"{name} lets a marker through on this output")
    return None


def _prompt_step(facts: ReplayFacts) -> list[tuple[str, str]]:
    trace, state = facts.trace, facts.trace.state
    if state is None:
        return []
    words = {
        "open": "thinking is already open",
        "closed": "thinking is closed",
        "closed-bare": "thinking is closed",
        "none": "it says nothing of thinking",
    }
    end = json.dumps(state.tail[-_TAIL:], ensure_ascii=False)
    if trace.template_at is None:
        return [("prompt", f"the recorded prompt ends in {end}: {words[state.state]}")]
    asked = "a plain request" if trace.prompt_from == "plain" else "the request"
    path, line = trace.template_at
    return [("template", f"{asked} ends in {end}: {words[state.state]}   {Path(path).name}:{line}")]


def _request_step(facts: ReplayFacts, result: Result) -> list[tuple[str, str]]:
    kwargs = facts.trace.kwargs
    assumed = " (no --request given: taken as plain)" if facts.trace.prompt_from == "plain" else ""
    if kwargs:
        return [("request", f"effective chat-template kwargs {json.dumps(dict(kwargs), ensure_ascii=False)}{assumed}")]
    row = ROWS.get(result.parser)
    names = [kwarg.name for kwarg in row.kwargs] if row is not None else []
    said_of = f"no {', no '.join(names)}" if names else "no chat-template kwargs"
    return [("request", f"{said_of}{assumed}")]


def _what_ifs(facts: ReplayFacts, result: Result) -> tuple[WhatIf, ...]:
    return facts.trace.what_ifs.get(result.parser, ())


def _healed(facts: ReplayFacts, result: Result, kind: Kind) -> WhatIf | None:
    return next((one for one in _what_ifs(facts, result) if one.kind == kind and one.sound), None)


def _foreign(raw: str, row: ParserRow) -> str | None:
    """A pair of another family that stands in the output, none of the parser's own doing so."""
    if any(marker in raw for marker in (*row.start, *row.end)):
        return None
    pair = next((pair for pair in STATE_MARKERS if pair.start in raw or pair.end in raw), None)
    return f"{pair.start} and {pair.end}" if pair is not None else None


def _texts(row: ParserRow) -> str:
    return " and ".join((*row.start[:1], *row.end[:1])) or "no marker"
