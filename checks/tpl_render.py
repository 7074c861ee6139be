"""TPL rules on rendering itself: what raises, what is ignored, and templates or tokenizers at odds with each other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from ..prompts.kwargs import EFFORTS
from ..prompts.survey import PromptState
from .evidence import conversation_said, request_json, said
from .facts import AuditFacts
from .finding import Finding, Location, Severity
from .rule import Rule, register

_APPLY = "transformers apply_chat_template, as vLLM 0.33.0 calls it (vllm/renderers/hf.py)"
_ORDINARY = ("single_turn", "multi_turn")
_TOOLS = ("tools", "tool_result")
_LIMITS = ("timeout", "memory", "output", "crashed", "unseen")


@register
class RenderFailed(Rule):
    id = "TPL008"
    slug = "render-failed"
    severity = "error"
    what = (
        "Fires when the template raises, or exceeds its time, memory or output limit, for an ordinary conversation."
        " Refusing a system message on purpose is a warning, and so is a tool conversation unless the serve command"
        " enables tools."
    )
    why = "Every such request is an HTTP 400 or 500 while health checks stay green."
    example = (
        "a template that adds content to a string: None is not allowed on an assistant turn that only calls a tool"
    )
    instead = "Mend the line shown, or give another template with --chat-template."
    sources = (_APPLY, "Jinja2 ImmutableSandboxedEnvironment")

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        if facts.survey is None:
            return
        failed: dict[tuple[Severity, str], list[PromptState]] = {}
        ended: list[PromptState] = []
        for state in facts.survey.states:
            if state.state != "error" or state.conversation == "continue_final_message" or not _sent(facts, state):
                continue
            if _rejected_effort(facts, state):
                continue  # TPL009 tells it
            if state.error_kind in _LIMITS:
                ended.append(state)
                continue
            plain = facts.survey.get("single_turn", state.variant)
            same = plain is not None and (plain.error, plain.error_line) == (state.error, state.error_line)
            severity = _severity(facts, state, "single_turn" if same else state.conversation)
            failed.setdefault((severity, f"{state.error_kind} {state.error}"), []).append(state)
        if ended:  # what had to be ended takes the renderings after it along: one defect, however many conversations
            severe = "error" if any(_severity(facts, s, s.conversation) == "error" for s in ended) else "warning"
            ended.sort(key=lambda state: state.error_kind == "unseen")
            failed[(cast(Severity, severe), "ended")] = ended
        told: set[tuple[Severity, str]] = set()
        for (severity, what), states in sorted(failed.items()):
            shown = states[0]
            # One broken line may word its complaint differently in each conversation.
            place = (severity, f"{shown.error_line}") if shown.error_line is not None else (severity, what)
            if place in told or ("error", place[1]) in told:
                continue
            told.add(place)
            yield cls.finding(
                f"{said(shown.variant)} with {conversation_said(shown.conversation)}: {_maker(facts)} {_how(shown)}",
                hint=_mend(shown, _maker(facts)),
                severity=severity,
                confidence=facts.template_confidence,
                subject=facts.subject(variant=dict(shown.variant), conversation=shown.conversation),
                location=_line(facts, shown),
                evidence={
                    "request": request_json(shown.variant),
                    "kind": shown.error_kind,
                    "error": shown.error,
                    "cells": [{"conversation": s.conversation, "variant": dict(s.variant)} for s in states],
                },
            )


def _rejected_effort(facts: AuditFacts, state: PromptState) -> bool:
    """It is the request's effort alone that the template refuses: a plain request renders."""
    if facts.survey is None or "reasoning_effort" not in state.variant:
        return False
    alone = facts.survey.get("single_turn", {"reasoning_effort": state.variant["reasoning_effort"]})
    plain = facts.plain()
    return alone is not None and alone.state == "error" and plain is not None and plain.state != "error"


