"""The replay cases from the field against the parser models, mode by mode. Needs ../shared beside the repository."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reasonctl import parsers
from reasonctl.parsers.assumed import AssumedVocabulary
from reasonctl.parsers.run import ModeResult, run_parser

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases" / "field-cases.jsonl"
if not CASES.exists():
    pytest.skip("../shared/cases is not beside this clone; tests/ restates what it teaches", allow_module_level=True)

ALL: list[dict[str, Any]] = [
    json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines() if line.strip()
]
REPLAYS = [case for case in ALL if case["id"].startswith("R") and parsers.row(case["input"]["parser"]).modelled]
COUNTS = [
    (case, name)
    for case in ALL
    if case["id"].startswith("L")
    for name in case["input"]["parsers"]
    if parsers.row(name).modelled
]
CHUNKINGS = {
    "stream_given_deltas": "recorded", "stream_1_per_delta": "token", "stream_3_per_delta": "3",
    "stream_all_per_delta": "whole",
}  # fmt: skip


def test_there_are_cases() -> None:
    assert len(REPLAYS) >= 15
    assert len(COUNTS) >= 9


@pytest.mark.parametrize("case", REPLAYS, ids=[case["id"] for case in REPLAYS])
def test_every_mode_gives_what_vllm_gave(case: dict[str, Any]) -> None:
    given, seen = case["input"], case["observed_vllm_0_33_0"]
    vocabulary = AssumedVocabulary(("<response>", "</response>"))
    deltas = [(delta["text"], None) for delta in given["deltas"]] if given.get("deltas") else None
    run = run_parser(
        given["parser"],
        vocabulary,
        given["chat_template_kwargs"] or {},
        text=given["model_output"],
        deltas=deltas,
        prompt_ids=vocabulary.encode(given["prompt_tail"]),
        chunkings=[CHUNKINGS[mode] for mode in seen if mode != "non_stream"],
    )
    modes: dict[str | None, ModeResult] = {None: run.full} | {result.chunking: result for result in run.stream}
    for mode, expected in seen.items():
        got = modes[CHUNKINGS.get(mode)]
        assert got.reasoning == expected["reasoning"], mode
        if given.get("tool_parser") is None:
            assert got.content == expected["content"], mode
        else:
            # Seen behind a tool parser, which takes the call out; here it stays in content as it was written.
            output = given["model_output"]
            call = output[output.index("<tool_call>") : output.index("</tool_call>")]
            assert call in (got.content or ""), mode


@pytest.mark.parametrize(("case", "name"), COUNTS, ids=[f"{case['id']}-{name}" for case, name in COUNTS])
def test_every_parser_counts_as_vllm_counted(case: dict[str, Any], name: str) -> None:
    given = case["input"]
    vocabulary = AssumedVocabulary()
    run = run_parser(
        name, vocabulary, {}, text=given["model_output"], prompt_ids=vocabulary.encode(given["prompt_tail"])
    )
    assert run.reasoning_tokens == case["expected"]["observed_vllm_0_33_0"][name]
