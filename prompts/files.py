"""Reads the files of a model, and JSON from anywhere, so that nothing odd about them is silent or brings us down."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import InputError

MODEL_FILES = (
    *("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"),
    *("added_tokens.json", "chat_template.jinja", "chat_template.json", "additional_chat_templates/*.jinja"),
    *("tokenizer.model", "tokenizer.model.v*", "spiece.model", "vocab.json", "vocab.txt", "merges.txt", "*.tiktoken"),
    *("tekken.json", "params.json"),
)
"""All of a model that is ever looked at, as names and patterns inside its folder: no weights."""

_MAX_DEPTH = 200


def read_text(path: Path) -> str:
    """A UTF-8 file. Raises InputError that names the byte or the reason."""
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"byte {error.start} is not UTF-8", source=str(path), mend="save the file as UTF-8") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot be read: {reason}", source=str(path), mend="give a file that is there") from None


def parse_json(text: str, *, source: str, mend: str = "mend the file there", exact: bool = False) -> Any:
    """The value of a JSON text.

    Args:
        text: the JSON.
        source: the file or flag, for the message.
        mend: what to do about text that is no JSON.
        exact: a key given twice and NaN, which JSON does not have, are refused too.

    Raises:
        InputError: it is no JSON, or holds what no server takes: a number or a nesting without end, half a character.
    """
    try:
        value = (
            json.loads(text, object_pairs_hook=_without_doubles, parse_constant=_no_constant)
            if exact
            else json.loads(text)
        )
        if _is_deep(value):
            raise RecursionError
        if "\\ud" in text.lower() or not text.isascii():
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError as error:
        place = (error.lineno, error.colno) if text.strip() else (None, None)
        message = f"not JSON: {error.msg}" if text.strip() else "is empty where JSON is expected"
        raise InputError(message, source=source, line=place[0], column=place[1], mend=mend) from None
    except RecursionError:
        raise InputError("nested too deeply", source=source, mend=mend) from None
    except UnicodeEncodeError:
        raise InputError(
            "holds half a character (a lone surrogate such as \\ud800)", source=source, mend="write whole characters"
        ) from None
    except _AmbiguousError as error:
        raise InputError(str(error), source=source, mend=error.mend) from None
    except ValueError:  # Python's own limit on the digits of an integer
        raise InputError("holds an integer of thousands of digits", source=source, mend=mend) from None
    return value


def json_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file. Raises InputError for anything else."""
    value = parse_json(read_text(path), source=str(path))
    if not isinstance(value, dict):
        raise InputError(
            f"holds {_kind(value)} where a JSON object is expected", source=str(path), mend="write {...} around it"
        )
    return value


def odd_files(folder: Path) -> Iterator[tuple[str, str]]:
    """(name, what is odd) of every entry of a model's folder that has a model file's name and is no file.

    Such an entry reads as absent everywhere else: nothing waits for a pipe or follows a link in a circle.
    """
    for pattern in MODEL_FILES:
        for path in sorted(folder.glob(pattern)) if "*" in pattern else [folder / pattern]:
            odd = _oddity(path)
            if odd is not None:
                yield path.relative_to(folder).as_posix(), odd


def _oddity(path: Path) -> str | None:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return f"it is a link to {path.readlink()}, which is not there" if path.is_symlink() else None
    except OSError as error:
        return f"{error.strerror or error}"
    if stat.S_ISREG(mode):
        return None if os.access(path, os.R_OK) else "permission denied"
    return "it is a folder" if stat.S_ISDIR(mode) else "it is a pipe, a socket or a device, and no file"


def _is_deep(value: Any) -> bool:
    """Nested so deep that code further on, which recurses, might not come back."""
    layer = [value]
    for _ in range(_MAX_DEPTH):
        layer = [
            inner
            for each in layer
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not layer:
            return False
    return True


class _AmbiguousError(ValueError):
    def __init__(self, message: str, mend: str) -> None:
        super().__init__(message)
        self.mend = mend


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in found if keys.count(key) > 1)
        raise _AmbiguousError(f"the key {twice!r} stands there twice", "keep one of the two")
    return found


def _no_constant(word: str) -> Any:
    raise _AmbiguousError(f"{word} is no JSON", "write a number, a text, true, false or null")


def _kind(value: Any) -> str:
    """What a value that is no object is called."""
    if isinstance(value, str | list):
        return "a text" if isinstance(value, str) else "a list"
    return json.dumps(value) if value is None or isinstance(value, bool) else "a number"
