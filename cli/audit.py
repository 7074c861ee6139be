"""`reasonctl audit`: do this model's chat template, tokenizer and reasoning parser agree?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from .engines import plugin_of
from .given import KWARGS, kwargs_in, not_empty, taken
from .options import CheckOptions, checking

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..checks.facts import AuditFacts
    from ..checks.report import Report
    from ..prompts.model import Model
    from ..serve.command import ServeCommand
else:
    from ..checks.report import Report

PRINTABLE = ("flags",)
_MODEL_SUFFIXES = (".jinja", ".jinja2", ".j2", ".json", ".gguf")


@checking
def audit(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATH]...", help="A model, as --model, or a file with a serve command."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="A model folder, a hub id, a chat_template.jinja, a tokenizer_config.json or fixture:NAME."),
    ] = None,
    parser: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|auto|none", help="The reasoning parser to judge; auto ranks all and recommends one."
        ),
    ] = None,
    serve: Annotated[
        str | None,
        typer.Option(metavar="FILE|CMD|-", help="A vllm serve or slimserve command line, or a file with one."),
    ] = None,
    chat_template: Annotated[
        str | None, typer.Option(metavar="FILE", help="A template in place of the model's own.")
    ] = None,
    chat_template_kwargs: Annotated[
        str | None, typer.Option(metavar="JSON", help="Kwargs that requests really send: they weigh as much as none.")
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
    not_empty(chat_template=chat_template)
    for path in paths or []:
        not_empty(PATH=path)
    template_file = Path(chat_template) if chat_template is not None else None
    if print_ is not None and print_ not in PRINTABLE:
        raise InputError(f"{print_!r} cannot be printed", source="--print", mend="use --print flags")
    asked = _asked(chat_template_kwargs)
    jobs = _jobs(paths or [], model, serve)
    audited = [
        _audited(source, server, parser, template_file, asked, options, given=model is not None)
        for source, server in jobs
    ]
    if print_ is not None:
        raise typer.Exit(_print_flags(audited))
    return _report(audited, options)


def _jobs(paths: Sequence[str], model: str | None, serve: str | None) -> list[tuple[str | None, ServeCommand | None]]:
    """(model, server) pairs to audit; a model of None is the server's own affair."""
    from ..serve.read import read_serve

    servers = [(model, server) for server in read_serve(serve)] if serve is not None else []
    models: list[tuple[str | None, ServeCommand | None]] = (
        [(model, None)] if model is not None and serve is None else []
    )
    for path in paths:
        if _is_model(path):
            models.append((path, None))
        else:
            servers += [(model, server) for server in read_serve(path, flag="PATH")]
    if model is not None and servers:
        models = [pair for pair in models if pair != (model, None)]
    jobs = [*models, *servers]
    if not jobs:
        raise InputError("nothing to audit", mend="give --model X, a model folder, or --serve with a serve command")
    return jobs


def _is_model(path: str) -> bool:
    """A folder, a template, a tokenizer config, a fixture or a hub id; any other file may hold a serve command."""
    try:
        found = Path(path).expanduser()
        found.is_file()
    except (RuntimeError, OSError):  # a user that is not there, a text too long for a name
        return not any(character.isspace() for character in path)
    if found.is_dir() or path.startswith("fixture:"):
        return True
    if found.is_file():
        return found.suffix.lower() in _MODEL_SUFFIXES
    return path != "-" and not any(character.isspace() for character in path)


def _asked(text: str | None) -> tuple[Mapping[str, Any], ...]:
    if text is None:
        return ()
    kwargs = kwargs_in(text)
    if kwargs.get("tools") is not None:
        raise InputError("tools are no kwarg to audit", source=KWARGS, mend="leave them out: the audit offers some")
    return (taken(kwargs, source=KWARGS),)


