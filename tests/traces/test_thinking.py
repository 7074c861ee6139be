"""Thinking, counted block by block in tokens."""

from __future__ import annotations

import pytest

from reasonctl.traces.context import Context, Prepared, Setting
from reasonctl.traces.native import trace_of
from reasonctl.traces.thinking import Thought, read_thought, thinks_again

HEAD = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"


def prepared(text: str, prompt: str | None) -> Prepared:
    value = {"id": "t", "output": {"text": text}} | ({"prompt": {"text": prompt}} if prompt is not None else {})
    with Context(Setting()) as context:
        return context.prepare(trace_of(value, path="f", line=1))


def thought(
    text: str, prompt: str | None = None, *parsers: str, strings: tuple[str | None, str | None] = (None, None)
) -> Thought | None:
    return read_thought(prepared(text, prompt), parsers or ("qwen3",), "hi", strings)


def blocks(text: str, prompt: str | None = None, *parsers: str) -> list[tuple[int, str, bool]]:
    found = thought(text, prompt, *parsers)
    return [] if found is None else [(block.tokens, block.opened, block.ended) for block in found.blocks]


@pytest.mark.parametrize(
    ("text", "prompt", "expected"),
    [
        ("a b</think>4", HEAD + "<think>\n", [(2, "prompt", True)]),
        ("<think>a b</think>4", HEAD, [(2, "output", True)]),
        ("a b</think>4", None, [(2, "unseen", True)]),
        ("a b</think>4", HEAD, [(2, "unseen", True)]),
        ("<think>a b", HEAD, [(2, "output", False)]),
        ("a b c", HEAD + "<think>", [(3, "prompt", False)]),
        ("<think>a b</think>4", HEAD + "<think>", [(2, "prompt", True)]),
        ("a</think>4 <think>b c d</think>5", HEAD + "<think>", [(1, "prompt", True), (3, "output", True)]),
        ("</think>4", HEAD + "<think>", [(0, "prompt", True)]),
        ("It is 4.", HEAD + "<think>\n\n</think>\n\n", []),
        ("a b<tool_call>c", HEAD + "<think>", [(2, "prompt", True)]),
        ("It is 4.", HEAD, []),
    ],
)
def test_blocks(text: str, prompt: str | None, expected: list[tuple[int, str, bool]]) -> None:
    assert blocks(text, prompt) == expected


def test_markers_are_the_parsers_else_those_that_are_there() -> None:
    assert blocks("[THINK]a b[/THINK]4", HEAD, "mistral") == [(2, "output", True)]
    assert blocks("[THINK]a b[/THINK]4", HEAD, "qwen3") == [(2, "output", True)]
    found = thought("<seed:think>a</seed:think>4", HEAD, "seed_oss")
    assert found is not None
    assert (found.start, found.end) == ("<seed:think>", "</seed:think>")


@pytest.mark.parametrize(
    ("prompt", "charged", "armed"),
    [
        (HEAD + "<think>\n", 1, True),
        (HEAD + "<think>", 0, True),
        (HEAD, None, False),
        (HEAD + "<think></think>", None, False),
        ("<|im_start|>user\n<think> hi<|im_end|>\n", 3, True),
    ],
)
def test_what_the_prompt_has_spent(prompt: str, charged: int | None, armed: bool) -> None:
    found = thought("a b</think>4", prompt)
    assert found is not None
    assert (found.charged, found.armed) == (charged, armed)


def test_a_configured_phrase_is_no_thinking() -> None:
    found = thought("a b Enough now.</think>4", HEAD + "<think>", strings=("<think>", " Enough now.</think>"))
    assert found is not None
    assert (found.closing, found.end) == (3, "</think>")
    other = thought("a b</think>4", HEAD + "<think>", strings=("<think>", " Enough now.</think>"))
    assert other is not None
    assert other.closing == 0


def test_whether_a_block_may_reopen() -> None:
    assert thinks_again("a</think>4<think>b", ("qwen3",))
    assert not thinks_again("<think>a</think>4", ("qwen3",))
    assert not thinks_again("a</think>4</think>", ("qwen3",))
    assert not thinks_again("It is 4.", ("qwen3",))
