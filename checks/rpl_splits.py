"""RPL rules on how one parser's splits hold together: full against streamed, delta sizes, leaks, losses, exceptions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..parsers import ROWS
from ..parsers.run import ModeResult
from ..traces.replay import Result
from ..traces.splits import conserved, leaked, same
from .finding import Finding
from .replayed import ReplayFacts, advice, called, who
from .rpl_cause import Cause, cause
from .rpl_mends import Mend, mends
from .rule import Rule, register

_SERVING = "vLLM 0.33.0 vllm/parser/abstract_parser.py"
_BASIC = "vLLM 0.33.0 vllm/reasoning/basic_parsers.py"


class SplitRule(Rule):
    """A rule that makes at most one finding for each parser that findings may be about."""

    @classmethod
    def check(cls, facts: ReplayFacts) -> Iterator[Finding]:
        for result in facts.subjects:
            seen = cls.seen(facts, result)
            if seen is None:
                continue
            message, streamed, more = seen
            why = cls.cause(facts, result)
            mended = cls.mends(facts, result)
            evidence = facts.evidence(result, streamed, **more)
            if why is not None:
                evidence |= {"chain": list(why.chain), "every_step_run": why.ran}
            if mended:
                evidence["mends"] = [mend.as_json() for mend in mended]
            yield cls.finding(
                message,
                hint=cls.hint(facts, result),
                confidence=facts.confidence if why is None or why.ran else "medium",
                cause=why.rule if why is not None else None,
                subject=facts.subject(result),
                location=facts.location,
                evidence=evidence,
            )

    @classmethod
    def mends(cls, facts: ReplayFacts, result: Result) -> tuple[Mend, ...]:
        """What was replayed and mends it."""
        return mends(facts, result)

    @classmethod
    def cause(cls, facts: ReplayFacts, result: Result) -> Cause | None:
        """What explains it."""
        return cause(facts, result)

    @classmethod
    def seen(cls, facts: ReplayFacts, result: Result) -> tuple[str, ModeResult | None, dict[str, Any]] | None:
        """The message, the stream that shows the defect and further evidence; None where there is no defect."""
        raise NotImplementedError

    @classmethod
    def hint(cls, facts: ReplayFacts, result: Result) -> str:
        mended = cls.mends(facts, result)
        if mended:
            return f"{mended[0].change} (replayed: {mended[0].outcome})"
        return advice(facts, result)


@register
class ReplayStreamDiffers(SplitRule):
    id = "RPL401"
    slug = "replay-stream-differs"
    severity = "error"
    what = """The parser that served the trace splits its output one way in full and another when streamed as it was
        recorded, or, where no deltas were recorded, at one token a delta."""
    why = """A client that streams and one that does not get different answers from one server. vLLM reads the prompt's
        last marker when it streams; most parsers do not when they split the whole output at once."""
    example = """prompt ends '<think></think>', output 'It is 4.', deepseek_r1: in full reasoning 'It is 4.',
        content null, streamed content 'It is 4.'"""
    instead = "Serve with a parser that passes on the trace (the finding names one), or send the switch it reads."
    sources = (_SERVING, "vLLM issue 53284")

    @classmethod
    def seen(cls, facts: ReplayFacts, result: Result) -> tuple[str, ModeResult | None, dict[str, Any]] | None:
        if result.checks.stream_equals_full is not False or result.primary is None:
            return None
        return (
            f"{who(result)} splits this output one way in full and another {called(result.primary)}",
            result.primary,
            {},
        )


@register
class ReplayDeltaSizeMatters(SplitRule):
    id = "RPL402"
    slug = "replay-delta-size-matters"
    severity = "warning"
    what = """The streamed split depends on how many tokens share a delta. A leak or loss that only larger deltas show
        is this defect, not RPL403 or RPL406."""
    why = """Speculative decoding, multi-token prediction and a busy server put several tokens into one delta. The same
        answer is then split in another way than it was in testing."""
    example = "deepseek_r1 on '<think>Two and two.</think>4': in deltas of 3 the literal '<think>' stays in reasoning"
    instead = "Use a parser of the engine family (qwen3, glm45, kimi_k2, ...), whose split does not depend on deltas."
    sources = (_BASIC, "vLLM issue 55195")

    @classmethod
    def seen(cls, facts: ReplayFacts, result: Result) -> tuple[str, ModeResult | None, dict[str, Any]] | None:
        if result.checks.chunk_invariant is not False:
            return None
        good = [mode for mode in (result.primary, *result.stream) if mode is not None and mode.error is None]
        other = next((mode for mode in good if not same(mode, good[0])), None)
        if other is None:
            return None
        row = ROWS.get(result.parser)
        also = [
            rule
            for rule, real in (("RPL403", bool(leaked(other, row))), ("RPL406", not conserved(other, result.raw, row)))
            if real
        ]
        message = f"{who(result)} splits this output one way {called(good[0])} and another {called(other)}"
        return message, other, {"got": dict(facts.evidence(result, good[0])["streamed"]), "also": also}


@register
class ReplayMarkerLeak(SplitRule):
    id = "RPL403"
    slug = "replay-marker-leak"
    severity = "error"
    what = """One of the parser's own markers stands in reasoning or content: in full, as recorded, or at one token a
        delta. minimax_m2_append_think writes its marker on purpose."""
    why = "Users see '</think>' in answers, and clients that split on markers themselves split twice."
    example = "poolside_v1 without enable_thinking on 'Let me see.</think>4': content is all of it, marker included"
    instead = "See which request or parser lets it through; the cause, where --model or --serve is given, names it."
    sources = (_SERVING,)

    @classmethod
    def seen(cls, facts: ReplayFacts, result: Result) -> tuple[str, ModeResult | None, dict[str, Any]] | None:
        for mode in facts.real_modes(result):
            markers = leaked(mode, ROWS.get(result.parser))
            if markers:
                field = "reasoning" if markers[0] in (mode.reasoning or "") else "content"
                text = f"{who(result)} leaves {markers[0]!r} in {field}, {called(mode)}"
                return text, None if mode.chunking is None else mode, {"marker": markers[0]}
        return None


@register
class TextLost(SplitRule):
    id = "RPL406"
    slug = "text-lost"
    severity = "error"
    what = """Reasoning and content do not add up to the output, white space, the parser's markers and the texts it is
        known to strip or add set aside."""
    why = "Words the model wrote, and the user paid for, never reach the client."
    example = "minicpmv with thinking off, in full, on '<think>Hm.</think>4': the block is dropped, reasoning is null"
    instead = "Use a parser that keeps everything on this trace; the finding names one where there is one."
    sources = (_SERVING,)

    @classmethod
    def seen(cls, facts: ReplayFacts, result: Result) -> tuple[str, ModeResult | None, dict[str, Any]] | None:
        if result.checks.text_conserved is not False:
            return None
        row = ROWS.get(result.parser)
        for mode in facts.real_modes(result):
            if not conserved(mode, result.raw, row):
                text = f"{who(result)} loses text, {called(mode)}: reasoning and content do not add up to the output"
                return text, None if mode.chunking is None else mode, {}
        return None


@register
class ParserRaised(SplitRule):
    id = "RPL414"
    slug = "parser-raised"
    severity = "error"
    what = "The parser raises on this output, in some mode: built with these kwargs, in full, or in some chunking."
    why = "The request fails with an HTTP 500, or the stream breaks off in the middle of an answer."
    example = (
        "k2_horizon with reasoning_effort 'none': ValueError: Unsupported reasoning_effort, for every such request"
    )
    instead = (
        "Do not send what it raises on, or use another parser; a marker that is no token shows as FIT103 in an audit."
    )
    sources = ("vLLM 0.33.0 vllm/reasoning",)

    @classmethod
    def seen(cls, facts: ReplayFacts, result: Result) -> tuple[str, ModeResult | None, dict[str, Any]] | None:
        if result.status != "error":
            return None
        modes = [called(mode) for mode in result.modes if mode.error is not None]
        where = "in every mode" if len(modes) == len(result.modes) else ", ".join(modes)
        return f"{who(result)} raises {where}: {result.reason}", None, {"modes": modes}


RULES = (ReplayStreamDiffers, ReplayDeltaSizeMatters, ReplayMarkerLeak, TextLost, ParserRaised)
