"""What the RPL rules look at: one replayed trace and its setting, and how a finding shows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..parsers import Target, names
from ..parsers.run import ModeResult
from ..traces.replay import Result, TraceFacts
from ..traces.splits import NO_PARSER
from .finding import Confidence, Location

if TYPE_CHECKING:
    from ..serve.command import ServeCommand

_SHOWN = 600
"""Characters of an output or a split that a finding shows; more is cut in the middle."""
_TAIL = 120


@dataclass(frozen=True)
class ReplayFacts:
    """One trace, and what is known besides it.

    Args:
        trace: what the parsers made of it.
        target: the server it is judged by.
        given: a model or a serve command was given, so that a cause can be looked for.
        command: the serve command, where it is known.
        registered: the parsers of the running vLLM that made the results; empty: the built-in models made them.
    """

    trace: TraceFacts
    target: Target = Target()  # noqa: RUF009  (frozen)
    given: bool = False
    command: ServeCommand | None = None
    registered: tuple[str, ...] = ()

    @cached_property
    def subjects(self) -> tuple[Result, ...]:
        """The results findings may be about: the recorded parser's, the serve command's, those of `--parser`."""
        return tuple(r for r in self.trace.results if r.subject and r.status != "unsupported" and not r.crashed)

    @property
    def confidence(self) -> Confidence:
        """High on real tokens and a modelled version; medium on a rebuilt text or an assumed tokenizer."""
        exact = bool(self.registered) or self.target.exact
        return "high" if self.on_real_tokens and exact else "medium"

    @property
    def on_real_tokens(self) -> bool:
        """The parsers were fed what a server fed them, or would have."""
        return self.trace.tokenizer in ("model", "trace") and not self.trace.lossy

    @property
    def location(self) -> Location:
        return Location(self.trace.path, self.trace.line)

    @cached_property
    def known_names(self) -> tuple[str, ...]:
        """All parsers the target registers."""
        return self.registered or names(self.target)

    @property
    def passing(self) -> tuple[str, ...]:
        """Parsers to recommend: they split the trace right, and the trace itself points to them."""
        return self.trace.best if self.trace.shown else ()

    @property
    def right(self) -> ModeResult | None:
        """The split of the first parser that explains the trace."""
        everything = (*self.trace.results, *self.trace.compared)
        return next((result.full for result in everything if result.parser in self.trace.best[:1]), None)

    def subject(self, result: Result | None = None) -> dict[str, Any]:
        return {"trace": self.trace.id} | ({"parser": result.parser} if result is not None else {})

    def real_modes(self, result: Result) -> Iterator[ModeResult]:
        """The modes a server runs without speculative decoding: in full, as recorded, at one token a delta."""
        yield from (mode for mode in result.real_modes if mode.error is None)

    def evidence(self, result: Result, streamed: ModeResult | None = None, **more: Any) -> dict[str, Any]:
        """What a reader needs to see the defect: the prompt's end, the output, what the client gets."""
        shown: dict[str, Any] = {}
        if self.trace.kwargs:
            shown["request"] = {"chat_template_kwargs": dict(self.trace.kwargs)}
        if self.trace.prompt is not None:
            shown["prompt"] = self.trace.prompt[-_TAIL:]
        shown["output"] = shorten(self.trace.raw)
        shown["client"] = split_json(result.full)
        if streamed is not None:
            shown["streamed"] = split_json(streamed)
            shown["chunking"] = streamed.chunking
        return shown | more


def split_json(mode: ModeResult) -> Mapping[str, Any]:
    """One mode's split, cut to what a reader takes in."""
    if mode.error is not None:
        return {"error": mode.error}
    return {"reasoning": shorten(mode.reasoning), "content": shorten(mode.content)}


def shorten(text: str | None) -> str | None:
    if text is None or len(text) <= _SHOWN:
        return text
    return f"{text[: _SHOWN // 2]} … {text[-_SHOWN // 2 :]}"


def who(result: Result) -> str:
    """The parser, at the start of a sentence."""
    return "a server without a parser" if result.parser == NO_PARSER else result.parser


def called(mode: ModeResult) -> str:
    """A mode in a sentence."""
    names = {None: "in full", "token": "streamed at one token a delta", "whole": "streamed in one delta"}
    names |= {"recorded": "streamed as recorded", "char": "streamed a character at a time"}
    if mode.chunking in names:
        return names[mode.chunking]
    return (
        f"streamed at {mode.chunking} tokens a delta" if str(mode.chunking).isdigit() else f"streamed ({mode.chunking})"
    )


def outcome(facts: ReplayFacts) -> str:
    """How the parsers to recommend split the trace."""
    return "splits right but in larger deltas" if facts.trace.fragile else "splits right"


def advice(facts: ReplayFacts, result: Result) -> str:
    """What to do about a parser that fails: one that passes on this very trace, where there is one."""
    others = [name for name in facts.passing if name not in (result.parser, NO_PARSER)]
    if result.parser in facts.passing:
        text = "no modelled parser splits this trace alike in every chunking"
        return f"{text}; while one delta holds one token, {result.parser} splits it right"
    if others:
        text = f"--reasoning-parser {others[0]} {outcome(facts)} (replayed)"
    elif facts.trace.best:
        text = "no parser to recommend: those that pass let any output through"
    else:
        text = "no modelled parser splits this trace right"
    if not facts.given:
        return f"{text}; give --model or --serve for the cause"
    return text if others else f"{text}; an audit of its model or serve command shows which requests do work"
