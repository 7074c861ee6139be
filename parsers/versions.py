"""What changed between vLLM versions in what its reasoning parsers do: the one table of it.

Names a version does not register are told by `ParserRow.since`. Rows with a `Change` are what the models follow; the
others say what a version before `since` did otherwise, for the models are those of the newest one there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType

from .target import Target

Version = tuple[int, int, int]


class Change(Enum):
    """A difference that a model follows."""

    V4_ON = auto()
    CLOSED_PROMPT = auto()
    CALL_REPAIRS = auto()
    CLOSER_REST = auto()
    TEMPLATE_COUNT = auto()


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One difference between versions.

    Attributes:
        since: the first version that does what `now` says; `before` says what those before did,
            empty where that is not known.
        parsers: the registered names it concerns.
        source: the file it was read in (of `since`, and of the version before it), or how else it is known.
        change: what a model asks `applies` for; None where none does.
    """

    since: Version
    parsers: tuple[str, ...]
    now: str
    before: str
    source: str
    change: Change | None = None


_CHATML = ("granite_thinking_parser", "mimo", "nemotron_v3", "qwen3", "step3p5")
_TURNS = (*_CHATML, "glm45", "glm47", "ling3", "seed_oss")
_WHEELS = "the wheels of these versions, side by side"

CHANGES: tuple[ChangeRow, ...] = (
    ChangeRow(
        (0, 33, 0),
        _TURNS,
        "non-streaming begins in the answer where this turn's prompt closed the block",
        "non-streaming read nothing of the prompt",
        "vllm/parser/engine/parser_engine.py (set_prompt_token_ids)",
        Change.CLOSED_PROMPT,
    ),
    ChangeRow(
        (0, 33, 0),
        (*_CHATML, "minicpmv", "seed_oss"),
        "a call that begins inside a broken one is a call",
        "it was part of the broken one's name or arguments",
        "vllm/parser/qwen3.py",
        Change.CALL_REPAIRS,
    ),
    ChangeRow(
        (0, 33, 0),
        ("hf",),
        "an output that stops in a closer which goes on with the next message's start is complete",
        "what there was of that closer stayed in the text",
        "vllm/parser/response_template.py (_closer_rest)",
        Change.CLOSER_REST,
    ),
    ChangeRow(
        (0, 33, 0),
        ("hf",),
        "reasoning tokens are counted by the template",
        "the reasoning parser's own count, which is 0",
        "vllm/parser/response_template.py (count_reasoning_tokens)",
        Change.TEMPLATE_COUNT,
    ),
    ChangeRow((0, 33, 0), ("muse_glimmer",), "a subclass of muse", "a parser of its own", _WHEELS),
    ChangeRow((0, 32, 0), ("mimo",), "an adapter of its own in the engine", "qwen3's", _WHEELS),
    ChangeRow((0, 32, 0), ("step3p5",), "in the engine", "a parser of its own", _WHEELS),
    ChangeRow(
        (0, 28, 0),
        ("deepseek_v4",),
        "thinking is on by default",
        "off by default",
        "vllm/parser/deepseek_v4.py",
        Change.V4_ON,
    ),
    ChangeRow((0, 27, 0), ("mistral",), "in the engine", "a parser of its own", _WHEELS),
    ChangeRow((0, 25, 0), ("deepseek_v4", "kimi_k2", "seed_oss"), "in the engine", "parsers of their own", _WHEELS),
    ChangeRow(
        (0, 24, 0),
        ("gemma4", "glm45", "mimo", "minimax_m2", "nemotron_v3", "qwen3"),
        "in the engine",
        "parsers of their own",
        _WHEELS,
    ),
    ChangeRow((0, 23, 0), ("qwen3",), "a tool call ends the thought", "only the end marker did", _WHEELS),
    ChangeRow(
        (0, 19, 0),
        ("qwen3",),
        "an output cut in its thought is reasoning",
        "up to 0.16 it was content: both markers were needed",
        _WHEELS,
    ),
    ChangeRow((0, 17, 0), ("kimi_k2",), "a parser of its own", "deepseek_v3's with thinking on", _WHEELS),
    ChangeRow((0, 16, 0), ("glm45", "holo2", "kimi_k2"), "deepseek_v3's with thinking on", "", _WHEELS),
)
"""Newest first."""

_SINCE: Mapping[Change, Version] = MappingProxyType({row.change: row.since for row in CHANGES if row.change})


def applies(change: Change, target: Target) -> bool:
    """Whether the server already does what the row says; slimserve is judged as the newest vLLM."""
    return target.product == "slimserve" or target.version >= _SINCE[change]


def history(name: str) -> tuple[str, ...]:
    """What changed about a parser, the newest first, a sentence each."""
    return tuple(
        f"since {row.since[0]}.{row.since[1]}: {row.now}" + (f" (before: {row.before})" if row.before else "")
        for row in CHANGES
        if name in row.parsers
    )
