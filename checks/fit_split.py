"""FIT rules on what the core probes showed: which request gets a wrong split, and why."""

from __future__ import annotations

from collections.abc import Iterator

from .. import versions
from .blame import Blame, blames
from .evidence import blame_evidence, conversation_said, gets, said
from .facts import AuditFacts
from .finding import Finding
from .rule import Rule, register
from .trial import Candidate

_BASIC = "vLLM 0.33.0 vllm/reasoning/basic_parsers.py"
_ENGINE = "vLLM 0.33.0 vllm/parser/engine/parser_engine.py"
_SERVING = "vLLM 0.33.0 vllm/entrypoints/openai/chat_completion/serving.py"


class BlameRule(Rule):
    """A rule that reports the blames with its own id: one finding for a parser and a defect."""

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        """Turn this rule's blames into findings."""
        judged = facts.judged
        if judged is None:
            return
        for blame in blames(facts, judged):
            if blame.rule == cls.id:
                cell = blame.shown.cell
                yield cls.finding(
                    cls.message(facts, judged, blame) + facts.modelled_on,
                    hint=cls.hint(facts, judged, blame),
                    severity=blame.severity,
                    confidence=facts.fit_confidence,
                    subject=facts.subject(
                        parser=judged.name, variant=dict(cell.variant), conversation=_told(cell.conversation)
                    ),
                    location=facts.parser_at,
                    evidence=blame_evidence(facts, blame, cls.because(facts, judged, blame)) | cls.more(judged, blame),
                )

    @classmethod
    def message(cls, facts: AuditFacts, judged: Candidate, blame: Blame) -> str:
        """The defect in one sentence."""
        raise NotImplementedError

    @classmethod
    def because(cls, facts: AuditFacts, judged: Candidate, blame: Blame) -> str:
        """The cause in one sentence."""
        raise NotImplementedError

    @classmethod
    def hint(cls, facts: AuditFacts, judged: Candidate, blame: Blame) -> str:
        """What to do: another parser that passes, where there is one."""
        if facts.recommended is not None and facts.recommended != judged.name:
            best = next(c for c in facts.candidates if c.name == facts.recommended)
            return f"use --reasoning-parser {best.name}: {best.passed} of {best.passed + best.failed} probes pass"
        return "no parser that is modelled here passes this; do not send such requests, or mend the template"

    @classmethod
    def more(cls, judged: Candidate, blame: Blame) -> dict[str, object]:
        """Further evidence."""
        return {}


@register
class ReasoningNull(BlameRule):
    id = "FIT104"
    slug = "reasoning-null"
    severity = "error"
    what = (
        "Fires when the prompt opens thinking, the output therefore carries no start marker, and the parser files "
        "nothing as reasoning because it waits for one."
    )
    why = "The client's reasoning field is null; the whole thought and its end marker stand in content."
    example = "prompt ends '<think>\\n', output 'Let me see …</think>It is four.', reasoning null"
    instead = "Use a parser that takes an output without a start marker as reasoning (qwen3, deepseek_r1, glm45, …)."
    versions = (
        "vLLM 0.15 to 0.33; the start marker was needed in the output by qwen3 up to 0.16, glm45 up to 0.13, "
        "deepseek_r1 up to 0.7.2"
    )
    sources = ("vLLM 0.33.0 vllm/reasoning/minimax_m3_reasoning_parser.py", "vLLM issue 22507")
    facts = ("deepseek_r1-needs-both-markers", "qwen3-needs-both-markers", "glm45-needs-both-markers")

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        found = list(super().check(facts))
        yield from found
        plain, judged = facts.plain(), facts.judged
        if plain is None or judged is None or judged.refuted is None or any(f.severity == "error" for f in found):
            return
        mended = versions.rows("fact", f"{judged.name}-needs-both-markers")[0].until
        other = f"use {facts.recommended}, or " if facts.recommended is not None else "use "
        yield cls.finding(
            f"a plain request: the template prefills {plain.marker}, and {judged.name} {judged.refuted}",
            hint=f"{other}vLLM {versions.shown(mended)} or later",
            confidence="low",
            subject=facts.subject(parser=judged.name, variant={}),
            location=facts.parser_at,
            evidence={
                "request": {},
                "prompt": plain.tail,
                "because": "known from vLLM's history (issue 22507), not run: this version is not modelled",
            },
        )

    @classmethod
    def message(cls, facts: AuditFacts, judged: Candidate, blame: Blame) -> str:
        asked = said(blame.shown.cell.variant)
        return f"{asked}: the prompt opens thinking and {judged.name} files none of it as reasoning"

    @classmethod
    def because(cls, facts: AuditFacts, judged: Candidate, blame: Blame) -> str:
        if judged.name == "minimax_m2_append_think":
            return "this parser splits nothing by design: it puts a start marker in front and leaves all in content"
        return _switched(judged, blame) or (
            f"the template opened the block, so the output has no start marker, and {judged.name} needs one"
        )


