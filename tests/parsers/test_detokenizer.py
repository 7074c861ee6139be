"""Texts by table are those of the stream that vLLM steps, whatever the decoder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from reasonctl.parsers.detokenizer import Detokenizer

from .streams import streamed

PIECES = ("a", "e", "▁", "▁▁", "▁the", "##ing", "x</w>", "�", "á", "你", " ", "Ġ", "Ã", "¶", "<0x", "-", "▁,")
MARKERS = {"<think>": False, "<eos>": True, "▁<pad>": True}
BYTES = [f"<0x{byte:02X}>" for byte in (0x41, 0x20, 0xE4, 0xBD, 0xA0, 0xF0, 0xFF)]
SIZE = len(PIECES) + len(BYTES) + len(MARKERS)
IDS = st.lists(st.integers(0, SIZE + 2), max_size=12)

DECODERS: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "byte-level": decoders.ByteLevel,
    "metaspace": decoders.Metaspace,
    "metaspace-never": lambda: decoders.Metaspace(prepend_scheme="never"),
    "wordpiece": decoders.WordPiece,
    "bpe": decoders.BPEDecoder,
    "llama": lambda: _sequence(decoders.Fuse(), decoders.Strip(" ", 1, 0)),
    "gemma": lambda: _sequence(decoders.Fuse()),
    "strips-two": lambda: _sequence(decoders.Fuse(), decoders.Strip(" ", 2, 0)),
    "strips-each": lambda: _sequence(decoders.Strip(" ", 1, 0), decoders.Fuse()),
    "replaces-last": lambda: decoders.Sequence([decoders.Fuse(), decoders.Replace("a▁", "b")]),
}


def _sequence(*last: Any) -> Any:
    return decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), *last])


def tokenizer_with(decoder: Any) -> Tokenizer:
    tokens = [*PIECES, *BYTES]
    backend = Tokenizer(models.BPE(vocab={text: number for number, text in enumerate(tokens)}, merges=[]))
    if decoder is not None:
        backend.decoder = decoder
    backend.add_tokens([AddedToken(text, special=special, normalized=False) for text, special in MARKERS.items()])
    return backend


@pytest.mark.parametrize("name", DECODERS)
def test_equal_to_the_stream(name: str) -> None:
    backend = tokenizer_with(DECODERS[name]())
    detokenizer = Detokenizer(backend)

    @given(IDS, st.one_of(st.none(), IDS), st.booleans())
    def check(ids: list[int], prompt: list[int] | None, skip: bool) -> None:
        assert detokenizer.texts(ids, prompt, skip_special_tokens=skip) == streamed(backend, ids, prompt, skip)
        assert detokenizer.decode(ids, skip_special_tokens=skip) == backend.decode(ids, skip_special_tokens=skip)

    check()


def byte_level() -> Tokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE(vocab={text: number for number, text in enumerate(alphabet)}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_tokens([AddedToken("<eos>", special=True, normalized=False)])
    return backend


BACKEND = byte_level()
WORDS = st.one_of(
    st.text("aé你🙂�", max_size=4).map(lambda text: list(BACKEND.encode(text, add_special_tokens=False).ids)),
    st.lists(st.integers(0, 256), max_size=3),
)
RUNS = st.lists(WORDS, max_size=5).map(lambda parts: [one for part in parts for one in part])


@given(RUNS, st.one_of(st.none(), RUNS), st.booleans())
def test_characters_in_parts(ids: list[int], prompt: list[int] | None, skip: bool) -> None:
    detokenizer = Detokenizer(BACKEND)
    assert detokenizer.texts(ids, prompt, skip_special_tokens=skip) == streamed(BACKEND, ids, prompt, skip)
    assert detokenizer.decode(ids, skip_special_tokens=skip) == BACKEND.decode(ids, skip_special_tokens=skip)


def test_what_is_no_id_adds_nothing() -> None:
    assert Detokenizer(BACKEND).texts([64, -1, 2**40, 65], None, skip_special_tokens=True) == streamed(
        BACKEND, [64, -1, 2**40, 65], None, True
    )


def test_whole_words_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """No stream is stepped where nothing needs it: that is what makes it fast."""
    detokenizer = Detokenizer(BACKEND)
    ids = BACKEND.encode("Two and two", add_special_tokens=False).ids
    monkeypatch.setattr(decoders, "DecodeStream", None)
    assert "".join(detokenizer.texts(ids, ids, skip_special_tokens=True)) == "Two and two"
