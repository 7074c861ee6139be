"""BUD306, BUD307, BUD315-BUD317: does the budget leave room for an answer, and do the levels make sense together?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from ..budgets import slimserve
from ..budgets.dialects import LEVELS
from ..budgets.facts import BudgetFacts, BudgetValue
from .bud_values import alike
from .finding import Confidence, Finding
from .rule import Rule, register

_MOST_CONTEXT = 100_000_000
"""Tokens that no model's context reaches."""


@dataclass(frozen=True, slots=True)
class _Ceiling:
    """A budget and the completion limits it meets; `assumed` where nobody named them; `count` requests share it."""

    value: BudgetValue
    tokens: int
    limits: tuple[int, ...]
    assumed: bool
    count: int = 1
    sent: str | None = None
    """The first request that gets a server's own budget at these limits."""

    @property
    def confidence(self) -> Confidence:
        return "medium" if self.assumed else "high"

    @property
    def evidence(self) -> dict[str, object]:
        many = {"requests": self.count} if self.count > 1 else {}
        return {"budget": self.tokens, "max_tokens": list(self.limits), **many}

    @property
    def text(self) -> str:
        more = f" and {self.count - 1} more" if self.count > 1 else ""
        if self.value.request is None:
            own = f"{self.value.key}'s {self.tokens}" if self.value.key else f"a budget of {self.tokens}"
            return own if self.sent is None else f"request {self.sent}{more}: {own}"
        return f"request {self.value.request}{more}: a budget of {self.tokens}"


def _ceilings(facts: BudgetFacts) -> Iterator[_Ceiling]:
    """Every budget that can be reached, with its limits: those of the requests that get it, where any do."""
    assumed = facts.limits_from == "default"
    for value in facts.values:
        if value.request is None and value.tokens is not None and facts.server_budget_counts:
            sent = _sent_with(facts, value)
            limits = tuple(dict.fromkeys(row.resolution.max_tokens for row in facts.rows if row.value == value))
            if sent:
                yield from (
                    _Ceiling(value, value.tokens, (limit,), assumed and not said, len(names), names[0])
                    for (limit, said), names in sent.items()
                )
            else:
                yield _Ceiling(value, value.tokens, limits, assumed)
    for request in facts.requests:
        limits = tuple(row.resolution.max_tokens for row in request.rows if row.value == request.value)
        if request.value is not None and request.value.tokens is not None and limits:
            unsaid = assumed and request.max_tokens is None
            yield _Ceiling(request.value, request.value.tokens, limits, unsaid)


def _sent_with(facts: BudgetFacts, value: BudgetValue) -> dict[tuple[int, bool], list[str]]:
    """The requests that get a server's own budget, by the limit they get it at and whether they say it."""
    found: dict[tuple[int, bool], list[str]] = {}
    for request in facts.requests:
        for row in request.rows:
            if row.value == value:
                key = (row.resolution.max_tokens, request.max_tokens is not None)
                found.setdefault(key, []).append(request.name)
    return found


def _meeting(facts: BudgetFacts, meets: Callable[[int, int], bool]) -> list[_Ceiling]:
    """The budgets that meet some limit so, each with those limits; requests of one endpoint count as one.

    Args:
        facts: what is known.
        meets: a budget and a limit, both in tokens, to whether it is meant.
    """
    found: dict[tuple[object, ...], _Ceiling] = {}
    for ceiling in _ceilings(facts):
        limits = tuple(limit for limit in ceiling.limits if meets(ceiling.tokens, limit))
        if limits:
            value = ceiling.value
            key = (value.key, value.location) if value.request is None else (value.endpoint,)
            old = found.get(key)
            found[key] = replace(ceiling, limits=limits) if old is None else _joined(old, ceiling, limits)
    return list(found.values())


def _joined(old: _Ceiling, more: _Ceiling, limits: tuple[int, ...]) -> _Ceiling:
    """Two that share a fault, as one; of a server's own budget with every limit it is met at."""
    count = old.count + more.count
    if old.sent is None:
        return replace(old, count=count)
    every = tuple(dict.fromkeys((*old.limits, *limits)))
    return replace(old, count=count, limits=every, assumed=old.assumed and more.assumed)


@register
class BudgetReachesCeiling(Rule):
    id = "BUD306"
    slug = "budget-reaches-ceiling"
    severity = "warning"
    what = "A budget is as large as the completion limit (`max_tokens`) or larger."
    why = (
        "Thinking and answer share max_tokens. SlimServe clamps the cutoff to max_tokens - 1, which leaves "
        "nothing for the answer; vLLM never reaches it, and the run ends with finish_reason length and "
        "content null."
    )
    example = '{"thinking_token_budget": 8192, "max_tokens": 4096}'
    instead = "Raise max_tokens above the budget plus the answer, or lower the budget."
    versions = "SlimServe since pull request #13; every vLLM with budgets"
    sources = (slimserve.SOURCE, "vllm/v1/sample/thinking_budget_state.py (0.33.0): max_tokens is not looked at")

    @classmethod
    def check(cls, facts: BudgetFacts) -> Iterator[Finding]:
        for ceiling in _meeting(facts, lambda tokens, limit: tokens >= limit):
            limits = ", ".join(map(str, ceiling.limits))
            slimserve = facts.dialect == "slimserve"
            effect = "leaves nothing for the answer" if slimserve else "is never reached: thinking can take all"
            enough = ceiling.tokens + 1 + facts.answer_reserve
            raise_it = f"max_tokens of {enough} or more keeps {facts.answer_reserve} tokens for the answer"
            yield cls.finding(
                f"{ceiling.text} {effect} at max_tokens {limits}",
                hint=raise_it if enough <= _MOST_CONTEXT else "no model has room for so many: write a smaller budget",
                confidence=ceiling.confidence,
                subject=ceiling.value.subject,
                location=ceiling.value.location,
                evidence={**ceiling.evidence, "needed": enough},
            )


