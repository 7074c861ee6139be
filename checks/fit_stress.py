"""FIT rules on the stress probes: they tell what to expect, and never decide whether a parser fits."""

from __future__ import annotations

from collections.abc import Iterator

from .. import versions
from ..parsers.run import ModeResult
from .blame import blames
from .evidence import gets, mode_json, said, trial_evidence
from .facts import AuditFacts
from .finding import Finding
from .rule import Rule, register
from .trial import Candidate, Trial, same_split

_BASIC = "vLLM 0.33.0 vllm/reasoning/basic_parsers.py"
_OWN_RULE = (
    "cut-off-thought",
    "cut-off-answer",
    "writes-the-end-marker-in-its-thought",
    "reopens-a-closed-block",
    "thinks-again",
    "calls-a-tool-while-thinking",
)
"""Probes whose rule tells both modes itself (FIT109, FIT110, FIT111): a difference there is no FIT107 of its own."""


@register
class StreamDiffers(Rule):
    id = "FIT107"
    slug = "stream-differs"
    severity = "warning"
    what = "Fires when streaming (one token a delta) and the full answer split the same output differently."
    why = (
        "The same model answers otherwise for a client that streams; tests made without streaming prove nothing for it."
    )
    example = "step3 reads an end marker of the prompt when it streams, and not in full"
    instead = "Use a parser whose two paths agree, or test the path your clients use."
    sources = ("vLLM 0.33.0 vllm/parser/abstract_parser.py parse, parse_delta",)

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        judged = facts.judged
        if judged is None:
            return
        told = any(blame.rule != "FIT114" and cls.id in blame.also for blame in blames(facts, judged))
        trials = [t for t in judged.stress if t.modes_differ and t.probe.name not in _OWN_RULE]
        if not trials or told:
            return
        shown = trials[0]
        yield cls.finding(
            f"{judged.name} splits one output differently in full and streamed ({shown.probe.name}){facts.modelled_on}",
            hint="tell clients which of the two you support, or use a parser whose paths agree",
            confidence=facts.fit_confidence,
            subject=facts.subject(parser=judged.name),
            location=facts.parser_at,
            evidence={**trial_evidence(facts, shown), "probes": sorted({t.probe.name for t in trials})},
        )


class _LargerDeltas(Rule):
    """A core probe that holds at one token a delta and not at larger ones."""

    @classmethod
    def broken(cls, judged: Candidate) -> list[tuple[Trial, ModeResult]]:
        """Trials with the first larger-delta result that differs."""
        found = []
        for trial in judged.stress:
            run = trial.run
            if run is None or not trial.probe.core:
                continue
            token, *larger = run.stream
            worse = [mode for mode in larger if not same_split(token, mode)]
            if worse:
                found.append((trial, worse[0]))
        return found

    @staticmethod
    def loses(trial: Trial, mode: ModeResult) -> bool:
        """The parser raises, or text of the output is gone."""
        together = f"{mode.reasoning or ''}{mode.content or ''}"
        parts = (trial.probe.reasoning, trial.probe.content)
        return mode.error is not None or any(part and part not in together for part in parts)


@register
class DeltaSizeMatters(_LargerDeltas):
    id = "FIT108"
    slug = "delta-size-matters"
    severity = "warning"
    what = "Fires when the split depends on how many tokens share a delta (3 tokens, or the whole output, against one)."
    why = "Speculative decoding, multi-token prediction and a busy server put several tokens into one delta."
    example = "deepseek_r1: a delta '<think>Let me' leaves '<think>' inside reasoning"
    instead = "Use an engine parser, whose split does not depend on the deltas, or one token a delta."
    sources = (f"{_BASIC} extract_reasoning_streaming",)

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        judged = facts.judged
        if judged is None:
            return
        broken = [(trial, mode) for trial, mode in cls.broken(judged) if not cls.loses(trial, mode)]
        if not broken:
            return
        trial, mode = broken[0]
        yield cls.finding(
            f"{judged.name} splits otherwise when a delta holds more than one token ({_deltas(mode)}): the client gets "
            f"{gets(mode, trial.probe)}{facts.modelled_on}",
            hint="expect this with speculative decoding; an engine parser does not depend on the deltas",
            confidence=facts.fit_confidence,
            subject=facts.subject(parser=judged.name),
            location=facts.parser_at,
            evidence={**trial_evidence(facts, trial), "chunking": mode.chunking, "got": mode_json(mode)},
        )


