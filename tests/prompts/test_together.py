"""Questions that are under way at once: their order, their failures, and nobody waits for what hangs."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonctl.prompts.together import together


@settings(deadline=None)
@given(st.lists(st.integers(), max_size=30), st.integers(1, 6))
def test_every_question_is_asked_once_and_answered_in_its_place(questions: list[int], most: int) -> None:
    asked: list[int] = []
    under_way = [0, 0]
    lock = threading.Lock()

    def ask(question: int) -> int:
        with lock:
            asked.append(question)
            under_way[0] += 1
            under_way[1] = max(under_way)
        with lock:
            under_way[0] -= 1
        return question * 2

    assert together(ask, questions, most=most) == [question * 2 for question in questions]
    assert sorted(asked) == sorted(questions)
    assert under_way[1] <= most


def test_a_failure_is_raised_without_waiting_for_what_hangs() -> None:
    let_go = threading.Event()
    hangs = threading.Event()

    def ask(question: str) -> str:
        if question == "hang":
            hangs.set()
            let_go.wait(60)
        if question == "fail":
            hangs.wait(60)
            raise KeyError(question)
        return question

    with pytest.raises(KeyError, match="fail"):
        together(ask, ["hang", "fail", "never"], most=2)
    assert not let_go.is_set()
    let_go.set()


def test_what_comes_after_a_failure_is_not_asked() -> None:
    asked: list[int] = []

    def ask(question: int) -> int:
        asked.append(question)
        raise ValueError

    with pytest.raises(ValueError):
        together(ask, list(range(100)), most=1)
    assert asked == [0]
