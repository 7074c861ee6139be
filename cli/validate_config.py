"""`reasonctl validate-config`: is a thinking budget one that the server takes, and what does each request get of it?"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..budgets.dialects import DIALECTS, EFFORTS, choose_dialect, near_efforts
from ..checks.finding import Coverage, Location
from ..checks.report import Report, make_report
from ..errors import InputError
from .audit_jobs import mapped
from .options import CheckOptions, checking

if TYPE_CHECKING:
    from ..budgets.config import Config
    from ..budgets.context import ModelContext
    from ..budgets.document import Node
    from ..budgets.facts import BudgetFacts
    from ..budgets.request import Request
    from ..budgets.template import TemplateFacts
    from ..parsers.target import Target
    from ..serve.command import OtherServer

KWARGS = "default-chat-template-kwargs"
LARGEST = 2**63 - 1
"""Tokens; no limit is larger, and sums of it can be printed."""


@checking
def validate_config(
    config: Annotated[
        list[str],
        typer.Argument(
            metavar="CONFIG...",
            help="File with a budget (number, map), generation config, request body or serve command; - is stdin.",
            show_default=False,
        ),
    ],
    *,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="X", help="The model, to ask its template about the efforts (folder, hub id, fixture:NAME)."
        ),
    ] = None,
    max_tokens: Annotated[
        list[int] | None,
        typer.Option(
            metavar="N",
            min=1,
            max=LARGEST,
            help="Completion limit to resolve at; repeatable.",
            show_default="4096, 16384, 32768",
        ),
    ] = None,
    effort: Annotated[
        list[str] | None,
        typer.Option(metavar="LEVEL", help=f"Only these rows: {', '.join(EFFORTS)}; repeatable."),
    ] = None,
    requests: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Requests to resolve: bodies (JSON, JSONL), traces or curl commands."),
    ] = None,
    dialect: Annotated[
        str | None,
        typer.Option(metavar="NAME", help=f"Whose rules: {', '.join(DIALECTS)}. Default: told from CONFIG."),
    ] = None,
    answer_reserve: Annotated[
        int, typer.Option(metavar="N", min=0, max=LARGEST, help="Tokens an answer needs; fewer is BUD307.")
    ] = 256,
    chat_template: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A template in place of the model's own.")
    ] = None,
    options: CheckOptions,
) -> Report:
    """Check a thinking budget, and show the cutoff that every effort and request gets."""
    from ..budgets.config import read_configs, read_requests

    efforts = _efforts(effort)
    if "-" in config and requests == "-":
        raise InputError("CONFIG and --requests cannot both read standard input", mend="give one of them a file")
    if config.count("-") > 1:
        raise InputError("standard input can be read once", source="CONFIG", mend="give one - and files")
    configs: list[Config] = []
    others: list[OtherServer] = []
    unread: list[InputError] = []
    for each in config:
        read = read_configs(each)
        configs += read.configs
        others += read.others
        unread += read.unread
    further, documents = read_requests(requests) if requests is not None else ([], [])
    asked = _Asked(model, chat_template, max_tokens or (), efforts, further, documents, dialect, answer_reserve)
    judged: list[tuple[BudgetFacts, list[Coverage]]] = []
    for found in configs:
        try:
            judged.append(_judged(found, asked, options))
        except InputError as error:
            if found.command is None or len(configs) + len(unread) == 1:
                raise
            unread.append(error)
    if not judged:
        raise unread[0]
    return _report(judged, others, unread, options)


@dataclass(frozen=True)
class _Asked:
    """What the call says beside CONFIG."""

    model: str | None
    chat_template: Path | None
    limits: Sequence[int]
    efforts: frozenset[str] | None
    requests: Sequence[Request]
    documents: Sequence[Node]
    dialect: str | None
    answer_reserve: int


def _judged(read: Config, asked: _Asked, options: CheckOptions) -> tuple[BudgetFacts, list[Coverage]]:
    """One configuration's facts, and what of its model could be looked at."""
    from ..budgets.facts import gather
    from ..budgets.request import as_messages
    from ..parsers.target import Target

    further = list(asked.requests)
    if asked.dialect == "anthropic":
        read = replace(read, requests=tuple(map(as_messages, read.requests)))
        further = [as_messages(request) for request in further]
    everything = [*read.requests, *further]
    chosen = choose_dialect(
        asked.dialect,
        target=options.target or _slimserve(options.engines.fallback),
        form=read.form,
        slimserve_command=read.command is not None and read.command.product == "slimserve",
        anthropic_request=any(
            r.budget is not None or r.broken_thinking for r in everything if r.endpoint == "messages"
        ),
    )
    own = read.command if read.command is not None and read.command.product == "vllm" else None
    target = options.target or (Target("slimserve") if chosen == "slimserve" else options.engines.target(None, own))
    tokens_matter = chosen == "slimserve" or any(r.budget is not None for r in everything)
    if asked.model is None and read.command is not None:
        asked = replace(asked, model=mapped(read.command, options.settings.models_from(Path.cwd())))
    template, inherited, context, rows = _template(asked, read, target, tokens_matter)
    facts = gather(
        read,
        target=target,
        dialect=chosen,
        limits=asked.limits,
        efforts=asked.efforts,
        requests=further,
        documents=asked.documents,
        answer_reserve=asked.answer_reserve,
        template=template,
        inherited=inherited,
        context=context,
    )
    return facts, [*_coverage(facts), *rows]


