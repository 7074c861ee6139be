"""What is known of a configuration before any rule looks at it: its budgets, its requests, and what each is granted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from ..checks.finding import Location
from ..parsers.target import Target
from ..serve.command import ServeCommand
from .config import Config
from .dialects import FALLBACK, LEVELS, RULES, Dialect, Form
from .document import Duplicate, Node, duplicates, refuse, strict
from .request import BUDGET_KEY, FIELD, MESSAGES_LEAST, Broken, Endpoint, Request, pydantic_int
from .resolve import Resolution, ServerBudget, resolve, table
from .standing import Standing, standing, takes_thinking
from .strings import Missing, Runner, Strings, counting_rule, runner_of, strings_of
from .template import TemplateFacts

if TYPE_CHECKING:
    from .context import ModelContext

DEFAULT_LIMITS = (4096, 16384, 32768)
"""Completion limits looked at where neither the call nor the serve command names one."""


@dataclass(frozen=True, slots=True)
class BudgetValue:
    """One budget as it is written. `key` is its level in a map; `request` the request it stands in; `field` its name.

    `location` is the value's place, `key_location` that of the key in front of it.
    """

    value: Any
    field: str
    location: Location
    key_location: Location
    key: str | None = None
    request: str | None = None
    endpoint: Endpoint | None = None

    @property
    def tokens(self) -> int | None:
        """The budget, -1 for unlimited; None where the server refuses it as no integer, or as below -1."""
        if self.endpoint == "messages":
            return pydantic_int(self.value)
        integer = isinstance(self.value, int) and not isinstance(self.value, bool)
        return self.value if integer and self.value >= -1 else None

    @property
    def label(self) -> str:
        """What to call it in a message."""
        return self.key or (self.request and f"request {self.request}") or "the budget"

    @property
    def subject(self) -> dict[str, Any]:
        """Which one it is, for a finding."""
        pairs = {"key": self.key, "request": self.request}
        return {name: value for name, value in pairs.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Granted:
    """One row of the table, and the written budget it comes from (None where no budget was asked for)."""

    resolution: Resolution
    value: BudgetValue | None = None


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """One request. `null` says that its budget is an explicit null; `misplaced` are budgets where nobody looks.

    `refused` is the reason of a refused one. `plain_prompt` says that its prompt is the template's own for its effort.
    """

    name: str
    endpoint: Endpoint
    location: Location
    effort: str | None
    effort_location: Location
    value: BudgetValue | None
    null: BudgetValue | None
    max_tokens: int | None
    beam_search: bool
    standing: Standing
    misplaced: tuple[tuple[tuple[str, ...], Location], ...] = ()
    rows: tuple[Granted, ...] = ()
    refused: str | None = None
    plain_prompt: bool = True
    broken_thinking: Broken | None = None
    tools: bool = False

    @property
    def grants(self) -> BudgetValue | None:
        """Its budget, where the server holds the thinking to it."""
        value = self.value
        return value if value is not None and self.standing == "granted" and (value.tokens or 0) >= 0 else None


@dataclass(frozen=True)
class BudgetFacts:
    """A configuration under one dialect.

    `written` is the server's default as it is written (for the report), `values` are the budgets that are judged.
    `strings` are what the server counts between, None where nobody can tell; `runner` its model runner, None where
    either may run. `context` is the model. `map_keys` are the keys of a map with their places. `limits` are the
    completion limits looked at, in tokens, and `limits_from` says who named them. `rows` is the table; it is empty
    where the server would not start, and `refused` says why.
    """

    target: Target
    dialect: Dialect
    form: Form
    path: str
    location: Location
    where: str
    written: Any = None
    written_by: Location | None = None
    values: tuple[BudgetValue, ...] = ()
    map_keys: tuple[tuple[str, Location], ...] | None = None
    rows: tuple[Granted, ...] = ()
    requests: tuple[RequestFacts, ...] = ()
    limits: tuple[int, ...] = DEFAULT_LIMITS
    limits_from: Literal["--max-tokens", "serve command", "default"] = "default"
    duplicates: tuple[Duplicate, ...] = ()
    misplaced: tuple[tuple[tuple[str, ...], Location], ...] = ()
    command: ServeCommand | None = None
    answer_reserve: int = 256
    template: TemplateFacts | None = None
    refused: str | None = None
    strings: Strings | None = None
    runner: Runner | None = None
    context: ModelContext | None = None

    @property
    def granted(self) -> tuple[BudgetValue, ...]:
        """Every budget that some thinking is held to: the server's own and those of requests."""
        own = [value for value in self.values if value.request is None and (value.tokens or 0) >= 0]
        own = [value for value in own if value.tokens is not None] if self.server_budget_counts else []
        asked = [request.grants for request in self.requests]
        return (*(own if self.refused is None else ()), *(value for value in asked if value is not None))

    @property
    def server_budget_counts(self) -> bool:
        """Whether anything reads a server-side default here."""
        return self.dialect == "slimserve"

    def as_json(self) -> dict[str, Any]:
        """The facts as the JSON report of `validate-config` shows them; what follows `resolutions` is detail."""
        resolutions = [row.resolution for row in self.rows]
        for request in self.requests:
            if request.value is not None and request.standing == "granted":
                resolutions += [row.resolution for row in request.rows]
        facts = {
            "dialect": self.dialect,
            "form": self.form,
            "budgets": self.written,
            "resolutions": [row.as_json() for row in dict.fromkeys(resolutions)],
            "refused": self.refused,
            "rules": RULES[self.dialect],
            "path": self.path,
            "where": self.where,
            "location": _place(self.location),
            "max_tokens": list(self.limits),
            "max_tokens_from": self.limits_from,
            "answer_reserve": self.answer_reserve,
            "requests": [_request_json(request) for request in self.requests],
            "prompts": self.template.as_json() if self.template is not None else None,
        }
        return {key: strict(value) for key, value in facts.items()}


