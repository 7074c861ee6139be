"""What a report is about, input by input: models, servers, recordings, budgets; and which one a finding is about."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..checks.finding import Coverage, Finding, Location
from ..checks.report import Report
from .wording import input_name, visible

_FAMILY = {"RPL": "replay", "ENG": "verify", "PLG": "check-parser"}
"""Rules that one command alone makes findings of."""


@dataclass(frozen=True, slots=True)
class Run:
    """One command's part of a report: a gate has several, every other report is one.

    Args:
        name: what the gate calls it; None in a report of one command.
        facts: the command's own.
        error: why it could not be run, None where it was.
    """

    name: str | None
    command: str
    target: str
    verdict: str
    facts: Mapping[str, Any]
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Input:
    """One thing that a run examined. `facts` are its own: of an audit's server, those of that server.

    `path` is the file it stands in, `server` the server's name, `model` the model's source, each None where not known.
    """

    name: str
    run: Run
    facts: Mapping[str, Any]
    path: str | None = None
    server: str | None = None
    model: str | None = None


def runs(report: Report) -> tuple[Run, ...]:
    """The runs of a gate, or the report as the only one."""
    told = report.facts.get("runs")
    if report.command != "gate" or not isinstance(told, Sequence):
        return (Run(None, report.command, report.target, report.verdict, report.facts),)
    return tuple(
        Run(
            visible(str(run.get("name") or run.get("command") or "")),
            str(run.get("command") or ""),
            str(run.get("target") or report.target),
            str(run.get("verdict") or ""),
            run.get("facts") or {},
            str(run["error"]) if run.get("error") else None,
        )
        for run in told
    )


def inputs(report: Report) -> tuple[Input, ...]:
    """Everything that was examined, in the order of the facts, each under a name of its own."""
    found: list[Input] = []
    names: Counter[str] = Counter()
    for run in runs(report):
        for one in _of(report, run):
            name = _within(run, one)
            names[name] += 1
            found.append(replace(one, name=name if names[name] == 1 else f"{name} ({names[name]})"))
    return tuple(found)


def _within(run: Run, one: Input) -> str:
    """`audit deploy › a.yaml › chat`; a path that the run is named after stands there once."""
    if run.name is None or run.name == one.name:
        return one.name
    parts = one.name.split(" › ")
    if one.path is not None and run.name.endswith(f" {visible(one.path)}") and parts[0] == visible(one.path):
        parts = parts[1:]
    return " › ".join([run.name, *parts])


class Owners:
    """Which input a finding or a row of the coverage belongs to.

    Where several fit equally (two servers of one name), equal findings go to them in turn, as they were made.
    """

    def __init__(self, inputs: Sequence[Input]) -> None:
        self._inputs = inputs
        self._targets = {str(one.facts.get("target") or one.run.target) for one in inputs}
        self._best: dict[tuple[Any, ...], list[Input]] = {}
        self._turn: Counter[tuple[Any, ...]] = Counter()
        self._told: dict[int, tuple[Finding, Input | None]] = {}
        self._traces: dict[str, set[int]] = {}
        self._files: dict[str, set[int]] = {}
        self._others: set[int] = set()
        for index, one in enumerate(inputs):
            for result in one.facts.get("results") or [] if one.run.command == "replay" else ():
                self._traces.setdefault(str(result.get("trace")), set()).add(index)
            if one.path is not None and one.server is None and one.model is None:
                self._files.setdefault(posixpath.basename(one.path), set()).add(index)
            else:
                self._others.add(index)

    def of(self, finding: Finding) -> Input | None:
        """The input that the finding's place and subject agree with best; None where none of them does."""
        if id(finding) not in self._told:
            self._told[id(finding)] = (finding, self._next(self._fitting(finding), (finding.fingerprint,)))
        return self._told[id(finding)][1]

    def _fitting(self, finding: Finding) -> list[Input]:
        path = finding.location.path if finding.location else None
        named = (repr(finding.subject.get(key)) for key in ("server", "model", "trace"))
        key = (finding.rule[:3], path, *named)
        if key not in self._best:
            near = self._others | self._traces.get(str(finding.subject.get("trace")), set())
            near |= self._files.get(posixpath.basename(path or ""), set())
            scores = {index: self._score(index, self._inputs[index], finding, path) for index in sorted(near)}
            most = max(scores.values(), default=-1)
            clear = most > 0 or (len(self._inputs) == len(near) and list(scores.values()).count(0) == 1)
            self._best[key] = [self._inputs[index] for index, score in scores.items() if clear and score == most]
        return self._best[key]

    def target(self, report: Report, finding: Finding) -> str:
        """The server that the finding was judged by; nothing where several were, and it is about none of them alone.

        The runs of a gate are each judged as another server, which their own names tell.
        """
        if report.command == "gate":
            return ""
        if len(self._targets) < 2:
            return report.target
        owner = self.of(finding)
        return str(owner.facts.get("target") or report.target) if owner is not None else ""

    def place(self, report: Report, finding: Finding) -> Location:
        """Where to show the finding: its own place, else where its input stands, else line 1 of what was examined.

        A gate's findings without any of these are shown in its settings file.
        """
        if finding.location is not None:
            return finding.location
        one = self.of(finding)
        stands = one.facts.get("location") if one is not None else None
        if isinstance(stands, Mapping) and stands.get("path"):
            return Location(str(stands["path"]), int(stands.get("line") or 1), int(stands.get("column") or 1))
        path = one.path if one is not None else None
        return Location(str(path or report.facts.get("config") or input_name(report, finding)))

    def covering(self, row: Coverage) -> tuple[Input | None, str | None]:
        """The input whose run and server the row's reason begins with, and what else the reason says.

        What is said of a run with several inputs belongs to the run as a whole.
        """
        found: list[tuple[int, Input, str]] = []
        for one in self._inputs:
            depth, rest = 0, row.reason or ""
            for name in (one.run.name, one.server):
                more = _after(rest, name)
                depth, rest = (depth, rest) if more is None else (depth + 1, more)
            if depth or len(self._inputs) == 1:
                found.append((depth, one, rest))
        most = max((depth for depth, _, _ in found), default=0)
        fitting = [(one, rest) for depth, one, rest in found if depth == most]
        if not fitting:
            return None, row.reason
        first, rest = fitting[0]
        run = first.run.name
        if len(fitting) > 1 and _after(row.reason or "", run) == rest:
            return Input(run or first.name, first.run, {}), rest or None
        return self._next([one for one, _ in fitting], (row.surface, run, first.server)), rest or None

    def _next(self, fitting: Sequence[Input], what: tuple[Any, ...]) -> Input | None:
        if not fitting:
            return None
        self._turn[what] += 1
        return fitting[(self._turn[what] - 1) % len(fitting)]

    def _score(self, index: int, one: Input, finding: Finding, path: str | None) -> int:
        subject, command = finding.subject, one.run.command
        if _FAMILY.get(finding.rule[:3], command) != command:
            return -1
        if "trace" in subject and command != "replay":
            return -1
        server, model = subject.get("server"), subject.get("model")
        if server is not None and one.server is not None and server != one.server:
            return -1
        score = 2 * (server is not None and server == one.server)
        score += model is not None and model == one.model and (server is None) == (one.server is None)
        if path is not None and one.path is not None:
            score += 4 * _same(path, one.path)
        if path is not None and one.model is not None:
            score += path.startswith(f"{one.model}/")
        return score + 3 * (index in self._traces.get(str(subject.get("trace")), ()))


