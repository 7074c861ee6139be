"""What the report of `reasonctl replay` will say, gathered one trace at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from ..checks.finding import SEVERITIES, Coverage, Finding, Location
from ..checks.internal import ResultLost, UnreadableInput
from ..checks.replayed import ReplayFacts
from ..checks.report import Report, make_report
from ..checks.rpl import findings
from ..parsers.target import BUILTIN_ENGINE
from ..serve.command import ServeCommand
from ..traces.context import Setting
from ..traces.pool import Lost, ModelPart
from ..traces.replay import Plan, TraceFacts
from ..traces.splits import Status
from ..traces.trace import BrokenLine
from ..traces.upgrade import changes, compared
from .options import CheckOptions
from .paths import relative_path
from .replay_kept import Ids, Kept, Needs

if TYPE_CHECKING:
    from ..parsers.bridge.bridge import Bridge

STATUSES: tuple[Status, ...] = get_args(Status)
_NOTES = 100
"""Different notes of contexts that are kept."""


class Gathered:
    """What the report will say, one trace at a time."""

    def __init__(
        self,
        plan: Plan,
        setting: Setting,
        server: ServeCommand | None,
        *,
        options: CheckOptions,
        model_said: str | None,
        running: Sequence[Bridge] = (),
    ) -> None:
        self._plan = plan
        self._engine = dict(running[0].described if running else BUILTIN_ENGINE)
        self._registered = running[0].names() if running else ()
        self._vllm = [dict(bridge.described) for bridge in running]
        self._upgrades: dict[str, dict[str, dict[str, int]]] = {}
        self._server = server
        self._options = options
        self._model = setting.model
        self._model_said = model_said
        self._kept = Kept(Needs.of(options))
        self._scores: dict[str, dict[str, int]] = {}
        self._rules: dict[str, dict[str, Any]] = {}
        self._outcomes = {"error": 0, "warning": 0, "lost": 0}
        self._inputs: dict[tuple[str, str], dict[str, Any]] = {}
        self._tokenizers: set[str] = set()
        self._notes: dict[str, int] = {}
        self._prompts: dict[str | None, int] = {}
        self._not_run: dict[str, str] = {}
        self._traces = 0
        self._broken = 0
        self._cut: set[str] = set()
        self._ids = Ids()

    def add(self, item: TraceFacts | BrokenLine | Lost | ModelPart) -> None:
        if isinstance(item, BrokenLine):
            self._add_broken(item)
        elif isinstance(item, ModelPart):
            self._add_model_part(item)
        elif isinstance(item, Lost):
            self._traces += 1
            self._outcomes["lost"] += 1
            self._lose(item.trace.id, item.trace.path, item.trace.line, None, item.reason)
        else:
            self._traces += 1
            self._add_facts(item)

    def report(self) -> Report:
        order = ("assumed", "trace", "model")
        facts = {
            "traces": self._traces,
            "parsers": list(self._scores),
            "tokenizer": next((name for name in order if name in self._tokenizers), "assumed"),
            "inputs": list(self._inputs.values()),
            "server": self._server_json(),
            "outcomes": self._outcomes,
            "scores": self._scores,
            "rules": {name: self._rules[name] for name in sorted(self._rules, key=self._weight)},
            **self._kept.as_json(),
        }
        if len(self._vllm) > 1:
            facts["vllm"] = self._vllm
            facts["upgrades"] = self._upgrades
        return make_report(
            "replay",
            target=str(self._plan.target),
            engine=self._engine,
            facts=facts,
            findings=self._kept.findings,
            coverage=list(self._coverage()),
            policy=self._options.policy,
            unlisted=self._kept.unlisted,
        )

    def _weight(self, name: str) -> tuple[int, str]:
        return SEVERITIES.index(self._rules[name]["severity"]), name

    def _server_json(self) -> dict[str, Any] | None:
        if self._server is None:
            return None
        flags = self._server.flags
        place = flags["reasoning-parser"].location if "reasoning-parser" in flags else self._server.location
        path = relative_path(place.path, self._options.base)
        return {"name": self._server.name, "parser": self._plan.serve_parser, "path": path, "line": place.line}

    def _add_facts(self, facts: TraceFacts) -> None:
        facts = self._named(facts)
        for result in facts.results:
            score = self._scores.setdefault(result.parser, dict.fromkeys(("explains", *STATUSES, "as recorded"), 0))
            score["explains"] += result.parser in facts.best
            score[result.status] += 1
            score["as recorded"] += result.matches_recorded is True
        self._tokenizers.add(facts.tokenizer)
        self._prompts[facts.prompt_from] = self._prompts.get(facts.prompt_from, 0) + 1
        for note in facts.notes:
            if note in self._notes or len(self._notes) < _NOTES:
                self._notes[note] = self._notes.get(note, 0) + 1
        self._add_input(facts)
        self._add_upgrades(facts)
        if facts.broken is not None and facts.path not in self._cut:
            self._broken += 1
            at = f"{facts.entry}: " if facts.entry is not None else ""
            self._note(
                UnreadableInput.finding(
                    f"{at}{facts.broken}; what had come was replayed",
                    hint="record it again; the server's log tells why it stopped",
                    subject={"trace": facts.id},
                    location=Location(facts.path, facts.line),
                )
            )
        for result in facts.results:
            if result.crashed:
                self._lose(facts.id, facts.path, facts.line, result.parser, str(result.reason))
            elif result.status == "unsupported" and result.subject:
                self._not_run.setdefault(result.parser, str(result.reason))
        looked_at = ReplayFacts(
            facts,
            self._plan.target,
            given=self._plan.explain,
            command=self._server,
            registered=self._registered,
        )
        policy = self._options.policy
        found = [policy.graded(finding) for finding in findings(looked_at) if policy.shows(finding)]
        self._count(found)
        self._kept.add(facts, found)

    def _named(self, facts: TraceFacts) -> TraceFacts:
        """The facts under an id that no trace before had: two of one name are told apart by where they stand."""
        if self._ids.add(facts.id):
            return facts
        place = facts.entry or f"{facts.path}:{facts.line}"
        for name in (f"{facts.id} ({place})", f"{facts.id} ({place}, trace {self._traces})"):
            if self._ids.add(name):
                break
        return replace(facts, id=name)

    def _add_upgrades(self, facts: TraceFacts) -> None:
        """How many traces each parser splits as before, and how many differently, by what is upgraded to."""
        for other in facts.others:
            rows = self._upgrades.setdefault(other.version, {})
            differ = {change.parser for change in changes(facts.version, facts.results, other)}
            for parser in compared(facts.results, other):
                row = rows.setdefault(parser, {"same": 0, "differs": 0})
                row["differs" if parser in differ else "same"] += 1
            for result in other.results:
                if result.crashed:
                    lost = f"{result.reason} (vLLM {other.version})"
                    self._lose(facts.id, facts.path, facts.line, result.parser, lost)

    def _count(self, found: Sequence[Finding]) -> None:
        """How grave the worst of a trace is; how many traces each rule fires on, and with which causes."""
        gravest = next(
            (severity for severity in ("error", "warning") if any(f.severity == severity for f in found)), None
        )
        if gravest is not None:
            self._outcomes[gravest] += 1
        for rule in dict.fromkeys(finding.rule for finding in found):
            own = [finding for finding in found if finding.rule == rule]
            row = self._rules.setdefault(
                rule, {"slug": own[0].slug, "severity": own[0].severity, "traces": 0, "causes": {}}
            )
            row["traces"] += 1
            for cause in dict.fromkeys(finding.cause for finding in own if finding.cause is not None):
                row["causes"][cause] = row["causes"].get(cause, 0) + 1

    def _note(self, finding: Finding) -> None:
        if self._options.policy.shows(finding):
            self._kept.note(finding)

    def _add_input(self, facts: TraceFacts) -> None:
        entry = self._inputs.setdefault(
            (facts.path, facts.source),
            {
                "path": facts.path,
                "format": facts.source,
                "traces": 0,
                "model": facts.model,
                "server": None,
                "parser": None,
                "further_parsers": False,
            },
        )
        entry["traces"] += 1
        if facts.recorded is not None:
            entry["server"] = entry["server"] or facts.recorded.server
            entry["parser"] = entry["parser"] or facts.recorded.parser
            entry["further_parsers"] |= facts.recorded.parser not in (None, entry["parser"])

    def _add_broken(self, item: BrokenLine) -> None:
        self._broken += 1
        self._cut.add(item.path)
        self._note(
            UnreadableInput.finding(
                f"{item.reason}; everything else in the file was read",
                hint=item.mend or "mend or remove that part",
                location=Location(item.path, item.line),
            )
        )

    def _add_model_part(self, item: ModelPart) -> None:
        part = item.part
        what = f"{part.file} cannot be read" if part.key is None else f"a value of {part.file} counts as not there"
        self._note(
            UnreadableInput.finding(
                f"{what}: {part.reason}",
                hint="mend or remove it; the rest was read",
                subject=({"model": self._model} if self._model is not None else {})
                | {"key": part.file if part.key is None else f"{part.file}: {part.key}"},
                location=Location(item.path, part.line, part.column),
            )
        )

    def _lose(self, trace: str, path: str, line: int, parser: str | None, reason: str) -> None:
        self._note(
            ResultLost.finding(
                reason,
                hint="the other results stand; --debug and this trace alone show where it stops",
                subject={"trace": trace} | ({"parser": parser} if parser is not None else {}),
                location=Location(path, line),
            )
        )

    def _coverage(self) -> Iterator[Coverage]:
        broken = f"{self._broken} part{'s' if self._broken != 1 else ''} could not be read" if self._broken else None
        yield Coverage("trace", "partial" if broken else "examined", broken)
        if self._tokenizers <= {"model"}:
            yield Coverage("tokenizer", "examined")
        elif "assumed" in self._tokenizers:
            yield Coverage("tokenizer", "absent", self._model_said or "assumed: every marker one token; give --model")
        else:
            yield Coverage("tokenizer", "examined", "token texts in the trace")
        yield self._prompt_coverage()
        if self._notes:
            said = "; ".join(f"{note} ({count} traces)" if count > 1 else note for note, count in self._notes.items())
            yield Coverage("context", "partial", said)
        if self._not_run:
            said = "; ".join(f"{name}: {reason}" for name, reason in self._not_run.items())
            yield Coverage("parser", "skipped", said)
        else:
            yield Coverage("parser", "examined")
        yield Coverage(
            "server", "absent" if self._server is None else "examined", "no --serve" if self._server is None else None
        )

    def _prompt_coverage(self) -> Coverage:
        missing, plain = self._prompts.get(None, 0), self._prompts.get("plain", 0)
        if missing:
            reason = f"{_how_many(missing, self._traces)} none: split as vLLM does without a prompt; give --request"
            return Coverage("prompt", "absent", reason)
        return Coverage("prompt", "examined", "no request known: taken as plain" if plain else None)


def _how_many(number: int, traces: int) -> str:
    """`3 of 50 traces have`; of all of them without the number."""
    if number == traces:
        return "the trace has" if traces == 1 else "the traces have"
    return f"{number} of {traces} traces {'has' if number == 1 else 'have'}"
