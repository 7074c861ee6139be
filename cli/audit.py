"""`reasonctl audit`: do this model's chat template, tokenizer and reasoning parser agree?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..errors import InputError
from .audit_jobs import Job, Jobs, find_jobs, model_of, parse_model_map, served_model, with_served_files
from .endpoint import ApiKeyEnv, ServedModelName, live_server, named_vllm, target_of
from .engines import plugin_of
from .given import KWARGS, kwargs_in, not_empty, taken
from .options import CheckOptions, checking

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..checks.bud_audit import BudgetAsked
    from ..checks.facts import AuditFacts, Mode, OldFieldRead, SentRequest, ServerFacts
    from ..checks.finding import Coverage, Location
    from ..checks.report import Report
    from ..engine.live import LiveServer
    from ..parsers.target import Target
    from ..prompts.model import Model
    from ..serve.command import OtherServer, ServeCommand
    from ..serve.read import Unread
else:
    from ..checks.report import Report

PRINTABLE = ("flags",)


@checking
def audit(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATH]...", help="A model, as --model, or a file or folder with serve commands."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="A model folder, a hub id, a chat_template.jinja, a tokenizer_config.json or fixture:NAME."),
    ] = None,
    model_map: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=X", help="Where the model is that a server calls NAME. Repeatable."),
    ] = None,
    parser: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|auto|none", help="The reasoning parser to judge; auto ranks all and recommends one."
        ),
    ] = None,
    serve: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|CMD|-", help="A serve command, or a file with one: script, compose, manifest, log, ..."
        ),
    ] = None,
    chat_template: Annotated[
        str | None, typer.Option(metavar="FILE", help="A template in place of the model's own.")
    ] = None,
    chat_template_kwargs: Annotated[
        str | None, typer.Option(metavar="JSON", help="Kwargs that requests really send: they weigh as much as none.")
    ] = None,
    requests: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="What is really sent (bodies, curl, traces): it decides what weighs."),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|N", help="A thinking budget to judge: a number, or a file as validate-config takes it."
        ),
    ] = None,
    client: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="A client's source, or a folder: does it read the field it gets?"),
    ] = None,
    endpoint: Annotated[
        str | None,
        typer.Option(metavar="URL", help="A vLLM that runs already: its prompts and a few answers are checked."),
    ] = None,
    served_model_name: ServedModelName = None,
    api_key_env: ApiKeyEnv = None,
    max_requests: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="With --endpoint: the most answers to ask for. Default: 8.")
    ] = None,
    print_: Annotated[
        str | None,
        typer.Option("--print", metavar="flags", help="Print only the serve flags; exit 1 if no parser passes."),
    ] = None,
    *,
    options: CheckOptions,
) -> Report:
    """Render the template in every way a request can, put probes to the parser, and say what a client would get."""
    not_empty(model=model, parser=parser, serve=serve, chat_template_kwargs=chat_template_kwargs, print=print_)
    not_empty(chat_template=chat_template, requests=requests, budget=budget)
    not_empty(endpoint=endpoint, served_model_name=served_model_name)
    for path in paths or []:
        not_empty(PATH=path)
    template_file = Path(chat_template) if chat_template is not None else None
    if print_ is not None and print_ not in PRINTABLE:
        raise InputError(f"{print_!r} cannot be printed", source="--print", mend="use --print flags")
    sent, asked = _sent(requests, budget)
    unread_clients: list[InputError] = []
    given = Given(
        parser=parser,
        chat_template=template_file,
        asked=(*_asked(chat_template_kwargs), *options.variants),
        requests=sent,
        budget=asked,
        clients=_clients(client or [], unread_clients),
    )
    given_map = parse_model_map(model_map) if model_map else None
    jobs = partial(find_jobs, paths or [], model, serve, given_map, options.settings.models_from(Path.cwd()))
    with live_server(
        endpoint,
        served_model_name=served_model_name,
        api_key_env=api_key_env,
        max_requests=max_requests,
        shown=not options.quiet,
    ) as live:
        found = jobs() if live is None or paths or model or serve else Jobs((Job(None, None, False),))
        _one_for(live, found, options)
        audited, unread = _all_audited(found, given, options, live)
    if print_ is not None:
        raise typer.Exit(_print_flags(audited))
    unread += [_unread(error, "file") for error in unread_clients]
    return _report(audited, replace(found, unread=(*found.unread, *unread)), options)


@dataclass(frozen=True)
class Given:
    """What every audit of the call is told."""

    parser: str | None
    chat_template: Path | None
    asked: tuple[Mapping[str, Any], ...]
    requests: tuple[SentRequest, ...] | None
    clients: tuple[OldFieldRead, ...] | None
    budget: BudgetAsked | None = None


def _asked(text: str | None) -> tuple[Mapping[str, Any], ...]:
    if text is None:
        return ()
    kwargs = kwargs_in(text)
    if kwargs.get("tools") is not None:
        raise InputError("tools are no kwarg to audit", source=KWARGS, mend="leave them out: the audit offers some")
    return (taken(kwargs, source=KWARGS),)


def _sent(path: str | None, budget: str | None) -> tuple[tuple[SentRequest, ...] | None, BudgetAsked | None]:
    """What is really sent, None where nobody says so, and what `--budget` and those requests say of budgets."""
    if path is None and budget is None:
        return None, None
    if path == budget == "-":
        raise InputError("--budget and --requests cannot both read standard input", mend="give one of them a file")
    from ..budgets.config import read_config, read_requests
    from ..checks.bud_audit import BudgetAsked
    from ..checks.sent import sent_requests

    found, documents = read_requests(path) if path is not None else ([], [])
    config = read_config(budget, argument="--budget") if budget is not None else None
    return sent_requests(found) if path is not None else None, BudgetAsked(config, found, documents)


def _clients(paths: Sequence[str], unread: list[InputError]) -> tuple[OldFieldRead, ...] | None:
    if not paths:
        return None
    from ..checks.clients import read_clients

    for path in paths:
        not_empty(client=path)
    return read_clients(paths, unread=unread)


def _one_for(live: LiveServer | None, found: Jobs, options: CheckOptions) -> None:
    """Refuse what cannot go with a running server: several things to audit, or parsers that need a model's files."""
    if live is None:
        return
    if len(found.jobs) != 1:
        names = ", ".join(job.command.name if job.command else str(job.source) for job in found.jobs) or "none"
        raise InputError(f"one server runs there, and these are to be audited: {names}", source="--endpoint")
    if named_vllm(options) and found.jobs[0].source is None:
        raise InputError("its parsers need the model's files", source="--vllm", mend="give --model, or leave it out")


