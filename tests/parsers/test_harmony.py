"""openai_gptoss where its library has no say: what it asks for, what it refuses, and the stub other models get."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from reasonctl.parsers import ParserRaisedError, ParserUnsupportedError, build
from reasonctl.parsers.assumed import AssumedVocabulary
from reasonctl.parsers.base import Delta
from reasonctl.parsers.differential.vocabulary import Spec, SpecVocabulary
from reasonctl.parsers.models import harmony

MARKERS = ((200005, "<|channel|>"), (200006, "<|start|>"), (200007, "<|end|>"), (200008, "<|message|>"))
GPT_OSS = SpecVocabulary(Spec(placed=MARKERS))
ANOTHER = SpecVocabulary(Spec(markers=(("<think>", "plain"),)))


@pytest.fixture(autouse=True)
def nothing_loaded() -> Iterator[None]:
    harmony._loaded.cache_clear()
    yield
    harmony._loaded.cache_clear()


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai_harmony", None)
    with pytest.raises(ParserUnsupportedError) as caught:
        build("openai_gptoss", GPT_OSS, {})
    assert str(caught.value) == "oss-harmony is missing: pip install 'reasonctl[harmony]'"


@pytest.mark.parametrize(
    "vocabulary",
    [AssumedVocabulary(), SpecVocabulary(Spec(markers=tuple((text, "plain") for _, text in MARKERS)))],
    ids=["assumed", "other ids"],
)
def test_other_ids_are_not_read(vocabulary: AssumedVocabulary | SpecVocabulary) -> None:
    with pytest.raises(ParserUnsupportedError, match="gpt-oss's own vocabulary"):
        build("openai_gptoss", vocabulary, {})


@pytest.mark.parametrize("marker", ["<think>", "<|end|>"])
def test_a_model_that_is_not_gpt_oss_gets_a_stub_that_splits_nothing(marker: str) -> None:
    model = build("openai_gptoss", SpecVocabulary(Spec(markers=((marker, "plain"),))), {})
    assert model.is_reasoning_end([]) is True
    assert model.count_reasoning_tokens([1, 2]) == 0
    assert model.skip_special_tokens is None
    with pytest.raises(ParserRaisedError) as caught:
        model.split("four", ())
    assert caught.value.exception == "NotImplementedError"


def test_the_stub_passes_a_stream_on_behind_a_known_prompt() -> None:
    model = build("openai_gptoss", ANOTHER, {})
    model.begin([], streaming=True)
    assert model.feed("<think>", [256]) == Delta(None, "<think>")
    unknown = build("openai_gptoss", ANOTHER, {})
    unknown.begin(None, streaming=True)
    with pytest.raises(ParserRaisedError):
        unknown.feed("four", ())
