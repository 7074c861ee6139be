"""What an audit could look at, surface by surface, and what it could not and why."""

from __future__ import annotations

from ..prompts.model import Model
from .bud_audit import budget_coverage
from .facts import AuditFacts, ServerFacts
from .finding import Coverage
from .live import live_coverage
from .vllm_prompts import not_as_ours

LOADED_BY_TRANSFORMERS = ("folder", "hub")
"""Kinds of model whose tokenizer transformers builds from a folder, which TPL014 compares with the one here."""


def coverage(facts: AuditFacts) -> list[Coverage]:
    """What could be looked at, and what not and why."""
    model = facts.survey.model if facts.survey is not None else None
    rows = [_template_row(facts, model), _prompt_row(facts), _tokenizer_row(facts, model), _parser_row(facts)]
    no_server = Coverage("server", "absent", "no --serve")
    server = _server_row(facts.server) if facts.server is not None else no_server
    return [*rows, server, *live_coverage(facts), budget_coverage(facts)]


def _server_row(server: ServerFacts) -> Coverage:
    foreign = server.command is not None and server.command.tag_of is not None
    unknown = server.version_unknown
    return Coverage("server", "partial" if foreign and unknown is not None else "examined", unknown)


def _template_row(facts: AuditFacts, model: Model | None) -> Coverage:
    if model is not None and model.kind == "served":
        return Coverage("template", "absent", "the server does not show its template: its prompts were looked at")
    if model is not None and model.coded is not None:
        return Coverage("template", "absent", f"no template has a say: {model.coded.by} builds the prompts")
    if model is None or model.template is None:
        return Coverage("template", "skipped", facts.prompt_problem)
    unseen = [s for s in facts.survey.states if s.error_kind == "unseen"] if facts.survey is not None else []
    if unseen:
        return Coverage("template", "partial", f"{len(unseen)} renderings were not tried after one had to be ended")
    return Coverage("template", "examined", None)


def _prompt_row(facts: AuditFacts) -> Coverage:
    if facts.survey is None:
        why = facts.prompt_problem if facts.live is not None else None
        return Coverage("prompt", "skipped", why or "without the model there is no prompt")
    if facts.prompt_problem is not None:
        return Coverage("prompt", "skipped", facts.prompt_problem)
    otherwise = not_as_ours(facts.survey)
    if otherwise is not None:
        return Coverage("prompt", "partial", otherwise)
    prompts = [state.prompt for state in facts.survey.states if state.prompt is not None]
    if prompts and not any(prompt.strip() for prompt in prompts):
        return Coverage("prompt", "partial", "the template writes nothing, whatever the request: every prompt is empty")
    return Coverage("prompt", "examined", None)


def _tokenizer_row(facts: AuditFacts, model: Model | None) -> Coverage:
    if model is None:
        return Coverage("tokenizer", "skipped", "without the model there is no tokenizer")
    if model.tokenizer is None:
        assumed = "the probes ran on an assumed tokenizer" if facts.candidates else "nothing was tokenized"
        reason = f"{model.tokenizer_problem or 'no tokenizer'}; {assumed}"
        return Coverage("tokenizer", "absent" if facts.lone else "partial", reason)
    error = model.tokenizer.check().error if model.kind in LOADED_BY_TRANSFORMERS else None
    if error is not None:
        return Coverage("tokenizer", "partial", f"read from tokenizer.json; transformers cannot build it: {error}")
    return Coverage("tokenizer", "examined", None)


def _parser_row(facts: AuditFacts) -> Coverage:
    if facts.mode == "none":
        return Coverage("parser", "absent", "no reasoning parser is configured")
    if facts.unknown is not None:
        return Coverage("parser", "examined", None)
    if facts.unjudged is not None:
        return Coverage("parser", "skipped", facts.unjudged)
    if not facts.candidates:
        return Coverage("parser", "skipped", "there is no prompt to try it on")
    unmodelled = [c.name for c in facts.candidates if c.unsupported is not None and c.raised is None]
    if facts.mode == "configured":
        judged = facts.judged
        if judged is not None and judged.name in unmodelled:
            return Coverage("parser", "skipped", f"{judged.name}: {judged.unsupported}")
        return Coverage("parser", "examined", None)
    if facts.thinks and facts.thinking.start is None and not facts.thinking.harmony:
        return Coverage("parser", "partial", "the template shows no thinking markers to try a parser with")
    if facts.unmodelled and facts.recommended is None:
        missed = ", ".join(facts.unmodelled)
        return Coverage("parser", "partial", f"no built-in model yet of what may suit this model: {missed}")
    reason = f"{len(unmodelled)} of {len(facts.candidates)} parsers have no built-in model yet" if unmodelled else None
    return Coverage("parser", "examined", reason)
