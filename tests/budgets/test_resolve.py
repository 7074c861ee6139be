"""Selection and cutoff: SlimServe's documented rules, vLLM's, and properties that hold for every budget."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonctl.budgets.dialects import EFFORTS, LEVELS
from reasonctl.budgets.resolve import Resolution, ServerBudget, resolve, table

MAP = {"low": 2000, "medium": 6000, "high": 12000, "xhigh": 40000}
LIMIT = 40000


def slimserve(budget: ServerBudget, effort: str | None, *, asked: int | None = None, limit: int = LIMIT) -> Resolution:
    return resolve("slimserve", budget, effort=effort, request_budget=asked, max_tokens=limit)


@pytest.mark.parametrize(
    ("effort", "selected", "source", "cutoff"),
    [
        ("low", 2000, "map[low]", 2000),
        ("medium", 6000, "map[medium]", 6000),
        ("high", 12000, "map[high]", 12000),
        ("xhigh", 40000, "map[xhigh]", 39999),
        (None, 6000, "map[medium]", 6000),
        ("minimal", 6000, "map[medium]", 6000),
        ("max", 6000, "map[medium]", 6000),
        ("none", None, "none", None),
    ],
)
def test_a_map(effort: str | None, selected: int | None, source: str, cutoff: int | None) -> None:
    row = slimserve(MAP, effort)
    assert (row.selected, row.source, row.cutoff) == (selected, source, cutoff)


@pytest.mark.parametrize(
    ("budget", "effort", "asked", "limit", "selected", "source", "cutoff", "left"),
    [
        (9000, "low", None, 20000, 9000, "scalar", 9000, 10999),
        (9000, "max", None, 9000, 9000, "scalar", 8999, 0),
        (9000, None, None, 100, 9000, "scalar", 99, 0),
        (9000, None, None, 1, 9000, "scalar", 0, 0),
        (9000, "none", None, 20000, None, "none", None, None),
        (9000, "none", 50, 20000, None, "none", None, None),
        (9000, "high", 50, 20000, 50, "request", 50, 19949),
        (9000, "high", -1, 20000, -1, "request", None, None),
        (9000, "high", 0, 20000, 0, "request", 0, 19999),
        (-1, "high", None, 20000, -1, "scalar", None, None),
        (0, "high", None, 20000, 0, "scalar", 0, 19999),
        (None, "high", None, 20000, None, "none", None, None),
        (None, "high", 50, 20000, 50, "request", 50, 19949),
        ({"medium": -1, "low": 5}, "high", None, 100, -1, "map[medium]", None, None),
    ],
)
def test_slimserve(
    budget: ServerBudget,
    effort: str | None,
    asked: int | None,
    limit: int,
    selected: int | None,
    source: str,
    cutoff: int | None,
    left: int | None,
) -> None:
    row = slimserve(budget, effort, asked=asked, limit=limit)
    assert (row.selected, row.source, row.cutoff, row.answer_capacity) == (selected, source, cutoff, left)


@pytest.mark.parametrize("dialect", ["vllm", "anthropic"])
def test_vllm_reads_the_request_and_never_clamps(dialect: str) -> None:
    row = resolve(dialect, MAP, effort="low", request_budget=None, max_tokens=100)  # type: ignore[arg-type]
    assert (row.selected, row.source, row.cutoff, row.answer_capacity) == (None, "none", None, None)
    row = resolve(dialect, MAP, effort="none", request_budget=500, max_tokens=100)  # type: ignore[arg-type]
    assert (row.selected, row.source, row.cutoff, row.answer_capacity) == (500, "request", 500, 0)


budgets = st.integers(-1, 10**6)
maps = st.dictionaries(st.sampled_from(LEVELS), budgets).map(lambda found: {"medium": 7, **found})
efforts = st.sampled_from(EFFORTS) | st.none()


@given(st.none() | budgets | maps, efforts, st.none() | budgets, st.integers(1, 10**6))
def test_what_holds_for_every_slimserve_request(
    budget: ServerBudget, effort: str | None, asked: int | None, limit: int
) -> None:
    row = slimserve(budget, effort, asked=asked, limit=limit)
    if row.cutoff is None:
        assert row.answer_capacity is None
        assert effort == "none" or row.selected in (None, -1)
    else:
        assert 0 <= row.cutoff < limit
        assert row.answer_capacity == limit - row.cutoff - 1
        assert row.cutoff == min(row.selected or 0, limit - 1)
    if effort != "none" and asked is not None:
        assert (row.selected, row.source) == (asked, "request")


@given(st.none() | budgets | maps, st.lists(st.integers(1, 10**6), min_size=1, max_size=3, unique=True))
def test_the_table_has_one_row_an_effort_and_limit(budget: ServerBudget, limits: list[int]) -> None:
    rows = table("slimserve", budget, max_tokens=limits)
    assert [(row.effort, row.max_tokens) for row in rows] == [(e, n) for e in (*EFFORTS, None) for n in limits]
    assert all(row.request_budget is None for row in rows)
    kept = table("slimserve", budget, max_tokens=limits, efforts=frozenset({"low"}))
    assert kept == [row for row in rows if row.effort == "low"]
