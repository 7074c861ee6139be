"""How a model thinks, as far as its template shows: which markers it writes, whether it thinks at all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..parsers.markers import STATE_MARKERS
from ..parsers.row import ParserRow
from ..prompts.model import Model
from ..prompts.survey import PromptState, Survey

_SWITCH = re.compile(r"think|reason|effort", re.IGNORECASE)
_NO_CHAT = re.compile(
    r"embed|rerank|reward|colbert|whisper|(?:^|[-_/])asr|ForSequenceClassification|ForTokenClassification|ForSpeech",
    re.IGNORECASE,
)
_GIVEN_MARKERS = ("user_start_marker", "user_end_marker", "continue_final_message")
"""Conversations whose own messages hold markers: what stands in these prompts is not the template's doing."""
_LABELLED = {"<|channel>thought": "\n"}
"""A label is part of the start marker and ends with its own line (gemma4, vllm/parser/gemma4.py 0.33.0)."""


@dataclass(frozen=True, slots=True)
class Thinking:
    """What the model itself writes when it thinks.

    `start` and `end` are texts of the output, None where the template shows no markers. `after_end` is the white space
    the template writes behind its end marker. `mentioned`: the template writes, strips or reads something of thinking
    (a marker, a phrase, a kwarg). `generates`: the model answers in text; embedding, reranker and speech models do not.
    """

    start: str | None = None
    end: str | None = None
    after_end: str = ""
    mentioned: bool = False
    harmony: bool = False
    generates: bool = True


def read_thinking(survey: Survey, rows: Iterable[ParserRow]) -> Thinking:
    """Read it from the template's text, the kwargs it reads and the prompts it renders.

    Args:
        survey: the rendered prompts of one model.
        rows: the parser table; its phrases (granite's) are markers of an output too, though of no prompt state.
    """
    model = survey.model
    text = model.prompt_text
    generates = not _NO_CHAT.search(" ".join((model.source, model.model_type or "", *model.architectures)))
    if is_harmony(model):
        return Thinking(mentioned=True, harmony=True, generates=generates)
    reads = any(_SWITCH.search(name) for name in survey.reads)
    pair = _pair(text, survey.states, rows)
    if pair is None:
        return Thinking(mentioned=reads, generates=generates)
    start, end = pair
    return Thinking(start + _LABELLED.get(start, ""), end, _after_end(end, survey.states, text), True, False, generates)


def is_harmony(model: Model) -> bool:
    """A gpt-oss prompt: channels instead of markers."""
    text = model.template.text if model.template else ""
    return model.model_type == "gpt_oss" or all(part in text for part in ("<|channel|>", "<|message|>", "analysis"))


def thinks(thinking: Thinking) -> bool:
    """The model may think: its template deals in markers, channels or switches of thinking."""
    return thinking.generates and thinking.mentioned


def switched_off(survey: Survey, state: PromptState) -> bool:
    """A silent prompt that leaves thinking off: its request holds an off value of a switch the template reads."""
    return any(kwarg in state.kwargs and state.kwargs[kwarg] == off for kwarg, off, _ in switches(survey))


def unclear(survey: Survey, state: PromptState) -> bool:
    """A silent prompt that may mean either: without kwargs the template writes what it writes for its off value.

    The model then does one thing on both requests, and no template tells which. Asked in a plain chat, for every
    conversation alike.
    """
    plain = survey.get("single_turn", {})
    for kwarg, off, on in switches(survey):
        if kwarg in state.kwargs:
            continue
        as_off, as_on = survey.get("single_turn", {kwarg: off}), survey.get("single_turn", {kwarg: on})
        if as_off is None and kwarg == "reasoning_effort":
            as_off = plain  # an effort that changes nothing is no variant of its own
        if plain and as_off and as_on and as_on.prompt and plain.prompt == as_off.prompt != as_on.prompt:
            return True
    return False


def switches(survey: Survey) -> list[tuple[str, Any, Any]]:
    """(kwarg, off value, on value) of what turns thinking off: the switches that the template reads, and an effort that
    it compares with one that means none.
    """
    named = [value for value in ("none", "no_think") if value in survey.compared.get("reasoning_effort", ())]
    return [*survey.switches, *(("reasoning_effort", value, "high") for value in named)]


def _pair(text: str, states: Sequence[PromptState], rows: Iterable[ParserRow]) -> tuple[str, str] | None:
    """The pair that prompts end in; else the one the template's text names most; else a phrase of the parser table."""
    by_marker = {marker: (pair.start, pair.end) for pair in STATE_MARKERS for marker in (pair.start, pair.end)}
    own = [s for s in states if s.conversation not in _GIVEN_MARKERS]
    seen = [by_marker[s.marker] for s in own if s.marker in by_marker]
    if seen:
        return max(sorted(set(seen)), key=seen.count)
    named = [((pair.start, pair.end), text.count(pair.start) + text.count(pair.end)) for pair in STATE_MARKERS]
    best = max(named, key=lambda item: item[1])
    if best[1]:
        return best[0]
    for row in rows:
        for start, end in zip(row.start, row.end, strict=False):
            if " " in start and start in text and end in text:
                return start, end
    return None


def _after_end(end: str, states: Sequence[PromptState], text: str) -> str:
    for state in (*(s for s in states if s.state in ("closed", "closed-bare")), *states):
        where = (state.after if state.state in ("closed", "closed-bare") else state.prompt or "").find(end)
        if where >= 0 and state.conversation not in _GIVEN_MARKERS:
            rest = (state.after if state.state in ("closed", "closed-bare") else state.prompt or "")[where + len(end) :]
            return rest[: len(rest) - len(rest.lstrip())]
    written = re.search(re.escape(end) + r"((?:\\n|\s)*)", text)
    return written.group(1).replace("\\n", "\n") if written else ""
