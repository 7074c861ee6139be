"""Outputs to measure with: a thought and an answer in the tokens of a shipped model, as trace files."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MODELS = Path(__file__).parent.parent / "fixtures" / "models"
GRANITE = ("Here is my thought process:", "Here is my response:")
THINK = ("<think>", "</think>")
_EOS = ("<|im_end|>", "<｜end▁of▁sentence｜>")
_THOUGHT = 0.7
"""The part of an output that is thinking."""
_PROMPT = "<|im_start|>user\nHow many tiles does the floor need?<|im_end|>\n<|im_start|>assistant\n"
_SENTENCES = (
    "Let me look at the question again, since I may have missed a condition.\n",
    "The floor is 4 m by 3 m, so its area is 12 square metres, and a tile covers 0.25 square metres.\n",
    "12 / 0.25 = 48, so 48 tiles are needed if none of them breaks.\n",
    "Wait, the user said that one in ten breaks; then 48 / 0.9 = 53.3, which is 54 whole tiles.\n",
    "I should also check the other reading, where the border counts as well.\n",
    "def tiles(width, depth, side):\n    return -(-width // side) * -(-depth // side)\n",
    "If x < 3 and y > 2, both bounds hold, and the sum stays below 7.\n",
    "A café in Zürich charges 4 € for the same thing; that does not matter here.\n",
    '{"width": 4, "depth": 3, "side": 0.5}\n',
    "So the answer is 54 tiles, and I am fairly sure of it.\n",
)


def tokenizer(model: str) -> Tokenizer:
    """The tokenizer of a shipped model, by its name without `fixture:`."""
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(MODELS / model / "tokenizer.json"))


def outputs(model: str, count: int, tokens: int, *, seed: int = 1) -> Iterator[tuple[list[int], list[int]]]:
    """(prompt ids, output ids) of `count` outputs of `tokens` tokens each: a thought, its end, an answer, a stop token.

    The prompt opens the thought.
    """
    backend = tokenizer(model)
    rng = random.Random(seed)
    sentences = [_ids(backend, sentence) for sentence in _SENTENCES]
    prompt, end = _ids(backend, f"{_PROMPT}{THINK[0]}\n"), _ids(backend, THINK[1])
    eos = next(found for token in _EOS if (found := backend.token_to_id(token)) is not None)
    for _ in range(count):
        thought = _text(sentences, int(tokens * _THOUGHT), rng)
        yield prompt, [*thought, *end, *_text(sentences, tokens - len(thought) - len(end) - 1, rng), eos]


def plain_outputs(model: str, count: int, tokens: int, *, seed: int = 1) -> Iterator[tuple[list[int], list[int]]]:
    """The same text with no marker and no prompt that opens a thought."""
    backend = tokenizer(model)
    (end,) = _ids(backend, THINK[1])
    for _, ids in outputs(model, count, tokens + 1, seed=seed):
        yield _ids(backend, _PROMPT), [token_id for token_id in ids if token_id != end]


def granite_outputs(model: str, count: int, tokens: int, *, seed: int = 1) -> Iterator[tuple[list[int], list[int]]]:
    """The same with granite's phrases around thought and answer."""
    backend = tokenizer(model)
    start, end = (_ids(backend, phrase) for phrase in GRANITE)
    for _, ids in outputs(model, count, tokens - len(start) - len(end) + 1, seed=seed):
        at = ids.index(_ids(backend, THINK[1])[0])
        yield _ids(backend, _PROMPT), [*start, *ids[:at], *end, *ids[at + 1 :]]


def write(path: Path, made: Iterator[tuple[list[int], list[int]]], *, deltas: Tokenizer | None = None) -> int:
    """A trace file of these outputs, with the ids alone, or with each token's text as a delta. Returns its tokens."""
    total = 0
    with path.open("w", encoding="utf-8") as lines:
        for number, (prompt, ids) in enumerate(made):
            total += len(ids)
            output = {"token_ids": ids} if deltas is None else {"deltas": _deltas(deltas, prompt, ids)}
            trace = {
                "schema": "reasonctl.trace/1",
                "id": f"t{number}",
                "prompt": {"token_ids": prompt},
                "output": output,
                "recorded": {"finish_reason": "stop"},
            }
            lines.write(json.dumps(trace) + "\n")
    return total


def _text(sentences: list[list[int]], tokens: int, rng: random.Random) -> list[int]:
    """Whole sentences, and of the first, which is ASCII, as much as is missing."""
    found: list[int] = []
    while len(chosen := rng.choice(sentences)) <= tokens - len(found):
        found += chosen
    while len(found) < tokens:
        found += sentences[0][: tokens - len(found)]
    return found


def _ids(backend: Tokenizer, text: str) -> list[int]:
    ids: list[int] = backend.encode(text, add_special_tokens=False).ids
    return ids


def _deltas(backend: Tokenizer, prompt: list[int], ids: list[int]) -> list[dict[str, object]]:
    from tokenizers.decoders import DecodeStream

    stream = DecodeStream(ids=prompt, skip_special_tokens=False)
    return [{"text": stream.step(backend, token_id) or "", "token_ids": [token_id]} for token_id in ids[:-1]] + [
        {"text": "", "token_ids": ids[-1:]}
    ]
