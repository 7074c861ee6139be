"""Where the settings are: the nearest `reasonctl.toml`, or `pyproject.toml` with `[tool.reasonctl]`, upwards."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from ..budgets.document import Node, duplicates, locator
from ..budgets.files import read_text
from ..budgets.toml_text import read_toml
from ..checks.finding import Location
from ..errors import InputError

FILE = "reasonctl.toml"
PROJECT = "pyproject.toml"
_SECTION = ("tool", "reasonctl")
_HEADER = re.compile(r"^\s*\[+\s*tool\s*\.\s*reasonctl\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Found:
    """A settings file. `root` is the table that holds the settings: the whole file, or `[tool.reasonctl]`.

    The places of its nodes have the absolute path of the file.
    """

    path: Path
    root: Node

    @property
    def base(self) -> Path:
        """The folder that every path in the file is relative to."""
        return self.path.parent


def find(start: Path, given: Path | None = None) -> Found | None:
    """The settings to go by.

    Args:
        start: the folder to look upwards from.
        given: a file that was named; then none is looked for.

    Raises:
        InputError: the file cannot be read, is no TOML, or holds a key twice; the named one has no settings.
    """
    if given is not None:
        found = _read(given.expanduser().absolute())
        if found is None:
            raise InputError(
                "there is no [tool.reasonctl] in it", source=str(given), mend=f"add the table, or name a {FILE}"
            )
        return found
    start = start.resolve()
    for folder in (start, *start.parents):
        if _is_there(folder / FILE):
            return _read(folder / FILE)
        if (folder / PROJECT).is_file() and (found := _read(folder / PROJECT)) is not None:
            return found
    return None


def _is_there(path: Path) -> bool:
    """Whether the name is taken, be it by a folder or a link that leads nowhere: those are refused, not passed by."""
    return path.exists() or path.is_symlink()


def refusal(message: str, place: Location, *, mend: str) -> InputError:
    """The error for settings that cannot be gone by, at their place in the file."""
    return InputError(message, source=_shown(Path(place.path)), line=place.line, column=place.column, mend=mend)


def _read(path: Path) -> Found | None:
    text = read_text(path, shown=_shown(path))
    if path.name == PROJECT and not _concerns_us(text):
        return None
    try:
        root = read_toml(text, locator(text, str(path)))
    except InputError as error:
        raise InputError(
            error.message, source=_shown(path), line=error.line, column=error.column, mend=error.mend
        ) from None
    twice = next(duplicates(root), None)
    if twice is not None:
        mend = f"keep one of them (the first is on line {twice.first.line})"
        raise refusal(f"{'.'.join(twice.path)} is given twice", twice.last, mend=mend)
    if path.name != PROJECT:
        return Found(path, root)
    for key in _SECTION:
        entry = root.get(key)
        if entry is None:
            return None
        if entry.value.entries is None:
            raise refusal(f"{key} is not a table", entry.location, mend="write [tool.reasonctl] and the settings below")
        root = entry.value
    return Found(path, root)


def _concerns_us(text: str) -> bool:
    """Whether this `pyproject.toml` has our table. One that is no TOML counts where our table's header is in it."""
    if _SECTION[1] not in text:
        return False
    try:
        tool = tomllib.loads(text).get(_SECTION[0])
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        return _HEADER.search(text) is not None
    return isinstance(tool, dict) and _SECTION[1] in tool


def _shown(path: Path) -> str:
    """The file as messages name it: relative to the working directory where it is in it."""
    cwd = Path.cwd()
    return path.relative_to(cwd).as_posix() if path.is_relative_to(cwd) else str(path)
