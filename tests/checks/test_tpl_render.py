"""The TPL rules on rendering: what raises or is ignored, two templates at odds, a tokenizer that loses text."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from reasonctl.checks.coverage import coverage
from reasonctl.checks.facts import TokenizerFault
from reasonctl.checks.tpl_render import TokenizerLosesText
from reasonctl.prompts.model import load_model
from reasonctl.prompts.tokenizer import LoadCheck, Tokenizer

from .models import OPEN, OPEN_SWITCH, SILENT, chatml, folder, judge, judge_folder, lone, server

LEVELS = (
    "{% if reasoning_effort is defined and reasoning_effort not in ['low', 'medium', 'xhigh'] %}"
    "{{ raise_exception('bad effort') }}{% endif %}"
)


def refusing(condition: str) -> str:
    return "{% if " + condition + " %}{{ raise_exception('not here') }}{% endif %}"


def test_tpl008_is_an_error_for_a_plain_conversation() -> None:
    found = lone(chatml(OPEN, head="{{ messages.nothing.at_all }}")).get("TPL008")
    assert found.severity == "error"
    assert found.evidence["kind"] == "raised"
    assert {cell["conversation"] for cell in found.evidence["cells"]} >= {"single_turn", "multi_turn", "system"}


def test_tpl008_points_at_the_line_that_raises(tmp_path: Path) -> None:
    template = "{# first line #}\n{{ messages.nothing.at_all }}\n" + chatml(OPEN)
    found = judge_folder(folder(tmp_path / "m", template), "qwen3").get("TPL008")
    assert found.location is not None
    assert found.location.line == 2


def test_tpl008_is_a_warning_where_a_system_message_is_refused_on_purpose() -> None:
    found = lone(chatml(OPEN, head=refusing("messages[0].role == 'system'"))).get("TPL008")
    assert found.severity == "warning"
    assert found.subject["conversation"] == "system"


@pytest.mark.parametrize(("tools", "severity"), [(False, "warning"), (True, "error")])
def test_tpl008_weighs_tool_conversations_by_the_serve_command(tools: bool, severity: str) -> None:
    template = chatml(OPEN, head=refusing("messages[-1].role == 'tool'"))
    found = lone(template, "qwen3", server=server("qwen3", tools=tools)).get("TPL008")
    assert found.severity == severity
    assert found.subject["conversation"] == "tool_result"


def test_tpl008_is_silent_for_a_template_that_renders_and_for_odd_values_of_other_kwargs() -> None:
    assert "TPL008" not in lone(chatml(OPEN)).rules
    assert "TPL008" not in lone(chatml(OPEN, head=refusing("persona == 'pirate'"))).rules


def test_a_template_that_eats_memory_costs_its_results_and_nothing_else() -> None:
    judged = lone(chatml(OPEN, head="{{ ('x' * 99999999) ~ ('y' * 99999999) ~ ('z' * 999999999) }}"))
    found = judged.get("TPL008")
    assert found.severity == "error"
    assert found.evidence["kind"] in ("memory", "output", "crashed", "unseen")
    assert judged.facts.recommended is None
    assert {row.surface for row in coverage(judged.facts)} == {
        "template",
        "prompt",
        "tokenizer",
        "parser",
        "server",
        "budget",
    }


def test_tpl009_names_the_levels_that_raise_and_the_map_that_mends_it() -> None:
    found = lone(chatml(OPEN, head=LEVELS)).get("TPL009")
    assert found.severity == "warning"
    assert found.evidence["rejected"] == ["none", "minimal", "high", "max"]
    assert found.evidence["accepted"] == ["low", "medium", "xhigh"]
    assert """--reasoning-effort-map '{"minimal": "low", "high": "xhigh", "max": "xhigh"}'""" in found.hint


def test_tpl009_is_silent_where_every_level_renders_and_where_the_server_maps_them() -> None:
    assert "TPL009" not in lone(chatml(OPEN)).rules
    mapped = server("qwen3", effort_map={"none": "low", "minimal": "low", "high": "xhigh", "max": "xhigh"})
    assert "TPL009" not in lone(chatml(OPEN, head=LEVELS), "qwen3", server=mapped).rules


def test_tpl009_keeps_what_the_servers_own_map_has() -> None:
    mapped = server("qwen3", effort_map={"high": "xhigh"})
    hint = lone(chatml(OPEN, head=LEVELS), "qwen3", server=mapped).get("TPL009").hint
    assert """--reasoning-effort-map '{"high": "xhigh", "minimal": "low", "max": "xhigh"}'""" in hint


def test_tpl010_tells_levels_with_one_prompt() -> None:
    head = (
        "{% if reasoning_effort is defined %}Effort: {{ 'high' if reasoning_effort == 'high' else 'max' }}{% endif %}"
    )
    found = lone(chatml(OPEN, head=head)).get("TPL010")
    assert found.severity == "info"
    assert found.evidence["same_prompt"] == [["none", "minimal", "low", "medium", "xhigh", "max"]]


def test_tpl010_is_silent_where_levels_differ_or_the_effort_is_not_read() -> None:
    assert "TPL010" not in lone(chatml(OPEN, head="{{ reasoning_effort }}")).rules
    assert "TPL010" not in lone(chatml(OPEN)).rules


def test_tpl012_compares_the_two_templates_of_a_folder(tmp_path: Path) -> None:
    path = folder(tmp_path / "m", chatml(OPEN))
    with_other_template(path, chatml(SILENT))
    found = judge_folder(path, "qwen3").get("TPL012")
    assert found.severity == "warning"
    assert found.location is not None
    assert found.location.path == str(path / "tokenizer_config.json")
    assert found.evidence["differs"][0] == {
        "conversation": "single_turn",
        "variant": {},
        "used": "open",
        "other": "none",
    }


def test_tpl012_is_silent_where_both_leave_the_same_state(tmp_path: Path) -> None:
    path = folder(tmp_path / "m", chatml(OPEN))
    with_other_template(path, chatml("<think>"))
    assert "TPL012" not in judge_folder(path, "qwen3").rules


def test_tpl014_fires_for_a_tokenizer_that_loses_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = LoadCheck("transformers 5.19.0", "LlamaTokenizer", 300, None, "a b", "ab")
    monkeypatch.setattr(Tokenizer, "check", lambda self, python=None: broken)
    found = judge_folder(folder(tmp_path / "m", chatml(OPEN)), "qwen3").get("TPL014")
    assert found.severity == "error"
    assert found.evidence["given_back"] == "ab"
    assert "5.19.0" in found.message


def test_tpl014_is_silent_for_a_tokenizer_that_gives_text_back(tmp_path: Path) -> None:
    assert "TPL014" not in judge_folder(folder(tmp_path / "m", chatml(OPEN)), "qwen3").rules


def test_tpl014_is_one_finding_however_many_faults(tmp_path: Path) -> None:
    judged = judge(load_model(str(folder(tmp_path / "m", chatml(OPEN_SWITCH)))), "qwen3")
    faults = (TokenizerFault("one"), TokenizerFault("two"))
    assert len(list(TokenizerLosesText.check(replace(judged.facts, tokenizer_faults=faults)))) == 1


def with_other_template(path: Path, template: str) -> None:
    config = json.loads((path / "tokenizer_config.json").read_text())
    (path / "tokenizer_config.json").write_text(json.dumps({**config, "chat_template": template}, indent=1))
