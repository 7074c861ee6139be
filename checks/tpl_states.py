"""TPL rules on the state a prompt leaves the model in: opened, closed, moved by history, tools or the user's words."""

from __future__ import annotations

from collections.abc import Iterator

from ..parsers.markers import STATE_MARKERS
from ..prompts.survey import PromptState
from .blame import blames
from .evidence import blame_evidence, conversation_said, gets, request_json, said, shown_tail
from .facts import AuditFacts
from .finding import Finding
from .rule import Rule, register

_APPLY = "transformers apply_chat_template, as vLLM 0.33.0 calls it (vllm/renderers/hf.py)"
_PARAMS = "vLLM 0.33.0 vllm/entrypoints/openai/chat_completion/protocol.py build_chat_params"
_KWARGS_OF_OLD_THOUGHTS = ("preserve_thinking", "clear_thinking", "drop_thinking", "keep_past_thinking")


@register
class PromptOpensThinking(Rule):
    id = "TPL001"
    slug = "prompt-opens-thinking"
    severity = "info"
    what = "Fires when a plain prompt ends inside a thinking block: the output carries no start marker."
    why = "Parsers and clients that look for a pair of markers find only the second one."
    example = "…<|im_start|>assistant\\n<think>\\n"
    instead = "Use a parser that takes an output without a start marker as reasoning; the audit tells which do."
    sources = (_APPLY, "Qwen/Qwen3-4B-Thinking-2507 model card")

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        plain = facts.plain()
        if plain is None or plain.state != "open":
            return
        yield cls.finding(
            f"a plain prompt opens thinking with {plain.marker}: outputs carry no start marker",
            hint="use a parser that does not wait for a start marker (FIT104 tells if yours does)",
            confidence=facts.template_confidence,
            subject=facts.subject(),
            location=facts.template_at,
            evidence={"request": {}, "prompt": plain.tail},
        )


@register
class OffSwitchIgnored(Rule):
    id = "TPL002"
    slug = "off-switch-ignored"
    severity = "warning"
    what = (
        "Fires when a plain prompt opens thinking and no kwarg closes or removes the block: enable_thinking=false, "
        "thinking=false, reasoning_effort=none and every value the template knows leave it open."
    )
    why = (
        "Clients that switch thinking off still pay for it, and parsers that hear the switch file the thought as "
        "content."
    )
    example = "Qwen3-4B-Thinking-2507 with enable_thinking=false still ends in <think>\\n"
    instead = "Do not offer an off switch for this model; bound the thought with thinking_token_budget."
    sources = (_APPLY, _PARAMS)

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        plain = facts.plain()
        if plain is None or plain.state != "open":
            return
        tried = [state for state in _single(facts) if state.variant]
        if any(state.state not in ("open", "error") for state in tried):
            return
        yield cls.finding(
            "nothing switches thinking off: the block stays open whatever the request says",
            hint="do not send an off switch to this model; a thinking_token_budget bounds the thought",
            confidence=facts.template_confidence,
            subject=facts.subject(),
            location=facts.template_at,
            evidence={"tried": [dict(state.variant) for state in tried], "prompt": plain.tail},
        )


@register
class OffSwitchOtherName(Rule):
    id = "TPL003"
    slug = "off-switch-other-name"
    severity = "warning"
    what = (
        "Fires when the template's switch is thinking (or thinking_mode, …) and enable_thinking, which servers "
        "derive from reasoning_effort and clients know, moves nothing."
    )
    why = "A kwarg that the template does not declare is dropped in silence; parsers that know the name still hear it."
    example = "DeepSeek-V3.1: thinking=true opens <think>, enable_thinking=true changes nothing"
    instead = "Send the template's own kwarg, in the request or with --default-chat-template-kwargs."
    sources = (f"{_APPLY} resolve_chat_template_kwargs", "deepseek-ai/DeepSeek-V3.1 model card", "vLLM issue 25234")

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        plain = facts.plain()
        if plain is None or plain.state == "error":
            return
        moves: dict[str, PromptState] = {}
        for state in _single(facts):
            names = list(state.variant)
            if len(names) == 1 and state.state != "error" and _class(state) != _class(plain):
                moves.setdefault(names[0], state)
        if not moves or "enable_thinking" in moves or "reasoning_effort" in moves:
            return
        name, state = sorted(moves.items())[0]
        yield cls.finding(
            f"the switch of this template is {name}; enable_thinking, which servers and clients send, moves nothing",
            hint=f"send chat_template_kwargs {{{name!r}: …}}, or set it with --default-chat-template-kwargs",
            confidence=facts.template_confidence,
            subject=facts.subject(key=name),
            location=facts.template_at,
            evidence={
                "request": request_json(state.variant),
                "prompt": state.tail,
                "plain": plain.tail,
                "states": {said(moved.variant): moved.state for moved in moves.values()},
            },
        )


