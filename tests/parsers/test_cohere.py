"""The Cohere models without their library: what they say of a prompt, how they count, and what they ask for.

What they split is held against vLLM in tests/real.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType

import pytest

from reasonctl.parsers import ParserRaisedError, ParserUnsupportedError, build
from reasonctl.parsers.base import Delta, Split
from reasonctl.parsers.differential.vocabulary import Spec, SpecVocabulary

START, END, TURN = "<|START_THINKING|>", "<|END_THINKING|>", "<|CHATBOT_TOKEN|>"
VOCABULARY = SpecVocabulary(Spec((), tuple((text, "declared") for text in (START, END, TURN))))


@dataclass
class Part:
    content: str | None = None
    reasoning: str | None = None
    citations: Sequence[object] = field(default_factory=tuple)


class Options:
    def cmd3(self) -> str:
        return "cmd3"


class Melody:
    """Gives back what it is fed, upper case being reasoning; holds everything with a `~` until the end."""

    def __init__(self, options: str) -> None:
        self.options = options
        self.held = ""

    def process_full_text(self, text: str) -> Part:
        return Part(content=text, reasoning=self.options)

    def write_decoded(self, text: str) -> Part:
        if text.startswith("~"):
            self.held = text[1:]
            return Part()
        if text == "cited":
            return Part(citations=("1",))
        return Part(reasoning=text, content="") if text.isupper() else Part(content=text)

    def flush_partials(self) -> Part:
        return Part(content=self.held)


@pytest.fixture
def melody(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("cohere_melody")
    module.PyFilter, module.PyFilterOptions = Melody, Options  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cohere_melody", module)


@pytest.mark.parametrize("name", ["cohere_command3", "cohere_command4"])
def test_without_the_library_it_says_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cohere_melody", None)
    with pytest.raises(ParserUnsupportedError) as caught:
        build(name, VOCABULARY, {})
    assert str(caught.value) == "cohere-melody is missing: pip install 'reasonctl[cohere]'"


@pytest.mark.usefixtures("melody")
def test_a_library_too_old_for_the_format_is_none() -> None:
    with pytest.raises(ParserUnsupportedError, match=r"reasonctl\[cohere\]"):
        build("cohere_command4", VOCABULARY, {})


@pytest.mark.usefixtures("melody")
@pytest.mark.parametrize(
    ("prompt", "ended"),
    [
        ("hi", False),
        (f"{END}hi", True),
        (f"{START}a{END}", True),
        (f"{START}a", False),
        (f"{END}{START}a", False),
        (f"{START}a{END}{TURN}", False),
        (f"{TURN}a{END}", False),
    ],
)
def test_what_a_prompt_says(prompt: str, ended: bool) -> None:
    assert build("cohere_command3", VOCABULARY, {}).is_reasoning_end(VOCABULARY.encode(prompt)) is ended


@pytest.mark.usefixtures("melody")
@pytest.mark.parametrize(
    ("output", "tokens"),
    [(f"{START}ab{END}c", 2), ("ab", 0), (f"{END}{START}a", 1), (f"{START}a{START}b{END}c{END}d", 3)],
)
def test_tokens_inside_generated_blocks_count(output: str, tokens: int) -> None:
    assert build("cohere_command3", VOCABULARY, {}).count_reasoning_tokens(VOCABULARY.encode(output)) == tokens


@pytest.mark.usefixtures("melody")
def test_a_marker_the_vocabulary_lacks_is_its_unknown_token() -> None:
    lacking = SpecVocabulary(Spec((), (("<UNK>", "plain"),), init_kwargs={"unk_token": "<UNK>"}))
    model = build("cohere_command3", lacking, {})
    assert model.count_reasoning_tokens(lacking.encode("a<UNK>bc<UNK>d")) == 3
    assert model.is_reasoning_end(lacking.encode("<UNK>")) is False


@pytest.mark.usefixtures("melody")
def test_what_the_library_says_reaches_the_client() -> None:
    model = build("cohere_command3", VOCABULARY, {})
    assert model.split("four", ()) == Split("cmd3", "four")
    assert model.skip_special_tokens is False
    stream = build("cohere_command3", VOCABULARY, {})
    stream.begin(VOCABULARY.encode(END), streaming=True)
    assert [stream.feed(text, (), finished=text == "~so") for text in ("HM", "four", "", "cited", "~so")] == [
        Delta("HM", ""),
        Delta(None, "four"),
        None,
        Delta(None, None),
        Delta(None, "so"),
    ]


@pytest.mark.usefixtures("melody")
def test_half_a_character_raises() -> None:
    with pytest.raises(ParserRaisedError) as caught:
        build("cohere_command3", VOCABULARY, {}).split("\ud800", ())
    assert caught.value.exception == "UnicodeEncodeError"
