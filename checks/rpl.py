"""The RPL rules: what recorded traces show. Importing this registers all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import rpl_budget, rpl_recorded, rpl_splits, rpl_stream, rpl_upgrade
from .finding import Finding
from .replayed import ReplayFacts

RULES: tuple[type[Any], ...] = (
    *rpl_splits.RULES,
    *rpl_recorded.RULES,
    *rpl_budget.RULES,
    *rpl_stream.RULES,
    *rpl_upgrade.RULES,
)


def findings(facts: ReplayFacts) -> Iterator[Finding]:
    """What every RPL rule says of one trace."""
    for rule in RULES:
        yield from rule.check(facts)
