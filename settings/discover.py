"""What a project has to check: its servers, model folders, traces and budgets, found by looking into its files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ..budgets.config import read_config
from ..budgets.dialects import EFFORTS
from ..errors import InputError
from ..serve.command import ServeCommand
from ..serve.read import read_folder, walk
from ..traces.read import read_traces
from ..traces.trace import Trace

_MODEL_FILES = ("chat_template.jinja", "tokenizer_config.json", "tokenizer.json", "tekken.json")
_TRACES = (".jsonl", ".ndjson", ".sse", ".har")
_PACKED = (".gz", ".zst")
_BUDGETS = (".json", ".yaml", ".yml", ".toml")
_LARGEST_BUDGET = 64 * 1024
"""Bytes of a file that is looked into for a budget."""


@dataclass(frozen=True, slots=True)
class Served:
    """A file with servers, the models they serve by the names it gives them, and the name of each."""

    file: str
    models: tuple[str, ...]
    servers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Discovered:
    """What was found below a folder; paths are relative to it, with `/`.

    `models` are folders with a tokenizer or a chat template; `known` the ones among them that a server's model is, by
    the server's name for it; `missing` the names of servers' models that no folder has.
    """

    served: tuple[Served, ...]
    models: tuple[str, ...]
    known: dict[str, str]
    missing: tuple[str, ...]
    traces: tuple[str, ...]
    budgets: tuple[str, ...]
    unread: tuple[str, ...]

    @property
    def empty(self) -> bool:
        return not (self.served or self.models or self.traces or self.budgets)

    @property
    def alone(self) -> tuple[str, ...]:
        """Models that no server serves."""
        return tuple(model for model in self.models if model not in self.known.values())


def discover(folder: Path) -> Discovered:
    """Look through everything below a folder, hidden folders and environments apart.

    Raises:
        InputError: it holds more files than a project has.
    """
    servers, unread = read_folder(str(folder))
    files: dict[str, list[ServeCommand]] = {}
    for server in servers:
        if isinstance(server, ServeCommand):
            files.setdefault(_below(server.location.path, folder), []).append(server)
    models = tuple(_models(folder))
    names = dict.fromkeys(command.model for commands in files.values() for command in commands if command.model)
    known = {name: found for name in names if (found := _folder_of(name, models)) is not None}
    return Discovered(
        served=tuple(
            Served(
                file,
                tuple(dict.fromkeys(command.model for command in commands if command.model)),
                tuple(command.name for command in commands),
            )
            for file, commands in sorted(files.items())
        ),
        models=models,
        known=known,
        missing=tuple(name for name in names if name not in known and not (folder / name).is_dir()),
        traces=tuple(_patterns([file for file in _files(folder, _TRACES) if _is_trace(folder / file)], folder)),
        budgets=tuple(file for file in _files(folder, _BUDGETS) if _is_budget(folder / file)),
        unread=tuple(f"{_below(one.location.path, folder)}:{one.location.line}: {one.reason}" for one in unread),
    )


def _below(path: str, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def _models(folder: Path) -> Iterator[str]:
    for root, files in walk(folder):
        if any(name in files for name in _MODEL_FILES) and root != folder:
            yield root.relative_to(folder).as_posix()


def _folder_of(name: str, models: tuple[str, ...]) -> str | None:
    """The one model folder that is called as a server's model is: as a whole, or by its last part."""
    last = PurePosixPath(name).name.lower()
    alike = [model for model in models if model == name or PurePosixPath(model).name.lower() == last]
    return alike[0] if len(alike) == 1 else None


def _files(folder: Path, suffixes: tuple[str, ...]) -> Iterator[str]:
    for root, files in walk(folder):
        if any(name in files for name in _MODEL_FILES) and root != folder:
            continue
        for name in files:
            if PurePosixPath(_unpacked(name)).suffix.lower() in suffixes and (root / name).is_file():
                yield (root / name).relative_to(folder).as_posix()


def _unpacked(name: str) -> str:
    return name.rsplit(".", 1)[0] if name.lower().endswith(_PACKED) else name


def _is_trace(path: Path) -> bool:
    """Whether its first value is a recording; request bodies and data sets are none."""
    try:
        return isinstance(next(iter(read_traces(str(path))), None), Trace)
    except InputError:
        return False


def _is_budget(path: Path) -> bool:
    """A file with a thinking budget: a map of efforts, one under its own key, or any in a file that is called so."""
    if path.stat().st_size > _LARGEST_BUDGET:
        return False
    try:
        config = read_config(str(path))
    except InputError:
        return False
    budget = config.budget
    if budget is None or config.command is not None:
        return False
    own_key = config.where != "the map itself" and config.form in ("map", "generation_config")
    efforts = budget.entries is not None and all(entry.key in EFFORTS for entry in budget.entries)
    return own_key or efforts or ("budget" in path.name.lower() and config.form in ("map", "scalar"))


def _patterns(files: list[str], folder: Path) -> Iterator[str]:
    """Patterns for files: `traces/*.jsonl` where it means just those, else the files themselves."""
    groups: dict[tuple[str, str], list[str]] = {}
    for file in files:
        name = PurePosixPath(file)
        groups.setdefault((str(name.parent), "".join(name.suffixes[-1:])), []).append(file)
    for (parent, suffix), members in sorted(groups.items()):
        alike = [path.name for path in (folder / parent).glob(f"*{suffix}")]
        if len(members) > 1 and len(alike) == len(members):
            yield f"*{suffix}" if parent == "." else f"{parent}/*{suffix}"
        else:
            yield from members
