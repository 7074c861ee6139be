"""FIT rules on the choice of the parser itself: none, unknown, not buildable, for another kind of model."""

from __future__ import annotations

from collections.abc import Iterator

from .. import versions
from ..parsers.target import NEWEST
from .blame import blames
from .evidence import blame_evidence, conversation_said, request_json, said, trial_evidence
from .facts import AuditFacts
from .finding import Confidence, Finding
from .rule import Rule, register
from .srv_flags import command_of, plugin_not_loaded


@register
class ParserMissing(Rule):
    id = "FIT101"
    slug = "parser-missing"
    severity = "error"
    what = (
        "Fires when the model thinks and the server is started without --reasoning-parser (or --parser none is given)."
    )
    why = (
        "Without a reasoning parser vLLM splits nothing: the thought, its markers and the answer all reach the "
        "client as content, structured output binds the thinking too, and requests with a thinking budget are "
        "refused."
    )
    example = "vllm serve Qwen/Qwen3-8B            # the client gets content '<think>Let me see …</think>It is four.'"
    instead = "Add the --reasoning-parser that `reasonctl audit --model X` recommends."
    sources = (
        "vLLM 0.33.0 vllm/parser/parser_manager.py (nothing named: no parser)",
        "vLLM docs features/reasoning_outputs",
    )
    facts = ("parser-none", "reasoning-parser-alone")

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        taken_by_itself = facts.survey is not None and facts.survey.model.model_type == "gpt_oss"
        if facts.mode != "none" or not facts.thinks or taken_by_itself or not _answers(facts):
            return
        fix = (
            f"add --reasoning-parser {facts.recommended}"
            if facts.recommended
            else "no parser passes every probe: see FIT122"
        )
        plain = facts.plain()
        inferred = facts.live is not None and facts.live.inferred
        idle = _idle_parser(facts)
        said = "its server's answers are not split" if inferred else "no --reasoning-parser is given"
        if idle is not None:
            said = f"{facts.target} does not use --reasoning-parser {idle} without --enable-reasoning"
            fix = "add --enable-reasoning, or use vLLM 0.9 or later"
        unknown = facts.server.command.open_words if facts.server is not None and facts.server.command else ()
        maybe = f" (unless {' '.join(unknown)} names one)" if unknown and idle is None else ""
        yield cls.finding(
            f"the model thinks and {said}{maybe}: thought, markers and answer all land in content",
            hint=fix,
            confidence="low" if maybe else facts.template_confidence,
            subject=facts.subject(),
            location=facts.server.location if facts.server is not None else facts.template_at,
            evidence={
                "request": {},
                "prompt": plain.tail if plain is not None else "",
                "markers": [facts.thinking.start, facts.thinking.end],
                "because": "the template deals in thinking, and nothing on the server takes it out of the answer",
            },
        )


def _answers(facts: AuditFacts) -> bool:
    """Whether clients get answers from this server; a node that works for another one splits nothing anyway."""
    command = facts.server.command if facts.server is not None else None
    return command is None or command.answers


def _idle_parser(facts: AuditFacts) -> str | None:
    """The parser that a command names, and that a release before 0.9 does not use without --enable-reasoning."""
    command = command_of(facts)
    if command is None or command.parser_in(facts.target) is not None:
        return None
    return None if versions.fact("reasoning-parser-alone", facts.target.version) else command.reasoning_parser


@register
class ParserUnknown(Rule):
    id = "FIT102"
    slug = "parser-unknown"
    severity = "error"
    what = "Fires when the target version registers no reasoning parser of that name."
    why = (
        "The server does not start: vLLM looks the name up while it builds its configuration, and stops with a "
        "KeyError."
    )
    example = "vllm serve Qwen/Qwen3-8B --reasoning-parser qwen-3"
    instead = "Use one of the near names, or a vLLM version that registers the name; `reasonctl parsers` lists them."
    sources = (
        "vLLM 0.33.0 vllm/reasoning/abs_reasoning_parsers.py get_reasoning_parser",
        "vLLM 0.33.0 vllm/reasoning/__init__.py",
    )
    facts = ("reasoning-parser *",)

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        if facts.unknown is None or plugin_not_loaded(facts) is not None:
            return
        yield cls.finding(
            f"{facts.target} registers no reasoning parser {facts.configured!r}: the server does not start",
            hint=_named_otherwise(facts) or facts.unknown,
            confidence=_name_confidence(facts),
            subject=facts.subject(parser=facts.configured),
            location=facts.parser_at,
            evidence={"because": f"{facts.configured!r} is none of the names the target registers"},
        )


def _name_confidence(facts: AuditFacts) -> Confidence:
    """Names come and go with releases: a release that nobody told, or that is not modelled, says less."""
    return facts.version_confidence if facts.exact else "low" if facts.version_confidence == "low" else "medium"


