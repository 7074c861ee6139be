"""The battery as the JSON report of `check-parser` has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .battery import Battery
from .cases import Outcome
from .compare import compare
from .generated import Generated
from .invariants import INVARIANTS


def battery_json(battery: Battery | None) -> dict[str, Any]:
    """`cases`, `generated` and `cost` of a report; empty where nothing ran."""
    if battery is None:
        return {"cases": [], "generated": {"examples": 0, "invariants": {}}, "cost": None}
    cost = battery.cost
    return {
        "cases": [_case(one) for one in battery.outcomes],
        "generated": _generated(battery),
        "cost": None if cost is None else {"tokens": cost.tokens, "grows": battery.grows},
    }


def comparisons(batteries: Sequence[Battery], names: Sequence[str]) -> dict[str, Any] | None:
    """Each further vLLM against the first: of two the comparison, of more `others`."""
    if len(batteries) < 2:
        return None
    told = [f"vLLM {each.version} ({name})" for each, name in zip(batteries, names, strict=True)]
    pairs = [
        compare(batteries[0], other, (told[0], called)).as_json()
        for other, called in zip(batteries[1:], told[1:], strict=True)
    ]
    return pairs[0] if len(pairs) == 1 else {"base": told[0], "others": pairs}


def _case(one: Outcome) -> dict[str, Any]:
    case = one.case
    row: dict[str, Any] = {
        "name": case.name,
        "mode": case.mode,
        "chunking": case.chunking,
        "aspect": case.aspect,
        "conversation": case.cell.conversation,
        "variant": dict(case.cell.variant),
        "prompt_state": case.cell.state,
        "weighs": case.weighs,
        "ok": None if one.lost is not None else one.ok,
        "output": case.probe.text,
        "expected": case.expected,
        "got": one.got,
    }
    if one.wrong is not None:
        row["wrong"] = one.wrong
    if one.lost is not None:
        row["lost"] = one.lost
    return row


def _generated(battery: Battery) -> dict[str, Any]:
    found = battery.generated
    invariants = {each.name: _invariant(found, each.name) for each in INVARIANTS if battery.asked or each.of_split}
    apart = invariants.get("instances-do-not-touch")
    if apart is not None and apart["ok"] and battery.shared:
        # Each request was spoilt alike, alone and beside another: that they give one split shows nothing.
        apart |= {"ok": None, "shared": [name for name, _, _ in battery.shared]}
    return {"examples": found.examples, "well_formed": found.tame, "invariants": invariants}


def _invariant(found: Generated, name: str) -> dict[str, Any]:
    broken = found.failing.get(name, 0)
    row: dict[str, Any] = {"ok": not broken if found.examples else None, "broken": broken}
    smallest = found.smallest.get(name)
    if smallest is not None:
        row["smallest"] = {"output": smallest.example.probe.text, "chunking": smallest.found.chunking}
        row["smallest"] |= {"wrong": smallest.found.wrong, "prompt_state": smallest.example.question.cell.state}
    return row
