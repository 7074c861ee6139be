"""What to change so that a failing trace splits right; every mend that is named was replayed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from ..traces.replay import Result
from ..traces.splits import NO_PARSER
from ..traces.whatif import WhatIf
from .replayed import ReplayFacts, outcome

Side = Literal["server", "client"]


@dataclass(frozen=True, slots=True)
class Mend:
    """One change. `outcome` is what its replay showed."""

    side: Side
    change: str
    outcome: str

    def as_json(self) -> dict[str, Any]:
        return {"side": self.side, "change": self.change, "replayed": self.outcome}


def mends(facts: ReplayFacts, result: Result) -> tuple[Mend, ...]:
    """The mends of a failing result, the least intrusive first: a flag or field, then another parser or version."""
    if not facts.given:
        return ()
    found = list(dict.fromkeys((*_changes(facts, result), *_parsers(facts, result))))
    return tuple(sorted(found, key=lambda mend: mend.side != "server"))


def _changes(facts: ReplayFacts, result: Result) -> Iterator[Mend]:
    tried = facts.trace.what_ifs.get(result.parser, ())
    if not result.failing:
        return
    switched = False
    for one in tried:
        if not one.sound or one.same_prompt is False:
            continue
        outcome = "splits right" if one.right else "splits right but in larger deltas"
        outcome += "" if one.same_prompt is True else ", if the template leaves the prompt as it is"
        if one.kind == "kwargs" and not switched:
            switched = True
            yield from (Mend(side, _kwargs(side, one), outcome) for side in one.sides)
        elif one.kind == "no-effort":
            yield Mend("client", "send no reasoning_effort", outcome)
        elif one.kind == "specials":
            yield Mend("client", 'extra_body={"skip_special_tokens": false}', outcome)
        elif one.kind == "version":
            yield Mend("server", f"upgrade to {one.change['target']}", outcome)
        elif one.kind == "history":
            yield Mend("client", "send earlier answers without their reasoning", outcome)
        elif one.kind == "user-markers":
            yield Mend("client", "spell markers in users' words otherwise", outcome)


def _kwargs(side: Side, one: WhatIf) -> str:
    change = json.dumps(dict(one.change), ensure_ascii=False)
    if side == "server":
        return f"--default-chat-template-kwargs '{change}'"
    return f'extra_body={{"chat_template_kwargs": {change}}}'


def _parsers(facts: ReplayFacts, result: Result) -> Iterator[Mend]:
    others = [name for name in facts.passing if name not in (result.parser, NO_PARSER)]
    if result.failing and others:
        yield Mend("server", f"--reasoning-parser {others[0]}", outcome(facts))
