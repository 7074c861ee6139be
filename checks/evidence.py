"""How a finding of an audit shows what was seen: the request, the prompt's end, the output, what the client gets."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..parsers.run import ModeResult
from ..prompts.conversations import SENTINEL
from .blame import Blame, cells_json
from .facts import AuditFacts
from .probes import Cell, Probe
from .trial import Trial

TAIL = 60
"""Characters of a prompt's end that a finding shows."""


def request_json(variant: Mapping[str, Any]) -> dict[str, Any]:
    """What the client sends for a variant: `reasoning_effort` is a field of its own, the rest chat-template kwargs."""
    kwargs = {name: value for name, value in variant.items() if name != "reasoning_effort"}
    request: dict[str, Any] = {}
    if "reasoning_effort" in variant:
        request["reasoning_effort"] = variant["reasoning_effort"]
    if kwargs:
        request["chat_template_kwargs"] = kwargs
    return request


def said(variant: Mapping[str, Any]) -> str:
    """A variant in a sentence: `a plain request`, `enable_thinking=false`."""
    if not variant:
        return "a plain request"
    return ", ".join(
        f"{name}={json.dumps(value, ensure_ascii=False)}".replace('"', "") for name, value in variant.items()
    )


def conversation_said(conversation: str) -> str:
    """A conversation in a sentence."""
    return {
        "single_turn": "one user message",
        "system": "a system message",
        "multi_turn": "an earlier turn with reasoning",
        "tools": "tools on offer",
        "tool_result": "a tool's result",
        "user_start_marker": "a start marker typed by the user",
        "user_end_marker": "an end marker typed by the user",
        "continue_final_message": "a thought to be continued",
    }.get(conversation, conversation)


def prompt_tail(facts: AuditFacts, cell: Cell) -> str:
    """The end of the prompt the cell stands for."""
    state = facts.survey.get(cell.conversation, cell.variant) if facts.survey is not None else None
    if state is None or state.prompt is None:
        return ""
    return shown_tail(state.prompt)


def shown_tail(prompt: str, characters: int = TAIL) -> str:
    """The end of a prompt, without the mark that the conversations put behind the last message's own text."""
    plain = re.sub(rf" ?{SENTINEL}x*", "", prompt)
    return ("…" if len(plain) > characters else "") + plain[-characters:]


def mode_json(mode: ModeResult) -> dict[str, Any]:
    """One mode's split; an exception's name where the parser raised."""
    return {"error": mode.error} if mode.error is not None else {"reasoning": mode.reasoning, "content": mode.content}


def trial_evidence(facts: AuditFacts, trial: Trial) -> dict[str, Any]:
    """Everything a reader needs to repeat one trial."""
    probe: Probe = trial.probe
    evidence: dict[str, Any] = {
        "request": request_json(trial.cell.variant),
        "conversation": trial.cell.conversation,
        "prompt": prompt_tail(facts, trial.cell),
        "output": probe.text,
    }
    if trial.run is not None:
        evidence["client"] = mode_json(trial.run.full)
        if trial.modes_differ:
            evidence["streamed"] = mode_json(trial.run.stream[0])
    if probe.judged:
        evidence["expected"] = {"reasoning": probe.reasoning, "content": probe.content}
    return evidence


def blame_evidence(facts: AuditFacts, blame: Blame, because: str) -> dict[str, Any]:
    """The evidence of a defect: its most telling trial, the cause in words, every request that shows it."""
    return {
        **trial_evidence(facts, blame.shown),
        "because": because,
        "cells": cells_json(blame.trials),
        "also": list(blame.also),
    }


def gets(mode: ModeResult, probe: Probe) -> str:
    """What the client gets, in a few words."""
    if mode.error is not None:
        return f"an error ({mode.error})"
    reasoning, content = (mode.reasoning or "").strip(), (mode.content or "").strip()
    wanted, answer = (probe.reasoning or "").strip(), (probe.content or "").strip()
    if (reasoning, content) == (wanted, answer):
        return "reasoning, content" if wanted else "content"
    if not content and answer and answer in reasoning:
        return "content NULL, the answer filed as reasoning"
    if not reasoning and wanted and wanted in content:
        return "reasoning NULL, the thought and its marker in content"
    if any(part and part not in reasoning + content for part in (wanted, answer)):
        return "text lost"
    return "a marker left in the text" if reasoning + content != wanted + answer else "split at the wrong place"
