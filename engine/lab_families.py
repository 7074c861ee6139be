"""The lab models by name: one for every style in which models mark their thinking, each with what it says."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass, replace
from typing import Literal

from ..errors import InputError

PromptState = Literal["open", "closed", "silent"]
"""What a prompt leaves a lab model in: inside a thinking block, behind one, or before it says anything."""

THINKING = "{thinking}"
ANSWER = "{answer}"
"""In a chain: the numbers that the model counts through as its thought, and the tokens of its answer."""

THINKING_TOKENS = 40
"""How many numbers a lab model counts through as its thought unless told otherwise."""
MOST_TOKENS = 1500
_ANSWER = (" So", " the", " answer", " to", " your", " question", " is", " simply", " four", " my", " friend", ".")


@dataclass(frozen=True)
class LabFamily:
    """One lab model.

    Args:
        name: also the vLLM reasoning parser it is served with, unless `parser` says otherwise.
        style: how it marks its thinking, in a line.
        chains: texts of single tokens; in each chain every text is followed by the next. A model of one layer that
            adds nothing sees only the token before, so a text has one successor wherever it stands. A text without one
            is followed by `eos`.
        start, end: the markers, each as its tokens.
        eos: the end of the assistant's turn.
        turn: what stands around a message of the user or the system: before it (`ROLE` is its role) and behind it.
        said_end: what stands behind an earlier answer.
        header: what opens the assistant's turn: earlier answers have it, and every generation prompt.
        opened, closed: what it adds to leave a block open, or to show a closed one.
        on, off: the prompt states with thinking on and off.
        thinks_unasked: which of them a plain request gets.
        bos: stands first in every prompt.
        special: tokens flagged special, besides `bos` and `eos`; decoding may hide those.
        tokens: single tokens in no chain that the parser looks for.
        parser: the `--reasoning-parser` it is served with; None for none.
        forced: the tokens of what a used-up budget writes, where that is not the end marker.
    """

    name: str
    style: str
    chains: tuple[tuple[str, ...], ...]
    start: tuple[str, ...]
    end: tuple[str, ...]
    eos: str
    turn: tuple[str, str]
    header: str
    opened: str
    closed: str
    said_end: str
    on: PromptState = "open"
    off: PromptState = "closed"
    thinks_unasked: bool = True
    bos: str = ""
    special: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()
    parser: str | None = ""
    forced: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.parser == "":
            object.__setattr__(self, "parser", self.name)

    @property
    def arguments(self) -> tuple[str, ...]:
        """What else stands on its server's command line."""
        if not self.forced:
            return ()
        return ("--reasoning-config", json.dumps({"reasoning_end_str": "".join(self.forced)}))

    def tail(self, state: PromptState) -> str:
        """What the generation prompt adds behind the header to leave the model in a state."""
        return {"open": self.opened, "closed": self.closed, "silent": ""}[state]


def family(name: str) -> LabFamily:
    """The family of this name. Raises InputError for a name there is none of."""
    known = {each.name: each for each in FAMILIES}
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        listed = ", ".join(known)
        raise InputError(
            f"there is no lab model {name!r}",
            source="--family",
            mend=f"write {near[0]}" if near else f"take one of {listed}",
        )
    return known[name]


def spoken(chain: tuple[str, ...], thinking_tokens: int = THINKING_TOKENS) -> list[str]:
    """The texts of a chain, its thought and its answer filled in.

    Raises:
        InputError: a block of no token, or of more than the vocabulary has numbers for.
    """
    if not 1 <= thinking_tokens <= MOST_TOKENS:
        raise InputError(
            f"a thought of {thinking_tokens} tokens", source="--thinking-tokens", mend=f"give 1 to {MOST_TOKENS}"
        )
    texts: list[str] = []
    for part in chain:
        if part == THINKING:
            texts += [f" {number}" for number in range(1, thinking_tokens + 1)]
        else:
            texts += _ANSWER if part == ANSWER else (part,)
    return texts


_CHATML = ("<|im_start|>ROLE\n", "<|im_end|>\n")

_QWEN3 = LabFamily(
    "qwen3",
    "the prompt opens the block; enable_thinking=false closes it there",
    chains=(
        ("assistant\n", "<think>", THINKING),
        ("\n", THINKING, "</think>", "\n\n", ANSWER),
    ),
    start=("<think>",),
    end=("</think>",),
    eos="<|im_end|>",
    turn=_CHATML,
    header="<|im_start|>assistant\n",
    opened="<think>\n",
    closed="<think>\n\n</think>\n\n",
    said_end="<|im_end|>\n",
    special=("<|im_start|>",),
    tokens=("<tool_call>", "</tool_call>"),
)
_PHRASE = (" Time", " is", " up")

