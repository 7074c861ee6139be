"""The fit probes: which prompts a parser is tried on, what the model is made to answer, and what must come of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..parsers.base import Vocabulary
from ..prompts.survey import PromptState, Survey
from .thinking import Thinking, switched_off, unclear

THOUGHT = "Let me see, two and two make four."
ANSWER = "It is four."
SECOND_THOUGHT = "Better to check that once more."
SECOND_ANSWER = "Yes, four."

Weight = Literal["asked", "effort", "unread"]
"""`asked`: the plain request, a switch the template reads, or kwargs that a given request really sends; `effort`: the
request field `reasoning_effort`; `unread`: a kwarg the template does not read, which nobody would send."""

USER_MARKER_CONVERSATIONS = ("user_start_marker", "user_end_marker")
HISTORY_CONVERSATIONS = ("multi_turn", "tool_result")


@dataclass(frozen=True, slots=True)
class Cell:
    """One prompt to put probes to: a conversation under a variant.

    `kwargs` are the effective kwargs (what the parser is built with), `request_kwargs` the request's own, `prompt_ids`
    the rendered prompt's token ids. `off`: the prompt is silent and thinking is switched off; `unclear`: it is
    silent and the same as with thinking switched off, so that nobody can say.
    """

    conversation: str
    variant: Mapping[str, Any]
    kwargs: Mapping[str, Any]
    request_kwargs: Mapping[str, Any]
    state: str
    after: str
    prompt_ids: tuple[int, ...]
    weight: Weight
    off: bool
    unclear: bool = False
    key: str = field(init=False, compare=False)
    """A name for it that no other cell of the same model and server has."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", f"{self.conversation} {json.dumps(dict(self.variant), sort_keys=True)}")

    @property
    def thinks(self) -> bool:
        """The model is thinking, or free to, when it writes its first token."""
        return self.state == "open" or (self.state == "none" and not self.off)

    @property
    def weighs(self) -> bool:
        """What goes wrong here goes wrong for requests that people send."""
        return self.weight == "asked"


@dataclass(frozen=True, slots=True)
class Probe:
    """One output of the model, and the split a client must get. `core` probes decide `fit`; stress probes only show.

    `judged` is false where no split is the right one and only a difference between modes says something.
    """

    name: str
    text: str
    reasoning: str | None
    content: str | None
    core: bool = True
    judged: bool = True


def weight_of(variant: Mapping[str, Any], survey: Survey, asked: tuple[Mapping[str, Any], ...] = ()) -> Weight:
    """How much a request with these kwargs counts.

    Args:
        variant: kwargs of a prompt state.
        survey: tells which kwargs the template reads.
        asked: kwargs that somebody is known to send (`--chat-template-kwargs`).
    """
    if any(dict(variant) == dict(given) for given in asked):
        return "asked"
    if "reasoning_effort" in variant:
        return "effort"
    return "asked" if all(name in survey.reads for name in variant) else "unread"


def cell_of(
    state: PromptState, survey: Survey, prompt_ids: tuple[int, ...], asked: tuple[Mapping[str, Any], ...] = ()
) -> Cell:
    """The cell of a rendered prompt."""
    return Cell(
        conversation=state.conversation,
        variant=dict(state.variant),
        kwargs=dict(state.kwargs),
        request_kwargs={name: value for name, value in state.variant.items() if name != "reasoning_effort"},
        state=state.state,
        after=state.after,
        prompt_ids=prompt_ids,
        weight=weight_of(state.variant, survey, asked),
        off=state.state == "none" and switched_off(survey, state),
        unclear=state.state == "none" and not switched_off(survey, state) and unclear(survey, state),
    )


def cells_of(survey: Survey, vocabulary: Vocabulary, asked: tuple[Mapping[str, Any], ...] = ()) -> list[Cell]:
    """The cells of all prompts that were rendered; where the survey has no token ids, `vocabulary` makes them."""
    return [
        cell_of(
            state,
            survey,
            state.token_ids if state.token_ids is not None else tuple(vocabulary.encode(state.prompt)),
            asked,
        )
        for state in survey.states
        if state.prompt is not None
    ]