def marks(findings: Iterable[Finding]) -> Iterator[str]:
    """A fingerprint for each finding that no other of the report has: the second of two equal ones ends in `-2`."""
    seen: Counter[str] = Counter()
    for finding in findings:
        mark = finding.fingerprint
        seen[mark] += 1
        yield mark if seen[mark] == 1 else f"{mark}-{seen[mark]}"


def from_top(path: str, below: str) -> str:
    """A path of the report as the forge looks for it, from the top of the repository.

    What is no file of the project stays: an absolute path, `fixture:NAME`, standard input.

    Args:
        path: as the report has it.
        below: where the folder that it is relative to is in the repository, `deploy/`.
    """
    if not below or path.startswith(("/", "fixture:")) or path == "-":
        return path
    return posixpath.normpath(below + path)


def _of(report: Report, run: Run) -> Iterator[Input]:
    facts = run.facts
    servers, read = facts.get("servers"), facts.get("inputs")
    model = facts.get("model")
    source = model.get("source") if isinstance(model, Mapping) else None
    if isinstance(servers, Sequence):
        for server in servers:
            yield _server(run, server)
    elif run.command == "replay" and isinstance(read, Sequence) and read:
        results: dict[str, list[Any]] = {}
        for result in facts.get("results") or []:
            results.setdefault(str(result.get("path")), []).append(result)
        for item in read:
            path = str(item.get("path"))
            own = {**facts, "inputs": [item], "results": results.get(path, [])}
            yield Input(visible(path), run, own, path=path)
    elif run.command == "verify":
        server = facts.get("server") or {}
        called = " ".join(str(server[key]) for key in ("kind", "version") if server.get(key))
        yield Input(visible(called) or run.name or run.command, run, facts, server=called or None)
    else:
        stands = facts.get("path")
        name = visible(str(stands)) if stands else run.name or input_name(report)
        yield Input(name, run, facts, path=str(stands) if stands else None, model=str(source) if source else None)


def _server(run: Run, facts: Mapping[str, Any]) -> Input:
    model = facts.get("model")
    source = model.get("source") if isinstance(model, Mapping) else model
    name = str(facts.get("name") or "")
    path = str((facts.get("location") or {}).get("path") or "") or None
    shown = " › ".join(dict.fromkeys(str(part) for part in (path, name) if part)) or run.command
    return Input(visible(shown), run, facts, path, name or None, None if source is None else str(source))


def _after(reason: str, name: str | None) -> str | None:
    """What a reason says after a name it begins with; None where it does not."""
    if name is None or not (reason == name or reason.startswith(f"{name}: ")):
        return None
    return reason[len(name) :].removeprefix(": ")


def _same(path: str, other: str) -> bool:
    """Both name one file: a finding's path is relative to the repository's top, a fact's is as the user typed it."""
    return path == other or path.endswith(f"/{other.removeprefix('./')}") or other.endswith(f"/{path}")