@register
class AnswerStarved(Rule):
    id = "BUD307"
    slug = "answer-starved"
    severity = "warning"
    what = (
        "A budget below the completion limit leaves fewer than 256 tokens for the answer (`--answer-reserve` "
        "sets the number)."
    )
    why = (
        "When the cutoff is reached the answer is cut short: finish_reason length, often in the middle of a "
        "sentence or of JSON."
    )
    example = '{"thinking_token_budget": 4000, "max_tokens": 4096}'
    instead = "Raise max_tokens, or lower the budget, until the answer has room."
    versions = "SlimServe since pull request #13; every vLLM with budgets"
    sources = (slimserve.SOURCE,)

    @classmethod
    def check(cls, facts: BudgetFacts) -> Iterator[Finding]:
        reserve = facts.answer_reserve
        for ceiling in _meeting(facts, lambda tokens, limit: 0 < tokens < limit <= tokens + reserve):
            starved = {limit: limit - ceiling.tokens - 1 for limit in ceiling.limits}
            told = ", ".join(f"{left} tokens at max_tokens {limit}" for limit, left in starved.items())
            enough = ceiling.tokens + 1 + reserve
            yield cls.finding(
                f"{ceiling.text} leaves the answer {told}",
                hint=f"max_tokens of {enough} or more keeps {reserve} tokens for the answer",
                confidence=ceiling.confidence,
                subject=ceiling.value.subject,
                location=ceiling.value.location,
                evidence={**ceiling.evidence, "left": list(starved.values())},
            )


@register
class NotMonotone(Rule):
    id = "BUD315"
    slug = "not-monotone"
    severity = "warning"
    what = "In a budget map a higher effort has a smaller budget than a lower one. -1 counts as the largest."
    why = "A client that asks for more effort gets less thinking, which nobody expects and no log shows."
    example = '{"low": 4096, "medium": 4096, "high": 2048}'
    instead = "Let budgets grow with the effort, or be equal."
    versions = "SlimServe since pull request #13"
    sources = (slimserve.SOURCE,)

    @classmethod
    def check(cls, facts: BudgetFacts) -> Iterator[Finding]:
        if not facts.server_budget_counts:
            return
        by_level = {value.key: value for value in facts.values if value.key in LEVELS and value.tokens is not None}
        levels = [by_level[level] for level in LEVELS if level in by_level]
        for lower, higher in pairwise(levels):
            if _size(lower) > _size(higher):
                yield cls.finding(
                    f"{higher.key} ({higher.tokens}) gets less than {lower.key} ({_named(lower)})",
                    hint=f"give {higher.key} at least what {lower.key} has",
                    subject=higher.subject,
                    location=higher.location,
                    evidence={"lower": {lower.key: lower.tokens}, "higher": {higher.key: higher.tokens}},
                )


def _size(value: BudgetValue) -> float:
    return math.inf if value.tokens == -1 or value.tokens is None else value.tokens


def _named(value: BudgetValue) -> str:
    return "-1, no cutoff" if value.tokens == -1 else str(value.tokens)


def _is_read(value: BudgetValue) -> bool:
    """Not where it is ignored or refused anyway: another rule says so."""
    return value.endpoint not in ("responses", "messages") and (value.key is None or value.key in LEVELS)


@register
class ZeroBudget(Rule):
    id = "BUD316"
    slug = "zero-budget"
    severity = "info"
    what = "A budget is 0."
    why = (
        "The end marker is forced as the first thinking token, whether the prompt opened the block or the "
        "model does. The model was told to think and is cut off, which is neither cheaper nor better than not"
        " asking it to think."
    )
    example = '{"thinking_token_budget": 0}'
    instead = 'Switch thinking off: `"reasoning_effort": "none"` or the template\'s own switch.'
    versions = "SlimServe since pull request #13; every vLLM with budgets"
    sources = (slimserve.SOURCE, "vllm/v1/sample/thinking_budget_state.py (0.33.0), measured")

    @classmethod
    def check(cls, facts: BudgetFacts) -> Iterator[Finding]:
        for same in alike(value for value in facts.values if value.tokens == 0 and _is_read(value)):
            yield cls.finding(
                f"{same.text}: a budget of 0 closes thinking at once",
                hint="switching thinking off (reasoning_effort none) is cheaper",
                subject=same.first.subject,
                location=same.first.location,
                evidence={"value": 0},
            )


@register
class Unlimited(Rule):
    id = "BUD317"
    slug = "unlimited"
    severity = "info"
    what = "A budget is -1."
    why = "There is no cutoff: only max_tokens ends the thinking, and then nothing is left for the answer."
    example = '{"medium": 4096, "max": -1}'
    instead = "Nothing, where that is meant; else write a number of tokens."
    versions = "SlimServe since pull request #13; the request field of vLLM since 0.23"
    sources = (slimserve.SOURCE, "vllm/sampling_params.py, validate_thinking_token_budget (0.33.0)")
    facts = ("budget-minus-one",)

    @classmethod
    def check(cls, facts: BudgetFacts) -> Iterator[Finding]:
        for same in alike(value for value in facts.values if value.tokens == -1 and _is_read(value)):
            yield cls.finding(
                f"{same.text}: -1 is no cutoff, only max_tokens bounds the run",
                hint="write a number of tokens where thinking shall be bounded",
                subject=same.first.subject,
                location=same.first.location,
                evidence={"value": -1},
            )