def gather(
    config: Config,
    *,
    target: Target,
    dialect: Dialect,
    limits: Sequence[int] = (),
    efforts: frozenset[str] | None = None,
    requests: Sequence[Request] = (),
    documents: Sequence[Node] = (),
    answer_reserve: int = 256,
    template: TemplateFacts | None = None,
    inherited: Mapping[str, Any] | None = None,
    context: ModelContext | None = None,
) -> BudgetFacts:
    """Everything the rules look at.

    Args:
        config: what was read.
        target: the server to judge by.
        dialect: whose budget rules.
        limits: `--max-tokens` values; empty takes the serve command's limit, else DEFAULT_LIMITS.
        efforts: keep only these rows.
        requests: those of `--requests`; the configuration's own come first.
        documents: what they were read from.
        answer_reserve: tokens an answer needs (BUD307).
        template: what the model's template makes of each effort.
        inherited: the model's own `generation_config.json`, read where a serve command sets no budget itself.
        context: the model's prompts, as a counter sees them.
    """
    config = _with_inherited(config, inherited, dialect)
    command = config.command
    chosen, limits_from = _limits(limits, command)
    values = _server_values(config)
    budget = _server_budget(config.budget, values) if dialect == "slimserve" else None
    refused = _refusal(config.budget, values) if dialect == "slimserve" else None
    starts = refused is None
    all_documents = (*config.documents, *documents)
    strings = strings_of(command, target) if command is not None else None
    runner = runner_of(command, target, context.architectures if context is not None else ())
    if context is not None and isinstance(strings, Strings):
        context = context.counted(strings, counting_rule(target, runner or "v2"))
    facts = BudgetFacts(
        target=target,
        dialect=dialect,
        form=config.form,
        path=config.path,
        location=config.location,
        where=config.where,
        written=config.budget.plain() if config.budget is not None else _only_budget(config.requests),
        written_by=config.location if config.budget is not None else None,
        values=values if dialect == "slimserve" or config.form == "scalar" else (),
        map_keys=_map_keys(config.budget),
        limits=chosen,
        limits_from=limits_from,
        duplicates=tuple(found for node in all_documents for found in duplicates(node)),
        misplaced=_misplaced_flags(command),
        command=command,
        answer_reserve=answer_reserve,
        template=template,
        refused=refused,
        strings=None if isinstance(strings, Missing) else strings,
        runner=runner,
        context=context,
    )
    rows: list[Granted] = []
    by_source = {f"map[{value.key}]" if value.key is not None else "scalar": value for value in values}
    if starts:
        rows = [
            Granted(row, by_source.get(row.source))
            for row in table(dialect, budget, max_tokens=chosen, efforts=efforts)
        ]
        rows += _number_alone(facts, efforts)
    seen = tuple(
        _request_facts(request, facts, budget, efforts, by_source if starts else None)
        for request in (*config.requests, *requests)
    )
    asked = tuple(request.value for request in seen if request.value is not None)
    return replace(facts, rows=tuple(rows), requests=seen, values=(*facts.values, *asked))


