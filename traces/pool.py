"""Replaying many traces, in this process or in several, in the order they were read."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .child import Child, ChildGoneError
from .context import Context, Setting
from .replay import Engines, Plan, TraceFacts, open_engines, replay_trace
from .trace import BrokenLine, Trace

if TYPE_CHECKING:
    from ..prompts.model import Unreadable

_WAITING = 4
"""Traces a worker that are read ahead: enough to keep it busy, few enough for constant memory."""
_TRIES = 2
"""A worker may be taken by the system for its size rather than for its trace: only the second loss counts."""
_WORKER = ("-P", "-m", f"{__package__}.worker")


@dataclass(frozen=True, slots=True)
class Lost:
    """A trace whose process died with it."""

    trace: Trace
    reason: str


@dataclass(frozen=True, slots=True)
class ModelPart:
    """A part of the model that was not read; `path` is the file's, as a report names it."""

    path: str
    part: Unreadable


def replay_all(
    items: Iterable[Trace | BrokenLine], setting: Setting, plan: Plan, *, jobs: int = 1, engines: Engines | None = None
) -> Iterator[TraceFacts | BrokenLine | Lost | ModelPart]:
    """The facts of every trace, in order; broken lines are passed on. What is not read of the model comes first.

    Args:
        items: what was read; taken as results are, never far ahead of them.
        setting: what the command line says about all traces.
        plan: what is run on each.
        jobs: processes to use. No process is left behind, whatever ends this.
        engines: the plan's, where they are open already and this process is the only one; closed at the end.

    Raises:
        InputError: the model or template cannot be read.
    """
    with Context(setting) as context:
        yield from _unread(context)
        if jobs == 1:
            with contextlib.closing(engines or open_engines(plan)) as opened:
                context.made_by(opened.first)
                for item in items:
                    yield replay_trace(item, context, plan, opened) if isinstance(item, Trace) else item
            return
    yield from _in_processes(items, setting, plan, jobs)


def _unread(context: Context) -> Iterator[ModelPart]:
    model = context.model
    for part in model.unreadable if model is not None else ():
        here = model is not None and model.path is not None and model.kind not in ("fixture", "hub")
        folder = str(model.path) if model is not None and here else str(context.setting.model)
        yield ModelPart(folder if Path(folder).is_file() else f"{folder}/{part.file}", part)


def _in_processes(
    items: Iterable[Trace | BrokenLine], setting: Setting, plan: Plan, jobs: int
) -> Iterator[TraceFacts | BrokenLine | Lost]:
    waiting: deque[BrokenLine | Future[TraceFacts | Lost]] = deque()
    crew = _Crew(setting, plan, jobs)
    source = iter(items)
    more = True
    try:
        while more or waiting:
            while more and len(waiting) < jobs * _WAITING:
                item = next(source, None)
                if item is None:
                    more = False
                else:
                    waiting.append(crew.submit(item) if isinstance(item, Trace) else item)
            if waiting:
                first = waiting.popleft()
                yield first if isinstance(first, BrokenLine) else first.result()
        crew.close()
    finally:
        crew.kill()


class _Crew:
    """Worker processes, and a thread for each that hands it a trace and waits for the answer.

    The processes are plain children that watch us. Those of `multiprocessing` come with a helper that outlives a parent
    that is killed, and they fork or wait on locks where tokenizers hold threads of their own.
    """

    def __init__(self, setting: Setting, plan: Plan, jobs: int) -> None:
        self._first = (setting, plan)
        self._threads = ThreadPoolExecutor(jobs)
        self._lock = threading.Lock()
        self._children: set[Child] = set()
        self._idle: list[Child] = []
        self._over = False

    def submit(self, trace: Trace) -> Future[TraceFacts | Lost]:
        return self._threads.submit(self._replay, trace)

    def close(self) -> None:
        """Everything is answered: let the workers end by themselves."""
        for child in self._idle:
            child.close()

    def kill(self) -> None:
        with self._lock:
            self._over = True
            children = list(self._children)
        # Ended first, waited for after: a worker in the middle of a long trace would keep its thread waiting.
        for child in children:
            child.kill()
        self._threads.shutdown(cancel_futures=True)
        for child in children:
            child.release()

    def _replay(self, trace: Trace) -> TraceFacts | Lost:
        for _ in range(_TRIES):
            child = self._take()
            try:
                child.send(trace)
                answer: TraceFacts | Exception = child.receive()
            except ChildGoneError:
                self._forget(child)
                continue
            with self._lock:
                self._idle.append(child)
            if isinstance(answer, Exception):
                raise answer
            return answer
        return Lost(trace, "the process that replayed it died")

    def _take(self) -> Child:
        with self._lock:
            if self._over:
                raise CancelledError
            if self._idle:
                return self._idle.pop()
            child = Child(_WORKER)
            self._children.add(child)
        with contextlib.suppress(ChildGoneError):  # found out again, and counted, when it is given its trace
            child.send(self._first)
        return child

    def _forget(self, child: Child) -> None:
        with self._lock:
            if self._over:
                return  # `kill` sees to it
            self._children.discard(child)
        child.kill()
        child.release()
