"""What a trace's request was granted to think, and why a budget that was asked for did not hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..budgets.dialects import FALLBACK
from ..budgets.json_text import read_json
from ..budgets.request import BUDGET_KEY, Endpoint, Request, endpoint_of
from ..budgets.resolve import ServerBudget, resolve
from ..budgets.standing import missing_strings, standing
from ..budgets.strings import STRUCTURED
from ..traces.thinking import Block
from .finding import Location
from .replayed import ReplayFacts

Asker = Literal["request", "server"]
_HELD_BYTES = 3
"""SlimServe closes a thought only behind a whole character; a character is at most four tokens of bytes."""
_NO_LIMIT = 1 << 40
_ENDPOINTS: Mapping[str, Endpoint] = {"responses": "responses", "anthropic": "messages", "completions": "completions"}


@dataclass(frozen=True, slots=True)
class Budget:
    """A budget somebody asked for, in tokens (-1: unlimited), and what becomes of it.

    `cutoff` is what the server enforces on a block of thinking, None where it enforces nothing; then `rule` and `why`
    say what keeps it from doing so. `limit` is the completion limit, None where it is not known.
    """

    asked: int
    by: Asker
    cutoff: int | None
    limit: int | None
    rule: str | None = None
    why: str | None = None


def budget_of(facts: ReplayFacts) -> Budget | None:
    """The budget of a trace's request, else the server's default; None where nobody asked for one."""
    request = _request(facts)
    limit = completion_limit(facts)
    default = _server_default(facts)
    own, misplaced = _own(request)
    if own is None and misplaced is None and default is None:
        return None
    if facts.target.product == "slimserve":
        row = resolve("slimserve", default, effort=_effort(request), request_budget=own, max_tokens=limit or _NO_LIMIT)
        if row.selected is None:
            return _unread(misplaced, limit) if misplaced is not None else None
        return Budget(row.selected, "request" if row.source == "request" else "server", row.cutoff, limit)
    if own is not None:
        return _granted(facts, request, own, limit)
    if misplaced is not None:
        return _unread(misplaced, limit)
    asked = default if isinstance(default, int) else (default or {}).get(_effort(request) or FALLBACK)
    asked = asked if isinstance(asked, int) else (default or {}).get(FALLBACK) if isinstance(default, Mapping) else None
    if not isinstance(asked, int):
        return None
    why = f"vLLM drops {BUDGET_KEY} from a generation config, so the server's default of {asked} is not read"
    return Budget(asked, "server", None, limit, "BUD310", why)


def allowed(facts: ReplayFacts, budget: Budget, block: Block) -> int:
    """Thinking tokens that the server lets through in a block, were the budget enforced.

    Sources: vLLM 0.33.0, v1/worker/gpu/sample/thinking_budget.py (the prompt's tokens behind its start marker are
    charged) and v1/sample/thinking_budget_state.py (a marker of several tokens in the prompt counts late); SlimServe
    docs/reasoning-token-budgets.md (generated tokens only, and whole characters).
    """
    thought = facts.trace.thought
    tokens = budget.asked if budget.cutoff is None else budget.cutoff
    closing = thought.closing if thought is not None and block.ended else 0
    if facts.target.product == "slimserve":
        return tokens + closing + _HELD_BYTES
    charged = (thought.charged or 0) if thought is not None and block.opened == "prompt" else 0
    return max(0, tokens - charged) + closing


def completion_limit(facts: ReplayFacts) -> int | None:
    """Tokens the answer and its thinking may have together: the request's limit, else where the run was cut."""
    for key in ("max_completion_tokens", "max_tokens", "max_output_tokens"):
        value = facts.trace.request.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    recorded = facts.trace.recorded
    usage = recorded.usage.get("completion_tokens") if recorded is not None else None
    return usage if facts.trace.finish_reason == "length" and isinstance(usage, int) else None


def _granted(facts: ReplayFacts, request: Request, asked: int, limit: int | None) -> Budget:
    verdict, why = standing(request, asked, command=facts.command, target=facts.target)
    if verdict == "granted":
        cutoff = asked if asked >= 0 else None
        return Budget(asked, "request", cutoff, limit, None if asked >= 0 else "BUD317", None)
    if verdict == "ignored":
        endless = request.endpoint == "responses" or request.beam_search
        rule = "BUD319" if endless else "BUD322"
        said = "the Responses API has no such field" if rule == "BUD319" else f"{facts.target} has no budgets"
        return Budget(asked, "request", None, limit, rule, said)
    missing = missing_strings(facts.command, facts.target) if facts.command is not None else None
    rule = "BUD322" if "runner" in str(why) else "BUD319" if request.endpoint == "messages" else "BUD312"
    if missing is not None and why == missing.text:
        rule = "SRV206" if f"--{STRUCTURED}" in missing.text else "BUD312"
    return Budget(asked, "request", None, limit, rule, f"as given, the server refuses the request: {why}")


def _unread(misplaced: tuple[str, int], limit: int | None) -> Budget:
    where, asked = misplaced
    return Budget(asked, "request", None, limit, "BUD318", f"{where} is a place where no server looks for a budget")


def _request(facts: ReplayFacts) -> Request:
    place = Location(facts.trace.path, facts.trace.line)
    body = read_json(json.dumps(dict(facts.trace.request), default=str), lambda _: place)
    return Request(facts.trace.id, _ENDPOINTS.get(facts.trace.api) or endpoint_of(body, None), body)


def _own(request: Request) -> tuple[int | None, tuple[str, int] | None]:
    """The budget where this endpoint looks for it, and one where no server does, with the keys that lead to it."""
    entry = request.budget
    value = entry.value.plain() if entry is not None else None
    own = value if _is_budget(value) else None
    for path, found in request.misplaced():
        value = found.value.plain()
        if _is_budget(value):
            return own, (".".join(path), value)
    return own, None


def _is_budget(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= -1


def _effort(request: Request) -> str | None:
    return request.effort


def _server_default(facts: ReplayFacts) -> ServerBudget:
    given = (facts.command.override_generation_config or {}).get(BUDGET_KEY) if facts.command is not None else None
    if isinstance(given, Mapping):
        levels = {key: value for key, value in given.items() if _is_budget(value)}
        return levels if FALLBACK in levels else None
    return given if _is_budget(given) else None
