"""The command line: one file per command. It turns arguments into calls and reports into text, and judges nothing."""

from __future__ import annotations

import os
import sys

import typer

from .. import __version__
from ..errors import ReasonctlError
from . import audit, explain, parsers, render, replay, rules, validate_config

app = typer.Typer(
    name="reasonctl",
    help="Do a reasoning model's chat template, vLLM's --reasoning-parser and the thinking budget agree?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", help="Print the version and stop.", is_eager=True),
) -> None:
    if version:
        typer.echo(f"reasonctl {__version__}")
        raise typer.Exit


app.command("audit")(audit.audit)
app.command("render")(render.render)
app.command("replay")(replay.replay)
app.command("validate-config")(validate_config.validate_config)
app.command("parsers")(parsers.parsers)
app.command("rules")(rules.rules)
app.command("explain")(explain.explain)


def main() -> None:
    """Run the command line. Exit codes are those of `docs/exit-codes.md`; a traceback only with `--debug`."""
    debug = "--debug" in sys.argv[1:]
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # `reasonctl ... | head`: whoever read us has what it wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except ReasonctlError as error:
        if debug:
            raise
        typer.echo(f"reasonctl: {error}", err=True)
        sys.exit(error.exit_code)
    except Exception as error:
        if debug:
            raise
        text = " ".join(f"{type(error).__name__}: {error}".split())
        typer.echo(f"reasonctl: internal error, {text}; --debug shows where", err=True)
        sys.exit(3)