@register
class EffortRejected(Rule):
    id = "TPL009"
    slug = "effort-rejected"
    severity = "warning"
    what = "Fires when some reasoning_effort level makes the template raise while a plain request renders."
    why = "Every request with that effort is an HTTP error while health checks stay green."
    example = "a template that takes low, medium and xhigh, and a client that sends high"
    instead = "Map the level on the server (--reasoning-effort-map, vLLM 0.33) or change what clients send."
    sources = (
        _APPLY,
        "vLLM 0.33.0 vllm/entrypoints/openai/cli_args (--reasoning-effort-map)",
        "github.com/QwenLM/Qwen3.8 issue 217",
    )

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        plain = facts.plain()
        if plain is None or plain.state == "error":
            return
        efforts = _efforts(facts, "single_turn")
        rejected = [level for level in EFFORTS if level in efforts and efforts[level].state == "error"]
        if not rejected:
            return
        taken = [level for level in EFFORTS if level not in rejected]
        shown = efforts[rejected[0]]
        with_map = facts.target.product == "vllm" and facts.target.version >= (0, 33, 0)
        own = dict(facts.server.effort_map) if facts.server is not None else {}
        written = [level for level in taken if level not in own]  # a mapped one is no name that the template knows
        moved = [level for level in rejected if level != "none"] if with_map and written else []
        mapped = {level: _nearest(level, written) for level in moved}
        mend = f"--reasoning-effort-map '{json.dumps(own | mapped)}', or " if mapped else ""
        maker = _maker(facts)
        sent = sum(request.count for request in facts.requests or () if request.effort in rejected)
        really = f"; {sent} of the given requests send one" if sent else ""
        yield cls.finding(
            f"reasoning_effort {', '.join(rejected)}: {maker} {_verb(shown)} it, and every such request is an "
            f"error{really}",
            hint=f"{mend}clients send {', '.join(taken) or 'no effort'}",
            confidence=facts.template_confidence,
            subject=facts.subject(variant=dict(shown.variant)),
            location=_line(facts, shown),
            evidence={
                "request": request_json(shown.variant),
                "error": shown.error,
                "rejected": rejected,
                "accepted": taken,
            },
        )


@register
class EffortIgnored(Rule):
    id = "TPL010"
    slug = "effort-ignored"
    severity = "info"
    what = "Fires when the template reads reasoning_effort and gives several of its levels the same prompt."
    why = (
        "A client that raises the effort gets the same answer, and a budget map by effort promises what the model "
        "ignores."
    )
    example = "GLM-5.2: none, minimal, low and medium all say 'Reasoning Effort: Max'"
    instead = "Offer only the levels that differ."
    sources = (_APPLY,)

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        plain = facts.plain()
        if (
            plain is None
            or plain.state == "error"
            or facts.survey is None
            or "reasoning_effort" not in facts.survey.reads
        ):
            return
        efforts = _efforts(facts, "single_turn")
        groups: dict[str, list[str]] = {}
        for level in EFFORTS:
            state = efforts.get(level, plain)
            if state.state != "error":
                groups.setdefault(state.prompt or "", []).append(level)
        alike = [levels for levels in groups.values() if len(levels) > 1]
        if not alike:
            return
        yield cls.finding(
            f"{_maker(facts)} does not tell apart {'; '.join(' = '.join(levels) for levels in alike)}",
            hint="offer only the levels that differ",
            confidence=facts.template_confidence,
            subject=facts.subject(),
            location=facts.template_at,
            evidence={"same_prompt": alike},
        )


@register
class TemplatesDisagree(Rule):
    id = "TPL012"
    slug = "templates-disagree"
    severity = "warning"
    what = (
        "Fires when chat_template.jinja and the template inside tokenizer_config.json leave the model in different "
        "states."
    )
    why = (
        "transformers takes the file; older versions, converters and other servers take the one in "
        "tokenizer_config.json. The same folder then thinks on one server and not on the other."
    )
    example = "chat_template.jinja ends in <think>\\n, tokenizer_config.json's copy is silent"
    instead = "Delete one of the two, or make them equal."
    sources = ("transformers 5.24 tokenization_utils_base.py _from_pretrained",)

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        for other in facts.others:
            conversation, variant, used, theirs = other.differs[0]
            mine = facts.survey.model.template if facts.survey is not None else None
            yield cls.finding(
                f"{mine.origin if mine is not None else 'the template'} leaves {said(variant)} {used}, and the one in "
                f"{other.origin} {theirs}",
                hint="delete one of the two, or make them equal",
                confidence=facts.template_confidence,
                subject=facts.subject(variant=dict(variant), conversation=conversation),
                location=other.location,
                evidence={
                    "differs": [
                        {"conversation": c, "variant": dict(v), "used": mine_state, "other": their_state}
                        for c, v, mine_state, their_state in other.differs
                    ]
                },
            )


