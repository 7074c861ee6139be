"""Gathers the facts of an audit: renders the prompts, puts the probes to every parser, ranks what came out."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import versions
from ..parsers import (
    ROWS,
    STATE_MARKERS,
    ParserRaisedError,
    ParserUnsupportedError,
    Target,
    Vocabulary,
    build,
    names,
    near_names,
    paired,
)
from ..parsers.assumed import AssumedVocabulary, table_markers
from ..parsers.engines import BuiltinEngine, ParserEngine
from ..parsers.row import ParserRow
from ..prompts.asked import vllm_prompts
from ..prompts.bridged import evaluated
from ..prompts.cut import CodedTokenizer
from ..prompts.model import Model, Template
from ..prompts.served import ServedTokenizer
from ..prompts.survey import Survey, survey
from ..prompts.tokenizer import CHECK_TEXTS, Tokenizer
from ..serve.plugin import PluginFile, plugin_file
from . import (
    fit_cost,
    fit_mode,
    fit_setup,
    fit_split,
    fit_stress,
    srv_client,
    srv_flags,
    srv_grammar,
    srv_values,
    tpl_history,
    tpl_render,
    tpl_states,
)
from .bud_audit import BudgetAsked, budget_facts, budget_findings
from .coverage import LOADED_BY_TRANSFORMERS
from .evidence import prompt_tail
from .facts import (
    AuditFacts,
    Gate,
    MarkerFact,
    Mode,
    OldFieldRead,
    OtherTemplate,
    SentRequest,
    ServerFacts,
    TokenizerFault,
)
from .finding import Finding, Location
from .internal import ResultLost, UnreadableInput
from .live import Live, LiveAnswer, LiveFacts, answers_of, facts_of, judged_live, live_findings
from .probes import Cell, cells_of
from .rank import ranked, recommended, refuted
from .rule import Rule
from .srv_client import shared_once
from .thinking import Thinking, read_thinking
from .trial import Bench
from .vllm_prompts import lost_prompts, served

_ROOMS = (
    tpl_states,
    tpl_render,
    tpl_history,
    fit_mode,
    fit_setup,
    fit_split,
    fit_stress,
    fit_cost,
    srv_flags,
    srv_grammar,
    srv_client,
    srv_values,
)


def audit(
    model: Model | None,
    *,
    source: str,
    parser: str | None,
    mode: Mode | None = None,
    target: Target,
    server: ServerFacts | None = None,
    asked: Sequence[Mapping[str, Any]] = (),
    model_problem: str | None = None,
    engine: ParserEngine | None = None,
    requests: tuple[SentRequest, ...] | None = None,
    clients: tuple[OldFieldRead, ...] | None = None,
    budget: BudgetAsked | None = None,
    live: Live | None = None,
) -> AuditFacts:
    """Everything there is to know about one model under one server.

    Args:
        model: None where a server's model is not there; then only the name of its parser can be looked at.
        source: how the user names the model.
        parser: a parser's name, `auto`, or None for no parser at all.
        mode: what `parser` is where that is not plain from it: a server's own `auto` is a name to vLLM, and one that
            is configured and None is a name that only the running shell knows.
        target: the server to judge by.
        server: the serve command, where there is one.
        asked: chat-template kwargs that real requests send.
        model_problem: why there is no model.
        engine: who runs the parsers; None: the built-in models of the target.
        requests: requests that are really sent, None where none were given.
        clients: where clients read the field of old releases, None where no client was given.
        budget: the thinking budget to judge; by default the one the serve command sets.
        live: a server that runs already: it makes the prompts, and its answers are held against the parsers'.
    """
    runs = engine or BuiltinEngine(target)
    mode = mode or ("none" if parser is None else "auto" if parser == "auto" else "configured")
    configured = parser if mode == "configured" else None
    command = server.command if server is not None else None
    plugin = None
    if command is not None and runs.target is None:  # a running vLLM has loaded it
        plugin = plugin_file(command, "reasoning-parser-plugin")
    unjudged = _unjudged(mode, configured, target, plugin)
    bare = AuditFacts(
        source=source,
        target=target,
        survey=None,
        thinking=Thinking(),
        mode=mode,
        configured=configured,
        unknown=_unknown(configured, target, runs, plugin) if unjudged is None else None,
        unjudged=unjudged,
        tool_plugin=plugin_file(command, "tool-parser-plugin") if command is not None else None,
        server=server,
        asked=tuple(asked),
        requests=requests,
        clients=clients,
        registered=runs.names() if runs.target is not None else (),
        plugin_problem=runs.plugin_problem,
    )
    if model is None:
        bare = replace(
            bare, prompt_problem=model_problem or "the model is not there", live=_unasked(live, model_problem)
        )
        return replace(bare, budget=budget_facts(bare, budget or BudgetAsked()))
    if model.tokenizer is not None and model.kind in LOADED_BY_TRANSFORMERS:
        _check_loading(model.tokenizer, runs)
    served(server).tell(model)
    vllm = live.prompts if live is not None else vllm_prompts(runs, model, served(server))
    model = evaluated(model, vllm)
    rendered = survey(
        model,
        target=target,
        default_kwargs=server.default_kwargs if server is not None else None,
        effort_map=server.effort_map if server is not None else None,
        extra_variants=tuple(asked),
        parser_moves=_moves(ROWS.get(configured or "")),
        vllm=vllm,
    )
    thinking = read_thinking(rendered, ROWS.values())
    facts = replace(
        bare,
        survey=rendered,
        thinking=thinking,
        prompt_problem=_prompt_problem(model, rendered),
        real_tokenizer=model.tokenizer is not None,
        lone=model.kind in ("template", "tokenizer_config"),
        named=tuple(name for name in paired(_names_in(model), model.model_type) if name in runs.names()),
        call=_call(model, paired(_names_in(model), model.model_type)),
        renders_tools=_renders_tools(rendered),
        others=tuple(_others(model, rendered, target, runs, server)),
        template_at=template_location(model, thinking),
    )
    facts = _with_parsers(facts, model, runs, live)
    facts = replace(facts, tokenizer_faults=tuple(_tokenizer_faults(model)))
    return replace(facts, budget=budget_facts(facts, budget or BudgetAsked()))


def findings(facts: AuditFacts) -> list[Finding]:
    """What the rules make of the facts."""
    found = [finding for rule in rules() for finding in rule.check(facts)]
    return [*found, *budget_findings(facts), *live_findings(facts), *_unread(facts), *_lost(facts)]


def findings_of(audited: Sequence[AuditFacts]) -> list[Finding]:
    """What the rules make of several audits; a client's old read is one defect, whichever servers it is read from."""
    return shared_once([finding for facts in audited for finding in findings(facts)])


