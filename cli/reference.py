"""docs/reference/commands.md: every command with its arguments and options, from the command line itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .options import Group

_MADE = "Made from the command line's own help by `python tests/readme.py --write`; `--help` prints the same."


def command_page() -> str:
    """The page. Options that all checking commands share stand once, at its end."""
    from typer.main import get_command

    from . import app

    root = get_command(app)
    lines = ["# Commands", "", _MADE, "", "| option of `reasonctl` itself | what it is | default |", "|---|---|---|"]
    lines += [*(_row(one) for one in root.params if _listed(one)), ""]
    common: dict[str, Any] = {}
    for name, command in _commands(root, "reasonctl"):
        lines += [f"## {name}", "", *_told(command.help or ""), "", "```", _synopsis(name, command), "```", ""]
        own = [one for one in command.params if _listed(one)]
        common |= {one.name: one for one in own if _shared(one)}
        rows = [_row(one) for one in own if not _shared(one)]
        if rows:
            lines += ["| argument or option | what it is | default |", "|---|---|---|", *rows, ""]
        if any(map(_shared, own)):
            lines += ["It also takes the [options of every checking command](#options-of-every-checking-command).", ""]
    lines += ["## Options of every checking command", "", "| option | what it is | default | environment |"]
    lines += ["|---|---|---|---|"]
    lines += [f"{_row(one)} {f'`{one.envvar}`' if one.envvar else ''} |" for one in common.values()]
    return "\n".join(lines) + "\n"


def _commands(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if command.hidden:
            continue
        if hasattr(command, "commands"):
            yield from _commands(command, f"{prefix} {name}")
        else:
            yield f"{prefix} {name}", command


def _told(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.strip().splitlines()]


def _synopsis(name: str, command: Any) -> str:
    words = [name]
    for one in command.params:
        if one.param_type_name == "argument":
            metavar = _metavar(one)
            words.append(metavar if one.required or metavar.startswith("[") else f"[{metavar}]")
        elif one.required:
            words.append(f"{one.opts[0]} {_metavar(one)}")
    return " ".join([*words, "[OPTIONS]"])


def _listed(parameter: Any) -> bool:
    return not getattr(parameter, "hidden", False) and parameter.name != "help"


def _shared(parameter: Any) -> bool:
    return getattr(parameter, "rich_help_panel", None) == Group


def _row(parameter: Any) -> str:
    metavar = _metavar(parameter)
    if parameter.param_type_name == "argument":
        shown = _code(metavar)
    else:
        names = ", ".join([*parameter.opts, *parameter.secondary_opts])
        shown = _code(names if parameter.is_flag else f"{names} {metavar}")
        shown += " (repeatable)" if parameter.multiple and "repeatable" not in str(parameter.help).lower() else ""
    said = str(parameter.help or "").replace("<", "&lt;")
    return f"| {_cell(shown)} | {_cell(said)} | {_cell(_default(parameter))} |"


def _metavar(parameter: Any) -> str:
    return str(parameter.metavar or (parameter.name.upper() if parameter.param_type_name == "argument" else "X"))


def _default(parameter: Any) -> str:
    shown = getattr(parameter, "show_default", None)
    if isinstance(shown, str):
        return shown
    default = parameter.default
    if default in (None, (), [], False, "") or shown is False or parameter.required:
        return ""
    return ", ".join(map(str, default)) if isinstance(default, list | tuple) else str(default)


def _code(text: str) -> str:
    """A code span for a table: within backquotes, renderers do not agree on how a bar is written."""
    return f"<code>{text.replace('&', '&amp;').replace('<', '&lt;').replace('|', '&#124;')}</code>"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
