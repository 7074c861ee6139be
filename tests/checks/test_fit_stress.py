"""FIT rules on stress probes: they tell, and never decide whether a parser fits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reasonctl.checks.facts import AuditFacts
from reasonctl.checks.fit_stress import BreaksOnLargerDeltas, DeltaSizeMatters, StreamDiffers
from reasonctl.checks.trial import Trial
from reasonctl.parsers import Target
from reasonctl.parsers.run import ModeResult

from .models import (
    CHATML_SPECIAL,
    OPEN,
    OPEN_SWITCH,
    SILENT,
    SWITCH,
    THINK,
    TOOL,
    chatml,
    folder,
    judge_folder,
    lone,
    server,
)


def with_stress(facts: AuditFacts, probe: str, chunking: str, got: ModeResult) -> AuditFacts:
    """The facts with one mode of one stress probe of the judged parser replaced."""
    judged = facts.judged
    assert judged is not None

    def changed(trial: Trial) -> Trial:
        if trial.probe.name != probe or trial.run is None:
            return trial
        stream = tuple(got if mode.chunking == chunking else mode for mode in trial.run.stream)
        return replace(trial, run=replace(trial.run, stream=stream))

    mine = replace(judged, stress=tuple(changed(trial) for trial in judged.stress))
    return replace(facts, candidates=tuple(mine if c.name == mine.name else c for c in facts.candidates))


def test_fit107_fires_where_the_modes_split_one_output_differently() -> None:
    facts = lone(chatml(OPEN), "qwen3").facts
    other = with_stress(facts, "empty-thought", "token", ModeResult("token", "It is four.", None, 3))
    (found,) = StreamDiffers.check(other)
    assert found.severity == "warning"
    assert found.evidence["probes"] == ["empty-thought"]
    assert facts.judged is not None
    assert facts.judged.fit == "pass"


def test_fit107_is_silent_where_the_modes_agree_but_for_white_space() -> None:
    facts = lone(chatml(OPEN), "qwen3").facts
    assert list(StreamDiffers.check(facts)) == []
    spaced = with_stress(facts, "empty-thought", "token", ModeResult("token", "", "\nIt is four. ", 3))
    assert list(StreamDiffers.check(spaced)) == []


def test_fit108_fires_where_a_start_marker_shares_its_delta() -> None:
    judged = lone(chatml(SILENT), "deepseek_r1")
    found = judged.get("FIT108")
    assert found.severity == "warning"
    assert found.evidence["chunking"] == "3"
    assert found.evidence["got"]["reasoning"].startswith("<think>")
    candidate = judged.facts.judged
    assert candidate is not None
    assert all(trial.passed for trial in candidate.trials if trial.cell.conversation == "single_turn")


def test_fit108_is_silent_for_an_engine_parser_and_for_a_block_the_prompt_opens() -> None:
    assert "FIT108" not in lone(chatml(SILENT), "qwen3").rules
    assert "FIT108" not in lone(chatml(OPEN), "deepseek_r1").rules


@pytest.mark.parametrize(
    ("got", "what"),
    [
        (ModeResult("3", None, None, 0, "AssertionError"), "raises AssertionError"),
        (ModeResult("3", "Let me see, two and two make four.", None, 4), "loses text"),
    ],
)
def test_fit119_fires_where_larger_deltas_break_the_parser(got: ModeResult, what: str) -> None:
    facts = with_stress(lone(chatml(OPEN), "qwen3").facts, "thinks-on-then-answers", "3", got)
    (found,) = BreaksOnLargerDeltas.check(facts)
    assert found.severity == "warning"
    assert what in found.message
    assert list(DeltaSizeMatters.check(facts)) == []


def test_fit119_is_silent_where_nothing_is_lost() -> None:
    assert "FIT119" not in lone(chatml(SILENT), "deepseek_r1").rules


def test_fit109_tells_where_a_cut_thought_lands() -> None:
    found = lone(chatml(OPEN_SWITCH), "qwen3").get("FIT109")
    assert found.severity == "info"
    assert found.evidence["lands"] == {
        "on": {"full": "reasoning", "streamed": "reasoning"},
        "off": {"full": "content", "streamed": "content"},
    }


def test_fit109_and_fit110_have_nothing_to_tell_of_a_model_that_does_not_think() -> None:
    rules = lone(chatml(), "qwen3").rules
    assert "FIT109" not in rules
    assert "FIT110" not in rules


def test_fit110_tells_that_a_literal_end_marker_splits() -> None:
    found = lone(chatml(OPEN), "qwen3").get("FIT110")
    assert found.severity == "info"
    assert "writes-the-end-marker-in-its-thought" in found.evidence["probes"]


def test_fit111_fires_where_another_parser_ends_reasoning_at_the_call() -> None:
    judged = lone(chatml(OPEN, tools=True), "deepseek_r1")
    found = judged.get("FIT111")
    assert found.severity == "warning"
    assert "qwen3" in found.evidence["ends_there"]
    assert "<tool_call>" in found.evidence["client"]["reasoning"]


def test_fit111_is_an_error_where_the_server_enables_tools() -> None:
    judged = lone(chatml(OPEN, tools=True), "deepseek_r1", server=server("deepseek_r1", tools=True))
    assert judged.get("FIT111").severity == "error"


def test_fit111_is_silent_for_a_parser_that_knows_the_call_and_without_tools() -> None:
    assert "FIT111" not in lone(chatml(OPEN, tools=True), "qwen3").rules
    assert "FIT111" not in lone(chatml(OPEN), "deepseek_r1").rules


def test_fit112_fires_where_decoding_hides_the_markers(tmp_path: Path) -> None:
    path = folder(tmp_path / "m", chatml(OPEN_SWITCH), plain=TOOL, special=(*THINK, *CHATML_SPECIAL))
    judged = judge_folder(path, "deepseek_r1")
    found = judged.get("FIT112")
    assert found.severity == "error"
    assert found.evidence["client"]["content"] is None
    assert [marker["special"] for marker in found.evidence["markers"]] == [True, True]
    assert "qwen3" in found.hint


def test_fit112_is_silent_for_plain_markers_and_for_a_parser_that_keeps_them(tmp_path: Path) -> None:
    plain = folder(tmp_path / "plain", chatml(OPEN_SWITCH))
    special = folder(tmp_path / "special", chatml(OPEN_SWITCH), plain=TOOL, special=(*THINK, *CHATML_SPECIAL))
    assert "FIT112" not in judge_folder(plain, "deepseek_r1").rules
    assert "FIT112" not in judge_folder(special, "qwen3").rules


def test_fit112_does_not_change_the_fit(tmp_path: Path) -> None:
    path = folder(tmp_path / "m", chatml(OPEN), plain=TOOL, special=(*THINK, *CHATML_SPECIAL))
    candidate = judge_folder(path, "deepseek_r1").facts.judged
    assert candidate is not None
    assert candidate.fit == "pass"


def test_fit118_fires_where_a_prompt_opened_block_counts_nothing() -> None:
    found = lone(chatml(OPEN), "deepseek_r1").get("FIT118")
    assert found.severity == "warning"
    assert found.evidence["reasoning_tokens"] == 0
    assert "qwen3" in found.evidence["counts"]


def test_fit118_is_silent_for_parsers_that_count_and_for_blocks_the_output_opens() -> None:
    assert "FIT118" not in lone(chatml(OPEN), "qwen3").rules
    assert "FIT118" not in lone(chatml(SWITCH), "deepseek_r1").rules
    assert "FIT118" not in lone(chatml(OPEN), "deepseek_r1", target=Target("vllm", (0, 27, 0))).rules