def _all_audited(
    found: Jobs, given: Given, options: CheckOptions, live: LiveServer | None
) -> tuple[list[AuditFacts], list[Unread]]:
    """The facts of every job. One server of several that cannot be looked at does not keep the others from it."""
    from ..prompts.model import load_model

    audited: list[AuditFacts] = []
    unread: list[Unread] = []
    for job in found.jobs:
        model = None
        if (job.command is None or job.given) and (live is None or job.source is not None):
            model = load_model(job.source or "", chat_template=given.chat_template)
        try:
            audited.append(_audited(job, model, given, options, live))
        except InputError as error:
            if job.command is None or len(found.jobs) + len(found.others) == 1:
                raise
            lost = _unread(error, "server", job.command.location)
            unread.append(replace(lost, reason=f"the server {job.command.name} was not looked at: {lost.reason}"))
    if not audited and not found.others:
        first = unread[0]
        raise InputError(
            first.reason,
            source=first.location.path,
            line=first.location.line,
            column=first.location.column,
            mend="mend it, as well as the others",
        )
    return audited, unread


def _unread(error: InputError, kind: Literal["file", "server"], place: Location | None = None) -> Unread:
    """What could not be read, at the error's own place, else at `place`."""
    from ..checks.finding import Location
    from ..serve.read import Unread

    at = place or Location(error.source or "", 1, 1)
    return Unread(
        Location(error.source or at.path, error.line or at.line, error.column or at.column), error.message, kind
    )


def _audited(job: Job, model: Model | None, given: Given, options: CheckOptions, live: LiveServer | None) -> AuditFacts:
    """One job's facts; `model` is the one that was given for it, None where it is the server's own."""
    from ..checks.audit import audit as gather
    from ..checks.sent import variant_of

    command = job.command
    target = options.engines.target(options.target or (target_of(live.server) if live is not None else None), command)
    named = job.source if job.source is not None else model_of(command) if command is not None else None
    served = live is not None and job.source is None
    problem: str | None = None
    if live is not None and served:
        named, model, problem = live.name, live.model(), live.prompts.problem
    elif model is None:
        model, problem = served_model(named, given.chat_template)
        if command is not None and command.model_hidden:
            problem = "the model's name is known to the running shell alone: give --model"
    if command is not None and model is not None and model.kind != "served":
        model, problem = with_served_files(model, command, own_template=given.chat_template is not None)
    sent = tuple(dict(variant) for variant in map(variant_of, given.requests or ()) if variant)
    mode, parser = _parser(given.parser, command, target, model, live)
    return gather(
        model,
        source=named or "(the server's default model)",
        parser=parser,
        mode=mode,
        target=target,
        server=_server(command, target, _version_unknown(command, target, options)) if command is not None else None,
        asked=(*given.asked, *(variant for variant in sent if variant not in given.asked)),
        model_problem=problem,
        engine=options.engines.first(plugin_of(command)) if options.engines.specs and not served else None,
        requests=given.requests,
        clients=given.clients,
        budget=given.budget,
        live=live,
    )


