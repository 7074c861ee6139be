"""The tables that `gate` runs: their keys are the options of the commands, their values checked."""

from __future__ import annotations

import glob
import inspect
import json
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin, get_type_hints

from ..budgets.document import Entry
from ..checks.expect import STATES, Expect, ExpectedState
from ..errors import InputError
from ..settings import settings as values
from ..settings.find import refusal
from ..settings.settings import Table

if TYPE_CHECKING:
    from ..checks.report import Report
    from ..parsers.target import Target

_RENAMED: Mapping[str, Mapping[str, str]] = {"validate-config": {"config": "budget"}}
"""Parameters that a table calls otherwise, by command."""
_LEFT_OUT = ("options", "print_", "model_map")
"""Parameters that no table has: `[models]` is the map of all tables."""
_REQUIRED: Mapping[str, str] = {"replay": "traces", "validate-config": "budget"}
_OF_ALL = ("target", "vllm")
_SHOWN = ("model", "lab", "serve", "paths", "file", "name", "budget", "traces", "endpoint", "parser")
"""Keys that tell tables of one command apart, the first that is there names the run."""


@dataclass(frozen=True)
class Run:
    """One table, ready to run.

    Args:
        command: its name.
        call: the command, without the common options.
        arguments: what it is called with.
        target: the table's own server to judge by.
        vllm: the table's own vLLMs.
        expect: what must hold of the model, of an `[[audit]]` table.
        nothing: patterns of traces that match no file, beside others that do.
        table: where it stands.
    """

    command: str
    call: Callable[..., Report]
    arguments: Mapping[str, Any]
    target: Target | None
    vllm: tuple[str, ...]
    expect: Expect | None
    nothing: tuple[str, ...]
    table: Table

    @property
    def name(self) -> str:
        """`audit models/qwen3`: the command and what it is about."""
        keys = self.table.keys
        about = next((keys[key].value.plain() for key in _SHOWN if key in keys), None)
        text = ", ".join(map(str, about)) if isinstance(about, list) else about
        return f"{self.command} {text}" if text is not None else self.command


def run_of(table: Table, command: Callable[..., None]) -> Run:
    """A table as a call of its command. The working directory is the settings file's folder.

    Args:
        table: as it stands in the file.
        command: the command, as the command line has it.

    Raises:
        InputError: an unknown key, a value of a wrong type, a key that is missing, traces that match no file.
    """
    call: Callable[..., Report] = inspect.unwrap(command)
    parameters = _parameters(table.command, call)
    known = (*parameters, *_OF_ALL, *(("expect",) if table.command == "audit" else ()))
    what = f"[[{table.command}]]"
    values.require_known(table.keys, known, what)
    required = _REQUIRED.get(table.command)
    if required is not None and required not in table.keys:
        raise refusal(f"{what} without {required}", table.place, mend=f"add {required} = ...")
    arguments: dict[str, Any] = {}
    nothing: tuple[str, ...] = ()
    for key, entry in table.keys.items():
        if key in parameters:
            name, kind = parameters[key]
            arguments[name] = _value(entry, kind)
    if table.command == "replay":
        arguments["traces"], nothing = _matching(table.keys["traces"])
    for parameter in inspect.signature(call).parameters.values():
        if parameter.name != "options" and parameter.default is not inspect.Parameter.empty:
            arguments.setdefault(parameter.name, parameter.default)
    return Run(
        table.command,
        call,
        arguments,
        _target(table.keys.get("target")),
        tuple(values.texts(table.keys["vllm"])) if "vllm" in table.keys else (),
        _expect(table.keys["expect"]) if "expect" in table.keys else None,
        nothing,
        table,
    )


def _parameters(command: str, call: Callable[..., Report]) -> dict[str, tuple[str, Any]]:
    """Key of the table, to the parameter's name and type."""
    hints = get_type_hints(call, include_extras=True)
    renamed = _RENAMED.get(command, {})
    found = {}
    for name in inspect.signature(call).parameters:
        if name not in _LEFT_OUT:
            key = renamed.get(name, name.rstrip("_").replace("_", "-"))
            found[key] = (name, _plain(hints[name]))
    return found


