"""Bars on stderr: while long files are read, and while a parser is put to the test."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer

_LONG = 4 << 20
"""Bytes of input from which on a terminal gets a progress bar."""


class Progress:
    """A bar on stderr, where that is a terminal and the input is long."""

    def __init__(self, paths: Sequence[str], *, shown: bool) -> None:
        sizes = {path: Path(path).stat().st_size for path in paths if path != "-" and Path(path).is_file()}
        self._sizes = sizes
        self._shown = shown and sys.stderr.isatty() and sum(sizes.values()) > _LONG
        self._bar: Any = None
        self._task: Any = None
        self._before = 0

    def __enter__(self) -> Progress:
        if self._shown:
            from rich.console import Console
            from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("reading", total=sum(self._sizes.values()))
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def watch(self, path: str) -> Callable[[int], None] | None:
        """What is called with the bytes read of this file; None where nothing is shown."""
        if self._bar is None or path not in self._sizes:
            return None
        before = self._before
        self._before += self._sizes[path]
        return lambda count: self._bar.update(self._task, completed=before + count)


class Steps:
    """How far a long piece of work is: a bar on a terminal, else a line where a part of it begins.

    Args:
        title: what is worked on.
        shown: whether anything is said.
    """

    def __init__(self, title: str, *, shown: bool) -> None:
        self._title = title
        self._shown = shown
        self._tty = sys.stderr.isatty()
        self._bar: Any = None
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> Steps:
        if self._shown and self._tty:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, what: str, done: int, of: int) -> None:
        """So much of `what` is done."""
        new = what not in self._tasks
        if new:
            self._tasks[what] = None
        if self._bar is not None:
            if new:
                self._tasks[what] = self._bar.add_task(f"{self._title}: {what}", total=of)
            self._bar.update(self._tasks[what], completed=done)
        elif new and self._shown:
            typer.echo(f"reasonctl: {self._title}: {of:,} {what}", err=True)
