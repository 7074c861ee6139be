"""The public recordings in ../shared/traces: each of them is read."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from reasonctl.traces.context import Context, Setting
from reasonctl.traces.read import read_traces
from reasonctl.traces.replay import Plan, TraceFacts, replay_trace
from reasonctl.traces.trace import Trace

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "traces"
if not FOLDER.exists():
    pytest.skip(
        "../shared/traces is not beside this clone; tests/traces restates what it teaches", allow_module_level=True
    )

with (FOLDER / "MANIFEST.tsv").open(encoding="utf-8", newline="") as handle:
    ROWS: list[dict[str, Any]] = list(csv.DictReader(handle, delimiter="\t"))
APIS = {"Arize-ai": "ollama", "test_anthropic": "anthropic", "lmstudio": "responses"}


def file_of(row: dict[str, Any]) -> str:
    return str(row["file"]).split("#")[0]


def api_of(row: dict[str, Any]) -> str:
    return next((api for part, api in APIS.items() if part in file_of(row)), "chat")


def traces(name: str) -> list[Trace]:
    found = list(read_traces(str(FOLDER / name)))
    assert all(isinstance(item, Trace) for item in found), found
    return [item for item in found if isinstance(item, Trace)]


def one(name: str, *parsers: str) -> TraceFacts:
    with Context(Setting()) as context:
        return replay_trace(traces(name)[0], context, Plan(parsers=parsers, named=parsers))


@pytest.mark.parametrize("row", ROWS, ids=[row["file"] for row in ROWS])
def test_a_recording_is_read_as_the_manifest_describes_it(row: dict[str, Any]) -> None:
    trace = traces(file_of(row))[int(str(row["file"]).partition("#")[2] or 0)]
    recorded = trace.recorded
    assert recorded is not None
    assert (trace.model, trace.api) == (row["model"], api_of(row))
    counted = ("responses", "anthropic")  # the manifest counts no characters of these, nor of content parts
    parts = "type=thinking" in row["fields"]
    if not parts and trace.api not in counted:
        assert len(recorded.reasoning or "") == int(row["reasoning_chars"])
    if trace.api not in counted:
        assert len(recorded.content or "") == int(row["content_chars"])
    if trace.api == "chat":
        assert f"finish={recorded.finish_reason}=1" in row["fields"]
    assert trace.lossy is ("reasoning" in row["fields"] or "thinking" in row["fields"])
    assert recorded.usage["completion_tokens"] > 0


@pytest.mark.parametrize(
    ("part", "segments", "finish", "name", "split"),
    [
        ("Arize-ai", 713, "stop", "message.thinking", (3064, 9)),
        ("test_anthropic", 108, "stop", "thinking", (202, 1021)),
        ("lmstudio", 61, "tool_calls", "response.reasoning_text", (242, 67)),
    ],
)
def test_the_streams_of_other_apis(part: str, segments: int, finish: str, name: str, split: tuple[int, int]) -> None:
    (trace,) = traces(next(file_of(row) for row in ROWS if part in file_of(row)))
    recorded = trace.recorded
    assert recorded is not None
    assert len([text for _, text in trace.segments if text]) == segments
    assert (recorded.finish_reason, recorded.reasoning_field) == (finish, name)
    assert (len(recorded.reasoning or ""), len(recorded.content or "")) == split


@pytest.mark.parametrize("parser", ["deepseek_r1", "qwen3", "holo2", "step5"])
def test_the_raw_r1_recording_splits_exactly_at_its_end_marker(parser: str) -> None:
    facts = one("pydantic__pydantic-ai__test_hf_model_thinking_part_iter.0.sse", parser)
    before, marker, after = facts.raw.partition("</think>")
    assert (before.startswith("<think>"), marker, facts.tokenizer) == (True, "</think>", "trace")
    result = facts.results[0]
    assert (result.full.reasoning, result.full.content) == (before.removeprefix("<think>"), after)
    for mode in result.stream:
        if mode.chunking in ("recorded", "token"):
            assert (mode.reasoning, mode.content) == (before.removeprefix("<think>"), after)


def test_the_run_that_was_cut_inside_its_thought_is_reasoning() -> None:
    facts = one("pydantic__pydantic-ai__test_max_completion_tokens.yaml", "qwen3")
    result = facts.results[0]
    assert facts.finish_reason == "length"
    assert (result.full.reasoning, result.full.content) == (facts.raw.removeprefix("<think>"), None)
    assert (result.status, result.checks.answered) == ("ok", True)


@pytest.mark.parametrize(
    "name",
    [
        "pydantic__pydantic-ai__test_groq_model_thinking_part_iter.1.sse",
        "vercel__ai__deepseek-reasoning.chunks.txt",
        "vercel__ai__deepseek-reasoning.json",
        "vercel__ai__groq-reasoning.chunks.txt",
        "crmne__ruby_llm__chat_streaming_responses_gpustack_qwen3_supports_streaming_responses.0.sse",
        "pydantic__pydantic-ai__test_crusoe_tool_calling.yaml",
        "Arize-ai__openinference__test_chat_stream.0.ndjson",
        "pydantic__pydantic-ai__test_anthropic_model_thinking_part_stream.0.sse",
        "vercel__ai__lmstudio-tool-call.1.chunks.txt",
    ],
)
def test_a_rebuilt_recording_gives_its_split_back(name: str) -> None:
    facts = one(name, "qwen3")
    assert facts.lossy
    assert facts.results[0].matches_recorded is True
    assert facts.best == ("qwen3",)


def test_magistral_is_rebuilt_with_its_own_markers() -> None:
    facts = one("pydantic__pydantic-ai__test_mistral_model_thinking_part_iter.0.sse", "qwen3")
    assert facts.raw.startswith("[THINK]")
    assert facts.raw.count("[/THINK]") == 1
    assert facts.results[0].checks.answered is False