def _report(
    judged: Sequence[tuple[BudgetFacts, list[Coverage]]],
    others: Sequence[OtherServer],
    unread: Sequence[InputError],
    options: CheckOptions,
) -> Report:
    """One report over all files and the servers in them; of one configuration, its facts are the report's."""
    from ..checks.bud import check_budget
    from ..checks.internal import UnreadableInput

    several = len(judged) + len(others) + len(unread) > 1
    findings = [
        UnreadableInput.finding(
            f"{error.message}; the other servers were read",
            hint=error.mend or "mend it",
            location=Location(error.source or "", error.line or 1, error.column or 1),
        )
        for error in unread
    ]
    coverage: list[Coverage] = []
    servers: list[dict[str, Any]] = []
    for facts, rows in judged:
        name = (facts.command.name if facts.command is not None else facts.location.path) if several else None
        for found in check_budget(facts):
            named = name is not None and facts.command is not None
            findings.append(replace(found, subject={"server": name, **found.subject}) if named else found)
        for row in rows:
            reason = f"{name}: {row.reason}" if name is not None and row.reason else row.reason or name
            coverage.append(replace(row, reason=reason))
        place = facts.command.location if facts.command is not None else facts.location
        servers.append({"name": name, "location": _place(place), "target": str(facts.target), **facts.as_json()})
    for server in others:
        coverage.append(Coverage("server", "skipped", f"{server.name}: a {server.engine} server: not evaluated"))
        servers.append({"name": server.name, "location": _place(server.location), "engine": server.engine})
    first = judged[0][0]
    return make_report(
        "validate-config",
        target=str(first.target),
        engine=options.engines.described,
        facts={"servers": servers} if several else first.as_json(),
        findings=findings,
        coverage=coverage,
        policy=options.policy,
    )


def _slimserve(target: Target | None) -> Target | None:
    """The settings' target where it names the dialect; which vLLM they name says nothing about a budget's form."""
    return target if target is not None and target.product == "slimserve" else None


def _place(place: Location) -> dict[str, Any]:
    return {"path": place.path, "line": place.line, "column": place.column}


def _efforts(given: list[str] | None) -> frozenset[str] | None:
    if not given:
        return None
    wanted = [part.strip() for value in given for part in value.split(",") if part.strip()]
    for level in wanted:
        if level not in EFFORTS:
            near = near_efforts(level, EFFORTS) or difflib.get_close_matches(level, EFFORTS, 1)
            mend = f"did you mean {' or '.join(near)}?" if near else f"use {', '.join(EFFORTS)}"
            raise InputError(f"{level!r} is no effort", source="--effort", mend=mend)
    return frozenset(wanted)


def _coverage(facts: BudgetFacts) -> list[Coverage]:
    stated = facts.written is not None or any(request.value is not None for request in facts.requests)
    rows = [Coverage("budget", "examined" if stated else "absent", None if stated else "no budget is set in it")]
    if facts.requests:
        rows.append(Coverage("requests", "examined"))
    else:
        rows.append(Coverage("requests", "absent", "no --requests"))
    return rows


def _template(
    asked: _Asked, read: Config, target: Target, tokens_matter: bool
) -> tuple[TemplateFacts | None, dict[str, object] | None, ModelContext | None, list[Coverage]]:
    """The model's template, its generation config, its prompts as a counter sees them, and what could be looked at."""
    if asked.model is None and asked.chat_template is None:
        unseen = "no --model: BUD308, BUD309, BUD311, BUD313, BUD314 and BUD326 are not evaluated"
        return None, None, None, [Coverage("template", "absent", unseen)]
    from ..budgets.context import model_context
    from ..budgets.template import template_facts
    from ..checks.thinking import read_thinking
    from ..parsers import ROWS
    from ..prompts.model import load_model
    from ..prompts.survey import survey

    source = asked.model if asked.model is not None else str(asked.chat_template)
    loaded = load_model(source, chat_template=asked.chat_template)
    inherited = dict(loaded.generation_config)
    if loaded.code_prompt is not None:
        return None, inherited, None, [Coverage("template", "skipped", loaded.code_prompt)]
    command = read.command
    seen = survey(
        loaded,
        target=target,
        default_kwargs=command.json(KWARGS, twice=True) if command and command.known(KWARGS) else None,
        effort_map=command.effort_map if command and command.known("reasoning-effort-map") else None,
    )
    facts = template_facts(seen, command)
    if facts is None:
        return None, inherited, None, [Coverage("template", "skipped", "the model has no chat template")]
    rows = [Coverage("template", "examined")]
    if tokens_matter:
        reason = None if facts.markers else loaded.tokenizer_problem or "no reasoning markers are known"
        rows.append(Coverage("tokenizer", "examined" if facts.markers else "skipped", reason))
    return facts, inherited, model_context(seen, read_thinking(seen, ROWS.values())), rows
