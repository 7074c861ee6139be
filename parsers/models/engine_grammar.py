"""What each engine parser looks for: its terminals, and how they move it between states.

Facts of vLLM 0.33.0 (and 0.32.0 where it differs): vllm/parser/qwen3.py, glm47_moe.py, kimi_k2.py, minimax_m2.py,
deepseek_v4.py, deepseek_v41.py, minicpmv.py. The inner states of a tool call are here because a thought reopened after
a call counts as reasoning, while one inside a call does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import cache, cached_property

DROP = "DROP"
"""The terminal of tokens that the tokenizer declares special and the grammar does not know: they vanish."""
THINK_START, THINK_END, TOOL_START, TOOL_END = "THINK_START", "THINK_END", "TOOL_START", "TOOL_END"


class State(Enum):
    """Where in the output the parser is."""

    __hash__ = object.__hash__  # Enum's own is written in Python, and the tables below are looked up all the time

    CONTENT = auto()
    REASONING = auto()
    HEADER = auto()
    TOOL_PREAMBLE = auto()
    TOOL_NAME = auto()
    TOOL_ARGS = auto()
    TOOL_BETWEEN = auto()

    @property
    def in_tool(self) -> bool:
        return self not in (State.CONTENT, State.REASONING, State.HEADER)


@dataclass(frozen=True, slots=True)
class Move:
    """What a terminal does in a state.

    Attributes:
        to: the state it leads to.
        ends_reasoning: it reports that reasoning is over.
        opens_call, closes_call: a tool call begins or ends with it.
        keeps: text goes on with it: its own to the arguments it leads to, a header's to the content.
    """

    to: State
    ends_reasoning: bool = False
    opens_call: bool = False
    closes_call: bool = False
    keeps: bool = False


Moves = Mapping[tuple[State, str], Move]


@dataclass(frozen=True, eq=False)
class Grammar:
    """One output format; each is equal to itself alone.

    Attributes:
        start: the state an output begins in; REASONING means that thinking is on.
        literals: terminal to its spellings; the first is the usual one.
        by_id: terminals that are told by the id of their first spelling where the vocabulary has it. Once any id has
            been seen, the same text spelled by other tokens is no such terminal.
        moves: a terminal without a move in a state is ordinary text there.
        turns: tokens that bound the last turn of a prompt.
        preserved: tokens that stay in the text though they are declared special and no terminals.
        waits: whether a prompt without any marker leaves reasoning to come; None: where it begins in it.
    """

    start: State
    literals: Mapping[str, tuple[str, ...]]
    by_id: tuple[str, ...]
    moves: Moves
    turns: frozenset[str] = frozenset()
    preserved: frozenset[str] = frozenset()
    waits: bool | None = None

    @property
    def awaits_reasoning(self) -> bool:
        """Whether a prompt without any marker leaves reasoning to come."""
        return self.start is State.REASONING if self.waits is None else self.waits

    @property
    def thinks(self) -> bool:
        """Whether there is any reasoning to tell apart (vLLM's `_has_reasoning`)."""
        return THINK_START in self.literals or self.start is State.REASONING

    def stirring(self, state: State, *, keep_tools: bool) -> frozenset[str]:
        """Terminals that are more than text in a state: those with a move and those that always vanish, and where tool
        calls stay in the text, those that end one.
        """
        return self._stirring[state, keep_tools]

    @cached_property
    def _stirring(self) -> Mapping[tuple[State, bool], frozenset[str]]:
        own = {
            state: frozenset((DROP, *(terminal for begin, terminal in self.moves if begin is state))) for state in State
        }
        return {
            (state, keep): found | self.tool_exits if keep else found
            for state, found in own.items()
            for keep in (False, True)
        }

    @cached_property
    def _ends(self) -> Mapping[str, Move]:
        """The terminals that end reasoning, and how; none where one leads out of it without saying so."""
        if any(
            state is State.REASONING and move.to is not State.REASONING and not move.ends_reasoning
            for (state, _), move in self.moves.items()
        ):
            return {}
        return {
            terminal: move
            for (state, terminal), move in self.moves.items()
            if state is State.REASONING and move.ends_reasoning
        }

    @cached_property
    def tool_terminals(self) -> frozenset[str]:
        """Terminals that lead into, around or out of a tool call."""
        return frozenset(terminal for (state, terminal), move in self.moves.items() if state.in_tool or move.to.in_tool)

    @cached_property
    def tool_exits(self) -> frozenset[str]:
        """Terminals that can end a tool call."""
        return frozenset(
            terminal for (state, terminal), move in self.moves.items() if state.in_tool and not move.to.in_tool
        )

    def ids(self, vocabulary: Mapping[str, int]) -> dict[int, str]:
        """The terminals this vocabulary has a token for, by that token's id."""
        return {
            vocabulary[text]: terminal for terminal in self.by_id if (text := self.literals[terminal][0]) in vocabulary
        }

    def end_ids(self, vocabulary: Mapping[str, int]) -> frozenset[int]:
        """Ids that end reasoning, tool openers included; none where the end marker itself is no token or ends other
        things too.

        `ParserEngine._derive_reasoning_end_token_ids`.
        """
        known = {terminal: token_id for token_id, terminal in self.ids(vocabulary).items()}
        if any(terminal not in known and move.to is State.CONTENT for terminal, move in self._ends.items()):
            return frozenset()
        return frozenset(known[terminal] for terminal in self._ends if terminal in known)


def _moves(
    *rows: tuple[State | Iterable[State], str, State] | tuple[State | Iterable[State], str, State, bool],
) -> Moves:
    table = {}
    for states, terminal, to, *ends in rows:
        for state in (states,) if isinstance(states, State) else states:
            table[state, terminal] = Move(to, bool(ends))
    return table


_THINK_START, _THINK_END = ("<think>",), ("</think>",)
_CONTENT, _REASONING = State.CONTENT, State.REASONING
_PREAMBLE, _NAME, _ARGS, _BETWEEN = State.TOOL_PREAMBLE, State.TOOL_NAME, State.TOOL_ARGS, State.TOOL_BETWEEN
_THINK_MOVES = _moves(
    (_REASONING, THINK_START, _REASONING),
    (_REASONING, THINK_END, _CONTENT, True),
    (_CONTENT, THINK_END, _CONTENT),
)
_REOPENS = _moves((_CONTENT, THINK_START, _REASONING))

CHATML_TURNS = frozenset(("<|im_start|>", "<|im_end|>"))
GLM_TURNS = frozenset(("<|system|>", "<|user|>", "<|assistant|>", "<|observation|>"))


def _first(thinking: bool) -> State:
    return _REASONING if thinking else _CONTENT


@cache
def qwen(
    thinking: bool, *, prefix: str = "", turns: frozenset[str] = CHATML_TURNS, before_0_33: bool = False
) -> Grammar:
    """`<think>` and `<tool_call>` XML. `prefix` stands after the `<` of every wrapper (`seed:`)."""
    moves = _moves(
        (_REASONING, TOOL_START, _PREAMBLE, True),
        (_CONTENT, TOOL_START, _PREAMBLE, True),
        (_CONTENT, "FUNC_PREFIX", _NAME),
        (_PREAMBLE, TOOL_END, _CONTENT),
        (_PREAMBLE, "FUNC_PREFIX", _NAME),
        (_NAME, "CLOSE_ANGLE", _ARGS),
        (_NAME, "FUNC_END", _BETWEEN),
        (_ARGS, "FUNC_END", _BETWEEN),
        (_ARGS, "PARAM_START", _ARGS),
        (_ARGS, "PARAM_END", _ARGS),
        (_BETWEEN, TOOL_END, _CONTENT),
        (_BETWEEN, TOOL_START, _PREAMBLE),
        (_BETWEEN, "FUNC_PREFIX", _NAME),
    )
    repairs = _moves(
        (_NAME, TOOL_END, _CONTENT),
        (_NAME, TOOL_START, _PREAMBLE),
        (_NAME, "FUNC_PREFIX", _NAME),
        (_ARGS, "FUNC_PREFIX", _NAME),
    )
    return Grammar(
        start=_first(thinking),
        literals={
            THINK_START: (f"<{prefix}think>",),
            THINK_END: (f"</{prefix}think>",),
            TOOL_START: (f"<{prefix}tool_call>",),
            TOOL_END: (f"</{prefix}tool_call>",),
            "FUNC_PREFIX": ("<function=",),
            "FUNC_END": ("</function>",),
            "PARAM_START": ("<parameter=",),
            "PARAM_END": ("</parameter>",),
            "CLOSE_ANGLE": (">",),
        },
        by_id=(THINK_START, THINK_END, TOOL_START, TOOL_END),
        moves={**_THINK_MOVES, **moves, **({} if before_0_33 else repairs)},
        turns=turns,
    )


@cache
def minicpmv(thinking: bool, *, before_0_33: bool = False) -> Grammar:
    """Qwen's format; `<|im_end|>` and four reserved markers vanish, and a stray thought is dropped when off."""
    base = qwen(thinking, turns=frozenset(), before_0_33=before_0_33)
    tokens = {"IM_END": ("<|im_end|>",)} | {f"RESERVED_TOKEN_{n}": (f"<|reserved_{n}|>",) for n in range(12, 16)}
    texts = {f"RESERVED_TEXT_{n}": (f"<reserved_{n}>",) for n in range(12, 16)}
    vanish = {(state, terminal): Move(state) for state in (_CONTENT, _REASONING) for terminal in (*tokens, *texts)}
    return replace(
        base,
        literals={**base.literals, **tokens, **texts},
        by_id=(*base.by_id, *tokens),
        moves={**base.moves, **vanish, **({} if thinking else _REOPENS)},
    )


@cache
def glm(thinking: bool) -> Grammar:
    """`<think>` and `<tool_call>name<arg_key>...`. With thinking off the think markers are ordinary text."""
    moves = _moves(
        (_REASONING, TOOL_START, _NAME, True),
        (_CONTENT, TOOL_START, _NAME),
        (_NAME, "ARG_KEY_START", _ARGS),
        ((_NAME, _ARGS), TOOL_END, _CONTENT),
        *(
            (_ARGS, terminal, _ARGS)
            for terminal in ("ARG_KEY_START", "ARG_KEY_END", "ARG_VALUE_START", "ARG_VALUE_END")
        ),
    )
    think = {THINK_START: _THINK_START, THINK_END: _THINK_END} if thinking else {}
    return Grammar(
        start=_first(thinking),
        literals={
            **think,
            TOOL_START: ("<tool_call>",),
            TOOL_END: ("</tool_call>",),
            "ARG_KEY_START": ("<arg_key>",),
            "ARG_KEY_END": ("</arg_key>",),
            "ARG_VALUE_START": ("<arg_value>",),
            "ARG_VALUE_END": ("</arg_value>",),
        },
        by_id=(*think, TOOL_START, TOOL_END),
        moves={**moves, **({**_THINK_MOVES, **_REOPENS} if thinking else {})},
        turns=GLM_TURNS,
    )


@cache
def kimi_k2(thinking: bool) -> Grammar:
    """`<think>` and `<|tool_calls_section_begin|>`. After a section nothing is content any more."""
    moves = _moves(
        (_REASONING, "SECTION_START", _PREAMBLE, True),
        (_CONTENT, "SECTION_START", _PREAMBLE),
        ((_PREAMBLE, _BETWEEN), TOOL_START, _NAME),
        (_NAME, "ARG_START", _ARGS),
        (_ARGS, TOOL_END, _BETWEEN),
        ((_ARGS, _PREAMBLE, _BETWEEN), "SECTION_END", _PREAMBLE),
    )
    literals = {THINK_START: _THINK_START, THINK_END: _THINK_END} if thinking else {}
    literals |= {
        "SECTION_START": ("<|tool_calls_section_begin|>",),
        "SECTION_END": ("<|tool_calls_section_end|>",),
        TOOL_START: ("<|tool_call_begin|>",),
        TOOL_END: ("<|tool_call_end|>",),
        "ARG_START": ("<|tool_call_argument_begin|>",),
    }
    return Grammar(
        start=_first(thinking),
        literals=literals,
        by_id=tuple(literals),
        moves={**moves, **(_THINK_MOVES if thinking else {})},
    )


@cache
def minimax_m2(thinking: bool = True) -> Grammar:
    """`<think>` and `<minimax:tool_call>`. A `</minimax:tool_call>` without a call vanishes from content."""
    openers = ("INVOKE_DQ", "INVOKE_SQ", "INVOKE")
    moves = _moves(
        (_REASONING, TOOL_START, _PREAMBLE, True),
        (_CONTENT, TOOL_START, _PREAMBLE),
        ((_PREAMBLE, _BETWEEN, _CONTENT), TOOL_END, _CONTENT),
        *(((_CONTENT, _PREAMBLE, _BETWEEN), terminal, _NAME) for terminal in openers),
        *((_NAME, terminal, _ARGS) for terminal in ("NAME_END_DQ", "NAME_END_SQ", "NAME_END")),
        (_ARGS, "PARAM_START", _ARGS),
        (_ARGS, "PARAM_END", _ARGS),
        (_ARGS, "INVOKE_END", _BETWEEN),
    )
    return Grammar(
        start=_first(thinking),
        literals={
            THINK_START: _THINK_START,
            THINK_END: _THINK_END,
            TOOL_START: ("<minimax:tool_call>",),
            TOOL_END: ("</minimax:tool_call>",),
            "INVOKE_DQ": ('<invoke name="',),
            "INVOKE_SQ": ("<invoke name='",),
            "INVOKE": ("<invoke name=",),
            "INVOKE_END": ("</invoke>",),
            "PARAM_START": ("<parameter name=",),
            "PARAM_END": ("</parameter>",),
            "NAME_END_DQ": ('">',),
            "NAME_END_SQ": ("'>",),
            "NAME_END": (">",),
        },
        by_id=(THINK_START, THINK_END, TOOL_START, TOOL_END),
        moves={**_THINK_MOVES, **moves},
    )


@cache
def deepseek_v4(thinking: bool) -> Grammar:
    """`<think>` and DSML calls; a generated `<think>` opens a block even with thinking off."""
    return _dsml(thinking, "<｜DSML｜tool_calls>", "<｜DSML｜toolcalls>", "<｜DSML｜tool>", gap="", calls="tool_calls")


@cache
def deepseek_v41(thinking: bool) -> Grammar:
    """As deepseek_v4, with a blank after the DSML sign."""
    return _dsml(thinking, "<｜DSML｜ calls>", gap=" ", calls="calls")


def _dsml(thinking: bool, *openers: str, gap: str, calls: str) -> Grammar:
    moves = _moves(
        (_REASONING, TOOL_START, _PREAMBLE, True),
        (_CONTENT, TOOL_START, _PREAMBLE),
        ((_PREAMBLE, _CONTENT, _BETWEEN), "INVOKE", _NAME),
        (_NAME, "NAME_END", _ARGS),
        (_ARGS, "INVOKE_END", _BETWEEN),
        ((_ARGS, _BETWEEN), TOOL_END, _BETWEEN),
        (_BETWEEN, TOOL_START, _PREAMBLE),
    )
    return Grammar(
        start=_first(thinking),
        literals={
            THINK_START: _THINK_START,
            THINK_END: _THINK_END,
            TOOL_START: openers,
            TOOL_END: (f"</｜DSML｜{gap}{calls}>",),
            "INVOKE": (f'<｜DSML｜{gap}invoke name="',),
            "NAME_END": ('">',),
            "INVOKE_END": (f"</｜DSML｜{gap}invoke>",),
            "PARAM_START": (f"<｜DSML｜{gap}parameter",),
            "PARAM_END": (f"</｜DSML｜{gap}parameter>",),
        },
        by_id=(THINK_START, THINK_END, TOOL_START, TOOL_END),
        moves={**_THINK_MOVES, **_REOPENS, **moves},
    )
