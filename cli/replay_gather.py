"""What the report of `reasonctl replay` will say, gathered one trace at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..checks.finding import Coverage, Finding, Location
from ..checks.internal import ResultLost, UnreadableInput
from ..checks.replayed import ReplayFacts
from ..checks.report import Report, make_report
from ..checks.rpl import findings
from ..parsers.target import BUILTIN_ENGINE
from ..traces.context import Setting
from ..traces.pool import Lost, ModelPart
from ..traces.replay import Plan, TraceFacts, recorded_json, result_json
from ..traces.trace import BrokenLine
from .options import CheckOptions


class Gathered:
    """What the report will say, one trace at a time: of a trace only its JSON and its findings are kept."""

    def __init__(self, plan: Plan, setting: Setting, *, served_known: bool, model_said: str | None) -> None:
        self._plan = plan
        self._given = served_known or setting.model is not None or setting.chat_template is not None
        self._with_server = served_known
        self._model = setting.model
        self._model_said = model_said
        self._results: list[dict[str, Any]] = []
        self._best: list[dict[str, Any]] = []
        self._compared: dict[str, Any] = {}
        self._recorded: dict[str, Any] = {}
        self._inputs: dict[tuple[str, str], dict[str, Any]] = {}
        self._parsers: dict[str, None] = {}
        self._findings: list[Finding] = []
        self._tokenizers: set[str] = set()
        self._notes: dict[str, int] = {}
        self._prompts: dict[str | None, int] = {}
        self._not_run: dict[str, str] = {}
        self._traces = 0
        self._broken = 0
        self._ids: set[str] = set()

    def add(self, item: TraceFacts | BrokenLine | Lost | ModelPart) -> None:
        if isinstance(item, BrokenLine):
            self._add_broken(item)
        elif isinstance(item, ModelPart):
            self._add_model_part(item)
        elif isinstance(item, Lost):
            self._traces += 1
            self._lose(item.trace.id, item.trace.path, item.trace.line, None, item.reason)
        else:
            self._traces += 1
            self._add_facts(item)

    def report(self, options: CheckOptions) -> Report:
        order = ("assumed", "trace", "model")
        facts = {
            "traces": self._traces,
            "parsers": list(self._parsers),
            "tokenizer": next((name for name in order if name in self._tokenizers), "assumed"),
            "results": self._results,
            "best": self._best,
            "compared": self._compared,
            "inputs": list(self._inputs.values()),
            "recorded": self._recorded,
        }
        return make_report(
            "replay",
            target=str(self._plan.target),
            engine=BUILTIN_ENGINE,
            facts=facts,
            findings=self._findings,
            coverage=list(self._coverage()),
            policy=options.policy,
        )

    def _add_facts(self, facts: TraceFacts) -> None:
        if facts.id in self._ids:
            facts = replace(facts, id=f"{facts.id} ({facts.path}:{facts.line})")
        self._ids.add(facts.id)
        self._results += [result_json(facts, result) for result in facts.results]
        self._parsers |= dict.fromkeys(result.parser for result in facts.results)
        self._best.append({"trace": facts.id, "parsers": list(facts.best), "why": facts.why})
        if facts.compared:
            self._compared[facts.id] = {result.parser: result.status for result in facts.compared}
        recorded = recorded_json(facts)
        if recorded is not None:
            self._recorded[facts.id] = recorded
        self._tokenizers.add(facts.tokenizer)
        self._prompts[facts.prompt_from] = self._prompts.get(facts.prompt_from, 0) + 1
        for note in facts.notes:
            self._notes[note] = self._notes.get(note, 0) + 1
        self._add_input(facts)
        for result in facts.results:
            if result.crashed:
                self._lose(facts.id, facts.path, facts.line, result.parser, str(result.reason))
            elif result.status == "unsupported" and result.subject:
                self._not_run.setdefault(result.parser, str(result.reason))
        self._findings += findings(ReplayFacts(facts, self._plan.target, given=self._given))

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
            },
        )
        entry["traces"] += 1
        if facts.recorded is not None:
            entry["server"] = entry["server"] or facts.recorded.server
            entry["parser"] = entry["parser"] or facts.recorded.parser

    def _add_broken(self, item: BrokenLine) -> None:
        self._broken += 1
        self._findings.append(
            UnreadableInput.finding(
                f"{item.reason}; everything else in the file was read",
                hint="mend or remove that part",
                location=Location(item.path, item.line),
            )
        )

    def _add_model_part(self, item: ModelPart) -> None:
        part = item.part
        what = f"{part.file} cannot be read" if part.key is None else f"a value of {part.file} counts as not there"
        self._findings.append(
            UnreadableInput.finding(
                f"{what}: {part.reason}",
                hint="mend or remove it; the rest was read",
                subject=({"model": self._model} if self._model is not None else {})
                | {"key": part.file if part.key is None else f"{part.file}: {part.key}"},
                location=Location(item.path, part.line, part.column),
            )
        )

    def _lose(self, trace: str, path: str, line: int, parser: str | None, reason: str) -> None:
        self._findings.append(
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
            "server", "examined" if self._with_server else "absent", None if self._with_server else "no --serve"
        )

    def _prompt_coverage(self) -> Coverage:
        missing, plain = self._prompts.get(None, 0), self._prompts.get("plain", 0)
        if missing:
            reason = (
                f"{missing} of {self._traces} traces have none: split as vLLM does without a prompt; give --request"
            )
            return Coverage("prompt", "absent", reason)
        return Coverage("prompt", "examined", "no request known: taken as plain" if plain else None)