FAMILIES = (
    _QWEN3,
    LabFamily(
        "gemma4",
        "the prompt closes the block; with enable_thinking=true the model opens it itself, with a label",
        chains=(("model\n", "<|channel>", "thought", "\n", THINKING, "<channel|>", ANSWER),),
        start=("<|channel>",),
        end=("<channel|>",),
        eos="<turn|>",
        turn=("<|turn>ROLE\n", "<turn|>\n"),
        header="<|turn>model\n",
        opened="<|channel>thought\n",
        closed="<|channel>thought\n<channel|>",
        said_end="<turn|>\n",
        on="silent",
        thinks_unasked=False,
        bos="<bos>",
        special=("<|turn>", "<|channel>", "<channel|>"),
        tokens=("<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>"),
    ),
    LabFamily(
        "deepseek_r1",
        "the prompt is silent; the model opens its block itself",
        chains=(("<｜Assistant｜>", "<think>", "\n", THINKING, "</think>", "\n\n", ANSWER),),
        start=("<think>",),
        end=("</think>",),
        eos="<｜end▁of▁sentence｜>",
        turn=("<｜ROLE｜>", ""),
        header="<｜Assistant｜>",
        opened="<think>\n",
        closed="<think>\n\n</think>\n\n",
        said_end="<｜end▁of▁sentence｜>",
        on="silent",
        bos="<｜begin▁of▁sentence｜>",
        special=("<｜User｜>", "<｜Assistant｜>"),
    ),
    LabFamily(
        "plamo3",
        "the markers are several tokens each; the prompt opens the block",
        chains=(("assistant\n", "<|plamo:begin_", "think:plamo|>", THINKING, "<|plamo:end_think", ":plamo|>", ANSWER),),
        start=("<|plamo:begin_", "think:plamo|>"),
        end=("<|plamo:end_think", ":plamo|>"),
        eos="<|plamo:tag|>",
        turn=("<|plamo:msg|>ROLE\n", "<|plamo:tag|>\n"),
        header="<|plamo:msg|>assistant\n",
        opened="<|plamo:begin_think:plamo|>",
        closed="<|plamo:begin_think:plamo|><|plamo:end_think:plamo|>",
        said_end="<|plamo:tag|>\n",
        special=("<|plamo:msg|>",),
    ),
    LabFamily(
        "mistral",
        "[THINK] and [/THINK]; the prompt is silent",
        chains=(("[/INST]", "[THINK]", THINKING, "[/THINK]", ANSWER),),
        start=("[THINK]",),
        end=("[/THINK]",),
        eos="</s>",
        turn=("[INST]", "[/INST]"),
        header="",
        opened="[THINK]",
        closed="[THINK][/THINK]",
        said_end="</s>",
        on="silent",
        bos="<s>",
        special=("[INST]", "[/INST]", "[THINK]", "[/THINK]", "[TOOL_CALLS]", "[ARGS]"),
    ),
    LabFamily(
        "glm45",
        "the model calls a tool inside its block and ends there",
        chains=(
            (
                "<|assistant|>",
                "\n",
                "<think>",
                THINKING,
                "<tool_call>",
                "weather",
                "<arg_key>",
                "city",
                "</arg_key>",
                "<arg_value>",
                "Oslo",
                "</arg_value>",
                "</tool_call>",
            ),
            ("</think>", ANSWER),
        ),
        start=("<think>",),
        end=("</think>",),
        eos="<|observation|>",
        turn=("<|ROLE|>\n", ""),
        header="<|assistant|>\n",
        opened="<think>",
        closed="<think></think>",
        said_end="",
        bos="[gMASK]<sop>",
        special=("<|system|>", "<|user|>", "<|assistant|>"),
    ),
    LabFamily(
        "minimax_m2",
        "the model thinks again behind its first words, and ends that block with a tool call",
        chains=(
            (
                "ai\n",
                "<think>",
                " Again",
                ":",
                " what",
                " did",
                " they",
                " ask",
                "<minimax:tool_call>",
                "\n\n",
                '<invoke name="look">',
                "</invoke>",
                "</minimax:tool_call>",
            ),
            ("\n", THINKING, "</think>", ANSWER, "<think>"),
        ),
        start=("<think>",),
        end=("</think>",),
        eos="[e~[",
        turn=("]~b]ROLE\n", "[e~[\n"),
        header="]~b]ai\n",
        opened="<think>\n",
        closed="<think></think>",
        said_end="[e~[\n",
        special=("]~b]",),
    ),
    LabFamily(
        "seed_oss",
        "the model never stops thinking by itself",
        chains=(
            ("assistant\n", "<seed:think>", THINKING, " 1"),
            ("</seed:think>", ANSWER),
        ),
        start=("<seed:think>",),
        end=("</seed:think>",),
        eos="<seed:eos>",
        turn=("<seed:bos>ROLE\n", "<seed:eos>"),
        header="<seed:bos>assistant\n",
        opened="<seed:think>",
        closed="<seed:think></seed:think>",
        said_end="<seed:eos>",
        special=("<seed:bos>",),
        tokens=("<seed:tool_call>", "</seed:tool_call>"),
    ),
    replace(
        _QWEN3,
        name="phrase-before",
        style="as qwen3, and a used-up budget writes a phrase before the end marker",
        parser="qwen3",
        forced=(*_PHRASE, "</think>"),
        tokens=(*_QWEN3.tokens, *_PHRASE),
    ),
    replace(
        _QWEN3,
        name="phrase-after",
        style="as qwen3, and a used-up budget writes the end marker and then a phrase",
        parser="qwen3",
        forced=("</think>", *_PHRASE),
        tokens=(*_QWEN3.tokens, *_PHRASE),
    ),
    replace(
        _QWEN3,
        name="unparsed",
        style="as qwen3, served without a reasoning parser: a budget must be refused",
        parser=None,
    ),
)
