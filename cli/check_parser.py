"""`reasonctl check-parser`: the test bench of a reasoning parser, a plugin's or one of vLLM's own."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..checks.finding import Coverage
from ..errors import InputError
from .given import not_empty
from .options import CheckOptions, checking
from .progress import Steps

if TYPE_CHECKING:
    from ..checks.finding import Finding
    from ..checks.report import Report
    from ..kit.battery import Battery
    from ..kit.setting import Setting
    from ..kit.subject import Subject
    from ..parsers.bridge.bridge import Bridge
    from ..parsers.target import Target
else:
    from ..checks.report import Report


@functools.partial(checking, several=True)
def check_parser(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE.py", help="A plugin, as --reasoning-parser-plugin takes it.")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The parser. Default: the one that FILE registers. Without FILE, a built-in."
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="X", help="The model it is for: a folder, a hub id, fixture:NAME.")
    ] = None,
    emit_tests: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the cases there as a pytest file that needs only vLLM.")
    ] = None,
    examples: Annotated[int, typer.Option(min=0, metavar="N", help="Outputs to generate.")] = 2000,
    *,
    options: CheckOptions,
) -> Report:
    """Put a reasoning parser to the test, without a GPU and without a server.

    A plugin is looked at first, then run in a real vLLM's interpreter (--vllm, else one that is found) as the server
    would. A built-in name without --vllm is run as the model this package has of it. Several --vllm are compared.
    """
    from ..kit.source import read_plugin_source
    from ..kit.subject import subject_of

    not_empty(name=name, model=model)
    source = read_plugin_source(file) if file is not None else None
    subject = subject_of(source, name)
    if emit_tests is not None and emit_tests.exists() and not emit_tests.is_dir():
        raise InputError("this is no folder", source=str(emit_tests), mend="give --emit-tests a folder")
    return _Check(subject, model, emit_tests, examples, options).report()


@dataclass
class _Check:
    """One call."""

    subject: Subject
    model: str | None
    emit: Path | None
    examples: int
    options: CheckOptions
    coverage: list[Coverage] = field(default_factory=list)
    _why_not: str | None = None

    def report(self) -> Report:
        from ..checks.report import make_report
        from ..kit.subject import asked

        bridges = self._bridges()
        target = self._target(bridges)
        if bridges and self.subject.pair is None:
            self.subject = asked(self.subject, bridges[-1])
        setting = self._setting(target)
        static = self._static(setting, target)
        batteries, findings = self._run(bridges, setting, target, static)
        facts = self._facts(setting, batteries, bridges)
        if self.emit is not None:
            facts["emitted"] = self._emit(batteries, self.emit)
        engine = bridges[-1].described if bridges else self.options.engines.described
        return make_report(
            "check-parser",
            target=str(target),
            engine=engine,
            facts=facts,
            findings=findings,
            coverage=self.coverage,
            policy=self.options.policy,
        )

    def _bridges(self) -> Sequence[Bridge]:
        """The vLLMs of `--vllm`; for a plugin without one, the newest that is found."""
        from ..parsers.bridge.plugin import Plugin
        from ..parsers.bridge.process import BridgeError

        source = self.subject.source
        plugin = Plugin(source.path.name, source.text) if source is not None else None
        if not self.options.engines.specs and plugin is not None:
            found = _found()
            if found is None:
                self._why_not = "no vLLM is found here: `reasonctl vllm install VERSION`, or name one with --vllm"
                return ()
            self.options.engines.use(found)
            try:
                return self.options.engines.open(plugin)
            except BridgeError as error:
                self._why_not = str(error)
                return ()
        return self.options.engines.open(plugin)

    def _target(self, bridges: Sequence[Bridge]) -> Target:
        given = self.options.target
        if given is None and bridges and bridges[-1].target is not None:
            return bridges[-1].target
        return self.options.engines.target(given, None)

    def _setting(self, target: Target) -> Setting:
        from ..parsers import row
        from ..prompts.model import load_model

        if self.subject.source is None and not self.options.engines.specs:
            row(self.subject.name, target)  # refuses a name that there is none of
        loaded = load_model(self.model) if self.model is not None else None
        if self.subject.source is None and loaded is None:
            self._known_to_table()
        setting = self.subject.setting(loaded, target)
        if setting.problem is None and setting.assumed is not None:
            self.coverage.append(Coverage("tokenizer", "examined", setting.assumed))
        elif setting.problem is None:
            self.coverage += [Coverage("tokenizer", "examined"), Coverage("prompts", "examined")]
        return setting

    def _known_to_table(self) -> None:
        from ..parsers import ROWS

        if self.subject.name not in ROWS:
            raise InputError(
                f"nothing is known here of {self.subject.name!r}",
                source="--name",
                mend="give the model it is for: --model",
            )

    def _static(self, setting: Setting, target: Target) -> list[Finding]:
        from ..checks.plg_facts import PluginLook
        from ..checks.plg_static import static_findings

        source = self.subject.source
        if source is None:
            return []
        self.coverage.append(Coverage("source", "examined"))
        own = setting.origin == "model"
        look = PluginLook(
            source,
            self.subject.name,
            vocabulary=setting.vocabulary if own else None,
            switches=setting.switches if own else None,
            target=target,
        )
        return list(static_findings(look))

    def _run(
        self, bridges: Sequence[Bridge], setting: Setting, target: Target, static: list[Finding]
    ) -> tuple[list[Battery], list[Finding]]:
        """What came of each vLLM, and the findings of the last: the one that a change is in."""
        from ..checks.plg_run import run_findings
        from ..kit.pytest_file import snippet

        if not bridges and self.subject.source is not None:
            self.coverage.append(Coverage("run", "skipped", self._why_not))
            return [], static
        batteries: list[Battery] = []
        findings = static
        for number, bridge in enumerate(bridges or [None]):
            if bridge is not None and self.subject.name not in bridge.names():
                findings = self._absent(bridge, static)
                continue
            battery = self._battery(bridge, setting, target, number)
            batteries.append(battery)
            findings = run_findings(battery, self.subject, snippet=snippet, static=static)
        return batteries, findings

    def _absent(self, bridge: Bridge, static: list[Finding]) -> list[Finding]:
        """What to say where a vLLM does not have the parser."""
        from ..checks.plg_run import unloaded
        from ..parsers import near_names

        version = bridge.described["vllm_version"]
        if self.subject.source is None:
            near = [other for other in near_names(self.subject.name) if other in bridge.names()]
            mend = f"did you mean {' or '.join(near)}?" if near else f"it has {', '.join(bridge.names())}"
            raise InputError(f"vLLM {version} registers no reasoning parser {self.subject.name!r}", mend=mend)
        problem = bridge.plugin_problem or f"vLLM {version} has no parser {self.subject.name!r} once it is loaded"
        self.coverage.append(Coverage("run", "skipped", problem))
        return [*static, *unloaded(static, self.subject, problem, raised=bridge.plugin_problem is not None)]

    def _battery(self, bridge: Bridge | None, setting: Setting, target: Target, number: int) -> Battery:
        from ..kit.battery import run_battery
        from ..kit.bench import Bench, BridgeBench, BuiltinBench

        bench: Bench
        if bridge is None:
            bench = BuiltinBench(self.subject.name, setting.vocabulary, target)
            engine: Any = self.options.engines.described
        else:
            bench, engine = BridgeBench(bridge, self.subject.name, setting.vocabulary), bridge.described
        shown = f"vLLM {engine.get('vllm_version')}" if bridge is not None else "the built-in model"
        with Steps(f"{self.subject.name}, {shown}", shown=bridge is not None and not self.options.quiet) as steps:
            battery = run_battery(bench, setting, engine, examples=self.examples, progress=steps)
        if battery.unsupported is not None:
            self.coverage.append(Coverage("run", "skipped", battery.unsupported))
        elif battery.lost:
            number_lost = len(battery.lost)
            said = "1 result was lost" if number_lost == 1 else f"{number_lost} results were lost"
            self.coverage.append(Coverage("run", "partial", said))
        elif bridge is None:
            self.coverage.append(Coverage("run", "examined", _BUILTIN))
        elif number == 0:
            self.coverage.append(Coverage("run", "examined"))
        return battery

    def _facts(self, setting: Setting, batteries: list[Battery], bridges: Sequence[Bridge]) -> dict[str, Any]:
        from ..kit.facts import battery_json, comparisons

        last = batteries[-1] if batteries else None
        source = self.subject.source
        return {
            "name": self.subject.name,
            "file": str(source.path) if source is not None else None,
            "model": self.model,
            "tokenizer": setting.origin,
            "class": self._class_name(last),
            "markers": {"start": setting.thinking.start, "end": setting.end_marker or setting.thinking.end},
            "vllm": [dict(one.engine) for one in batteries],
            **battery_json(last),
            "comparison": comparisons(batteries, [bridge.name for bridge in bridges]),
        }

    def _class_name(self, battery: Battery | None) -> str | None:
        if battery is not None and battery.description is not None:
            return battery.description.class_name
        cls = self.subject.parser_class
        return cls.name if cls is not None else None

    def _emit(self, batteries: list[Battery], folder: Path) -> str | None:
        from ..kit.pytest_file import file_name, test_file

        if not batteries or batteries[-1].unsupported is not None:
            return None
        path = folder / file_name(self.subject)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(test_file(batteries[-1], self.subject, folder.resolve()), encoding="utf-8")
        except OSError as error:
            raise InputError(
                f"cannot be written: {error.strerror or error}", source=str(path), mend="name another folder"
            ) from None
        return str(path)


_BUILTIN = "the built-in model ran; what only vLLM's own class can be asked was not (--vllm)"


def _found() -> str | None:
    """A vLLM to ask where none is named, as `--vllm` takes it: the newest that `reasonctl doctor` finds."""
    from ..doctor import machine

    def age(one: machine.FoundVllm) -> list[int]:
        return [int(part) for part in one.version.split(".") if part.isdigit()]

    newest = max(machine.vllms(Path.cwd()), key=age, default=None)
    return newest.engine if newest is not None else None
