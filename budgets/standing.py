"""What the server does with a request's budget: it grants it, refuses the request, or never reads it."""

from __future__ import annotations

from typing import Literal

from .. import versions
from ..parsers.target import Target
from ..serve.command import ServeCommand
from .request import MESSAGES_LEAST, Endpoint, Request
from .strings import Missing, Runner, strings_of

Standing = Literal["granted", "refused", "ignored"]


def standing(
    request: Request,
    tokens: int | None,
    *,
    command: ServeCommand | None,
    target: Target,
    runner: Runner | None = None,
) -> tuple[Standing, str | None]:
    """What becomes of a request that carries a budget, and why where it is refused.

    Args:
        request: the request.
        tokens: its budget, None where the server takes it for no budget at all.
        command: the serve command, where it is known.
        target: the server.
        runner: its model runner, where it is known; by default the one the command forces.
    """
    if request.endpoint == "responses" or request.beam_search:
        return "ignored", None
    if not reads_budget(request.endpoint, target):
        return "ignored", None
    if tokens is None:
        return "refused", "the budget is no integer, or below -1"
    if request.endpoint == "messages":
        if tokens < MESSAGES_LEAST:
            return "refused", f"budget_tokens is below {MESSAGES_LEAST}"
        if request.max_tokens is not None and tokens >= request.max_tokens:
            return "refused", "budget_tokens must be less than max_tokens"
    if tokens < 0 or target.product != "vllm" or command is None:  # -1 is no budget to the engine
        return "granted", None
    if runner_refuses(runner or command.runner, target):
        return "refused", "the V2 model runner of this version takes no budget"
    missing = missing_strings(command, target)
    return ("granted", None) if missing is None else ("refused", missing.text)


def takes_thinking(target: Target) -> bool:
    """Whether this server's /v1/messages looks at `thinking` at all."""
    return reads_budget("messages", target)


def missing_strings(command: ServeCommand, target: Target) -> Missing | None:
    """Why the engine refuses every budgeted request; None where it takes them, or where nobody can tell from here."""
    if command.product != "vllm":
        return None
    found = strings_of(command, target)
    return found if isinstance(found, Missing) else None


def reads_budget(endpoint: Endpoint, target: Target) -> bool:
    """Whether requests of this endpoint carry a budget in this release."""
    return target.product != "vllm" or versions.holds("fact", f"budget-{endpoint}", target.version)


def runner_refuses(runner: Runner | None, target: Target) -> bool:
    """Whether this runner of this release turns every budgeted request down."""
    return runner == "v2" and target.product == "vllm" and versions.fact("v2-refuses-budget", target.version)
