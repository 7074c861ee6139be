"""Surveys of small models: states, variants, markers, token counts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reasonctl.parsers.markers import MarkerPair
from reasonctl.prompts.conversations import NAMES, SENTINEL
from reasonctl.prompts.model import LONE_TEMPLATE_TOKENS, Model, Template, load_model
from reasonctl.prompts.render import Limits
from reasonctl.prompts.survey import Survey, same_variant, survey


def of_text(text: str, **more: Any) -> Survey:
    template = Template(text, "chat_template.jinja")
    model = Model(
        source="x",
        kind="template",
        path=None,
        template=template,
        templates=(template,),
        special_tokens=LONE_TEMPLATE_TOKENS,
    )
    return survey(model, **more)


def state(found: Survey, conversation: str = "single_turn", variant: Mapping[str, Any] | None = None) -> str:
    row = found.get(conversation, variant or {})
    assert row is not None
    return row.state


CHAT = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</{{ m.role }}>{% endfor %}"


@pytest.mark.parametrize(
    ("fixture", "plain", "off"),
    [
        ("qwen3", "none", "closed"),
        ("qwen3-thinking", "open", "open"),
        ("deepseek-r1", "open", "open"),
        ("deepseek-v31", "closed-bare", "closed-bare"),
        ("glm47", "open", "closed-bare"),
        ("instruct", "none", "none"),
        ("gpt-oss", "none", "none"),
    ],
)
def test_the_shipped_models(fixture: str, plain: str, off: str) -> None:
    found = survey(load_model(f"fixture:{fixture}"))
    assert state(found) == plain
    assert state(found, variant={"enable_thinking": False}) == off
    assert {row.conversation for row in found.states} == set(NAMES)
    for row in found.states:
        assert row.prompt is not None
        assert found.model.tokenizer is not None
        assert row.token_ids == tuple(found.model.tokenizer.encode(row.prompt))


def test_a_switch_by_another_name() -> None:
    found = survey(load_model("fixture:deepseek-v31"))
    assert found.reads == {"thinking"}
    assert found.switches == (("thinking", False, True),)
    assert state(found, variant={"thinking": True}) == "open"


def test_tokens_after_an_open_marker() -> None:
    (row,) = [
        row
        for row in survey(load_model("fixture:qwen3-thinking")).states
        if (row.conversation, row.variant) == ("single_turn", {})
    ]
    assert (row.marker, row.tail, row.tokens_after_open) == ("<think>", "<think>\n", 1)
    closed = survey(load_model("fixture:qwen3")).get("single_turn", {"enable_thinking": False})
    assert closed is not None
    assert closed.tokens_after_open == 0
    lone = of_text(CHAT + "<think>\n").get("single_turn", {})
    assert lone is not None
    assert lone.tokens_after_open is None


def test_text_behind_the_users_words_counts_and_the_users_words_do_not() -> None:
    found = of_text(CHAT + "{% if add_generation_prompt %}<assistant>{% endif %}")
    assert state(found, "user_start_marker") == "none"
    assert state(found, "user_end_marker") == "none"
    after = of_text("{% for m in messages %}{{ m.content }} /think<think>{% endfor %}")
    assert state(after) == "open"


def test_a_template_that_drops_the_text_is_read_whole() -> None:
    row = of_text("<think></think>nothing of yours").get("single_turn", {})
    assert row is not None
    assert (row.state, row.after) == ("closed", "<think></think>nothing of yours")


def test_a_template_that_contains_the_sentinel_gets_another() -> None:
    row = of_text(CHAT + f"<think></think>{SENTINEL}").get("single_turn", {})
    assert row is not None
    assert row.state == "closed"


def test_a_template_that_ignores_add_generation_prompt() -> None:
    found = of_text(CHAT + "<assistant><think>")
    assert state(found) == "open"
    assert state(found, "continue_final_message") == "open"


def test_the_markers_of_a_continued_message_count() -> None:
    row = of_text(CHAT + "{% if enable_thinking is false %}<think></think>{% endif %}").get(
        "continue_final_message", {}
    )
    assert row is not None
    assert (row.state, row.tail) == ("open", "<think>partial thought")


def test_the_typed_markers_are_the_templates_own_unless_given() -> None:
    found = of_text(CHAT + "{{ '[THINK]' if enable_thinking else '' }}")
    assert found.markers == MarkerPair("[THINK]", "[/THINK]")
    row = found.get("user_end_marker", {})
    assert row is not None
    assert row.prompt is not None
    assert "[/THINK]" in row.prompt
    given = of_text(CHAT, user_markers=MarkerPair("<a>", "</a>")).get("user_start_marker", {})
    assert given is not None
    assert given.prompt is not None
    assert "<a>" in given.prompt


def test_variants_always_tried_and_those_the_template_compares() -> None:
    found = of_text(CHAT + "{% if mode == 'on' or mode == 'off' %}<think>{% endif %}{% if keep %}{% endif %}")
    assert [dict(variant) for variant in found.variants] == [
        {},
        {"enable_thinking": True},
        {"enable_thinking": False},
        {"thinking": True},
        {"thinking": False},
        {"keep": False},
        {"keep": True},
        {"mode": "off"},
        {"mode": "on"},
    ]


def efforts(found: Survey) -> list[str]:
    return [variant["reasoning_effort"] for variant in found.variants if "reasoning_effort" in variant]


def test_an_effort_stays_where_it_changes_the_prompt() -> None:
    assert efforts(of_text(CHAT)) == []
    assert efforts(of_text(CHAT + "{% if reasoning_effort == 'low' %}<think>{% endif %}")) == ["low"]
    # The field injects enable_thinking, so an effort moves a template that knows only that.
    assert efforts(of_text(CHAT + "{% if enable_thinking is false %}<think></think>{% endif %}")) == ["none"]
    raising = CHAT + "{% if reasoning_effort == 'max' %}{{ raise_exception('no such effort') }}{% endif %}"
    found = of_text(raising)
    assert efforts(found) == ["max"]
    row = found.get("single_turn", {"reasoning_effort": "max"})
    assert row is not None
    assert (row.state, row.error, row.error_line, row.refused_by_template) == ("error", "no such effort", 1, True)


def test_an_effort_stays_where_it_changes_only_the_parser() -> None:
    found = of_text(CHAT, parser_moves=lambda kwargs: kwargs.get("enable_thinking", True))
    assert efforts(found) == ["none"]


def test_server_defaults_and_the_effort_map_reach_the_prompt() -> None:
    text = CHAT + "{{ '<think>' if enable_thinking else '' }}{{ reasoning_effort }}"
    found = of_text(text, default_kwargs={"enable_thinking": True}, effort_map={"low": "none"})
    assert state(found) == "open"
    assert state(found, variant={"enable_thinking": False}) == "none"
    row = found.get("single_turn", {"reasoning_effort": "low"})
    assert row is not None
    assert row.kwargs == {"enable_thinking": False, "reasoning_effort": "none"}
    assert row.prompt is not None
    assert row.prompt.endswith("none")


def test_variants_of_real_requests_are_tried_once() -> None:
    found = of_text(CHAT, extra_variants=[{"level": 1}, {"level": True}, {"thinking": True}])
    assert [dict(v) for v in found.variants if "level" in v] == [{"level": 1}, {"level": True}]
    assert sum(same_variant(v, {"thinking": True}) for v in found.variants) == 1
    assert efforts(of_text(CHAT, extra_variants=[{"reasoning_effort": "low"}])) == ["low"]


def test_tool_calls_are_handed_over_as_objects() -> None:
    text = CHAT + "{% for m in messages if m.tool_calls %}{{ m.tool_calls[0].function.arguments.city }}{% endfor %}"
    row = of_text(text).get("tool_result", {})
    assert row is not None
    assert row.prompt is not None
    assert row.prompt.endswith("Rome")


def test_contents_are_parts_where_the_template_loops_over_them() -> None:
    text = "{% for m in messages %}{% for c in m.content %}[{{ c.type }}:{{ c.text }}]{% endfor %}{% endfor %}<think>"
    row = of_text(text).get("single_turn", {})
    assert row is not None
    assert row.prompt == f"[text:What is 2 + 2? {SENTINEL}]<think>"


def test_the_other_form_of_contents_is_taken_where_the_first_raises() -> None:
    looping = "{% for m in messages %}{% for c in m.content %}{{ c.nothing.at.all }}{% endfor %}{% endfor %}"
    strings = "{% if messages[0].content is string %}<think>{% else %}" + looping + "{% endif %}"
    assert state(of_text(strings)) == "open"
    lists = "{{ messages[0].content[0].text }}{{ messages[0].content[0]['type'] | upper + '' }}<think>"
    assert state(of_text(lists + "{{ messages[0].content[0]['type'].x.y if messages[0].content is string }}")) == "open"
    row = of_text("{{ raise_exception('never') }}").get("single_turn", {})
    assert row is not None
    assert row.error == "never"


def test_named_templates_serve_requests_with_tools() -> None:
    plain, tools = Template(CHAT, "t"), Template(CHAT + "<think>", "t", name="tool_use")
    found = survey(Model(source="x", kind="folder", path=None, template=plain, templates=(plain, tools)))
    assert state(found) == "none"
    assert state(found, "tools") == "open"
    assert state(found, "tool_result") == "open"


def test_no_states_without_a_template_or_where_code_builds_the_prompt() -> None:
    template = Template(CHAT, "t")
    assert survey(Model(source="x", kind="folder", path=None)).states == ()
    assert survey(Model(source="x", kind="folder", path=None, template=template, code_prompt="harmony")).states == ()


def test_a_lone_template_renders_with_stand_in_tokens(tmp_path: Path) -> None:
    path = tmp_path / "chat_template.jinja"
    path.write_text("{{ bos_token }}{{ eos_token }}{{ pad_token }}{{ unk_token }}{{ sep_token }}")
    row = survey(load_model(str(path))).get("single_turn", {})
    assert row is not None
    assert row.prompt == "<s></s></s><unk>"


def history(found: Survey) -> dict[str, tuple[str, str]]:
    return {row.field: (row.tool_loop, row.next_user_turn) for row in found.history}


def test_what_becomes_of_earlier_reasoning() -> None:
    assert history(of_text(CHAT)) == {
        "reasoning": ("dropped", "dropped"),
        "reasoning_content": ("dropped", "dropped"),
        "inline": ("kept", "kept"),
    }
    keeps = "{% for m in messages %}{{ m.reasoning_content }}{{ m.content.split('</think>')[-1] }}{% endfor %}"
    # transformers 5.24 fills reasoning_content from reasoning, and never the other way round.
    assert history(of_text(keeps)) == {
        "reasoning": ("kept", "kept"),
        "reasoning_content": ("kept", "kept"),
        "inline": ("dropped", "dropped"),
    }
    by_name = history(of_text("{% for m in messages %}{{ m.reasoning }}{% endfor %}"))
    assert (by_name["reasoning"], by_name["reasoning_content"]) == (("kept", "kept"), ("dropped", "dropped"))


def test_earlier_reasoning_in_a_tool_loop_is_told_from_that_before_a_users_turn() -> None:
    loop = "{% if messages[-1].role == 'tool' %}{{ messages[1].reasoning_content }}{% endif %}"
    assert history(of_text(loop))["reasoning_content"] == ("kept", "dropped")
    refusing = "{% if messages[-1].role == 'tool' %}{{ raise_exception('no tools') }}{% endif %}" + CHAT
    assert history(of_text(refusing))["inline"] == ("error", "kept")


def test_a_tool_template_of_its_own_renders_the_tool_loop() -> None:
    plain, tools = Template("", "t"), Template("{{ messages[1].reasoning_content }}", "t", name="tool_use")
    found = survey(Model(source="x", kind="folder", path=None, template=plain, templates=(plain, tools)))
    assert history(found)["reasoning"] == ("kept", "dropped")


def test_history_has_no_rows_without_prompts_and_errors_where_a_template_was_ended() -> None:
    assert survey(Model(source="x", kind="folder", path=None)).history == ()
    endless = "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}{% endfor %}{% endfor %}"
    rows = history(of_text(endless + "{% endfor %}", limits=Limits(render_seconds=0.2, template_seconds=0.5)))
    assert set(rows.values()) == {("error", "error")}
