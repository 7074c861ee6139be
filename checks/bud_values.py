"""BUD301-BUD305, BUD323: is each budget, and each key of a map, one that the server takes?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..budgets import slimserve
from ..budgets.dialects import EFFORTS, FALLBACK, LEVELS, near_efforts
from ..budgets.document import NotFinite
from ..budgets.facts import BudgetFacts, BudgetValue
from .finding import Finding
from .rule import Rule, register

VLLM_CHECK = "vllm/sampling_params.py, validate_thinking_token_budget (0.33.0)"


@dataclass(frozen=True, slots=True)
class Same:
    """Budgets with the same fault: one of the server's, or those of several requests. `first` is where to point."""

    first: BudgetValue
    count: int

    @property
    def text(self) -> str:
        """What to call them at the start of a message."""
        if self.first.request is None:
            return self.first.key or "the budget"
        return f"request {self.first.request}" + (f" and {self.count - 1} more" if self.count > 1 else "")


def alike(values: Iterable[BudgetValue]) -> list[Same]:
    """The server's budgets one by one, those of an endpoint's requests that are of one type as one.

    A file of ten thousand requests with the same fault gives one finding.
    """
    groups: dict[tuple[object, ...], list[BudgetValue]] = {}
    for value in values:
        own = (value.key, value.location) if value.request is None else (value.endpoint, type(value.value))
        groups.setdefault(own, []).append(value)
    return [Same(group[0], len(group)) for group in groups.values()]


@register
class UnknownEffort(Rule):
    id = "BUD301"
    slug = "unknown-effort"
    severity = "error"
    what = (
        "A key of a budget map is no thinking level (minimal, low, medium, high, xhigh, max), or a request's "
        "`reasoning_effort` is none of those and not `none`."
    )
    why = (
        "SlimServe refuses to start with such a map. A request with such an effort is an HTTP 400, "
        "while health checks stay green."
    )
    example = '{"low": 1024, "medium": 4096, "hgih": 8192}'
    instead = "Write the level as the request field spells it."
    versions = "SlimServe since pull request #13; vLLM refuses the request's effort in every modelled version"
    sources = (slimserve.SOURCE, "vllm/renderers/params.py, ReasoningEffort (0.33.0)")

    @classmethod
    def check(cls, facts: BudgetFacts) -> Iterator[Finding]:
        for key, place in (facts.map_keys or ()) if facts.server_budget_counts else ():
            if key not in EFFORTS:
                yield cls.finding(
                    f'"{key}" is no thinking level: the server refuses to start',
                    hint=_did_you_mean(near_efforts(key), LEVELS),
                    subject={"key": key},
                    location=place,
                    evidence={"near": near_efforts(key), "levels": list(LEVELS)},
                )
        unknown: dict[str, list[str]] = {}
        for request in facts.requests:
            if request.effort is not None and request.effort not in EFFORTS:
                unknown.setdefault(request.effort, []).append(request.name)
        for effort, names in unknown.items():
            first = next(request for request in facts.requests if request.name == names[0])
            near = near_efforts(effort, EFFORTS)
            yield cls.finding(
                f'reasoning_effort "{effort}" is no level: the request is refused',
                hint=_did_you_mean(near, EFFORTS),
                subject={"key": effort, "request": names[0]},
                location=first.effort_location,
                evidence={"near": near, "levels": list(EFFORTS)} | ({"requests": len(names)} if len(names) > 1 else {}),
            )


def _did_you_mean(near: list[str], known: tuple[str, ...]) -> str:
    return f"did you mean {' or '.join(near)}?" if near else f"use one of {', '.join(known)}"


@register
class NoneIsNoLevel(Rule):
    id = "BUD302"
    slug = "none-is-no-level"
    severity = "error"
    what = "A budget map has the key `none`."
    why = "Effort `none` switches thinking off, so no budget can apply to it; SlimServe refuses to start with the map."
    example = '{"none": 0, "medium": 4096}'
    instead = "Leave the key out: a request with effort none gets no cutoff and does not think."
    versions = "SlimServe since pull request #13"
    sources = (slimserve.SOURCE,)

    @classmethod
    def check(cls, facts: BudgetFacts) -> Iterator[Finding]:
        for key, place in (facts.map_keys or ()) if facts.server_budget_counts else ():
            if key == "none":
                yield cls.finding(
                    '"none" is no level of a budget map: the server refuses to start',
                    hint="take the key out; effort none never has a cutoff",
                    subject={"key": key},
                    location=place,
                )


@register
class MediumMissing(Rule):
    id = "BUD303"
    slug = "medium-missing"
    severity = "error"
    what = "A budget map has no `medium`. The empty map counts too."
    why = (
        "`medium` is what a request without an effort gets, and every effort that has no entry. "
        "Without it SlimServe refuses to start."
    )
    example = '{"low": 1024, "high": 8192}'
    instead = "Add the budget that requests without an effort shall have, under `medium`."
    versions = "SlimServe since pull request #13"
    sources = (slimserve.SOURCE,)

    @classmethod
    def check(cls, facts: BudgetFacts) -> Iterator[Finding]:
        if facts.server_budget_counts and facts.map_keys is not None:
            keys = [key for key, _ in facts.map_keys]
            if FALLBACK not in keys:
                yield cls.finding(
                    "the map has no medium: the server refuses to start",
                    hint='add "medium": it is used when reasoning_effort is omitted or has no entry',
                    subject={"key": FALLBACK},
                    location=facts.location,
                    evidence={"keys": keys},
                )