def _number_alone(facts: BudgetFacts, efforts: frozenset[str] | None) -> list[Granted]:
    """A bare number under /v1/messages' rules: what a request with it gets at each limit that does not refuse it."""
    if facts.dialect != "anthropic" or facts.form != "scalar" or efforts is not None:
        return []
    return [
        Granted(resolve("anthropic", None, effort=None, request_budget=value.tokens, max_tokens=limit), value)
        for value in facts.values
        for limit in facts.limits
        if value.request is None and value.tokens is not None and MESSAGES_LEAST <= value.tokens < limit
    ]


def _with_inherited(config: Config, inherited: Mapping[str, Any] | None, dialect: Dialect) -> Config:
    """A serve command's budget may stand in the model's own generation config, which the override beats."""
    command = config.command
    if command is None or config.budget is not None or not inherited or BUDGET_KEY not in inherited:
        return config
    if (command.text("generation-config") or "auto") != "auto":
        return config
    node = _node_of(inherited[BUDGET_KEY], config.location)
    return replace(config, budget=node, where=f"the model's generation_config.json → {BUDGET_KEY}")


def _node_of(value: Any, place: Location) -> Node:
    from .document import Entry

    if isinstance(value, Mapping):
        return Node(place, entries=tuple(Entry(str(key), place, _node_of(item, place)) for key, item in value.items()))
    if isinstance(value, list):
        return Node(place, items=tuple(_node_of(item, place) for item in value))
    return Node(place, scalar=value)


def _limits(
    given: Sequence[int], command: ServeCommand | None
) -> tuple[tuple[int, ...], Literal["--max-tokens", "serve command", "default"]]:
    if given:
        return tuple(dict.fromkeys(given)), "--max-tokens"
    if command is not None:
        document = command.document("override-generation-config")
        entry = document.get("max_new_tokens") if document is not None else None
        new = entry.value.plain() if entry is not None else None
        if entry is not None and new is not None and (type(new) is not int or new < 1):
            raise refuse("max_new_tokens is no positive integer", entry.value.location, mend="write a number of tokens")
        unknown = not (command.known("max-model-len") or command.known("ctx"))
        length = None if unknown else command.max_model_len
        served = new if isinstance(new, int) else length
        if served is not None:
            return (served,), "serve command"
    return DEFAULT_LIMITS, "default"


def _server_values(config: Config) -> tuple[BudgetValue, ...]:
    """The budgets the server's default holds: one, or those of a map."""
    node = config.budget
    if node is None:
        return ()
    if node.entries is None:
        return (BudgetValue(node.plain(), BUDGET_KEY, node.location, config.location),)
    return tuple(
        BudgetValue(entry.value.plain(), BUDGET_KEY, entry.value.location, entry.location, key)
        for key, entry in node.fields().items()
    )


def _server_budget(node: Node | None, values: Sequence[BudgetValue]) -> ServerBudget:
    """The default that a SlimServe would start with; None where there is none or it would not start."""
    if node is None or any(value.tokens is None for value in values):
        return None
    if node.entries is None:
        return values[0].tokens
    levels = {value.key: value.value for value in values if value.key is not None}
    return levels if FALLBACK in levels and all(key in LEVELS for key in levels) else None


def _refusal(node: Node | None, values: Sequence[BudgetValue]) -> str | None:
    """Why a SlimServe would not start with this default; None where it would."""
    if node is None:
        return None
    keys = list(node.fields()) if node.entries is not None else [FALLBACK]
    why = [f'"{key}" is no thinking level' for key in keys if key not in LEVELS]
    why += [f"{FALLBACK} is missing"] if FALLBACK not in keys else []
    why += [f"{value.label} is no integer of -1 or more" for value in values if value.tokens is None]
    return f"the server refuses to start: {', '.join(why)}" if why else None


