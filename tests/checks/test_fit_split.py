"""FIT rules on core probes: which request gets a wrong split, named by its cause, once."""

from __future__ import annotations

from pathlib import Path

from reasonctl.checks.finding import Location
from reasonctl.parsers import Target

from .models import BARE_SWITCH, OPEN, OPEN_SWITCH, SILENT, SWITCH, chatml, folder, judge_folder, lone, server

THOUGHT, ANSWER = "Let me see, two and two make four.", "It is four."


def test_fit104_fires_where_an_opened_block_is_not_filed_as_reasoning() -> None:
    judged = lone(chatml(OPEN), "minimax_m2_append_think")
    found = judged.get("FIT104")
    assert found.severity == "error"
    assert found.evidence["client"]["reasoning"] is None
    assert judged.errors == ["FIT104"]


def test_fit104_is_silent_for_a_parser_that_needs_no_start_marker() -> None:
    assert "FIT104" not in lone(chatml(OPEN), "deepseek_r1").rules


def test_fit105_fires_where_a_closed_prompt_sends_the_answer_to_reasoning(tmp_path: Path) -> None:
    judged = judge_folder(folder(tmp_path / "m", chatml(OPEN_SWITCH)), "deepseek_r1", server=server("deepseek_r1"))
    found = judged.get("FIT105")
    assert found.severity == "error"
    assert found.confidence == "high"
    assert found.location == Location("serve.sh", 3, 5)
    assert found.subject["variant"] == {"enable_thinking": False}
    assert found.evidence["request"] == {"chat_template_kwargs": {"enable_thinking": False}}
    assert found.evidence["client"] == {"reasoning": ANSWER, "content": None}
    assert found.evidence["streamed"] == {"reasoning": None, "content": ANSWER}
    assert found.evidence["also"] == ["FIT107"]
    assert {"conversation": "single_turn", "variant": {"reasoning_effort": "none"}} in found.evidence["cells"]
    assert "qwen3" in found.hint
    assert judged.errors == ["FIT105"]


def test_fit105_fires_for_markers_the_parser_does_not_know() -> None:
    judged = lone(chatml(SWITCH), "seed_oss")
    found = judged.get("FIT105")
    assert found.subject["variant"] == {}
    assert found.evidence["client"]["content"] is None
    assert "FIT106" in found.evidence["also"]
    assert "</seed:think>" in found.evidence["because"]
    assert judged.errors == ["FIT105"]


def test_fit105_is_silent_for_the_parser_that_follows_the_switch() -> None:
    assert lone(chatml(OPEN_SWITCH), "qwen3").errors == []
    assert lone(chatml(SWITCH), "qwen3").errors == []


def test_0_32_reads_no_prompt_in_full_where_0_33_does() -> None:
    tail = "{% if thinking is defined and not thinking %}<think>\n\n</think>\n\n{% else %}<think>\n{% endif %}"
    assert "FIT105" not in lone(chatml(tail), "qwen3").rules
    older = lone(chatml(tail), "qwen3", target=Target("vllm", (0, 32, 0))).get("FIT105")
    assert older.subject["variant"] == {"thinking": False}


def test_fit106_fires_for_a_marker_in_the_text() -> None:
    found = lone(chatml(SILENT), "step3").get("FIT106")
    assert found.severity == "error"
    assert found.evidence["client"]["reasoning"] == f"<think>{THOUGHT}"


def test_fit106_is_silent_for_a_parser_that_takes_the_start_marker_out() -> None:
    assert "FIT106" not in lone(chatml(SILENT), "qwen3").rules


def test_fit106_names_the_tool_instructions_that_end_thinking() -> None:
    found = lone(chatml(SILENT, tools=True), "minicpmv").get("FIT106")
    assert found.subject["conversation"] == "tools"
    assert "<tool_call>" in found.evidence["because"]


def test_a_kwarg_the_template_does_not_read_is_a_warning() -> None:
    judged = lone(chatml(OPEN), "glm45")
    found = judged.get("FIT104")
    assert found.severity == "warning"
    assert found.subject["variant"] == {"thinking": False}
    assert judged.errors == []
    candidate = judged.facts.judged
    assert candidate is not None
    assert candidate.fit == "pass"
    assert candidate.elsewhere > 0


def test_a_kwarg_that_a_request_really_sends_is_an_error() -> None:
    judged = lone(chatml(OPEN), "glm45", asked=[{"thinking": False}])
    assert judged.get("FIT104").severity == "error"


