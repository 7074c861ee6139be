"""What a parser looks for: the markers, calls and switches that its cases are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

CHATML = ("<|im_start|>", "<|im_end|>")
QWEN_TOOLS = ("<tool_call>", "</tool_call>", "<function=", "</function>", "<parameter=", "</parameter>")


@dataclass(frozen=True)
class Family:
    """What one parser looks for.

    Attributes:
        start, end: its reasoning markers, as text.
        think_tokens: the added tokens those are made of; None: each marker is one token. Empty: plain text.
        turns: tokens that begin or end a turn in the prompt.
        tools: markers of its tool calls; those in `tool_tokens` are added tokens, the others plain text.
        calls: whole and broken tool calls.
        switches: chat-template kwargs that move it, beside those tried with every parser.
        pieces: ordinary tokens that its vocabulary needs beside those of every case.
        outputs: whole outputs, which are also cut short and mixed.
        shards: pieces of its markers, and what looks like them, to be thrown into outputs.
        fixed: ids that the parser knows by heart, in a vocabulary of their own, and their texts.
        placed, printable_first: of the vocabulary, as in `Spec`.
        init_kwargs: of the tokenizer.
        templates: chat templates it looks at.
    """

    start: str = "<think>"
    end: str = "</think>"
    think_tokens: tuple[str, ...] | None = None
    turns: tuple[str, ...] = CHATML
    tools: tuple[str, ...] = QWEN_TOOLS
    tool_tokens: tuple[str, ...] = ("<tool_call>", "</tool_call>")
    calls: tuple[str, ...] = (
        "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>",
        "<tool_call><function=f><parameter=a>1</tool_call>",
        "<function=f></function>",
        "<tool_call></tool_call>",
        '<tool_call><function=>{"a": 1}</function></tool_call>',
        '<tool_call><function=>{"name": 5}</function></tool_call>',
        '<tool_call><function= >{"name": {"name": " "}}',
        "<tool_call><function=g<tool_call><function=h></function></tool_call>",
    )
    switches: tuple[dict[str, Any], ...] = ()
    pieces: tuple[str | bytes, ...] = ()
    outputs: tuple[str, ...] = ()
    shards: tuple[str, ...] = ()
    fixed: tuple[tuple[int, str], ...] = ()
    placed: tuple[tuple[int, str], ...] = ()
    printable_first: bool = False
    init_kwargs: tuple[dict[str, Any], ...] = ({},)
    templates: tuple[str | None, ...] = (None,)
