"""BUD312, BUD314: does the engine take a budget that reached it, and how much of it is spent by the prompt?"""

from __future__ import annotations

from collections.abc import Iterator

from ..budgets.facts import BudgetFacts, RequestFacts
from ..budgets.request import BUDGET_KEY
from ..budgets.standing import missing_strings
from ..budgets.strings import without_strings
from ..parsers.target import Target
from .bud_server import grouped, who
from .finding import Finding
from .rule import Rule, register


@register
class BudgetRefused(Rule):
    id = "BUD312"
    slug = "budget-refused"
    severity = "error"
    what = (
        "A request carries a budget, and the serve command gives the engine no start and end strings to count "
        "between: no `--reasoning-parser` and no `--reasoning-config` with both strings, a parser that names none, "
        "or a parser set in `--structured-outputs-config` alone."
    )
    why = (
        "The server starts and answers everything else; every request with a budget is an HTTP 400: "
        "thinking_token_budget is set but reasoning_config is not configured."
    )
    example = 'vllm serve m      # and a request with "thinking_token_budget": 256'
    instead = (
        "Set `--reasoning-parser`. With a parser that names no strings ("
        + ", ".join(without_strings(Target()))
        + ") give both by "
        '`--reasoning-config \'{"reasoning_start_str": "<think>", "reasoning_end_str": "</think>"}\'`.'
    )
    versions = "every vLLM with budgets; 0.19 wants --reasoning-config even beside a parser"
    sources = (
        "vllm/v1/engine/input_processor.py (0.33.0)",
        "vllm/config/reasoning.py, initialize_token_ids (0.33.0)",
        "vllm/engine/arg_utils.py, _set_default_reasoning_config_args (0.33.0)",
    )
    facts = ("budget-strings-from-parser",)

    @classmethod
    def check(cls, facts: BudgetFacts) -> Iterator[Finding]:
        missing = missing_strings(facts.command, facts.target) if facts.command is not None else None
        if missing is None:
            return
        refused = grouped(facts, lambda r: r.endpoint if r.value is not None and r.refused == missing.text else None)
        for endpoint, requests in refused:
            first = requests[0]
            assert first.value is not None  # noqa: S101  (a request without a budget is not refused)
            place = missing.location
            yield cls.finding(
                f"{who(requests)}: HTTP 400, {missing.text} and so there are no strings to count between",
                hint=f"{missing.mend}; or send no budget",
                confidence="high" if facts.target.exact or missing.parser is None else "medium",
                subject=first.value.subject,
                location=first.value.location,
                evidence={
                    "endpoint": endpoint,
                    "budget": first.value.value,
                    "parser": missing.parser,
                    "serve": {"path": place.path, "line": place.line, "column": place.column},
                    "error": f"{BUDGET_KEY} is set but reasoning_config is not configured",
                    "requests": len(requests),
                },
            )


@register
class PromptTokensCharged(Rule):
    id = "BUD314"
    slug = "prompt-tokens-charged"
    severity = "info"
    what = (
        "A request has a budget, and its prompt opens thinking and adds tokens behind the start marker (`<think>\\n`)."
    )
    why = (
        "vLLM counts from the start marker on, wherever it stands: the prompt's own tokens behind it are charged, and "
        "a budget of N leaves the model N minus those."
    )
    example = "<think>\\n at the prompt's end, budget 64: the model thinks 63 tokens"
    instead = "Nothing; add the prompt's tokens to the budget where the number has to be exact."
    versions = "every vLLM with budgets"
    sources = (
        "vllm/v1/worker/gpu/sample/thinking_budget.py (0.33.0)",
        "vllm/v1/sample/thinking_budget_state.py (0.33.0)",
    )

    @classmethod
    def check(cls, facts: BudgetFacts) -> Iterator[Finding]:
        if facts.template is None or facts.target.product != "vllm":
            return
        for (marker, charged), requests in grouped(facts, lambda request: _charged(request, facts)):
            first = requests[0]
            assert first.value is not None and first.value.tokens is not None  # noqa: S101  (`_charged`)
            left = max(0, first.value.tokens - charged)
            spent = f"{charged} token{'s' * (charged > 1)}"
            yield cls.finding(
                f"{who(requests)}: a budget of {first.value.tokens} allows {left}, the prompt's {spent} behind "
                f"{marker} count",
                hint=f"add {charged} where the number has to be exact",
                confidence="high" if facts.target.exact else "medium",
                subject={**first.value.subject, "model": facts.template.model},
                location=first.value.location,
                evidence={"marker": marker, "charged": charged, "allowed": left, "requests": len(requests)},
            )


def _charged(request: RequestFacts, facts: BudgetFacts) -> tuple[str, int] | None:
    """The open marker of a request's prompt and the tokens behind it; None where no budget is spent on any."""
    template, value = facts.template, request.value
    if template is None or value is None or not request.plain_prompt or request.standing != "granted":
        return None
    prompt = template.prompts.get(request.effort)
    if prompt is None or prompt.state != "open" or not prompt.after_open or not value.tokens or value.tokens < 0:
        return None
    counted = any(marker.text == prompt.marker for marker in template.markers)
    return (str(prompt.marker), prompt.after_open) if counted else None
