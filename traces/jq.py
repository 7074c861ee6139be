"""The jq engine, in a process of its own: an expression that does not end can be ended, and Ctrl-C is heard."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import InputError, ReasonctlError
from .child import Child, ChildGoneError

_SECONDS = 30
"""How long an expression may work on a value before its first result, and between two results."""
_MEMORY = 4 << 30
"""Bytes of address space that it may take."""
_CHILD = ("-P", "-m", f"{__package__}.jq_child")


class JqError(ValueError):
    """The expression failed on one value."""


class JqEndedError(ValueError):
    """The expression had to be ended on one value; it takes no other any more."""


class Jq:
    """A compiled expression. A context manager, since it keeps a process.

    Raises:
        InputError: the expression is none.
        ReasonctlError: neither binding of jq is installed.
    """

    def __init__(self, expression: str) -> None:
        self._child = Child(_CHILD)
        try:
            try:
                self._child.send((expression, _SECONDS, _MEMORY))
                state, text = self._child.receive()
            except ChildGoneError as error:
                raise ReasonctlError(f"the process that runs --jq does not start ({error})") from None
            if state == "bad":
                raise InputError(f"{expression!r} is no jq expression ({text})", source="--jq")
            if state == "missing":
                raise ReasonctlError("--jq needs the package jq (or pyjq); pip install jq")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Jq:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._child.kill()
        self._child.release()

    def results(self, value: Any) -> Iterator[Any]:
        """The values the expression makes of one, as they come.

        Raises:
            JqError: it failed on this value.
            JqEndedError: it took too long or too much memory.
        """
        try:
            self._child.send(value)
            while True:
                state, result = self._child.receive()
                if state == "error":
                    raise JqError(result)
                if state == "end":
                    return
                yield result
        except ChildGoneError:
            raise JqEndedError(f"no result within {_SECONDS} s, or more than {_MEMORY >> 30} GiB of memory") from None
