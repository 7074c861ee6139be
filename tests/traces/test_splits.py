"""The label-free checks, one by one."""

from __future__ import annotations

import pytest

from reasonctl.parsers import ROWS
from reasonctl.parsers.run import ModeResult, ParserRun
from reasonctl.traces.splits import (
    CALLS,
    Checks,
    check,
    conserved,
    has_tool_call,
    leaked,
    matches,
    mode_json,
    without_parser,
)
from reasonctl.traces.trace import Recorded


def mode(
    reasoning: str | None, content: str | None, chunking: str | None = None, error: str | None = None
) -> ModeResult:
    return ModeResult(chunking, reasoning, content, 0 if chunking is None else 3, error)


def run(full: ModeResult, *stream: ModeResult, parser: str = "qwen3") -> ParserRun:
    return ParserRun(parser, full, stream, 0)


def checks(made: ParserRun, raw: str = "a</think>b", finish: str | None = "stop", *, called: bool = False) -> Checks:
    return check(made, primary="token", raw=raw, finish_reason=finish, tool_called=called)


GOOD = run(mode("a", "b"), mode("a", "b", "token"), mode("a", "b", "3"))


def test_all_well() -> None:
    assert checks(GOOD).as_json() == dict.fromkeys(Checks.__dataclass_fields__, True)
    assert checks(GOOD).failed == ()


def test_empty_and_null_are_one_anything_else_is_exact() -> None:
    assert checks(run(mode(None, "b"), mode("", "b", "token"))).stream_equals_full is True
    assert checks(run(mode("a", "b"), mode("a ", "b", "token"))).stream_equals_full is False


def test_stream_equals_full_looks_at_the_primary_chunking() -> None:
    made = run(mode("a", "b"), mode("a", "b", "token"), mode(None, "x", "3"))
    assert (checks(made).stream_equals_full, checks(made).chunk_invariant) == (True, False)


def test_a_check_that_cannot_be_made_is_null() -> None:
    made = run(mode("a", "b"), mode(None, None, "token", error="AssertionError"))
    assert (checks(made).stream_equals_full, checks(made).chunk_invariant) == (None, None)
    assert checks(made).no_marker_leak is True
    nothing = run(mode(None, None, error="RuntimeError"))
    assert checks(nothing).as_json() == dict.fromkeys(Checks.__dataclass_fields__)


def test_leaks_are_of_the_parsers_own_markers() -> None:
    assert leaked(mode("a</think>", None), ROWS["qwen3"]) == ("</think>",)
    assert leaked(mode("a[/THINK]", None), ROWS["qwen3"]) == ()
    assert leaked(mode("a[/THINK]", None), None) == ("[/THINK]",)
    assert leaked(mode(None, "<think>a</think>b"), ROWS["minimax_m2_append_think"]) == ()


def test_a_parser_that_goes_by_ids_is_not_held_to_the_text() -> None:
    made = run(mode("a", "b"), mode("a", "b", "token"), parser="openai_gptoss")
    assert checks(made, "analysisaassistantfinalb").text_conserved is None
    assert conserved(mode("a", "b"), "analysisaassistantfinalb", ROWS["openai_gptoss"])


@pytest.mark.parametrize(
    ("parser", "raw", "reasoning", "content", "kept"),
    [
        ("qwen3", "<think>\na\n</think>\n\nb", "a", "b", True),
        ("qwen3", "<think>\na b\n</think>\n\nb", "a", "b", False),
        ("ernie45", "<think>a</think>\n<response>\nb\n</response>\n", "a", "b", True),
        ("qwen3", "a</think><response>b</response>", "a", "b", False),
        ("minimax_m2_append_think", "a</think>b", None, "<think>a</think>b", True),
        ("qwen3", "ab", "a", "</think>b", True),
        ("cohere_command3", "<|START_THINKING|>a<|END_THINKING|>b<|START_ACTION|>[]<|END_ACTION|>", "a", "b", True),
        ("cohere_command3", "<|START_THINKING|>a<|END_THINKING|>bc", "a", "b", False),
    ],
)
def test_conservation(parser: str, raw: str, reasoning: str | None, content: str, kept: bool) -> None:
    assert conserved(mode(reasoning, content), raw, ROWS[parser]) is kept


@pytest.mark.parametrize(
    ("content", "raw", "finish", "called", "answered"),
    [
        ("b", "a</think>b", "stop", False, True),
        (None, "a", "stop", False, False),
        (" \n", "a", "stop", False, False),
        (None, "a", "length", False, True),
        (None, "a", None, False, None),
        (None, "a<tool_call>{}</tool_call>", "stop", False, True),
        (None, "a", "stop", True, True),
    ],
)
def test_answered(content: str | None, raw: str, finish: str | None, called: bool, answered: bool | None) -> None:
    made = run(mode("a", content), mode("a", content, "token"))
    assert checks(made, raw, finish, called=called).answered is answered


def test_one_mode_without_an_answer_is_enough() -> None:
    assert checks(run(mode("a", None), mode(None, "a", "token"))).answered is False


def test_matching_what_was_recorded() -> None:
    recorded = Recorded(reasoning="a\n", content=None)
    row = ROWS["qwen3"]
    assert matches(recorded, mode("a\n", ""), row, stripped=False) is True
    assert matches(recorded, mode("a", ""), row, stripped=False) is False
    assert matches(recorded, mode("a", ""), row, stripped=True) is True
    assert matches(None, mode("a", ""), row, stripped=True) is None
    assert matches(Recorded(finish_reason="stop"), mode("a", ""), row, stripped=False) is None
    assert matches(recorded, mode(None, None, error="ValueError"), row, stripped=False) is None


def test_parsed_tool_calls_are_compared_up_to_the_raw_call() -> None:
    recorded = Recorded(reasoning="a", content="I look.", tool_calls=({"id": 1},))
    raw_call = mode("a", "I look.\n<tool_call>{}</tool_call>")
    assert matches(recorded, raw_call, ROWS["qwen3"], stripped=False) is True
    assert matches(recorded, mode("a", "Else.<tool_call>{}"), ROWS["qwen3"], stripped=False) is False


def test_without_a_parser_all_is_content() -> None:
    made = without_parser("<think>a</think>b", ["token"])
    assert (made.full.reasoning, made.full.content) == (None, "<think>a</think>b")
    assert checks(made, "<think>a</think>b").failed == ("no_marker_leak",)


def test_json_of_a_mode() -> None:
    assert mode_json(mode("a", None)) == {"reasoning": "a", "content": None}
    assert mode_json(mode("a", "b", "token")) == {"chunking": "token", "reasoning": "a", "content": "b", "deltas": 3}
    assert mode_json(mode(None, None, "3", "AssertionError")) == {
        "chunking": "3",
        "error": "AssertionError",
        "deltas": 3,
    }


def test_calls_are_known_by_what_parsers_of_the_table_look_for() -> None:
    """Each text is some family's own: one misspelt would find no call at all."""
    known = {text for row in ROWS.values() for text in (*row.tool_markers, *row.implicit_ends)}
    assert set(CALLS) <= known
    assert all(has_tool_call(f"look. {text}", None) for text in CALLS)
