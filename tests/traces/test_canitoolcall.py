"""A fixture of canitoolcall is a trace whose server is what a right engine gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reasonctl.errors import InputError
from reasonctl.traces.canitoolcall import parser_of
from reasonctl.traces.read import read_traces
from reasonctl.traces.trace import BrokenLine, Trace

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
FIXTURE: dict[str, Any] = {
    "id": "qwen3-hermes/one",
    "family": "qwen3-hermes",
    "models": ["Qwen/Qwen3-0.6B"],
    "spec_version": "0.1",
    "tools": [TOOL],
    "raw_output": '<think>hm</think><tool_call>{"name": "f"}</tool_call>',
    "output_token_ids": [1, 2, 3],
    "generation_prompt": "<|im_start|>assistant\n",
    "thinking": True,
    "expected": {
        "content": None,
        "reasoning_content": "hm",
        "tool_calls": [{"name": "f", "arguments": {"a": "Grüße"}}],
    },
    "tags": ["reasoning"],
}


def read(folder: Path, *fixtures: dict[str, Any], family: Any = None, **options: Any) -> list[Trace | BrokenLine]:
    path = folder / "fixtures.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in fixtures), encoding="utf-8")
    if family is not None:
        (folder / "family.json").write_text(json.dumps(family), encoding="utf-8")
    return list(read_traces(str(path), **options))


def one(folder: Path, *, family: Any = None, **changed: Any) -> Trace:
    (trace,) = read(
        folder, {key: value for key, value in {**FIXTURE, **changed}.items() if value != "no"}, family=family
    )
    assert isinstance(trace, Trace), trace
    return trace


def test_a_fixture(tmp_path: Path) -> None:
    trace = one(tmp_path)
    assert (trace.id, trace.source, trace.model) == ("qwen3-hermes/one", "canitoolcall", "Qwen/Qwen3-0.6B")
    assert (trace.output_text, trace.output_ids) == (FIXTURE["raw_output"], (1, 2, 3))
    assert (trace.prompt_text, trace.lossy, trace.streamed) == ("<|im_start|>assistant\n", False, False)
    assert trace.request == {"tools": [TOOL], "chat_template_kwargs": {"enable_thinking": True, "thinking": True}}
    recorded = trace.recorded
    assert recorded is not None
    assert (recorded.parser, recorded.has_split, recorded.finish_reason) == ("qwen3", True, "tool_calls")
    assert (recorded.reasoning, recorded.content) == ("hm", None)
    assert recorded.tool_calls == ({"type": "function", "function": {"name": "f", "arguments": '{"a": "Grüße"}'}},)
    assert trace.extra["tags"] == ["reasoning"]


def test_one_that_is_cut_or_malformed(tmp_path: Path) -> None:
    trace = one(tmp_path, expected="no", expected_error={"accept": ["exception"]}, tags=["truncated"])
    assert trace.recorded is not None
    assert (trace.recorded.has_split, trace.finish_reason) == (False, "length")


@pytest.mark.parametrize(
    ("thinking", "own", "default", "prompt"),
    [
        (None, "no", "<a><think>", "<a><think>"),
        (True, "no", "<a><think>", "<a><think>"),
        (True, "no", "<a></think>", None),
        (None, "no", "<a></think>", "<a></think>"),
        (False, "no", "<a><think>", None),
        (True, "<b>", "<a><think>", "<b>"),
    ],
)
def test_the_prompt_it_was_made_behind(
    thinking: bool | None, own: str, default: str, prompt: str | None, tmp_path: Path
) -> None:
    family = {"reference_models": [{"repo": "x"}, {"repo": "Qwen/Qwen3-0.6B", "default_generation_prompt": default}]}
    assert one(tmp_path, family=family, thinking=thinking, generation_prompt=own).prompt_text == prompt


def test_without_the_familys_file_the_prompt_is_not_known(tmp_path: Path) -> None:
    assert one(tmp_path, generation_prompt="no").prompt_text is None


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"raw_output": 5}, "raw_output is a number, where a text belongs"),
        ({"output_token_ids": ["a"]}, "output_token_ids[0] is a text, where a token id belongs"),
        ({"spec_version": "2.0"}, "newer than 0.1"),
    ],
)
def test_a_broken_fixture_costs_itself(changed: dict[str, Any], says: str, tmp_path: Path) -> None:
    broken, good = read(tmp_path, {**FIXTURE, **changed}, FIXTURE)
    assert isinstance(broken, BrokenLine)
    assert (broken.line, says in broken.reason) == (1, True)
    assert isinstance(good, Trace)


def test_another_form_is_no_fixture(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a reasonctl trace, not what --from canitoolcall names"):
        read(tmp_path, {"output": {"text": "a"}}, format="canitoolcall")


@pytest.mark.parametrize(
    ("family", "model", "parser"),
    [
        ("qwen3-hermes", "Qwen/Qwen3-4B-Thinking-2507", "deepseek_r1"),
        ("qwen3-hermes", "Qwen/Qwen3-4B-Instruct-2507", None),
        ("qwen3-xml", "Qwen/Qwen3.8-27B", "qwen3"),
        ("qwen3-xml", "Qwen/Qwen3-Coder-Next", None),
        ("gpt-oss", "openai/gpt-oss-20b", "openai_gptoss"),
        ("deepseek", "deepseek-ai/DeepSeek-V4.1-Flash", "deepseek_v41"),
        ("deepseek", "deepseek-ai/DeepSeek-V4-Flash", "deepseek_v4"),
        ("deepseek", "deepseek-ai/DeepSeek-V3.2", "deepseek_v3"),
        ("deepseek", "deepseek-ai/DeepSeek-V3-0324", None),
        ("kimi", "moonshotai/Kimi-K3", "kimi_k3"),
        ("kimi", "moonshotai/Kimi-K2.6", "kimi_k2"),
        ("kimi", "moonshotai/Kimi-K2-Instruct-0905", None),
        ("glm", "zai-org/GLM-4.5", "glm45"),
        ("glm", "zai-org/GLM-5.3", "glm47"),
        ("mistral", "mistralai/Ministral-3-14B-Reasoning-2512", "mistral"),
        ("mistral", "mistralai/Devstral-Small-2507", None),
        ("gemma4", "google/gemma-4-31B-it", "gemma4"),
        ("llama", "meta-llama/Llama-3.3-70B-Instruct", None),
        ("unheard-of", None, None),
    ],
)
def test_the_parser_a_family_names(family: str, model: str | None, parser: str | None) -> None:
    assert parser_of(family, model) == parser
