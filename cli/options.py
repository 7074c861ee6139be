"""The options that every checking command takes, and what happens with the report it returns."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from ..checks.finding import CONFIDENCES
from ..checks.report import Policy, Report
from ..checks.rule import matching_rules
from ..errors import InputError
from ..reports import formats
from ..settings.settings import FAIL_ON, Settings
from ..settings.suppress import Suppressions
from .engines import CalledEngines
from .paths import with_relative_paths
from .settings import base_of, fallback_target, load_settings, note_near_misses, suppressions, variable, vllm_of

if TYPE_CHECKING:
    from ..parsers.target import Target


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """What the common options say, with the environment and the settings file behind them.

    `target` is None where the call names none (the file's is a fallback of the engines, since a server's own evidence
    beats it); `engines` are those of `--vllm`; `base` is the folder that paths of the report are relative to.
    """

    outputs: tuple[tuple[str, Path | None], ...]
    policy: Policy
    target: Target | None
    quiet: bool
    verbose: bool
    debug: bool
    engines: CalledEngines = field(default_factory=CalledEngines)
    settings: Settings = field(default_factory=Settings)
    known: Suppressions = field(default_factory=lambda: Suppressions(today=date.today()))
    no_config: bool = False
    base: Path = field(default_factory=Path.cwd)
    every_finding: bool = False
    """Every finding is needed: something is put to each of them."""
    variants: tuple[Mapping[str, Any], ...] = ()
    """Chat-template kwargs that an `expect` of the settings speaks of: they are looked at like those of requests."""


def checking(
    command: Callable[..., Report | None],
    *,
    several: bool = False,
    whole: bool = False,
    without: Collection[str] = (),
) -> Callable[..., None]:
    """Give a command the common options; it receives them as the keyword argument `options` and returns its report.

    The wrapper writes the report in every format asked for and exits with the report's code.

    Args:
        command: what is called.
        several: it takes more than one `--vllm`.
        whole: its report is finished: paths are relative, and what is suppressed is marked.
        without: common options that it does not take, by the names of their parameters. Without `baseline` none is
            read; without `format_` it returns None and says itself what there is to say.
    """
    hints = get_type_hints(command, include_extras=True)
    own = [
        parameter.replace(annotation=hints[parameter.name])
        for parameter in inspect.signature(command).parameters.values()
        if parameter.name != "options"
    ]
    common = [parameter for parameter in _common_parameters() if parameter.name not in without]

    @functools.wraps(command)
    def run(**values: Any) -> None:
        given = {parameter.name: values.pop(parameter.name) for parameter in common}
        options = _common(**given)
        if "baseline" in given:
            known = suppressions(options.settings, given["baseline"])
            options = replace(options, known=known, every_finding=bool(known))
        _keep_inputs(values.values(), options.outputs)
        if len(options.engines.specs) > 1 and not several:
            raise InputError("one is compared with nothing here", source="--vllm", mend="give it once")
        try:
            report = command(**values, options=options)
            if report is None:
                return
            if not whole:
                report = options.known.put_to(with_relative_paths(report, options.base))
        finally:
            options.engines.close()
        formats.write(report, options.outputs, verbose=options.verbose, quiet=options.quiet, base=options.base)
        for error in report.refused:
            typer.echo(f"reasonctl: {error}", err=True)
        raise typer.Exit(report.exit_code)

    everything = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*own, *common)]
    run.__signature__ = inspect.Signature(everything)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in everything}
    return run


def _keep_inputs(values: Iterable[Any], outputs: Iterable[tuple[str, Path | None]]) -> None:
    """Raise InputError for a report that would be written over one of the call's own files."""
    given: list[str] = []
    for value in values:
        given += [
            str(each) for each in (value if isinstance(value, list) else [value]) if isinstance(each, (str, Path))
        ]
    for _, file in outputs:
        if file is None or not file.is_file():
            continue
        for text in given:
            try:
                same = Path(text).samefile(file)
            except (OSError, ValueError):  # no path at all
                continue
            if same:
                raise InputError("the report would be written over this input", source=text, mend="name another file")


Group = "Report and exit code"
ENVIRONMENT = (
    "format", "output", "fail-on", "min-confidence", "fail-on-incomplete", "exit-zero", "select", "ignore", "baseline",
    "config", "no-config", "target", "vllm",
)  # fmt: skip
"""Options that a variable of the environment may give: `REASONCTL_FAIL_ON`."""


def _option(name: str, *short: str, **more: Any) -> Any:
    """An option of the common group, with its variable; that of `--vllm` is read with the settings, as one value."""
    named = name in ENVIRONMENT and name != "vllm"
    return typer.Option(
        f"--{name}",
        *short,
        envvar=variable(name) if named else None,
        show_envvar=False,
        rich_help_panel=Group,
        **more,
    )


@functools.cache
def _common_parameters() -> tuple[inspect.Parameter, ...]:
    return tuple(inspect.signature(_common, eval_str=True).parameters.values())


