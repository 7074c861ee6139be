"""A budget under an audit: judged against this template, this parser and this runner."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..budgets.config import Config, config_of
from ..budgets.context import model_context
from ..budgets.dialects import choose_dialect
from ..budgets.document import Entry, Node
from ..budgets.facts import BudgetFacts, gather
from ..budgets.request import BUDGET_KEY, Request
from ..budgets.strings import CONFIG, PARSER, STRUCTURED
from ..budgets.template import template_facts
from ..parsers.target import Target
from ..serve.command import Flag, ServeCommand
from .bud import check_budget
from .finding import Coverage, Finding

if TYPE_CHECKING:
    from .facts import AuditFacts

WITH_BUDGET = "with --budget"
"""What to call the request that a number given as `--budget` stands for."""
_HARMONY = (
    "no parser names strings for a harmony model: give a start and an end with --reasoning-config, and prove with "
    "`reasonctl verify` that they hold"
)
_OVERRIDE = "override-generation-config"


@dataclass(frozen=True, slots=True)
class BudgetAsked:
    """What an audit is told of budgets.

    `config` is `--budget`; without it a serve command's own budget counts, and those of `requests` (`--requests`, with
    the `documents` they stand in).
    """

    config: Config | None = None
    requests: Sequence[Request] = ()
    documents: Sequence[Node] = field(default=())


def budget_facts(facts: AuditFacts, asked: BudgetAsked) -> BudgetFacts | None:
    """The budget facts of an audit, None where nobody sets a budget.

    Raises:
        InputError: a value of the configuration or of a request is of a type that the server refuses.
    """
    command = _command(facts, asked)
    config = _config(facts, asked, command)
    if config is None:
        return None
    everything = (*config.requests, *asked.requests)
    anthropic = any(r.budget is not None or r.broken_thinking for r in everything if r.endpoint == "messages")
    rendered = facts.survey if facts.survey is not None and facts.survey.states else None
    return gather(
        replace(config, command=command),
        target=facts.target,
        dialect=choose_dialect(None, target=facts.target, form=config.form, anthropic_request=anthropic),
        requests=asked.requests,
        documents=asked.documents,
        template=template_facts(rendered, command) if rendered is not None else None,
        inherited=dict(rendered.model.generation_config) if rendered is not None else None,
        context=model_context(rendered, facts.thinking, asked=facts.asked, call=_call(facts))
        if rendered is not None
        else None,
    )


def budget_findings(facts: AuditFacts) -> Iterator[Finding]:
    """What the BUD rules make of an audit's budget, each with the audit's server and model."""
    budget = facts.budget
    if budget is None:
        return
    recommends = facts.mode == "auto" and (facts.server is None or facts.server.reasoning_parser is None)
    for found in check_budget(budget):
        refused = found.rule == "BUD312"
        if refused and f"--{STRUCTURED} alone" in found.message:
            continue  # SRV206 is the same defect
        # A refusal by a parser that is only recommended here happens to nobody yet.
        softened = replace(found, severity="warning") if refused and recommends else found
        if refused and facts.thinking.harmony:
            softened = replace(softened, hint=_HARMONY)
        yield replace(softened, subject={**facts.subject(), **found.subject})


def budget_coverage(facts: AuditFacts) -> Coverage:
    """Whether a budget was looked at."""
    if facts.budget is None:
        return Coverage("budget", "absent", "no --budget")
    if facts.budget.context is None:
        return Coverage("budget", "partial", "without the model's prompts BUD313 and BUD326 are not evaluated")
    return Coverage("budget", "examined")


def reasoning_config(facts: AuditFacts) -> list[str]:
    """The flag that a budget needs beside the recommended parser, none where the parser names its own strings."""
    budget, thinking = facts.budget, facts.thinking
    if budget is None or facts.recommended is None or thinking.start is None or thinking.end is None:
        return []
    if budget.target.product != "vllm" or facts.mode != "auto" or budget.strings is not None:
        return []
    both = {"reasoning_start_str": thinking.start.strip(), "reasoning_end_str": thinking.end.strip()}
    return [f"--{CONFIG}", json.dumps(both)]


def _call(facts: AuditFacts) -> str | None:
    return facts.call if facts.renders_tools else None


def _command(facts: AuditFacts, asked: BudgetAsked) -> ServeCommand | None:
    """What serves: the audited command, else that of `--budget`, else one with the judged parser alone."""
    from ..serve.commandline import parse_command_line

    judged = facts.judged.name if facts.judged is not None else facts.configured
    if facts.server is not None:
        command = facts.server.command
    elif asked.config is not None and asked.config.command is not None:
        command = asked.config.command
    elif facts.mode == "none":
        command = parse_command_line("vllm serve MODEL", path="--parser")
    elif judged is not None:
        command = parse_command_line(f"vllm serve MODEL --{PARSER} {shlex.quote(judged)}", path="--parser")
    else:
        return None
    if command is None:
        return None
    if facts.target.product != command.product and facts.server is None:
        command = replace(command, product=facts.target.product)
    if _OVERRIDE in command.flags and command.hidden(_OVERRIDE):
        command = replace(command, flags={k: v for k, v in command.flags.items() if not k.startswith(_OVERRIDE)})
    if facts.mode == "none" and facts.server is not None:
        command = replace(command, flags={name: flag for name, flag in command.flags.items() if name != PARSER})
    if facts.configured is not None and facts.configured != _named(command, facts.target):
        flag = Flag(PARSER, facts.configured, command.location)
        command = replace(command, flags={**command.flags, PARSER: flag})
    return command


def _named(command: ServeCommand, target: Target) -> str | None:
    """The parser a command names anywhere, None where only the running shell knows."""
    from .srv_flags import structured_outputs_parser

    if command.hidden(PARSER):
        return None
    given: dict[str, Any] = (command.json(CONFIG, twice=True) or {}) if command.known(CONFIG) else {}
    return command.parser_in(target) or given.get("reasoning_parser") or structured_outputs_parser(command)


def _config(facts: AuditFacts, asked: BudgetAsked, command: ServeCommand | None) -> Config | None:
    """`--budget`, else the serve command where it sets a budget or requests are held to one."""
    given = asked.config
    if given is not None:
        return _as_request(given) if given.form == "scalar" and facts.target.product == "vllm" else given
    budgeted = any(request.budget is not None or request.misplaced() for request in asked.requests)
    if command is not None:
        config = config_of(command, command.location.path)
        inherits = facts.survey is not None and BUDGET_KEY in facts.survey.model.generation_config
        if config.budget is not None or budgeted or (inherits and facts.server is not None) or _phrased(command):
            return config
    elif budgeted:
        first = asked.requests[0]
        return Config(first.location.path, "request", first.location, "the requests")
    return None


def _phrased(command: ServeCommand) -> bool:
    """A `--reasoning-config` is there for budgets alone."""
    return command.known(CONFIG)


def _as_request(config: Config) -> Config:
    """A number, as the request it stands for where a server reads budgets from requests alone."""
    node = config.budget
    assert node is not None  # noqa: S101  (a scalar form has its budget)
    place = config.location
    messages = Entry("messages", place, Node(place, items=()))
    body = Node(place, entries=(messages, Entry(BUDGET_KEY, place, node)))
    return replace(config, budget=None, requests=(Request(WITH_BUDGET, "chat", body),))
