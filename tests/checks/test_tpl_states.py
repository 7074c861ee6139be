"""The TPL rules on prompt states, each on a template that shows it and on a neighbour that does not."""

from __future__ import annotations

from pathlib import Path

from reasonctl.checks.finding import Location

from .models import BARE_SWITCH, OPEN, OPEN_SWITCH, SILENT, SWITCH, chatml, folder, judge_folder, lone

THINKING_SWITCH = "{% if thinking is defined and not thinking %}<think>\n\n</think>\n\n{% else %}<think>\n{% endif %}"


def test_tpl001_fires_for_a_prompt_that_opens_thinking() -> None:
    found = lone(chatml(OPEN)).get("TPL001")
    assert found.severity == "info"
    assert found.evidence["prompt"] == "<think>\n"
    assert found.confidence == "medium"


def test_tpl001_is_silent_where_the_model_opens_thinking_itself() -> None:
    assert "TPL001" not in lone(chatml(SILENT)).rules


def test_tpl001_points_at_the_line_that_writes_the_marker(tmp_path: Path) -> None:
    template = "{# <think> #}\n" + chatml("\n" + OPEN)
    found = judge_folder(folder(tmp_path / "m", template), "qwen3").get("TPL001")
    assert found.confidence == "high"
    line = template.splitlines().index("<think>") + 1
    assert found.location == Location(str(tmp_path / "m" / "chat_template.jinja"), line)


def test_tpl002_fires_where_nothing_closes_the_block() -> None:
    found = lone(chatml(OPEN)).get("TPL002")
    assert found.severity == "warning"
    assert {"enable_thinking": False} in found.evidence["tried"]
    assert {"thinking": False} in found.evidence["tried"]


def test_tpl002_is_silent_where_a_switch_closes_it() -> None:
    assert "TPL002" not in lone(chatml(OPEN_SWITCH)).rules
    assert "TPL002" not in lone(chatml(THINKING_SWITCH)).rules


def test_tpl002_is_silent_where_another_kwarg_closes_it() -> None:
    tail = "{% if thinking_mode == 'disabled' %}</think>{% else %}<think>{% endif %}"
    assert "TPL002" not in lone(chatml(tail)).rules


def test_tpl003_fires_for_a_switch_of_another_name() -> None:
    found = lone(chatml(THINKING_SWITCH)).get("TPL003")
    assert found.severity == "warning"
    assert found.subject["key"] == "thinking"
    assert found.evidence["states"] == {"thinking=false": "closed"}


def test_tpl003_is_silent_for_enable_thinking_and_for_both_names() -> None:
    off = "{} is defined and not {}"
    both = f"{{% if {off.format(*2 * ['enable_thinking'])} or {off.format(*2 * ['thinking'])} %}}</think>{{% endif %}}"
    assert "TPL003" not in lone(chatml(SWITCH)).rules
    assert "TPL003" not in lone(chatml(both)).rules


def test_tpl003_is_silent_where_the_effort_is_the_switch() -> None:
    tail = "{% if reasoning_effort == 'none' %}</think>{% else %}<think>{% endif %}"
    assert "TPL003" not in lone(chatml(tail)).rules


def test_tpl004_fires_for_an_end_marker_alone() -> None:
    found = lone(chatml(BARE_SWITCH)).get("TPL004")
    assert found.severity == "info"
    assert found.subject["variant"] == {}
    assert found.evidence["prompt"] == "</think>"


def test_tpl004_is_silent_for_a_pair() -> None:
    assert "TPL004" not in lone(chatml(SWITCH)).rules


def test_tpl005_fires_where_an_old_end_is_the_last_marker() -> None:
    found = lone(chatml(SILENT, keeps=True)).get("TPL005")
    assert found.severity == "warning"
    assert found.subject["conversation"] == "multi_turn"
    assert found.evidence["prompt"].endswith("And 3 + 3?<|im_end|>\n<|im_start|>assistant\n")


def test_tpl005_is_silent_where_history_is_dropped_or_the_prompt_opens_anew() -> None:
    assert "TPL005" not in lone(chatml(SILENT)).rules
    assert "TPL005" not in lone(chatml(OPEN, keeps=True)).rules


def test_tpl006_fires_where_the_users_words_end_reasoning() -> None:
    found = lone(chatml(SILENT), "kimi_k2").get("TPL006")
    assert found.severity == "error"
    assert found.subject["conversation"] == "user_end_marker"
    assert found.subject["parser"] == "kimi_k2"
    assert found.evidence["streamed"]["reasoning"] is None
    assert found.evidence["streamed"]["content"].startswith("<think>")
    assert found.evidence["client"]["reasoning"] == "Let me see, two and two make four."


def test_tpl006_is_silent_for_a_parser_that_stops_at_turns_and_for_an_open_prompt() -> None:
    assert "TPL006" not in lone(chatml(SILENT), "qwen3").rules
    assert "TPL006" not in lone(chatml(OPEN), "kimi_k2").rules


def test_tpl006_is_not_evaluated_without_a_parser() -> None:
    assert "TPL006" not in lone(chatml(SILENT), None).rules


def test_tpl007_fires_where_tools_move_the_state() -> None:
    tail = "{% if tools %}<think>\n\n</think>\n\n{% else %}<think>\n{% endif %}"
    found = lone(chatml(tail)).get("TPL007")
    assert found.severity == "warning"
    assert found.subject["conversation"] == "tools"
    assert "closed" in found.message
    assert "open" in found.message


def test_tpl007_is_silent_where_tools_move_nothing() -> None:
    assert "TPL007" not in lone(chatml(OPEN_SWITCH, tools=True)).rules


def test_tpl011_counts_the_tokens_behind_an_open_marker(tmp_path: Path) -> None:
    found = judge_folder(folder(tmp_path / "m", chatml("<think>\nOk")), "qwen3").get("TPL011")
    assert found.severity == "info"
    assert found.evidence["tokens"] == 3


def test_tpl011_is_silent_behind_a_bare_marker_and_without_a_tokenizer(tmp_path: Path) -> None:
    assert "TPL011" not in judge_folder(folder(tmp_path / "m", chatml("<think>")), "qwen3").rules
    assert "TPL011" not in lone(chatml(OPEN)).rules
