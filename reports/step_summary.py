"""The job summary of GitHub Actions: Markdown appended to the file that `GITHUB_STEP_SUMMARY` names."""

from __future__ import annotations

from pathlib import Path

from ..checks.report import Report
from ..errors import InputError
from . import markdown

LIMIT = 1024 * 1024
"""Bytes that a step's summary may have in all; with more, GitHub shows none of it ("adding a job summary")."""
_LEAST = 600
"""With less room than this nothing is said: the log has it."""


def append(report: Report, path: Path) -> None:
    """Add the report to the step's summary, cut by whole rows to the room that is left there.

    Raises:
        InputError: the file cannot be written.
    """
    try:
        there = path.read_bytes() if path.exists() else b""
        gap = "" if not there else "\n" if there.endswith(b"\n") else "\n\n"
        room = LIMIT - len(there) - len(gap)
        if room < _LEAST:
            return
        with path.open("ab") as file:
            file.write((gap + markdown.render(report, room)).encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise InputError(
            f"cannot write the job summary: {error.strerror or error}",
            source=str(path),
            mend="let GITHUB_STEP_SUMMARY name a file that can be written",
        ) from error
