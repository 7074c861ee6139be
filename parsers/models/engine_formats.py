"""What gemma4, inkling, mistral and plamo3 look for: formats whose outputs begin outside of reasoning, or whose markers
are more than one token.

Facts of vLLM 0.33.0, the same in 0.32.0: vllm/parser/gemma4.py, inkling.py, mistral.py, plamo3.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from ..base import Vocabulary
from ..target import Target
from .engine_grammar import THINK_END, THINK_START, TOOL_END, TOOL_START, Grammar, Move, State

_CONTENT, _REASONING, _HEADER = State.CONTENT, State.REASONING, State.HEADER
_PREAMBLE, _NAME, _ARGS, _BETWEEN = State.TOOL_PREAMBLE, State.TOOL_NAME, State.TOOL_ARGS, State.TOOL_BETWEEN
_ENDS = Move(_CONTENT, ends_reasoning=True)
_VANISHES = Move(_CONTENT)

GEMMA_START, GEMMA_END = "<|channel>", "<channel|>"
INKLING_MODEL, INKLING_TEXT, INKLING_THINKING = "<|message_model|>", "<|content_text|>", "<|content_thinking|>"
INKLING_END, INKLING_END_SAMPLING = "<|end_message|>", "<|content_model_end_sampling|>"
INKLING_TOOLS = ("<|content_invoke_tool_json|>", "<|content_invoke_tool_text|>", "<|content_tool_error|>")
MISTRAL_CALL = "[TOOL_CALLS]"
PLAMO_START, PLAMO_END = "<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>"
PLAMO_TURN = "<|plamo:tag|>"
PLAMO_LEAD = "<|plamo:"


@cache
def gemma4(thinking: bool) -> Grammar:
    """`<|channel>thought` and `<|tool_call>call:name{...}`. Switched off, only what a silent prompt means changes."""
    call = Move(_PREAMBLE, ends_reasoning=True)
    return Grammar(
        start=_CONTENT,
        literals={
            THINK_START: (GEMMA_START,),
            THINK_END: (GEMMA_END,),
            TOOL_START: ("<|tool_call>",),
            TOOL_END: ("<tool_call|>",),
            "CALL_PREFIX": ("call:",),
            "COLON": (":",),
            "OPEN_BRACE": ("{",),
            "OPEN_PAREN": ("(",),
        },
        by_id=(THINK_START, THINK_END, TOOL_START, TOOL_END),
        moves={
            (_CONTENT, THINK_START): Move(_REASONING),
            (_REASONING, THINK_START): Move(_REASONING),
            (_REASONING, THINK_END): _ENDS,
            (_CONTENT, THINK_END): _VANISHES,
            (_CONTENT, TOOL_START): call,
            (_REASONING, TOOL_START): call,
            (_PREAMBLE, "CALL_PREFIX"): Move(_NAME),
            (_PREAMBLE, "COLON"): Move(_NAME),
            (_NAME, "OPEN_BRACE"): Move(_ARGS),
            (_NAME, "OPEN_PAREN"): Move(_ARGS),
            **{(state, TOOL_END): _VANISHES for state in (_PREAMBLE, _NAME, _ARGS, _CONTENT)},
        },
        turns=frozenset(("<|turn>", "<|tool_response>")),
        preserved=frozenset(('<|"|>',)),
        waits=thinking,
    )


@cache
def inkling(thinking: bool = True) -> Grammar:
    """Blocks with headers, in any order: `<|message_model|>name<|content_KIND|>...<|end_message|>`."""
    ends = (THINK_END, "END_SAMPLING")
    opens: dict[tuple[State, str], Move] = {}
    for state in (_CONTENT, _HEADER):
        opens |= {(state, kind): _ENDS for kind in ("TEXT_START", "TOOL_TEXT", "TOOL_ERROR")}
        opens[state, "MSG_MODEL"] = Move(_HEADER)
        opens[state, THINK_START] = Move(_REASONING)
    return Grammar(
        start=_HEADER,
        literals={
            "MSG_MODEL": (INKLING_MODEL,),
            "TEXT_START": (INKLING_TEXT,),
            THINK_START: (INKLING_THINKING,),
            THINK_END: (INKLING_END,),
            "END_SAMPLING": (INKLING_END_SAMPLING,),
            TOOL_START: INKLING_TOOLS[:1],
            "TOOL_TEXT": INKLING_TOOLS[1:2],
            "TOOL_ERROR": INKLING_TOOLS[2:],
        },
        # Looked for as text alone, tokens or not.
        by_id=(),
        moves={
            **opens,
            **{
                (state, TOOL_START): Move(_ARGS, ends_reasoning=True, opens_call=True)
                for state in (_CONTENT, _HEADER, _REASONING)
            },
            (_REASONING, THINK_START): Move(_REASONING),
            **{(state, end): _VANISHES for state in (_CONTENT, _ARGS) for end in ends},
            # A thought's end is reported with the next block, so that its header is no content.
            (_REASONING, THINK_END): _VANISHES,
            (_REASONING, "END_SAMPLING"): _ENDS,
            **{(_HEADER, end): Move(_CONTENT, keeps=True) for end in ends},
        },
        waits=True,
    )


def mistral_thinks(kwargs: Mapping[str, Any], vocabulary: Vocabulary, target: Target) -> bool:
    """Whether the tokenizer knows reasoning at all; kwargs have no say."""
    return "[THINK]" in vocabulary.vocab or supports_grammar(vocabulary)


def supports_grammar(vocabulary: Vocabulary) -> bool:
    """Whether it is mistral-common's own tokenizer, tekken, version 11 or later (`GrammarFactory.is_supported`)."""
    return bool(getattr(vocabulary, "supports_grammar", False))


