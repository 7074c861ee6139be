"""JSON as recordings hold it: one error type with a reason that can be shown, and nothing lost in silence."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from itertools import chain
from typing import Any


class NotJsonError(ValueError):
    """A text is no JSON, or no whole one; the message says why and at which column. `position` is that character's."""

    def __init__(self, message: str, position: int = 0) -> None:
        super().__init__(message)
        self.position = position


class BadValueError(NotJsonError):
    """A whole JSON value that cannot be taken as it stands: a key twice, a number too long. It ends at `end`."""

    def __init__(self, message: str, end: int) -> None:
        super().__init__(message, end)
        self.end = end


def loads(text: str) -> Any:
    """The JSON value that a text is. Raises NotJsonError, a BadValueError where only the value is at fault."""
    with suppress(StopIteration, ValueError, RecursionError):  # said below
        value, end = _SCAN(text, 0)
        if end == len(text) and _has_each_key_once(text, value):
            return value  # nothing stands around it, as on nearly every line
    try:
        return _STRICT.decode(text)
    except json.JSONDecodeError as error:
        raise NotJsonError(f"{_said(error)}, column {error.colno}", error.pos) from None
    except (ValueError, RecursionError) as error:
        raise BadValueError(_fault(error), len(text)) from None


def raw_decode(text: str, start: int) -> tuple[Any, int]:
    """(the value that starts at `start`, where it ends). Raises as `loads`, without a column."""
    with suppress(StopIteration, ValueError, RecursionError):  # said below
        value, end = _SCAN(text, start)
        if _has_each_key_once(text[start:end], value):
            return value, end
    try:
        return _STRICT.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise NotJsonError(_said(error), error.pos) from None
    except RecursionError as error:
        raise NotJsonError(_fault(error), start) from None
    except ValueError as error:
        try:
            _, end = _LENIENT.raw_decode(text, start)
        except json.JSONDecodeError as cut:
            raise NotJsonError(_said(cut), cut.pos) from None
        except RecursionError as deep:
            raise NotJsonError(_fault(deep), start) from None
        raise BadValueError(_fault(error), end) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _TwiceError(f"the key {twice!r} stands twice in one object")
    return found


class _TwiceError(ValueError):
    pass


def _has_each_key_once(text: str, value: Any) -> bool:
    """Whether the value has as many pairs as its text has keys. False also where that cannot be told by counting.

    A key's closing quote stands before a colon. So do a quote inside a text, which has a backslash before it, and the
    opening quote of a text that begins with a colon.
    """
    if any(sign in text for sign in _UNSURE) or any(text.count(sign) != text.count(f"\\{sign}") for sign in _APART):
        return False
    left = text.count('":') - text.count('\\":')
    level = [value]
    while left > 0 and level:
        objects = [one for one in level if type(one) is dict]
        lists = [one for one in level if type(one) is list]
        inside = [*chain.from_iterable(map(dict.values, objects)), *chain.from_iterable(lists)]
        texts = [one for one in inside if type(one) is str]
        left -= sum(map(len, objects)) + "\0".join(("", *chain.from_iterable(objects), *texts)).count("\0:")
        level = [one for one in inside if type(one) in _HOLDERS]
    return left == 0


_HOLDERS = (dict, list)
_UNSURE = ('\\\\"', "\\u0000")
"""With these in it counting may be wrong."""
_APART = ('" :', '"\t:', '"\n:', '"\r:')
"""A key whose colon stands apart."""
_STRICT = json.JSONDecoder(object_pairs_hook=_unique)
_SCAN: Callable[[str, int], tuple[Any, int]] = vars(json.JSONDecoder())["scan_once"]
_LENIENT = json.JSONDecoder(parse_int=len)
"""Finds the end of a value without looking at its keys and numbers."""


def _fault(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return str(error) if isinstance(error, _TwiceError) else "a number too long to be one"


def _said(error: json.JSONDecodeError) -> str:
    """Some of the decoder's own messages end in `at` or `starting at`."""
    return error.msg.removesuffix(" at").removesuffix(" starting")
