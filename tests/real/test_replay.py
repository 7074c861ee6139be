"""Replay on real tokenizers: ids bring lost markers back, and text alone gives the same splits as ids do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reasonctl.traces.context import Context, Setting
from reasonctl.traces.read import read_traces
from reasonctl.traces.replay import Plan, TraceFacts, replay_trace
from reasonctl.traces.trace import Trace

from .artefacts import otc_folder, qwen3_folder

THOUGHT = "\nDie Frage: 你好 auf Deutsch? „Hallo“ 🙂👩‍👩‍👧, also  zwei Leerzeichen.\n"
ANSWER = "\n\nEs heißt „Hallo“. 🙂"
PARSERS = ("qwen3", "deepseek_r1", "glm45", "minimax_m2")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    into = tmp_path_factory.mktemp("models")
    return {"qwen3": qwen3_folder(into), "r1": otc_folder("deepseek-r1", into)}


def put(path: Path, *values: Any) -> Path:
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return path


def replay(path: Path, model: Path, *parsers: str) -> list[TraceFacts]:
    with Context(Setting(model=str(model))) as context:
        traces = [item for item in read_traces(str(path)) if isinstance(item, Trace)]
        return [replay_trace(trace, context, Plan(parsers=parsers, named=parsers)) for trace in traces]


def encode(model: Path, text: str) -> list[int]:
    with Context(Setting(model=str(model))) as context:
        assert context.model is not None
        assert context.model.tokenizer is not None
        return list(context.model.tokenizer.encode(text))


@pytest.mark.parametrize("name", ["qwen3", "r1"])
def test_a_parsed_stream_with_token_ids_is_no_lossy_one(name: str, folders: dict[str, Path], tmp_path: Path) -> None:
    """As vLLM streams with `return_token_ids`: the text is split, each chunk's ids are whole."""
    model = folders[name]
    ids = encode(model, f"{THOUGHT}</think>{ANSWER}")
    (end,) = encode(model, "</think>")
    thought = ids[: ids.index(end)]
    chunks = [
        {"prompt_token_ids": encode(model, "Hi<think>"), "choices": [{"delta": {"role": "assistant", "content": ""}}]},
        {"choices": [{"delta": {"reasoning": THOUGHT}, "token_ids": thought}]},
        {"choices": [{"delta": {}, "token_ids": [end]}]},
        {"choices": [{"delta": {"content": ANSWER}, "token_ids": ids[len(thought) + 1 :], "finish_reason": "stop"}]},
    ]
    (facts,) = replay(put(tmp_path / "chunks.jsonl", *chunks), model, "qwen3", "deepseek_r1")
    assert (facts.lossy, facts.tokenizer, facts.notes) == (False, "model", ())
    for result in facts.results:
        assert (result.full.reasoning, result.full.content) == (THOUGHT, ANSWER)
        assert result.matches_recorded is True
        assert [mode.chunking for mode in result.stream] == ["recorded", "token", "3", "whole"]
        assert result.status == "ok"


@pytest.mark.parametrize("name", ["qwen3", "r1"])
def test_text_alone_splits_as_its_ids_do(name: str, folders: dict[str, Path], tmp_path: Path) -> None:
    model = folders[name]
    text = f"<think>{THOUGHT}</think>{ANSWER}"
    ids = encode(model, text)
    whole, from_ids = replay(
        put(tmp_path / "t.jsonl", {"output": {"text": text}}, {"output": {"token_ids": ids}}), model, *PARSERS
    )
    for one, other in zip(whole.results, from_ids.results, strict=True):
        assert one == other
        assert one.full.content is not None


def test_ids_of_one_model_are_not_read_with_anothers_tokenizer(folders: dict[str, Path], tmp_path: Path) -> None:
    text = f"<think>{THOUGHT}</think>{ANSWER}"
    trace = {"output": {"text": text, "token_ids": encode(folders["r1"], text)}}
    (facts,) = replay(put(tmp_path / "t.jsonl", trace), folders["qwen3"], "qwen3")
    assert "not of this model's tokenizer" in facts.notes[0]
    assert facts.results[0].full.content == ANSWER
