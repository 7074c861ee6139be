"""BUD313, BUD321, BUD325, BUD326: when a server starts to count a thought, when it starts anew, and where it cuts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .. import versions as releases
from ..budgets.context import CountedPrompt, ModelContext
from ..budgets.counting import Written
from ..budgets.facts import BudgetFacts, BudgetValue
from ..budgets.strings import Strings
from .bud_replica import THOUGHT, Replica, replicas
from .evidence import conversation_said, said
from .finding import Confidence, Finding, Severity
from .rule import Rule, register

_V1 = "vllm/v1/sample/thinking_budget_state.py (0.33.0), run"
_V2 = "vllm/v1/worker/gpu/sample/thinking_budget.py (0.33.0), run"
_TYPED = ("user_start_marker", "user_end_marker", "continue_final_message")


def _first(facts: BudgetFacts) -> BudgetValue | None:
    """The budget to point at; None where none is granted."""
    return next(iter(facts.granted), None)


def _prompts(context: ModelContext) -> list[CountedPrompt]:
    """The prompts behind which the model may think, users' own markers aside, plain requests first."""
    found = [prompt for prompt in context.prompts if prompt.thinks and prompt.conversation not in _TYPED]
    return sorted(found, key=lambda prompt: (prompt.weight != "asked", prompt.conversation != "single_turn"))


def _confidence(facts: BudgetFacts) -> Confidence:
    context = facts.context
    return "high" if context is not None and context.real and not context.lone and facts.target.exact else "medium"


@register
class BudgetNeverFires(Rule):
    id = "BUD313"
    slug = "budget-never-fires"
    severity = "error"
    what = (
        "In a variant that thinks, neither the prompt nor the output carries the start marker that the counter waits "
        "for, as the tokens it is on its own. An error for the plain request and for switches the template reads, a "
        "warning for an effort."
    )
    why = "The server accepts the budget and never starts to count: thinking is unlimited, and nothing says so."
    example = "k2_horizon, effort low: the prompt opens <ifm|think_faster>, the counter waits for <ifm|think>"
    instead = (
        "Use the parser whose markers the template writes, or name both strings in `--reasoning-config`; where a start "
        "marker is cut into several tokens, so that it merges with its neighbours, bound the run with max_tokens."
    )
    versions = "every vLLM with budgets, and SlimServe"
    sources = (_V2, _V1, "vllm/config/reasoning.py, initialize_token_ids (0.33.0)")

    @classmethod
    def check(cls, facts: BudgetFacts) -> Iterator[Finding]:
        context, strings, value = facts.context, facts.strings, _first(facts)
        if context is None or strings is None or value is None or not context.thinks:
            return
        mute: dict[str, list[CountedPrompt]] = {}
        for prompt in _prompts(context):
            if prompt.armed is False and prompt.weight != "unread":
                mute.setdefault(_opens(prompt), []).append(prompt)
        for marker, prompts in mute.items():
            first = prompts[0]
            ids = context.vocabulary.encode(strings.start)
            cut = f", which is {len(ids)} tokens by itself" if len(ids) > 1 and marker.startswith(strings.start) else ""
            where = "the prompt opens" if first.opens == "" else "the model opens"
            yield cls.finding(
                f"{_request(first)}: {where} thinking with {marker.strip()}, and the counter waits for "
                f"{strings.start}{cut}: the budget never fires",
                hint=_mend(facts, strings, marker.strip(), cut),
                severity="error" if any(prompt.weight == "asked" for prompt in prompts) else "warning",
                confidence=_confidence(facts),
                subject={**value.subject, "variant": dict(first.variant), "conversation": first.conversation},
                location=value.location,
                evidence={
                    "opens": marker,
                    "waits_for": strings.start,
                    "ids": list(ids) if context.real else None,
                    "cells": [
                        {"conversation": prompt.conversation, "variant": dict(prompt.variant)} for prompt in prompts
                    ],
                },
            )


