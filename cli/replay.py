"""`reasonctl replay`: what do reasoning parsers make of recorded output, and does that hold together?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from .given import KWARGS, kwargs_in, taken
from .options import CheckOptions, checking

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..checks.finding import Coverage, Finding
    from ..checks.report import Report
    from ..parsers.target import Target
    from ..serve.command import ServeCommand
    from ..traces.context import Setting
    from ..traces.pool import Lost, ModelPart
    from ..traces.replay import Plan, TraceFacts
    from ..traces.trace import BrokenLine, Trace
else:
    from ..checks.report import Report

_LONG = 4 << 20
"""Bytes of input from which on a terminal gets a progress bar."""


@checking
def replay(
    traces: Annotated[list[str], typer.Argument(metavar="TRACE...", help="Recordings; - reads stdin.")],
    model: Annotated[
        str | None,
        typer.Option(help="The model that was served: a folder, a hub id, fixture:NAME. Gives the tokenizer."),
    ] = None,
    parser: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|all|none", help="Repeatable. Default: the recorded one and the one of --serve, else all."
        ),
    ] = None,
    serve: Annotated[
        str | None, typer.Option(metavar="FILE|CMD|-", help="The command line that served, or a file with it.")
    ] = None,
    request: Annotated[
        str | None, typer.Option(metavar="FILE", help="The request body (or curl command) behind a bare capture.")
    ] = None,
    chat_template: Annotated[Path | None, typer.Option(help="A template in place of the model's own.")] = None,
    chat_template_kwargs: Annotated[
        str | None, typer.Option(metavar="JSON", help="Chat-template kwargs the requests were sent with.")
    ] = None,
    chunking: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="recorded, whole, token, N, char, random:SEED, holdback:N; comma-separated."),
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option("--from", metavar="FORMAT", help="Force a format: trace, sse, chunks, response, vcr or text."),
    ] = None,
    jq: Annotated[
        str | None, typer.Option(metavar="EXPR", help="Map other JSON; every value it yields is read as a recording.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, metavar="N", help="Processes to use.")] = 1,
    *,
    options: CheckOptions,
) -> Report:
    """Put recorded outputs to reasoning parsers, in full and streamed, and say which of them explain the recording."""
    from ..parsers.target import Target
    from ..traces.pool import replay_all

    _one_stdin(traces, serve, request)
    server = _server(serve)
    target = options.target or (server.judged_as if server is not None else Target())
    setting = _setting(server, model, chat_template, chat_template_kwargs, request)
    plan = _plan(parser or [], server, target, chunking)
    gathered = _Gathered(plan, setting, served_known=server is not None, model_said=_model_said(server, model, setting))
    with _Progress(traces, shown=not options.quiet) as progress:
        items = _read(traces, from_, jq, progress.watch)
        for item in replay_all(items, setting, plan, jobs=jobs):
            gathered.add(item)
    return gathered.report(options)


def _one_stdin(traces: Sequence[str], serve: str | None, request: str | None) -> None:
    given = [*traces, *(value for value in (serve, request) if value is not None)]
    if given.count("-") > 1:
        raise InputError("standard input can be read once only", source="-", mend="name a file in place of the others")
    if "-" in (serve, request) and sys.stdin is None:
        raise InputError("standard input is closed", source="-", mend="name a file")


def _server(serve: str | None) -> ServeCommand | None:
    if serve is None:
        return None
    from ..serve.commandline import read_serve

    servers = read_serve(serve)
    if len(servers) != 1:
        raise InputError(f"{len(servers)} servers in it, where one served the traces", source=serve)
    return servers[0]


def _setting(
    server: ServeCommand | None,
    model: str | None,
    chat_template: Path | None,
    chat_template_kwargs: str | None,
    request: str | None,
) -> Setting:
    from ..traces.context import Setting
    from ..traces.request import read_request

    if chat_template is not None and not chat_template.is_file():
        what = "this is a folder" if chat_template.is_dir() else "no such file"
        raise InputError(what, source=str(chat_template), mend="give --chat-template the file of a Jinja template")
    template, text = (str(chat_template) if chat_template is not None else None), None
    if server is not None and template is None and server.chat_template is not None:
        template, text = _served_template(server, server.chat_template)
    return Setting(
        model=model if model is not None else _served_model(server),
        chat_template=template,
        template_text=text,
        kwargs=taken(kwargs_in(chat_template_kwargs), source=KWARGS) if chat_template_kwargs is not None else {},
        request=read_request(request) if request is not None else {},
        serve_parser=server.reasoning_parser if server is not None else None,
        default_kwargs=server.default_chat_template_kwargs if server is not None else None,
        effort_map=server.effort_map if server is not None else None,
        serve_known=server is not None,
    )


def _served_model(server: ServeCommand | None) -> str | None:
    """The serve command's own model where it is a folder here; a name elsewhere is not looked for unasked."""
    named = server.model if server is not None else None
    return named if named is not None and Path(named).expanduser().is_dir() else None


def _served_template(server: ServeCommand, value: str) -> tuple[str | None, str | None]:
    """(file, text) of the command's `--chat-template`: one of them is set."""
    for path in (Path(value), Path(server.location.path).parent / value):
        if path.is_file():
            return str(path), None
    if not any(character in value for character in "{}\n"):
        raise InputError("no such template file", source=value, mend="give the template with --chat-template")
    return None, value


