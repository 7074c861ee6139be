"""Prompts that a running vLLM made for an audit: what served them, what it cost, and where ours are others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..prompts.asked import Served
from ..prompts.survey import Survey
from .evidence import request_json
from .facts import AuditFacts, ServerFacts
from .finding import Finding
from .internal import ResultLost

_SHOWN = 20


def served(server: ServerFacts | None) -> Served:
    """What of the serve command prompts depend on."""
    if server is None:
        return Served()
    return Served(server.default_kwargs, server.effort_map).with_flags(server.command)


def not_as_ours(rendered: Survey) -> str | None:
    """What of a running vLLM's prompts is not as we render it, or why it made none, in one sentence; else None."""
    if rendered.not_made is not None:
        return f"{rendered.not_made}; the prompts are our own"
    differing = [state for state in rendered.states if state.differs is not None]
    first = differing[0].differs if differing else None
    if first is None:
        return None
    return (
        f"{len(differing)} of {len(rendered.states)} prompts of {rendered.made_by} differ from ours; first"
        f" {differing[0].conversation}, {first.said}"
    )


def prompts_json(rendered: Survey) -> dict[str, Any]:
    """`prompts` of the report's model, where a running vLLM was asked: who made them, and the first that differ."""
    if rendered.made_by is None and rendered.not_made is None:
        return {}
    differing = [state for state in rendered.states if state.differs is not None]
    shown = [
        {"conversation": state.conversation, "variant": dict(state.variant), **state.differs.as_json()}
        for state in differing[:_SHOWN]
        if state.differs is not None
    ]
    made = {"made_by": rendered.made_by, "not_made": rendered.not_made, "differing": len(differing), "shown": shown}
    return {"prompts": made}


def lost_prompts(facts: AuditFacts) -> Iterable[Finding]:
    """One finding for the prompts that cost a running vLLM its process."""
    rendered = facts.survey
    if rendered is None or rendered.made_by is None:
        return
    lost = [state for state in rendered.states if (state.error or "").startswith(f"{rendered.made_by}: ")]
    if lost:
        first, more = lost[0], len(lost) - 1
        yield ResultLost.finding(
            f"{first.error}, over the prompt of {first.conversation}" + (f", and of {more} more" if more else ""),
            hint="the other results stand; prompt code that hangs or exits takes a served request down the same way",
            subject=facts.subject(conversation=first.conversation, variant=dict(first.variant)),
            location=facts.template_at,
            evidence={"request": request_json(first.variant)},
        )
