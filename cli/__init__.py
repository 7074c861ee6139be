"""The command line: one file per command. It turns arguments into calls and reports into text, and judges nothing."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any, NoReturn

import typer

from .. import __version__
from ..errors import ReasonctlError
from . import (
    audit,
    baseline,
    check_parser,
    completion,
    config,
    doctor,
    explain,
    gate,
    init,
    lab,
    new_parser,
    parsers,
    record,
    render,
    replay,
    rules,
    validate_config,
    verify,
    vllm,
)

app = typer.Typer(
    name="reasonctl",
    help="Do a reasoning model's chat template, vLLM's --reasoning-parser and the thinking budget agree?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"reasonctl {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", help="Print the version and stop.", callback=_version, is_eager=True
    ),
) -> None:
    pass


CHECK, LOOK, SET_UP = "Check", "Look up", "Set up"
app.command("audit", rich_help_panel=CHECK)(audit.audit)
app.command("replay", rich_help_panel=CHECK)(replay.replay)
app.command("validate-config", rich_help_panel=CHECK)(validate_config.validate_config)
app.command("verify", rich_help_panel=CHECK)(verify.verify)
app.command("check-parser", rich_help_panel=CHECK)(check_parser.check_parser)
app.command("gate", rich_help_panel=CHECK)(gate.gate)
app.command("render", rich_help_panel=LOOK)(render.render)
app.command("record", rich_help_panel=LOOK)(record.record)
app.command("parsers", rich_help_panel=LOOK)(parsers.parsers)
app.command("rules", rich_help_panel=LOOK)(rules.rules)
app.command("explain", rich_help_panel=LOOK)(explain.explain)
app.command("doctor", rich_help_panel=LOOK)(doctor.doctor)
app.command("init", rich_help_panel=SET_UP)(init.init)
app.add_typer(config.app, name="config", rich_help_panel=SET_UP)
app.add_typer(baseline.app, name="baseline", rich_help_panel=SET_UP)
app.command("new-parser", rich_help_panel=SET_UP)(new_parser.new_parser)
app.add_typer(lab.app, name="lab", rich_help_panel=SET_UP)
app.add_typer(vllm.app, name="vllm", rich_help_panel=SET_UP)


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""What typer raises for a wrong call: click's own class, or that of the copy of click newer releases carry."""


def main() -> None:
    """Run the command line. Exit codes are those of the README; a traceback only with `--debug`."""
    debug = "--debug" in sys.argv[1:]
    _open_closed_streams()
    try:
        code = _command()(standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except SystemExit as stop:
        if not isinstance(stop.__context__, BrokenPipeError):
            raise
        _reader_left()
    except BrokenPipeError:
        _reader_left()
    except KeyboardInterrupt:
        sys.exit(130)
    except _UsageError as error:
        _refuse(error)
    except ReasonctlError as error:
        if debug:
            sys.excepthook(*sys.exc_info())
        typer.echo(f"reasonctl: {error}", err=True)
        sys.exit(error.exit_code)
    except Exception as error:
        if debug:
            sys.excepthook(*sys.exc_info())
        if isinstance(error, OSError) and error.errno in _NO_ROOM and error.filename is None:
            _swallow_output()
            typer.echo(f"reasonctl: standard output: cannot be written: {error.strerror}; make room", err=True)
            sys.exit(2)
        text = " ".join(f"{type(error).__name__}: {error}".split())
        typer.echo(f"reasonctl: internal error, {text}; --debug shows where", err=True)
        sys.exit(3)


def _command() -> Any:
    """The command line as it is called; where the shell asks for completions, with what it may offer."""
    if not completion.asked():
        return app
    command = typer.main.get_command(app)
    completion.offer(command)
    return command


def _refuse(error: Any) -> NoReturn:
    """A wrong call is one line that says what is wrong and where the options are listed; no call at all is the help."""
    message = " ".join(error.format_message().split())
    if message:  # a bare `reasonctl` has none: typer has printed the help by now
        named = [word for word in sys.argv[1:2] if any(word == known.name for known in app.registered_commands)]
        command = error.ctx.command_path if error.ctx else " ".join(["reasonctl", *named])
        typer.echo(f"{command}: {message.rstrip('.')}; see {command} --help", err=True)
    sys.exit(2)


def _open_closed_streams() -> None:
    """`reasonctl ... >&-`: what the caller closed reads as empty and swallows output; no file gets its number."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def _reader_left() -> NoReturn:
    """`reasonctl ... | head`: whoever read us has what it wanted. Exit as a process that SIGPIPE ended."""
    _swallow_output()
    sys.exit(141)


def _swallow_output() -> None:
    """What is still to be flushed to standard output at the end goes nowhere, and fails no more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
