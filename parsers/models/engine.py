"""The engine family: what a server gets from these parsers, one machine for all of them.

Models vLLM's `ParserEngine` (vllm/parser/engine/parser_engine.py), its adapter (adapters.py) and the part of
`DelegatingParser` (vllm/parser/abstract_parser.py) that runs them without a tool parser; 0.33.0 and 0.32.0.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base import Delta, ParserModel, Split, Vocabulary
from ..target import Target
from .engine_calls import check_call
from .engine_dialects import DIALECTS, Dialect, Kwargs
from .engine_grammar import THINK_START, State
from .engine_machine import Machine
from .engine_newlines import NewlineRepair, repair

ENGINE_NAMES: tuple[str, ...] = tuple(DIALECTS)
"""The names this module models."""


def build_engine(
    name: str,
    vocabulary: Vocabulary,
    kwargs: Kwargs,
    *,
    request_kwargs: Kwargs | None = None,
    target: Target | None = None,
) -> ParserModel:
    """A model of one engine parser for one request.

    Args:
        name: one of `ENGINE_NAMES`.
        kwargs: the effective chat-template kwargs.
        request_kwargs: the `chat_template_kwargs` of the request itself; None: the same as `kwargs`.
        target: the vLLM version; the newest when None.

    Raises:
        ParserRaisedError: vLLM's constructor raises for these kwargs.
    """
    own = kwargs if request_kwargs is None else request_kwargs
    return EngineModel(DIALECTS[name], vocabulary, kwargs, own, target or Target())


class EngineModel(ParserModel):
    """One engine parser, for one output."""

    skip_special_tokens = False

    def __init__(
        self, dialect: Dialect, vocabulary: Vocabulary, kwargs: Kwargs, request_kwargs: Kwargs, target: Target
    ) -> None:
        old = target.version < (0, 33, 0)
        self._dialect = dialect
        self._vocabulary = vocabulary
        self._thinking = dialect.thinks(kwargs, vocabulary)
        self._grammar = ((old and dialect.grammar_0_32) or dialect.grammar)(self._thinking)
        self._reads_prompt = not old
        self._fills_content = dialect.fills_content and (
            request_kwargs.get("enable_thinking") is False or request_kwargs.get("force_nonempty_content") is True
        )
        vocab = vocabulary.vocab
        literals = self._grammar.literals
        start_marker = literals.get(THINK_START)
        self._start_id = vocab.get(start_marker[0]) if start_marker else None
        self._start_opens = self._opens_reasoning()
        self._end_ids = self._grammar.end_ids(vocab)
        self._turn_ids = frozenset(vocab[token] for token in self._grammar.turns if token in vocab)
        self._prompt_closed = False
        self._passes_through = False
        self._stream: _Stream | None = None
        self._repairs = (NewlineRepair(), NewlineRepair())

    def is_reasoning_end(self, ids: Sequence[int]) -> bool:
        for token_id in reversed(ids):
            if token_id in self._end_ids:
                return True
            if token_id == self._start_id:
                if self._start_opens:
                    return False
                break
            if token_id in self._turn_ids:
                break
        return self._grammar.start is not State.REASONING

    def begin(self, prompt_ids: Sequence[int] | None, *, streaming: bool) -> None:
        if prompt_ids is None:
            return
        ended = self.is_reasoning_end(prompt_ids)
        # Only a format with turn boundaries can tell a block closed in this turn from one of an earlier turn.
        self._prompt_closed = (
            self._reads_prompt and ended and self._grammar.start is State.REASONING and bool(self._turn_ids)
        )
        self._passes_through = streaming and ended

    def split(self, text: str, ids: Sequence[int]) -> Split:
        reasoning, content = self._split(text)
        if self._dialect.repairs_newlines:
            return Split(repair(reasoning), repair(content))
        return Split(reasoning, content)

    def feed(self, text: str, ids: Sequence[int], *, finished: bool = False) -> Delta | None:
        delta = self._feed(text, ids, finished)
        return self._repaired(delta, finished) if self._dialect.repairs_newlines else delta

    def count_reasoning_tokens(self, ids: Sequence[int]) -> int:
        """As `ParserModel`. Raises ParserRaisedError where vLLM's parse of the tool calls does (`check_call`)."""
        if self._stream is not None:
            counted = self._stream.machine.reasoning_tokens
        else:
            counted = self._count_whole(ids) if ids else 0
        return 0 if self._dialect.off_counts_nothing and not self._thinking else counted

    def _count_whole(self, ids: Sequence[int]) -> int:
        """The reasoning tokens of a whole output, which is parsed once more for it, tool calls too."""
        machine = self._machine(keep_tools=False)
        machine.feed(self._vocabulary.decode(ids), ids)
        machine.finish()
        if self._dialect.call_name is not None:
            for header, body in machine.calls:
                check_call(self._dialect.call_name("".join(header)), "".join(body))
        return machine.reasoning_tokens

    def _opens_reasoning(self) -> bool:
        """Whether a start marker in the prompt leaves reasoning open, by what it would do at the start of an output."""
        move = self._grammar.moves.get((self._grammar.start, THINK_START))
        return move is not None and move.to is State.REASONING

    def _machine(self, *, keep_tools: bool = True) -> Machine:
        start = State.CONTENT if self._prompt_closed else self._grammar.start
        return Machine(self._grammar, self._vocabulary, start, keep_tools=keep_tools)

    def _split(self, text: str) -> tuple[str | None, str | None]:
        dialect = self._dialect
        reasoning: str | None
        content: str | None
        if dialect.off_is_content and not self._thinking:
            reasoning, content = None, text
        else:
            machine = self._machine()
            # Without ids, so that markers are told by their text alone.
            machine.feed(text, ())
            machine.finish()
            raw, content = machine.take()
            reasoning = (raw.rstrip() if dialect.trims_reasoning else raw) or None
            content = content or None
        if dialect.off_hides_reasoning and not self._thinking:
            reasoning = None
        nothing = content is None or (not dialect.trims_content and not content.strip())
        if dialect.trims_content and content is not None:
            content = content.lstrip("\n") or None
        if self._fills_content and nothing:
            reasoning, content = content, reasoning
        return reasoning, content

    def _feed(self, text: str, ids: Sequence[int], finished: bool) -> Delta | None:
        if self._passes_through:
            return Delta(content=text)
        if self._stream is None:
            self._stream = _Stream(self._machine(), self._dialect, ended=not self._grammar.thinks)
        stream = self._stream
        delta = stream.feed(text, ids)
        hides = self._dialect.off_hides_reasoning and not self._thinking
        if hides and delta is not None:
            delta = Delta(content=delta.content) if delta.content is not None else None
        if hides or stream.is_over:
            # The last that goes through the machine; what it would still call reasoning is lost.
            self._passes_through = True
            last = stream.finish()
            content = (delta.content or "" if delta else "") + (last.content or "" if last else "")
            if content:
                delta = Delta(delta.reasoning if delta else None, content)
            return delta
        if finished:
            if self._fills_content:
                delta = _joined(delta, Delta(content="".join(stream.reasoning) or None))
            delta = _joined(delta, stream.finish())
        return delta

    def _repaired(self, delta: Delta | None, finished: bool) -> Delta | None:
        given = delta or Delta()
        reasoning_over = finished or given.content is not None
        reasoning = self._repairs[0].feed(given.reasoning or "", final=reasoning_over) or None
        content = self._repairs[1].feed(given.content or "", final=finished) or None
        return Delta(reasoning, content) if reasoning or content else None