@register
class ContentNull(BlameRule):
    id = "FIT105"
    slug = "content-null"
    severity = "error"
    what = (
        "Fires when thinking is off or finished and yet the answer is filed as reasoning, in streaming or not: the "
        "template closed the block in the prompt, or the parser does not know the markers the model writes."
    )
    why = "The client gets content null and finish_reason stop. Tool calls and JSON in the answer are lost with it."
    example = "Qwen3 with deepseek_r1 and enable_thinking=false: reasoning 'It is four.', content null"
    instead = "Use the parser that follows this template's switch and markers; the audit names one that passes."
    versions = (
        "every modelled version; up to 0.32 also qwen3, glm45 and step3p5 where the off switch is not in the request"
    )
    sources = (_BASIC, _ENGINE, "vLLM issue 53284")
    facts = ("full-reads-prompt",)

    @classmethod
    def message(cls, facts: AuditFacts, judged: Candidate, blame: Blame) -> str:
        cell = blame.shown.cell
        modes = sorted({f.mode for f in blame.shown.failures if "content-null" in f.symptoms})
        how = (
            "in full and streamed" if len(modes) == 2 else "in full (not streamed)" if modes == ["full"] else "streamed"
        )
        where = "turning thinking off" if not cell.thinks and cell.variant else "the answer"
        if not cell.thinks and cell.variant:
            return f"{said(cell.variant)}: {where} sends the answer to reasoning, content is null {how}"
        return f"{said(cell.variant)}: {judged.name} files {where} as reasoning, content is null {how}"

    @classmethod
    def because(cls, facts: AuditFacts, judged: Candidate, blame: Blame) -> str:
        cell = blame.shown.cell
        if cell.thinks:
            return (
                f"the model writes {facts.thinking.start!s} and {facts.thinking.end!s}; {judged.name} looks for "
                f"{', '.join(judged.row.end) or 'no marker'} and never sees thinking end"
            )
        closed = (
            "the template closes thinking in the prompt"
            if cell.state.startswith("closed")
            else "thinking is switched off"
        )
        return f"{closed}; {judged.name} files output without a marker as reasoning"


@register
class MarkerLeak(BlameRule):
    id = "FIT106"
    slug = "marker-leak"
    severity = "error"
    what = (
        "Fires when a marker reaches the client inside content or reasoning, in full or at one token a delta. "
        "What only larger deltas show is FIT108."
    )
    why = "Users read raw markers, and clients that split again on them split wrongly."
    example = "prompt ends '<think>', parser switched off: content 'Let me see …</think>It is four.'"
    instead = "Use the parser whose markers and switch are this template's; the audit names one that passes."
    sources = (
        _BASIC,
        "vLLM 0.33.0 vllm/parser/abstract_parser.py parse_delta (text passes through once reasoning ended)",
    )

    @classmethod
    def message(cls, facts: AuditFacts, judged: Candidate, blame: Blame) -> str:
        cell = blame.shown.cell
        failure = blame.failure
        mode = f" when {'streamed' if failure.mode == 'stream' else 'in full'}" if failure is not None else ""
        shown = gets(failure.got, failure.probe) if failure is not None else "a marker in the text"
        told = f"{said(cell.variant)}, {conversation_said(cell.conversation)}"
        return f"{told}: with {judged.name} the client gets {shown}{mode}"

    @classmethod
    def because(cls, facts: AuditFacts, judged: Candidate, blame: Blame) -> str:
        cell = blame.shown.cell
        ours = {facts.thinking.start, facts.thinking.end}
        if not {*judged.row.start, *judged.row.end} & ours and judged.row.start:
            return f"{judged.name} looks for {judged.row.start[0]}, and the model writes {facts.thinking.start}"
        before = judged.trial("single_turn", cell.variant)
        implicit = [
            marker for marker in judged.row.implicit_ends if facts.call is not None and facts.call.startswith(marker)
        ]
        if cell.conversation == "tools" and before is not None and before.passed and implicit:
            return f"the tool instructions in the prompt hold {implicit[0]}, which ends thinking for {judged.name}"
        prompt = facts.survey.get(cell.conversation, cell.variant) if facts.survey is not None else None
        told = prompt is not None and facts.thinking.end is not None and facts.thinking.end in (prompt.prompt or "")
        if cell.state == "none" and cell.thinks and told and "FIT107" in blame.also:
            return f"{facts.thinking.end} stands earlier in the prompt, and {judged.name} takes it for this turn's end"
        return _switched(judged, blame) or f"the prompt is {cell.state}, and {judged.name} reads it otherwise"


