"""`reasonctl doctor`: what is installed, which vLLMs and GPUs are there, what is not evaluated and why."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError

if TYPE_CHECKING:
    from ..reports.page import Page

SCHEMA = "reasonctl.doctor/1"


def doctor(
    format_: Annotated[str, typer.Option("--format", metavar="NAME", help="text or json.")] = "text",
) -> None:
    """Show what is installed, which vLLMs and GPUs are there, and what is not evaluated here. Asks no network.

    Exit code 1 where reasonctl itself is broken: a library is missing, too old or cannot be imported, or a trial run
    over a shipped fixture fails.
    """
    from ..reports import formats

    if format_ not in ("text", "json"):
        raise InputError(f"{format_!r} is neither text nor json", source="--format")
    facts = look(Path.cwd())
    if format_ == "json":
        formats.to_stdout(json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
    else:
        formats.to_stdout(_text(facts))
    raise typer.Exit(int(bool(facts["broken"])))


def look(start: Path) -> dict[str, Any]:
    """Everything that `doctor` shows, as its JSON has it.

    Args:
        start: the folder to look from, for settings and a `.vllm`.
    """
    import platform

    from .. import __version__
    from ..checks.rule import all_rules
    from ..doctor import machine, packages, trial
    from ..parsers import ROWS
    from ..parsers.target import NEWEST

    required = packages.requirements()
    libraries = packages.libraries(required or ())
    broken = [f"{library.name}: {library.problem}" for library in libraries if library.problem is not None]
    if required is None:
        broken.append("reasonctl is not installed as a package: pip install reasonctl")
    failed = trial.trial() if not broken else None
    broken += [f"trial run: {failed}"] if failed is not None else []
    return {
        "schema": SCHEMA,
        "reasonctl": {
            "version": __version__,
            "path": str(Path(__file__).resolve().parent.parent),
            "rules": len(all_rules()),
            "parsers": len(ROWS),
            "models": f"vllm=={NEWEST}",
        },
        "python": {
            "version": platform.python_version(),
            "implementation": platform.python_implementation(),
            "executable": sys.executable,
            "platform": f"{platform.system()} {platform.machine()}",
        },
        "libraries": [library.as_json() for library in libraries],
        "extras": [extra.as_json() for extra in packages.extras(required or ())],
        "vllms": [one.as_json() for one in machine.vllms(start)],
        "gpu": machine.gpu().as_json(),
        "tools": [{"name": name, "path": path, "for": machine.TOOLS[name]} for name, path in machine.tools().items()],
        "settings": _settings(start),
        "broken": broken,
    }


def _settings(start: Path) -> dict[str, Any]:
    """The settings file that every command goes by here, with what is wrong with it."""
    from ..settings.find import find
    from ..settings.settings import read_settings

    try:
        settings = read_settings(find(start))
    except InputError as error:
        return {"path": error.source, "tables": None, "problem": str(error)}
    path = str(settings.path) if settings.path is not None else None
    return {"path": path, "tables": len(settings.tables) if path is not None else None, "problem": None}


def _text(facts: dict[str, Any]) -> str:
    from rich.text import Text

    from ..reports import formats
    from ..reports.page import STYLE, Page

    page = Page(width=formats.width(sys.stdout), colour=formats.colour(sys.stdout))
    tool, python = facts["reasonctl"], facts["python"]
    page.fields(
        [
            (
                "reasonctl",
                f"{tool['version']}, {tool['rules']} rules, models of {tool['parsers']} parsers of {tool['models']}",
            ),
            ("", tool["path"]),
            ("Python", f"{python['version']}, {python['implementation']} on {python['platform']}"),
            ("", python["executable"]),
            ("libraries", ", ".join(f"{one['name']} {one['version'] or 'missing'}" for one in facts["libraries"])),
            *_extras(facts["extras"]),
            *_engines(facts),
            ("settings", _settings_line(facts["settings"])),
            ("network", "not asked"),
        ],
        indent=0,
    )
    page.blank()
    _verdict(page, facts["broken"], Text, STYLE)
    return page.text()


def _extras(extras: list[dict[str, Any]]) -> list[tuple[str, str]]:
    there = [extra["name"] for extra in extras if extra["installed"]]
    rows = [("extras", ", ".join(there) or "none")]
    for extra in extras:
        if not extra["installed"]:
            rows.append(("", f"{extra['name']} is missing; not evaluated without it: {extra['without']}"))
            rows.append(("", f"  {extra['install']}"))
    return rows


def _engines(facts: dict[str, Any]) -> list[tuple[str, str]]:
    rows = []
    for one in facts["vllms"]:
        whole = {True: ", can serve", False: ", its Python files", None: ""}[one["complete"]]
        rows.append((f"{one['version']} ({one['where']}{whole})", f"--vllm {one['engine']}"))
    shown = [(("vLLM" if not index else ""), f"{name}: {engine}") for index, (name, engine) in enumerate(rows)]
    if not shown:
        shown = [("vLLM", "none found: the built-in models of its parsers judge; reasonctl vllm install builds one")]
    gpu = facts["gpu"]
    devices = f"{', '.join(gpu['devices'])} ({gpu['seen_by']})" if gpu["present"] else "none: verify serves on the CPU"
    shown.append(("GPU", devices + (f"; {gpu['problem']}" if gpu["problem"] else "")))
    tools = [f"{one['name']} ({one['for']})" for one in facts["tools"] if one["path"] is not None]
    shown.append(("tools", ", ".join(tools) or "neither docker nor kubectl: no --vllm image: or pod: from here"))
    return shown


def _settings_line(settings: dict[str, Any]) -> str:
    if settings["problem"] is not None:
        return str(settings["problem"])
    if settings["path"] is None:
        return "no reasonctl.toml here or above; reasonctl init writes one"
    count = settings["tables"]
    return f"{settings['path']}, {count} table{'' if count == 1 else 's'} for reasonctl gate"


def _verdict(page: Page, broken: list[str], text: Any, style: Any) -> None:
    if not broken:
        page.line(text("OK", style["pass"]), "  a shipped fixture was rendered, tokenized and split as it should be")
        return
    for problem in broken:
        page.line(text("broken", style["error"]), f"  {problem}")
    page.line(text("BROKEN", style["fail"]), "  mend it with: pip install --force-reinstall reasonctl")