def _lost(facts: AuditFacts) -> Iterable[Finding]:
    """One finding for each parser that lost results: the judged one alone matters to a server, all to a ranking."""
    yield from lost_prompts(facts)
    for candidate in facts.candidates:
        if candidate.lost and (facts.mode == "auto" or candidate is facts.judged):
            first, more = candidate.lost[0], len(candidate.lost) - 1
            yield ResultLost.finding(
                f"{first.lost}: {candidate.name} on {first.probe.name}" + (f", and {more} more" if more else ""),
                hint="the other results stand; a parser that hangs or exits takes a served request down the same way",
                subject=facts.subject(parser=candidate.name),
                location=facts.parser_at,
                evidence={"output": first.probe.text, "request": {"chat_template_kwargs": dict(first.cell.kwargs)}},
            )
    if facts.plugin_problem is not None:
        yield ResultLost.finding(
            facts.plugin_problem,
            hint="mend the plugin: vLLM starts without its parsers, or not at all",
            subject=facts.subject(key="reasoning-parser-plugin"),
            location=facts.parser_at,
        )


def _unread(facts: AuditFacts) -> Iterable[Finding]:
    model = facts.survey.model if facts.survey is not None else None
    for part in model.unreadable if model is not None else ():
        what = f"{part.file} cannot be read" if part.key is None else f"a value of {part.file} counts as not there"
        yield UnreadableInput.finding(
            f"{what}: {part.reason}",
            hint="mend or remove it; the rest was read",
            subject=facts.subject(key=part.file if part.key is None else f"{part.file}: {part.key}"),
            location=Location(_file_path(model, part.file), part.line, part.column) if model is not None else None,
        )