def _named_otherwise(facts: AuditFacts) -> str | None:
    """The mend for a word that means a choice elsewhere, and is a parser's name like any other to vLLM."""
    word = (facts.configured or "").lower()
    if word in ("none", "off", "false", "disabled"):
        return "leave the flag out, which is what means no parser"
    if word == "auto":
        best = facts.recommended
        return "name the parser: vLLM chooses none by itself" + (f"; {best} suits this model" if best else "")
    return None


@register
class MarkersNotInVocabulary(Rule):
    id = "FIT103"
    slug = "markers-not-in-vocabulary"
    severity = "error"
    what = (
        "Fires when the parser cannot be built for this tokenizer: a delimiter that it looks up as one token is not"
        " one. A parser that needs its delimiters only once thinking is on is built per request, and fails there."
    )
    why = (
        "vLLM 0.32 and later build the parser once at start-up and refuse to serve; earlier versions, and parsers "
        "that are off by default, answer every request with an error."
    )
    example = "GLM-Z1 writes <think> as three tokens; deepseek_r1 looks for one: RuntimeError at start-up"
    instead = (
        "Use a parser that matches text where the vocabulary has no such token (the engine family, qwen3 or glm45 "
        "for instance), or the parser that belongs to this model."
    )
    sources = (
        "vLLM 0.33.0 vllm/reasoning/basic_parsers.py",
        "vLLM 0.33.0 vllm/parser/parser_manager.py validate_parser_tokenizer",
    )
    facts = ("tokenizer-checked-at-start",)

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        judged = facts.judged
        if judged is None:
            return
        fix = _use(facts)
        if judged.raised is not None:
            yield cls.finding(
                f"{judged.name} cannot be built for this tokenizer{facts.modelled_on}: {judged.raised}",
                hint=fix,
                confidence=facts.fit_confidence,
                subject=facts.subject(parser=judged.name),
                location=facts.parser_at,
                evidence={
                    "raised": judged.raised,
                    "markers": [marker.as_json() for marker in facts.markers],
                    "demanded": list(judged.row.demanded_tokens),
                    "because": "the parser looks its delimiters up as single tokens, and this vocabulary has none",
                    "also": ["FIT115"] if facts.thinking.harmony else [],
                },
            )
        for blame in blames(facts, judged):
            if blame.rule == cls.id:
                raised = blame.shown.raised
                because = "once thinking is on, the parser looks its delimiters up as single tokens"
                yield cls.finding(
                    f"{said(blame.shown.cell.variant)}: {judged.name} cannot be built{facts.modelled_on}: {raised}",
                    hint=fix,
                    severity=blame.severity,
                    confidence=facts.fit_confidence,
                    subject=facts.subject(parser=judged.name, variant=dict(blame.shown.cell.variant)),
                    location=facts.parser_at,
                    evidence={**blame_evidence(facts, blame, because), "raised": raised},
                )


@register
class NotAThinkModel(Rule):
    id = "FIT115"
    slug = "not-a-think-model"
    severity = "error"
    what = (
        "Fires when a harmony model (gpt-oss) gets a parser of think markers, or another model gets the harmony parser."
    )
    why = (
        "Harmony sorts an answer into channels; a think parser finds no marker in it and files everything as "
        "reasoning, or hands the channel markers to the client. The other way round, openai_gptoss is a stub that "
        "raises on every answer of a model that is not gpt_oss."
    )
    example = "vllm serve openai/gpt-oss-20b --reasoning-parser deepseek_r1"
    instead = (
        "For gpt-oss give openai_gptoss or nothing: vLLM takes its harmony parser by itself for model_type gpt_oss. "
        "For other models use the parser that the audit recommends."
    )
    sources = (
        "vLLM 0.33.0 vllm/parser/parser_manager.py (is_harmony)",
        "vLLM 0.33.0 vllm/reasoning/gptoss_reasoning_parser.py",
    )

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        judged = facts.judged
        if judged is None or facts.survey is None:
            return
        harmony_parser = judged.row.family == "harmony"
        if facts.thinking.harmony and not harmony_parser and judged.raised is None:
            shown = [blame for blame in blames(facts, judged) if blame.rule == cls.id]
            because = "the template speaks harmony: channels, no think markers"
            yield cls.finding(
                f"the model answers in harmony channels and {judged.name} looks for think markers",
                hint=_use(facts),
                confidence=facts.fit_confidence,
                subject=facts.subject(parser=judged.name),
                location=facts.parser_at,
                evidence=blame_evidence(facts, shown[0], because) if shown else {"because": because},
            )
        elif harmony_parser and not facts.thinking.harmony:
            yield cls.finding(
                f"{judged.name} is for gpt-oss, and this template does not speak harmony",
                hint=_use(facts),
                confidence="medium",
                subject=facts.subject(parser=judged.name),
                location=facts.parser_at,
                evidence={
                    "because": "the class is a stub: where model_type is not gpt_oss, its extraction methods raise",
                    "markers": [facts.thinking.start, facts.thinking.end],
                },
            )


