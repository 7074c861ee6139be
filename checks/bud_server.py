"""BUD310, BUD318, BUD319, BUD322, BUD324: does this server, at this endpoint, read the budget at all?"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import TypeVar

from .. import versions as releases
from ..budgets import slimserve
from ..budgets.facts import BudgetFacts, RequestFacts
from ..budgets.request import BUDGET_KEY, FIELD, MESSAGES_LEAST, Endpoint
from ..budgets.standing import reads_budget, runner_refuses
from .finding import Finding, Location
from .rule import Rule, register

K = TypeVar("K", bound=Hashable)


def grouped(facts: BudgetFacts, key: Callable[[RequestFacts], K | None]) -> Iterator[tuple[K, list[RequestFacts]]]:
    """Requests that share a fault, so that a file of ten thousand gives one finding. None means no fault."""
    groups: dict[K, list[RequestFacts]] = {}
    for request in facts.requests:
        found = key(request)
        if found is not None:
            groups.setdefault(found, []).append(request)
    yield from groups.items()


def who(requests: list[RequestFacts]) -> str:
    more = f" and {len(requests) - 1} more" if len(requests) > 1 else ""
    return f"request {requests[0].name}{more}"


@register
class ServerDefaultIgnored(Rule):
    id = "BUD310"
    slug = "server-default-ignored"
    severity = "error"
    what = (
        "The target is vLLM, and a budget, scalar or map, is set as a server default: in `--override-"
        "generation-config` or in a generation config."
    )
    why = (
        "vLLM copies a fixed list of keys out of a generation config, and `thinking_token_budget` is not in "
        "it. The server starts, says nothing, and every request thinks without a limit."
    )
    example = "vllm serve m --reasoning-parser qwen3 --override-generation-config '{\"thinking_token_budget\": 1024}'"
    instead = (
        "Send `thinking_token_budget` in every request (`extra_body` in OpenAI's Python client), from a "
        "gateway if need be. SlimServe reads the server default; for it say `--target slimserve`."
    )
    versions = "every vLLM up to 0.33.0"
    sources = (
        *(f"vllm/{row.source}" for row in releases.rows("fact", "budget-default-dropped")),
        "vllm #55382 asks for such a map",
    )
    facts = ("budget-default-dropped",)

    @classmethod
    def check(cls, facts: BudgetFacts) -> Iterator[Finding]:
        number_alone = facts.dialect == "anthropic" and facts.form == "scalar"
        stock = facts.dialect == "vllm" or (facts.target.product == "vllm" and not number_alone)
        if facts.written_by is not None and stock:
            kind = "map" if facts.map_keys is not None else "number"
            yield cls.finding(
                f"vLLM drops a server-side {BUDGET_KEY} in silence ({kind}): every request is unlimited",
                hint=f"send {BUDGET_KEY} in each request; for SlimServe, which reads it, say --target slimserve",
                subject={"key": BUDGET_KEY},
                location=facts.written_by,
                evidence={"where": facts.where, "value": facts.written},
            )


@register
class FieldInTheWrongPlace(Rule):
    id = "BUD318"
    slug = "field-in-the-wrong-place"
    severity = "error"
    what = (
        "`thinking_token_budget` stands inside `extra_body`, `extra_args`, `chat_template_kwargs` or another "
        "part of the request where no server looks for it, or under a flag that hands it to the template."
    )
    why = (
        "The request is accepted and the budget ignored. `extra_body` is an argument of OpenAI's Python "
        "client, which unpacks it; in a request's body it is an unknown key. The template has no use for the "
        "number either."
    )
    example = '{"messages": [], "extra_body": {"thinking_token_budget": 512}}'
    instead = "Put `thinking_token_budget` at the top level of the body."
    versions = "every vLLM with budgets, and SlimServe"
    sources = (
        "vllm/entrypoints/openai/chat_completion/protocol.py, thinking_token_budget (0.33.0)",
        "discuss.vllm.ai topic 2533 (extra_args)",
    )

    @classmethod
    def check(cls, facts: BudgetFacts) -> Iterator[Finding]:
        for path, place in facts.misplaced:
            yield cls._at(path, place, None, 1, "a server has no such setting there")
        shared: dict[tuple[str, ...], list[tuple[RequestFacts, Location]]] = {}
        for request in facts.requests:
            for path, place in request.misplaced:
                shared.setdefault(path, []).append((request, place))
        for path, found in shared.items():
            request, place = found[0]
            yield cls._at(path, place, request, len(found), "accepted, and never read")

    @classmethod
    def _at(
        cls, path: tuple[str, ...], place: Location, request: RequestFacts | None, count: int, effect: str
    ) -> Finding:
        shown = ".".join(path)
        messages = request is not None and request.endpoint == "messages"
        where = "thinking.budget_tokens" if messages else f"{BUDGET_KEY} at the top level of the body"
        return cls.finding(
            f"{shown}: {effect}",
            hint=f"use {where}",
            subject={"key": shown} | ({"request": request.name} if request is not None else {}),
            location=place,
            evidence={"path": list(path)} | ({"requests": count} if count > 1 else {}),
        )


@register
class EndpointIgnoresBudget(Rule):
    id = "BUD319"
    slug = "endpoint-ignores-budget"
    severity = "error"
    what = (
        "A budget is sent where it has no effect or is refused: to the Responses API (no such field), with "
        "beam search, or as Anthropic's `thinking.budget_tokens` below 1024 or not below `max_tokens`; or Anthropic's "
        "`thinking` has no valid type, or is enabled without `budget_tokens`."
    )
    why = (
        "Responses and beam search accept the request and think without a limit. /v1/messages answers "
        "`thinking.budget_tokens must be less than max_tokens`, or that 1024 is the least, with HTTP 400."
    )
    example = '{"messages": [], "max_tokens": 4096, "thinking": {"type": "enabled", "budget_tokens": 8192}}'
    instead = (
        "Use /v1/chat/completions with `thinking_token_budget`, or a `budget_tokens` between 1024 and max_tokens - 1."
    )
    versions = "vLLM up to 0.33.0; /v1/messages with budgets since 0.31"
    sources = (
        "vllm/entrypoints/openai/responses/protocol.py (0.33.0): no such field",
        "vllm/entrypoints/anthropic/protocol.py, validate_thinking_budget (0.33.0)",
        "vllm/entrypoints/openai/chat_completion/protocol.py, to_beam_search_params (0.33.0)",
    )
    facts = ("budget-messages",)

    @classmethod
    def check(cls, facts: BudgetFacts) -> Iterator[Finding]:
        for problem, requests in grouped(facts, lambda request: _endpoint_problem(request, facts)):
            first = requests[0]
            assert first.value is not None  # noqa: S101  (a request without a budget has no problem)
            message, hint = problem
            yield cls.finding(
                f"{who(requests)}: {message}",
                hint=hint,
                subject=first.value.subject,
                location=first.value.location,
                evidence={
                    "endpoint": first.endpoint,
                    "budget": first.value.value,
                    "max_tokens": first.max_tokens,
                    "requests": len(requests),
                },
            )
        for text, requests in grouped(facts, lambda r: r.broken_thinking.text if r.broken_thinking else None):
            broken = requests[0].broken_thinking
            assert broken is not None  # noqa: S101  (grouped by it)
            yield cls.finding(
                f"{who(requests)}: /v1/messages refuses it: {text}",
                hint=broken.mend,
                subject={"request": requests[0].name},
                location=broken.location,
                evidence={"endpoint": "messages", "requests": len(requests)},
            )
        if facts.dialect == "anthropic":
            yield from cls._number_alone(facts)

    @classmethod
    def _number_alone(cls, facts: BudgetFacts) -> Iterator[Finding]:
        """A bare number, judged as the `budget_tokens` of a request with the limits that were named."""
        assumed = facts.limits_from == "default"
        for value in facts.values:
            if value.request is None and value.tokens is not None:
                for limit in (None, *facts.limits):
                    problem = _messages_problem(value.tokens, limit)
                    if problem is not None:
                        yield cls.finding(
                            f"{value.tokens}: {problem[0]}",
                            hint=problem[1],
                            severity="warning" if assumed and limit is not None else None,
                            confidence="medium" if assumed and limit is not None else "high",
                            subject=value.subject,
                            location=value.location,
                            evidence={"endpoint": "messages", "budget": value.tokens, "max_tokens": limit},
                        )
                        break


def _endpoint_problem(request: RequestFacts, facts: BudgetFacts) -> tuple[str, str] | None:
    """What is wrong with sending this budget to this endpoint, and the mend."""
    value = request.value
    if value is None or request.broken_thinking is not None:
        return None
    if request.endpoint == "responses":
        return "the Responses API has no budget: thinking is unlimited", f"use /v1/chat/completions with {BUDGET_KEY}"
    if request.beam_search:
        return "beam search ignores the budget", "take use_beam_search out"
    if request.endpoint == "messages" and value.tokens is not None:
        limit = request.max_tokens
        if limit is None and facts.limits_from == "--max-tokens":
            limit = min(facts.limits)
        return _messages_problem(value.tokens, limit)
    return None


def _messages_problem(tokens: int, limit: int | None) -> tuple[str, str] | None:
    if tokens < MESSAGES_LEAST:
        return (
            f"/v1/messages refuses a budget_tokens of {tokens}, below {MESSAGES_LEAST}",
            f"use {MESSAGES_LEAST} or more",
        )
    if limit is not None and tokens >= limit:
        refused = f"/v1/messages refuses it: thinking.budget_tokens must be less than max_tokens ({limit})"
        return refused, f"raise max_tokens above {tokens}, or lower the budget"
    return None


@register
class VersionCannot(Rule):
    id = "BUD322"
    slug = "version-cannot"
    severity = "error"
    what = (
        "The target vLLM has no budget at this endpoint yet, or its V2 model runner, chosen by the environment or by "
        "default for this model, refuses one (0.22 to 0.27)."
    )
    why = (
        "Before the field exists it is one of the unknown keys vLLM accepts and ignores. On the V2 runner of "
        "0.23 to 0.27 every budgeted request fails: thinking_token_budget is not yet supported by the V2 "
        "model runner. 0.22 does not start with VLLM_USE_V2_MODEL_RUNNER=1 beside a reasoning parser. From 0.25 on "
        "the V2 runner is the default of every dense model, so that nobody has to have chosen it."
    )
    example = "VLLM_USE_V2_MODEL_RUNNER=1 vllm serve m --reasoning-parser qwen3      # vLLM 0.25, request with a budget"
    instead = "Upgrade, or set VLLM_USE_V2_MODEL_RUNNER=0 for the releases before 0.28."
    versions = "chat before 0.19, completions before 0.22, /v1/messages before 0.31; V2 runner 0.22 to 0.27"
    sources = (
        *(
            f"{name}: vllm/{row.source}"
            for name in ("budget-chat", "budget-completions", "budget-messages")
            for row in releases.rows("fact", name)
        ),
        "vllm/config/vllm.py, use_v2_model_runner (0.22 to 0.28)",
        "vllm #43808, #46727, #50473 (V2 runner)",
    )
    facts = (
        "budget-chat",
        "budget-completions",
        "budget-messages",
        "v2-refuses-budget",
        "v2-yields-to-budget",
        "v2-default",
        "v2-default-dense",
    )

    @classmethod
    def check(cls, facts: BudgetFacts) -> Iterator[Finding]:
        if facts.target.product != "vllm":
            return
        for problem, requests in grouped(facts, lambda request: _version_problem(request, facts)):
            first = requests[0]
            assert first.value is not None  # noqa: S101  (a request without a budget has no problem)
            message, hint = problem
            yield cls.finding(
                f"{who(requests)}: {message}",
                hint=hint,
                confidence="medium",
                subject=first.value.subject,
                location=first.value.location,
                evidence={
                    "target": str(facts.target),
                    "endpoint": first.endpoint,
                    "requests": len(requests),
                    "runner": facts.runner,
                },
            )


def _version_problem(request: RequestFacts, facts: BudgetFacts) -> tuple[str, str] | None:
    if request.value is None or request.endpoint == "responses" or request.beam_search:
        return None
    if not reads_budget(request.endpoint, facts.target):
        field = FIELD[request.endpoint]
        message = f"vLLM {facts.target.version_text} knows no {field} at this endpoint and ignores it"
        return message, f"it is there from vLLM {_since(request.endpoint)} on"
    if facts.command is not None and runner_refuses(facts.runner, facts.target):
        text = facts.target.version_text
        forced = facts.command.runner == "v2"
        which = "the V2 model runner" if forced else "the V2 model runner, this model's default,"
        message = f"{which} of vLLM {text} refuses every request with a budget"
        if forced and releases.fact("v2-yields-to-budget", facts.target.version):
            message = f"vLLM {text} does not start with VLLM_USE_V2_MODEL_RUNNER=1 beside a reasoning parser"
        return message, "set VLLM_USE_V2_MODEL_RUNNER=0, or use vLLM 0.28 or later"
    return None


def _since(endpoint: Endpoint) -> str:
    return releases.shown(releases.rows("fact", f"budget-{endpoint}")[0].since)


@register
class NullDiffers(Rule):
    id = "BUD324"
    slug = "null-differs"
    severity = "warning"
    what = "A request sends an explicit null as its budget to a SlimServe."
    why = (
        "In the documented generation null is the same as leaving the key out: the server's default applies. "
        "In a later one it means unlimited and beats the default. One request, two behaviours, no error."
    )
    example = '{"messages": [], "reasoning_effort": "low", "thinking_token_budget": null}'
    instead = "Leave the key out to inherit the default, or send -1 for no cutoff."
    versions = (
        "SlimServe: pull request #13 and its documentation against main of September 2026. vLLM: null is always unset"
    )
    sources = (slimserve.SOURCE, slimserve.LATER)

    @classmethod
    def check(cls, facts: BudgetFacts) -> Iterator[Finding]:
        if facts.dialect != "slimserve":
            return
        for _, requests in grouped(facts, lambda request: request.endpoint if request.null is not None else None):
            first = requests[0]
            assert first.null is not None  # noqa: S101  (grouped by it)
            yield cls.finding(
                f"{who(requests)}: null inherits the server's default here, and means unlimited in later generations",
                hint="leave the key out to inherit, or send -1 for no cutoff",
                confidence="medium",
                subject=first.null.subject,
                location=first.null.location,
                evidence={"requests": len(requests)},
            )
