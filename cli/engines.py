"""The vLLMs that a call names with `--vllm`: brought up when they are needed, gone when the call is over."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError

if TYPE_CHECKING:
    from ..parsers.bridge.bridge import Bridge
    from ..parsers.bridge.plugin import Plugin
    from ..parsers.bridge.spec import EngineSpec
    from ..parsers.target import Target
    from ..serve.command import ServeCommand

PLUGIN = "reasoning-parser-plugin"


class CalledEngines:
    """What `--vllm` names, in order.

    Args:
        texts: its values.
        quiet: nothing is shown while they come up.
        fallback: the server to judge by where neither the call nor a running vLLM nor a command's evidence says.

    Raises:
        InputError: a value names nothing that is there.
    """

    def __init__(self, texts: Sequence[str] = (), *, quiet: bool = False, fallback: Target | None = None) -> None:
        self._quiet = quiet
        self.fallback = fallback
        self._open: dict[tuple[EngineSpec, Plugin | None], Bridge] = {}
        self.specs: tuple[EngineSpec, ...] = ()
        if texts:
            from ..parsers.bridge.spec import parse_engine

            self.specs = tuple(map(parse_engine, texts))

    def use(self, text: str) -> None:
        """Take this one where the call names none. Raises InputError as the constructor does."""
        from ..parsers.bridge.spec import parse_engine

        self.specs = (parse_engine(text),)

    def open(self, plugin: Plugin | None = None) -> tuple[Bridge, ...]:
        """All of them, up and ready, with the plugin loaded. Raises BridgeError where one does not come up."""
        missing = [spec for spec in self.specs if (spec, plugin) not in self._open]
        if missing:
            from ..parsers.bridge.bridge import open_bridge

            for spec in missing:
                with _Starting(spec.text, shown=not self._quiet):
                    self._open[spec, plugin] = open_bridge(spec, plugin=plugin)
        return tuple(self._open[spec, plugin] for spec in self.specs)

    def first(self, plugin: Plugin | None = None) -> Bridge | None:
        """The first of them, None without any."""
        return next(iter(self.open(plugin)), None)

    def target(self, given: Target | None, command: ServeCommand | None) -> Target:
        """The server to judge by: `--target`, else the running vLLM, else the command's evidence, else the settings'.

        Without any of them it is the newest. A command of another product than vLLM stays what it is.
        """
        from ..parsers.target import Target

        if given is not None:
            return given
        evidence = self.fallback or Target()
        if command is not None and (command.target is not None or command.product != evidence.product):
            evidence = command.judged_as
        bridge = self.first(plugin_of(command)) if self.specs and evidence.product == "vllm" else None
        return (bridge.target if bridge is not None else None) or evidence

    @property
    def described(self) -> Mapping[str, str]:
        """`engine` of a report: the first running one, else the built-in models."""
        from ..parsers.target import BUILTIN_ENGINE

        opened = next(iter(self._open.values()), None) or self.first()
        return opened.described if opened is not None else BUILTIN_ENGINE

    def close(self) -> None:
        """End them all."""
        for bridge in self._open.values():
            bridge.close()
        self._open.clear()


def plugin_of(command: ServeCommand | None) -> Plugin | None:
    """The command's `--reasoning-parser-plugin`, None where it has none (vLLM takes a name of 3 characters for none).

    Raises:
        InputError: the file is not there, beside the command's own file or where it says.
    """
    text = command.text(PLUGIN) if command is not None else None
    if command is None or text is None or len(text) <= 3:
        return None
    from ..parsers.bridge.plugin import read_plugin

    for path in (Path(text).expanduser(), Path(command.location.path).parent / text):
        if path.is_file():
            return read_plugin(path)
    place = command.flags[PLUGIN].location
    raise InputError(
        f"--{PLUGIN} {text}: no such file",
        source=place.path,
        line=place.line,
        column=place.column,
        mend="put the file there, or take the flag away: --vllm loads it",
    )


def names_of(target: Target, running: Sequence[Bridge]) -> tuple[str, ...]:
    """The parsers that the running vLLMs register, else those of the target."""
    from ..parsers import names

    found = dict.fromkeys(name for bridge in running for name in bridge.names())
    return tuple(found) if running else names(target)


def require_name(name: str, target: Target, running: Sequence[Bridge]) -> None:
    """Raise InputError for a parser that neither a running vLLM nor, without one, the target registers.

    A name that a plugin may have brought, had it been loaded, is taken: what it costs is told by each result.
    """
    from ..parsers import near_names, row

    if not running:
        row(name, target)
        return
    if name in names_of(target, running) or any(bridge.plugin_problem for bridge in running):
        return
    near = [other for other in near_names(name, target) if other in names_of(target, running)]
    versions = " or ".join(dict.fromkeys(bridge.described["vllm_version"] for bridge in running))
    mend = f"did you mean {' or '.join(near)}?" if near else f"it has {', '.join(names_of(target, running))}"
    raise InputError(f"vLLM {versions} registers no reasoning parser {name!r}", mend=mend)


class _Starting:
    """A spinner on a terminal while a vLLM is imported: that takes seconds."""

    def __init__(self, text: str, *, shown: bool) -> None:
        self._status: Any = None
        if shown and sys.stderr.isatty():
            from rich.console import Console
            from rich.markup import escape

            self._status = Console(stderr=True).status(f"starting vLLM: {escape(text)}")

    def __enter__(self) -> None:
        if self._status is not None:
            self._status.start()

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()