def _parser(
    given: str | None, command: ServeCommand | None, target: Target, model: Model | None, live: LiveServer | None
) -> tuple[Mode, str | None]:
    """The parser to judge, and whether it is named, to be chosen, or none. SlimServe takes one by the architecture."""
    from ..checks.srv_flags import named_parser

    if given is not None:
        return ("none", None) if given == "none" else ("auto", None) if given == "auto" else ("configured", given)
    if command is None:
        named = live.server.parser if live is not None else None
        return ("configured", named) if named else ("auto", None)
    named, _ = named_parser(command, target)
    if command.product == "slimserve" and model is not None:
        from ..budgets.slimserve import parser_of

        named = parser_of(named, model.model_type, model.architectures)
    hidden = named is None and (command.hidden("reasoning-parser") or command.hidden("structured-outputs-config"))
    return "configured" if named is not None or hidden else "none", named


def _version_unknown(command: ServeCommand, target: Target, options: CheckOptions) -> str | None:
    """Why a vLLM command's release is only assumed; None where the call, the command or a running vLLM tells it."""
    told = options.target or options.engines.specs or options.engines.fallback
    if told or command.product != "vllm" or command.target is not None:
        return None
    tag = f"the image's tag is the version of {command.tag_of}" if command.tag_of else "nothing tells its version"
    return f"{tag}: judged as {target}; say --target where it is another"


def _server(command: ServeCommand, target: Target, version_unknown: str | None) -> ServerFacts:
    from ..checks.facts import ServerFacts
    from ..checks.srv_flags import named_parser

    parser, place = named_parser(command, target)
    return ServerFacts(
        name=command.name,
        location=command.location,
        reasoning_parser=parser,
        reasoning_parser_at=place,
        version_unknown=version_unknown,
        tools=command.enable_auto_tool_choice and "tool-call-parser" in command.flags,
        default_kwargs=command.default_chat_template_kwargs or {},
        effort_map=command.effort_map or {},
        command=command,
    )


def _print_flags(audited: Sequence[AuditFacts]) -> int:
    """The recommended flags of each model on a line of its own, which names it where there are several.

    1 where a model thinks and no parser passes.
    """
    from ..checks.audit_json import serve_flags
    from ..reports.wording import visible

    failed = False
    several = len(audited) > 1
    for facts in audited:
        flags = serve_flags(facts)
        name = visible(facts.server.name if facts.server is not None else facts.source)
        needs_none = facts.survey is not None and bool(facts.survey.states) and not facts.thinks
        failed |= not flags and not needs_none
        if flags:
            typer.echo(" ".join(flags) + (f"  # {name}" if several else ""))
        else:
            why = (
                "does not think: it needs no parser"
                if needs_none
                else facts.prompt_problem or "no parser passes every probe"
            )
            typer.echo(f"# {name}: {visible(why)}" if several else f"reasonctl: {facts.source}: {why}", err=not several)
    return int(failed)


def _report(audited: Sequence[AuditFacts], found: Jobs, options: CheckOptions) -> Report:
    from ..checks.audit import findings_of
    from ..checks.audit_json import facts_json
    from ..checks.coverage import coverage
    from ..checks.finding import Coverage
    from ..checks.internal import UnreadableInput
    from ..checks.report import make_report
    from ..parsers.target import BUILTIN_ENGINE

    targets = list(dict.fromkeys(str(facts.target) for facts in audited))
    parts = [facts_json(facts) for facts in audited]
    several = len(found.jobs) + len(found.others) > 1 or not audited
    shown = (
        {
            "servers": [
                *({**_named(facts), **part} for facts, part in zip(audited, parts, strict=True)),
                *(_other(server) for server in found.others),
            ]
        }
        if several
        else parts[0]
    )
    unread = [
        UnreadableInput.finding(
            f"{file.reason}; the other {file.kind}s were read",
            hint="mend it" if file.kind == "server" else "mend it, or leave it out of the folder",
            location=file.location,
        )
        for file in found.unread
    ]
    rows = [row if not several else _in(facts, row) for facts in audited for row in coverage(facts)]
    rows += [Coverage("server", "skipped", f"{s.name}: a {s.engine} server: not evaluated") for s in found.others]
    return make_report(
        "audit",
        target=targets[0] if targets else str(options.engines.target(options.target, None)),
        engine=options.engines.described if any(facts.registered for facts in audited) else BUILTIN_ENGINE,
        facts=shown,
        findings=[*findings_of(audited), *unread],
        coverage=rows,
        policy=options.policy,
    )


def _named(facts: AuditFacts) -> dict[str, Any]:
    place = facts.server.location if facts.server is not None else None
    name = facts.server.name if facts.server is not None else facts.source
    return {"name": name, "location": _place(place), "target": str(facts.target)}


def _other(server: OtherServer) -> dict[str, Any]:
    return {"name": server.name, "location": _place(server.location), "engine": server.engine}


def _place(place: Location | None) -> dict[str, Any] | None:
    return {"path": place.path, "line": place.line, "column": place.column} if place is not None else None


def _in(facts: AuditFacts, row: Coverage) -> Coverage:
    where = facts.server.name if facts.server is not None else facts.source
    return replace(row, reason=f"{where}: {row.reason}" if row.reason else where)
