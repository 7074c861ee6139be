"""The code that `new-parser` writes, over stand-ins for vLLM's classes: any text, cut anywhere, gives one split."""

from __future__ import annotations

import itertools
import sys
import types
from dataclasses import dataclass
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonctl.kit.plugin_text import plugin_text
from reasonctl.kit.traits import Traits

PARTS = ("<think>", "</think>", "<tool>", "<", "<th", "</", "/th", ">", "nk>", "a", " b", "\n", "é")
KINDS = {
    "single": Traits("<think>", "</think>", True),
    "single-call": Traits("<think>", "</think>", True, call="<tool>"),
    "several": Traits("<think>", "</think>", False, opened=False, turns=("<turn>",)),
    "several-call": Traits("<think>", "</think>", False, call="<tool>"),
}


@dataclass
class Delta:
    reasoning: str | None = None
    content: str | None = None


class Root:
    """As much of vLLM's ReasoningParser as a parser needs that is never asked for ids."""

    vocab: dict[str, int]

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        self.vocab = {}


def parser_of(traits: Traits) -> Any:
    registered: dict[str, type] = {}

    def register(name: str) -> Any:
        return lambda cls: registered.setdefault(name, cls)

    modules = {
        "vllm.entrypoints.generate.base.protocol": {"DeltaMessage": Delta},
        "vllm.reasoning": {
            "ReasoningParser": Root,
            "ReasoningParserManager": types.SimpleNamespace(register_module=register),
        },
        "vllm.reasoning.basic_parsers": {"BaseThinkingReasoningParser": Root},
    }
    stubs = {}
    for name, held in modules.items():
        stubs[name] = types.ModuleType(name)
        vars(stubs[name]).update(held)
    with mock.patch.dict(sys.modules, stubs):
        exec(compile(plugin_text("x", traits), "x.py", "exec"), {"__name__": "x"})
    return registered["x"]


PARSERS = {name: parser_of(traits) for name, traits in KINDS.items()}


def streamed(parser: Any, pieces: list[str]) -> tuple[str, str]:
    """As vLLM drives it: what follows the end goes to the client as it is, and at the end the parser is flushed."""
    reasoning, content = "", ""
    for piece in pieces:
        if parser.has_engine_confirmed_reasoning_end():
            content += piece
            continue
        delta = parser.extract_reasoning_streaming("", piece, piece, [], [], [])
        if delta is not None:
            assert delta.reasoning or delta.content
            reasoning += delta.reasoning or ""
            content += delta.content or ""
    flushed = parser.finish_streaming()
    if flushed is not None and not parser.has_engine_confirmed_reasoning_end():
        reasoning += flushed.reasoning
    return reasoning, content


@pytest.mark.parametrize("kind", KINDS)
@given(text=st.lists(st.sampled_from(PARTS), max_size=12).map("".join), cuts=st.sets(st.integers(0, 60)))
def test_any_cut_gives_the_full_split(kind: str, text: str, cuts: set[int]) -> None:
    places = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    pieces = [text[a:b] for a, b in itertools.pairwise(places)]
    reasoning, content = PARSERS[kind](None).extract_reasoning(text, None)
    assert streamed(PARSERS[kind](None), pieces) == (reasoning or "", content or "")
    traits = KINDS[kind]
    ends = [at for marker in (traits.end, traits.call) if marker and (at := text.find(marker)) >= 0]
    thought = text[: min(ends, default=len(text))]
    assert (reasoning or "") == thought.replace(traits.start, "")
    assert (content or "") == text[len(thought) :].removeprefix(traits.end)


@pytest.mark.parametrize("kind", KINDS)
def test_a_prompt_that_has_ended_its_thought_leaves_the_answer_alone(kind: str) -> None:
    parser = PARSERS[kind](None)
    with mock.patch.object(PARSERS[kind], "is_reasoning_end", return_value=True, create=True):
        parser.set_prompt_token_ids([1, 2])
    assert parser.extract_reasoning("a</think>b", None) == (None, "a</think>b")
    assert parser.count_reasoning_tokens([1, 2]) == 0
