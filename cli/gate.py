"""`reasonctl gate`: everything the settings file names, in one run, with one report and one exit code."""

from __future__ import annotations

import contextlib
import functools
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..budgets.document import Entry
from ..checks.finding import Coverage, Finding, Location
from ..checks.report import Report, make_report, ordered
from ..errors import InputError, ReasonctlError
from ..parsers.target import Target
from ..settings.find import refusal
from ..settings.settings import TABLES, Table
from .engines import CalledEngines
from .options import CheckOptions, checking
from .paths import relative_path, with_relative_paths
from .tables import Run, run_of

if TYPE_CHECKING:
    from ..checks.expect import Expect


_UNKNOWN_PARSER = "FIT102"


@functools.partial(checking, whole=True)
def gate(
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="TABLE", help=f"Run these tables only: {', '.join(TABLES)}. Repeatable."),
    ] = None,
    *,
    options: CheckOptions,
) -> Report:
    """Run every table of the settings file: audits, replays, budgets and engine checks."""
    return judged(options, only)


def judged(options: CheckOptions, only: Sequence[str] | None = None) -> Report:
    """The report over all tables, with what is suppressed marked.

    Args:
        options: those of the call.
        only: the commands whose tables run; None for all.

    Raises:
        InputError: there is no settings file, no table, or one that cannot be understood.
    """
    settings = options.settings
    if options.no_config:
        raise InputError("the gate runs what the settings file says", source="--no-config", mend="leave it out")
    if settings.path is None or settings.base is None:
        raise InputError(
            "no reasonctl.toml here or above", mend="write one, or let `reasonctl init` find what to check"
        )
    tables = _chosen(settings.tables, only, settings.path)
    with contextlib.chdir(settings.base):  # every path of the file is relative to it, and so are those in messages
        runs = [run_of(table, command_of(table)) for table in tables]
        done = list(_Gate(options).each(runs))
    whole = only is None and not any(one.refused for one in done)
    return _report(options, done, whole=whole)


def command_of(table: Table) -> Callable[..., None]:
    """The command of a table, as the command line has it."""
    from . import app

    return next(known.callback for known in app.registered_commands if known.name == table.command and known.callback)


def _chosen(tables: Sequence[Table], only: Sequence[str] | None, path: Path) -> Sequence[Table]:
    wanted = {part.strip() for value in only or () for part in value.split(",")}
    unknown = sorted(wanted - set(TABLES))
    if unknown:
        raise InputError(f"{unknown[0]!r} is no table", source="--only", mend=f"use {', '.join(TABLES)}")
    found = [table for table in tables if not wanted or table.command in wanted]
    if not found:
        what = "no table to run" if not wanted else f"no [[{']] or [['.join(sorted(wanted))}]] in it"
        raise InputError(what, source=path.name, mend=f"add [[{sorted(wanted)[0] if wanted else 'audit'}]]")
    return found


@dataclass(frozen=True)
class _Done:
    """A run and its report, or the error that there is in place of one."""

    run: Run
    report: Report | None
    refused: ReasonctlError | None = None


class _Gate:
    """Runs tables one after the other; a vLLM that several of them name is started once."""

    def __init__(self, options: CheckOptions) -> None:
        self._options = options
        self._engines: dict[tuple[str, ...], CalledEngines] = {}

    def each(self, runs: Sequence[Run]) -> Iterator[_Done]:
        """Every run's outcome. One that is refused or fails costs the others nothing."""
        try:
            for number, run in enumerate(runs, 1):
                if not self._options.quiet and sys.stderr.isatty():
                    typer.echo(f"[{number}/{len(runs)}] {run.name}", err=True)
                yield self._one(run)
        finally:
            for engines in self._engines.values():
                engines.close()

    def _one(self, run: Run) -> _Done:
        try:
            report = run.call(**run.arguments, options=self._for(run))
        except ReasonctlError as error:
            return _Done(run, None, _placed(error, run))
        except Exception as error:
            if self._options.debug:
                raise
            text = " ".join(f"internal error, {type(error).__name__}: {error}; --debug shows where".split())
            return _Done(run, None, _placed(ReasonctlError(text), run))
        if "parser" in run.table.keys:
            report = _named_in_the_table(report, run.table.keys["parser"].location)
        if run.expect is not None:
            report = _with_expectations(report, run.expect)
        if run.nothing:
            gaps = [Coverage("trace", "partial", f"{pattern}: no file matches") for pattern in run.nothing]
            report = replace(report, coverage=(*report.coverage, *gaps))
        return _Done(run, self._options.known.put_to(with_relative_paths(report, self._options.base)))

    def _for(self, run: Run) -> CheckOptions:
        options = self._options
        return replace(
            options,
            target=options.target or run.target,
            engines=options.engines if not run.vllm else self._named(run.vllm),
            every_finding=True,
            variants=run.expect.unusual if run.expect is not None else (),
        )

    def _named(self, vllm: tuple[str, ...]) -> CalledEngines:
        if vllm not in self._engines:
            options = self._options
            self._engines[vllm] = CalledEngines(vllm, quiet=options.quiet, fallback=options.engines.fallback)
        return self._engines[vllm]


