"""Many traces in several processes: the same facts in the same order, and nothing left running."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from typing import Any

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


def _die_on_t3(trace: Trace) -> TraceFacts:
    if trace.id == "t3":
        os._exit(9)
    return module._replay(trace)


def test_several_processes_give_what_one_gives() -> None:
    alone = list(replay_all(items(23), Setting(), PLAN))
    together = list(replay_all(items(23), Setting(), PLAN, jobs=2))
    assert together == alone
    assert [item.line for item in alone if not isinstance(item, Lost)] == list(range(1, 24))
    assert multiprocessing.active_children() == []


def test_input_is_not_read_far_ahead() -> None:
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
    assert multiprocessing.active_children() == []


def test_a_process_that_dies_costs_its_own_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    real = module.ProcessPoolExecutor.submit

    def submit(self: Any, function: Any, *args: Any) -> Any:
        return real(self, _die_on_t3, *args)

    monkeypatch.setattr(module.ProcessPoolExecutor, "submit", submit)
    found = list(replay_all(items(12), Setting(), PLAN, jobs=2))
    assert [item.trace.id for item in found if isinstance(item, Lost)] == ["t3"]
    assert [item.id for item in found if isinstance(item, TraceFacts)] == [
        f"t{n}" for n in (1, 2, 4, 6, 7, 8, 9, 11, 12)
    ]
    assert multiprocessing.active_children() == []


def test_an_interrupt_leaves_no_child() -> None:
    def interrupted() -> Iterator[Trace | BrokenLine]:
        yield from items(4)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(replay_all(interrupted(), Setting(), PLAN, jobs=2))
    assert multiprocessing.active_children() == []


def test_a_model_that_cannot_be_read_is_refused_before_any_process_starts() -> None:
    with pytest.raises(InputError):
        list(replay_all(items(3), Setting(model="fixture:nosuch"), PLAN, jobs=2))
    assert multiprocessing.active_children() == []