@register
class ClosedBare(Rule):
    id = "TPL004"
    slug = "closed-bare"
    severity = "info"
    what = "Fires when thinking is switched off by an end marker that has no start marker before it."
    why = "A tool that matches pairs of markers misreads such a prompt, and so does a history that is split again."
    example = "DeepSeek-V3.1: …<｜Assistant｜></think>"
    instead = "Look for the end marker alone."
    sources = (_APPLY, "deepseek-ai/DeepSeek-V3.1 chat template")

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        bare = [state for state in _single(facts) if state.state == "closed-bare" and facts.weight(state) != "unread"]
        if not bare:
            return
        yield cls.finding(
            f"{said(bare[0].variant)} closes thinking with {bare[0].marker} and no start marker before it",
            hint="tools that match pairs of markers misread this prompt",
            confidence=facts.template_confidence,
            subject=facts.subject(variant=dict(bare[0].variant)),
            location=facts.template_at,
            evidence={
                "request": request_json(bare[0].variant),
                "prompt": bare[0].tail,
                "variants": [dict(state.variant) for state in bare],
            },
        )


@register
class HistoryKeepsThinking(Rule):
    id = "TPL005"
    slug = "history-keeps-thinking"
    severity = "warning"
    what = (
        "Fires when an earlier turn's end marker stays in the prompt and the generation prompt adds no marker of "
        "its own, so that the last marker of the whole prompt is an old end."
    )
    why = (
        "A parser that reads the whole prompt takes this turn's thinking for ended: the streamed thought arrives as"
        " content."
    )
    example = "…<think>\\n\\n</think>\\n\\nIt is 4.<|im_end|>…<|im_start|>assistant\\n"
    instead = (
        "Use a parser that stops at turn boundaries, or a template that drops old thinking or opens the new block."
    )
    sources = (_APPLY, "vLLM 0.33.0 vllm/reasoning/basic_parsers.py is_reasoning_end")

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        kept = [
            state
            for conversation in ("multi_turn", "tool_result")
            for state in _of(facts, conversation)
            if state.state == "none" and facts.weight(state) == "asked" and _ends_ended(state.prompt or "")
        ]
        kept = [state for state in kept if not set(state.variant) & set(_KWARGS_OF_OLD_THOUGHTS)] or kept
        if not kept:
            return
        shown = kept[0]
        yield cls.finding(
            f"{conversation_said(shown.conversation)} keeps its end marker in the prompt and the new turn adds none: "
            "whole-prompt scanners read that thinking has ended",
            hint="use a parser that stops at turn boundaries (FIT121 tells if yours does not)",
            confidence=facts.template_confidence,
            subject=facts.subject(variant=dict(shown.variant), conversation=shown.conversation),
            location=facts.template_at,
            evidence={
                "request": request_json(shown.variant),
                "prompt": shown_tail(shown.prompt or "", 200),
                "cells": [{"conversation": s.conversation, "variant": dict(s.variant)} for s in kept],
            },
        )


@register
class UserTextMovesState(Rule):
    id = "TPL006"
    slug = "user-text-moves-state"
    severity = "error"
    what = (
        "Fires when a marker that the user types changes what the configured or recommended parser reads from the "
        "prompt: the same answer splits right without it and wrong with it. Without a parser it is not evaluated."
    )
    why = "Anyone who mentions </think> in a question breaks the answer they get, and can do so on purpose."
    example = "'What does </think> mean?' under a silent generation prompt: deepseek_r1 streams the thought as content"
    instead = "Use a parser that stops at turn boundaries, or a template that opens the block itself."
    sources = (
        "vLLM 0.33.0 vllm/reasoning/basic_parsers.py is_reasoning_end (whole prompt)",
        "vLLM 0.33.0 vllm/parser/engine/parser_engine.py (turn boundaries)",
    )

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        judged = facts.judged
        if judged is None:
            return
        for blame in blames(facts, judged):
            if blame.rule != cls.id:
                continue
            cell, failure = blame.shown.cell, blame.failure
            shown = gets(failure.got, failure.probe) if failure is not None else "a wrong split"
            mode = "streamed" if failure is not None and failure.mode == "stream" else "in full"
            scope = ", ".join(judged.row.turn_boundaries)
            reads = (
                f"stops only at {scope}, which this prompt lacks"
                if scope
                else "reads the whole prompt, user text included"
            )
            better = facts.recommended if facts.recommended != judged.name else None
            yield cls.finding(
                f"{conversation_said(cell.conversation)} moves what {judged.name} reads: {mode}, the client gets "
                f"{shown}{facts.modelled_on}",
                hint=f"use --reasoning-parser {better}" if better else "take markers out of what users send",
                severity=blame.severity,
                confidence=facts.fit_confidence,
                subject=facts.subject(parser=judged.name, variant=dict(cell.variant), conversation=cell.conversation),
                location=facts.parser_at,
                evidence=blame_evidence(facts, blame, f"{judged.name} {reads}"),
            )