def _map_keys(node: Node | None) -> tuple[tuple[str, Location], ...] | None:
    if node is None or node.entries is None:
        return None
    return tuple((key, entry.location) for key, entry in node.fields().items())


def _only_budget(requests: Sequence[Request]) -> Any:
    """What a configuration of one request says; several requests have no one budget."""
    entry = requests[0].budget if len(requests) == 1 else None
    return entry.value.plain() if entry is not None else None


def _misplaced_flags(command: ServeCommand | None) -> tuple[tuple[tuple[str, ...], Location], ...]:
    """Budgets under flags that hand them to the template, or to nobody."""
    if command is None:
        return ()
    found: list[tuple[tuple[str, ...], Location]] = []
    flag = "default-chat-template-kwargs"
    node = command.document(flag) if command.known(flag) else None
    if node is not None:
        found += [((f"--{flag}", *path), entry.location) for path, entry in node.walk() if entry.key == BUDGET_KEY]
    node = command.document("override-generation-config")
    if node is not None:
        found += [
            (("--override-generation-config", *path), entry.location)
            for path, entry in node.walk()
            if entry.key == BUDGET_KEY and len(path) > 1
        ]
    if "thinking-token-budget" in command.flags:
        found.append((("--thinking-token-budget",), command.flags["thinking-token-budget"].location))
    return tuple(found)


def _request_facts(
    request: Request,
    facts: BudgetFacts,
    budget: ServerBudget,
    efforts: frozenset[str] | None,
    by_source: Mapping[str, BudgetValue] | None,
) -> RequestFacts:
    """What one request asks for and gets; `by_source` holds the server's own budgets, None where it does not start."""
    entry = request.budget
    value = None
    if entry is not None:
        plain, field = entry.value.plain(), FIELD[request.endpoint]
        place = entry.value.location
        value = BudgetValue(plain, field, place, entry.location, None, request.name, request.endpoint)
    unset = value is not None and value.value is None and request.endpoint != "messages"  # which refuses null
    null = value if unset else None
    asked = value if null is None else None
    verdict: Standing = "granted"
    refused: str | None = None
    broken = request.broken_thinking if takes_thinking(facts.target) else None
    if broken is not None:
        verdict, refused = "refused", broken.text
    elif asked is not None:
        verdict, refused = standing(
            request, asked.tokens, command=facts.command, target=facts.target, runner=facts.runner
        )
    rows: list[Granted] = []
    if by_source is not None and verdict != "refused" and (efforts is None or request.effort in efforts):
        tokens = asked.tokens if asked is not None and verdict == "granted" else None
        for limit in (request.max_tokens,) if request.max_tokens is not None else facts.limits:
            row = resolve(facts.dialect, budget, effort=request.effort, request_budget=tokens, max_tokens=limit)
            rows.append(Granted(row, asked if row.source == "request" else by_source.get(row.source)))
    return RequestFacts(
        name=request.name,
        endpoint=request.endpoint,
        location=request.location,
        effort=request.effort,
        effort_location=request.effort_location,
        value=asked,
        null=null,
        max_tokens=request.max_tokens,
        beam_search=request.beam_search,
        standing=verdict,
        misplaced=tuple((path, found.location) for path, found in request.misplaced()),
        rows=tuple(rows),
        refused=refused,
        plain_prompt=request.plain_prompt,
        broken_thinking=broken,
        tools=request.tools,
    )


def _request_json(request: RequestFacts) -> dict[str, Any]:
    written = request.value.value if request.value is not None else None
    return {
        "request": request.name,
        "endpoint": request.endpoint,
        "location": _place(request.location),
        "effort": request.effort,
        "request_budget": written,
        "max_tokens": request.max_tokens,
        "standing": request.standing,
        "refused": request.refused,
        "resolutions": [row.resolution.as_json() for row in request.rows],
    }


def _place(place: Location) -> dict[str, Any]:
    return {"path": place.path, "line": place.line, "column": place.column}
