"""How a model marks its thinking, as far as a parser for it has to know: read from its template and its vocabulary."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InputError
from ..parsers import ROWS
from ..parsers.base import Vocabulary
from ..parsers.markers import MarkerPair
from ..parsers.row import ParserRow
from ..prompts.conversations import WEATHER, called_tool, tool_answer
from ..prompts.model import Model
from ..prompts.render import RenderRequest
from ..prompts.rendering import renderers
from ..prompts.state import prompt_state
from ..prompts.survey import PromptState, Survey, same_variant, survey

_BRACKETED = r"<[^<>\s]+>|\[[^\[\]\s]+\]"
_PLAIN = ("single_turn", "system", "multi_turn", "tools", "tool_result")
"""Conversations in which no message holds a marker of its own."""
_THOUGHT = "Zqreasonctlthought"
_SAID = "Zqreasonctlsaid"
_OFF_EFFORT = "none"


@dataclass(frozen=True, slots=True)
class Switch:
    """A kwarg that turns thinking off and on. `default_on`: what a request without it gets."""

    name: str
    off: Any
    on: Any
    default_on: bool


@dataclass(frozen=True, slots=True)
class Traits:
    """What a parser for one model has to know.

    Attributes:
        start: the start marker.
        end: the end marker.
        single: every marker is one token of the vocabulary.
        special: decoding leaves a marker out unless the request says otherwise.
        opened: every prompt with thinking on ends inside a block.
        call: what opens a tool call, and so ends a thought without its end marker; None where nothing does.
        switches: what turns thinking off.
        turns: tokens that open the model's turn.
        prompt: what a plain prompt with thinking on ends with, behind the user's text.
        prompt_off: the same with thinking off; None without a switch.
        closed: that prompt shows a closed block.
    """

    start: str
    end: str
    single: bool
    special: bool = False
    opened: bool = True
    call: str | None = None
    switches: tuple[Switch, ...] = ()
    turns: tuple[str, ...] = ()
    prompt: str = ""
    prompt_off: str | None = None
    closed: bool = True

    @property
    def markers(self) -> tuple[str, ...]:
        """Every text that the parser looks for."""
        return (self.start, self.end, *((self.call,) if self.call is not None else ()))

    @property
    def default_on(self) -> bool:
        """A request that says nothing of thinking gets it."""
        return all(switch.default_on for switch in self.switches)


def read_traits(model: Model, *, like: ParserRow | None = None, markers: MarkerPair | None = None) -> Traits:
    """Read them from what the template renders.

    Args:
        model: with a chat template.
        like: a built-in parser whose facts go before the template's.
        markers: the markers, where the user names them.

    Raises:
        InputError: the model has no template that can be read, or shows no markers.
    """
    if model.template is None or model.code_prompt is not None:
        why = model.code_prompt or "it has no chat template"
        raise InputError(f"a parser cannot be told from this model: {why}", source=model.source, mend=_GIVE_TEMPLATE)
    pair = markers or _of_row(like) or _told_by(model)
    rendered = survey(model, user_markers=pair)
    states = _States(rendered, pair)
    plain = states.one({})
    if plain is None:
        failed = rendered.get("single_turn", {})
        raise InputError(
            f"the template gives no prompt: {failed.error if failed else 'no result'}",
            source=str(model.template.path or model.source),
            line=failed.error_line if failed else None,
            mend="mend the template",
        )
    switches = _like_switches(like) or tuple(_switches(rendered, states))
    call = _call_of(model, pair) if like is None else next(iter(like.implicit_ends), None)
    on, off = _prompt_on(states, switches), _prompt_off(states, switches)
    turns = _turns(model, on.after, pair, call)
    vocabulary = model.tokenizer
    wanted = (pair.start, pair.end, *((call,) if call is not None else ()))
    return Traits(
        start=pair.start,
        end=pair.end,
        single=vocabulary is not None and all(_is_token(vocabulary, text) for text in wanted),
        special=vocabulary is not None and any(set(vocabulary.encode(t)) & vocabulary.special_ids for t in wanted),
        opened=_always_open(states, switches),
        call=call,
        switches=switches,
        turns=turns if like is None or not like.turn_boundaries else like.turn_boundaries,
        prompt=on.after,
        prompt_off=off.after if off is not None else None,
        closed=off is None or states.name(off) != "none",
    )


_GIVE_TEMPLATE = "give a model folder with a chat template, or name one with a template of its own"


class _States:
    """A survey's prompts, their states read by one pair of markers."""

    def __init__(self, rendered: Survey, pair: MarkerPair) -> None:
        self.all = [state for state in rendered.states if state.prompt is not None and state.conversation in _PLAIN]
        self._pair = pair

    def one(self, variant: dict[str, Any]) -> PromptState | None:
        """A plain question under these kwargs."""
        return next((s for s in self.all if s.conversation == _PLAIN[0] and same_variant(s.variant, variant)), None)

    def name(self, state: PromptState) -> str:
        """`open`, `closed`, `closed-bare` or `none`."""
        return prompt_state(state.after, 0, (self._pair,)).state


def _of_row(row: ParserRow | None) -> MarkerPair | None:
    if row is None:
        return None
    if not row.start or not row.end:
        raise InputError(
            f"{row.name} has no start and end marker to begin with", source="--like", mend="name another parser"
        )
    return MarkerPair(row.start[0], row.end[0])


