"""`reasonctl new-parser`: a reasoning-parser plugin to start from, for one model."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError
from .given import not_empty

if TYPE_CHECKING:
    from ..kit.traits import Traits
    from ..parsers.markers import MarkerPair
    from ..parsers.row import ParserRow


def new_parser(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name to register: --reasoning-parser NAME.")],
    model: Annotated[str, typer.Option(metavar="X", help="Model folder, hub id, template file or fixture:NAME.")],
    like: Annotated[
        str | None, typer.Option(metavar="NAME", help="A built-in parser whose markers and switches to take over.")
    ] = None,
    start: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The start marker, where the template does not show it.")
    ] = None,
    end: Annotated[str | None, typer.Option(metavar="TEXT", help="The end marker.")] = None,
    output: Annotated[str, typer.Option("--output", "-o", metavar="DIR", help="The folder to write to.")] = ".",
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
) -> None:
    """Write a vLLM plugin that splits what this model writes, and its tests."""
    from ..kit.starting import check_name, write_parser
    from ..kit.traits import read_traits
    from ..prompts.model import load_model

    not_empty(NAME=name, model=model, like=like, start=start, end=end, output=output)
    check_name(name)
    pair, row = _markers(start, end), _row(like)
    traits = read_traits(load_model(model), like=row, markers=pair)
    made = write_parser(name, traits, Path(output), force=force)
    typer.echo(f"{name}: {_said(traits)}")
    typer.echo(f"wrote    {made.plugin}")
    typer.echo(f"         {made.tests}")
    plugin = str(made.plugin)
    served = "MODEL" if model.startswith("fixture:") else model  # a fixture has no weights
    serve = ["vllm", "serve", served, "--reasoning-parser-plugin", plugin, "--reasoning-parser", name]
    typer.echo(f"check it {shlex.join(['reasonctl', 'check-parser', plugin, '--name', name, '--model', model])}")
    typer.echo(f"test it  {shlex.join(['pytest', str(made.tests)])} (with vLLM's Python)")
    typer.echo(f"serve it {shlex.join(serve)}")


def _markers(start: str | None, end: str | None) -> MarkerPair | None:
    from ..parsers.markers import MarkerPair

    if start is None and end is None:
        return None
    if start is None or end is None:
        raise InputError(
            "one marker alone tells nothing", source="--start" if end is None else "--end", mend="give both"
        )
    if start == end or start in end or end in start:
        raise InputError("a marker is part of the other", source="--start", mend="give two that can be told apart")
    return MarkerPair(start, end)


def _row(like: str | None) -> ParserRow | None:
    from ..parsers import row

    return None if like is None else row(like)


def _said(traits: Traits) -> str:
    """What was found, in a line."""
    said = [f"{traits.start} ... {traits.end}", "one token each" if traits.single else "markers of several tokens"]
    said.append("opened by the prompt" if traits.opened else "opened by the model")
    for switch in traits.switches:
        said.append(f"{switch.name} {switch.off!r} is off" + ("" if switch.default_on else ", as is the default"))
    if traits.call is not None:
        said.append(f"{traits.call} ends it too")
    return "; ".join(said)