def _plan(parsers: Sequence[str], server: ServeCommand | None, target: Target, chunking: str | None) -> Plan:
    from ..parsers import names, row
    from ..parsers.feed import parse_chunkings
    from ..traces.replay import DEFAULT_CHUNKINGS, Plan
    from ..traces.splits import NO_PARSER

    named = tuple(dict.fromkeys(name for name in parsers if name != "all"))
    for name in named:
        if name != NO_PARSER:
            row(name, target)
    asked = tuple(dict.fromkeys((*named, *(names(target) if "all" in parsers else ()))))
    served = server.reasoning_parser if server is not None else None
    if server is not None and len(named) == 1:
        served = named[0]
    elif server is not None and served is not None:
        _registered(served, server, target)
    return Plan(
        parsers=asked,
        named=named,
        serve_parser=served,
        chunkings=parse_chunkings(chunking) if chunking is not None else DEFAULT_CHUNKINGS,
        target=target,
    )


def _registered(parser: str, server: ServeCommand, target: Target) -> None:
    """Raise InputError, with the place, where the target lacks the serve command's parser."""
    from ..parsers import row

    try:
        row(parser, target)
    except InputError as error:
        place = server.flags["reasoning-parser"].location if "reasoning-parser" in server.flags else server.location
        raise InputError(
            error.message, source=place.path, line=place.line, column=place.column, mend=error.mend
        ) from None


def _model_said(server: ServeCommand | None, model: str | None, setting: Setting) -> str | None:
    """Why there is no model although a serve command names one."""
    if setting.model is not None or server is None or model is not None:
        return None
    return f"{server.model or 'the default model'} of the serve command is not here; give --model"


def _read(
    paths: Sequence[str], from_: str | None, jq: str | None, watch: Callable[[str], Callable[[int], None] | None]
) -> Iterator[Trace | BrokenLine]:
    """Every trace of every file. One without an id of its own is named by the path the report shows."""
    from dataclasses import replace

    from ..traces.read import read_traces
    from ..traces.source import STDIN
    from ..traces.trace import BrokenLine
    from .paths import relative_path, report_base

    base = report_base(Path.cwd())
    for path in paths:
        shown = relative_path(path, base) if path != "-" else STDIN
        for item in read_traces(path, format=from_, jq=jq, watch=watch(path)):
            if isinstance(item, BrokenLine) or shown in (path, STDIN) or not item.id.startswith(f"{path}:"):
                yield item
            else:
                yield replace(item, id=f"{shown}:{item.id.removeprefix(f'{path}:')}")


class _Gathered:
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
        from ..traces.pool import Lost, ModelPart
        from ..traces.trace import BrokenLine

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
        from ..checks.report import make_report
        from ..parsers.target import BUILTIN_ENGINE

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
        from dataclasses import replace

        from ..checks.replayed import ReplayFacts
        from ..checks.rpl import findings
        from ..traces.replay import recorded_json, result_json

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
        from ..checks.finding import Location
        from ..checks.internal import UnreadableInput

        self._broken += 1
        self._findings.append(
            UnreadableInput.finding(
                f"{item.reason}; everything else in the file was read",
                hint="mend or remove that part",
                location=Location(item.path, item.line),
            )
        )

    def _add_model_part(self, item: ModelPart) -> None:
        from ..checks.finding import Location
        from ..checks.internal import UnreadableInput

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
        from ..checks.finding import Location
        from ..checks.internal import ResultLost

        self._findings.append(
            ResultLost.finding(
                reason,
                hint="the other results stand; --debug and this trace alone show where it stops",
                subject={"trace": trace} | ({"parser": parser} if parser is not None else {}),
                location=Location(path, line),
            )
        )

    def _coverage(self) -> Iterator[Coverage]:
        from ..checks.finding import Coverage

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
        from ..checks.finding import Coverage

        missing, plain = self._prompts.get(None, 0), self._prompts.get("plain", 0)
        if missing:
            reason = (
                f"{missing} of {self._traces} traces have none: split as vLLM does without a prompt; give --request"
            )
            return Coverage("prompt", "absent", reason)
        return Coverage("prompt", "examined", "no request known: taken as plain" if plain else None)


class _Progress:
    """A bar on stderr, where that is a terminal and the input is long."""

    def __init__(self, paths: Sequence[str], *, shown: bool) -> None:
        sizes = {path: Path(path).stat().st_size for path in paths if path != "-" and Path(path).is_file()}
        self._sizes = sizes
        self._shown = shown and sys.stderr.isatty() and sum(sizes.values()) > _LONG
        self._bar: Any = None
        self._task: Any = None
        self._before = 0

    def __enter__(self) -> _Progress:
        if self._shown:
            from rich.console import Console
            from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("reading", total=sum(self._sizes.values()))
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def watch(self, path: str) -> Callable[[int], None] | None:
        """What is called with the bytes read of this file; None where nothing is shown."""
        if self._bar is None or path not in self._sizes:
            return None
        before = self._before
        self._before += self._sizes[path]
        return lambda count: self._bar.update(self._task, completed=before + count)
