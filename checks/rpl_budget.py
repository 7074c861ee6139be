"""RPL410 and RPL411: thinking that went past its budget, and thinking that left nothing for the answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..budgets.standing import missing_strings
from ..parsers.run import ModeResult
from ..traces.replay import Result
from ..traces.thinking import Block
from .finding import Confidence, Finding
from .replayed import ReplayFacts, called, shorten, who
from .rpl_cause import Cause, cause
from .rpl_granted import Budget, allowed, budget_of
from .rpl_mends import Mend
from .rpl_splits import SplitRule
from .rule import Rule, register

_COUNTER = "vLLM 0.33.0 vllm/v1/worker/gpu/sample/thinking_budget.py"
_ANSWER = 256
"""Tokens an answer needs (BUD307)."""


@register
class BudgetOverrun(Rule):
    id = "RPL410"
    slug = "budget-overrun"
    severity = "error"
    what = """A block of thinking holds more tokens than its budget allows on that server: the request's
        thinking_token_budget, wherever it stands in the body, else the server's default. vLLM charges the prompt's
        tokens behind an open start marker and gives every reopened block a fresh budget; SlimServe charges generated
        tokens only and clamps to max_tokens - 1."""
    why = "The budget was paid for in quality and bought nothing: the run is as long and as dear as without one."
    example = (
        '"extra_body": {"thinking_token_budget": 64} in a raw body, 900 thinking tokens: no server looks there (BUD318)'
    )
    instead = (
        "See the cause: where the budget was lost. `reasonctl validate-config` shows what each request is granted."
    )
    versions = "vLLM 0.19 and later have budgets; SlimServe by its documented rules"
    sources = (_COUNTER, "vLLM 0.33.0 vllm/sampling_params.py", "SlimServe docs/reasoning-token-budgets.md")

    @classmethod
    def check(cls, facts: ReplayFacts) -> Iterator[Finding]:
        thought = facts.trace.thought
        budget = budget_of(facts) if thought is not None else None
        if thought is None or budget is None or budget.asked < 0:
            return
        over = [block for block in thought.blocks if _tokens(facts, block) > allowed(facts, budget, block)]
        if not over:
            return
        block = max(over, key=lambda one: one.tokens)
        tokens, most = _tokens(facts, block), allowed(facts, budget, block)
        why = _lost(facts, budget, block) if facts.given else None
        whose = "the request's budget" if budget.by == "request" else "the server's default budget"
        yield cls.finding(
            f"{tokens} thinking tokens, where {whose} of {budget.asked} allows {most}",
            hint=_hint(facts, budget, why),
            confidence=_confidence(facts),
            cause=why.rule if why is not None else None,
            subject=facts.subject(),
            location=facts.location,
            evidence={
                "budget": budget.asked,
                "asked_by": budget.by,
                "allowed": most,
                "thinking_tokens": tokens,
                "prompt_tokens_charged": thought.charged,
                "blocks": [one.tokens for one in thought.blocks],
                "output": shorten(facts.trace.raw),
            }
            | ({"chain": list(why.chain), "every_step_run": why.ran} if why is not None else {}),
        )


@register
class ThinkingAteTheAnswer(SplitRule):
    id = "RPL411"
    slug = "thinking-ate-the-answer"
    severity = "warning"
    what = "The run was cut by its length (finish_reason length), and all of it is reasoning: there is no content."
    why = """The client waits as long as for an answer, pays for one, and gets none. No parser can help: the answer was
        never written."""
    example = (
        '"max_tokens": 512 and no thinking_token_budget: 512 tokens of thought, content null, finish_reason length'
    )
    instead = """Bound the thought with a thinking_token_budget well below max_tokens (the answer gets what is left), or
        raise max_tokens. Where thinking is switched off and the answer was filed as reasoning, change the parser."""
    sources = (_COUNTER, "vLLM 0.33.0 vllm/entrypoints/openai/chat_completion/serving.py")

    @classmethod
    def check(cls, facts: ReplayFacts) -> Iterator[Finding]:
        yield from super().check(facts)
        if facts.subjects or facts.trace.finish_reason != "length" or not _all_thought(facts):
            return
        yield cls.finding(
            "the run was cut by its length with nothing but reasoning in it",
            hint="bound the thought with thinking_token_budget, or raise max_tokens",
            confidence=facts.confidence,
            subject=facts.subject(),
            location=facts.location,
            evidence={"output": shorten(facts.trace.raw)},
        )

    @classmethod
    def seen(cls, facts: ReplayFacts, result: Result) -> tuple[str, ModeResult | None, dict[str, Any]] | None:
        if facts.trace.finish_reason != "length":
            return None
        for mode in facts.real_modes(result):
            if (mode.reasoning or "").strip() and not (mode.content or "").strip():
                thought = facts.trace.thought
                more = {"thinking_tokens": sum(block.tokens for block in thought.blocks)} if thought is not None else {}
                text = f"the run was cut by its length, and {who(result)} gives nothing but reasoning, {called(mode)}"
                return text, None if mode.chunking is None else mode, more
        return None

    @classmethod
    def cause(cls, facts: ReplayFacts, result: Result) -> Cause | None:
        if not facts.given:
            return None
        state = facts.trace.state
        if state is not None and state.state in ("closed", "closed-bare"):
            return cause(facts, result)
        budget = budget_of(facts)
        return _unbounded(facts, result, budget)

    @classmethod
    def mends(cls, facts: ReplayFacts, result: Result) -> tuple[Mend, ...]:
        """A budget that leaves room for the answer; a parser only where the prompt had closed thinking."""
        state = facts.trace.state
        if state is not None and state.state in ("closed", "closed-bare"):
            return super().mends(facts, result)
        cut = next((one for one in facts.trace.what_ifs.get(result.parser, ()) if one.kind == "forced-end"), None)
        refuses = facts.command is not None and missing_strings(facts.command, facts.target) is not None
        if cut is None or not cut.sound or refuses or budget_of(facts) is not None:
            return ()
        tokens = cut.change["thinking_token_budget"]
        outcome = "cut there it splits right; the answer itself is not in the recording"
        return (Mend("client", f'extra_body={{"thinking_token_budget": {tokens}}}', outcome),)

    @classmethod
    def hint(cls, facts: ReplayFacts, result: Result) -> str:
        state = facts.trace.state
        if state is not None and state.state in ("closed", "closed-bare"):
            return super().hint(facts, result)
        text = "bound the thought with thinking_token_budget, or raise max_tokens"
        return text if facts.given else f"{text}; give --model or --serve for the cause"


def _all_thought(facts: ReplayFacts) -> bool:
    """Without a parser to judge: what was recorded, or what a parser that explains the trace makes of it."""
    recorded = facts.trace.recorded
    if recorded is not None and recorded.tool_calls:
        return False
    splits = [(recorded.reasoning, recorded.content)] if recorded is not None and recorded.has_split else []
    splits += [(facts.right.reasoning, facts.right.content)] if facts.right is not None else []
    return any((reasoning or "").strip() and not (content or "").strip() for reasoning, content in splits[:1])


def spent(facts: ReplayFacts, result: Result) -> Cause | None:
    """RPL404's cause where a budget ended the thought and left the answer next to nothing; else None."""
    thought = facts.trace.thought
    budget = budget_of(facts) if facts.given and thought is not None else None
    if thought is None or budget is None or budget.cutoff is None or not thought.blocks:
        return None
    last = thought.blocks[-1]
    if not last.ended or last.tokens < allowed(facts, budget, last) - thought.closing:
        return None
    left = None if budget.limit is None else max(0, budget.limit - budget.cutoff - 1)
    if left is None or left >= _ANSWER:
        return None
    steps = (
        ("request", f"a budget of {budget.asked} and at most {budget.limit} tokens: {left} are left for the answer"),
        ("output", f"the thought was cut at {last.tokens} tokens, and nothing follows its end marker"),
        ("parser", f"{who(result)} files what there is as reasoning"),
    )
    return Cause("BUD306" if left == 0 else "BUD307", steps)


