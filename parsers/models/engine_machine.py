"""The state machine between an output and its split: feed deltas, take the reasoning and content they add.

Models vllm/parser/engine/streaming_parser_engine.py (0.33.0, unchanged from 0.32.0) as a reasoning parser runs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from ..base import Vocabulary
from ..columns import Deltas
from ..detokenizer import Alone
from .engine_grammar import DROP, THINK_START, Grammar, State
from .engine_lexer import Lexeme, Lexer, Lexicon, lexicon
from .engine_scanner import Item, Marker, Scanner


@dataclass(slots=True)
class Call:
    """A parsed tool call, in pieces: the text before its arguments, and each stretch of arguments."""

    header: list[str] = field(default_factory=list)
    bodies: list[list[str]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return "".join(self.header)

    @property
    def body(self) -> str:
        return "".join(piece for body in self.bodies for piece in body)


@dataclass(frozen=True, slots=True)
class Wiring:
    """What a grammar looks for in the prompts and outputs of a vocabulary: ids with their terminals, and texts.

    `by_id` are the terminals that have ids, `alone` is the text of each id, decoded alone. `start_id` starts reasoning,
    `end_ids` end it, `turn_ids` bound the last turn of a prompt.
    """

    terminals: Mapping[int, str]
    by_id: frozenset[str]
    lexicon: Lexicon
    alone: Mapping[int, str]
    start_id: int | None
    end_ids: frozenset[int]
    turn_ids: frozenset[int]


class Machine:
    """One output of one format.

    Args:
        start: the state the output begins in.
        keep_tools: tool calls stay in the text they stand in, as when splitting. Counting tokens parses them.

    Attributes:
        ended: reasoning has been reported over.
        reasoning_tokens: tokens of reasoning so far.
        calls: the parsed calls.
        orphaned: arguments or the end of a call came before any call.
    """

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary, start: State, *, keep_tools: bool) -> None:
        self._grammar = grammar
        self._state = start
        self._keep_tools = keep_tools
        wiring = wired(grammar, vocabulary)
        self._scanner = Scanner(wiring.terminals, wiring.alone)
        self._lexer = Lexer(wiring.lexicon)
        self._by_id = wiring.by_id
        self._ids_seen = False
        self._inside_call = False
        self._header: list[str] = []
        self._reasoning: list[str] = []
        self._content: list[str] = []
        self.ended = False
        self.reasoning_tokens = 0
        self.calls: list[Call] = []
        self.orphaned = False

    def feed(self, text: str, ids: Sequence[int]) -> None:
        """Take in one delta. Without ids in any, markers are told by their text alone."""
        self._ids_seen = self._ids_seen or bool(ids)
        if (
            text
            and not self._lexer.holds
            and not self._scanner.waits
            and self._lexer.is_plain(text, self._stirring(self._state))
            and not self._scanner.has_marker(ids)
        ):
            self._add(text, len(ids))
        else:
            self._take_in(self._scanner.scan(text, ids))

    @property
    def idle(self) -> bool:
        """Nothing is held: what comes next is decided by itself."""
        return not self._lexer.holds and not self._scanner.waits

    def notable(self, deltas: Deltas) -> list[int]:
        """The numbers of the deltas that bring a marker of reasoning or content, by id or in their text; in order."""
        known = deltas.holding(self._scanner.ids)
        literals = self._lexer.lexicon.any_of(self._stirring(State.REASONING) | self._stirring(State.CONTENT))
        # A literal may begin inside another.
        spans: list[tuple[int, int]] = []
        match = literals.search(deltas.text)
        while match is not None:
            spans.append(match.span())
            match = literals.search(deltas.text, match.start() + 1)
        own = [match for number in known if (match := literals.search(deltas.texts[number])) is not None]
        if [deltas.text[begin:end] for begin, end in spans] == [match[0] for match in own]:
            return known  # every literal is the text of one of these
        ranges = (range(deltas.at_character(begin), deltas.at_character(end - 1) + 1) for begin, end in spans)
        return sorted({*known, *chain.from_iterable(ranges)})

    def finish(self) -> None:
        """Nothing comes after: decide what was held back."""
        self._take_in(self._scanner.flush())
        self._lexed(self._lexer.flush())
        if self._state is State.REASONING:
            self.ended = True
        elif self._state is State.HEADER:
            self._content.append(self._take_header())
        self._state = State.CONTENT

    @property
    def state(self) -> State:
        return self._state

    def take(self) -> tuple[str, str]:
        """The reasoning and content that have come since it was last asked, either of them may be empty."""
        taken = "".join(self._reasoning), "".join(self._content)
        self._reasoning.clear()
        self._content.clear()
        return taken

    def _stirring(self, state: State) -> frozenset[str]:
        return self._grammar.stirring(state, keep_tools=self._keep_tools)

    def _take_in(self, items: Iterable[Item]) -> None:
        for item in items:
            if isinstance(item, Marker):
                self._lexed(self._lexer.flush())
                self._terminal(item.terminal, item.text)
            elif item.text and not self._lexer.holds and self._lexer.is_plain(item.text, self._stirring(self._state)):
                self._add(item.text, item.count)
            elif item.text:
                self._lexed(self._lexer.feed(item.text, item.tokens, item.count))
            else:
                self._add("", item.count)

    def _lexed(self, lexemes: Iterable[Lexeme]) -> None:
        for terminal, text, tokens in lexemes:
            # Where a terminal has a token of its own, the same text out of other tokens is only text.
            if terminal is None or (self._ids_seen and terminal in self._by_id):
                self._add(text, tokens)
            else:
                self._terminal(terminal, text, tokens)

    def _terminal(self, terminal: str, text: str, tokens: int = 0) -> None:
        grammar = self._grammar
        move = grammar.moves.get((self._state, terminal))
        is_exit = terminal in grammar.tool_exits
        if move is None:
            if terminal == DROP:
                return
            if self._keep_tools and is_exit:
                self._inside_call = False
            self._add(text, tokens)
            return
        enters = move.to.in_tool
        if self._keep_tools and terminal in grammar.tool_terminals and (enters or self._inside_call or not is_exit):
            if enters or is_exit:
                self._inside_call = enters
            if move.ends_reasoning or self._state is State.HEADER:
                self._take_header()
                self._state = State.CONTENT
                self.ended = self.ended or move.ends_reasoning
            self._add(text, 0)
            return
        before, self._state = self._state, move.to
        self.ended = self.ended or move.ends_reasoning
        if before is State.HEADER:
            header = self._take_header()
            if move.keeps:
                self._content.append(header)
        if move.opens_call or move.to is State.TOOL_NAME:
            self.calls.append(Call())
        elif move.closes_call and not self.calls:
            self.orphaned = True
        if move.to is State.TOOL_ARGS:
            if before is not move.to and self.calls:
                self.calls[-1].bodies.append([])
            if move.keeps or before is move.to:
                self._add(text, tokens)

    def _take_header(self) -> str:
        header = "".join(self._header)
        self._header.clear()
        return header

    def _add(self, text: str, tokens: int) -> None:
        if self._state is State.REASONING:
            self._reasoning.append(text)
            self.reasoning_tokens += tokens
        elif self._state is State.CONTENT:
            self._content.append(text)
        elif self._state is State.HEADER:
            self._header.append(text)
        elif self._state is State.TOOL_NAME:
            self.calls[-1].header.append(text)
        elif self._state is State.TOOL_ARGS:
            if self.calls:
                self.calls[-1].bodies[-1].append(text)
            elif text:
                self.orphaned = True


def wired(grammar: Grammar, vocabulary: Vocabulary) -> Wiring:
    """What the grammar looks for in the vocabulary; made once for a tokenizer that keeps what is derived from it."""
    kept: dict[object, Any] = getattr(vocabulary, "kept", {})
    if grammar not in kept:
        kept[grammar] = _wire(grammar, vocabulary, kept.setdefault(Alone, Alone(vocabulary)))
    wiring: Wiring = kept[grammar]
    return wiring


def _wire(grammar: Grammar, vocabulary: Vocabulary, alone: Mapping[int, str]) -> Wiring:
    vocab = vocabulary.vocab
    known = {text for spellings in grammar.literals.values() for text in spellings} | grammar.preserved
    dropped = {text: token_id for text, token_id in vocabulary.special_tokens.items() if text not in known}
    terminals = grammar.ids(vocab) | dict.fromkeys(dropped.values(), DROP)
    literals = [(text, terminal) for terminal, spellings in grammar.literals.items() for text in spellings]
    words = lexicon((*literals, *((text, DROP) for text in dropped)))
    return Wiring(
        terminals,
        frozenset(terminals.values()),
        words,
        alone,
        start_id=vocab.get(grammar.literals[THINK_START][0]) if THINK_START in grammar.by_id else None,
        end_ids=grammar.end_ids(vocab),
        turn_ids=frozenset(vocab[token] for token in grammar.turns if token in vocab),
    )
