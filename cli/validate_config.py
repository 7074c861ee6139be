"""`reasonctl validate-config`: is a thinking budget one that the server takes, and what does each request get of it?"""

from __future__ import annotations

import difflib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..budgets.dialects import DIALECTS, EFFORTS, choose_dialect, near_efforts
from ..checks.finding import Coverage
from ..checks.report import Report, make_report
from ..errors import InputError
from .options import CheckOptions, checking

if TYPE_CHECKING:
    from ..budgets.config import Config
    from ..budgets.facts import BudgetFacts
    from ..budgets.template import TemplateFacts
    from ..parsers.target import Target

KWARGS = "default-chat-template-kwargs"
LARGEST = 2**63 - 1
"""Tokens; no limit is larger, and sums of it can be printed."""


@checking
def validate_config(
    config: Annotated[
        str,
        typer.Argument(
            metavar="CONFIG",
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
    from ..budgets.config import read_config, read_requests
    from ..budgets.facts import gather
    from ..budgets.request import as_messages
    from ..checks.bud import check_budget
    from ..parsers.target import Target

    efforts = _efforts(effort)
    if config == requests == "-":
        raise InputError("CONFIG and --requests cannot both read standard input", mend="give one of them a file")
    read = read_config(config)
    further, documents = read_requests(requests) if requests is not None else ([], [])
    if dialect == "anthropic":
        read = replace(read, requests=tuple(map(as_messages, read.requests)))
        further = [as_messages(request) for request in further]
    everything = [*read.requests, *further]
    chosen = choose_dialect(
        dialect,
        target=options.target,
        form=read.form,
        slimserve_command=read.command is not None and read.command.product == "slimserve",
        anthropic_request=any(
            r.budget is not None or r.broken_thinking for r in everything if r.endpoint == "messages"
        ),
    )
    target = options.target or (Target("slimserve") if chosen == "slimserve" else options.engines.target(None, None))
    template, inherited, template_coverage = _template(
        model, chat_template, read, target, chosen == "slimserve" or any(r.budget is not None for r in everything)
    )
    facts = gather(
        read,
        target=target,
        dialect=chosen,
        limits=max_tokens or (),
        efforts=efforts,
        requests=further,
        documents=documents,
        answer_reserve=answer_reserve,
        template=template,
        inherited=inherited,
    )
    return make_report(
        "validate-config",
        target=str(target),
        engine=options.engines.described,
        facts=facts.as_json(),
        findings=check_budget(facts),
        coverage=[*_coverage(facts), *template_coverage],
        policy=options.policy,
    )


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
    model: str | None, chat_template: Path | None, read: Config, target: Target, tokens_matter: bool
) -> tuple[TemplateFacts | None, dict[str, object] | None, list[Coverage]]:
    """What the model's template says of efforts, its own generation config, and what could be looked at."""
    if model is None and chat_template is None:
        unseen = "no --model: BUD308, BUD309, BUD311 and BUD314 are not evaluated"
        return None, None, [Coverage("template", "absent", unseen)]
    from ..budgets.template import template_facts
    from ..prompts.model import load_model
    from ..prompts.survey import survey

    loaded = load_model(model if model is not None else str(chat_template), chat_template=chat_template)
    inherited = dict(loaded.generation_config)
    if loaded.code_prompt is not None:
        return None, inherited, [Coverage("template", "skipped", loaded.code_prompt)]
    command = read.command
    seen = survey(
        loaded,
        target=target,
        default_kwargs=command.json(KWARGS, twice=True) if command and command.known(KWARGS) else None,
        effort_map=command.effort_map if command and command.known("reasoning-effort-map") else None,
    )
    facts = template_facts(seen, command)
    if facts is None:
        return None, inherited, [Coverage("template", "skipped", "the model has no chat template")]
    rows = [Coverage("template", "examined")]
    if tokens_matter:
        reason = None if facts.markers else loaded.tokenizer_problem or "no reasoning markers are known"
        rows.append(Coverage("tokenizer", "examined" if facts.markers else "skipped", reason))
    return facts, inherited, rows
