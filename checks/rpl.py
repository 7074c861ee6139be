"""The RPL rules: what recorded traces show. Importing this registers all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
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
    """What every RPL rule says of one trace; of one among several recorded requests, also which one it is."""
    entry = facts.trace.entry
    for rule in RULES:
        for finding in rule.check(facts):
            yield finding if entry is None else replace(finding, message=f"{finding.message} ({entry})")
