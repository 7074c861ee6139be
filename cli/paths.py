"""How paths are written in a report: relative to the repository's top, else to the working directory, with `/`."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from ..checks.finding import Finding
from ..checks.report import Report


def report_base(start: Path) -> Path:
    """The folder that paths are relative to: the nearest one upwards from `start` that holds `.git`, else `start`."""
    start = start.resolve()
    return next((folder for folder in (start, *start.parents) if (folder / ".git").exists()), start)


def relative_path(path: str, base: Path) -> str:
    """`path` as the report writes it. What lies outside `base` or is no file (`-`, `fixture:NAME`) stays."""
    if not Path(path).exists():
        return path
    absolute = Path(os.path.abspath(path))  # noqa: PTH100  (a link stays the name the user gave)
    for candidate in (absolute, absolute.resolve()):
        if candidate.is_relative_to(base):
            return candidate.relative_to(base).as_posix()
    return Path(path).as_posix()


def with_relative_paths(report: Report, base: Path) -> Report:
    """The report with every finding's path, and a model that is a path, written relative to `base`.

    Both enter the fingerprint: so two checkouts, and two ways to type a path, give equal ones.
    """
    return replace(report, findings=tuple(_relative(finding, base) for finding in report.findings))


def _relative(finding: Finding, base: Path) -> Finding:
    place, model = finding.location, finding.subject.get("model")
    if place is not None:
        place = replace(place, path=relative_path(place.path, base))
    subject = finding.subject if not model else {**finding.subject, "model": relative_path(str(model), base)}
    return replace(finding, location=place, subject=subject)
