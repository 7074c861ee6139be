"""What a model's template leaves the model in, for every kind of request: open, closed, closed-bare, none or error."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..parsers.markers import STATE_MARKERS, MarkerPair
from ..parsers.target import Target
from . import history as history_room
from .asked import PromptMaker
from .conversations import SENTINEL, Conversation, conversations
from .difference import Difference
from .history import History
from .kwargs import EFFORTS, variant_kwargs
from .model import Model
from .render import Limits, Rendered, RenderError, RenderRequest
from .rendering import PromptRenderer, renderers, special_tokens
from .state import prompt_state, region_start

SWITCHES: tuple[tuple[str, Any, Any], ...] = (("enable_thinking", False, True), ("thinking", False, True))
"""(kwarg, off value, on value) of the switches that servers and clients know by name; always tried."""

_OFF_WORDS = ("disabled", "off", "none", "no_think", "non-thinking", "chat")
_ON_WORDS = ("enabled", "on", "adaptive", "auto", "think", "thinking")


@dataclass(frozen=True)
class PromptState:
    """One conversation rendered under one variant, and the state the prompt leaves the model in.

    `kwargs` are the effective kwargs (what the parser gets). `tail` is the prompt's end from the last block's first
    marker on, or, without a marker, what stands after the last message. `after` is all text behind the last message's
    own text. `tokens_after_open` counts tokens behind an open marker, 0 where none is open, None without a tokenizer.
    `error_kind` is a `RenderError.kind`, `error_line` a 1-based line of the template, `refused_by_template` says that
    the template called `raise_exception` itself. `differs`: a running vLLM made this prompt, and ours is another.
    """

    conversation: str
    variant: Mapping[str, Any]
    kwargs: Mapping[str, Any]
    state: str
    marker: str | None = None
    tail: str = ""
    after: str = ""
    tokens_after_open: int | None = None
    error: str | None = None
    error_kind: str | None = None
    error_line: int | None = None
    refused_by_template: bool = False
    prompt: str | None = None
    token_ids: tuple[int, ...] | None = None
    differs: Difference | None = None

    def as_json(self) -> dict[str, Any]:
        """The row as the JSON report of `audit` shows it."""
        return {
            "conversation": self.conversation,
            "variant": dict(self.variant),
            "state": self.state,
            "marker": self.marker,
            "tail": self.tail,
            "tokens_after_open": self.tokens_after_open,
            "error": self.error,
        }


@dataclass(frozen=True)
class Survey:
    """Every prompt state of one model.

    `reads` are the kwargs its template reads, `compared` the values it compares them with. `switches` are (kwarg, off
    value, on value) of the thinking switches the template reads. `markers` is the pair that stands in the user's text
    of the marker conversations. `history` is what becomes of earlier reasoning in a plain request, `kept_by` the same
    under each value of a kwarg that decides about it (`preserve_thinking`, `clear_thinking`). No states: the model has
    no template, or its prompts are built by code that is not evaluated. `made_by` names the running vLLM that made the
    prompts (None: they are ours), `not_made` says why one that was asked did not.
    """

    model: Model
    reads: frozenset[str] = frozenset()
    compared: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    variants: tuple[Mapping[str, Any], ...] = ()
    states: tuple[PromptState, ...] = ()
    switches: tuple[tuple[str, Any, Any], ...] = ()
    markers: MarkerPair = STATE_MARKERS[0]
    history: tuple[History, ...] = ()
    kept_by: tuple[tuple[str, bool, tuple[History, ...]], ...] = ()
    made_by: str | None = None
    not_made: str | None = None

    def get(self, conversation: str, variant: Mapping[str, Any]) -> PromptState | None:
        """The state of this conversation under this variant, None where it was not tried."""
        for state in self.states:
            if state.conversation == conversation and same_variant(state.variant, variant):
                return state
        return None


def survey(
    model: Model,
    *,
    target: Target = Target(),  # noqa: B008  (frozen)
    default_kwargs: Mapping[str, Any] | None = None,
    effort_map: Mapping[str, str] | None = None,
    extra_variants: Sequence[Mapping[str, Any]] = (),
    parser_moves: Callable[[Mapping[str, Any]], Hashable] | None = None,
    user_markers: MarkerPair | None = None,
    limits: Limits = Limits(),  # noqa: B008  (frozen)
    vllm: PromptMaker | None = None,
) -> Survey:
    """Render every conversation under every variant and read the states.

    Args:
        model: without a template, or with prompts built by code that is not evaluated, the survey has no states.
        target: the server whose way of deriving kwargs holds; all modelled ones share vLLM 0.33.0's.
        default_kwargs: the server's `--default-chat-template-kwargs`.
        effort_map: the server's `--reasoning-effort-map`.
        extra_variants: variants that real requests use, tried too.
        parser_moves: what a parser makes of effective kwargs; an effort that moves only the parser stays a variant.
        user_markers: the markers a user types and a continued message starts with; by default the first that the
            template (or the code in its place) writes.
        limits: what rendering may use.
        vllm: makes the prompts of this model, served with the same defaults; ours are held against them.
    """
    if model.code_prompt is not None or (model.template is None and model.coded is None):
        return Survey(model)
    markers = user_markers or _markers_of(model.template.text if model.template is not None else model.prompt_text)
    sentinel = SENTINEL
    while any(sentinel in text for text in (model.prompt_text, *(other.text for other in model.templates))):
        sentinel += "x"
    run = _Run(model, markers, sentinel, default_kwargs, effort_map, limits, vllm)
    try:
        base = _base_variants(run.reads, run.compared, extra_variants)
        asked = [{"reasoning_effort": effort} for effort in EFFORTS]
        efforts = [effort for effort in asked if not any(same_variant(effort, variant) for variant in base)]
        states, history, kept_by = run.states([*base, *efforts])
    finally:
        run.close()
    kept = base + [effort for effort in efforts if _moves(states, effort, parser_moves)]
    shown = tuple(state for state in states if any(same_variant(state.variant, variant) for variant in kept))
    return Survey(
        model=model,
        reads=run.reads,
        compared=run.compared,
        variants=tuple(kept),
        states=shown,
        switches=_switches(run.reads, run.compared),
        markers=markers,
        history=history,
        kept_by=kept_by,
        made_by=vllm.by if vllm is not None and vllm.problem is None else None,
        not_made=vllm.problem if vllm is not None else None,
    )


_KEEPS = re.compile(
    r"(?:preserve|clear|keep|strip|drop|truncate|retain|interleav)\w*(?:think|reason|history)", re.IGNORECASE
)
"""Names of kwargs that decide what becomes of earlier reasoning."""


def same_variant(one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
    """Equal as JSON: `true` and `1` are two values."""
    return one.keys() == two.keys() and all(type(one[k]) is type(two[k]) and one[k] == two[k] for k in one)


class _Run:
    """The renderers of one survey: one for the plain template and, where the model names one, one for tools."""

    def __init__(
        self,
        model: Model,
        markers: MarkerPair,
        sentinel: str,
        default_kwargs: Mapping[str, Any] | None,
        effort_map: Mapping[str, str] | None,
        limits: Limits,
        vllm: PromptMaker | None,
    ) -> None:
        self._model = model
        self._markers = markers
        self._talks = conversations(markers.start, markers.end, sentinel)
        self._sentinel = sentinel
        self._default_kwargs = default_kwargs
        self._effort_map = effort_map
        self._renderers = renderers(model, limits=limits, vllm=vllm)
        self._distinct = tuple(dict.fromkeys(self._renderers.values()))
        self.reads: frozenset[str] = frozenset().union(*(renderer.reads for renderer in self._distinct))
        self.compared: dict[str, tuple[Any, ...]] = {}
        for renderer in self._distinct:
            for name, values in renderer.compared.items():
                known = self.compared.get(name, ())
                self.compared[name] = known + tuple(v for v in values if not _holds(known, v))

    def states(
        self, variants: Sequence[Mapping[str, Any]]
    ) -> tuple[list[PromptState], tuple[History, ...], tuple[tuple[str, bool, tuple[History, ...]], ...]]:
        """The states of every conversation under each variant, in that order, and the histories; a batch a renderer.

        Variants that reach it with the same kwargs are rendered, and read, once.
        """
        jobs: list[tuple[Mapping[str, Any], dict[str, Any], tuple[str, str]]] = []
        wanted: dict[PromptRenderer, dict[tuple[str, str], RenderRequest]] = {each: {} for each in self._distinct}
        for variant in variants:
            kwargs = self._kwargs(variant)
            own = {name: value for name, value in variant.items() if name != "reasoning_effort"} or None
            for talk in self._talks:
                renderer = self._renderers[talk.tools is not None]
                reaching = renderer.reaching(kwargs, effort=variant.get("reasoning_effort"), own=own)
                key = (talk.name, json.dumps(reaching, sort_keys=True))
                wanted[renderer].setdefault(key, _request(talk, reaching))
                jobs.append((variant, kwargs, key))
        thought = f"{self._sentinel}thought"
        switches = [(name, value) for name in sorted(self.reads) if _KEEPS.search(name) for value in (True, False)]
        asked = self._with_history(thought, {})
        for name, value in switches:
            asked += self._with_history(thought, {name: value})
        told: dict[int, Rendered] = {}
        read: dict[tuple[str, str], PromptState] = {}
        for renderer, requests in wanted.items():
            mine = [at for at, (owner, _) in enumerate(asked) if owner is renderer]
            results = renderer.render_all([*requests.values(), *(asked[at][1] for at in mine)])
            for key, result in zip(requests, results, strict=False):
                read[key] = self._read(key[0], result)
            told |= dict(zip(mine, results[len(requests) :], strict=True))
        states = [replace(read[key], variant=variant, kwargs=kwargs) for variant, kwargs, key in jobs]
        each = len(asked) // (1 + len(switches))
        plain, *others = (
            history_room.read([told[at] for at in range(first, first + each)], thought)
            for first in range(0, len(asked), each)
        )
        kept_by = tuple((name, value, rows) for (name, value), rows in zip(switches, others, strict=True))
        return states, plain, kept_by

    def _with_history(self, thought: str, variant: Mapping[str, Any]) -> list[tuple[PromptRenderer, RenderRequest]]:
        """Requests that hand an earlier thought back, each with its renderer."""
        kwargs, own = self._kwargs(variant), variant or None
        made: list[tuple[PromptRenderer, RenderRequest]] = []
        for request in history_room.requests(self._markers, thought, by_code=self._by_code):
            renderer = self._renderers[request.tools is not None]
            made.append((renderer, replace(request, kwargs=renderer.reaching(kwargs, effort=None, own=own))))
        return made

    @property
    def _by_code(self) -> bool:
        """Code makes the prompts; what a running server does behind its own doors is not known to be any."""
        return self._model.coded is not None and self._model.kind != "served"

    def close(self) -> None:
        for renderer in self._distinct:
            renderer.close()

    def _kwargs(self, variant: Mapping[str, Any]) -> dict[str, Any]:
        return variant_kwargs(variant, default_kwargs=self._default_kwargs, effort_map=self._effort_map)

    def _read(self, conversation: str, result: Rendered) -> PromptState:
        """The state of one rendering, its variant still to be filled in."""
        if result.text is None:
            error = result.error or RenderError("crashed", "no result")
            return PromptState(
                conversation=conversation,
                variant={},
                kwargs={},
                state="error",
                error=error.message,
                error_kind=error.kind,
                error_line=error.line,
                refused_by_template=error.by_template,
                differs=result.differs,
            )
        prompt = result.text
        start = region_start(prompt, self._sentinel)
        read = prompt_state(prompt, start, ends=result.ends)
        ids, after_open = self._tokens(result, prompt, read.marker_end if read.state == "open" else None)
        return PromptState(
            conversation=conversation,
            variant={},
            kwargs={},
            state=read.state,
            marker=read.marker,
            tail=read.tail,
            after=prompt[start:],
            tokens_after_open=after_open,
            prompt=prompt,
            token_ids=ids,
            differs=result.differs,
        )

    def _tokens(self, result: Rendered, prompt: str, open_end: int | None) -> tuple[tuple[int, ...] | None, int | None]:
        """The prompt's ids, and how many tokens end behind character `open_end` (0 where nothing is open)."""
        ids: Sequence[int]
        ends: Sequence[int]
        if result.token_ids is not None and result.ends is not None:
            ids, ends = result.token_ids, result.ends
        elif self._model.tokenizer is not None:
            ids, ends = self._model.tokenizer.encode_with_ends(prompt)
            ids = ids if result.token_ids is None else result.token_ids
        else:
            return None, None
        return tuple(ids), 0 if open_end is None else sum(end > open_end for end in ends)