def rules() -> tuple[Any, ...]:
    """The rules that turn audit facts into findings, by id."""
    found = {
        value
        for room in _ROOMS
        for value in vars(room).values()
        if isinstance(value, type) and issubclass(value, Rule) and hasattr(value, "id")
    }
    return tuple(sorted(found, key=lambda rule: rule.id))


def template_location(model: Model, thinking: Thinking) -> Location | None:
    """The line that writes the marker of a generation prompt, else the template's first line."""
    template = model.template
    if template is None:
        return None
    return Location(_template_path(model, template), _template_line(template, thinking))


def _unasked(live: Live | None, why: str | None) -> LiveFacts | None:
    """A running server that nothing could be asked of, since nothing is known of its model."""
    return facts_of(live, problem=why) if live is not None else None


def _with_parsers(facts: AuditFacts, model: Model, engine: ParserEngine, live: Live | None) -> AuditFacts:
    rendered = facts.survey
    if rendered is None or not rendered.states:
        return replace(facts, live=_unasked(live, facts.prompt_problem))
    vocabulary: Vocabulary = model.tokenizer or AssumedVocabulary(_own_markers())
    cells = cells_of(rendered, vocabulary, facts.asked)
    answers: tuple[LiveAnswer, ...] = ()
    if live is not None and live.problem is None and not isinstance(vocabulary, AssumedVocabulary):
        answers = answers_of(live, rendered, vocabulary, engine, asked=facts.asked, configured=facts.configured)
    markers = tuple(_markers(facts.thinking, model.tokenizer))
    skips = model.generation_config.get("skip_special_tokens", True) if facts.target.version >= (0, 33, 0) else True
    bench = Bench(
        cells,
        facts.thinking,
        vocabulary,
        call=facts.call if facts.renders_tools else None,
        stop_ids=model.eos_ids if model.tokenizer is not None else frozenset(),
        hides=bool(skips) and any(marker.special for marker in markers),
        target=facts.target,
        engine=engine,
    )
    text = model.prompt_text
    tried = [bench.candidate(name) for name in engine.names()]
    if not facts.exact:
        tried = [replace(each, refuted=refuted(each, facts.target, facts.plain())) for each in tried]
    old = not facts.exact and facts.target.product == "vllm"
    rewritten = old and not versions.fact("parser-engine", facts.target.version)
    candidates = ranked(tried, facts.named, text, rewritten=rewritten)
    facts = replace(
        facts,
        markers=markers,
        candidates=candidates,
        recommended=recommended(candidates, facts.named, facts.thinking, rewritten=rewritten),
    )
    if live is not None:
        facts = judged_live(facts, live, answers)
    return replace(facts, gates=tuple(_gates(facts, cells, vocabulary)))


def _own_markers() -> list[str]:
    """State markers that no parser knows, one token each; what is made of a parser's own markers is cut into those."""
    known = table_markers()
    texts = [text for pair in STATE_MARKERS for text in (pair.start, pair.end)]
    return [text for text in texts if not any(marker in text for marker in known)]


def _gates(facts: AuditFacts, cells: Sequence[Cell], vocabulary: Vocabulary) -> Iterable[Gate]:
    """What the configured parser reads from every prompt, as the server asks it before a grammar may bind."""
    if facts.configured is None or facts.configured not in names(facts.target) or facts.unjudged is not None:
        return
    if facts.configured == "mistral":
        return  # mistral's own grammar has room for a thought (vLLM 0.33.0, vllm/parser/mistral.py)
    for cell in cells:
        try:
            model = build(
                facts.configured, vocabulary, cell.kwargs, request_kwargs=cell.request_kwargs, target=facts.target
            )
            model.begin(cell.prompt_ids, streaming=False)
            ended = bool(model.is_reasoning_end(cell.prompt_ids))  # the engine takes no answer (None) for a no
        except (ParserRaisedError, ParserUnsupportedError):
            continue
        tail = prompt_tail(facts, cell)
        yield Gate(cell.conversation, dict(cell.variant), cell.thinks or cell.unclear, ended, tail, cell.weight)


