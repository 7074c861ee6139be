"""The assumed tokenizer: markers are one token each, words the rest, and every text comes back as it was."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonctl.parsers import ROWS, build
from reasonctl.parsers.assumed import AssumedVocabulary, table_markers, why_not
from reasonctl.parsers.columns import Piece
from reasonctl.parsers.differential.vocabulary import Spec, SpecVocabulary
from reasonctl.parsers.models import engine_machine
from reasonctl.traces.tokens import TraceVocabulary

MARKERS = sorted(table_markers())
ANY_TEXT = st.lists(
    st.one_of(st.text(max_size=20), st.sampled_from(MARKERS), st.sampled_from([" ", "\n\n", "<", "th"]))
)


def cut(vocabulary: AssumedVocabulary, text: str) -> list[str]:
    return [vocabulary.token_text(token_id) for token_id in vocabulary.encode(text)]


@given(ANY_TEXT.map("".join))
def test_a_text_comes_back_unchanged(text: str) -> None:
    vocabulary = AssumedVocabulary(words=3)
    ids = vocabulary.encode(text)
    assert vocabulary.decode(ids) == text
    assert vocabulary.decode(ids, skip_special_tokens=True) == text
    assert vocabulary.encode(text) == ids


@given(st.lists(ANY_TEXT.map("".join), max_size=4))
def test_equal_pieces_have_equal_ids_and_others_differ(texts: list[str]) -> None:
    vocabulary = AssumedVocabulary()
    pairs = [(token_id, vocabulary.token_text(token_id)) for text in texts for token_id in vocabulary.encode(text)]
    assert len({token_id for token_id, _ in pairs}) == len({text for _, text in pairs}) == len(set(pairs))


def test_words_take_the_space_before_them() -> None:
    assert cut(AssumedVocabulary(), "I will  look\nit up. Ok?!\n \n") == [
        "I", " will", "  look", "\nit", " up", ".", " Ok", "?", "!", "\n \n",
    ]  # fmt: skip


def test_markers_are_cut_out_before_words() -> None:
    assert cut(AssumedVocabulary(), "a\n</think>\n\n<tool_call>b") == [
        "a",
        "\n",
        "</think>",
        "\n\n",
        "<tool_call>",
        "b",
    ]
    assert cut(AssumedVocabulary(), "x <think>y") == ["x", " ", "<think>", "y"]


@pytest.mark.parametrize("marker", MARKERS)
def test_every_marker_of_the_table_is_one_token(marker: str) -> None:
    vocabulary = AssumedVocabulary()
    assert vocabulary.encode(marker) == [vocabulary.vocab[marker]]


def test_the_longest_marker_wins() -> None:
    assert cut(AssumedVocabulary(("<think>!",)), "<think>!<think>?") == ["<think>!", "<think>", "?"]
    assert cut(AssumedVocabulary(), "</thinking>") == ["</", "think", "ing", ">"]


def test_markers_come_from_every_column_that_names_tokens() -> None:
    found = table_markers()
    assert {"<think>", "</seed:think>", "<minimax:tool_call>", "<|im_start|>", "<function=", "[TOOL_CALLS]"} <= found
    assert set(ROWS["olmo3"].demanded_tokens) <= found
    assert not [marker for marker in found if "\n" in marker]  # hunyuan's phrases would swallow <think>


def test_nothing_is_special() -> None:
    vocabulary = AssumedVocabulary()
    assert (vocabulary.special_ids, vocabulary.special_tokens, vocabulary.init_kwargs, vocabulary.chat_template) == (
        frozenset(), {}, {}, None,
    )  # fmt: skip


@settings(max_examples=20)
@given(st.integers(1, 50))
def test_memory_is_bounded_by_two_generations_and_one_text(words: int) -> None:
    vocabulary = AssumedVocabulary(words=words)
    for number in range(300):
        vocabulary.encode(f"word{number}")
        assert len(vocabulary._texts) + len(vocabulary._old_texts) <= 2 * words + 2
    assert vocabulary.decode(vocabulary.encode("word1 word299")) == "word1 word299"


def test_a_forgotten_id_never_means_another_word() -> None:
    vocabulary = AssumedVocabulary()
    (old,) = vocabulary.encode("once")
    marker = vocabulary.vocab["<think>"]
    vocabulary.forget()
    with pytest.raises(KeyError):
        vocabulary.token_text(old)
    assert vocabulary.encode("once") != [old]
    assert vocabulary.token_text(marker) == "<think>"
    assert vocabulary.decode(vocabulary.encode("once<think>")) == "once<think>"


def test_ids_it_never_gave_out_are_refused() -> None:
    for token_id in (-1, 10**9):
        with pytest.raises(KeyError):
            AssumedVocabulary().token_text(token_id)


@pytest.mark.parametrize(
    ("name", "assumed", "recorded"),
    [("hunyuan_a13b", True, False), ("openai_gptoss", True, False), ("hf", True, True), ("beam", True, True)],
)
def test_parsers_that_need_the_model_say_so(name: str, assumed: bool, recorded: bool) -> None:
    assert ("give --model" in (why_not(name, AssumedVocabulary()) or "")) is assumed
    assert (why_not(name, TraceVocabulary([Piece("a", 5)])) is not None) is recorded
    assert why_not(name, SpecVocabulary(Spec())) is None
    assert why_not("qwen3", AssumedVocabulary()) is None


def test_what_is_derived_from_it_is_kept_until_words_are_forgotten() -> None:
    vocabulary = AssumedVocabulary(words=3)
    vocabulary.kept["grammar"] = 1
    vocabulary.encode("one two")
    assert vocabulary.kept == {"grammar": 1}
    vocabulary.forget()
    assert vocabulary.kept == {}
    vocabulary.kept["grammar"] = 1
    vocabulary.encode("one two three four five")
    vocabulary.encode("six")
    assert vocabulary.kept == {}


def test_a_grammar_is_wired_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    wire = engine_machine._wire
    monkeypatch.setattr(engine_machine, "_wire", lambda *given: (calls.append(given[0]), wire(*given))[1])
    vocabulary = AssumedVocabulary()
    for _ in range(3):
        build("qwen3", vocabulary)
    assert len(calls) == 1
