"""What one change makes of a failing trace: which changes are tried, and what counts as healed."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from reasonctl.parsers import Target
from reasonctl.traces.context import Context, Setting
from reasonctl.traces.native import trace_of
from reasonctl.traces.replay import Plan, TraceFacts, replay_trace
from reasonctl.traces.whatif import WhatIf, state_of

HEAD = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"


def tried(
    text: str, parser: str, *, setting: Setting | None = None, plan: Plan | None = None, **more: Any
) -> dict[str, list[WhatIf]]:
    facts = replayed(text, parser, setting=setting, plan=plan, **more)
    found: dict[str, list[WhatIf]] = {}
    for one in facts.what_ifs.get(parser, ()):
        found.setdefault(one.kind, []).append(one)
    return found


def replayed(
    text: str, parser: str, *, setting: Setting | None = None, plan: Plan | None = None, **more: Any
) -> TraceFacts:
    recorded = {"finish_reason": "stop", "parser": parser} | more.pop("recorded", {})
    value = {"id": "t", "output": {"text": text}, "recorded": recorded} | more
    with Context(setting or Setting()) as context:
        return replay_trace(trace_of(value, path="f", line=1), context, plan or Plan(explain=True))


def test_nothing_is_tried_on_what_holds_together() -> None:
    assert tried("hm</think>4", "qwen3", prompt={"text": HEAD + "<think>"}) == {}


def test_nothing_is_tried_where_no_cause_is_looked_for() -> None:
    assert tried("hm</think>4", "deepseek_v3", plan=Plan()) == {}


def test_switches_the_other_way_but_never_against_the_prompt() -> None:
    opened = tried("hm</think>4", "deepseek_v3", prompt={"text": HEAD + "<think>"})["kwargs"]
    assert [(dict(one.change), one.sides, one.same_prompt, one.right) for one in opened] == [
        ({"enable_thinking": True}, ("server", "client"), None, True),
        ({"thinking": True}, ("server", "client"), None, True),
    ]
    closed = tried("It is 4.", "holo2", prompt={"text": HEAD + "<think></think>"})["kwargs"]
    assert [dict(one.change) for one in closed] == [{"enable_thinking": False}, {"thinking": False}]
    assert all(one.right for one in closed)


def test_a_server_cannot_turn_what_the_request_says_itself() -> None:
    request = {"chat_template_kwargs": {"enable_thinking": False}}
    (first, *_) = tried("hm</think>4", "deepseek_v3", prompt={"text": HEAD + "<think>"}, request=request)["kwargs"]
    assert (dict(first.change), first.sides) == ({"enable_thinking": True}, ("client",))


@pytest.mark.parametrize(
    ("prompt", "kinds"),
    [
        (HEAD + "<think>x</think>y<|im_end|>\n" + HEAD, {"alone"}),
        (HEAD, set()),
    ],
)
def test_earlier_text_is_left_out_where_it_holds_markers(prompt: str, kinds: set[str]) -> None:
    found = tried("<think>hm</think>4", "deepseek_r1", prompt={"text": prompt})
    assert found.keys() & {"alone", "history", "user-markers"} == kinds
    assert all(one.sound for kind in kinds for one in found[kind])


def test_a_users_marker_is_told_from_an_earlier_turns() -> None:
    request = {"messages": [{"role": "user", "content": [{"type": "text", "text": "what is </think>?"}]}]}
    found = tried("<think>hm</think>4", "deepseek_r1", setting=Setting(model="fixture:qwen3"), request=request)
    assert found["user-markers"][0].sound
    text = "<|im_start|>user\nwhat is </think>?<|im_end|>\n<|im_start|>assistant\n"
    plain = {"messages": [{"role": "user", "content": "what is </think>?"}]}
    recorded = tried("<think>hm</think>4", "deepseek_r1", prompt={"text": text}, request=plain)
    assert recorded["user-markers"][0].sound


def test_earlier_answers_without_their_reasoning(tmp_path: Path) -> None:
    path = tmp_path / "keeps.jinja"
    path.write_text(
        "{% for m in messages %}[{{ m.role }}]{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>"
        "{% endif %}{{ m.content }}\n{% endfor %}[assistant]"
    )
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "reasoning_content": "x", "content": "b"},
        {"role": "user", "content": "c"},
    ]
    setting = Setting(chat_template=str(path))
    found = tried("<think>hm</think>4", "deepseek_r1", setting=setting, request={"messages": messages})
    assert found["history"][0].sound


def test_an_older_version_is_tried_as_the_newest() -> None:
    """Up to 0.32 qwen3 does not read the prompt in full mode (vLLM issue 53284)."""
    plan = Plan(explain=True, target=Target("vllm", (0, 32, 0)))
    (one,) = tried("It is 4.", "qwen3", plan=plan, prompt={"text": HEAD + "<think></think>"})["version"]
    assert (dict(one.change), one.right) == ({"target": "vllm==0.33.0"}, True)


def test_a_recorded_split_is_looked_for_under_other_settings() -> None:
    recorded = {"reasoning": None, "content": "hm</think>4"}
    found = tried("hm</think>4", "qwen3", prompt={"text": HEAD + "<think>"}, recorded=recorded)
    assert found["no-parser"][0].result.matches_recorded is True


def test_a_cut_thought_is_closed_where_a_budget_would() -> None:
    recorded = {"finish_reason": "length"}
    found = tried(" hm" * 600, "qwen3", prompt={"text": HEAD + "<think>"}, recorded=recorded)
    (one,) = found["forced-end"]
    assert (one.change["thinking_token_budget"], one.sound) == (344, True)
    assert (one.result.full.content or "").strip() == "42"


def test_facts_go_to_another_process() -> None:
    facts = replayed("hm</think>4", "deepseek_v3", prompt={"text": HEAD + "<think>"})
    assert pickle.loads(pickle.dumps(facts)) == facts


@pytest.mark.parametrize(
    ("prompt", "last", "state", "own"),
    [
        (HEAD + "<think>\n", "hi", "open", "<|im_end|>\n<|im_start|>assistant\n<think>\n"),
        (HEAD + "<think>\n", "", "open", "<|im_start|>assistant\n<think>\n"),
        ("say <think></think> now!<|im_start|>assistant\n", "now!", "none", "<|im_start|>assistant\n"),
        ("[user]THINK[THINK]", "THINK", "open", "[THINK]"),
        ("[user]x[/THINK]", "THINK", "closed-bare", "[user]x[/THINK]"),
    ],
)
def test_this_turns_own_part_of_a_prompt(prompt: str, last: str, state: str, own: str) -> None:
    """`hi` stands in `<think>` and `THINK` in `[THINK]`: neither is where the user's words end."""
    found = state_of(prompt, last)
    assert found is not None
    assert (found[0].state, prompt[found[1] :]) == (state, own)


def test_no_prompt_has_no_state() -> None:
    assert state_of(None, "hi") is None