def _unjudged(mode: Mode, configured: str | None, target: Target, plugin: PluginFile | None) -> str | None:
    """Why the configured parser cannot be tried here: nobody knows its name, or it is a plugin's."""
    if mode == "configured" and configured is None:
        return "the name of the reasoning parser is known to the running shell alone"
    if configured is None or plugin is None:
        return None
    brought = plugin.brings(configured)
    if brought or (brought is None and configured not in names(target)):
        may = "registers" if brought else "may register"
        return f"{plugin.given} {may} {configured}: --vllm loads it and runs it"
    return None


def _unknown(configured: str | None, target: Target, engine: ParserEngine, plugin: PluginFile | None) -> str | None:
    """How to mend a parser name that the target does not register; None where it does, or none was given."""
    if configured is None or configured in engine.names():
        return None
    if plugin is not None and configured not in ROWS:
        if plugin.problem is not None:
            return f"the plugin does not register it: {plugin.problem}"
        had = f"registers {', '.join(plugin.names)}" if plugin.names else "registers no reasoning parser"
        return f"{plugin.given} {had}: use that name, or register {configured} there"
    if engine.plugin_problem is not None:
        return f"the plugin registers nothing: {engine.plugin_problem}"
    if configured in ROWS:
        return f"vLLM {ROWS[configured].since} and later have it"
    near = near_names(configured, target)
    return f"did you mean {' or '.join(near)}?" if near else f"the target has {', '.join(engine.names())}"


def _moves(row: ParserRow | None) -> Callable[[Mapping[str, Any]], Hashable]:
    """What kwargs make of a parser's start: whether it thinks. Without a row: by enable_thinking, on by default."""
    reads = {kwarg.name: kwarg.default for kwarg in row.kwargs} if row is not None else {"enable_thinking": "on"}

    def moves(kwargs: Mapping[str, Any]) -> Hashable:
        states = []
        switches = [name for name in ("enable_thinking", "thinking") if name in reads]
        if switches:
            given = [bool(kwargs[name]) for name in switches if name in kwargs]
            states.append(any(given) if given else reads[switches[0]] == "on")
        if "reasoning_effort" in reads:
            effort = kwargs.get("reasoning_effort")
            states.append(effort not in ("", "no_think") if effort is not None else reads["reasoning_effort"] == "on")
        return tuple(states)

    return moves


def _names_in(model: Model) -> str:
    """The part of the source that names the model: a folder's own name, not the folders around it."""
    if model.kind == "served":
        return f"{model.source} {_last_part(model.known_as or '')}"
    if model.kind in ("fixture", "hub") or model.path is None:
        return model.source
    path = Path(model.source)
    return path.resolve().name if model.kind == "folder" else f"{path.resolve().parent.name}/{path.name}"


def _last_part(root: str) -> str:
    """A hub id as it is; of a path, the folder's own name."""
    return root if root.count("/") == 1 and not root.startswith("/") else root.rstrip("/").rpartition("/")[2]


def _call(model: Model, named: Sequence[str]) -> str | None:
    """How this model opens a tool call: the first tool marker of its own parser, or of any, that the template holds."""
    text = model.prompt_text
    rows = [ROWS[name] for name in (*named, *ROWS)]
    marker = next(
        (marker for row in rows for marker in (*row.implicit_ends, *row.tool_markers) if marker in text), None
    )
    return None if marker is None else f'{marker}\n{{"name": "get_weather", "arguments": {{"city": "Rome"}}}}'


def _renders_tools(rendered: Survey) -> bool:
    with_tools, without = rendered.get("tools", {}), rendered.get("single_turn", {})
    shown = [state.prompt is not None and "get_weather" in state.prompt for state in (with_tools, without) if state]
    return shown == [True, False]