def _placed(error: ReasonctlError, run: Run) -> ReasonctlError:
    """The error with its table, or the key of it that names what is wrong, and the same exit code."""
    place = run.table.place
    if isinstance(error, InputError):
        for entry in run.table.keys.values():
            if error.source is not None and error.source in (entry.value.scalar, *_texts_of(entry)):
                place = entry.location
        return refusal(f"[[{run.command}]] {error}", place, mend="")
    return ReasonctlError(f"{Path(place.path).name}:{place.line}: [[{run.command}]] {error}")


def _texts_of(entry: Entry) -> list[object]:
    return [item.scalar for item in entry.value.items or ()]


def _named_in_the_table(report: Report, place: Location) -> Report:
    """The report with a parser that no server registers (FIT102) told where the table names it."""
    found = [
        replace(one, location=place) if one.rule == _UNKNOWN_PARSER and "server" not in one.subject else one
        for one in report.findings
    ]
    return replace(report, findings=tuple(ordered(found)))


def _with_expectations(report: Report, expect: Expect) -> Report:
    from ..checks.expect import broken

    found: list[Finding] = []
    for facts in report.facts.get("servers", [report.facts]):
        if "parser" not in facts:  # a server of another engine
            continue
        about = {"model": facts["model"]["source"]} | ({"server": facts["name"]} if "name" in facts else {})
        found += [one for one in broken(expect, facts, about) if report.policy.shows(one)]
    return replace(report, findings=tuple(ordered([*report.findings, *map(report.policy.graded, found)])))


def _report(options: CheckOptions, done: Sequence[_Done], *, whole: bool) -> Report:
    """One report over all runs."""
    reports = [one.report for one in done if one.report is not None]
    stale = [*options.known.stale(options.policy.reports)] if whole else []
    findings = _once(finding for report in reports for finding in report.findings)
    engine = next((report.engine for report in reports if report.engine.get("kind") == "vllm"), None)
    made = make_report(
        "gate",
        target=str(options.target or options.engines.fallback or (reports[0].target if reports else Target())),
        engine=engine or (reports[0].engine if reports else options.engines.described),
        facts={"config": _shown(options), "runs": [_run_json(one) for one in done]},
        findings=findings,
        coverage=[row for one in done for row in _coverage(one)],
        policy=options.policy,
    )
    stale_report = replace(made, findings=tuple(map(options.policy.graded, filter(options.policy.shows, stale))))
    stale_report = with_relative_paths(stale_report, options.base)
    return replace(
        made,
        findings=tuple(ordered([*made.findings, *stale_report.findings])),
        refused=tuple(one.refused for one in done if one.refused is not None),
    )


def _once(findings: Iterable[Finding]) -> list[Finding]:
    """The findings, each once: two tables that look at one model find the same there."""
    kept: dict[str, Finding] = {}
    for one in findings:
        place = (one.location.path, one.location.line, one.location.column) if one.location else None
        key = [one.rule, one.message, place, dict(one.subject), one.severity, one.suppressed]
        kept.setdefault(json.dumps(key, sort_keys=True, default=str), one)
    return list(kept.values())


def _shown(options: CheckOptions) -> str:
    return relative_path(str(options.settings.path), options.base)


def _run_json(one: _Done) -> dict[str, Any]:
    report = one.report
    if report is None:
        return {"name": one.run.name, "command": one.run.command, "verdict": "incomplete", "error": str(one.refused)}
    return {
        "name": one.run.name,
        "command": one.run.command,
        "target": report.target,
        "engine": dict(report.engine),
        "verdict": report.verdict,
        "summary": report.summary,
        "facts": dict(report.facts),
    }


def _coverage(one: _Done) -> Iterator[Coverage]:
    if one.report is None:
        yield Coverage(one.run.command, "skipped", f"{one.run.name}: {one.refused}")
        return
    for row in one.report.coverage:
        yield replace(row, reason=f"{one.run.name}: {row.reason}" if row.reason else one.run.name)