@register
class NoThinkingAtAll(Rule):
    id = "FIT120"
    slug = "no-thinking-at-all"
    severity = "error"
    what = (
        "Fires when the template writes, strips and reads nothing of thinking (no marker, no switch), whatever the "
        "vocabulary holds, and the parser files a whole answer as reasoning. Embedding, reranker and speech models "
        "are left out."
    )
    why = (
        "The model answers at once. The parser waits for an end marker that never comes: content is null in every "
        "answer."
    )
    example = "Qwen3-4B-Instruct-2507 with --reasoning-parser deepseek_r1: reasoning 'It is four.', content null"
    instead = "Serve an instruct model without --reasoning-parser."
    sources = (
        "vLLM 0.33.0 vllm/reasoning/basic_parsers.py extract_reasoning",
        "Qwen/Qwen3-4B-Instruct-2507 model card (no thinking mode)",
    )

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        judged = facts.judged
        if judged is None or not facts.thinking.generates:
            return
        for blame in blames(facts, judged):
            if blame.rule == cls.id:
                because = (
                    f"the template knows nothing of thinking; {judged.name} files what has no end marker as reasoning"
                )
                yield cls.finding(
                    f"the model does not think, and {judged.name} files whole answers as reasoning{facts.modelled_on}",
                    hint="serve this model without --reasoning-parser",
                    severity=blame.severity,
                    confidence=facts.fit_confidence,
                    subject=facts.subject(parser=judged.name, variant=dict(blame.shown.cell.variant)),
                    location=facts.parser_at,
                    evidence=blame_evidence(facts, blame, because),
                )


@register
class NoParserFits(Rule):
    id = "FIT122"
    slug = "no-parser-fits"
    severity = "warning"
    what = "Fires when the model thinks and none of the target's parsers passes every core probe."
    why = (
        "Whatever is configured, some ordinary request gets a wrong split. The best parser, and what fails with it,"
        " is shown."
    )
    example = "a template whose old turns stay closed in the prompt while its generation prompt is silent"
    instead = "Use the best one and avoid the request shown, mend the template, or write a parser for this model."
    sources = ("the probes of this very run",)

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        ran = [candidate for candidate in facts.candidates if candidate.fit != "unsupported"]
        if not facts.thinks or facts.thinking.start is None or not ran or facts.recommended or facts.unmodelled:
            return
        best = ran[0]
        if best.fit == "pass":
            yield cls.finding(
                f"none of {len(ran)} parsers is known to pass every probe in {facts.target}: {best.name} does "
                f"in {NEWEST}, and was another one then",
                hint=f"use a later release, or run {best.name} of this one with --vllm",
                confidence="low",
                subject=facts.subject(),
                location=facts.template_at,
                evidence={"best": best.name},
            )
            return
        failed = [blame for blame in blames(facts, best) if any(trial.cell.weighs for trial in blame.trials)]
        unseen = sum(c.fit == "unsupported" and c.raised is None for c in facts.candidates)
        if not failed:
            yield cls.finding(
                f"none of {len(ran)} parsers passes every probe; the best is {best.name}, which {best.refuted}",
                hint="use a later release",
                confidence="low",
                subject=facts.subject(),
                location=facts.template_at,
                evidence={"best": best.name},
            )
            return
        shown = failed[0].shown
        yield cls.finding(
            f"none of {len(ran)} parsers passes every probe; the best is {best.name} ({best.passed} of "
            f"{best.passed + best.failed})" + (f"; {unseen} more have no built-in model" if unseen else ""),
            hint=f"{best.name} fails on {said(shown.cell.variant)} with {conversation_said(shown.cell.conversation)}: "
            + ", ".join(b.rule for b in failed),
            confidence="medium" if unseen else facts.fit_confidence,
            subject=facts.subject(),
            location=facts.template_at,
            evidence={
                **trial_evidence(facts, shown),
                "best": best.name,
                "fails": {b.rule: request_json(b.shown.cell.variant) for b in failed},
            },
        )


def _use(facts: AuditFacts) -> str:
    if facts.thinking.harmony:
        return "use openai_gptoss; for model_type gpt_oss vLLM takes its harmony parser by itself"
    if facts.recommended is not None:
        return f"use --reasoning-parser {facts.recommended}, which passes every probe"
    if not facts.thinks:
        return "serve this model without --reasoning-parser"
    return f"no parser that is modelled here ({NEWEST}) passes every probe"
