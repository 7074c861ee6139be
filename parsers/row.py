"""What one registered reasoning parser of vLLM does, as data: the shape of a row of the parser table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from .. import versions

Family = Literal["base-thinking", "delegating", "own", "engine", "harmony", "cohere", "response-template"]
"""Which of vLLM's machineries carries the parser (facts of 0.33.0).

`base-thinking`: reasoning/basic_parsers.py; `delegating`: chooses between deepseek_r1 and no parsing at all;
`own`: a class of its own; `engine`: parser/engine; `harmony`, `cohere`, `response-template`: a stub whose text work is
done by parser/harmony.py, parser/cohere_command.py, parser/response_template.py.
"""

Counting = Literal["generated-block", "engine", "to-end", "header", "none", "template"]
"""How `usage` counts reasoning tokens. `generated-block`: inside a block the output itself opened, so 0 for a block the
prompt opened; `engine`: what the engine filed as reasoning; `to-end`: everything up to the end marker; `header`: bodies
behind a generated thinking header; `none`: always 0; `template`: the tokenizer's response template decides."""


@dataclass(frozen=True, slots=True)
class SwitchKwarg:
    """A chat-template kwarg the parser itself reads, and what it takes when the request has none."""

    name: str
    default: Literal["on", "off"]
    """What its absence means: for a thinking switch, whether thinking is on."""
    meaning: str
    switches_thinking: bool = True
    """False for a kwarg that changes the split without turning thinking on or off."""


@dataclass(frozen=True, slots=True)
class ParserRow:
    """One registered name. Markers are texts as they stand in prompt and output; ids depend on the tokenizer."""

    name: str
    family: Family
    start: tuple[str, ...]
    """Start markers, the usual one first; empty where thinking has none."""
    end: tuple[str, ...]
    truncation: str
    """Where an output without an end marker goes, thinking on and off."""
    prompt_rule: str
    """What `is_reasoning_end` reads of the prompt's ids."""
    gates_grammar: str
    """What that means for structured output: from which token on the grammar binds."""
    sources: tuple[str, ...]
    """vLLM files the row was read from (0.33.0)."""
    kwargs: tuple[SwitchKwarg, ...] = ()
    implicit_ends: tuple[str, ...] = ()
    """Texts that end thinking and stay in the answer (a tool call's opening)."""
    turn_boundaries: tuple[str, ...] = ()
    """Tokens that bound what is read of the prompt; empty: the whole prompt is read."""
    tool_markers: tuple[str, ...] = ()
    """What opens a tool call in this family's own dialect."""
    demanded_tokens: tuple[str, ...] = ()
    """Vocabulary entries without which the constructor raises (once thinking is on, where there is a switch)."""
    skip_special_tokens: bool | None = None
    """What `adjust_request` sets; None leaves the request's value."""
    stripped: tuple[str, ...] = ()
    """Texts besides the markers that the parser may take away."""
    added: tuple[str, ...] = ()
    """Texts the parser adds to the output."""
    reads_text: bool = True
    """False: it goes by token ids alone, and the text beside them may lack its markers."""
    takes_calls: bool = False
    """Tool calls are taken out of the text, though no tool parser stands beside this one."""
    needs_start_in_output: bool = False
    """Without a generated start marker there is no reasoning, whatever the prompt left open."""
    reads_prompt_full: bool = False
    """Non-streaming takes the prompt's ids into account (0.33.0; no parser does in 0.32.0)."""
    reads_prompt_stream: bool = True
    """Streaming takes the prompt's ids into account."""
    counting: Counting = "engine"
    chunk_invariant: bool = True
    """The streamed split does not depend on how many tokens share a delta."""
    architectures: tuple[str, ...] = ()
    """Lower-case model types (`qwen3_moe`) and pieces of model names (`deepseek-r1`) that vLLM's documentation, Rust
    front end or its recipes pair with the name."""
    modelled: bool = False
    """This release has a built-in model of the parser."""
    quirks: tuple[str, ...] = field(default=())

    @property
    def since(self) -> str:
        """The first vLLM release that registers the name, empty for a name that none does."""
        found = versions.rows("reasoning-parser", self.name)
        return versions.shown(found[0].since) if found else ""

    @property
    def keeps_thought(self) -> bool:
        """By design the thought stays in content, behind a start marker that the parser writes itself."""
        return bool(set(self.start) & set(self.added))

    @property
    def default_on(self) -> bool:
        """Thinking is on when the request says nothing."""
        return all(kwarg.default == "on" for kwarg in self.kwargs if kwarg.switches_thinking)
