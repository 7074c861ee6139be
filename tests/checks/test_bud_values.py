"""BUD301-305, 306, 307, 315-317, 323: what each fires on, and the neighbour it leaves alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reasonctl.budgets.config import parse_config
from reasonctl.budgets.facts import BudgetFacts, gather
from reasonctl.checks.bud import check_budget
from reasonctl.checks.finding import Finding
from reasonctl.parsers.target import Target

CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}
GOOD = {"low": 1024, "medium": 4096, "xhigh": 8192}


def facts(config: Any, **how: Any) -> BudgetFacts:
    """The facts of a configuration, given as text or as what its JSON shall hold."""
    text = config if isinstance(config, str) else json.dumps(config, indent=1)
    how.setdefault("dialect", "slimserve")
    how.setdefault("limits", (12000,))
    how.setdefault("target", Target("slimserve") if how["dialect"] == "slimserve" else Target())
    return gather(parse_config(text, path="c"), **how)


def found(rule: str, config: Any, **how: Any) -> list[Finding]:
    """The findings of one rule."""
    return [finding for finding in check_budget(facts(config, **how)) if finding.rule == rule]


def rules(config: Any, **how: Any) -> list[str]:
    """The ids of all findings, sorted, each once."""
    return sorted({finding.rule for finding in check_budget(facts(config, **how))})


def place(finding: Finding) -> tuple[int, int]:
    assert finding.location is not None
    return finding.location.line, finding.location.column


def test_a_good_map_has_no_finding() -> None:
    assert rules(GOOD) == []


def test_unknown_effort() -> None:
    (finding,) = found("BUD301", {"medium": 1, "hgih": 2})
    assert finding.severity == "error"
    assert finding.hint == "did you mean high or xhigh?"
    assert finding.subject == {"key": "hgih"}
    assert place(finding) == (3, 2)
    assert found("BUD301", {"medium": 1, "high": 2, "none": 3}) == []


def test_unknown_effort_of_a_request() -> None:
    requests = [
        CHAT | {"reasoning_effort": "ultra"},
        CHAT | {"reasoning_effort": "none"},
        CHAT | {"reasoning_effort": "ultra"},
    ]
    (finding,) = found("BUD301", requests, dialect="vllm")
    assert finding.evidence["requests"] == 2
    assert finding.subject == {"key": "ultra", "request": "#1"}


def test_none_is_no_level() -> None:
    (finding,) = found("BUD302", {"none": 0, "medium": 1})
    assert (finding.severity, place(finding)) == ("error", (2, 2))
    assert rules({"none": 0, "medium": 1}) == ["BUD302"]
    assert found("BUD302", {"minimal": 0, "medium": 1}) == []


@pytest.mark.parametrize("budgets", [{}, {"low": 1024, "high": 8192}])
def test_medium_missing(budgets: dict[str, int]) -> None:
    (finding,) = found("BUD303", budgets)
    assert (finding.severity, finding.subject) == ("error", {"key": "medium"})
    assert finding.evidence["keys"] == list(budgets)
    assert found("BUD303", {"medium": 0}) == []
    assert found("BUD303", 4096) == []


@pytest.mark.parametrize(
    ("value", "kind", "hint"),
    [
        (True, "a boolean", "write a number of tokens"),
        (4096.0, "a float", "write 4096"),
        (1.5, "a float", "write a whole number"),
        ("4096", "a string", "write 4096"),
        ("4k", "a string", "write a whole number"),
        (None, "null", "write a whole number"),
        ([1], "a list", "write a whole number"),
        ({"a": 1}, "an object", "write a whole number"),
    ],
)
def test_not_an_integer(value: Any, kind: str, hint: str) -> None:
    (finding,) = found("BUD304", {"low": 1, "medium": value})
    assert finding.severity == "error"
    assert kind in finding.message
    assert hint in finding.hint
    assert place(finding) == (3, 12)
    if not isinstance(value, dict):
        (finding,) = found("BUD304", json.dumps(value))
        assert place(finding) == (1, 1)


def test_integers_are_integers() -> None:
    for value in (0, -1, 5, 10**12):
        assert found("BUD304", {"medium": value}) == []
        assert found("BUD304", value) == []


@pytest.mark.parametrize("text", ["1e400", "-1e400", "NaN", "Infinity"])
def test_a_number_that_no_float_holds_is_told_as_it_stands(text: str) -> None:
    (finding,) = found("BUD304", f'{{"thinking_token_budget": {text}}}')
    assert f"is {text}, not an integer" in finding.message


def test_equal_faults_of_many_requests_are_one_finding() -> None:
    requests = [CHAT | {"thinking_token_budget": 1.5}] * 40 + [CHAT | {"thinking_token_budget": "x"}]
    first, second = found("BUD304", requests, dialect="vllm")
    assert (first.evidence["value"], first.evidence["requests"]) == (1.5, 40)
    assert "request #1 and 39 more" in first.message
    assert second.subject == {"request": "#41"}


def test_below_minus_one() -> None:
    (finding,) = found("BUD305", {"medium": -2})
    assert (finding.severity, finding.evidence["value"], place(finding)) == ("error", -2, (2, 12))
    assert found("BUD305", {"medium": -1}) == []
    assert len(found("BUD305", CHAT | {"thinking_token_budget": -5}, dialect="vllm")) == 1


def test_budget_reaches_ceiling() -> None:
    medium, xhigh = found("BUD306", GOOD, limits=(4096, 12000))
    assert medium.severity == "warning"
    assert (medium.subject, medium.evidence) == (
        {"key": "medium"},
        {"budget": 4096, "max_tokens": [4096], "needed": 4353},
    )
    assert place(medium) == (3, 12)
    assert "4353" in medium.hint
    assert xhigh.subject == {"key": "xhigh"}
    assert found("BUD306", GOOD, limits=(8193,)) == []
    assert found("BUD306", GOOD, limits=(4096,), efforts=frozenset({"low"})) == []


@pytest.mark.parametrize("rule", ["BUD306", "BUD307"])
@pytest.mark.parametrize("budget", [4096, 4000])
def test_a_servers_budget_that_vllm_drops_reaches_no_ceiling(rule: str, budget: int) -> None:
    (dropped,) = found("BUD310", budget, dialect="vllm")
    assert "every request is unlimited" in dropped.message
    assert found(rule, budget, dialect="vllm", limits=(4096,)) == []


def test_no_max_tokens_is_proposed_that_no_model_has_room_for() -> None:
    (finding,) = found("BUD306", 10**26)
    assert finding.hint == "no model has room for so many: write a smaller budget"


@pytest.mark.parametrize(("given", "confidence"), [((), "medium"), ((4096,), "high")])
def test_assumed_limits_are_less_sure(given: tuple[int, ...], confidence: str) -> None:
    assert {finding.confidence for finding in found("BUD306", 8192, limits=given)} == {confidence}


def test_a_request_that_can_think_for_ever_in_vllm() -> None:
    request = CHAT | {"thinking_token_budget": 9000, "max_tokens": 4500}
    (finding,) = found("BUD306", request, dialect="vllm")
    assert "never reached" in finding.message
    assert finding.evidence["max_tokens"] == [4500]
    assert finding.confidence == "high"
    assert found("BUD306", request | {"max_tokens": 9500}, dialect="vllm") == []


def test_requests_that_meet_their_limit_are_one_finding() -> None:
    bodies = [CHAT | {"thinking_token_budget": 4000 + n, "max_tokens": 4010} for n in range(20)]
    (reached,) = found("BUD306", bodies, dialect="vllm")
    assert reached.evidence == {"budget": 4010, "max_tokens": [4010], "needed": 4267, "requests": 10}
    (starved,) = found("BUD307", bodies, dialect="vllm")
    assert starved.evidence == {"budget": 4000, "max_tokens": [4010], "left": [9], "requests": 10}


def test_answer_starved() -> None:
    (finding,) = found("BUD307", 4000, limits=(4001, 4200, 4257, 3000))
    assert finding.severity == "warning"
    assert (finding.evidence["max_tokens"], finding.evidence["left"]) == ([4001, 4200], [0, 199])
    assert found("BUD307", 4000, limits=(4200,), answer_reserve=199) == []
    assert len(found("BUD307", 4000, limits=(4200,), answer_reserve=200)) == 1
    assert found("BUD307", 0, limits=(100,)) == []


def test_not_monotone() -> None:
    (finding,) = found("BUD315", {"low": 4096, "medium": 4096, "xhigh": 2048, "max": 9000})
    assert finding.severity == "warning"
    assert (finding.subject, place(finding)) == ({"key": "xhigh"}, (4, 11))
    assert finding.evidence == {"lower": {"medium": 4096}, "higher": {"xhigh": 2048}}
    assert found("BUD315", {"low": 1, "medium": 1, "max": -1}) == []
    assert len(found("BUD315", {"low": -1, "medium": 10**9})) == 1


def test_zero_budget() -> None:
    (finding,) = found("BUD316", {"low": 0, "medium": 5000})
    assert (finding.severity, finding.subject) == ("info", {"key": "low"})
    assert found("BUD316", {"low": 1, "medium": 5000}) == []
    assert [f.severity for f in found("BUD316", CHAT | {"thinking_token_budget": 0}, dialect="vllm")] == ["info"]


def test_unlimited() -> None:
    (finding,) = found("BUD317", {"medium": 5000, "max": -1})
    assert (finding.severity, finding.subject) == ("info", {"key": "max"})
    assert found("BUD317", {"medium": 5000, "max": 9999}) == []


def test_duplicate_key() -> None:
    (finding,) = found("BUD323", '{"low": 1, "medium": 4,\n "low": 2}')
    assert finding.severity == "error"
    assert place(finding) == (2, 2)
    assert finding.evidence == {"first": {"line": 1, "column": 2}, "lost": 1, "kept": 2}
    assert found("BUD323", '{"low": 1, "medium": 4}') == []
    assert rules("low: 1\nmedium: 4\nlow: 1\n") == ["BUD323"]
    assert rules('vllm serve m --override-generation-config \'{"a": 1, "a": 2}\'', dialect="vllm") == ["BUD323"]


def test_a_server_that_would_not_start_grants_nothing() -> None:
    for broken in ({}, {"medium": 1, "turbo": 2}, {"medium": None}, {"medium": 1, "none": 2}, -2):
        assert facts(broken).rows == ()
    assert len(facts({"medium": 1}).rows) == 8
    assert len(facts({"medium": 1, "turbo": 2}, dialect="vllm").rows) == 8