def _audited(
    source: str | None,
    command: ServeCommand | None,
    parser: str | None,
    chat_template: Path | None,
    asked: tuple[Mapping[str, Any], ...],
    options: CheckOptions,
    *,
    given: bool,
) -> AuditFacts:
    from ..checks.audit import audit as gather
    from ..prompts.model import load_model

    target = options.engines.target(options.target, command)
    named = source if source is not None else command.model if command is not None else None
    if command is None or given:
        model: Model | None = load_model(named or "", chat_template=chat_template)
        problem = None
    else:
        model, problem = _served_model(named, chat_template)
    if command is not None and model is not None and chat_template is None:
        model = _with_served_template(model, command)
    chosen = parser if parser is not None else command.reasoning_parser if command is not None else "auto"
    return gather(
        model,
        source=named or "(the server's default model)",
        parser=None if chosen == "none" else chosen,
        target=target,
        server=_server(command) if command is not None else None,
        asked=asked,
        model_problem=problem,
        engine=options.engines.first(plugin_of(command)) if options.engines.specs else None,
    )


def _served_model(named: str | None, chat_template: Path | None) -> tuple[Model | None, str | None]:
    """A server's own model if it is there; else why it could not be looked at."""
    from ..prompts.model import load_model

    if named is None:
        return None, "the command names no model: give --model"
    try:
        return load_model(named, chat_template=chat_template), None
    except InputError as error:
        return None, f"{named} is not here ({error.message}): give --model"


def _with_served_template(model: Model, command: ServeCommand) -> Model:
    """The model with the serve command's own `--chat-template`, a path or the template's text."""
    from dataclasses import replace

    from ..prompts.folder import with_template
    from ..prompts.model import Template

    value = command.chat_template
    if value is None:
        return model
    beside = Path(command.location.path).parent / value
    for path in (Path(value), beside):
        if path.is_file():
            return with_template(model, path)
    if not value.strip():
        raise InputError(
            "the serve command's --chat-template is empty", source=command.location.path, mend="fill it in"
        )
    if not any(character in value for character in "{}\n"):
        raise InputError("no such template file", source=value, mend="give the template with --chat-template")
    inline = Template(value, origin="--chat-template")
    return replace(model, template=inline, templates=(inline,))


def _server(command: ServeCommand) -> Any:
    from ..checks.facts import ServerFacts

    has_parser = "reasoning-parser" in command.flags
    return ServerFacts(
        name=command.name,
        location=command.location,
        reasoning_parser=command.reasoning_parser,
        reasoning_parser_at=command.place("reasoning-parser") if has_parser else command.location,
        tools=command.enable_auto_tool_choice and command.tool_call_parser is not None,
        default_kwargs=command.default_chat_template_kwargs or {},
        effort_map=command.effort_map or {},
    )


def _print_flags(audited: Sequence[AuditFacts]) -> int:
    """The recommended flags of each model on a line of its own. 1 where a model thinks and no parser passes."""
    from ..checks.audit_json import serve_flags

    failed = False
    for facts in audited:
        flags = serve_flags(facts)
        needs_none = facts.survey is not None and bool(facts.survey.states) and not facts.thinks
        failed |= not flags and not needs_none
        if flags:
            typer.echo(" ".join(flags))
        else:
            why = (
                "does not think: it needs no parser"
                if needs_none
                else facts.prompt_problem or "no parser passes every probe"
            )
            typer.echo(f"reasonctl: {facts.source}: {why}", err=True)
    return int(failed)


def _report(audited: Sequence[AuditFacts], options: CheckOptions) -> Report:
    from ..checks.audit import coverage, findings
    from ..checks.audit_json import facts_json
    from ..checks.report import make_report

    targets = list(dict.fromkeys(str(facts.target) for facts in audited))
    parts = [facts_json(facts) for facts in audited]
    shown = (
        parts[0]
        if len(parts) == 1
        else {"servers": [{**_named(facts), **part} for facts, part in zip(audited, parts, strict=True)]}
    )
    several = len(audited) > 1
    return make_report(
        "audit",
        target=targets[0],
        engine=options.engines.described,
        facts=shown,
        findings=[finding for facts in audited for finding in findings(facts)],
        coverage=[row if not several else _in(facts, row) for facts in audited for row in coverage(facts)],
        policy=options.policy,
    )


def _named(facts: AuditFacts) -> dict[str, Any]:
    place = facts.server.location if facts.server is not None else None
    return {
        "name": facts.server.name if facts.server is not None else facts.source,
        "location": {"path": place.path, "line": place.line, "column": place.column} if place is not None else None,
    }


def _in(facts: AuditFacts, row: Any) -> Any:
    from dataclasses import replace

    where = facts.server.name if facts.server is not None else facts.source
    return replace(row, reason=f"{where}: {row.reason}" if row.reason else where)