@register
class StateDependsOnTools(Rule):
    id = "TPL007"
    slug = "state-depends-on-tools"
    severity = "warning"
    what = "Fires when offering tools, or a tool's result, changes whether the prompt is open, closed or silent."
    why = "What was tested in a plain chat does not hold for an agent: the parser sees another kind of output there."
    example = "open for a plain question, closed as soon as a tool has answered"
    instead = "Test the parser with tools too; the audit's probes did."
    sources = (_APPLY,)

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        moved: list[tuple[PromptState, PromptState]] = []
        for conversation in ("tools", "tool_result"):
            for state in _of(facts, conversation):
                before = facts.survey.get("single_turn", state.variant) if facts.survey is not None else None
                if before is None or "error" in (before.state, state.state) or facts.weight(state) == "unread":
                    continue
                if _class(before) != _class(state):
                    moved.append((before, state))
        if not moved:
            return
        before, state = moved[0]
        yield cls.finding(
            f"{conversation_said(state.conversation)}: the prompt is {state.state}, without it is {before.state}",
            hint="test tool conversations on their own; the probes of this audit cover them",
            confidence=facts.template_confidence,
            subject=facts.subject(variant=dict(state.variant), conversation=state.conversation),
            location=facts.template_at,
            evidence={
                "request": request_json(state.variant),
                "prompt": state.tail,
                "plain": before.tail,
                "cells": [{"conversation": s.conversation, "variant": dict(s.variant)} for _, s in moved],
            },
        )


@register
class TokensAfterOpen(Rule):
    id = "TPL011"
    slug = "tokens-after-open"
    severity = "info"
    what = "Fires when the prompt adds tokens behind the start marker (<think>\\n)."
    why = (
        "vLLM counts a thinking budget from the marker on, so these tokens are charged: budget N leaves N minus "
        "that many."
    )
    example = "<think>\\n in the prompt: thinking_token_budget 64 allows 63 tokens"
    instead = "Add the number of tokens to the budget where it matters."
    sources = (
        "vLLM 0.33.0 vllm/v1/sample/thinking_budget_state.py",
        "vLLM 0.33.0 vllm/v1/worker/gpu/sample/thinking_budget.py",
    )

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        opened = [
            state
            for state in _single(facts)
            if state.state == "open" and state.tokens_after_open and facts.weight(state) == "asked"
        ]
        if not opened:
            return
        shown = opened[0]
        count = shown.tokens_after_open
        yield cls.finding(
            f"{said(shown.variant)}: the prompt adds {count} token{'' if count == 1 else 's'} behind {shown.marker}, "
            "which vLLM charges to a thinking budget",
            hint=f"add {count} to a thinking_token_budget",
            confidence=facts.template_confidence,
            subject=facts.subject(),
            location=facts.template_at,
            evidence={"request": request_json(shown.variant), "prompt": shown.tail, "tokens": count},
        )


def _of(facts: AuditFacts, conversation: str) -> list[PromptState]:
    return [s for s in facts.survey.states if s.conversation == conversation] if facts.survey is not None else []


def _single(facts: AuditFacts) -> list[PromptState]:
    return _of(facts, "single_turn")


def _class(state: PromptState) -> str:
    """Open, closed or none; a bare close is a close."""
    return "closed" if state.state == "closed-bare" else state.state


def _ends_ended(prompt: str) -> bool:
    """The last state marker of the whole prompt is an end marker."""
    starts = {pair.start for pair in STATE_MARKERS}
    ends = {pair.end for pair in STATE_MARKERS}
    places = [(prompt.rfind(marker), marker) for marker in starts | ends if marker in prompt]
    return bool(places) and max(places, key=lambda place: (place[0], len(place[1])))[1] in ends