def _others(
    model: Model, rendered: Survey, target: Target, engine: ParserEngine, server: ServerFacts | None
) -> Iterable[OtherTemplate]:
    """The template of tokenizer_config.json that a chat_template.jinja hides, where it leaves other states."""
    used = model.template
    if used is None or used.origin != "chat_template.jinja":
        return
    for other in model.templates:
        if other.origin != "tokenizer_config.json" or other.name != used.name or other.text == used.text:
            continue
        alone = replace(model, template=other, templates=(other,))
        # As a template of its own: the file it stands in is hidden in the folder.
        given = replace(alone, template=replace(other, path=None))
        second = survey(alone, target=target, vllm=vllm_prompts(engine, given, served(server)))
        differs = tuple(
            (mine.conversation, dict(mine.variant), mine.state, theirs.state)
            for mine in rendered.states
            if (theirs := second.get(mine.conversation, mine.variant)) is not None
            and mine.state != theirs.state
            and mine.conversation in ("single_turn", "multi_turn", "tools", "tool_result")
        )
        if differs:
            yield OtherTemplate(
                other.origin, Location(_template_path(model, other), _template_line(other, Thinking())), differs
            )


def _check_loading(tokenizer: Tokenizer | CodedTokenizer | ServedTokenizer, engine: ParserEngine) -> None:
    """See what transformers builds from the folder: the running vLLM's own, else ours, in a process beside this one."""
    answer = engine.loads(tokenizer.folder, CHECK_TEXTS) if isinstance(tokenizer, Tokenizer) else None
    if answer is not None and "failed" not in answer and isinstance(tokenizer, Tokenizer):
        tokenizer.take_check(answer)
    else:
        tokenizer.start_check()


def _tokenizer_faults(model: Model) -> Iterable[TokenizerFault]:
    if model.tokenizer is None or model.kind not in LOADED_BY_TRANSFORMERS:
        return
    check = model.tokenizer.check()
    built = {"loader": check.loader, "class": check.built}
    if check.text_lost is not None:
        yield TokenizerFault(
            f"{check.loader} builds a tokenizer from this folder that does not give text back",
            {**built, "text": check.text_lost, "given_back": check.given_back},
        )
    elif check.ids_differ is not None:
        yield TokenizerFault(
            f"{check.loader} builds a tokenizer from this folder that gives other ids than tokenizer.json",
            {**built, "text": check.ids_differ},
        )


def _markers(thinking: Thinking, tokenizer: Vocabulary | None) -> Iterable[MarkerFact]:
    for text in (thinking.start, thinking.end):
        if text is None:
            continue
        marker = text.strip("\n")
        if tokenizer is None:
            yield MarkerFact(marker, (), None, None)
        else:
            ids = tuple(tokenizer.encode(marker))
            special = len(ids) == 1 and ids[0] in tokenizer.special_ids
            told = special or not isinstance(tokenizer, ServedTokenizer)  # a server does not say which are none
            yield MarkerFact(marker, ids, len(ids) == 1, special if told else None)


def _prompt_problem(model: Model, rendered: Survey) -> str | None:
    if model.code_prompt is not None:
        return f"built by code: not evaluated ({model.code_prompt})"
    if model.template is None and model.coded is None:
        empty = any(not template.text.strip() for template in model.templates)
        return "the model's chat template is empty" if empty else "the model has no chat template"
    return None if rendered.states else "nothing was rendered"


def _file_path(model: Model, name: str) -> str:
    """A file of the model's folder as reports name it."""
    if model.path is None or model.kind in ("fixture", "hub"):
        return f"{model.source}/{name}"
    return str(model.path if model.path.is_file() else model.path / name)


def _template_path(model: Model, template: Template) -> str:
    if model.kind in ("fixture", "hub") and template in model.templates and template.path is not None:
        inside = model.path is not None and template.path.is_relative_to(model.path)
        return f"{model.source}/{template.origin}" if inside else str(template.path)
    return str(template.path) if template.path is not None else template.origin


def _template_line(template: Template, thinking: Thinking) -> int:
    """Of a template file: the line, behind the generation prompt's condition, that writes the last marker."""
    if template.path is not None and template.path.suffix == ".json":
        lines = template.path.read_text(encoding="utf-8", errors="replace").splitlines()
        return next((number for number, line in enumerate(lines, 1) if '"chat_template"' in line), 1)
    text = template.text
    begin = max(text.rfind("add_generation_prompt"), 0)
    spots = [
        match.start()
        for marker in (thinking.start, thinking.end)
        if marker
        for match in re.finditer(re.escape(marker.strip()), text)
    ]
    spot = next(iter(sorted(place for place in spots if place >= begin)), begin)
    return text.count("\n", 0, spot) + 1