def at_odds(cell: Cell, cells: Iterable[Cell]) -> bool:
    """The request continues an open thought with thinking off: it is at odds with itself.

    Off is what leaves a plain prompt of the same request off, or what the request says itself in a name of its own or
    the template's.

    Args:
        cell: of the request.
        cells: all of the same model and server.
    """
    if cell.conversation != "continue_final_message":
        return False
    said = any(cell.kwargs.get(name) is False for name in ("enable_thinking", "thinking"))
    return said or any(
        other.conversation == "single_turn" and other.variant == cell.variant and (other.unclear or not other.thinks)
        for other in cells
    )


def core_probe(cell: Cell, thinking: Thinking, *, continued_off: bool = False) -> Probe | None:
    """The output that decides about this cell, None where nothing fair can be asked.

    Args:
        cell: the prompt.
        thinking: how the model thinks.
        continued_off: the variant switches thinking off while the conversation continues a thought: a request at odds
            with itself, which convicts nobody.

    Source: the table "Fit probes" of the command-line contract. A model that does not think at all answers at once.
    """
    if continued_off:
        return None
    if thinking.harmony:
        return _harmony()
    if not thinking.mentioned or not cell.thinks:
        return Probe("answers-at-once", ANSWER, None, ANSWER)
    if thinking.start is None or thinking.end is None or cell.unclear:
        return None
    if cell.state == "open":
        text = f"{THOUGHT}{_close(thinking)}{ANSWER}"
        return Probe("thinks-on-then-answers", text, THOUGHT, ANSWER)
    return Probe("thinks-then-answers", f"{thinking.start}{THOUGHT}{_close(thinking)}{ANSWER}", THOUGHT, ANSWER)


def stress_probes(cell: Cell, thinking: Thinking, call: str | None) -> tuple[Probe, ...]:
    """Outputs that real models write now and then; what comes of them is told, and never decides `fit`.

    Args:
        cell: the prompt.
        thinking: how the model thinks.
        call: how this model opens a tool call, None where its template offers no tools.
    """
    if thinking.start is None or thinking.end is None or thinking.harmony:
        return ()
    end = _close(thinking)
    if not cell.thinks:
        reopened = f"{thinking.start}{THOUGHT}{end}{ANSWER}"
        return (
            Probe("reopens-a-closed-block", reopened, THOUGHT, ANSWER, core=False),
            Probe("cut-off-answer", ANSWER, None, ANSWER, core=False),
        )
    opening = "" if cell.state == "open" else thinking.start
    probes = [
        Probe("cut-off-thought", f"{opening}{THOUGHT}", THOUGHT, None, core=False),
        Probe(
            "writes-the-end-marker-in-its-thought",
            f"{opening}{THOUGHT} {thinking.end} {SECOND_THOUGHT}{end}{ANSWER}",
            f"{THOUGHT} {thinking.end} {SECOND_THOUGHT}",
            ANSWER,
            core=False,
        ),
        Probe(
            "thinks-again",
            f"{opening}{THOUGHT}{end}{ANSWER}\n{thinking.start}{SECOND_THOUGHT}{end}{SECOND_ANSWER}",
            None,
            None,
            core=False,
            judged=False,
        ),
        Probe("empty-thought", f"{opening}{end}{ANSWER}", None, ANSWER, core=False),
    ]
    if call is not None:
        probes.append(Probe("calls-a-tool-while-thinking", f"{opening}{THOUGHT}\n{call}", THOUGHT, call, core=False))
    return tuple(probes)


def _close(thinking: Thinking) -> str:
    return f"{thinking.end}{thinking.after_end}"


def _harmony() -> Probe:
    text = f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant<|channel|>final<|message|>{ANSWER}"
    return Probe("harmony-channels", text, THOUGHT, ANSWER)
