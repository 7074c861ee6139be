"""The state machine between an output and its split: feed deltas, take the reasoning and content they add.

Models vllm/parser/engine/streaming_parser_engine.py (0.33.0, unchanged from 0.32.0) as a reasoning parser runs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..base import Vocabulary
from .engine_grammar import Grammar, State
from .engine_lexer import Lexeme, Lexer, lexicon
from .engine_scanner import DROP, Item, Marker, Scanner


class Machine:
    """One output of one format.

    Args:
        start: the state the output begins in.
        keep_tools: tool calls stay in the text they stand in, as when splitting. Counting tokens parses them.

    Attributes:
        ended: reasoning has been reported over.
        reasoning_tokens: tokens of reasoning so far.
        calls: parsed calls, as the pieces of each one's name and body.
    """

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary, start: State, *, keep_tools: bool) -> None:
        self._grammar = grammar
        self._state = start
        self._keep_tools = keep_tools
        known = {text for spellings in grammar.literals.values() for text in spellings}
        dropped = {text: token_id for text, token_id in vocabulary.special_tokens.items() if text not in known}
        terminals = grammar.ids(vocabulary.vocab) | dict.fromkeys(dropped.values(), DROP)
        literals = [(text, terminal) for terminal, spellings in grammar.literals.items() for text in spellings]
        self._scanner = Scanner(terminals, lambda token_id: vocabulary.decode([token_id]))
        self._lexer = Lexer(lexicon((*literals, *((text, DROP) for text in dropped))))
        self._by_id = frozenset(terminals.values())
        self._ids_seen = False
        self._inside_call = False
        self._reasoning: list[str] = []
        self._content: list[str] = []
        self.ended = False
        self.reasoning_tokens = 0
        self.calls: list[tuple[list[str], list[str]]] = []

    def feed(self, text: str, ids: Sequence[int]) -> None:
        """Take in one delta. Without ids in any, markers are told by their text alone."""
        self._ids_seen = self._ids_seen or bool(ids)
        if (
            text
            and not self._lexer.holds
            and not self._scanner.waits
            and self._lexer.is_plain(text)
            and not self._scanner.has_marker(ids)
        ):
            self._add(text, len(ids))
        else:
            self._take_in(self._scanner.scan(text, ids))

    def finish(self) -> None:
        """Nothing comes after: decide what was held back."""
        self._take_in(self._scanner.flush())
        self._lexed(self._lexer.flush())
        if self._state is State.REASONING:
            self.ended = True
        self._state = State.CONTENT

    def take(self) -> tuple[str, str]:
        """The reasoning and content that have come since it was last asked, either of them may be empty."""
        taken = "".join(self._reasoning), "".join(self._content)
        self._reasoning.clear()
        self._content.clear()
        return taken

    def _take_in(self, items: Iterable[Item]) -> None:
        for item in items:
            if isinstance(item, Marker):
                self._lexed(self._lexer.flush())
                self._terminal(item.terminal, item.text)
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
        opens_call = move.to.in_tool
        if self._keep_tools and terminal in grammar.tool_terminals and (opens_call or self._inside_call or not is_exit):
            if opens_call or is_exit:
                self._inside_call = opens_call
            if move.ends_reasoning:
                self._state = State.CONTENT
                self.ended = True
            self._add(text, 0)
            return
        if move.to is State.TOOL_NAME:
            self.calls.append(([], []))
        elif self._state is move.to is State.TOOL_ARGS:
            self._add(text, tokens)
        self._state = move.to
        self.ended = self.ended or move.ends_reasoning

    def _add(self, text: str, tokens: int) -> None:
        if self._state is State.REASONING:
            self._reasoning.append(text)
            self.reasoning_tokens += tokens
        elif self._state is State.CONTENT:
            self._content.append(text)
        elif self._state is State.TOOL_NAME:
            self.calls[-1][0].append(text)
        elif self._state is State.TOOL_ARGS:
            self.calls[-1][1].append(text)
