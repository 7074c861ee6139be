"""`reasonctl baseline write FILE`: what the gate finds today is known; from now on only new findings count."""

from __future__ import annotations

import functools
import os
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from ..checks.finding import Finding
from ..checks.report import Report
from ..errors import InputError
from ..reports import formats
from ..settings.baseline import SCHEMA, baseline_text, read_baseline
from ..settings.suppress import OWN
from .gate import judged
from .given import not_empty
from .options import CheckOptions, checking

app = typer.Typer(help="Findings that are known and do not count.", no_args_is_help=True)
_WITHOUT = ("format_", "output", "baseline", "fail_on_incomplete", "exit_zero", "verbose")


@app.callback()
def _root() -> None:
    """Findings that are known and do not count."""


@app.command("write")
@functools.partial(checking, whole=True, without=_WITHOUT)
def write(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to write it; - is standard output.")],
    *,
    options: CheckOptions,
) -> None:
    """Run the gate and write down the errors and warnings it finds, but for those that are ignored."""
    not_empty(FILE=file)
    path = Path(file)
    if file != "-" and path.exists():
        _is_baseline(path, file)
    report = judged(options)
    if report.refused:
        raise InputError(f"nothing is written, since a table could not be run: {report.refused[0]}", mend="mend that")
    kept = [finding for finding in report.findings if _known(finding, report)]
    text = baseline_text(kept)
    if file == "-":
        formats.to_stdout(text)
        return
    formats.to_file(text, path)
    if not options.quiet:
        counts = Counter(finding.severity for finding in kept)
        told = ", ".join(f"{number} {severity}{'s' * (number != 1)}" for severity, number in sorted(counts.items()))
        typer.echo(f"reasonctl: wrote {file}: {told or 'nothing was found'}", err=True)
        named = options.settings.baseline
        if named is None or (options.base / named).resolve() != path.resolve():
            here = Path(os.path.relpath(path.resolve(), options.base)).as_posix()
            typer.echo(f'reasonctl: to use it, put baseline = "{here}" into the settings file', err=True)


def _known(finding: Finding, report: Report) -> bool:
    """Errors and warnings, and notes where they count; never what the tool says of its own run."""
    grave = finding.severity != "info" or report.policy.fail_on == "info"
    return finding.suppressed is None and finding.rule not in OWN and grave


def _is_baseline(path: Path, shown: str) -> None:
    """Raise InputError for a file that would be lost: one that is no baseline."""
    try:
        read_baseline(path, shown=shown)
    except InputError:
        raise InputError(
            f"it is there, and is no {SCHEMA} file", source=shown, mend="name another file, or remove it"
        ) from None