@cache
def mistral(thinking: bool, *, as_text: bool = False) -> Grammar:
    """`[THINK]` tokens, or `<think>` texts, and `[TOOL_CALLS]name[ARGS]{...}`."""
    call = Move(_NAME, ends_reasoning=thinking, opens_call=True)
    start, end = ("<think>", "</think>") if as_text else ("[THINK]", "[/THINK]")
    think = {THINK_START: (start,), THINK_END: (end,)} if thinking else {}
    moves: dict[tuple[State, str], Move] = {
        (_CONTENT, "TOOL_CALLS"): call,
        (_NAME, "ARGS"): Move(_ARGS),
        (_NAME, "OPEN_BRACE"): Move(_ARGS, keeps=True),
        (_ARGS, "TOOL_CALLS"): Move(_NAME, opens_call=True),
    }
    if thinking:
        moves |= {
            (_CONTENT, THINK_START): Move(_REASONING),
            (_REASONING, THINK_START): Move(_REASONING),
            (_REASONING, THINK_END): _ENDS,
            (_CONTENT, THINK_END): _VANISHES,
            (_REASONING, "TOOL_CALLS"): call,
        }
    return Grammar(
        start=_CONTENT,
        literals={**think, "TOOL_CALLS": (MISTRAL_CALL,), "ARGS": ("[ARGS]",), "OPEN_BRACE": ("{",)},
        by_id=(*(() if as_text else think), "TOOL_CALLS", "ARGS"),
        moves=moves,
        waits=thinking,
    )


@cache
def plamo3(thinking: bool) -> Grammar:
    """`<|plamo:begin_think:plamo|>`, whose tokens are parts of it, and tool requests in five markers each."""
    names = ("TOOL_REQUESTS", "TOOL_REQUEST", "TOOL_NAME", "TOOL_ARGS")
    spelled = {name: name.lower().replace("args", "arguments") for name in names}
    literals = {f"{name}_END": (f"<|plamo:end_{word}:plamo|>",) for name, word in spelled.items()}
    literals |= {f"{name}_START": (f"<|plamo:begin_{word}:plamo|>",) for name, word in spelled.items()}
    literals["TOOL_ARGS_START"] = (f"{literals['TOOL_ARGS_START'][0]}<|plamo:constrain|>json<|plamo:msg|>",)
    moves: dict[tuple[State, str], Move] = {
        (_CONTENT, "TOOL_REQUESTS_START"): Move(_PREAMBLE),
        (_PREAMBLE, "TOOL_REQUEST_START"): Move(_PREAMBLE),
        (_PREAMBLE, "TOOL_NAME_START"): Move(_NAME, opens_call=True),
        (_NAME, "TOOL_NAME_END"): Move(_PREAMBLE),
        (_PREAMBLE, "TOOL_ARGS_START"): Move(_ARGS),
        (_ARGS, "TOOL_ARGS_END"): Move(_BETWEEN),
        (_BETWEEN, "TOOL_REQUEST_END"): Move(_PREAMBLE, closes_call=True),
        (_PREAMBLE, "TOOL_REQUESTS_END"): _VANISHES,
        **{(state, "EOT"): _VANISHES for state in (_CONTENT, _PREAMBLE, _NAME, _ARGS, _BETWEEN)},
        # Without reasoning no output ever is in it.
        (_REASONING, "EOT"): _ENDS,
    }
    if thinking:
        moves |= {
            (_REASONING, THINK_START): Move(_REASONING),
            (_CONTENT, THINK_START): Move(_REASONING),
            (_REASONING, THINK_END): _ENDS,
            (_CONTENT, THINK_END): _VANISHES,
            (_REASONING, "TOOL_REQUESTS_START"): Move(_PREAMBLE, ends_reasoning=True),
        }
        literals |= {THINK_START: (PLAMO_START,), THINK_END: (PLAMO_END,)}
    return Grammar(
        start=_REASONING if thinking else _CONTENT,
        literals={**literals, "EOT": (PLAMO_TURN,)},
        by_id=("EOT", *((THINK_START, THINK_END) if thinking else ())),
        moves=moves,
        preserved=frozenset(("<|plamo:begin_", "<|plamo:end_", ":plamo|>")),
    )