@register
class DefaultDisagrees(BlameRule):
    id = "FIT113"
    slug = "default-disagrees"
    severity = "error"
    what = (
        "Fires when a parser has a switch that is off unless asked, while a plain prompt leaves thinking on; shown "
        "by the same probe passing once the switch is on."
    )
    why = "Every request that says nothing of thinking gets the thought and its markers as content, and reasoning null."
    example = "Laguna-S opens <think> by itself; poolside_v1 stays off unless enable_thinking is true"
    instead = (
        "Give the server --default-chat-template-kwargs '{\"enable_thinking\": true}', or a parser that is on by "
        "default."
    )
    sources = (
        "vLLM 0.33.0 vllm/reasoning/deepseek_v3_reasoning_parser.py",
        "vLLM 0.33.0 vllm/reasoning/poolside_v1_reasoning_parser.py",
        "vLLM 0.33.0 vllm/reasoning/hy_v3_reasoning_parser.py",
    )
    facts = ("deepseek_v4-on",)

    @classmethod
    def message(cls, facts: AuditFacts, judged: Candidate, blame: Blame) -> str:
        state = "opens thinking" if blame.shown.cell.state == "open" else "leaves thinking on"
        asked = said(blame.shown.cell.variant)
        return f"{asked} {state}, and {judged.name} is off unless asked: it passes everything through"

    @classmethod
    def because(cls, facts: AuditFacts, judged: Candidate, blame: Blame) -> str:
        on = judged.switched_on[blame.shown.cell.key]
        return f"{judged.name} thinks nothing is to be split without {said(on)}; with it, the same output splits right"

    @classmethod
    def hint(cls, facts: AuditFacts, judged: Candidate, blame: Blame) -> str:
        other = super().hint(facts, judged, blame)
        flag = f"--default-chat-template-kwargs '{_json(judged.switched_on[blame.shown.cell.key])}'"
        return f"{flag}, or {other}" if other.startswith("use ") else flag

    @classmethod
    def more(cls, judged: Candidate, blame: Blame) -> dict[str, object]:
        return {"passes_with": dict(judged.switched_on[blame.shown.cell.key])}