@register
class TokenizerLosesText(Rule):
    id = "TPL014"
    slug = "tokenizer-loses-text"
    severity = "error"
    what = (
        "Fires when the tokenizer that transformers builds from the folder does not give a text back, or gives "
        "other ids than tokenizer.json itself."
    )
    why = (
        "The server cuts prompts with transformers' tokenizer: the model sees text without spaces, or tokens it "
        "never learned."
    )
    example = (
        "transformers 5.19 builds R1-Distill-Llama's as a SentencePiece-style Llama tokenizer and drops every space"
    )
    instead = "Serve with a transformers that builds it rightly (5.24 does), or name the right tokenizer_class."
    sources = ("transformers 5.19 and 5.24 AutoTokenizer",)

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        for fault in facts.tokenizer_faults[:1]:
            yield cls.finding(
                fault.what,
                hint="serve with a transformers that builds this tokenizer rightly, or mend tokenizer_class",
                confidence="high",
                subject=facts.subject(),
                location=_tokenizer_config(facts),
                evidence={**fault.evidence},
            )


def _sent(facts: AuditFacts, state: PromptState) -> bool:
    """A request that people send: plain, with a thinking switch the template reads, or one that was given."""
    if facts.weight(state) != "asked" or facts.survey is None:
        return False
    switches = {name for name, _, _ in facts.survey.switches}
    return set(state.variant) <= switches or dict(state.variant) in [dict(given) for given in facts.asked]


def _severity(facts: AuditFacts, state: PromptState, kind: str) -> Severity:
    if kind in _ORDINARY:
        return "error"
    if kind in _TOOLS:
        return "error" if facts.server is not None and facts.server.tools else "warning"
    return "warning"


def _how(state: PromptState) -> str:
    told = {
        "timeout": "runs out of time",
        "memory": "runs out of memory",
        "output": "writes too much",
        "crashed": "brings its process down",
        "unseen": "was ended earlier and not tried again",
        "refused": "tries what the sandbox refuses",
    }
    how = told.get(state.error_kind or "")
    if how is not None:
        return f"{how} ({state.error})" if state.error else how
    verb = "refuses" if state.refused_by_template else "raises"
    return f"{verb}: {state.error}"


def _verb(state: PromptState) -> str:
    return "refuses" if state.refused_by_template else "raises over"


def _maker(facts: AuditFacts) -> str:
    """What makes the prompts: no template has a say where code does."""
    coded = facts.survey is not None and facts.survey.model.coded is not None
    return "the prompt builder" if coded else "the template"


def _mend(state: PromptState, maker: str) -> str:
    if state.error_kind not in _LIMITS and maker != "the template":
        return f"{maker} {'refuses this' if state.refused_by_template else 'fails'} in the server too: do not send it"
    if state.error_kind in _LIMITS:
        return "do not serve this template before someone has read it"
    if state.error_kind == "refused":
        return "servers render in this sandbox too: write the line shown without it"
    if state.refused_by_template:
        return "the template refuses this on purpose: clients must not send it"
    return "mend the line shown, or give another template with --chat-template"


def _line(facts: AuditFacts, state: PromptState) -> Location | None:
    at = facts.template_at
    template = facts.survey.model.template if facts.survey is not None else None
    if at is None or state.error_line is None or template is None or not template.origin.endswith((".jinja", ".j2")):
        return at
    return replace(at, line=state.error_line, column=1)


def _efforts(facts: AuditFacts, conversation: str) -> dict[str, PromptState]:
    states = facts.survey.states if facts.survey is not None else ()
    return {
        str(state.variant["reasoning_effort"]): state
        for state in states
        if state.conversation == conversation and set(state.variant) == {"reasoning_effort"}
    }


def _nearest(level: str, taken: list[str]) -> str:
    """The accepted level closest to a rejected one, the higher of two; `none` only where nothing else is accepted."""
    rank = {name: index for index, name in enumerate(EFFORTS)}
    choices = [name for name in taken if name != "none"] or taken
    return min(choices, key=lambda name: (abs(rank[name] - rank[level]), -rank[name]))


def _tokenizer_config(facts: AuditFacts) -> Location | None:
    model = facts.survey.model if facts.survey is not None else None
    if model is None or model.kind != "folder" or model.path is None:
        return None
    file = model.path / "tokenizer_config.json"
    return Location(str(file if file.is_file() else model.path / "tokenizer.json"))
