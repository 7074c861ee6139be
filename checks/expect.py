"""INT902: what an `[[audit]]` table expects of a model, held against what the audit saw."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .finding import Finding, Location
from .internal import ExpectationBroken

STATES = ("open", "closed", "closed-bare", "none", "error")


@dataclass(frozen=True, slots=True)
class ExpectedState:
    """The state that a plain conversation with these chat-template kwargs ends in, and where that is said."""

    variant: Mapping[str, Any]
    state: str
    place: Location


@dataclass(frozen=True, slots=True)
class Expect:
    """`expect` of an `[[audit]]` table: the parser that must fit (None: not said), its place, and the states."""

    parser: str | None = None
    parser_at: Location | None = None
    states: tuple[ExpectedState, ...] = field(default=())

    @property
    def unusual(self) -> tuple[Mapping[str, Any], ...]:
        """The variants that an audit renders only where somebody asks for them."""
        return tuple(one.variant for one in self.states if one.variant and not one.variant.keys() <= _ALWAYS)


_ALWAYS = {"enable_thinking", "thinking", "reasoning_effort"}


def broken(expect: Expect, facts: Mapping[str, Any], about: Mapping[str, Any]) -> Iterator[Finding]:
    """A finding for each expectation that the audit does not bear out.

    Args:
        expect: what was written down.
        facts: the facts of one model or server, as `audit` reports them.
        about: the subject of the findings: the model, and the server where there is one.
    """
    yield from _parser(expect, facts["parser"], about)
    for one in expect.states:
        seen = _state(facts["prompt_states"], one.variant)
        if seen != one.state:
            yield _finding(
                f"{_named(one.variant)} is expected to leave the prompt {one.state}, and "
                + (f"leaves it {seen}" if seen is not None else "could not be rendered"),
                {**about, "variant": dict(one.variant), "key": "expect.states"},
                one.place,
                expected=one.state,
                seen=seen,
            )


def _parser(expect: Expect, parser: Mapping[str, Any], about: Mapping[str, Any]) -> Iterator[Finding]:
    if expect.parser is None:
        return
    configured, recommended = parser["configured"], parser["recommended"]
    fit = next((row["fit"] for row in parser["candidates"] if row["name"] == expect.parser), None)
    if configured not in (None, "auto", expect.parser):
        said = f"{configured} is configured"
    elif fit == "pass":
        return
    else:
        why = {"fail": "fails probes", "unsupported": "cannot be built for its tokenizer"}.get(
            str(fit), "could not be tried"
        )
        said = f"it {why}" + (f"; {recommended} passes" if recommended else "")
    yield _finding(
        f"the parser is expected to be {expect.parser}, and {said}",
        {**about, "parser": expect.parser, "key": "expect.parser"},
        expect.parser_at,
        expected=expect.parser,
        seen=configured if configured not in (None, "auto") else recommended,
    )


def _state(rows: list[dict[str, Any]], variant: Mapping[str, Any]) -> str | None:
    """The state of a plain conversation; an effort that changes nothing leaves it as without one."""
    states = {
        json.dumps(row["variant"], sort_keys=True): row["state"] for row in rows if row["conversation"] == "single_turn"
    }
    found = states.get(json.dumps(dict(variant), sort_keys=True))
    if found is None and variant.keys() <= _ALWAYS:
        found = states.get("{}")
    return str(found) if found is not None else None


def _named(variant: Mapping[str, Any]) -> str:
    return json.dumps(dict(variant), ensure_ascii=False) if variant else "a plain request"


def _finding(message: str, subject: Mapping[str, Any], place: Location | None, **evidence: Any) -> Finding:
    return ExpectationBroken.finding(
        message,
        hint="see what changed (template, model revision, serve command); then mend that, or `expect`",
        subject=subject,
        location=place,
        evidence=evidence,
    )