@register
class NotAnInteger(Rule):
    id = "BUD304"
    slug = "not-an-integer"
    severity = "error"
    what = (
        "A budget is a boolean, a float (4096.0 too), a string, null, a list or an object where a whole "
        "number is meant."
    )
    why = "SlimServe refuses to start with such a default; a request with such a budget is an HTTP 400."
    example = '{"medium": 4096.0, "high": "8192"}'
    instead = "Write a whole number of tokens: 0 or more, or -1 for no cutoff."
    versions = "SlimServe since pull request #13; the request field in every vLLM that has it"
    sources = (slimserve.SOURCE, VLLM_CHECK)

    @classmethod
    def check(cls, facts: BudgetFacts) -> Iterator[Finding]:
        for same in alike(value for value in facts.values if value.endpoint != "responses" and _is_no_integer(value)):
            value = same.first
            yield cls.finding(
                f"{same.text}: {value.field} is {_kind(value.value)}, not an integer",
                hint=_whole_number(value),
                subject=value.subject,
                location=value.location,
                evidence={"value": value.value} | ({"requests": same.count} if same.count > 1 else {}),
            )


def _kind(value: object) -> str:
    if isinstance(value, NotFinite):
        return repr(value)
    kinds = {bool: "a boolean", float: "a float", str: "a string", list: "a list", dict: "an object"}
    return kinds.get(type(value), "null")


def _is_no_integer(value: BudgetValue) -> bool:
    """/v1/messages converts what it can; every other place wants a real one."""
    return value.tokens is None if value.endpoint == "messages" else not _is_integer(value)


def _is_integer(value: BudgetValue) -> bool:
    return isinstance(value.value, int) and not isinstance(value.value, bool)


def _whole_number(value: BudgetValue) -> str:
    raw = value.value
    if isinstance(raw, bool):
        return "write a number of tokens; -1 means no cutoff, 0 closes thinking at once"
    if isinstance(raw, (float, str)):
        try:
            number = float(raw)
        except ValueError:
            number = 0.5
        if number.is_integer() and number >= -1:
            return f"write {int(number)}"
    return "write a whole number of tokens, 0 or more, or -1 for no cutoff"


@register
class BelowMinusOne(Rule):
    id = "BUD305"
    slug = "below-minus-one"
    severity = "error"
    what = "A budget is an integer below -1."
    why = "Only -1 means unlimited; SlimServe refuses to start with anything below it, and a request is an HTTP 400."
    example = '{"medium": -2}'
    instead = "Write -1 for no cutoff."
    versions = "SlimServe since pull request #13; the request field of vLLM since 0.23"
    sources = (slimserve.SOURCE, VLLM_CHECK)
    facts = ("budget-minus-one",)

    @classmethod
    def check(cls, facts: BudgetFacts) -> Iterator[Finding]:
        # Responses reads no budget, and /v1/messages has a limit of its own (BUD319).
        read = [value for value in facts.values if value.endpoint not in ("responses", "messages")]
        for same in alike(value for value in read if _is_integer(value) and value.value < -1):
            value = same.first
            yield cls.finding(
                f"{same.text}: {value.value} is below -1",
                hint="write -1 for no cutoff, or 0 or more",
                subject=value.subject,
                location=value.location,
                evidence={"value": value.value} | ({"requests": same.count} if same.count > 1 else {}),
            )


@register
class DuplicateKey(Rule):
    id = "BUD323"
    slug = "duplicate-key"
    severity = "error"
    what = "A key stands twice in the same object of a JSON, YAML or TOML file."
    why = (
        "JSON readers and PyYAML keep the last one without a word, other YAML readers and TOML refuse the file: "
        "the budget that is enforced is not the one a reader of the file sees first."
    )
    example = '{"medium": 1024, "high": 8192, "medium": 4096}'
    instead = "Keep one of them."
    versions = "every version"
    sources = ("RFC 8259, section 4", "YAML 1.2.2, section 3.2.1.3", "TOML 1.0, Keys")

    @classmethod
    def check(cls, facts: BudgetFacts) -> Iterator[Finding]:
        for found in facts.duplicates:
            path = ".".join(found.path)
            lost, kept = _short(found.lost), _short(found.kept)
            yield cls.finding(
                f'"{path}" is given twice: {kept} here wins over {lost} in line {found.first.line}',
                hint="keep one of them",
                subject={"key": path},
                location=found.last,
                evidence={
                    "first": {"line": found.first.line, "column": found.first.column},
                    "lost": found.lost,
                    "kept": found.kept,
                },
            )


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
