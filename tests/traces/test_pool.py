"""Many traces in several processes: the same facts in the same order, and nothing left running."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reasonctl.errors import InputError
from reasonctl.traces import pool as module
from reasonctl.traces.context import Setting
from reasonctl.traces.native import trace_of
from reasonctl.traces.pool import Lost, replay_all
from reasonctl.traces.replay import Plan, TraceFacts
from reasonctl.traces.trace import BrokenLine, Trace

PLAN = Plan(parsers=("qwen3",))


def items(count: int) -> Iterator[Trace | BrokenLine]:
    for number in range(1, count + 1):
        if number % 5 == 0:
            yield BrokenLine("f", number, "broken")
        else:
            yield trace_of({"id": f"t{number}", "output": {"text": f"hm</think>{number}"}}, path="f", line=number)


DYING = """
import os
from reasonctl.traces import worker
replay = worker.replay_trace
worker.replay_trace = lambda trace, *rest: os._exit(9) if trace.id == "t3" else replay(trace, *rest)
worker.main()
"""
RAISING = """
from reasonctl.errors import InputError
from reasonctl.traces import worker
def refuse(*_):
    raise InputError("refused", source="x", line=3)
worker.replay_trace = refuse
worker.main()
"""


def children() -> set[str]:
    """The processes this one has started and not yet waited for."""
    return {pid for task in Path("/proc/self/task").glob("*/children") for pid in task.read_text().split()}


@pytest.fixture(name="before")
def _before() -> set[str]:
    return children()


def test_several_processes_give_what_one_gives(before: set[str]) -> None:
    alone = list(replay_all(items(23), Setting(), PLAN))
    together = list(replay_all(items(23), Setting(), PLAN, jobs=2))
    assert together == alone
    assert [item.line for item in alone if not isinstance(item, Lost)] == list(range(1, 24))
    assert children() == before


def test_input_is_not_read_far_ahead(before: set[str]) -> None:
    taken = 0

    def counted() -> Iterator[Trace | BrokenLine]:
        nonlocal taken
        for item in items(500):
            taken += 1
            yield item

    found = replay_all(counted(), Setting(), PLAN, jobs=2)
    next(found)
    assert taken <= 9
    found.close()  # type: ignore[attr-defined]
    assert children() == before


def test_a_process_that_dies_costs_its_own_trace(monkeypatch: pytest.MonkeyPatch, before: set[str]) -> None:
    monkeypatch.setattr(module, "_WORKER", ("-P", "-c", DYING))
    found = list(replay_all(items(12), Setting(), PLAN, jobs=2))
    assert [item.trace.id for item in found if isinstance(item, Lost)] == ["t3"]
    assert [item.id for item in found if isinstance(item, TraceFacts)] == [
        f"t{n}" for n in (1, 2, 4, 6, 7, 8, 9, 11, 12)
    ]
    assert children() == before


def test_what_a_worker_raises_is_raised_here(monkeypatch: pytest.MonkeyPatch, before: set[str]) -> None:
    monkeypatch.setattr(module, "_WORKER", ("-P", "-c", RAISING))
    with pytest.raises(InputError, match=r"^x:3: refused$"):
        list(replay_all(items(3), Setting(), PLAN, jobs=2))
    assert children() == before


def test_an_interrupt_leaves_no_child(before: set[str]) -> None:
    def interrupted() -> Iterator[Trace | BrokenLine]:
        yield from items(4)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(replay_all(interrupted(), Setting(), PLAN, jobs=2))
    assert children() == before


def test_a_model_that_cannot_be_read_is_refused_before_any_process_starts(before: set[str]) -> None:
    with pytest.raises(InputError):
        list(replay_all(items(3), Setting(model="fixture:nosuch"), PLAN, jobs=2))
    assert children() == before
