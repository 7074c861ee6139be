"""Which traces a report of `reasonctl replay` keeps, so that a file of any size is read in constant memory."""

from __future__ import annotations

import bisect
import sys
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..checks.finding import Confidence, Finding, Severity
from ..checks.replayed import shorten, split_json
from ..checks.report import DRAWN
from ..traces.replay import TraceFacts, recorded_json, result_json
from ..traces.upgrade import upgrade_json
from .options import CheckOptions

_WORST = 5
"""Traces of a text report that shows the worst few."""
_DRAWN = 200
"""Traces of a report that draws them: more than anyone looks through, few enough for a browser."""
_WEIGHT = {"error": 1_000_000, "warning": 1_000, "info": 0}
_LISTABLE = 200
"""Findings that are about no trace and are kept where not all are."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What the formats that were asked for need.

    `results`: every trace's splits. `names`: every trace and parser. `findings`: every finding. `evidence`: with what
    shows it. `strips`: the worst traces token by token.
    """

    results: bool
    names: bool
    findings: bool
    evidence: bool
    strips: bool = False

    @classmethod
    def of(cls, options: CheckOptions) -> Needs:
        formats = {name for name, _ in options.outputs}
        everything = "json" in formats or ("text" in formats and options.verbose)
        return cls(
            results=everything,
            names="junit" in formats,
            findings=everything or options.every_finding or bool(formats - {"text"}),
            evidence=everything or "sarif" in formats,
            strips="html" in formats,
        )

    @property
    def worst(self) -> int:
        """How many traces are kept where not all are."""
        return _DRAWN if self.strips else _WORST


@dataclass(slots=True)
class _Trace:
    """The report's share of one trace. `rank` sorts the worst first, one of each kind before a second one."""

    rank: tuple[bool, int, int, int]
    id: str
    results: list[dict[str, Any]]
    best: dict[str, Any]
    compared: dict[str, str] | None
    recorded: dict[str, Any] | None
    comparison: dict[str, Any] | None
    deltas: int
    wrong: bool
    upgrade: list[dict[str, Any]]
    drawn: dict[str, Any] | None
    findings: list[Finding] = field(default_factory=list)


class Kept:
    """The traces and findings of a report: all where a format needs them, else the worst few, and counts."""

    def __init__(self, needs: Needs) -> None:
        self._needs = needs
        self._traces: list[_Trace] = []
        self._names: list[dict[str, Any]] = []
        self._findings: list[Finding] = []
        self._number = 0
        self._kinds: Counter[frozenset[tuple[str, str | None, str]]] = Counter()
        self._wrong_left = 0
        self.unlisted: Counter[tuple[Severity, Confidence]] = Counter()

    def add(self, facts: TraceFacts, found: Sequence[Finding]) -> None:
        """Take one trace and what was found about it."""
        self._number += 1
        weight = sum(_WEIGHT[finding.severity] for finding in found)
        wrong = any(result.status in ("suspect", "error") for result in facts.results)
        kind = frozenset((finding.rule, finding.cause, str(finding.subject.get("parser"))) for finding in found)
        self._kinds[kind] += 1
        rank = (not (weight or wrong), self._kinds[kind], -weight, self._number)
        if self._needs.names and not self._needs.results:
            self._names += [{"trace": facts.id, "parser": result.parser} for result in facts.results]
        if not self._needs.results and len(self._traces) >= self._needs.worst and rank > self._traces[-1].rank:
            self._leave(found, wrong)
            return
        bisect.insort(
            self._traces, _share(facts, found, rank, wrong, drawn=self._needs.strips), key=lambda trace: trace.rank
        )
        if not self._needs.results and len(self._traces) > self._needs.worst:
            last = self._traces.pop()
            self._leave(last.findings, last.wrong)

    def note(self, finding: Finding) -> None:
        """Take a finding that is about no single trace."""
        if self._needs.findings or len(self._findings) < _LISTABLE:
            self._findings.append(finding)
        else:
            self.unlisted[finding.severity, finding.confidence] += 1

    @property
    def findings(self) -> Iterator[Finding]:
        yield from self._findings
        for trace in self._traces:
            yield from trace.findings

    def as_json(self) -> dict[str, Any]:
        """The share of the report's facts that goes trace by trace, in the order the traces came."""
        traces = sorted(self._traces, key=lambda trace: trace.rank[-1])
        results = [result for trace in traces for result in trace.results]
        return {
            "results": results if not self._names else self._names,
            "best": [trace.best for trace in traces],
            "compared": {trace.id: trace.compared for trace in traces if trace.compared},
            "recorded": {trace.id: trace.recorded for trace in traces if trace.recorded is not None},
            "comparisons": {trace.id: trace.comparison for trace in traces if trace.comparison is not None},
            "streams": {trace.id: trace.deltas for trace in traces if trace.deltas},
            "wrong_beside": self._wrong_left,
            "upgrade": [row for trace in traces for row in trace.upgrade],
            **({DRAWN: [trace.drawn for trace in traces if trace.drawn is not None]} if self._needs.strips else {}),
        }

    def _leave(self, found: Sequence[Finding], wrong: bool) -> None:
        self._wrong_left += wrong
        if self._needs.findings:
            self._findings += found if self._needs.evidence else [replace(one, evidence={}) for one in found]
        else:
            self.unlisted.update((finding.severity, finding.confidence) for finding in found)


def _share(
    facts: TraceFacts, found: Sequence[Finding], rank: tuple[bool, int, int, int], wrong: bool, *, drawn: bool
) -> _Trace:
    comparison = facts.comparison.as_json() if facts.comparison is not None else None
    if comparison is not None and facts.comparison is not None and facts.comparison.right is not None:
        comparison["expected"] = {key: shorten(text) for key, text in split_json(facts.comparison.right).items()}
    return _Trace(
        rank,
        facts.id,
        [result_json(facts, result) for result in facts.results],
        {"trace": facts.id, "parsers": list(facts.best), "why": facts.why},
        {result.parser: result.status for result in facts.compared} or None,
        recorded_json(facts),
        comparison,
        facts.deltas,
        wrong,
        [row for other in facts.others for row in upgrade_json(facts.id, facts.version, facts.results, other)],
        _drawn(facts) if drawn else None,
        list(found),
    )


def _drawn(facts: TraceFacts) -> dict[str, Any]:
    """A trace as a report draws it, its splits beside its tokens."""
    return {
        "trace": facts.id,
        "path": facts.path,
        "line": facts.line,
        "best": list(facts.best),
        "why": facts.why,
        "finish_reason": facts.finish_reason,
        "results": [result_json(facts, result) for result in facts.results],
        "compared": {result.parser: result.status for result in facts.compared},
        "strip": facts.strip.as_json() if facts.strip is not None else None,
    }


class Ids:
    """A set of texts in 8 bytes each (times at most four): ids of millions of traces fit."""

    def __init__(self) -> None:
        self._slots = array("Q", bytes(8 * 1024))
        self._used = 0

    def add(self, text: str) -> bool:
        """Take a text; False where it was there."""
        if 2 * self._used >= len(self._slots):
            old, self._slots = self._slots, array("Q", bytes(16 * len(self._slots)))
            for mark in old:
                if mark:
                    self._put(mark)
        new = self._put((hash(text) & sys.maxsize) or 1)
        self._used += new
        return new

    def _put(self, mark: int) -> bool:
        size = len(self._slots)
        place = mark % size
        while self._slots[place]:
            if self._slots[place] == mark:
                return False
            place = (place + 1) % size
        self._slots[place] = mark
        return True
