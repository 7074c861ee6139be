"""BUD: thinking budgets. The rules are told apart by what they look at; this is the family as one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..budgets.document import strict
from ..budgets.facts import BudgetFacts
from .bud_ceiling import AnswerStarved, BudgetReachesCeiling, NotMonotone, Unlimited, ZeroBudget
from .bud_count import BudgetNeverFires, CutInsideToolCall, PerBlock, UserMarkerSpendsBudget
from .bud_engine import BudgetRefused, PromptTokensCharged
from .bud_model import EffortNotInTemplate, FallbackDisagrees, MarkerNotSingleToken
from .bud_phrase import EndPhraseOrder, SpeculativeDecoding
from .bud_server import (
    EndpointIgnoresBudget,
    FieldInTheWrongPlace,
    NullDiffers,
    ServerDefaultIgnored,
    VersionCannot,
)
from .bud_values import BelowMinusOne, DuplicateKey, MediumMissing, NoneIsNoLevel, NotAnInteger, UnknownEffort
from .finding import Finding

RULES = (
    UnknownEffort,
    NoneIsNoLevel,
    MediumMissing,
    NotAnInteger,
    BelowMinusOne,
    BudgetReachesCeiling,
    AnswerStarved,
    EffortNotInTemplate,
    FallbackDisagrees,
    ServerDefaultIgnored,
    MarkerNotSingleToken,
    BudgetRefused,
    BudgetNeverFires,
    PromptTokensCharged,
    NotMonotone,
    ZeroBudget,
    Unlimited,
    FieldInTheWrongPlace,
    EndpointIgnoresBudget,
    EndPhraseOrder,
    CutInsideToolCall,
    VersionCannot,
    DuplicateKey,
    NullDiffers,
    PerBlock,
    UserMarkerSpendsBudget,
    SpeculativeDecoding,
)


def check_budget(facts: BudgetFacts) -> Iterator[Finding]:
    """Every finding about one configuration."""
    for rule in RULES:
        for found in rule.check(facts):
            yield replace(found, evidence=strict(found.evidence))
