"""Questions to a server, a few of them under way at once."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

Question = TypeVar("Question")
Answer = TypeVar("Answer")


def together(ask: Callable[[Question], Answer], questions: Sequence[Question], *, most: int) -> list[Answer]:
    """The answer to each question, in their order.

    Whoever interrupts this is not kept waiting for what is under way: the threads are left to end by themselves.

    Args:
        ask: gives one answer; called from other threads.
        questions: what is asked.
        most: how many are under way at once.

    Raises:
        Exception: what the first of them that failed raised; no further one is asked then.
    """
    if len(questions) < 2:
        return [ask(question) for question in questions]
    waiting = iter(range(len(questions)))
    lock = threading.Lock()
    done: queue.SimpleQueue[tuple[int, Answer] | BaseException] = queue.SimpleQueue()
    stopped = threading.Event()

    def work() -> None:
        while not stopped.is_set():
            with lock:
                at = next(waiting, None)
            if at is None:
                return
            try:
                done.put((at, ask(questions[at])))
            except BaseException as error:
                done.put(error)
                return

    for _ in range(min(most, len(questions))):
        threading.Thread(target=work, daemon=True).start()
    found: dict[int, Answer] = {}
    try:
        while len(found) < len(questions):
            one = done.get()
            if isinstance(one, BaseException):
                raise one
            found[one[0]] = one[1]
    finally:
        stopped.set()
    return [found[at] for at in range(len(questions))]