def _request(talk: Conversation, kwargs: Mapping[str, Any]) -> RenderRequest:
    return RenderRequest(
        messages=talk.messages,
        tools=talk.tools,
        kwargs=kwargs,
        add_generation_prompt=not talk.continues,
        continue_final_message=talk.continues,
    )


def _markers_of(text: str) -> MarkerPair:
    """The first pair of markers the template's text holds; `<think>` where it holds none."""
    by_start = [pair for pair in STATE_MARKERS if pair.start in text]
    by_end = [pair for pair in STATE_MARKERS if pair.end in text]
    return (by_start or by_end or STATE_MARKERS)[0]


def _base_variants(
    reads: frozenset[str], compared: Mapping[str, Sequence[Any]], extra: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Everything always tried, the values other kwargs are compared with, and what real requests use; no doubles."""
    wanted: list[Mapping[str, Any]] = [{}]
    wanted += [{name: value} for name, off, on in SWITCHES for value in (on, off)]
    apart = {"reasoning_effort", *(name for name, _, _ in SWITCHES)}
    wanted += [{name: value} for name in sorted(reads - apart) for value in compared.get(name, ())]
    wanted += [dict(variant) for variant in extra]
    kept: list[Mapping[str, Any]] = []
    for variant in wanted:
        if not any(same_variant(variant, other) for other in kept):
            kept.append(variant)
    return kept


def _moves(
    states: Sequence[PromptState],
    effort: Mapping[str, Any],
    parser_moves: Callable[[Mapping[str, Any]], Hashable] | None,
) -> bool:
    """Whether an effort changes a prompt, or what the parser makes of its kwargs, against the plain request."""
    plain = [state for state in states if not state.variant]
    moved = [state for state in states if same_variant(state.variant, effort)]
    if any((a.prompt, a.state, a.error) != (b.prompt, b.state, b.error) for a, b in zip(plain, moved, strict=True)):
        return True
    return parser_moves is not None and parser_moves(plain[0].kwargs) != parser_moves(moved[0].kwargs)


def _switches(reads: frozenset[str], compared: Mapping[str, Sequence[Any]]) -> tuple[tuple[str, Any, Any], ...]:
    """The thinking switches the template reads, with the values that turn it off and on."""
    found = [switch for switch in SWITCHES if switch[0] in reads]
    for name in sorted(reads):
        values = [value for value in compared.get(name, ()) if isinstance(value, str)]
        if name.startswith("thinking_") and values:
            off = [word for word in _OFF_WORDS if word in values]
            on = [word for word in _ON_WORDS if word in values]
            if off or on:
                found.append((name, off[0] if off else None, on[0] if on else None))
    return tuple(found)


def _holds(values: Sequence[Any], value: Any) -> bool:
    return any(type(value) is type(other) and value == other for other in values)


__all__ = ["PromptState", "Survey", "same_variant", "special_tokens", "survey"]
