"""What a request is granted: which budget is asked for, and the cutoff that the server enforces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .dialects import EFFORTS, FALLBACK, Dialect

ServerBudget = int | Mapping[str, int] | None
"""A valid server-side budget in tokens: one for all efforts, one for each (with `medium`), or none. -1 is unlimited."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """One request, resolved. Tokens throughout.

    `selected` is the budget asked for (-1 where unlimited is asked for), None where nothing was; `cutoff` is what is
    enforced, None for no cutoff; `answer_capacity` is what is left of `max_tokens` when the cutoff is reached and one
    end marker is emitted.
    """

    effort: str | None
    request_budget: int | None
    max_tokens: int
    selected: int | None
    source: str
    cutoff: int | None

    @property
    def answer_capacity(self) -> int | None:
        return None if self.cutoff is None else max(0, self.max_tokens - self.cutoff - 1)

    def as_json(self) -> dict[str, Any]:
        """The row as the JSON report of `validate-config` shows it."""
        return {
            "effort": self.effort,
            "request_budget": self.request_budget,
            "max_tokens": self.max_tokens,
            "selected": self.selected,
            "source": self.source,
            "cutoff": self.cutoff,
            "answer_capacity": self.answer_capacity,
        }


def resolve(
    dialect: Dialect, budget: ServerBudget, *, effort: str | None, request_budget: int | None, max_tokens: int
) -> Resolution:
    """What a request with this effort, budget and completion limit is granted.

    Args:
        dialect: whose rules.
        budget: the server's default, valid; a map defines `medium`.
        effort: the request's `reasoning_effort`, None where it is omitted.
        request_budget: the request's own budget, None where it is omitted or null.
        max_tokens: the completion limit, thinking and answer together.

    Sources: SlimServe docs/reasoning-token-budgets.md (generation of pull request #13); vllm/sampling_params.py 0.33.0,
    `validate_thinking_token_budget`, and v1/sample/thinking_budget_state.py, which never looks at `max_tokens`.
    """
    selected, source = _select(dialect, budget, effort, request_budget)
    cutoff = selected if selected is not None and selected >= 0 else None
    if cutoff is not None and dialect == "slimserve":
        cutoff = min(cutoff, max(0, max_tokens - 1))
    return Resolution(effort, request_budget, max_tokens, selected, source, cutoff)


def table(
    dialect: Dialect, budget: ServerBudget, *, max_tokens: Iterable[int], efforts: frozenset[str] | None = None
) -> list[Resolution]:
    """One row for every effort, and one for an omitted effort, at each limit; with `efforts`, only those."""
    limits = tuple(max_tokens)
    wanted = [effort for effort in (*EFFORTS, None) if efforts is None or effort in efforts]
    return [
        resolve(dialect, budget, effort=effort, request_budget=None, max_tokens=limit)
        for effort in wanted
        for limit in limits
    ]


def _select(
    dialect: Dialect, budget: ServerBudget, effort: str | None, request_budget: int | None
) -> tuple[int | None, str]:
    if dialect == "slimserve" and effort == "none":
        return None, "none"
    if request_budget is not None:
        return request_budget, "request"
    if dialect != "slimserve" or budget is None:
        return None, "none"
    if isinstance(budget, int):
        return budget, "scalar"
    level = effort if effort is not None and effort in budget else FALLBACK
    return budget[level], f"map[{level}]"