@register
class BreaksOnLargerDeltas(_LargerDeltas):
    id = "FIT119"
    slug = "breaks-on-larger-deltas"
    severity = "warning"
    what = (
        "Fires when a probe showed that the parser raises, or loses text, as soon as one delta holds more than one "
        "token."
    )
    why = "The stream ends with an error, or the client never sees a part of the answer."
    example = "hunyuan_a13b asserts one token a delta: AssertionError under speculative decoding"
    instead = "Do not combine this parser with speculative decoding or multi-token prediction."
    sources = ("vLLM 0.33.0 vllm/reasoning/hunyuan_a13b_reasoning_parser.py", _BASIC)

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        judged = facts.judged
        if judged is None:
            return
        broken = [(trial, mode) for trial, mode in cls.broken(judged) if cls.loses(trial, mode)]
        raising = [
            (trial, failure.got)
            for blame in blames(facts, judged)
            if blame.rule == cls.id
            for trial in blame.trials
            for failure in trial.failures
        ]
        for trial, mode in (*broken, *raising)[:1]:
            what = f"raises {mode.error}" if mode.error is not None else "loses text"
            yield cls.finding(
                f"{judged.name} {what} when streamed in deltas of {_deltas(mode)}{facts.modelled_on}",
                hint="do not combine this parser with speculative decoding; use one that does not depend on the deltas",
                confidence=facts.fit_confidence,
                subject=facts.subject(parser=judged.name),
                location=facts.parser_at,
                evidence={**trial_evidence(facts, trial), "chunking": mode.chunking, "got": mode_json(mode)},
            )


@register
class TruncatedOutput(Rule):
    id = "FIT109"
    slug = "truncated-output"
    severity = "info"
    what = "Tells where an output lands that max_tokens cut in the middle of its thought, thinking on and off."
    why = (
        "The client sees finish_reason length and, for most parsers, content null: it must not take that for an "
        "empty answer."
    )
    example = "qwen3: 'Let me see, two' cut off is reasoning; with thinking off it is content"
    instead = "Bound the thought with thinking_token_budget instead of max_tokens."
    sources = (_BASIC, "vLLM 0.33.0 vllm/parser/engine/parser_engine.py finish_streaming")

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        judged = facts.judged
        trials = [t for t in judged.stress if t.probe.name.startswith("cut-off") and t.run] if judged else []
        if judged is None or not trials:
            return
        lands = {("on" if t.cell.thinks else "off"): {"full": _where(t, 0), "streamed": _where(t, 1)} for t in trials}
        on = lands.get("on", lands.get("off", {}))
        told = on["full"] if on["full"] == on["streamed"] else f"{on['full']} in full and {on['streamed']} streamed"
        yield cls.finding(
            f"an output cut off mid-thought is {told} with {judged.name}{facts.modelled_on}",
            hint="bound the thought with thinking_token_budget; finish_reason tells a cut answer from an empty one",
            confidence=facts.fit_confidence,
            subject=facts.subject(parser=judged.name),
            location=facts.parser_at,
            evidence={**trial_evidence(facts, trials[0]), "lands": lands},
        )


@register
class LiteralEndInThought(Rule):
    id = "FIT110"
    slug = "literal-end-in-thought"
    severity = "info"
    what = (
        "Fires when an end marker that the model only mentions inside its thought ends reasoning there, or when a "
        "block that the prompt closed and the model opens again is not split."
    )
    why = "The rest of the thought, second marker included, reaches the client as the answer."
    example = "'I could write </think> here … </think>It is four.': content starts at ' here …'"
    instead = "Nothing on the server helps; a client may cut content at a second marker."
    sources = (f"{_BASIC} (first end marker wins)", "vLLM 0.33.0 vllm/parser/engine/parser_engine.py")

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        judged = facts.judged
        if judged is None:
            return
        names = ("writes-the-end-marker-in-its-thought", "reopens-a-closed-block", "thinks-again")
        trials = [
            t for t in judged.stress if t.probe.name in names and t.run is not None and (not t.passed or t.modes_differ)
        ]
        if not trials:
            return
        yield cls.finding(
            f"{judged.name} cannot follow a model that {_act(trials[0])}{facts.modelled_on}",
            hint="a client may cut content at a marker that is left in it",
            confidence=facts.fit_confidence,
            subject=facts.subject(parser=judged.name),
            location=facts.parser_at,
            evidence={**trial_evidence(facts, trials[0]), "probes": [t.probe.name for t in trials]},
        )