class _Stream:
    """What a machine's stretches become as messages: white space waits until it is known to matter.

    Attributes:
        reasoning: all reasoning so far, before any trimming.
    """

    def __init__(self, machine: Machine, dialect: Dialect, *, ended: bool) -> None:
        self.machine = machine
        machine.ended = machine.ended or ended
        self.reasoning: list[str] = []
        self._dialect = dialect
        self._content_begun = False
        self._answer_begun = False
        self._blank_content: list[str] = []
        self._blank_reasoning: list[str] = []

    @property
    def is_over(self) -> bool:
        """Whether the server stops asking the parser: reasoning has ended, and newlines to trim have passed."""
        return self.machine.ended and (self._answer_begun or not self._dialect.trims_content)

    def feed(self, text: str, ids: Sequence[int]) -> Delta | None:
        self.machine.feed(text, ids)
        delta = self._message(finished=False)
        if not self._dialect.trims_reasoning or delta is None or delta.reasoning is None:
            return delta
        reasoning = self._trimmed(delta.reasoning)
        return Delta(reasoning, delta.content) if reasoning or delta.content is not None else None

    def finish(self) -> Delta | None:
        self.machine.finish()
        return self._message(finished=True)

    def _trimmed(self, reasoning: str) -> str | None:
        """`reasoning` without white space at its end, which comes before the next reasoning or never."""
        kept = reasoning.rstrip()
        if not kept:
            self._blank_reasoning.append(reasoning)
            return None
        whole = "".join((*self._blank_reasoning, kept))
        self._blank_reasoning = [reasoning[len(kept) :]]
        return whole

    def _message(self, *, finished: bool) -> Delta | None:
        reasoning, content = self.machine.take()
        if not self._content_begun and (content or self._blank_content):
            # An answer that is white space so far waits for the rest of it.
            self._content_begun = bool(content.strip())
            self._blank_content.append(content)
            content = ""
            if self._content_begun or finished:
                content = "".join(self._blank_content)
                self._blank_content.clear()
        if reasoning and self._dialect.fills_content:
            self.reasoning.append(reasoning)
        if self._dialect.trims_content and not self._answer_begun:
            content = content.lstrip("\n")
            self._answer_begun = bool(content)
        return Delta(reasoning or None, content or None) if reasoning or content else None


def _joined(first: Delta | None, second: Delta | None) -> Delta | None:
    """Two messages as one."""
    if first is None or second is None or second == Delta():
        return first or (second if second != Delta() else None)
    return Delta(_concatenated(first.reasoning, second.reasoning), _concatenated(first.content, second.content))


def _concatenated(first: str | None, second: str | None) -> str | None:
    return (first or "") + second if second else first
