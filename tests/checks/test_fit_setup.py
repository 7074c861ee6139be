"""FIT rules on the choice of the parser: missing, unknown, not buildable, for another kind of model, none that fits."""

from __future__ import annotations

from pathlib import Path

import pytest

from reasonctl.checks.coverage import coverage
from reasonctl.checks.finding import Location
from reasonctl.parsers import Target

from .models import HARMONY, OPEN, OPEN_SWITCH, SWITCH, TOOL, chatml, folder, judge_folder, lone, server

INSTRUCT = chatml()


def test_fit101_fires_where_a_thinking_model_has_no_parser() -> None:
    found = lone(chatml(SWITCH), None, server=server(None)).get("FIT101")
    assert found.severity == "error"
    assert found.location == Location("serve.sh", 1, 1)
    assert found.hint.startswith("add --reasoning-parser ")


def test_fit101_is_silent_with_a_parser_without_thinking_and_for_gpt_oss() -> None:
    assert "FIT101" not in lone(chatml(SWITCH), "qwen3").rules
    assert "FIT101" not in lone(INSTRUCT, None).rules
    assert "FIT101" not in lone(HARMONY, None, model_type="gpt_oss").rules


def test_fit102_offers_near_names() -> None:
    judged = lone(chatml(SWITCH), "qwen-3", server=server("qwen-3"))
    found = judged.get("FIT102")
    assert found.severity == "error"
    assert "qwen3" in found.hint
    assert found.location == Location("serve.sh", 3, 5)
    assert [rule for rule in judged.rules if rule.startswith("FIT")] == ["FIT102"]


def test_fit102_says_which_version_brought_the_name() -> None:
    found = lone(chatml(SWITCH), "step5", target=Target("vllm", (0, 32, 0))).get("FIT102")
    assert "0.33" in found.hint


def test_fit102_is_silent_for_a_registered_name() -> None:
    assert "FIT102" not in lone(chatml(SWITCH), "step5").rules


def test_fit103_fires_where_the_vocabulary_has_no_such_token(tmp_path: Path) -> None:
    judged = judge_folder(folder(tmp_path / "m", chatml(OPEN), plain=TOOL), "deepseek_r1")
    found = judged.get("FIT103")
    assert found.severity == "error"
    assert found.confidence == "high"
    assert found.evidence["raised"].startswith("RuntimeError: ")
    assert [marker["single_token"] for marker in found.evidence["markers"]] == [False, False]
    assert judged.errors == ["FIT103"]
    candidate = judged.facts.judged
    assert candidate is not None
    assert candidate.fit == "unsupported"


def test_fit103_is_silent_where_it_has_and_for_a_parser_that_matches_text(tmp_path: Path) -> None:
    assert "FIT103" not in judge_folder(folder(tmp_path / "with", chatml(OPEN)), "deepseek_r1").rules
    assert "FIT103" not in judge_folder(folder(tmp_path / "without", chatml(OPEN), plain=TOOL), "qwen3").rules


def test_fit103_finds_a_parser_that_raises_once_thinking_is_on(tmp_path: Path) -> None:
    switch = "{% if thinking %}<think>{% else %}</think>{% endif %}"
    judged = judge_folder(folder(tmp_path / "m", chatml(switch), plain=TOOL), "deepseek_v3")
    assert judged.get("FIT103").subject["variant"] == {"thinking": True}


@pytest.mark.parametrize("parser", ["qwen3", "deepseek_r1", "glm45"])
def test_fit115_fires_for_a_think_parser_on_a_harmony_model(parser: str) -> None:
    judged = lone(HARMONY, parser)
    found = judged.get("FIT115")
    assert found.severity == "error"
    assert "openai_gptoss" in found.hint
    assert judged.errors == ["FIT115"]
    assert not judged.facts.thinking.start


def test_fit115_fires_for_the_harmony_parser_on_a_think_model() -> None:
    found = lone(chatml(SWITCH), "openai_gptoss").get("FIT115")
    assert found.severity == "error"
    assert found.confidence == "medium"


def test_fit115_is_silent_where_both_are_of_one_kind() -> None:
    assert "FIT115" not in lone(HARMONY, "openai_gptoss").rules
    assert "FIT115" not in lone(chatml(SWITCH), "qwen3").rules


def test_fit120_fires_for_a_model_that_does_not_think_whatever_the_vocabulary_holds(tmp_path: Path) -> None:
    judged = judge_folder(folder(tmp_path / "m", INSTRUCT), "deepseek_r1")
    found = judged.get("FIT120")
    assert found.severity == "error"
    assert found.evidence["client"] == {"reasoning": "It is four.", "content": None}
    assert judged.errors == ["FIT120"]
    assert judged.facts.recommended is None


def test_fit120_is_silent_for_thinking_models_harmless_parsers_and_rerankers() -> None:
    assert "FIT120" not in lone(chatml(SWITCH), "deepseek_r1").rules
    assert "FIT120" not in lone(INSTRUCT, "poolside_v1").errors
    assert "FIT120" not in lone(INSTRUCT, "deepseek_r1", source="acme/Reranker-1B").rules
    assert "FIT120" not in lone(INSTRUCT, "deepseek_r1", architectures=["BertForSequenceClassification"]).rules


def test_fit122_fires_where_no_parser_speaks_the_models_markers() -> None:
    judged = lone(chatml("<thought>\n"))
    found = judged.get("FIT122")
    assert found.severity == "warning"
    assert found.evidence["best"] in {candidate.name for candidate in judged.facts.candidates}
    assert judged.facts.recommended is None


def test_fit122_is_silent_where_one_passes() -> None:
    assert "FIT122" not in lone(chatml(OPEN_SWITCH)).rules


def test_auto_recommends_the_parser_that_the_table_names_if_it_passes() -> None:
    assert lone(chatml(OPEN), source="acme/GLM-4.5-copy").facts.recommended == "glm45"
    assert lone(chatml(OPEN), model_type="qwen3").facts.recommended == "qwen3"


def test_auto_recommends_the_best_that_passes_where_the_named_one_fails() -> None:
    judged = lone(chatml(OPEN_SWITCH), source="poolside/Laguna-X")
    assert judged.facts.named == ("poolside_v1",)
    assert judged.facts.recommended == "qwen3"


def test_a_model_with_no_thinking_needs_no_parser() -> None:
    judged = lone(INSTRUCT)
    assert judged.facts.recommended is None
    assert judged.errors == []
    assert "FIT122" not in judged.rules


def test_a_parser_that_cannot_be_run_here_is_said_to_be_so() -> None:
    judged = lone(chatml(OPEN), "hunyuan_a13b")
    assert not [rule for rule in judged.rules if rule.startswith("FIT")]
    row = next(row for row in coverage(judged.facts) if row.surface == "parser")
    assert row.status == "skipped"
    assert row.reason is not None and row.reason.startswith("hunyuan_a13b: ")