@register
class ToolCallSwallowed(Rule):
    id = "FIT111"
    slug = "tool-call-swallowed"
    severity = "error"
    what = (
        "Fires when the template offers tools, the parser of this architecture (or another that passes) ends "
        "reasoning at the call's own opening marker, and the configured parser leaves the call in reasoning. A "
        "warning unless the serve command enables tools."
    )
    why = "The tool parser sees only content. A call the model makes before it closes its thought is never made."
    example = "Qwen3 with deepseek_r1: '<think>I look it up.<tool_call>…' stays reasoning, tool_calls is empty"
    instead = "Use a parser that knows the model's tool marker as the end of thinking; the audit names one."
    sources = ("vLLM 0.33.0 vllm/parser/qwen3.py (implicit ends)", "vLLM 0.33.0 vllm/parser/kimi_k2.py")
    facts = ("qwen3-implicit-tool-end",)

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        judged = facts.judged
        if judged is None or not facts.renders_tools or facts.call is None:
            return
        mine = _call(judged)
        if mine is None or mine.run is None or not _swallows(mine):
            return
        others = sorted(
            (c for c in facts.candidates if c.name in facts.named or c.fit == "pass"),
            key=lambda c: (c.name not in facts.named, facts.candidates.index(c)),
        )
        better = [
            c
            for c in others
            if c.name != judged.name
            and c.refuted is None
            and (trial := _call(c)) is not None
            and _delivers(trial)
            and _ends_at_calls(c, facts)
        ]
        if not better:
            return
        enabled = facts.server is not None and facts.server.tools
        yield cls.finding(
            f"a tool call made before the thought is closed stays in reasoning with {judged.name}; "
            f"{better[0].name} ends reasoning there{facts.modelled_on}",
            hint=f"use --reasoning-parser {better[0].name}",
            severity=None if enabled else "warning",
            confidence=facts.fit_confidence,
            subject=facts.subject(parser=judged.name),
            location=facts.parser_at,
            evidence={
                **trial_evidence(facts, mine),
                "because": f"{judged.name} does not know {facts.call.splitlines()[0]} as an end of thinking",
                "ends_there": [c.name for c in better],
            },
        )


@register
class MarkersHidden(Rule):
    id = "FIT112"
    slug = "markers-hidden-when-decoded"
    severity = "error"
    what = (
        "Fires when the tokenizer flags the thinking markers special, decoding therefore leaves them out, and the "
        "parser does not ask the server to keep them; shown by a probe that passes with the markers and fails "
        "without."
    )
    why = "In a full answer the parser never sees the marker: thought and answer end up in one field."
    example = "a tokenizer.json with </think> special: true and --reasoning-parser deepseek_r1: content null"
    instead = (
        "Use an engine parser (it asks for skip_special_tokens=false), flag the markers special: false, or set "
        "skip_special_tokens to false in the generation config (0.33)."
    )
    sources = (
        "vLLM 0.33.0 vllm/parser/engine/parser_engine.py adjust_request",
        "vLLM 0.33.0 vllm/v1/engine/detokenizer.py",
    )

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        judged = facts.judged
        if judged is None:
            return
        for trial in judged.hidden:
            seen = judged.trial(trial.cell.conversation, trial.cell.variant)
            if trial.passed or trial.run is None or seen is None or not seen.passed:
                continue
            flagged = [marker.text for marker in facts.markers if marker.special]
            yield cls.finding(
                f"the tokenizer flags {' and '.join(flagged) or 'the markers'} special and {judged.name} does not ask "
                f"to keep them: the client gets {gets(trial.failures[0].got, trial.probe)}{facts.modelled_on}",
                hint=_keeper(facts),
                confidence=facts.fit_confidence,
                subject=facts.subject(parser=judged.name),
                location=facts.parser_at,
                evidence={
                    **trial_evidence(facts, trial),
                    "markers": [marker.as_json() for marker in facts.markers],
                    "because": "decoding with skip_special_tokens hides special tokens from the text the parser reads",
                },
            )
            return


