"""What is really sent: requests as an audit weighs them, the same ones counted once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..budgets.document import Entry, Node
from ..budgets.request import Request
from .facts import SentRequest
from .finding import Location

_STRUCTURED = ("structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar")
"""Fields besides `response_format` that constrain an output (guided_* up to vLLM 0.11)."""
_FREE_FORMATS = (None, "text")


def sent_requests(requests: Iterable[Request]) -> tuple[SentRequest, ...]:
    """The requests, those alike in everything an audit looks at joined with their count.

    Raises:
        InputError: a value is of a type that the server refuses.
    """
    found: dict[str, SentRequest] = {}
    for request in requests:
        one = _sent(request)
        key = json.dumps(_alike(one), sort_keys=True, default=repr)
        known = found.get(key)
        found[key] = one if known is None else replace(known, count=known.count + 1)
    return tuple(found.values())


def variant_of(request: SentRequest) -> dict[str, Any]:
    """The variant that such a request is: its kwargs, and its effort as the request field."""
    effort = {"reasoning_effort": request.effort} if request.effort is not None else {}
    return {**request.kwargs, **effort}


def _sent(request: Request) -> SentRequest:
    body = request.body
    structured = _structured(body, request.endpoint)
    include = body.get("include_reasoning")
    tools = body.get("tools")
    offered = tools is not None and bool(tools.value.items) and _choice(body) != "none"
    history = tuple(sorted(_history(body)))
    budget = request.budget
    return SentRequest(
        name=request.name,
        location=request.location,
        endpoint=request.endpoint,
        kwargs=_kwargs(body),
        effort=request.effort,
        structured_at=structured[1] if structured is not None else None,
        structured_by=structured[0] if structured is not None else None,
        include_reasoning=include is None or include.value.scalar is not False,
        tools=offered,
        conversation=_conversation(body, offered, bool(history)),
        budget=budget.value.plain() if budget is not None else None,
        max_tokens=request.max_tokens,
        history=history,
    )


def _kwargs(body: Node) -> Mapping[str, Any]:
    entry = body.get("chat_template_kwargs")
    return dict(entry.value.plain()) if entry is not None and entry.value.entries is not None else {}


def _choice(body: Node) -> Any:
    entry = body.get("tool_choice")
    return entry.value.scalar if entry is not None else None


def _structured(body: Node, endpoint: str) -> tuple[str, Location] | None:
    """The name and place of what constrains this request's output."""
    if endpoint == "responses":
        text = body.get("text")
        entry = text.value.get("format") if text is not None else None
        return _format("text.format", entry)
    found = _format("response_format", body.get("response_format"))
    if found is not None:
        return found
    for name in _STRUCTURED:
        entry = body.get(name)
        if entry is not None and not (entry.value.is_scalar and entry.value.scalar is None):
            return name, entry.location
    return None


def _format(name: str, entry: Entry | None) -> tuple[str, Location] | None:
    if entry is None:
        return None
    kind = entry.value.get("type") if entry.value.entries is not None else None
    said = kind.value.scalar if kind is not None else entry.value.scalar
    return None if said in _FREE_FORMATS else (f"{name} {said}" if isinstance(said, str) else name, entry.location)


def _history(body: Node) -> set[str]:
    messages = body.get("messages")
    return {
        field
        for message in (messages.value.items or () if messages is not None else ())
        for field in ("reasoning", "reasoning_content")
        if (entry := message.get(field)) is not None and entry.value.scalar
    }


def _conversation(body: Node, tools: bool, thought_before: bool) -> str:
    """Which surveyed conversation it is like: earlier turns count where they hand a thought back, as those there do."""
    if thought_before:
        messages = body.get("messages")
        last = messages.value.items[-1].get("role") if messages is not None and messages.value.items else None
        return "tool_result" if last is not None and last.value.scalar == "tool" else "multi_turn"
    return "tools" if tools else "single_turn"


def _alike(request: SentRequest) -> list[Any]:
    return [
        request.endpoint,
        dict(request.kwargs),
        request.effort,
        request.structured_by,
        request.include_reasoning,
        request.tools,
        request.conversation,
        request.budget,
        request.max_tokens,
        list(request.history),
    ]
