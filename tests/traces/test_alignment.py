"""Where each character of an output went: splits whose parts are known, and those of the parser models."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonctl.parsers import ROWS
from reasonctl.parsers.assumed import AssumedVocabulary, why_not
from reasonctl.parsers.run import run_parser
from reasonctl.traces.alignment import Span, Wording, align, by_token
from reasonctl.traces.splits import conserved
from reasonctl.traces.strip import wording_of

THINK = Wording(start=("<think>",), end=("</think>",), calls=("<tool_call>",))
WORDS = st.lists(st.sampled_from(["alpha", "be", "gamma ray", "d", "e.", "\n", "  "]), min_size=1, max_size=6)
OUTPUT = ["hello", " world", "\n", "\n\n", " ", "a", "<", "</", "think", ">", "It is 4.", " So"]


def parts(text: str, spans: list[Span]) -> dict[str, str]:
    """The text of each kind."""
    found = {"reasoning": "", "content": "", "marker": "", "lost": ""}
    at = 0
    for kind, length in spans:
        assert length > 0
        found[kind] += text[at : at + length]
        at += length
    assert at == len(text)
    assert all(one.kind != other.kind for one, other in pairwise(spans))
    return found


def solid(text: str | None) -> str:
    return "".join((text or "").split())


@pytest.mark.parametrize(
    ("text", "reasoning", "content", "wording", "expected"),
    [
        ("", None, None, THINK, []),
        ("Hm.</think>\n\n4", "Hm.", "4", THINK, [("reasoning", 3), ("marker", 10), ("content", 1)]),
        ("Hm.</think>\n\n4", "Hm.", "\n\n4", THINK, [("reasoning", 3), ("marker", 8), ("content", 3)]),
        ("Hm.</think>4", None, "Hm.</think>4", THINK, [("content", 12)]),
        ("Hm.</think>4", None, "4", THINK, [("lost", 3), ("marker", 8), ("content", 1)]),
        ("Hm.</think>4", "Hm.</think>4", "", THINK, [("reasoning", 12)]),
        ("x</think>x", "x", "x", THINK, [("reasoning", 1), ("marker", 8), ("content", 1)]),
        ("x<think>x", "x", "x", THINK, [("content", 1), ("marker", 7), ("reasoning", 1)]),
        (
            "Hm<tool_call>{}</tool_call>",
            "Hm",
            "<tool_call>{}</tool_call>",
            THINK,
            [("reasoning", 2), ("content", 25)],
        ),
        ("4", None, "<think>4", Wording(added=("<think>",)), [("content", 1)]),
        (
            "ok<tool_call>{}",
            None,
            "ok",
            Wording(calls=("<tool_call>",), takes_calls=True),
            [("content", 2), ("marker", 13)],
        ),
        ("thought\nHm", "Hm", None, Wording(removed=("thought\n",)), [("marker", 8), ("reasoning", 2)]),
        ("abc", "x", None, THINK, [("lost", 3)]),
        ("one more three", "one three", None, THINK, [("reasoning", 4), ("lost", 5), ("reasoning", 5)]),
    ],
)
def test_what_happened_to_each_character(
    text: str, reasoning: str | None, content: str | None, wording: Wording, expected: list[tuple[str, int]]
) -> None:
    assert align(text, reasoning, content, wording) == expected


def test_a_field_may_change_where_a_token_shows_nothing() -> None:
    assert align("aaaa", "aa", "aa", Wording(), [2]) == [("reasoning", 2), ("content", 2)]


@given(st.lists(st.tuples(st.sampled_from(["reasoning", "content", "lost", "start", "end"]), WORDS), max_size=8))
def test_every_character_has_one_place_and_both_fields_are_found_again(made: list[tuple[str, list[str]]]) -> None:
    markers = {"start": "<think>", "end": "</think>"}
    runs = [(kind, markers.get(kind) or "".join(words)) for kind, words in made]
    text = "".join(run for _, run in runs)
    fields = {name: "".join(run for kind, run in runs if kind == name) for name in ("reasoning", "content", "lost")}
    breaks = accumulate(len(run) for _, run in runs)
    found = parts(text, align(text, fields["reasoning"], fields["content"], THINK, breaks))
    assert solid(found["reasoning"]) == solid(fields["reasoning"])
    assert solid(found["content"]) == solid(fields["content"])
    assert len(solid(found["lost"])) <= len(solid(fields["lost"]))


REPEAT = ("kimi_k3", "muse", "muse_glimmer", "musespark1x")
"""Parsers that write parts of a mangled output twice or in another order: no place in the output is theirs alone."""
MODELS = sorted(
    name
    for name in ROWS
    if why_not(name, AssumedVocabulary()) is None and not ROWS[name].takes_calls and name not in REPEAT
)


@pytest.mark.parametrize("name", MODELS)
@settings(derandomize=True)
@given(data=st.data())
def test_what_a_parser_returns_is_found_in_what_it_was_fed(name: str, data: st.DataObject) -> None:
    row = ROWS[name]
    pieces = st.sampled_from([*OUTPUT, *row.start, *row.end, *row.stripped, *row.tool_markers])
    text = "".join(data.draw(st.lists(pieces, max_size=20)))
    kwargs: dict[str, Any] = {"enable_thinking": True, "thinking": True}
    run = run_parser(name, AssumedVocabulary(), kwargs, text=text, chunkings=("token",))
    for mode in (run.full, *run.stream):
        if mode.error is not None:
            continue
        spans = align(run.text, mode.reasoning, mode.content, wording_of(row))
        found = parts(run.text, spans)
        if row.added or not conserved(mode, run.text, row):
            continue
        assert not solid(found["lost"])
        assert (solid(found["reasoning"]), solid(found["content"])) == (solid(mode.reasoning), solid(mode.content))


def test_hostile_outputs_take_no_search_without_end() -> None:
    text = "x <tool_call>y</tool_call> <think>" * 500
    spans = align(text, "x " * 250, "<tool_call>y</tool_call>" * 500, THINK)
    assert sum(span.length for span in spans) == len(text)
    assert align("</think>" * 1000, None, "</think>" * 999, THINK) == [("content", 8 * 999), ("marker", 8)]


@given(
    st.lists(st.tuples(st.sampled_from(["reasoning", "content", "marker", "lost"]), st.integers(1, 9)), max_size=6),
    st.lists(st.integers(0, 4), max_size=12),
    st.sets(st.integers(0, 20)),
)
def test_every_token_is_counted_once(made: list[tuple[Any, int]], sizes: list[int], silent: set[int]) -> None:
    spans = [Span(kind, length) for kind, length in made]
    rest = sum(length for _, length in made)
    texts: list[str] = []
    for size in [*sizes, rest]:
        texts.append("x" * min(size, rest))
        rest -= len(texts[-1])
    if rest:
        texts.append("x" * rest)
    tokens, mixed = by_token(spans, texts, frozenset(silent))
    assert sum(length for _, length in tokens) == len(texts)
    for place, run in mixed.items():
        assert sum(length for _, length in run) == len(texts[place])
        assert len(run) > 1


def test_tokens_without_text_go_with_the_next_one_or_are_markers_or_are_lost() -> None:
    spans = [Span("reasoning", 2), Span("content", 1)]
    tokens, mixed = by_token(spans, ["ab", "", "c", "", ""], frozenset({3}))
    assert tokens == [("reasoning", 1), ("content", 2), ("marker", 1), ("lost", 1)]
    assert mixed == {}
    tokens, mixed = by_token(spans, ["abc"])
    assert tokens == [("reasoning", 1)]
    assert mixed == {0: [("reasoning", 2), ("content", 1)]}