def _unbounded(facts: ReplayFacts, result: Result, budget: Budget | None) -> Cause:
    """Why nothing ended the thought before the limit did."""
    thought = facts.trace.thought
    tokens = sum(block.tokens for block in thought.blocks) if thought is not None else None
    ends = ("parser", f"{who(result)} files a thought without an end as reasoning; content has nothing to show")
    ran = ("output", f"{tokens} thinking tokens, cut by the limit" if tokens else "cut by the limit")
    if budget is None:
        return Cause("FIT109", (("request", "no thinking budget, here or on the server"), ran, ends))
    limit = f"at most {budget.limit} tokens" if budget.limit is not None else "a limit that is not known"
    asked = ("request", f"a budget of {budget.asked} and {limit}")
    if budget.rule is not None:
        lost = ("server", budget.why or "-1 asks for no cutoff")
        return Cause(budget.rule, (asked, lost, ran, ends))
    if budget.limit is not None and budget.asked >= budget.limit - 1:
        return Cause("BUD306", (asked, ("server", "the limit is reached before the budget"), ran, ends))
    if thought is not None and not thought.armed:
        seen = f"neither prompt nor output holds {thought.start}, which the counter waits for"
        return Cause("BUD313", (asked, ("server", seen), ran, ends), facts.trace.prompt is not None)
    if budget.limit is not None and budget.limit - budget.asked - 1 < _ANSWER:
        left = f"{budget.limit - budget.asked - 1} tokens are left behind the budget"
        return Cause("BUD307", (asked, ("server", left), ran, ends))
    return Cause("FIT109", (asked, ran, ends))


