"""SRV rules on structured output: from which token on a grammar binds, and what then lands where."""

from __future__ import annotations

from collections.abc import Iterator

from .. import versions
from .evidence import conversation_said, request_json, said
from .facts import AuditFacts, Gate, SentRequest
from .finding import Finding
from .rule import Rule, register
from .srv_flags import command_of

_GATE = "vLLM 0.33.0 vllm/v1/structured_output/__init__.py (_get_constraint_bounds)"
_ENDED = "vLLM 0.33.0 vllm/entrypoints/openai/chat_completion/protocol.py resolve_reasoning_ended"


def structured(facts: AuditFacts) -> tuple[SentRequest, ...]:
    """The given requests whose output is constrained."""
    return tuple(request for request in facts.requests or () if request.structured_at is not None)


def grammar_in_reasoning(facts: AuditFacts) -> bool:
    """`enable_in_reasoning`: a grammar binds from the first token whatever the parser reads."""
    command = command_of(facts)
    if command is None or not command.known("structured-outputs-config"):
        return False
    config = command.json("structured-outputs-config", twice=True) or {}
    return config.get("enable_in_reasoning") is True


def gate_of(facts: AuditFacts, request: SentRequest) -> Gate | None:
    """What the parser reads from the prompt of such a request: of its conversation, else of a plain one."""
    variant = dict(request.kwargs)
    if request.effort is not None:
        variant["reasoning_effort"] = request.effort
    for wanted in dict.fromkeys((request.conversation, "tools" if request.tools else "single_turn", "single_turn")):
        found = next((g for g in facts.gates if g.conversation == wanted and dict(g.variant) == variant), None)
        if found is not None:
            return found
    return None


@register
class GrammarNeverStarts(Rule):
    id = "SRV203"
    slug = "grammar-never-starts"
    severity = "error"
    what = (
        "Fires where thinking is off and the parser does not read the prompt as ended. An error where a given request "
        "constrains its output there, else a warning."
    )
    why = (
        "vLLM holds a grammar back until the parser says that reasoning has ended. With thinking off the model writes "
        "no end marker, so the grammar never binds, and the JSON is whatever the model likes."
    )
    example = 'response_format with {"enable_thinking": false}, a template that writes nothing when off, deepseek_r1'
    instead = (
        "Use a parser that follows the template's switch; or let the template close the block; or set "
        "--structured-outputs-config.enable_in_reasoning for servers that never think."
    )
    versions = "0.9 and later"
    sources = (_GATE, _ENDED)

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        if facts.judged is None or facts.mode != "configured" or grammar_in_reasoning(facts):
            return
        sent = structured(facts)
        hit = [g for r in sent if (g := gate_of(facts, r)) is not None and not g.thinks and not g.ended]
        stuck = [g for g in facts.gates if not g.thinks and not g.ended and g.weight == "asked"]
        plain = [gate for gate in stuck if gate.conversation == "single_turn"]
        if sent and not hit:
            return
        shown = next(iter((*hit, *plain)), None)
        if shown is None or not facts.thinks:
            return
        requests = [r for r in sent if gate_of(facts, r) in hit]
        yield cls.finding(
            f"{said(shown.variant)} with structured output: {facts.judged.name} does not read the prompt as ended, so "
            "the grammar never binds",
            hint="use a parser that follows the template's switch; `reasonctl audit` without --parser ranks them",
            severity="error" if hit else "warning",
            confidence=facts.fit_confidence,
            subject=facts.subject(parser=facts.judged.name, request=requests[0].name if requests else None),
            location=requests[0].structured_at if requests else facts.parser_at,
            evidence={
                "request": request_json(shown.variant),
                "prompt": shown.tail,
                "because": "with thinking off no end marker comes, and the grammar waits for one",
            },
        )


