"""The process of `traces.jq` in which expressions run: one that never ends, or takes all memory, is ended with it."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from typing import Any

from .child import Parent

Run = Callable[[Any], Iterator[Any]]


def main() -> None:
    """Take (expression, seconds, bytes), say whether it compiles, then give the results of every value one by one.

    Answers are pairs: ("ready" | "bad" | "missing", text), then ("value", result) ... ("end" | "error", text).
    """
    parent = Parent()
    requests = parent.requests()
    expression, seconds, memory = next(requests)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # the kernel's own: no code here can hold it up
    _limit_memory(memory)
    try:
        run, errors = _engine(expression)
    except ImportError:
        parent.answer(("missing", ""))
        return
    except ValueError as error:
        parent.answer(("bad", _line(error)))
        return
    parent.answer(("ready", ""))
    for value in requests:
        try:
            for result in _each(run(value), seconds):
                parent.answer(("value", result))
        except errors as error:
            parent.answer(("error", _line(error)))
        else:
            parent.answer(("end", ""))


def _each(results: Iterator[Any], seconds: int) -> Iterator[Any]:
    """The results; the process ends where one takes longer than `seconds`. Writing one may take as long as it likes."""
    while True:
        signal.alarm(seconds)
        try:
            result = next(results)
        except StopIteration:
            return
        finally:
            signal.alarm(0)
        yield result


def _engine(expression: str) -> tuple[Run, tuple[type[Exception], ...]]:
    """Whichever binding of jq is installed."""
    try:
        import jq
    except ImportError:
        import pyjq

        other = pyjq.compile(expression)
        return lambda value: iter(other.all(value)), (ValueError, pyjq.ScriptRuntimeError)
    program = jq.compile(expression)
    return lambda value: iter(program.input_value(value)), (ValueError,)


def _limit_memory(size: int) -> None:
    """Allow `size` bytes of address space. No limit where there is no such thing."""
    import resource

    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


if __name__ == "__main__":
    main()
