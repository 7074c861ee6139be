"""mistral with mistral-common's own tokenizers, against vLLM: tokens for markers, texts for markers, and neither."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reasonctl.parsers import build
from reasonctl.parsers.base import Split, Vocabulary
from reasonctl.parsers.differential.answers import model_answer
from reasonctl.parsers.feed import chunk, parse_chunking, pieces
from reasonctl.parsers.target import Target
from reasonctl.prompts.model import load_model

from .artefacts import mistral_folder
from .driver import VllmDriver

VERSIONS = ("v3", "v11", "v13")
PARTS = (
    "[THINK]", "[/THINK]", "<think>", "</think>", "[TOOL_CALLS]", "[ARGS]", "</s>", "[INST]", '{"a": 1}', "f", "{",
    "Hm", " four", "\n", "\n\n", " ", "<thi", "nk>", "[TOOL", "naïve 你好 🙂", "</", "[/THI",
)  # fmt: skip
OUTPUTS = (
    "[THINK]Hm[/THINK]four</s>",
    "<think>\nHm\n</think>\n\nfour</s>",
    '[THINK]Hm[/THINK][TOOL_CALLS]f[ARGS]{"a": 1}</s>',
    '<think>Hm[TOOL_CALLS]f{"a": 1}',
    "four",
)
CASES = 18
CHUNKINGS = ("whole", "token", "random:7", "holdback:5")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    into = tmp_path_factory.mktemp("mistral")
    return {version: mistral_folder(into, version) for version in VERSIONS}


@pytest.fixture(scope="module")
def vocabularies(folders: dict[str, Path]) -> dict[str, Vocabulary]:
    return {version: load_model(str(folder)).tokenizer for version, folder in folders.items()}


def cases(vocabularies: dict[str, Vocabulary], count: int) -> Iterator[dict[str, Any]]:
    rng = random.Random(33)
    for number in range(count):
        version = VERSIONS[number % len(VERSIONS)]
        vocabulary = vocabularies[version]
        text = rng.choice(OUTPUTS) if rng.random() < 0.5 else "".join(rng.choices(PARTS, k=rng.randrange(10)))
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice((*PARTS, "", "", "")) + text[at:]
        ids = vocabulary.encode(text)
        made = pieces(vocabulary, ids, skip_special_tokens=rng.random() < 0.5, stop_ids=frozenset((2,)))
        yield {
            "parser": "mistral",
            "tokenizer": version,
            "kwargs": {},
            "request_kwargs": None,
            "prompt_ids": rng.choice((None, [], vocabulary.encode("<s>[INST]hi[/INST][THINK]"))),
            "text": "".join(piece.text for piece in made),
            "ids": [piece.id for piece in made],
            "streams": [
                [[delta.text, list(delta.ids)] for delta in chunk(made, parse_chunking(chunking))]
                for chunking in CHUNKINGS
            ],
        }


def answered(answer: dict[str, Any]) -> dict[str, Any]:
    """What is compared: with mistral-common 1.13.1, vLLM's own `adjust_request` raises for tokenizers from v11 on."""
    return {part: answer[part] for part in ("full", "streams")}


@pytest.mark.vllm
def test_mistrals_own_tokenizers_give_what_vllm_gives(
    folders: dict[str, Path], vocabularies: dict[str, Vocabulary], vllm_0_33: VllmDriver
) -> None:
    asked = list(cases(vocabularies, CASES))
    described = {version: {"mistral": str(folder)} for version, folder in folders.items()}
    answers = list(vllm_0_33.run(described, asked))
    for case, expected in zip(asked, answers, strict=True):
        got = model_answer(case, vocabularies[case["tokenizer"]], Target())
        assert answered(got) == answered(expected), case


@pytest.mark.parametrize(
    ("version", "output", "reasoning", "content", "skips"),
    [
        ("v3", "<think>Hm</think>four", None, "<think>Hm</think>four", False),
        ("v11", "<think>Hm</think>four", "Hm", "four", None),
        ("v13", "[THINK]Hm[/THINK]four", "Hm", "four", None),
        ("v13", "<think>Hm</think>four", None, "<think>Hm</think>four", None),
    ],
)
def test_markers_follow_the_tokenizer(
    vocabularies: dict[str, Vocabulary],
    version: str,
    output: str,
    reasoning: str | None,
    content: str,
    skips: bool | None,
) -> None:
    model = build("mistral", vocabularies[version], {})
    assert model.split(output, ()) == Split(reasoning, content)
    assert model.skip_special_tokens is skips
