"""The settings of a call: of the file it names or finds, with what the command line and the environment say first."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..errors import InputError
from ..settings.find import find, refusal
from ..settings.settings import Settings, read_settings
from ..settings.suppress import Suppressions
from .paths import report_base

if TYPE_CHECKING:
    from ..parsers.target import Target

PREFIX = "REASONCTL_"
_OTHERS = ("REASONCTL_VLLM_SECONDS",)


def load_settings(config: Path | None, no_config: bool) -> Settings:
    """The settings to go by. Raises InputError where the file is wrong, or is both named and refused."""
    if no_config:
        if config is not None:
            raise InputError("it is named, and --no-config forbids it", source="--config", mend="leave one of them out")
        return Settings()
    return read_settings(find(Path.cwd(), config))


def base_of(settings: Settings) -> Path:
    """The folder that the paths of reports are relative to: the settings file's, else the repository's top."""
    return settings.base.resolve() if settings.base is not None else report_base(Path.cwd())


def suppressions(settings: Settings, given: str | None) -> Suppressions:
    """The ignores of the settings and the baseline, the one that is given before the file's.

    Raises:
        InputError: the baseline is missing or is none.
    """
    baseline = None
    if given is not None or settings.baseline is not None:
        from ..settings.baseline import read_baseline

        file = baseline_file(settings, given)
        baseline = read_baseline(file, shown=given if given is not None else str(settings.baseline))
    return Suppressions(settings.ignores, baseline, today=date.today())


def baseline_file(settings: Settings, given: str | None) -> Path:
    """Where the baseline is: relative to the working directory if given, to the settings file if that names it."""
    if given is not None:
        return Path(given)
    return (settings.base or Path.cwd()) / str(settings.baseline)


def vllm_of(settings: Settings) -> tuple[str, ...]:
    """The vLLMs to ask where no `--vllm` is given: the environment's one, else the file's."""
    named = os.environ.get(variable("vllm")) or settings.vllm
    return (named,) if named else ()


def fallback_target(settings: Settings) -> Target | None:
    """The file's target, which a server's own evidence beats. Raises InputError where it names no server."""
    if settings.target is None:
        return None
    from ..parsers.target import parse_target

    try:
        return parse_target(settings.target)
    except InputError as error:
        raise refusal(error.message, settings.places["target"], mend=error.mend or "use vllm") from None


def variable(name: str) -> str:
    """The environment's name for a setting: `REASONCTL_FAIL_ON` for `fail-on`."""
    return PREFIX + name.upper().replace("-", "_")


def note_near_misses(known: Iterable[str]) -> None:
    """A note on stderr for every `REASONCTL_` variable that is a near miss of one that exists."""
    names = [name.removeprefix(PREFIX) for name in (*map(variable, known), *_OTHERS)]
    for name in sorted(os.environ):
        given = name.removeprefix(PREFIX)
        if given != name and given not in names:
            near = difflib.get_close_matches(given, names, 1, 0.7)
            if near:
                typer.echo(f"reasonctl: {name} is no setting; did you mean {PREFIX}{near[0]}?", err=True)