def _told_by(model: Model) -> MarkerPair:
    """The markers that the template shows: known ones, else what it writes around an earlier thought."""
    from ..checks.thinking import read_thinking

    thinking = read_thinking(survey(model), ROWS.values())
    if thinking.harmony:
        raise InputError(
            "this is a harmony model, whose output vLLM parses itself", source=model.source, mend="use openai_gptoss"
        )
    if thinking.start is not None and thinking.end is not None:
        return MarkerPair(thinking.start, thinking.end)
    found = _around_thought(model)
    if found is None:
        raise InputError(
            "the template shows no markers of thinking", source=model.source, mend="name them with --start and --end"
        )
    return found


def _around_thought(model: Model) -> MarkerPair | None:
    """What stands right before and right behind an earlier thought that is handed back."""
    turn = {"role": "assistant", "reasoning": _THOUGHT, "reasoning_content": _THOUGHT, "content": _SAID}
    question = {"role": "user", "content": "What is 2 + 2?"}
    talks = [
        ([*called_tool(turn), tool_answer("21 degrees")], [WEATHER]),
        ([question, turn], None),
        ([question, turn, question], None),
    ]
    for text in _rendered(model, talks):
        before, _, behind = text.partition(_THOUGHT)
        start = re.search(rf"({_BRACKETED})\s*$", before)
        end = re.match(rf"\s*({_BRACKETED})", behind)
        if start is not None and end is not None and start[1] != end[1]:
            return MarkerPair(start[1], end[1])
    return None


def _call_of(model: Model, pair: MarkerPair) -> str | None:
    """What the template writes first of a tool call: a marker in brackets, right behind what was said before it."""
    turn = {"role": "assistant", "content": _SAID}
    for text in _rendered(model, [([*called_tool(turn), tool_answer("21 degrees")], [WEATHER])]):
        before_name, named, _ = text.partition(_SAID)[2].partition("get_weather")
        found = re.search(_BRACKETED, before_name) if named else None
        if found is not None and found[0] not in (pair.start, pair.end):
            return found[0]
    return None


def _rendered(model: Model, talks: Sequence[tuple[list[Any], list[Any] | None]]) -> Iterator[str]:
    made = renderers(model)
    try:
        for messages, tools in talks:
            result = made[tools is not None].render(RenderRequest(messages, tools, add_generation_prompt=False))
            if result.text is not None:
                yield result.text
    finally:
        for renderer in set(made.values()):
            renderer.close()


def _switches(rendered: Survey, states: _States) -> Iterator[Switch]:
    """The kwargs that change what a plain prompt ends in."""
    plain = states.one({})
    for name, off, on in rendered.switches:
        as_off, as_on = states.one({name: off}), states.one({name: on})
        if plain is not None and as_off is not None and as_on is not None and as_off.prompt != as_on.prompt:
            default_on = plain.prompt == as_on.prompt or (
                plain.prompt != as_off.prompt and states.name(plain) == "open"
            )
            yield Switch(name, off, on, default_on)
    if _OFF_EFFORT in rendered.compared.get("reasoning_effort", ()):
        effort = states.one({"reasoning_effort": _OFF_EFFORT})
        if plain is not None and effort is not None and _is_off(states, effort, plain):
            yield Switch("reasoning_effort", _OFF_EFFORT, None, True)


def _is_off(states: _States, state: PromptState, plain: PromptState) -> bool:
    name = states.name(state)
    return name.startswith("closed") or (name == "none" and states.name(plain) == "open")


def _like_switches(row: ParserRow | None) -> tuple[Switch, ...]:
    if row is None:
        return ()
    values = {"enable_thinking": (False, True), "thinking": (False, True), "thinking_mode": ("disabled", "enabled")}
    return tuple(
        Switch(kwarg.name, *values[kwarg.name], default_on=kwarg.default == "on")
        for kwarg in row.kwargs
        if kwarg.switches_thinking and kwarg.name in values
    )


def _prompt_on(states: _States, switches: Sequence[Switch]) -> PromptState:
    asked = {one.name: one.on for one in switches[:1] if not one.default_on}
    found = states.one(asked) or states.one({})
    assert found is not None  # noqa: S101  (a plain prompt was there)
    return found


def _prompt_off(states: _States, switches: Sequence[Switch]) -> PromptState | None:
    return states.one({switches[0].name: switches[0].off}) if switches else None


def _always_open(states: _States, switches: Sequence[Switch]) -> bool:
    """Whether no prompt with thinking on leaves the model outside a block."""
    on = [
        state
        for state in states.all
        if not any(state.kwargs.get(one.name, one.off if not one.default_on else one.on) == one.off for one in switches)
    ]
    return bool(on) and all(states.name(state) == "open" for state in on)


def _turns(model: Model, after: str, pair: MarkerPair, call: str | None) -> tuple[str, ...]:
    """The tokens that open the model's turn: those behind the user's text, without markers and what ends a turn."""
    vocabulary = model.tokenizer
    if vocabulary is None:
        return ()
    found: dict[str, bool] = {}
    for token in vocabulary.encode(after):
        text = vocabulary.decode([token])
        named = token in vocabulary.special_ids or re.fullmatch(_BRACKETED, text)
        if named and vocabulary.vocab.get(text) == token and text not in (pair.start, pair.end, call):
            found[text] = token in model.eos_ids
    return tuple(text for text, ends in found.items() if not ends or all(found.values()))


def _is_token(vocabulary: Vocabulary, text: str) -> bool:
    return text in vocabulary.vocab and vocabulary.encode(text) == [vocabulary.vocab[text]]