def _common(
    format_: Annotated[
        list[str] | None,
        _option(
            "format",
            metavar="NAME[=FILE]",
            help=f"One of {', '.join(formats.NAMES)}; repeatable; =FILE writes that one to a file.",
        ),
    ] = None,
    output: Annotated[Path | None, _option("output", help="File for the one format without its own.")] = None,
    fail_on: Annotated[
        str | None,
        _option("fail-on", help="Lowest severity that counts: error, warning, info or never.", show_default="error"),
    ] = None,
    min_confidence: Annotated[
        str | None,
        _option("min-confidence", help="Lowest confidence that counts: low, medium or high.", show_default="medium"),
    ] = None,
    fail_on_incomplete: Annotated[
        bool | None,
        _option("fail-on-incomplete", help="Exit 1 where something was not looked at.", show_default=False),
    ] = None,
    exit_zero: Annotated[bool, _option("exit-zero", help="Exit 0 where the findings would make it 1.")] = False,
    select: Annotated[
        list[str] | None, _option("select", help="Only these rules: ids, prefixes or slugs, comma-separated.")
    ] = None,
    ignore: Annotated[list[str] | None, _option("ignore", help="Not these rules: ids, prefixes or slugs.")] = None,
    baseline: Annotated[
        str | None,
        _option(
            "baseline", metavar="FILE", help="Findings it holds do not count; `reasonctl baseline write` makes it."
        ),
    ] = None,
    settings_file: Annotated[
        Path | None,
        _option(
            "config", metavar="FILE", help="The settings to go by.", show_default="the nearest reasonctl.toml upwards"
        ),
    ] = None,
    no_config: Annotated[bool, _option("no-config", help="Go by no settings file.")] = False,
    target: Annotated[
        str | None, _option("target", metavar="SERVER", help="Judge as: vllm, vllm==0.32.0, slimserve.")
    ] = None,
    vllm: Annotated[
        list[str] | None,
        _option(
            "vllm",
            metavar="ENGINE",
            help="A real vLLM runs the parsers: a Python, a virtual environment, DIR:PYTHON, cmd:COMMAND, image:REF or "
            "pod:NAMESPACE/NAME. A result may take REASONCTL_VLLM_SECONDS (60).",
        ),
    ] = None,
    quiet: Annotated[bool, _option("quiet", "-q", help="Only the verdict line.")] = False,
    verbose: Annotated[bool, _option("verbose", "-v", help="Show info findings too.")] = False,
    debug: Annotated[bool, _option("debug", help="A traceback where something fails.")] = False,
) -> CheckOptions:
    from ..parsers.target import parse_target

    note_near_misses(ENVIRONMENT)
    settings = load_settings(settings_file, no_config)
    policy = Policy(
        fail_on=_one_of("--fail-on", fail_on or settings.fail_on or "error", FAIL_ON),
        min_confidence=_one_of("--min-confidence", min_confidence or settings.min_confidence or "medium", CONFIDENCES),
        fail_on_incomplete=bool(settings.fail_on_incomplete if fail_on_incomplete is None else fail_on_incomplete),
        exit_zero=exit_zero,
        select=matching_rules(select, flag="--select") if select else settings.select,
        ignore=matching_rules(ignore or (), flag="--ignore"),
        severities=settings.severities,
    )
    del baseline  # read by whoever takes it
    return CheckOptions(
        outputs=_outputs(format_ or ["text"], output),
        policy=policy,
        target=parse_target(target) if target is not None else None,
        quiet=quiet,
        verbose=verbose,
        debug=debug,
        engines=CalledEngines(vllm or vllm_of(settings), quiet=quiet, fallback=fallback_target(settings)),
        settings=settings,
        no_config=no_config,
        known=Suppressions(settings.ignores, today=date.today()),
        base=base_of(settings),
    )


def _one_of(flag: str, value: str, allowed: tuple[str, ...]) -> Any:
    if value not in allowed:
        raise InputError(f"{value!r} is none of {', '.join(allowed)}", source=flag)
    return value


def _outputs(values: list[str], output: Path | None) -> tuple[tuple[str, Path | None], ...]:
    """(format, file or None for stdout) in the order given. Raises InputError where two would share stdout."""
    pairs: list[tuple[str, Path | None]] = []
    for value in values:
        name, given, file = value.partition("=")
        if given and not file:
            raise InputError(f"{value!r} names no file", source="--format", mend=f"write {name} alone for stdout")
        pairs.append((_one_of("--format", name, formats.NAMES), Path(file) if file else None))
    bare = [index for index, (_, file) in enumerate(pairs) if file is None]
    if len(bare) > 1:
        raise InputError("two formats would share stdout", source="--format", mend="give all but one a file: NAME=FILE")
    if output is not None:
        if not bare:
            raise InputError("every format already has a file of its own", source="--output")
        pairs[bare[0]] = (pairs[bare[0]][0], output)
    files = [file.resolve() for _, file in pairs if file is not None]
    twice = next((file for file in files if files.count(file) > 1 and not file.is_char_device()), None)
    if twice is not None:
        raise InputError(f"two formats would be written to {twice.name}", source="--format", mend="name two files")
    return tuple(pairs)
