"""One engine parser for one output: what a server gets from it, one machine for all of them.

Models vLLM's `ParserEngine` (vllm/parser/engine/parser_engine.py), its adapter (adapters.py) and the part of
`DelegatingParser` (vllm/parser/abstract_parser.py) that runs them without a tool parser; 0.33.0 and 0.32.0.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Sequence

from ..base import Delta, ParserModel, Split, Sums, Vocabulary
from ..columns import Deltas
from ..target import Target
from ..versions import Change, applies
from .engine_calls import check_call
from .engine_dialects import Dialect, Kwargs
from .engine_grammar import THINK_START, Grammar, State
from .engine_machine import Call, Machine, wired
from .engine_newlines import NewlineRepair, repair
from .engine_stream import Stream, joined


class EngineModel(ParserModel):
    """One engine parser, for one output. A format with ways of its own overrides what stands below `count_...`.

    Raises ParserRaisedError, when made, where vLLM's constructor raises for these kwargs.
    """

    skip_special_tokens: bool | None = False

    def __init__(
        self, dialect: Dialect, vocabulary: Vocabulary, kwargs: Kwargs, request_kwargs: Kwargs, target: Target
    ) -> None:
        self._dialect = dialect
        self._vocabulary = vocabulary
        self._thinking = dialect.thinks(kwargs, vocabulary, target)
        self._grammar = self._format(target)
        self._reads_prompt = applies(Change.CLOSED_PROMPT, target)
        self._fills_content = dialect.fills_content and (
            request_kwargs.get("enable_thinking") is False or request_kwargs.get("force_nonempty_content") is True
        )
        wiring = wired(self._grammar, vocabulary)
        self._start_id = wiring.start_id
        self._start_opens = self._opens_reasoning()
        self._end_ids = wiring.end_ids
        self._turn_ids = wiring.turn_ids
        self._first_state = self._grammar.start
        self._passes_through = False
        self._stream: Stream | None = None
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
        return not self._grammar.awaits_reasoning

    def begin(self, prompt_ids: Sequence[int] | None, *, streaming: bool) -> None:
        if prompt_ids is None:
            return
        ended = self.is_reasoning_end(prompt_ids)
        # Only a format with turn boundaries can tell a block closed in this turn from one of an earlier turn.
        if self._reads_prompt and ended and self._grammar.start is State.REASONING and self._turn_ids:
            self._first_state = State.CONTENT
        if streaming and ended:
            self._passes_through = True
        elif streaming:
            self._first_state = self._state_left_by(prompt_ids)

    @property
    def start_state(self) -> Hashable:
        return self._first_state, self._passes_through

    def split(self, text: str, ids: Sequence[int]) -> Split:
        reasoning, content = self._split(text)
        if self._dialect.repairs_newlines:
            return Split(repair(reasoning), repair(content))
        return Split(reasoning, content)

    def feed(self, text: str, ids: Sequence[int], *, finished: bool = False) -> Delta | None:
        delta = self._feed(text, ids, finished)
        return self._repaired(delta, finished) if self._dialect.repairs_newlines else delta

    def stream(self, deltas: Deltas) -> Split:
        """As `ParserModel`. Deltas that bring no marker, nor a part of one, are fed as one."""
        sums = Sums()
        at, last = 0, len(deltas)
        notable: list[int] | None = None
        while at < last:
            end = at
            if self._passes_through:
                end = last
            elif self._stream is not None and self._stream.machine.idle:
                notable = [*self._stream.machine.notable(deltas), last - 1] if notable is None else notable
                end = notable[bisect_left(notable, at)]
            end = max(end, at + 1)
            sums.add(self.feed(deltas.between(at, end), deltas.ids_between(at, end), finished=end == last))
            at = end
        return sums.split()

    def count_reasoning_tokens(self, ids: Sequence[int]) -> int:
        """As `ParserModel`. Raises ParserRaisedError where vLLM's parse of the tool calls does (`check_call`)."""
        if self._stream is not None:
            counted = self._counted(ids, self._stream.machine)
        else:
            counted = self._count_whole(ids) if ids else 0
        return 0 if self._dialect.off_counts_nothing and not self._thinking else counted

    def _state_left_by(self, prompt_ids: Sequence[int]) -> State:
        """The state a stream begins in behind a prompt that leaves reasoning open."""
        return self._first_state

    def _prepared(self, machine: Machine, text: str, ids: Sequence[int]) -> tuple[str, Sequence[int]]:
        """The first delta of an output, or the whole of it, as the machine is fed it."""
        return text, ids

    def _counted(self, ids: Sequence[int], machine: Machine) -> int:
        """The reasoning tokens of `ids`, which `machine` has seen."""
        return machine.reasoning_tokens

    def _check_calls(self, machine: Machine) -> None:
        """Raise what vLLM raises over the calls of a whole output."""
        for call in machine.calls:
            self._check_call(call)

    def _check_call(self, call: Call) -> None:
        if self._dialect.call_name is not None:
            check_call(self._dialect.call_name(call.name), call.body)

    def _format(self, target: Target) -> Grammar:
        dialect = self._dialect
        if dialect.grammar_before is not None and not applies(Change.CALL_REPAIRS, target):
            return dialect.grammar_before(self._thinking)
        return dialect.grammar(self._thinking)

    def _shaped(self, delta: Delta | None, *, finished: bool) -> Delta | None:
        """A message of the machine, before white space is trimmed, as this format changes it."""
        return delta

    def _count_whole(self, ids: Sequence[int]) -> int:
        """The reasoning tokens of a whole output, which is parsed once more for it, tool calls too."""
        machine = self._machine(keep_tools=False)
        machine.feed(*self._prepared(machine, self._vocabulary.decode(ids), ids))
        machine.finish()
        self._check_calls(machine)
        return self._counted(ids, machine)

    def _opens_reasoning(self) -> bool:
        """Whether a start marker in the prompt leaves reasoning open, by what it would do at the start of an output."""
        move = self._grammar.moves.get((self._grammar.start, THINK_START))
        return move is not None and move.to is State.REASONING

    def _machine(self, *, keep_tools: bool = True) -> Machine:
        return Machine(self._grammar, self._vocabulary, self._first_state, keep_tools=keep_tools)

    def _split(self, text: str) -> tuple[str | None, str | None]:
        dialect = self._dialect
        reasoning: str | None
        content: str | None
        if dialect.off_is_content and not self._thinking:
            reasoning, content = None, text
        else:
            machine = self._machine()
            # Without ids, so that markers are told by their text alone.
            machine.feed(*self._prepared(machine, text, ()))
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
            machine = self._machine()
            self._stream = Stream(machine, self._dialect, self._shaped, ended=not self._grammar.thinks)
            text, ids = self._prepared(machine, text, ids)
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
                delta = joined(delta, Delta(content="".join(stream.reasoning) or None))
            delta = joined(delta, stream.finish())
        return delta

    def _repaired(self, delta: Delta | None, finished: bool) -> Delta | None:
        given = delta or Delta()
        reasoning_over = finished or given.content is not None
        reasoning = self._repairs[0].feed(given.reasoning or "", final=reasoning_over) or None
        content = self._repairs[1].feed(given.content or "", final=finished) or None
        return Delta(reasoning, content) if reasoning or content else None
