"""The parts of the engine: the lexer, the scanner and the newline repair."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonctl.parsers.differential.vocabulary import Spec, SpecVocabulary
from reasonctl.parsers.models.engine import ENGINE_NAMES, build_engine
from reasonctl.parsers.models.engine_lexer import Lexer, lexicon
from reasonctl.parsers.models.engine_newlines import NewlineRepair, repair
from reasonctl.parsers.models.engine_scanner import DROP, Marker, Scanner, Words

from .scenario import MARKERS

LITERALS = (("<a>", "A"), ("</a>", "B"), ("<call=", "C"), ('<call="', "D"), (">", "E"))


def cut(pieces: Sequence[str]) -> list[tuple[str | None, str]]:
    """The lexemes of a text fed in pieces, neighbouring words as one."""
    lexer, found = Lexer(lexicon(LITERALS)), list[tuple[str | None, str]]()
    for lexeme in [lexeme for piece in pieces for lexeme in lexer.feed(piece)] + lexer.flush():
        if found and found[-1][0] is None and lexeme.terminal is None:
            found[-1] = (None, found[-1][1] + lexeme.text)
        else:
            found.append((lexeme.terminal, lexeme.text))
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x<a>y", [(None, "x"), ("A", "<a>"), (None, "y")]),
        ("<<a>", [(None, "<"), ("A", "<a>")]),
        ("<call=1", [("C", "<call="), (None, "1")]),
        ('<call="1', [("D", '<call="'), (None, "1")]),
        ("<call=", [("C", "<call=")]),
        ("</a", [(None, "</a")]),
        ("<a<a>>", [(None, "<a"), ("A", "<a>"), ("E", ">")]),
        ("", []),
    ],
)
def test_lexer(text: str, expected: list[tuple[str | None, str]]) -> None:
    assert cut([text]) == expected
    assert cut(list(text)) == expected


@given(st.lists(st.text('<a/>cl="x', max_size=8)))
def test_lexer_does_not_depend_on_pieces(pieces: list[str]) -> None:
    assert cut(pieces) == cut(["".join(pieces)])


def test_lexer_holds_a_literal_that_may_grow() -> None:
    lexer = Lexer(lexicon(LITERALS))
    assert lexer.feed("x<call=") == [(None, "x", 0)]
    assert lexer.holds
    assert lexer.feed("1") == [("C", "<call=", 0), (None, "1", 0)]
    assert not lexer.holds


def test_lexer_counts_a_token_where_it_begins() -> None:
    lexer = Lexer(lexicon(LITERALS))
    assert lexer.feed("one<", ["on", "e<"], 2) == [(None, "one", 2)]
    assert lexer.feed("a>two", ["a>", "two"], 2) == [("A", "<a>", 1), (None, "two", 1)]


def test_lexer_counts_unknown_tokens_at_the_front() -> None:
    assert Lexer(lexicon(LITERALS)).feed("x>y", ["?", "y"], 3) == [(None, "x", 2), ("E", ">", 0), (None, "y", 1)]


TEXTS = {token_id: f"t{token_id}" for token_id in range(100)}


def scanner() -> Scanner:
    return Scanner({1: "A", 2: "B"}, TEXTS | {1: "<a>", 2: "</a>"})


def test_scanner_cuts_at_marker_ids() -> None:
    assert scanner().scan("t7<a>t8", [7, 1, 8]) == [
        Words("t7", ("t7",), 1),
        Marker("A", "<a>"),
        Words("t8", ("t8",), 1),
    ]


def test_scanner_leaves_a_marker_spelled_by_others_alone() -> None:
    assert scanner().scan("<a>", [7, 8]) == [Words("<a>", ("t7", "t8"), 2)]


def test_scanner_waits_for_a_marker_whose_text_is_late() -> None:
    scan = scanner()
    assert scan.scan("", [7, 1]) == []
    assert scan.waits
    assert scan.scan("t7<", [8]) == []
    assert scan.scan("a>t8", [9]) == [Words("t7", count=2), Marker("A", "<a>"), Words("t8", ("t9",), 1)]
    assert not scan.waits


def test_scanner_gives_what_waits_at_the_end() -> None:
    scan = scanner()
    scan.scan("", [7, 1, 8])
    scan.scan("t7", [])
    assert scan.flush() == [Words("t7", count=1), Marker("A", "<a>"), Words("", count=1)]
    assert scan.flush() == []


def test_scanner_counts_the_tokens_after_a_late_marker() -> None:
    scan = scanner()
    assert scan.scan("", [1, 7]) == []
    assert scan.scan("<a>t7t8", [8]) == [Marker("A", "<a>"), Words("t7t8", ("t8",), 2)]


def test_scanner_keeps_counting_tokens_while_their_text_waits() -> None:
    scan = scanner()
    scan.scan("", [1])
    scan.scan("t7", [7])
    scan.scan("t8", [8])
    assert scan.scan("<a>", []) == [Words("t7t8", count=2), Marker("A", "<a>")]


def test_scanner_settles_several_late_markers_at_once() -> None:
    scan = scanner()
    scan.scan("", [1, 2])
    assert scan.scan("<", []) == []
    assert scan.scan("a>x</a>y", []) == [Marker("A", "<a>"), Words("x"), Marker("B", "</a>"), Words("y")]


def test_scanner_holds_the_text_in_which_a_marker_should_have_been() -> None:
    scan = scanner()
    assert scan.scan("t7 x", [7, 1]) == []
    assert scan.scan("<a>", []) == [Words("t7 x", count=1), Marker("A", "<a>")]


def test_scanner_holds_no_text_for_a_token_that_vanishes() -> None:
    scan = Scanner({1: DROP}, TEXTS | {1: "<eos>"})
    assert scan.scan("t7 x", [7, 1]) == [Words("t7 x", (), 0)]
    assert scan.flush() == [Marker(DROP, "<eos>")]


def test_scanner_takes_the_text_before_what_the_ids_say_as_held_back() -> None:
    assert scanner().scan("oldt7<a>", [7, 1]) == [Words("old"), Words("t7", ("t7",), 1), Marker("A", "<a>")]


def test_scanner_finds_a_marker_from_the_right_where_tokens_decode_otherwise() -> None:
    found = scanner().scan("x<a>y<a>z", [7, 1, 8])
    assert found == [Words("x<a>y", ("t7",), 1), Marker("A", "<a>"), Words("z", ("t8",), 1)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"a\nb", "a\nb"),
        (r"a\r\nb", "a\nb"),
        (r"a\rb", "a\nb"),
        (r"a\\nb", r"a\\nb"),
        (r"`\n`\n", "`\\n`\n"),
        (r"```\n`\n```\n", "```\\n`\\n```\n"),
        (r"$\nu$\n", "$\\nu$\n"),
        (r"$$\n$\n$$\n", "$$\\n$\\n$$\n"),
        (r"\(\n\)\n", "\\(\\n\\)\n"),
        (r"\[\n\]\n", "\\[\\n\\]\n"),
        (r"\x", r"\x"),
        ("\\", "\\"),
        ("a`", "a`"),
    ],
)
def test_newline_repair(text: str, expected: str) -> None:
    assert repair(text) == expected
    repairer = NewlineRepair()
    assert "".join([*map(repairer.feed, text), repairer.feed("", final=True)]) == expected


@given(st.lists(st.text("\\nr`$()[]x", max_size=6)))
def test_newline_repair_does_not_depend_on_pieces(pieces: list[str]) -> None:
    repairer = NewlineRepair()
    assert "".join([*map(repairer.feed, pieces), repairer.feed("", final=True)]) == repair("".join(pieces))


def test_newline_repair_leaves_none_alone() -> None:
    assert repair(None) is None


VOCABULARY = SpecVocabulary(Spec(("Let me", " see", "\\\\"), tuple((text, "plain") for text in MARKERS)))
STREAMS: dict[str, Callable[[int], list[tuple[str, list[int]]]]] = {
    "words": lambda count: [("Let me", [256])] * count,
    "white space": lambda count: [(" ", [32])] * count,
    "brackets": lambda count: [("<", [60])] * count,
    "backslashes": lambda count: [("\\\\", [258])] * count,
    "a marker that waits for its text": lambda count: [("", [VOCABULARY.markers["</think>"]]), *[("a", [97])] * count],
    "markers that wait for their text": lambda count: [("", [VOCABULARY.markers["</think>"]])] * count,
    "text that waits for its tokens": lambda count: [("a<", [])] * count,
}


def lines_run(run: Callable[[], object]) -> int:
    """How many lines of the models' code a call runs."""
    lines = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        if "engine" not in frame.f_code.co_filename:
            return None
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return lines


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("name", ENGINE_NAMES)
def test_a_token_costs_the_same_late_in_a_stream(name: str, stream: str) -> None:
    deltas = STREAMS[stream](600)
    parser = build_engine(name, VOCABULARY, {})
    parser.begin(VOCABULARY.encode("<|im_start|><think>"), streaming=True)
    costs = [lines_run(lambda delta=delta: parser.feed(*delta)) for delta in deltas]  # type: ignore[misc]
    assert max(costs[300:]) <= max(costs[10:40])


@pytest.mark.parametrize(
    "output", ["Let me see. ", " ", "<", "`", "\\", "</think>", "<think>", "<tool_call>", "naïve 🙂"]
)
@pytest.mark.parametrize("name", ENGINE_NAMES)
def test_a_whole_output_costs_in_proportion(name: str, output: str) -> None:
    def cost(count: int) -> int:
        text = output * count
        parser = build_engine(name, VOCABULARY, {})
        ids = VOCABULARY.encode(text)
        return lines_run(lambda: (parser.split(text, ids), parser.count_reasoning_tokens(ids)))

    cost(1)  # builds what all parsers of a format share
    assert cost(200) - cost(100) <= 1.05 * (cost(100) - cost(0)) + 20
