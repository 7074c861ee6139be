"""One long output for every parser, of any length, in a vocabulary that has what the parser looks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reasonctl.parsers import ROWS, build, names
from reasonctl.parsers.differential.cases import specs
from reasonctl.parsers.differential.families import FAMILIES
from reasonctl.parsers.differential.vocabulary import Spec, SpecVocabulary
from reasonctl.parsers.feed import Pieces, pieces

EXTRAS = ("beam", "cohere_command3", "cohere_command4", "hf", "openai_gptoss")
"""Parsers that run through another library, or by a template of the tokenizer's own."""
BUILTIN = tuple(name for name in names() if name not in EXTRAS and ROWS[name].modelled)
_WORDS = "Hello world four The answer is ok.\n\n"
_THOUGHT = 0.7
_SWITCHES: tuple[Mapping[str, Any], ...] = (
    {},
    {"enable_thinking": True},
    {"thinking": True},
    {"reasoning_effort": "high"},
)


@dataclass(frozen=True)
class LongOutput:
    """A thought of 70 % and an answer; no prompt is known, so that no parser takes thinking to be over."""

    parser: str
    spec: Spec
    vocabulary: SpecVocabulary
    kwargs: Mapping[str, Any]
    pieces: Pieces


def long_output(name: str, tokens: int) -> LongOutput:
    """An output of about so many tokens."""
    family = FAMILIES[name]
    spec = specs(name)[f"{name}/0/plain"]
    vocabulary = SpecVocabulary(spec)
    words = vocabulary.encode(_WORDS)

    def text(share: float) -> list[int]:
        return words * (int(tokens * share) // len(words) + 1)

    kwargs = next((given for given in _SWITCHES if _thinks(name, vocabulary, given)), _SWITCHES[0])
    ids = [*vocabulary.encode(family.start), *text(_THOUGHT), *vocabulary.encode(family.end), *text(1 - _THOUGHT)]
    skip = build(name, vocabulary, kwargs).skip_special_tokens is not False
    return LongOutput(name, spec, vocabulary, kwargs, pieces(vocabulary, ids, skip_special_tokens=skip))


def _thinks(name: str, vocabulary: SpecVocabulary, kwargs: Mapping[str, Any]) -> bool:
    """Whether a short output comes apart into reasoning and content."""
    family = FAMILIES[name]
    model = build(name, vocabulary, kwargs)
    text = f"{family.start}Hello world{family.end} four"
    model.begin(None, streaming=False)
    split = model.split(text, vocabulary.encode(text))
    return bool(split.reasoning) and bool(split.content)
