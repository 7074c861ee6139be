"""The tokenizer of a lab model: bytes, and every text of its script as one token."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from .lab_families import LabFamily, spoken

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_WORDS = r" ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+"


@dataclass(frozen=True)
class LabVocabulary:
    """The tokens of a lab model, by text, and what follows each in its script.

    Attributes:
        words: tokens that the text of a message may also hold.
        marks: tokens that are found before anything else is cut, as models have for their markers.
        follows: token text to token text.
    """

    words: tuple[str, ...]
    marks: tuple[str, ...]
    follows: Mapping[str, str]


def vocabulary(family: LabFamily, thinking_tokens: int) -> LabVocabulary:
    """The vocabulary of a family. Raises ValueError where its chains contradict each other."""
    follows: dict[str, str] = {}
    for chain in family.chains:
        texts = spoken(chain, thinking_tokens)
        for text, after in pairwise(texts):
            if follows.setdefault(text, after) != after:
                raise ValueError(f"{family.name}: {text!r} is followed by {follows[text]!r} and by {after!r}")
    scripted = dict.fromkeys((*follows, *follows.values()))
    whole = [family.eos, *family.special, *([family.bos] if family.bos else ())]
    whole += [text for text in family.tokens if not text.startswith(" ")]
    whole += [text for marker in (family.start, family.end) for text in marker if len(marker) == 1]
    whole += [text for text in scripted if text.startswith("<") and text not in family.start + family.end]
    marks = tuple(dict.fromkeys(whole))
    words = dict.fromkeys((*scripted, *family.tokens))
    return LabVocabulary(tuple(text for text in words if text not in marks), marks, follows)


def build_tokenizer(family: LabFamily, vocabulary: LabVocabulary) -> Tokenizer:
    """A byte-level tokenizer in which each word of the vocabulary is one token and every other text is its bytes."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    to_letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    words = ["".join(piece for piece, _ in to_letters.pre_tokenize_str(word)) for word in vocabulary.words]
    entries = {text: index for index, text in enumerate(dict.fromkeys((*letters, *words)))}
    tokenizer = Tokenizer(models.BPE(vocab=entries, merges=[], ignore_merges=True))
    # A word that the general rule would cut, or join with its neighbour, is cut out first.
    odd = sorted((word for word in vocabulary.words if not re.fullmatch(r" ?[A-Za-z]+| ?\d+", word)), key=len)
    rule = "|".join([*(re.escape(word) for word in reversed(odd) if word.strip()), _WORDS])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(rule), "isolated"), to_letters])
    tokenizer.decoder = decoders.ByteLevel()
    special = {family.bos, family.eos, *family.special}
    tokenizer.add_tokens([AddedToken(mark, special=mark in special, normalized=False) for mark in vocabulary.marks])
    return tokenizer
