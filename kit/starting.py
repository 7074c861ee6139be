"""Writes a parser plugin to start from, with its tests."""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError
from ..parsers import ROWS
from .plugin_text import plugin_text
from .tests_text import pytest_text
from .traits import Traits

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class Started:
    """What was written: the plugin, and its tests beside it."""

    plugin: Path
    tests: Path


def check_name(name: str) -> None:
    """Raise InputError for what cannot be a new parser's name."""
    if _NAME.fullmatch(name) is None:
        raise InputError(
            f"{name!r} is no parser name", source="NAME", mend="use letters, digits, dots, dashes and underscores"
        )
    if name in ROWS:
        raise InputError(
            f"vLLM has a parser {name!r} of its own, which a plugin of that name hides",
            source="NAME",
            mend="take another name",
        )


def write_parser(name: str, traits: Traits, folder: Path, *, force: bool = False) -> Started:
    """Write both files.

    Args:
        name: the parser's.
        traits: of the model it is for.
        folder: where to; made where it is not there.
        force: files that are there are replaced.

    Raises:
        InputError: a file is there already, or the folder cannot be written.
    """
    check_name(name)
    stem = f"{re.sub(r'[.-]', '_', name)}_reasoning_parser"
    made = Started(folder / f"{stem}.py", folder / f"test_{stem}.py")
    texts = {made.plugin: plugin_text(name, traits), made.tests: pytest_text(name, stem, traits)}
    there = [path for path in texts if path.exists() or path.is_symlink()]
    if there and not force:
        raise InputError("is there already", source=str(there[0]), mend="give -o another folder, or --force")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            _write(path, text)
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror or error}", source=str(folder), mend="give -o another folder"
        ) from None
    return made


def _write(path: Path, text: str) -> None:
    """All of it or nothing: what was there stays until the new text is on the disk."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
