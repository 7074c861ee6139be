"""The output formats, and writing a report in each that was asked for."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TextIO

from ..checks.report import Report
from ..errors import InputError

NAMES = ("text", "concise", "json", "sarif", "junit", "github", "gitlab", "markdown", "html")
"""What `--format` takes. Each is a module of this room with `render(report) -> str`; json's is `json_report`."""
_WIDTH = 100
"""Columns of a text report that goes to a file or a pipe."""


_FORGES = ("sarif", "github", "gitlab")
"""Formats whose readers look for files from the top of the repository, wherever the settings file is."""


def write(
    report: Report,
    outputs: Sequence[tuple[str, Path | None]],
    *,
    verbose: bool,
    quiet: bool,
    base: Path | None = None,
) -> None:
    """Write `report` in each (format, file or None for stdout). Raises InputError for a file it cannot write.

    `github` also appends to the job's summary, where GitHub Actions names the step's file for it.

    Args:
        report: what to write.
        outputs: the formats, each with its file or None for standard output.
        verbose: text shows what it otherwise counts.
        quiet: text is its last line.
        base: the folder that the report's paths are relative to.
    """
    below = _below(base)
    for name, path in outputs:
        if path is None or str(path) == "-":
            to_stdout(render(report, name, verbose=verbose, quiet=quiet, stream=sys.stdout, below=below))
        else:
            to_file(render(report, name, verbose=verbose, quiet=quiet, below=below), path)
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary and any(name == "github" for name, _ in outputs):
        from . import step_summary

        step_summary.append(report, Path(summary))


def render(
    report: Report,
    name: str,
    *,
    verbose: bool = False,
    quiet: bool = False,
    stream: TextIO | None = None,
    below: str = "",
) -> str:
    """The report in one format.

    Args:
        report: what to show.
        name: of the format.
        verbose: text shows what it otherwise counts.
        quiet: text is its last line.
        stream: the terminal it is meant for, None for a file.
        below: where the folder of the report's paths is in the repository, `deploy/`, empty for its top.
    """
    if name == "text":
        from . import text

        return text.render(report, width=width(stream), colour=colour(stream), verbose=verbose, quiet=quiet)
    module = import_module(f".{'json_report' if name == 'json' else name}", __package__)
    return str(module.render(report, below) if name in _FORGES else module.render(report))


def _below(base: Path | None) -> str:
    """Where `base` is in the repository that holds it: `deploy/`, empty at its top and outside of any."""
    if base is None:
        return ""
    base = base.resolve()
    top = next((folder for folder in (base, *base.parents) if (folder / ".git").exists()), base)
    return "" if top == base else f"{base.relative_to(top).as_posix()}/"


def colour(stream: TextIO | None) -> bool:
    """Colour codes are for terminals only, and not where NO_COLOR (https://no-color.org) or TERM=dumb forbids them."""
    if stream is None or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def width(stream: TextIO | None) -> int:
    """Columns to fill: the terminal's, between 40 and 110; 100 for files and pipes."""
    if stream is None or not stream.isatty():
        return _WIDTH
    return max(40, min(shutil.get_terminal_size((_WIDTH, 24)).columns, 110))


def to_stdout(text: str) -> None:
    """Write `text` as UTF-8 whatever the locale says; a lone surrogate becomes `\\udc80`, which is JSON too."""
    data = text.encode("utf-8", "backslashreplace")
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        sys.stdout.write(data.decode())
        return
    try:
        sys.stdout.flush()
        buffer.write(data)
        buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(
            f"cannot write the report: {error.strerror or error}",
            source="standard output",
            mend="make room, or write to a file with --output",
        ) from error


def to_file(text: str, path: Path) -> None:
    """Write `text` as UTF-8. Raises InputError where that cannot be."""
    try:
        path.write_bytes(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise InputError(
            f"cannot write the report: {error.strerror or error}",
            source=str(path),
            mend="name a file in a folder that exists",
        ) from error
