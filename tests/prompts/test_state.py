"""Prompt states: by example, and against a reader that looks at one character after the other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonctl.parsers.markers import STATE_MARKERS
from reasonctl.prompts.conversations import SENTINEL
from reasonctl.prompts.state import prompt_state, region_start


@pytest.mark.parametrize(
    ("prompt", "state", "marker", "tail"),
    [
        ("<|im_start|>assistant\n", "none", None, "<|im_start|>assistant\n"),
        ("assistant\n<think>\n", "open", "<think>", "<think>\n"),
        ("assistant\n<think>\n\n</think>\n\n", "closed", "</think>", "<think>\n\n</think>\n\n"),
        ("<|Assistant|></think>", "closed-bare", "</think>", "</think>"),
        ("<think></think><think>", "open", "<think>", "<think>"),
        ("</think><think></think>", "closed", "</think>", "<think></think>"),
        ("model\n<|channel>thought\n<channel|>", "closed", "<channel|>", "<|channel>thought\n<channel|>"),
        ("<|channel>analysis", "none", None, "<|channel>analysis"),
        ("<think:opensource>", "open", "<think:opensource>", "<think:opensource>"),
        ("[THINK]", "open", "[THINK]", "[THINK]"),
        ("<|open|>think<|sep|>", "open", "<|open|>think<|sep|>", "<|open|>think<|sep|>"),
        ("<|message|><|end_message|><response>", "none", None, "<|message|><|end_message|><response>"),
    ],
)
def test_states(prompt: str, state: str, marker: str | None, tail: str) -> None:
    read = prompt_state(prompt, 0)
    assert (read.state, read.marker, read.tail) == (state, marker, tail)


def test_markers_before_the_region_do_not_count() -> None:
    prompt = f"<think>{SENTINEL}<|im_end|>"
    assert prompt_state(prompt, region_start(prompt, SENTINEL)).state == "none"
    assert prompt_state(prompt, 0).state == "open"


def test_the_region_is_the_whole_prompt_where_the_template_drops_the_text() -> None:
    assert region_start("nothing of the user's", SENTINEL) == 0


def test_the_region_starts_behind_the_last_copy_of_the_text() -> None:
    assert region_start(f"a{SENTINEL}b{SENTINEL}c", SENTINEL) == 2 + 2 * len(SENTINEL)


def test_a_long_tail_is_cut_at_its_front() -> None:
    assert prompt_state("<think>" + "x" * 500, 0).tail == "x" * 200


PIECES = [text for pair in STATE_MARKERS for text in (pair.start, pair.end)]


@given(
    st.lists(st.one_of(st.sampled_from(PIECES), st.text("<>/|thinka \n", max_size=6)), max_size=12).map("".join),
    st.integers(0, 40),
)
def test_states_equal_those_of_a_naive_reader(prompt: str, start: int) -> None:
    read = prompt_state(prompt, start)
    seen: list[str] = []
    at = start
    while at < len(prompt):
        here = max((text for text in PIECES if prompt.startswith(text, at)), key=len, default="")
        if here:
            seen.append(here)
        at += len(here) or 1
    starts = {pair.start for pair in STATE_MARKERS}
    if not seen:
        expected = "none"
    elif seen[-1] in starts:
        expected = "open"
    else:
        expected = "closed" if any(text in starts for text in seen) else "closed-bare"
    assert read.state == expected
    assert read.marker == (seen[-1] if seen else None)
    assert prompt.endswith(read.tail)
    assert read.marker_end is None or prompt[: read.marker_end].endswith(read.marker or "")