@register
class GrammarFromFirstToken(Rule):
    id = "SRV204"
    slug = "grammar-from-first-token"
    severity = "warning"
    what = (
        "Fires where a given request constrains its output and the grammar binds while the model still thinks: no "
        "parser, include_reasoning=false, or a prompt whose history the parser takes for an ended thought."
    )
    why = (
        "The grammar leaves no room for the thought: the model is pushed into JSON at once, and its answers get worse."
    )
    example = (
        'vllm serve Qwen/Qwen3.6-27B      # no --reasoning-parser; {"response_format": {"type": "json_schema", ...}}'
    )
    instead = "Name the reasoning parser; leave include_reasoning alone and drop the field in the client."
    versions = "0.9 and later; include_reasoning since 0.16"
    sources = (_GATE, _ENDED, "vllm#47027")
    facts = ("include-reasoning-binds-grammar",)

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        if not facts.thinks or grammar_in_reasoning(facts):
            return
        for request in structured(facts):
            why = _from_first_token(facts, request)
            if why is not None:
                because, mend = why
                yield cls.finding(
                    f"{request.name}: {request.structured_by} binds from the first token, while the model still "
                    f"thinks: {because}",
                    hint=mend,
                    subject=facts.subject(request=request.name),
                    location=request.structured_at,
                    evidence={"because": because},
                )


def _from_first_token(facts: AuditFacts, request: SentRequest) -> tuple[str, str] | None:
    """(reason, mend) where this request's grammar binds inside a thought."""
    gate = gate_of(facts, request)
    state = facts.plain()
    thinks = gate.thinks if gate is not None else state is None or state.state in ("open", "none")
    off = any(request.kwargs.get(name) is False for name in ("enable_thinking", "thinking")) or request.effort == "none"
    if not thinks or (gate is None and off):
        return None
    if not request.include_reasoning and (
        facts.target.product != "vllm" or versions.fact("include-reasoning-binds-grammar", facts.target.version)
    ):
        return "include_reasoning=false tells the engine that reasoning has ended", "leave include_reasoning out"
    if facts.mode == "none":
        name = facts.recommended or "NAME"
        return "without a reasoning parser nothing holds it back", f"add --reasoning-parser {name}"
    if gate is not None and gate.ended:
        where = conversation_said(gate.conversation)
        return f"the parser reads the prompt ({where}) as ended", "use a parser that stops at turn boundaries"
    return None


@register
class GrammarInReasoning(Rule):
    id = "SRV211"
    slug = "grammar-in-reasoning"
    severity = "warning"
    what = "Fires for --structured-outputs-config.enable_in_reasoning=true on a model that thinks."
    why = (
        "Every grammar binds from the first token. With the thought open, the JSON is filed as reasoning and content "
        "stays null."
    )
    example = "--structured-outputs-config.enable_in_reasoning=true --reasoning-parser qwen3"
    instead = "Leave it out: the grammar then waits for the end of the thought."
    versions = "0.11.1 and later"
    sources = (_GATE,)
    facts = ("enable-in-reasoning",)

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        command = command_of(facts)
        if command is None or not grammar_in_reasoning(facts) or not facts.thinks:
            return
        yield cls.finding(
            "enable_in_reasoning binds every grammar from the first token: the JSON lands in reasoning",
            hint="take enable_in_reasoning away",
            subject=facts.subject(key="--structured-outputs-config.enable_in_reasoning"),
            location=command.place("structured-outputs-config"),
        )


@register
class EndpointUnconstrained(Rule):
    id = "SRV212"
    slug = "endpoint-unconstrained"
    severity = "info"
    what = "Says that a given request of the Responses API constrains its output: it is not gated as chat is."
    why = (
        "The Responses server tells the engine nothing of the request's own state: the engine's copy of the parser, "
        "which has no kwargs of the request, reads the prompt by itself."
    )
    example = 'POST /v1/responses {"text": {"format": {"type": "json_schema", ...}}}'
    instead = "Try such a request with thinking on and off, or use /v1/chat/completions."
    versions = "0.10 and later"
    sources = ("vLLM 0.33.0 vllm/entrypoints/openai/responses/serving.py (reasoning_ended=None)",)
    facts = ("responses-endpoint",)

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        for request in structured(facts):
            if request.endpoint == "responses" and facts.thinks:
                yield cls.finding(
                    f"{request.name}: structured output of the Responses API is not gated by the request's own switch",
                    hint="try it with thinking on and off",
                    subject=facts.subject(request=request.name),
                    location=request.structured_at,
                )
