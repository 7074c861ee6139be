"""`reasonctl config show`: the settings that a call here goes by, and where each comes from."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from ..reports import formats
from .settings import base_of, load_settings, variable

if TYPE_CHECKING:
    from ..checks.finding import Location
    from ..settings.settings import Settings

app = typer.Typer(help="The settings file.", no_args_is_help=True)
_DEFAULTS: dict[str, Any] = {
    "target": None,
    "vllm": None,
    "fail-on": "error",
    "min-confidence": "medium",
    "fail-on-incomplete": False,
    "select": None,
    "baseline": None,
}
_FORMATS = ("text", "json")
_WORDS: dict[Any, str] = {None: "not set", True: "true", False: "false"}


@app.callback()
def _root() -> None:
    """The settings file."""


@app.command("show")
def show(
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", envvar=variable("config"), show_envvar=False, help="The settings.")
    ] = None,
    format_: Annotated[str, typer.Option("--format", metavar="text|json", help="How to show them.")] = "text",
) -> None:
    """Say which settings file holds here, what it says, what the environment changes, and which tables gate runs."""
    if format_ not in _FORMATS:
        raise InputError(f"{format_!r} is none of {', '.join(_FORMATS)}", source="--format")
    settings = load_settings(config, no_config=False)
    shown = _shown(settings)
    if format_ == "json":
        formats.to_stdout(json.dumps(shown, indent=1, ensure_ascii=False, default=str) + "\n")
    else:
        formats.to_stdout("".join(f"{line}\n" for line in _lines(shown)))


def _shown(settings: Settings) -> dict[str, Any]:
    base = base_of(settings)

    def place(where: Location) -> str:
        return f"{_relative(Path(where.path), base)}:{where.line}"

    return {
        "schema": "reasonctl.config/1",
        "file": _relative(settings.path, base) if settings.path is not None else None,
        "folder": str(base),
        "settings": {key: _one(key, settings, place) for key in _DEFAULTS},
        "per-rule-severity": dict(settings.severities),
        "models": dict(settings.models),
        "ignore": [
            {
                "rule": one.rule,
                "subject": dict(one.subject),
                "reason": one.reason,
                "expires": one.expires.isoformat() if one.expires else None,
                "from": place(one.place),
            }
            for one in settings.ignores
        ],
        "tables": list(_tables(settings, place)),
    }


def _one(key: str, settings: Settings, place: Any) -> dict[str, Any]:
    """A setting's value and where it is from. The environment's value is as it stands there."""
    name = variable(key)
    if os.environ.get(name):
        return {"value": os.environ[name], "from": name}
    if key in settings.places:
        value = getattr(settings, key.replace("-", "_"))
        return {"value": sorted(value) if key == "select" and value else value, "from": place(settings.places[key])}
    return {"value": _DEFAULTS[key], "from": "default"}


def _tables(settings: Settings, place: Any) -> Iterator[dict[str, Any]]:
    """The tables, each found to be one that can run."""
    from .gate import command_of
    from .tables import run_of

    if settings.base is None:
        return
    with contextlib.chdir(settings.base):
        for table in settings.tables:
            run = run_of(table, command_of(table))
            keys = {key: entry.value.plain() for key, entry in table.keys.items()}
            yield {"command": table.command, "name": run.name, "from": place(table.place), "keys": keys}


def _relative(path: Path, base: Path) -> str:
    return path.relative_to(base).as_posix() if path.is_relative_to(base) else str(path)


def _lines(shown: dict[str, Any]) -> Iterator[str]:
    yield f"file   {shown['file'] or 'none: no reasonctl.toml here or above, and no [tool.reasonctl]'}"
    yield f"paths  relative to {shown['folder']}"
    yield ""
    for key, one in shown["settings"].items():
        value = one["value"]
        text = ", ".join(value) if isinstance(value, list) else _WORDS.get(value, str(value))
        yield f"{key:<20}{text:<28}{one['from']}".rstrip()
    for rule, severity in shown["per-rule-severity"].items():
        yield f"{rule:<20}{severity:<28}per-rule-severity"
    for name, where in shown["models"].items():
        yield f"model {name} is {where}"
    for one in shown["ignore"]:
        about = f" about {json.dumps(one['subject'], ensure_ascii=False)}" if one["subject"] else ""
        until = f" until {one['expires']}" if one["expires"] else ""
        yield f"ignore {one['rule']}{about}{until}: {one['reason']}  ({one['from']})"
    if shown["tables"]:
        yield ""
        yield "gate runs"
        for table in shown["tables"]:
            yield f"  {table['name']}  ({table['from']})"