@register
class EffortSplitsTemplateAndParser(BlameRule):
    id = "FIT114"
    slug = "effort-splits-template-and-parser"
    severity = "warning"
    what = (
        "Fires when reasoning_effort (or the enable_thinking that the server derives from it) moves the parser but "
        "not the template, or the template but not the parser, and a probe shows a wrong split."
    )
    why = (
        "The server hands every kwarg to the parser and only those a template declares to the template. A client "
        "that sends an effort turns the parser on or off while the prompt stays what it was."
    )
    example = (
        "DeepSeek-V3.1 reads `thinking`; reasoning_effort=high brings enable_thinking=true, which only deepseek_v3 "
        "hears"
    )
    instead = "Send the kwarg the template reads, with it the parser's; or map the effort away on the server."
    versions = "vLLM 0.22 and later derive enable_thinking from reasoning_effort"
    sources = (
        "vLLM 0.33.0 vllm/entrypoints/openai/chat_completion/protocol.py build_chat_params",
        _SERVING,
        "vLLM issue 25234",
    )
    facts = ("effort-field", "effort-sets-enable-thinking", "parser-reads-kwargs")

    @classmethod
    def message(cls, facts: AuditFacts, judged: Candidate, blame: Blame) -> str:
        cell = blame.shown.cell
        failure = blame.failure
        shown = gets(failure.got, failure.probe) if failure is not None else "a wrong split"
        return f"{said(cell.variant)} moves {_mover(judged, blame)}: the client gets {shown}"

    @classmethod
    def because(cls, facts: AuditFacts, judged: Candidate, blame: Blame) -> str:
        cell = blame.shown.cell
        reads = sorted(facts.survey.reads & set(cell.kwargs)) if facts.survey is not None else []
        heard = sorted({kwarg.name for kwarg in judged.row.kwargs} & set(cell.kwargs))
        return (
            f"of {', '.join(sorted(cell.kwargs)) or 'nothing'} the template reads {', '.join(reads) or 'nothing'} and "
            f"{judged.name} reads {', '.join(heard) or 'nothing'}; the prompt is {cell.state}"
        )

    @classmethod
    def hint(cls, facts: AuditFacts, judged: Candidate, blame: Blame) -> str:
        switches = facts.survey.switches if facts.survey is not None else ()
        named = [name for name, _, _ in switches if name not in ("enable_thinking", "reasoning_effort")]
        if named:
            return f"send {named[0]} in chat_template_kwargs, which the template reads, instead"
        return f"do not send {', '.join(blame.shown.cell.variant)} to this model"


@register
class HistoryEndsReasoning(BlameRule):
    id = "FIT121"
    slug = "history-ends-reasoning"
    severity = "error"
    what = (
        "Fires when an earlier turn's end marker, kept in the prompt, is taken for this turn's: the first turn "
        "splits right and a later one does not."
    )
    why = "From the second turn on the streamed thought, its markers included, arrives as content."
    example = (
        "old turns stay in the prompt as <think></think>, the new turn starts silent, the parser reads the whole prompt"
    )
    instead = "Use a parser that stops at turn boundaries (qwen3, glm45, …), or a template that drops earlier thinking."
    sources = (_BASIC, f"{_ENGINE} (turn_boundary_tokens, since 0.29)")
    facts = ("turn-boundaries",)

    @classmethod
    def message(cls, facts: AuditFacts, judged: Candidate, blame: Blame) -> str:
        cell = blame.shown.cell
        failure = blame.failure
        mode = "streamed" if failure is not None and failure.mode == "stream" else "in full"
        shown = gets(failure.got, failure.probe) if failure is not None else "a wrong split"
        return (
            f"{conversation_said(cell.conversation)} ends reasoning before it starts: {mode}, the client gets {shown}"
        )

    @classmethod
    def because(cls, facts: AuditFacts, judged: Candidate, blame: Blame) -> str:
        scope = ", ".join(judged.row.turn_boundaries)
        reads = f"stops at {scope}, which this prompt lacks" if scope else "reads the whole prompt"
        end = facts.thinking.end
        return f"an earlier turn's {end} stands in the prompt, this turn adds no marker, and {judged.name} {reads}"


def _switched(judged: Candidate, blame: Blame) -> str | None:
    """The cause where a kwarg moved the parser alone."""
    cell = blame.shown.cell
    switches = sorted({kwarg.name for kwarg in judged.row.kwargs if kwarg.switches_thinking} & set(cell.kwargs))
    if not cell.thinks or not switches:
        return None
    return f"{', '.join(switches)} switches {judged.name} off while the prompt leaves thinking on"


def _told(conversation: str) -> str | None:
    return None if conversation == "single_turn" else conversation


def _json(kwargs: object) -> str:
    import json

    return json.dumps(kwargs)


def _mover(judged: Candidate, blame: Blame) -> str:
    cell = blame.shown.cell
    heard = {kwarg.name for kwarg in judged.row.kwargs} & set(cell.kwargs)
    return f"{judged.name} and not the template" if heard else f"the template and not {judged.name}"
