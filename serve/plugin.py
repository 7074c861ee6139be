"""What a command's plugin files register (`--reasoning-parser-plugin`, `--tool-parser-plugin`): read, never run."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..errors import InputError
from .command import ServeCommand

PluginFlag = Literal["reasoning-parser-plugin", "tool-parser-plugin"]
_MANAGERS: dict[PluginFlag, str | None] = {"reasoning-parser-plugin": None, "tool-parser-plugin": "ToolParserManager"}
_SHORTEST = 4
"""Characters of a path that vLLM takes for one (vLLM 0.33.0 entrypoints/common/cli_args.py)."""
_KNOWN_PACKAGES = frozenset({"vllm", "torch", "transformers", "tokenizers", "pydantic", "numpy", "regex", "openai"})
"""Packages whose import registers no parser of a user."""


@dataclass(frozen=True, slots=True)
class PluginFile:
    """A plugin's file, as far as it can be read from here.

    Attributes:
        given: the path as the command has it.
        names: what loading the file registers.
        certain: nothing but `names` comes of it; a computed name, or code of other files, may bring more.
        problem: why loading it fails or registers less than it means to.
    """

    given: str
    names: tuple[str, ...] = ()
    certain: bool = False
    problem: str | None = None

    def brings(self, name: str) -> bool | None:
        """Whether it registers this name; None where nobody can tell from here."""
        return True if name in self.names else False if self.certain else None


def plugin_file(command: ServeCommand, flag: PluginFlag) -> PluginFile | None:
    """The file behind this flag, None without one. A file that is not here registers nobody knows what."""
    found = command.flags.get(flag)
    if found is None or (not found.dynamic and len(found.value or "") < _SHORTEST):
        return None
    given = found.value or ""
    if found.dynamic:
        return PluginFile(given)
    for path in (Path(given).expanduser(), Path(command.location.path).parent / given):
        if path.is_file():
            return _read(path, given, _MANAGERS[flag])
    return PluginFile(given)


def _read(path: Path, given: str, manager: str | None) -> PluginFile:
    from ..kit.source import read_plugin_source

    try:
        source = read_plugin_source(path)
    except InputError as error:
        return PluginFile(given, certain=True, problem=f"{given} cannot be loaded: {error.message}")
    own = [one for one in source.registrations if one.wrong_registry == manager]
    reached = [one for one in own if one.not_run is None]
    lost = next((one.not_run for one in own if one.not_run is not None), None)
    known = {*sys.stdlib_module_names, *_KNOWN_PACKAGES}
    foreign = any(each.module.partition(".")[0] not in known for each in source.imports)
    computed = any(one.name is None for one in reached)
    names = tuple(dict.fromkeys(one.name for one in reached if one.name is not None))
    return PluginFile(given, names, certain=not computed and (bool(names) or not foreign), problem=lost)
