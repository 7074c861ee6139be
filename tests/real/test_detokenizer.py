"""Texts by table are those of the stream that vLLM steps, on public tokenizers."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from reasonctl.parsers.detokenizer import Detokenizer

from ..parsers.streams import streamed
from .artefacts import otc_folder, qwen3_folder

MODELS = ("qwen3", "deepseek-r1", "glm-4.7-flash", "minimax-m3", "jiutian-139moe-chat")
TEXTS = ("It is 4.", " Größe: 3 × 5 = 15 €", "你好, 世界", "🙂 👩‍👩‍👧", "\n\n\tif x < 3:\n", "</think>", "�", "  ")


@cache
def backend(name: str) -> Tokenizer:
    into = Path(mkdtemp())
    folder = qwen3_folder(into) if name == "qwen3" else otc_folder(name, into)
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


@pytest.mark.parametrize("name", MODELS)
def test_equal_to_the_stream(name: str) -> None:
    tokenizer = backend(name)
    detokenizer = Detokenizer(tokenizer)
    size = tokenizer.get_vocab_size(with_added_tokens=True)
    special = sorted(tokenizer.get_added_tokens_decoder())
    cut = st.sampled_from(TEXTS).map(lambda text: tokenizer.encode(text, add_special_tokens=False).ids)
    # Ids at random are mostly whole words; those of rare characters hold the parts of characters.
    some = st.lists(st.one_of(st.integers(0, 255), st.integers(0, size + 9), st.sampled_from(special)), max_size=6)
    output = st.lists(st.one_of(cut, some), max_size=6).map(lambda parts: [one for part in parts for one in part])

    @settings(max_examples=250, deadline=None)
    @given(output, st.one_of(st.none(), output), st.booleans())
    def check(ids: list[int], prompt: list[int] | None, skip: bool) -> None:
        wanted = streamed(tokenizer, ids, prompt, skip)
        assert detokenizer.texts(ids, prompt, skip_special_tokens=skip) == wanted
        assert detokenizer.decode(ids, skip_special_tokens=skip) == tokenizer.decode(ids, skip_special_tokens=skip)

    check()