def _plain(hint: Any) -> Any:
    """`list[str]` of `Annotated[list[str] | None, ...]`."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) in (Union, types.UnionType):
        hint = next(one for one in get_args(hint) if one is not type(None))
    return hint


def _value(entry: Entry, kind: Any) -> Any:
    if entry.key == "chat-template-kwargs":
        return json.dumps(values.table(entry).plain()) if entry.value.entries is not None else values.text(entry)
    if kind is bool:
        return values.flag(entry)
    if kind is int:
        return values.number(entry)
    if kind is Path:
        return Path(values.text(entry))
    if kind == list[int]:
        return values.numbers(entry)
    if entry.key == "budget":
        nodes = entry.value.items or (entry.value,)
        budgets = [one for node in nodes for one in _budgets(Entry(entry.key, node.location, node))]
        if kind != list[str] and len(budgets) > 1:
            raise refusal("budget is a list, and one is judged here", entry.location, mend="write a table for each")
        return budgets if kind == list[str] else budgets[0]
    return values.texts(entry) if kind == list[str] else values.text(entry)


def _budgets(entry: Entry) -> list[str]:
    """A budget: a number of tokens, the file that has it, or a pattern of such files."""
    if type(entry.value.scalar) is int:
        return [str(entry.value.scalar)]
    found = _files(values.text(entry))
    if not found:
        raise _no_file(values.text(entry), entry)
    return found


def _matching(entry: Entry) -> tuple[list[str], tuple[str, ...]]:
    """The files that patterns name, and the patterns that match none beside others that do."""
    patterns = values.texts(entry)
    if not patterns:
        raise refusal("traces is empty", entry.location, mend='write traces = ["traces/*.jsonl"]')
    matches = {pattern: _files(pattern) for pattern in patterns}
    found = list(dict.fromkeys(file for files in matches.values() for file in files))
    if not found:
        raise _no_file(", ".join(patterns), entry)
    return found, tuple(pattern for pattern, files in matches.items() if not files)


def _no_file(pattern: str, entry: Entry) -> InputError:
    return refusal(f"{pattern}: no file matches", entry.location, mend="patterns are relative to this file's folder")


def _files(pattern: str) -> list[str]:
    if not glob.has_magic(pattern) or Path(pattern).exists():
        return [pattern]
    return sorted(file for file in glob.glob(pattern, recursive=True) if Path(file).is_file())  # noqa: PTH207  (absolute ones too)


def _target(entry: Entry | None) -> Target | None:
    if entry is None:
        return None
    from ..parsers.target import parse_target

    try:
        return parse_target(values.text(entry))
    except InputError as error:
        raise refusal(error.message, entry.location, mend=error.mend or "use vllm") from None


def _expect(entry: Entry) -> Expect:
    keys = values.fields(values.table(entry), ("parser", "states"), "expect")
    states = values.table(keys["states"]).fields() if "states" in keys else {}
    parser = keys.get("parser")
    return Expect(
        parser=values.text(parser) if parser is not None else None,
        parser_at=parser.location if parser is not None else None,
        states=tuple(_expected(one) for one in states.values()),
    )


def _expected(entry: Entry) -> ExpectedState:
    try:
        variant = json.loads(entry.key)
    except (ValueError, RecursionError):
        variant = None
    if not isinstance(variant, dict):
        mend = """write the kwargs as JSON: '{"enable_thinking": false}' = "closed\""""
        raise refusal(f"{entry.key!r} is no JSON object", entry.location, mend=mend)
    state = values.text(entry)
    if state not in STATES:
        raise refusal(f"{state!r} is no prompt state", entry.location, mend=f"use {', '.join(STATES)}")
    return ExpectedState(variant, state, entry.location)
