"""The jq engine, whichever binding of it is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..errors import InputError, ReasonctlError


class JqError(ValueError):
    """The expression failed on one value."""


def compile_jq(expression: str) -> Callable[[Any], Iterator[Any]]:
    """A function from a JSON value to the values the expression makes of it; it raises JqError where it fails on one.

    Raises:
        InputError: the expression is none.
        ReasonctlError: neither binding is installed.
    """
    try:
        run, error_types = _with_jq(expression)
    except ImportError:
        try:
            run, error_types = _with_pyjq(expression)
        except ImportError:
            raise ReasonctlError("--jq needs the package jq (or pyjq); pip install jq") from None

    def each(value: Any) -> Iterator[Any]:
        try:
            yield from run(value)
        except error_types as error:
            raise JqError(" ".join(str(error).split())) from None

    return each


def _with_jq(expression: str) -> tuple[Callable[[Any], Iterator[Any]], tuple[type[Exception], ...]]:
    import jq

    try:
        program = jq.compile(expression)
    except ValueError as error:
        raise _bad(expression, error) from None
    return lambda value: iter(program.input_value(value)), (ValueError,)


def _with_pyjq(expression: str) -> tuple[Callable[[Any], Iterator[Any]], tuple[type[Exception], ...]]:
    import pyjq

    try:
        program = pyjq.compile(expression)
    except ValueError as error:
        raise _bad(expression, error) from None
    return lambda value: iter(program.all(value)), (ValueError, pyjq.ScriptRuntimeError)


def _bad(expression: str, error: Exception) -> InputError:
    return InputError(f"{expression!r} is no jq expression ({' '.join(str(error).split())})", source="--jq")
