"""`reasonctl replay`: what do reasoning parsers make of recorded output, and does that hold together?"""

from __future__ import annotations

import functools
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError
from ..traces.formats import FORMATS
from .audit_jobs import mapped
from .engines import names_of, plugin_of, require_name
from .given import KWARGS, kwargs_in, taken
from .options import CheckOptions, checking
from .progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..checks.report import Report
    from ..parsers.bridge.bridge import Bridge
    from ..parsers.target import Target
    from ..serve.command import ServeCommand
    from ..traces.context import Setting
    from ..traces.replay import Plan
    from ..traces.trace import BrokenLine, Trace
else:
    from ..checks.report import Report


_ALONE = "give --parser and --model without --serve"


@functools.partial(checking, several=True)
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
        typer.Option("--from", metavar="FORMAT", help=f"Force a format: {', '.join(FORMATS)}."),
    ] = None,
    jq: Annotated[
        str | None, typer.Option(metavar="EXPR", help="Map other JSON; every value it yields is read as a recording.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, metavar="N", help="Processes to use.")] = 1,
    *,
    options: CheckOptions,
) -> Report:
    """Put recorded outputs to reasoning parsers, in full and streamed, and say which of them explain the recording."""
    from ..traces.pool import replay_all
    from ..traces.replay import Engines
    from .replay_gather import Gathered
    from .replay_kept import Needs

    _one_stdin(traces, serve, request)
    server = _server(serve)
    plugin = plugin_of(server) if options.engines.specs else None
    running = options.engines.open(plugin)
    target = options.engines.target(options.target, server)
    if model is None and server is not None:
        model = mapped(server, options.settings.models_from(Path.cwd()))
    setting = _setting(server, target, model, chat_template, chat_template_kwargs, request)
    plan = _plan(parser or [], server, target, running, chunking, explain=_explains(setting))
    plan = replace(plan, vllm=options.engines.specs, plugin=plugin, strips=Needs.of(options).strips)
    said = _model_said(server, model, setting)
    gathered = Gathered(plan, setting, server, options=options, model_said=said, running=running)
    if jobs > 1:
        options.engines.close()  # each process has its own
    with Progress(traces, shown=not options.quiet) as progress:
        items = _read(traces, from_, jq, progress.watch, options.base)
        engines = Engines(running[0], running[1:]) if running and jobs == 1 else None
        for item in replay_all(items, setting, plan, jobs=jobs, engines=engines):
            gathered.add(item)
    return gathered.report()


def _one_stdin(traces: Sequence[str], serve: str | None, request: str | None) -> None:
    given = [*traces, *(value for value in (serve, request) if value is not None)]
    if given.count("-") > 1:
        raise InputError("standard input can be read once only", source="-", mend="name a file in place of the others")
    if "-" in (serve, request) and sys.stdin is None:
        raise InputError("standard input is closed", source="-", mend="name a file")


def _server(serve: str | None) -> ServeCommand | None:
    if serve is None:
        return None
    from ..serve.command import ServeCommand
    from ..serve.read import read_serve

    found = read_serve(serve)
    servers = [server for server in found if isinstance(server, ServeCommand)]
    if found and not servers:
        other = next(server for server in found if not isinstance(server, ServeCommand))
        raise InputError(f"a {other.engine} server, whose parsers are not known here", source=serve, mend=_ALONE)
    if len(servers) != 1:
        mend = "give the one command line that served the traces"
        raise InputError(f"{len(servers)} servers in it, where one served the traces", source=serve, mend=mend)
    return servers[0]


def _served_parser(server: ServeCommand | None, target: Target) -> str | None:
    """The parser the command runs on the server it is judged as; `none` where it runs none.

    One that is set in `--structured-outputs-config` alone splits too (vLLM 0.33.0, engine/arg_utils.py), and gpt-oss
    brings its own (model_executor/models/config.py).
    """
    from ..traces.splits import NO_PARSER

    if server is None:
        return None
    structured = (server.json("structured-outputs-config", twice=True) or {}).get("reasoning_parser")
    named = server.parser_in(target) or (structured if isinstance(structured, str) else None)
    if named:
        return named
    return "openai_gptoss" if "gpt-oss" in (server.model or "").lower() else NO_PARSER


def _setting(
    server: ServeCommand | None,
    target: Target,
    model: str | None,
    chat_template: Path | None,
    chat_template_kwargs: str | None,
    request: str | None,
) -> Setting:
    from ..prompts.asked import Served
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
        serve_parser=server.parser_in(target) if server is not None else None,
        default_kwargs=server.default_chat_template_kwargs if server is not None else None,
        effort_map=server.effort_map if server is not None else None,
        serve_known=server is not None,
        served=Served().with_flags(server),
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


def _explains(setting: Setting) -> bool:
    """Model or server are known, so that the cause of a failure can be looked for."""
    return setting.serve_known or setting.model is not None or setting.chat_template is not None


def _plan(
    parsers: Sequence[str],
    server: ServeCommand | None,
    target: Target,
    running: Sequence[Bridge],
    chunking: str | None,
    *,
    explain: bool,
) -> Plan:
    from ..budgets.request import BUDGET_KEY
    from ..parsers.feed import parse_chunkings
    from ..traces.replay import DEFAULT_CHUNKINGS, Plan
    from ..traces.splits import NO_PARSER

    named = tuple(dict.fromkeys(name for name in parsers if name != "all"))
    for name in named:
        if name != NO_PARSER:
            require_name(name, target, running)
    asked = tuple(dict.fromkeys((*named, *(names_of(target, running) if "all" in parsers else ()))))
    served = _served_parser(server, target)
    if server is not None and len(named) == 1:
        served = named[0]
    elif server is not None and served is not None and served != NO_PARSER:
        _registered(served, server, target, running)
    return Plan(
        parsers=asked,
        named=named,
        serve_parser=served,
        chunkings=parse_chunkings(chunking) if chunking is not None else DEFAULT_CHUNKINGS,
        target=target,
        explain=explain,
        strings=_strings(server),
        budgeted=server is not None and BUDGET_KEY in (server.override_generation_config or {}),
    )


def _strings(server: ServeCommand | None) -> tuple[str | None, str | None]:
    """The start and end text that the engine counts thinking between, where the command gives its own."""
    given = (server.reasoning_config or {}) if server is not None else {}
    start, end = (given.get(f"reasoning_{name}_str") for name in ("start", "end"))
    return start if isinstance(start, str) and start else None, end if isinstance(end, str) and end else None


def _registered(parser: str, server: ServeCommand, target: Target, running: Sequence[Bridge]) -> None:
    """Raise InputError, with the place, where the target lacks the serve command's parser."""
    try:
        require_name(parser, target, running)
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
    paths: Sequence[str],
    from_: str | None,
    jq: str | None,
    watch: Callable[[str], Callable[[int], None] | None],
    base: Path,
) -> Iterator[Trace | BrokenLine]:
    """Every trace of every file. One without an id of its own is named by the path the report shows."""
    from dataclasses import replace

    from ..traces.read import read_traces
    from ..traces.source import STDIN
    from ..traces.trace import BrokenLine
    from .paths import relative_path

    for path in paths:
        shown = relative_path(path, base) if path != "-" else STDIN
        for item in read_traces(path, format=from_, jq=jq, watch=watch(path)):
            if isinstance(item, BrokenLine) or shown in (path, STDIN) or not item.id.startswith(f"{path}:"):
                yield item
            else:
                yield replace(item, id=f"{shown}:{item.id.removeprefix(f'{path}:')}")