def _opens(prompt: CountedPrompt) -> str:
    return (prompt.marker if prompt.opens == "" else prompt.opens) or "a marker of its own"


def _request(prompt: CountedPrompt) -> str:
    variant = said(prompt.variant)
    return variant if prompt.conversation == "single_turn" else f"{variant} ({conversation_said(prompt.conversation)})"


def _mend(facts: BudgetFacts, strings: Strings, marker: str, cut: str) -> str:
    if cut:
        return "this tokenizer has no token of its own for the marker: bound the run with max_tokens"
    end = facts.context.end if facts.context is not None else None
    both = f'{{"reasoning_start_str": "{marker}", "reasoning_end_str": "{end or strings.natural}"}}'
    return f"use a parser with these markers, or --reasoning-config '{both}'"


@register
class CutInsideToolCall(Rule):
    id = "BUD321"
    slug = "cut-inside-tool-call"
    severity = "warning"
    what = (
        "Tools are offered, a budget is granted, and a tool call of this family opens inside the thought without an "
        "end marker before it: the counter goes on in the call."
    )
    why = (
        "The parser takes the call for the end of the thought, the counter does not. When the budget runs out inside "
        "the call, the end marker is forced into its arguments, which are then no JSON or XML any more."
    )
    example = 'qwen3, budget 256, <tool_call> without </think>: {"city": "Ro</think>me"}'
    instead = (
        "Give requests with tools a budget far above what a thought and a call take together, or none; bound them with "
        "max_tokens."
    )
    versions = "every vLLM with budgets, up to 0.33.0"
    sources = (_V1, _V2, "vllm #44676 (open; broken arguments in three of four runs at a budget of 256)")

    @classmethod
    def check(cls, facts: BudgetFacts) -> Iterator[Finding]:
        value, marker = _first(facts), _call(facts)
        if value is None or marker is None or not _offers_tools(facts):
            return
        if facts.context is not None and not any(_prompts(facts.context)):
            return
        for replica in replicas(facts)[:1]:
            call = f'{marker}{{"name": "get_weather", "arguments": {{"city": "Rome"}}}}'
            written = replica.output("one", call)
            if any(one.forced for one in written):
                yield cls.finding(
                    f"a call that opens with {marker} inside the thought is counted on: at the budget's end "
                    f"{replica.strings.forced} is forced into its arguments",
                    hint="give requests with tools a budget far above thought and call, or none",
                    confidence="high" if facts.target.exact else "medium",
                    subject={**value.subject, "parser": replica.strings.parser},
                    location=value.location,
                    evidence={"call": marker, "output": replica.text(written)},
                )


def _call(facts: BudgetFacts) -> str | None:
    """What opens a call that ends a thought by itself, by the parser's own row."""
    from ..parsers.table import ROWS

    row = ROWS.get(facts.strings.parser or "") if facts.strings is not None else None
    if row is None or not row.implicit_ends:
        return None
    if facts.context is None:
        return row.implicit_ends[0]
    call = facts.context.call or ""
    return next((marker for marker in row.implicit_ends if call.startswith(marker)), None)


def _offers_tools(facts: BudgetFacts) -> bool:
    command = facts.command
    served = command is not None and command.enable_auto_tool_choice and "tool-call-parser" in command.flags
    return served or any(request.tools and request.grants is not None for request in facts.requests)


