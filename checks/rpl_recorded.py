"""RPL rules on a trace against what was recorded of it, and on which parsers explain it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..parsers import ROWS
from ..parsers.run import ModeResult
from ..traces.replay import Result
from ..traces.splits import HARMONY, matches
from ..traces.whatif import WhatIf
from .evidence import said
from .finding import Finding
from .replayed import ReplayFacts, called, outcome, shorten, split_json, who
from .rpl_cause import Cause, cause
from .rpl_splits import ParserRaised, ReplayMarkerLeak, ReplayStreamDiffers, SplitRule, TextLost
from .rule import Rule, register

_SERVING = "vLLM 0.33.0 vllm/entrypoints/openai/chat_completion/serving.py"


@register
class ReasoningOnly(SplitRule):
    id = "RPL404"
    slug = "reasoning-only"
    severity = "error"
    what = "The run ended with finish_reason stop, and all the client gets is reasoning: no content, no tool call."
    why = """Most clients show content alone. The user sees an empty answer while the model has answered: the answer was
        filed as reasoning."""
    example = "thinking switched off, deepseek_r1: reasoning 'It is 4.', content null, finish_reason stop"
    instead = (
        "Serve with a parser that follows the template's off switch; a run cut by max_tokens is not meant (RPL411)."
    )
    sources = (_SERVING, "vLLM issues 17349 and 30625")

    @classmethod
    def seen(cls, facts: ReplayFacts, result: Result) -> tuple[str, ModeResult | None, dict[str, Any]] | None:
        if facts.trace.finish_reason != "stop" or result.checks.answered is not False:
            return None
        for mode in facts.real_modes(result):
            if (mode.reasoning or "").strip() and not (mode.content or "").strip():
                text = f"the run ended with stop, and {who(result)} gives nothing but reasoning, {called(mode)}"
                return text, None if mode.chunking is None else mode, {}
        return None

    @classmethod
    def cause(cls, facts: ReplayFacts, result: Result) -> Cause | None:
        from .rpl_budget import spent  # that module's rules are made of this one's base

        return spent(facts, result) or super().cause(facts, result)


@register
class RecordedDiffers(SplitRule):
    id = "RPL405"
    slug = "recorded-differs"
    severity = "error"
    what = """What the server returned is not what this parser gives on this output. Said of the recorded parser (of one
        named with --parser where none was recorded), never of a rebuilt text."""
    why = """The server did not run what its command line says: another parser, version or kwargs, a prompt that is not
        the one given, or a proxy that rewrote the answer."""
    example = "recorded by 'qwen3' with content '</think>4'; qwen3 gives reasoning 'Two and two.' and content '4'"
    instead = (
        "Compare version (--target), kwargs (--chat-template-kwargs) and prompt with the server's own start-up log."
    )
    sources = (_SERVING,)

    @classmethod
    def seen(cls, facts: ReplayFacts, result: Result) -> tuple[str, ModeResult | None, dict[str, Any]] | None:
        recorded = facts.trace.recorded
        if result.matches_recorded is not False or facts.trace.lossy or recorded is None:
            return None
        if not result.served and any(other.served for other in facts.trace.results):
            return None  # another parser than the one that served is asked what it would have done
        if not result.served and recorded.parser is not None:
            return None
        got = {"reasoning": shorten(recorded.reasoning), "content": shorten(recorded.content)}
        compared = result.primary if facts.trace.deltas and result.primary is not None else result.full
        how = called(compared)
        said_by = "the fixture expects" if facts.trace.source == "canitoolcall" else "the server returned"
        return f"{said_by} another split than {who(result)} gives on this output, {how}", None, {"recorded": got}

    @classmethod
    def hint(cls, facts: ReplayFacts, result: Result) -> str:
        if _as_a_stream(facts, result):
            return "streamed, it gives exactly what was recorded: this trace lacks the deltas of its stream"
        matching = [other.parser for other in facts.trace.results if other.matches_recorded]
        if matching:
            return f"{', '.join(matching[:3])} gives exactly what was recorded: check what the server really runs"
        tried = facts.trace.what_ifs.get(result.parser, ())
        changed = next((o for o in tried if o.result.matches_recorded and o.same_prompt is not False), None)
        if changed is not None:
            return f"{_with(changed)} gives exactly what was recorded: check what the server really runs"
        return "check the server's version (--target), kwargs (--chat-template-kwargs) and prompt"

    @classmethod
    def cause(cls, facts: ReplayFacts, result: Result) -> Cause | None:
        if _as_a_stream(facts, result):
            return None
        none = next((one for one in facts.trace.what_ifs.get(result.parser, ()) if one.kind == "no-parser"), None)
        if facts.given and none is not None and none.result.matches_recorded and facts.trace.raw.strip():
            steps = (("server", "without a reasoning parser the server returns exactly what was recorded"),)
            return Cause("FIT101", steps)
        return None


def _as_a_stream(facts: ReplayFacts, result: Result) -> bool:
    """What was recorded is what the parser streams, though no deltas were recorded."""
    row = ROWS.get(result.parser)
    modes = [] if facts.trace.deltas else [mode for mode in result.real_modes if mode.chunking is not None]
    return any(matches(facts.trace.recorded, mode, row, stripped=True) for mode in modes)


def _with(changed: WhatIf) -> str:
    if changed.kind == "no-parser":
        return "no reasoning parser"
    if changed.kind == "version":
        return f"{changed.result.parser} of {changed.change['target']}"
    how = "without reasoning_effort" if changed.kind == "no-effort" else f"with {said(changed.change)}"
    return f"{changed.result.parser} {how}"


@register
class ToolCallInReasoning(SplitRule):
    id = "RPL407"
    slug = "tool-call-in-reasoning"
    severity = "error"
    what = "A tool call stands in reasoning and none in content, and the turn has no other answer."
    why = "Tool parsers read content only: the call is never made, and an agent loop stops with an empty answer."
    example = "deepseek_r1 on 'I look it up.<tool_call>{...}</tool_call>' without '</think>': the call is reasoning"
    instead = "Use a parser for which a tool call ends thinking (qwen3, glm45, kimi_k2, minimax_m2, ...)."
    sources = ("vLLM 0.33.0 vllm/parser/engine/parser_engine.py",)

    @classmethod
    def seen(cls, facts: ReplayFacts, result: Result) -> tuple[str, ModeResult | None, dict[str, Any]] | None:
        if not result.call_swallowed:
            return None
        return f"{who(result)} files the tool call of this output as reasoning", None, {}


@register
class WrongParser(Rule):
    id = "RPL408"
    slug = "wrong-parser"
    severity = "error"
    what = """The parser that served fails on this trace by an error rule of RPL401 to RPL414, and another one splits it
        right: every check passes and no marker is left behind, weaknesses aside that only larger deltas show (RPL402)
        where no parser is without them. It is told only of parsers that the trace points to: their markers stand in
        prompt or output, their split is the recorded one, or the parser table pairs them with the model. One that lets
        all text pass as content is none."""
    why = "The name after --reasoning-parser is wrong for this model, or for what these requests do to its template."
    example = "served with deepseek_r1, output '[THINK]Hm.[/THINK]4': it files all as reasoning, mistral splits right"
    instead = "Change --reasoning-parser to the parser named, and replay a few more traces with it before you deploy."
    sources = ("https://docs.vllm.ai/en/latest/features/reasoning_outputs.html",)

    @classmethod
    def check(cls, facts: ReplayFacts) -> Iterator[Finding]:
        for result in facts.subjects:
            others = [name for name in facts.passing if name != result.parser]
            failed = _failures(facts, result)
            if not failed or not others or not _stands_for_served(facts, result):
                continue
            why = cause(facts, result)
            evidence = facts.evidence(result, passing=others, because=facts.trace.why)
            if facts.right is not None:
                evidence["expected"] = split_json(facts.right)
            if why is not None:
                evidence |= {"chain": list(why.chain), "every_step_run": why.ran}
            yield cls.finding(
                f"{who(result)} fails on this trace ({', '.join(failed)}); {_listed(facts, others)}",
                hint=f"--reasoning-parser {others[0]}",
                confidence=facts.confidence if why is None or why.ran else "medium",
                cause=why.rule if why is not None else None,
                subject=facts.subject(result),
                location=facts.location,
                evidence=evidence,
            )


@register
class NoParserExplains(Rule):
    id = "RPL409"
    slug = "no-parser-explains"
    severity = "warning"
    what = "Every parser of the target that can be run here was run on this trace, and none passes every check."
    why = """The model writes in a way no parser of this server expects, or the recording is not what the model wrote:
        cut, rewritten by a proxy, or rebuilt from the wrong markers."""
    example = "output '<thought>Hm.</thought>4': every parser leaves '<thought>' in content or files all as reasoning"
    instead = "Look at the output itself; record again with return_token_ids: true, and give --model and --request."
    sources = ("vLLM 0.33.0 vllm/reasoning/__init__.py",)

    @classmethod
    def check(cls, facts: ReplayFacts) -> Iterator[Finding]:
        everything = (*facts.trace.results, *facts.trace.compared)
        if facts.trace.best or len(everything) < len(facts.known_names):
            return
        ran = [result for result in everything if result.status != "unsupported"]
        if not ran:
            return
        left = len(everything) - len(ran)
        yield cls.finding(
            f"none of {len(ran)} parsers explains this trace ({facts.trace.why})",
            hint=_look(facts),
            confidence="low" if left else facts.confidence,
            subject=facts.subject(),
            location=facts.location,
            evidence={"output": shorten(facts.trace.raw), "not_run": left},
        )


@register
class LossyTrace(Rule):
    id = "RPL412"
    slug = "lossy-trace"
    severity = "info"
    what = """The recording holds reasoning and content as separate fields, or parsed tool calls, and no token ids: the
        markers are gone. The output was rebuilt with the parser's (or the model's) own markers around the reasoning."""
    why = """A rebuilt output cannot show what the server got wrong: a marker it swallowed, white space it stripped, the
        place where it really cut. Splits are compared with white space stripped, and RPL405 is never given."""
    example = '{"choices": [{"delta": {"reasoning": "Two and two."}}]} ... {"choices": [{"delta": {"content": "4"}}]}'
    instead = """Record with return_token_ids: true in the request (vLLM then sends prompt_token_ids and every chunk's
        token_ids) and replay with --model."""
    sources = (_SERVING,)

    @classmethod
    def check(cls, facts: ReplayFacts) -> Iterator[Finding]:
        if not facts.trace.lossy:
            return
        yield cls.finding(
            "the markers of this recording are lost; its output was rebuilt around the reasoning",
            hint="record with return_token_ids: true (reasonctl record --endpoint URL does) and replay with --model",
            confidence="high",
            subject=facts.subject(),
            location=facts.location,
            evidence={"output": shorten(facts.trace.raw)},
        )


def _look(facts: ReplayFacts) -> str:
    """Where to look where no parser explains a trace."""
    if not facts.trace.raw.strip():
        return "the output is empty: the model ended at once, or the recording lost what it wrote"
    if all(part in facts.trace.raw for part in HARMONY):
        return "the output is in harmony channels, which openai_gptoss reads; give --model for its tokens"
    return "look at the output itself; --model and --request give the parsers what the server had"


def _failures(facts: ReplayFacts, result: Result) -> list[str]:
    """The error-level RPL rules a result breaks; what only larger deltas show does not make a parser the wrong one."""
    rules = (ReplayStreamDiffers, ReplayMarkerLeak, ReasoningOnly, TextLost, ToolCallInReasoning, ParserRaised)
    return [f"{rule.id} {rule.slug}" for rule in rules if rule.seen(facts, result) is not None]


def _stands_for_served(facts: ReplayFacts, result: Result) -> bool:
    return result.served or not any(other.served for other in facts.trace.results)


def _listed(facts: ReplayFacts, names: list[str]) -> str:
    few = names[:3] if len(names) > 4 else names
    more = [f"{len(names) - len(few)} more"] if len(names) > len(few) else []
    *head, last = [*few, *more]
    how = outcome(facts) if len(names) == 1 else outcome(facts).replace("splits", "split", 1)
    return f"{', '.join(head)} and {last} {how}" if head else f"{last} {how}"


RULES: tuple[type[Any], ...] = (
    ReasoningOnly,
    RecordedDiffers,
    ToolCallInReasoning,
    WrongParser,
    NoParserExplains,
    LossyTrace,
)