@register
class ReasoningTokensZero(Rule):
    id = "FIT118"
    slug = "reasoning-tokens-zero"
    severity = "warning"
    what = "Fires when the parser splits a prompt-opened block rightly and counts none of its tokens."
    why = (
        "usage.completion_tokens_details.reasoning_tokens is 0 for answers full of thinking: bills and dashboards "
        "are wrong."
    )
    example = "R1 opens <think> in the prompt; deepseek_r1 counts only behind a generated <think>: 0"
    instead = "Use a parser that counts a prompt-opened block (qwen3, glm45, …), or do not rely on that field."
    versions = "vLLM 0.28 and later report reasoning_tokens"
    sources = (f"{_BASIC} count_reasoning_tokens", "vLLM 0.33.0 vllm/entrypoints/openai/chat_completion/serving.py")
    facts = ("reasoning-tokens-in-usage",)

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        judged = facts.judged
        if judged is None or (facts.target.product == "vllm" and facts.target.version < (0, 28, 0)):
            return
        zero = [
            trial
            for trial in judged.deciding
            if trial.cell.state == "open"
            and trial.cell.conversation != "continue_final_message"
            and trial.passed
            and trial.run is not None
            and trial.run.reasoning_tokens == 0
        ]
        if not zero:
            return
        shown = zero[0]
        counting = [c.name for c in facts.candidates if c.fit == "pass" and _counts(c, shown)]
        yield cls.finding(
            f"usage will report 0 reasoning tokens: the prompt opens the block ({said(shown.cell.variant)}) and "
            f"{judged.name} counts only what the output opens{facts.modelled_on}",
            hint=f"{', '.join(counting[:3])} count it"
            if counting
            else "do not rely on reasoning_tokens with this parser",
            confidence=facts.fit_confidence,
            subject=facts.subject(parser=judged.name),
            location=facts.parser_at,
            evidence={**trial_evidence(facts, shown), "reasoning_tokens": 0, "counts": counting},
        )


def _deltas(mode: ModeResult) -> str:
    return (
        "the whole output"
        if mode.chunking == "whole"
        else f"{mode.chunking} tokens"
        if mode.chunking
        else "the full answer"
    )


def _where(trial: Trial, index: int) -> str:
    run = trial.run
    if run is None:
        return "not known"
    mode = run.full if index == 0 else run.stream[0]
    if mode.error is not None:
        return f"an error ({mode.error})"
    fields = [name for name, text in (("reasoning", mode.reasoning), ("content", mode.content)) if (text or "").strip()]
    return " and ".join(fields) or "lost"


def _act(trial: Trial) -> str:
    if trial.probe.name == "reopens-a-closed-block":
        return "thinks again after the prompt closed thinking"
    if trial.probe.name == "thinks-again":
        return "opens a second block"
    return "mentions its end marker inside the thought"


def _call(candidate: Candidate) -> Trial | None:
    return next((t for t in candidate.stress if t.probe.name == "calls-a-tool-while-thinking"), None)


def _ends_at_calls(candidate: Candidate, facts: AuditFacts) -> bool:
    """Whether the target's release of this parser ends reasoning at a call, where the model of another one does."""
    fact = f"{candidate.name}-implicit-tool-end"
    if facts.exact or facts.target.product != "vllm":
        return True
    if versions.rows("fact", fact):
        return versions.fact(fact, facts.target.version)
    return versions.fact("parser-engine", facts.target.version) or candidate.row.family != "engine"


def _swallows(trial: Trial) -> bool:
    run = trial.run
    call = trial.probe.content or ""
    return run is not None and any(call in (m.reasoning or "") for m in (run.full, run.stream[0]))


def _delivers(trial: Trial) -> bool:
    run = trial.run
    call = trial.probe.content or ""
    return run is not None and all(call in (m.content or "") for m in (run.full, run.stream[0]))


def _counts(candidate: Candidate, shown: Trial) -> bool:
    trial = candidate.trial(shown.cell.conversation, shown.cell.variant)
    return trial is not None and trial.run is not None and bool(trial.run.reasoning_tokens)


def _keeper(facts: AuditFacts) -> str:
    keeps = [c.name for c in facts.candidates if c.fit == "pass" and c.row.skip_special_tokens is False]
    return (
        f"use --reasoning-parser {keeps[0]}, which asks the server to keep them"
        if keeps
        else "flag them special: false"
    )
