"""The pieces the text parsers are made of, and what they cost: nothing is looked at twice, little is kept."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonctl.parsers.differential.vocabulary import SpecVocabulary
from reasonctl.parsers.models.id_text import IdText
from reasonctl.parsers.models.muse_fields import Field
from reasonctl.parsers.models.muse_spans import GlimmerTools
from reasonctl.parsers.models.muse_text import Tail, Word
from reasonctl.parsers.models.partial import partial_suffix
from reasonctl.parsers.models.spaced import MarkerWatch, SpacedMarker

from .test_text_models import ATEM, CALL, HUNYUAN, IFM, KIMI, MM, OLMO, model, words


@given(
    st.lists(
        st.sampled_from(["<|close|>", " ", "\n", "response", "<|sep|>", "<", "<|", "x", "<|close|> respo"]), max_size=12
    )
)
def test_a_watched_marker_is_found_however_it_is_cut(parts: list[str]) -> None:
    """The sure text and what waits are the text without the markers, as the pattern finds them in the whole."""
    marker = SpacedMarker("<|close|>", "response")
    watch = MarkerWatch(marker)
    fed = [watch.feed(part) for part in parts]
    text = "".join(parts)
    assert "".join(sure for sure, _ in fed) + watch.waiting == marker.pattern.sub("", text)
    assert sum(len(ends) for _, ends in fed) == len(marker.pattern.findall(text))


@given(st.lists(st.sampled_from(["<", "<|", "eo", "m|>", "|", "x", "<|eom|"]), max_size=5).map("".join))
def test_a_partial_suffix_is_the_longest(text: str) -> None:
    markers = ("<|eom|>", "<|eot|>")
    expected = max(
        (n for marker in markers for n in range(1, len(marker)) if text.endswith(marker[:n])),
        default=0,
    )
    assert partial_suffix(text, *markers) == expected


def trimmed(body: str) -> int:
    """How much of a body is held back, by trying again until nothing changes."""
    kept = body
    while True:
        shorter = kept[: len(kept) - partial_suffix(kept, "<|eom|>", "<|eot|>", "<|start|>", "<|message|>")]
        match = re.search(r"\s(?:t|to|to=[^\s<]*)$", shorter)
        shorter = shorter[: match.start()] if match else shorter
        if shorter == kept:
            return len(body) - len(kept)
        kept = shorter


@given(
    st.lists(
        st.sampled_from([" ", "\n", "t", "o", "to", " to=", "x", "<", "<|", "s", "start", " to=x", "a"]), max_size=10
    )
)
def test_the_tail_of_an_open_body_is_held_as_trying_again_would(parts: list[str]) -> None:
    tail, word, body = Tail(), Word(), ""
    for part in parts:
        body += part
        tail.feed(word.feed(part))
        assert tail.held_with(word) == trimmed(body), body


def test_a_field_sends_what_it_has_beyond_what_was_sent() -> None:
    field = Field()
    field.add("one two")
    assert (field.take(4), field.take(0)) == ("one", " two")
    field.cut("two")
    assert (field.take(0), field.length) == ("", 4)
    field.add("t")
    assert field.take(0) == ""
    field.add("wo!")
    assert field.take(0) == "!"
    field.cut("two!")
    field.add("ten and more")
    assert (field.take(0), field.unsent(field.length)) == ("", "and more")


def test_text_of_ids_comes_when_its_characters_are_whole() -> None:
    text = IdText(words())
    assert [text.feed([byte]) for byte in "é<".encode()] == ["", "é", "<"]
    assert text.feed([*"a🙂".encode()[:3]]) == "a"
    assert text.feed([*"🙂b".encode()[2:]]) == "🙂b"
    assert text.feed([]) == ""


def test_a_call_that_a_thoughts_end_takes_back_is_found_no_more() -> None:
    calls = GlimmerTools()
    calls.feed(f" to=self<|message|>a {CALL}")
    assert (calls.found, calls.text) == (True, CALL)
    calls.feed("<|eom|>")
    assert calls.found is False


LONG = {
    "granite": (OLMO, "Here is my thought process: Hm"), "olmo3": (OLMO, "<think>Hm"),
    "k2_horizon": (IFM, "<ifm|think>Hm"), "hunyuan_a13b": (words(fixed=HUNYUAN), "Hm"),
}  # fmt: skip


@pytest.mark.parametrize("name", LONG)
def test_a_model_keeps_nothing_of_what_it_has_read(name: str) -> None:
    """Constant memory; kimi_k3, minimax_m3 and muse may have to send everything again, so they keep the text."""
    vocabulary, opening = LONG[name]
    parser = model(name, vocabulary)
    parser.begin([], streaming=True)
    sizes = []
    for token in (opening, *[" word <"] * 2000):
        parser.feed(token, [5])
        sizes.append(len(repr(vars(parser))))
    assert max(sizes[-100:]) <= max(sizes[100:200]) + 16  # the lengths they keep get a digit longer


def lines_run(work: Callable[[], None]) -> int:
    """How many lines of Python run: a measure of cost that no other program disturbs."""
    count = 0

    def trace(frame: object, event: str, argument: object) -> object:
        nonlocal count
        count += event == "line"
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        work()
    finally:
        sys.settrace(previous)
    return count


WORDS_OF_A_THOUGHT = (" the", " to", " thing", ".", "\n", " x <", "hi", " t")
GROWING: dict[str, tuple[SpecVocabulary, str, tuple[str, ...]]] = {
    "granite": (OLMO, "Here is my thought process:", (*WORDS_OF_A_THOUGHT, " Here is my", ":")),
    "olmo3": (OLMO, "<think>", (*WORDS_OF_A_THOUGHT, "<th", "a<think>b")),
    "k2_horizon": (IFM, "<ifm|think>", (*WORDS_OF_A_THOUGHT, "</ifm")),
    "minimax_m3": (MM, "<mm:think>", (*WORDS_OF_A_THOUGHT, "</mm:")),
    "kimi_k3": (KIMI, "<|close|>think<|sep|>", (*WORDS_OF_A_THOUGHT, "<|close|>", " ", "response", "<|open|>")),
    "muse": (ATEM, " to=self<|message|>", (*WORDS_OF_A_THOUGHT, " to=x", "<|message|>", "<|eom|>", " to=self")),
    "muse_glimmer": (ATEM, " to=self<|message|>", (*WORDS_OF_A_THOUGHT, " to=x", "<|message|>", "<|eom|>", " to=self")),
}


@pytest.mark.parametrize("name", GROWING)
def test_eight_times_the_tokens_take_eight_times_the_work(name: str) -> None:
    vocabulary, opening, parts = GROWING[name]

    def stream(rounds: int) -> Callable[[], None]:
        deltas = [(part, vocabulary.encode(part)) for part in (opening, *parts * rounds)]
        parser = model(name, vocabulary)
        parser.begin([], streaming=True)
        return lambda: [parser.feed(text, ids) for text, ids in deltas] and None

    few, many = (lines_run(stream(rounds)) for rounds in (12, 96))
    assert many < 8.5 * few


@pytest.mark.parametrize(
    ("name", "opening", "part"),
    [
        ("muse", " to=self<|message|> to=", "x"),
        ("muse", " to=self<|message|>to=", "x"),
        ("muse_glimmer", "to=", "x"),
        ("muse", "<|start|>assistant", " "),
        ("kimi_k3", "<|close|>think<|sep|><|close|>", " "),
        ("kimi_k3", "<|open|>", " "),
    ],
)
def test_so_does_a_beginning_that_never_ends(name: str, opening: str, part: str) -> None:
    vocabulary = KIMI if name == "kimi_k3" else ATEM

    def stream(tokens: int) -> Callable[[], None]:
        parser = model(name, vocabulary)
        parser.begin([], streaming=True)
        parser.feed(opening, vocabulary.encode(opening))
        return lambda: [parser.feed(part, [ord(part)]) for _ in range(tokens)] and None

    few, many = (lines_run(stream(tokens)) for tokens in (60, 480))
    assert many < 8.5 * few