def test_fit113_fires_for_a_parser_that_is_off_while_a_plain_prompt_is_open() -> None:
    judged = lone(chatml(OPEN_SWITCH), "poolside_v1")
    found = judged.get("FIT113")
    assert found.severity == "error"
    assert found.subject["variant"] == {}
    assert found.evidence["passes_with"] == {"enable_thinking": True}
    assert found.evidence["also"] == ["FIT104", "FIT106"]
    assert "--default-chat-template-kwargs '{\"enable_thinking\": true}'" in found.hint
    assert judged.errors == ["FIT113"]


def test_fit113_is_silent_where_the_server_switches_it_on_and_where_the_prompt_is_closed() -> None:
    switched = server("poolside_v1", default_kwargs={"enable_thinking": True})
    assert lone(chatml(OPEN_SWITCH), "poolside_v1", server=switched).errors == []
    assert lone(chatml(BARE_SWITCH), "deepseek_v3").errors == []


def test_fit114_fires_where_the_effort_moves_the_parser_alone() -> None:
    judged = lone(chatml(BARE_SWITCH), "deepseek_v3")
    found = judged.get("FIT114")
    assert found.severity == "warning"
    assert found.subject["variant"]["reasoning_effort"] == "high"
    assert {"conversation": "single_turn", "variant": {"enable_thinking": True}} in found.evidence["cells"]
    assert "FIT105" in found.evidence["also"]
    assert "thinking" in found.hint
    assert judged.errors == []


def test_fit114_is_silent_where_the_template_follows() -> None:
    assert "FIT114" not in lone(chatml(OPEN_SWITCH), "qwen3").rules


def test_fit121_fires_where_an_old_end_ends_this_turn() -> None:
    found = lone(chatml(SILENT, keeps=True), "kimi_k2").get("FIT121")
    assert found.severity == "error"
    assert found.subject["conversation"] == "multi_turn"
    assert found.evidence["streamed"]["reasoning"] is None
    assert "reads the whole prompt" in found.evidence["because"]


def test_fit121_is_silent_at_a_turn_boundary_and_without_history() -> None:
    assert "FIT121" not in lone(chatml(SILENT, keeps=True), "qwen3").rules
    assert "FIT121" not in lone(chatml(SILENT), "kimi_k2").rules


def test_confidence_follows_what_was_run_on(tmp_path: Path) -> None:
    path = folder(tmp_path / "m", chatml(OPEN_SWITCH))
    assert judge_folder(path, "deepseek_r1").get("FIT105").confidence == "high"
    assert lone(chatml(OPEN_SWITCH), "deepseek_r1").get("FIT105").confidence == "medium"
    older = judge_folder(path, "deepseek_r1", target=Target("vllm", (0, 30, 0))).get("FIT105")
    assert older.confidence == "medium"
    assert older.message.endswith("(modelled on 0.33.0)")


def test_a_prompt_that_may_mean_either_convicts_nobody() -> None:
    opened_on_request = chatml("{% if enable_thinking %}<think>\n{% endif %}")
    for parser in ("qwen3", "deepseek_v3"):
        judged = lone(opened_on_request, parser)
        candidate = judged.facts.judged
        assert candidate is not None
        assert judged.errors == []
        assert candidate.skipped > 0


def test_a_thought_is_not_continued_where_the_request_switches_thinking_off() -> None:
    candidate = lone(chatml(SWITCH), "qwen3").facts.judged
    assert candidate is not None
    assert candidate.trial("continue_final_message", {"enable_thinking": False}) is None
    trial = candidate.trial("continue_final_message", {})
    assert trial is not None
    assert trial.cell.state == "open"
    assert trial.passed


def test_a_version_before_the_modelled_ones_is_known_from_history_alone() -> None:
    old = lone(chatml(OPEN), "qwen3", target=Target("vllm", (0, 10, 0))).get("FIT104")
    assert (old.severity, old.confidence) == ("error", "low")
    assert "deepseek_r1" in old.hint
    assert "FIT104" not in lone(chatml(OPEN), "qwen3", target=Target("vllm", (0, 19, 0))).rules


def test_fit114_names_the_kwarg_that_a_client_sends_by_hand() -> None:
    judged = lone(chatml(BARE_SWITCH), "deepseek_v3", asked=[{"enable_thinking": True}])
    assert judged.get("FIT114").severity == "warning"
    assert judged.errors == []
