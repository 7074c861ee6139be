"""How ids become text and text becomes deltas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from reasonctl.errors import InputError
from reasonctl.parsers.assumed import AssumedVocabulary
from reasonctl.parsers.feed import (
    Chunking,
    Piece,
    RawDelta,
    chunk,
    parse_chunking,
    parse_chunkings,
    pieces,
    recut,
    text_deltas,
    text_pieces,
)


class Bytes:
    """A byte-level tokenizer: id n is byte n, then <think> (plain), <eos> (special)."""

    THINK, EOS = 256, 257

    def __init__(self) -> None:
        vocab = {spelled: number for number, spelled in enumerate(_spellings())}
        backend = Tokenizer(models.BPE(vocab=vocab, merges=[]))
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        backend.decoder = decoders.ByteLevel()
        backend.add_tokens([AddedToken("<think>", special=False, normalized=False)])
        backend.add_special_tokens([AddedToken("<eos>", special=True, normalized=False)])
        self.backend: Tokenizer = backend

    vocab: Mapping[str, int] = {"<think>": THINK, "<eos>": EOS}
    special_ids = frozenset({EOS})
    special_tokens: Mapping[str, int] = {"<eos>": EOS}
    chat_template = None
    init_kwargs: Mapping[str, Any] = {}

    def encode(self, text: str) -> list[int]:
        return list(self.backend.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        return str(self.backend.decode(list(ids), skip_special_tokens=skip_special_tokens))


class SlowBytes(Bytes):
    """The same without the fast backend in sight."""

    def __init__(self) -> None:
        super().__init__()
        self._hidden = self.backend
        del self.backend

    def encode(self, text: str) -> list[int]:
        return list(self._hidden.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        return str(self._hidden.decode(list(ids), skip_special_tokens=skip_special_tokens))


def _spellings() -> list[str]:
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    rest = iter(range(0x100, 0x200))
    return [chr(byte) if byte in printable else chr(next(rest)) for byte in range(256)]


FAST, SLOW, WORDS = Bytes(), SlowBytes(), AssumedVocabulary()
BOTH = pytest.mark.parametrize("tokenizer", [FAST, SLOW], ids=["fast", "slow"])


def texts(found: Sequence[Piece]) -> list[str]:
    return [piece.text for piece in found]


@BOTH
def test_bytes_of_an_unfinished_character_wait_for_its_last(tokenizer: Bytes) -> None:
    assert texts(pieces(tokenizer, list("é你!".encode()))) == ["", "é", "", "", "你", "!"]


@BOTH
def test_a_character_that_never_finishes_is_not_shown(tokenizer: Bytes) -> None:
    found = pieces(tokenizer, list(b"a\xe4\xbd"))
    assert found == [Piece("a", 97), Piece("", 0xE4), Piece("", 0xBD)]


@BOTH
def test_special_tokens_are_shown_or_not_as_asked(tokenizer: Bytes) -> None:
    ids = [97, Bytes.THINK, Bytes.EOS, 98]
    assert texts(pieces(tokenizer, ids, skip_special_tokens=True)) == ["a", "<think>", "", "b"]
    assert texts(pieces(tokenizer, ids, skip_special_tokens=False)) == ["a", "<think>", "<eos>", "b"]


@BOTH
def test_a_stop_token_keeps_its_id_and_loses_its_text(tokenizer: Bytes) -> None:
    stop = frozenset({Bytes.THINK})
    assert pieces(tokenizer, [97, Bytes.THINK], stop_ids=stop) == [Piece("a", 97), Piece("", Bytes.THINK)]
    assert texts(pieces(tokenizer, [97, Bytes.THINK, 98], stop_ids=stop)) == ["a", "<think>", "b"]
    assert texts(pieces(tokenizer, [97, Bytes.THINK], stop_ids=stop, include_stop=True)) == ["a", "<think>"]


def test_the_prompt_primes_the_stream() -> None:
    """A sentencepiece-style decoder drops the space of the first word; behind a prompt there is a word before it."""
    backend = Tokenizer(models.WordLevel({"▁hi": 0, "▁you": 1}, unk_token="▁hi"))
    backend.decoder = decoders.Metaspace()

    class Spaced(Bytes):
        def __init__(self) -> None:
            self.backend = backend

    assert texts(pieces(Spaced(), [1, 1], prompt_ids=[0])) == [" you", " you"]
    assert texts(pieces(Spaced(), [1, 1])) == ["you", " you"]


@BOTH
def test_ids_no_vocabulary_has_show_nothing(tokenizer: Bytes) -> None:
    assert pieces(tokenizer, [97, 999_999, 98])[1] == Piece("", 999_999)


@pytest.mark.parametrize(
    ("stop", "include", "shown", "ids"),
    [
        (["END"], False, "ab", "abEND"),
        (["END"], True, "abEND", "abEND"),
        (["zz"], False, "abENDcd", "abENDcd"),
        (["ND", "END"], False, "abE", "abEND"),
        (["bENDc", "E"], False, "ab", "abE"),
        (["a"], False, "", "a"),
        (["bE", "ab"], False, "", "ab"),
    ],
)
def test_stop_strings_cut_the_text_and_the_ids_behind_them(
    stop: list[str], include: bool, shown: str, ids: str
) -> None:
    found = pieces(FAST, list(b"abENDcd"), stop=stop, include_stop=include)
    assert "".join(texts(found)) == shown
    assert [piece.id for piece in found] == list(ids.encode())


def test_a_stop_string_may_begin_inside_one_token_and_end_inside_another() -> None:
    words = [token_id for text in ("one", " two", " three") for token_id in WORDS.encode(text)]
    assert pieces(WORDS, words, stop=["wo th"]) == [
        Piece("one", words[0]), Piece(" t", words[1], "wo"), Piece("", words[2], " three"),
    ]  # fmt: skip


def test_a_stop_token_behind_a_stop_string_is_never_reached() -> None:
    ids = [*b"ab", Bytes.EOS]
    assert pieces(FAST, ids, stop=["b"], stop_ids=frozenset({Bytes.EOS})) == [Piece("a", 97), Piece("", 98, "b")]


def naive_stop(shown: list[str], stop: list[str]) -> tuple[str, int]:
    """The text and the number of tokens vLLM keeps: after each token the whole text is looked through."""
    text = ""
    for number, piece in enumerate(shown, 1):
        before = len(text)
        text += piece
        ends = [
            (at + len(found), at) for found in stop if (at := text.find(found, max(0, before + 1 - len(found)))) >= 0
        ]
        if piece and ends:
            return text[: min(ends, key=lambda pair: pair[0])[1]], number
    return text, len(shown)


@given(st.text("abé", max_size=30), st.lists(st.text("abé", min_size=1, max_size=4), min_size=1, max_size=3))
def test_stop_strings_are_found_as_by_looking_through_everything(text: str, stop: list[str]) -> None:
    ids = FAST.encode(text)
    found = pieces(FAST, ids, stop=stop)
    assert ("".join(texts(found)), len(found)) == naive_stop(texts(pieces(FAST, ids)), stop)


@given(st.text(max_size=30))
def test_the_pieces_of_a_text_are_the_text(text: str) -> None:
    for tokenizer in (FAST, SLOW):
        ids = tokenizer.encode(text)
        found = pieces(tokenizer, ids, skip_special_tokens=False)
        assert [piece.id for piece in found] == ids
        if "�" not in text:
            assert "".join(texts(found)) == text


@given(st.text(max_size=30))
def test_a_text_of_its_own_is_tokenized_and_never_changed(text: str) -> None:
    for tokenizer in (FAST, SLOW, WORDS):
        found = text_pieces(tokenizer, text)
        assert "".join(texts(found)) == text
        assert [piece.id for piece in found] == (tokenizer.encode(text) if text else [])


def test_tokens_of_one_character_show_it_with_the_last() -> None:
    assert texts(text_pieces(FAST, "é你<think>x")) == ["", "é", "", "", "你", "<think>", "x"]


@given(st.lists(st.text(max_size=8), max_size=8))
def test_text_deltas_keep_their_text_and_hold_each_id_once_in_order(recorded: list[str]) -> None:
    for tokenizer in (FAST, WORDS):
        found = text_deltas(tokenizer, recorded)
        assert [delta.text for delta in found] == recorded
        assert [token_id for delta in found for token_id in delta.ids] == tokenizer.encode("".join(recorded))


def test_a_token_belongs_to_the_delta_that_brings_its_last_character() -> None:
    ids = WORDS.encode("<think>plan it</think>four")
    assert text_deltas(WORDS, ["<thi", "nk>pl", "an it<", "/think>four"]) == [
        RawDelta("<thi"), RawDelta("nk>pl", (ids[0],)), RawDelta("an it<", (ids[1], ids[2])),
        RawDelta("/think>four", (ids[3], ids[4])),
    ]  # fmt: skip


PIECES = st.lists(st.builds(Piece, st.text("ab<é", max_size=3), st.one_of(st.integers(0, 9), st.none())), max_size=20)
CHUNKINGS = st.one_of(
    st.sampled_from([Chunking("whole"), Chunking("char")]),
    st.builds(Chunking, st.just("tokens"), st.integers(1, 9)),
    st.builds(Chunking, st.sampled_from(["random", "holdback"]), st.integers(0, 9)),
)


@given(PIECES, CHUNKINGS)
def test_no_chunking_loses_or_reorders_anything(found: list[Piece], chunking: Chunking) -> None:
    deltas = list(chunk(found, chunking))
    assert "".join(delta.text for delta in deltas) == "".join(texts(found))
    assert [token_id for delta in deltas for token_id in delta.ids] == [p.id for p in found if p.id is not None]
    assert list(chunk(found, chunking)) == deltas


FOUR = [Piece("ab", 1), Piece("", 2), Piece("cde", 3), Piece("", 4)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("whole", [("abcde", (1, 2, 3, 4))]),
        ("token", [("ab", (1,)), ("", (2,)), ("cde", (3,)), ("", (4,))]),
        ("3", [("abcde", (1, 2, 3)), ("", (4,))]),
        ("char", [("a", (1,)), ("b", ()), ("c", (2, 3)), ("d", ()), ("e", ()), ("", (4,))]),
        ("holdback:2", [("", (1,)), ("", (2,)), ("abc", (3,)), ("de", (4,))]),
        ("holdback:0", [("ab", (1,)), ("", (2,)), ("cde", (3,)), ("", (4,))]),
    ],
)
def test_chunkings_by_name(name: str, expected: list[tuple[str, tuple[int, ...]]]) -> None:
    chunking = parse_chunking(name)
    assert str(chunking) == name
    assert list(chunk(FOUR, chunking)) == expected


def test_a_random_chunking_is_given_by_its_seed() -> None:
    many = [Piece(str(number), number) for number in range(100)]
    sizes = {seed: [len(delta.ids) for delta in chunk(many, parse_chunking(f"random:{seed}"))] for seed in range(5)}
    assert len({tuple(found) for found in sizes.values()}) == 5
    assert all(1 <= size <= 8 for found in sizes.values() for size in found)


@pytest.mark.parametrize(
    "text", ["", "0", "-1", "tokens", "whole:1", "random", "random:x", "holdback:", "3:1", "token:2", "²"]
)
def test_what_is_no_chunking_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="use recorded, whole, token"):
        parse_chunking(text)


def test_a_list_of_chunkings_names_each_once() -> None:
    assert [*map(str, parse_chunkings("recorded, token,3,1,whole"))] == ["recorded", "token", "3", "whole"]


def test_recorded_deltas_stand_where_their_text_is_the_pieces() -> None:
    late = [RawDelta("", (1, 2)), RawDelta("ab", (3,)), RawDelta("cde", (4,))]
    assert recut(FOUR, late) == late


def test_recorded_deltas_are_cut_anew_where_the_text_was_decoded_otherwise() -> None:
    recorded = [RawDelta("ab<eos>", (1, 2)), RawDelta("cde", (3, 4))]
    assert recut(FOUR, recorded) == [RawDelta("ab", (1, 2)), RawDelta("cde", (3, 4))]
    assert recut(FOUR[:3], recorded) == [RawDelta("ab", (1, 2)), RawDelta("cde", (3,))]
    assert recut(FOUR, recorded[:1]) == [RawDelta("abcde", (1, 2, 3, 4))]