@register
class PerBlock(Rule):
    id = "BUD325"
    slug = "per-block"
    severity = "info"
    what = (
        "Says that the budget bounds a block of thinking, not a response: a model that opens another block gets the "
        "whole budget again. In vLLM before 0.26 on V1 a warning: no later block is bounded there, or (0.25) it is "
        "closed at once."
    )
    why = "A response may think several times its budget: bound the whole of it with max_tokens."
    example = "budget 2: 1 </think> 9 <think> 2 3 [</think>]"
    instead = "Nothing, where that is meant; max_tokens bounds the response."
    versions = "V1: 0.26 and later; V2: 0.28 and later; SlimServe"
    sources = (_V1, _V2, "vllm #43708, #43757", "vllm/v1/sample/thinking_budget_state.py (0.21.0 to 0.26.0), run")
    facts = (
        "v1-budget-holder",
        "v1-budget-rearms",
        "v2-budget",
    )

    @classmethod
    def check(cls, facts: BudgetFacts) -> Iterator[Finding]:
        value, context = _first(facts), facts.context
        if value is None or context is None or facts.strings is None or not any(p.armed for p in _prompts(context)):
            return
        found = _reopened(facts)
        if found is not None:
            message, severity, evidence = found
            yield cls.finding(
                message,
                hint="max_tokens bounds the whole response",
                severity=severity,
                confidence="high" if facts.target.exact else "medium",
                subject=value.subject,
                location=value.location,
                evidence=evidence,
            )


def _reopened(facts: BudgetFacts) -> tuple[str, Severity, Mapping[str, Any]] | None:
    """What becomes of a second block: (message, severity, evidence)."""
    fresh = "a budget bounds a block: every block that the model opens again gets the whole of it"
    version = facts.target.version
    if facts.target.product != "vllm":
        return fresh, "info", {}
    if facts.runner != "v1" or releases.fact("v1-budget-rearms", version):
        found = next(iter(replicas(facts)), None)
        return fresh, "info", {"output": _twice(found)} if found is not None else {}
    if not releases.fact("v1-budget-holder", version):
        return None
    text = facts.target.version_text
    if version >= (0, 25, 0):
        return f"vLLM {text} closes a block at once that is opened after a forced end", "warning", {}
    return f"vLLM {text} counts the first block only: one that the model opens again is not bounded", "warning", {}


def _twice(replica: Replica) -> str:
    written: list[Written] = replica.output("one", replica.end, "It is four.", replica.strings.start, THOUGHT)
    return replica.text(written)


@register
class UserMarkerSpendsBudget(Rule):
    id = "BUD326"
    slug = "user-marker-spends-budget"
    severity = "warning"
    what = "A start marker in a user's text, which nothing behind it closes, starts the count."
    why = (
        "The counter looks at all of the prompt, and what follows the marker there is charged. A long question about "
        "the marker uses the budget up before the model writes a token: the first one is then the forced end."
    )
    example = (
        "The user asks what <think> means, and the prompt opens no block of its own: budget 64, 80 tokens behind it"
    )
    instead = (
        "Take the marker out of user texts (a space inside it is enough), or use a template whose generation prompt "
        "opens or closes the block itself."
    )
    versions = "every vLLM with budgets"
    sources = (_V2, _V1)

    @classmethod
    def check(cls, facts: BudgetFacts) -> Iterator[Finding]:
        context, value = facts.context, _first(facts)
        if context is None or value is None or facts.strings is None or facts.target.product != "vllm":
            return
        hit = []
        for prompt in context.prompts:
            plain = context.plain("single_turn", prompt.variant)
            if prompt.conversation != "user_start_marker" or prompt.weight != "asked" or plain is None:
                continue
            if prompt.charged is not None and prompt.charged > (plain.charged or 0):
                hit.append(prompt)
        if hit:
            first = hit[0]
            yield cls.finding(
                f"{said(first.variant)}: {context.marker} in the user's text starts the count, and {first.charged} "
                "tokens behind it are charged before the model writes one",
                hint="break the marker up in user texts; the budget is spent there, and a forced end may come first",
                confidence=_confidence(facts),
                subject={**value.subject, "variant": dict(first.variant), "conversation": "user_start_marker"},
                location=value.location,
                evidence={
                    "charged": first.charged,
                    "budget": value.tokens,
                    "cells": [{"variant": dict(prompt.variant)} for prompt in hit],
                },
            )