def _lost(facts: ReplayFacts, budget: Budget, block: Block) -> Cause | None:
    """Where an overrun budget was lost; None where it should have held."""
    thought = facts.trace.thought
    asked = ("request" if budget.by == "request" else "server", f"a budget of {budget.asked} tokens")
    ran = ("output", f"a thought of {block.tokens} tokens")
    if budget.rule is not None:
        return Cause(budget.rule, (asked, ("server", str(budget.why)), ran))
    if thought is not None and not thought.armed:
        seen = f"neither prompt nor output holds {thought.start} as the tokens the counter waits for"
        return Cause("BUD313", (asked, ("server", seen), ran), facts.trace.prompt is not None)
    if thought is not None and thought.charged and block.opened == "prompt" and block.tokens <= budget.asked:
        charged = f"the prompt's {thought.charged} tokens behind {thought.start} were not charged, as vLLM charges them"
        return Cause("BUD314", (asked, ran, ("check", charged)))
    if facts.command is not None and facts.command.known("speculative-config"):
        return Cause("BUD327", (asked, ("server", "it decodes speculatively"), ran), False)
    return None


def _hint(facts: ReplayFacts, budget: Budget, why: Cause | None) -> str:
    if not facts.given:
        return "give --model or --serve for the cause"
    if why is None:
        return f"reasonctl verify --endpoint URL --budget {budget.asked} proves whether this server enforces it"
    if why.rule == "BUD314":
        return "this server counts generated tokens only; --target slimserve judges it by that"
    return "put the budget where the server reads it; reasonctl validate-config BODY.json shows what it is granted"


def _tokens(facts: ReplayFacts, block: Block) -> int:
    """A block's tokens; on an assumed tokenizer those that usage reports, where it does."""
    thought = facts.trace.thought
    reported = _reported(facts)
    if facts.trace.tokenizer == "assumed" and reported and thought is not None and len(thought.blocks) == 1:
        return reported
    return block.tokens


def _reported(facts: ReplayFacts) -> int | None:
    usage = facts.trace.recorded.usage if facts.trace.recorded is not None else {}
    for key in ("completion_tokens_details", "output_tokens_details"):
        details = usage.get(key)
        tokens = details.get("reasoning_tokens") if isinstance(details, dict) else None
        if isinstance(tokens, int):
            return tokens
    return None


def _confidence(facts: ReplayFacts) -> Confidence:
    """Counting needs real tokens: words of an assumed tokenizer are none."""
    if facts.trace.tokenizer == "assumed":
        return "medium" if _reported(facts) else "low"
    return "high" if facts.target.exact else "medium"


RULES = (BudgetOverrun, ThinkingAteTheAnswer)
