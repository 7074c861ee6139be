"""Replaying many traces, in this process or in several, in the order they were read."""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

from .context import Context, Setting
from .replay import Plan, TraceFacts, replay_trace
from .trace import BrokenLine, Trace

_WAITING = 4
"""Traces a worker that are read ahead: enough to keep it busy, few enough for constant memory."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A trace whose process died with it."""

    trace: Trace
    reason: str


def replay_all(
    items: Iterable[Trace | BrokenLine], setting: Setting, plan: Plan, *, jobs: int = 1
) -> Iterator[TraceFacts | BrokenLine | Lost]:
    """The facts of every trace, in order; broken lines are passed on.

    Args:
        items: what was read; taken as results are, never far ahead of them.
        setting: what the command line says about all traces.
        plan: what is run on each.
        jobs: processes to use. No process is left behind, whatever ends this.

    Raises:
        InputError: the model or template cannot be read.
    """
    with Context(setting) as context:
        if jobs == 1:
            for item in items:
                yield replay_trace(item, context, plan) if isinstance(item, Trace) else item
            return
    yield from _in_processes(items, setting, plan, jobs)


def _in_processes(
    items: Iterable[Trace | BrokenLine], setting: Setting, plan: Plan, jobs: int
) -> Iterator[TraceFacts | BrokenLine | Lost]:
    ours = set(multiprocessing.active_children())
    waiting: deque[tuple[Trace | BrokenLine, Future[TraceFacts] | None]] = deque()
    pool = _pool(setting, plan, jobs)
    source = iter(items)
    more = True
    try:
        while more or waiting:
            while more and len(waiting) < jobs * _WAITING:
                item = next(source, None)
                if item is None:
                    more = False
                    break
                waiting.append((item, _submit(pool, item) if isinstance(item, Trace) else None))
            if not waiting:
                break
            item, future = waiting.popleft()
            if future is None or not isinstance(item, Trace):
                yield item if isinstance(item, BrokenLine) else Lost(item, "it was not run")
                continue
            try:
                yield future.result()
            except BrokenProcessPool:
                # One of those under way took its process with it; each is run again, alone, to tell which.
                pool.shutdown(cancel_futures=True)
                yield from _one_by_one([item, *(other for other, _ in waiting)], setting, plan)
                waiting.clear()
                pool = _pool(setting, plan, jobs)
    finally:
        # Ended first, waited for after: a worker in the middle of a long trace would keep us waiting.
        for child in set(multiprocessing.active_children()) - ours:
            child.terminate()
        pool.shutdown(cancel_futures=True)


def _submit(pool: ProcessPoolExecutor, trace: Trace) -> Future[TraceFacts]:
    try:
        return pool.submit(_replay, trace)
    except BrokenProcessPool as error:  # broke since the last result was taken; found out when this one is its turn
        failed: Future[TraceFacts] = Future()
        failed.set_exception(error)
        return failed


def _one_by_one(
    items: Iterable[Trace | BrokenLine], setting: Setting, plan: Plan
) -> Iterator[TraceFacts | BrokenLine | Lost]:
    for item in items:
        if isinstance(item, BrokenLine):
            yield item
            continue
        with _pool(setting, plan, 1) as alone:
            try:
                yield alone.submit(_replay, item).result()
            except BrokenProcessPool:
                yield Lost(item, "the process that replayed it died")


def _pool(setting: Setting, plan: Plan, jobs: int) -> ProcessPoolExecutor:
    # A forked copy of a process that holds tokenizers' threads may hang, so workers start fresh.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(jobs, mp_context=context, initializer=_start, initargs=(setting, plan))


_worker: tuple[Context, Plan] | None = None


def _start(setting: Setting, plan: Plan) -> None:
    global _worker  # noqa: PLW0603  (the state of a worker process)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears Ctrl-C and ends us
    _worker = (Context(setting), plan)


def _replay(trace: Trace) -> TraceFacts:
    if _worker is None:
        raise RuntimeError("the worker was not started")
    context, plan = _worker
    return replay_trace(trace, context, plan)
