"""What a model's template leaves the model in, for every kind of request: open, closed, closed-bare, none or error."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..parsers.target import Target
from .model import Model


@dataclass(frozen=True)
class PromptState:
    """One conversation rendered under one variant, and the state the prompt leaves the model in.

    `kwargs` are the effective kwargs (what the parser gets). `tail` is the prompt's end from the last block's first
    marker on, or, without a marker, what stands after the last message. `after` is all text behind the last message's
    own text. `tokens_after_open` counts tokens behind an open marker, 0 where none is open, None without a tokenizer.
    `error_kind` is a `RenderError.kind`, `error_line` a 1-based line of the template, `refused_by_template` says that the
    template called `raise_exception` itself.
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
    """Every prompt state of one model. `reads` are the kwargs its template reads, `compared` the values it compares them with.

    `switches` are (kwarg, off value, on value) of the thinking switches the template reads.
    """

    model: Model
    reads: frozenset[str] = frozenset()
    compared: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    variants: tuple[Mapping[str, Any], ...] = ()
    states: tuple[PromptState, ...] = ()
    switches: tuple[tuple[str, Any, Any], ...] = ()

    def get(self, conversation: str, variant: Mapping[str, Any]) -> PromptState | None:
        """The state of this conversation under this variant, None where it was not tried."""
        wanted = dict(variant)
        return next((s for s in self.states if s.conversation == conversation and dict(s.variant) == wanted), None)


def survey(
    model: Model,
    *,
    target: Target = Target(),  # noqa: B008  (frozen)
    default_kwargs: Mapping[str, Any] | None = None,
    effort_map: Mapping[str, str] | None = None,
    extra_variants: Sequence[Mapping[str, Any]] = (),
    parser_moves: Callable[[Mapping[str, Any]], Hashable] | None = None,
) -> Survey:
    """Render every conversation under every variant and read the states."""
    raise NotImplementedError
