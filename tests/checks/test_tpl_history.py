"""TPL rules on earlier reasoning, and llama.cpp's default."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reasonctl.checks.facts import SentRequest
from reasonctl.checks.finding import Location
from reasonctl.checks.tpl_history import HistoryFieldUnread
from reasonctl.parsers import Target

from .models import OPEN, SWITCH, chatml, lone, server

ONLY_WHERE_ASKED = "{% if enable_thinking is defined and enable_thinking %}<think>\n{% endif %}"
KEEPS_WHERE_ASKED = chatml(OPEN).replace(
    "{% if m.role == 'assistant' %}",
    "{% if m.role == 'assistant' %}{% if preserve_thinking and m.reasoning %}"
    "<think>{{ m.reasoning }}</think>{% endif %}",
)
READS_THINKING = chatml(OPEN).replace(
    "{% if m.role == 'assistant' %}", "{% if m.role == 'assistant' %}{% if m.thinking %}{{ m.thinking }}{% endif %}"
)


def test_tpl013_fires_where_llama_cpps_default_leaves_another_state() -> None:
    found = lone(chatml(ONLY_WHERE_ASKED)).get("TPL013")
    assert found.severity == "info"
    assert "leaves none on vLLM and open with llama.cpp's default" in found.message


def test_tpl013_is_silent_where_it_does_not_and_where_the_server_sets_it() -> None:
    assert "TPL013" not in lone(chatml(SWITCH)).rules
    assert "TPL013" not in lone(chatml(OPEN)).rules
    told = server("qwen3", default_kwargs={"enable_thinking": True})
    assert "TPL013" not in lone(chatml(ONLY_WHERE_ASKED), "qwen3", server=told).rules


def test_tpl015_says_what_becomes_of_earlier_reasoning_and_what_decides() -> None:
    found = lone(KEEPS_WHERE_ASKED).get("TPL015")
    assert "reasoning, reasoning_content: dropped in a tool loop, dropped on the next user turn" in found.message
    assert "preserve_thinking=true changes that" in found.message
    (switch,) = found.evidence["switches"]
    assert switch["variant"] == {"preserve_thinking": True}
    assert switch["history"][0] == {"field": "reasoning", "tool_loop": "kept", "next_user_turn": "kept"}


def test_tpl015_is_silent_where_all_is_kept_and_where_nothing_thinks() -> None:
    assert "TPL015" not in lone(chatml(OPEN, keeps=True)).rules
    assert "TPL015" not in lone(chatml()).rules


@pytest.mark.parametrize(
    ("version", "fires"), [((0, 10, 2), True), ((0, 11, 1), False), ((0, 18, 0), False), ((0, 33, 0), False)]
)
def test_tpl016_before_anything_is_handed_on(version: tuple[int, int, int], fires: bool) -> None:
    judged = lone(chatml(OPEN, keeps=True), "qwen3", target=Target("vllm", version))
    assert ("TPL016" in judged.rules) is fires


@pytest.mark.parametrize(
    ("version", "history", "fires"),
    [
        ((0, 18, 0), ("reasoning_content",), True),
        ((0, 18, 0), ("reasoning",), False),
        ((0, 18, 0), ("reasoning", "reasoning_content"), False),
        ((0, 22, 0), ("reasoning_content",), False),
        ((0, 15, 0), ("reasoning_content",), False),
    ],
)
def test_tpl016_for_the_field_that_requests_use(
    version: tuple[int, int, int], history: tuple[str, ...], fires: bool
) -> None:
    facts = lone(chatml(OPEN, keeps=True), "qwen3", target=Target("vllm", version)).facts
    sent = (SentRequest("r1", Location("r.json", 1, 1), history=history),)
    assert bool(list(HistoryFieldUnread.check(replace(facts, requests=sent)))) is fires


def test_tpl016_for_a_template_that_reads_another_name() -> None:
    found = lone(READS_THINKING, "qwen3").get("TPL016")
    assert found.severity == "warning"
    assert "reads earlier reasoning from thinking" in found.message
    assert "TPL016" not in lone(chatml(OPEN), "qwen3").rules
