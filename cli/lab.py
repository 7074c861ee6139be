"""`reasonctl lab`: models that need no weights and speak a script, for a server to be tested with."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from .given import not_empty

app = typer.Typer(help="Models that speak a script, to test a server with.", no_args_is_help=True)


@app.command("build")
def build(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="The folder to write; made where it is not there.")],
    family: Annotated[str, typer.Option(metavar="NAME", help="How the model marks its thinking; see `lab list`.")],
    thinking_tokens: Annotated[
        int, typer.Option(metavar="N", help="Tokens of its thought when no budget cuts it.")
    ] = 40,
) -> None:
    """Write a complete Hugging Face folder that vLLM serves: a tokenizer, a template, and weights of 2 MB."""
    from ..engine.lab import build_lab

    not_empty(DIR=folder, family=family)
    model = build_lab(Path(folder), family, thinking_tokens=thinking_tokens)
    typer.echo(f"{model.name}: {model.style}")
    words = ["vllm", "serve", str(Path(folder)), *model.arguments]
    words += ["--reasoning-parser", model.parser] if model.parser is not None else []
    typer.echo(f"serve it: {shlex.join(words)}")


@app.command("list")
def list_() -> None:
    """List the families."""
    from ..engine.lab_families import FAMILIES

    wide = max(len(family.name) for family in FAMILIES)
    for family in FAMILIES:
        typer.echo(f"{family.name:<{wide}}  {family.style}")
