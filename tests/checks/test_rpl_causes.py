"""Every cause is recognised on a trace that has it, proved by running it, and not laid at its neighbour's door."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reasonctl.checks.finding import Finding
from reasonctl.checks.replayed import ReplayFacts
from reasonctl.checks.rpl import findings
from reasonctl.parsers import Target
from reasonctl.traces.context import Context, Setting
from reasonctl.traces.native import trace_of
from reasonctl.traces.replay import Plan, TraceFacts, replay_trace

CALL = '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>'
HARMONY = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>4"
OFF = {"chat_template_kwargs": {"enable_thinking": False}}
KEEPS = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""A template that keeps what earlier turns thought."""


def replayed(
    text: str,
    parser: str | None,
    *,
    model: str | None = "fixture:qwen3-thinking",
    template: Path | None = None,
    finish: str = "stop",
    target: Target = Target(),  # noqa: B008  (frozen)
    **request: Any,
) -> TraceFacts:
    body = {"messages": [{"role": "user", "content": "hi"}]} | request
    recorded = {"finish_reason": finish, "parser": parser}
    value = {"id": "t", "output": {"text": text}, "request": body, "recorded": recorded}
    setting = Setting(model=model, chat_template=str(template) if template is not None else None)
    with Context(setting) as context:
        return replay_trace(trace_of(value, path="f.jsonl", line=1), context, Plan(explain=True, target=target))


def found(facts: TraceFacts, target: Target = Target()) -> list[Finding]:  # noqa: B008  (frozen)
    return list(findings(ReplayFacts(facts, target, given=True)))


def caused(*args: Any, **more: Any) -> set[str | None]:
    return {f.cause for f in found(replayed(*args, **more)) if f.rule not in ("RPL409", "RPL412", "RPL415")}


def explained(*args: Any, **more: Any) -> Finding:
    return next(f for f in found(replayed(*args, **more)) if f.evidence.get("chain"))


THREE = [
    {"role": "user", "content": "a"},
    {"role": "assistant", "content": "<think>x</think>b"},
    {"role": "user", "content": "c"},
]
TYPED = [{"role": "user", "content": "what is </think> for?"}]

CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # cause: (what has it, its neighbour that has it not)
    "FIT103": (
        {"text": "4", "parser": "deepseek_r1", "model": "fixture:gpt-oss"},
        {"text": "hm</think>4", "parser": "deepseek_r1"},
    ),
    "FIT104": (
        {"text": "hm</think>4", "parser": "deepseek_v3", "chat_template_kwargs": {"enable_thinking": False}},
        {"text": "hm</think>4", "parser": "deepseek_v3", "chat_template_kwargs": {"enable_thinking": True}},
    ),
    "FIT105": (
        {"text": "It is 4.", "parser": "deepseek_r1", "model": "fixture:qwen3", **OFF},
        {"text": "It is 4.", "parser": "qwen3", "model": "fixture:qwen3", **OFF},
    ),
    "FIT108": (
        {"text": "<think>hm hm</think>4", "parser": "deepseek_r1", "model": "fixture:qwen3"},
        {"text": "<think>hm hm</think>4", "parser": "qwen3", "model": "fixture:qwen3"},
    ),
    "FIT109": (
        {"text": "still thinking", "parser": "qwen3", "finish": "length"},
        {"text": "still</think>4", "parser": "qwen3", "finish": "length"},
    ),
    "FIT110": (
        {"text": 'split("</think>") first</think>done', "parser": "qwen3"},
        {"text": "split() first</think>done", "parser": "qwen3"},
    ),
    "FIT111": (
        {"text": f"I look.{CALL}", "parser": "deepseek_r1"},
        {"text": f"I look.</think>{CALL}", "parser": "deepseek_r1"},
    ),
    "FIT113": (
        {"text": "hm</think>4", "parser": "deepseek_v3"},
        {"text": "hm</think>4", "parser": "holo2"},
    ),
    "FIT114": (
        {"text": "It is 4.", "parser": "deepseek_v3", "model": "fixture:deepseek-v31", "reasoning_effort": "high"},
        {"text": "It is 4.", "parser": "deepseek_v3", "model": "fixture:deepseek-v31"},
    ),
    "FIT115": (
        {"text": HARMONY, "parser": "deepseek_r1", "model": "fixture:qwen3"},
        {"text": "<think>hm</think>4", "parser": "qwen3", "model": "fixture:qwen3"},
    ),
    "FIT120": (
        {"text": "It is 4.", "parser": "step3", "model": "fixture:qwen3", "template": "plain.jinja"},
        {"text": "It is 4.", "parser": "deepseek_v3", "model": "fixture:qwen3", "template": "plain.jinja"},
    ),
    "FIT121": (
        {
            "text": "<think>new</think>4",
            "parser": "deepseek_r1",
            "model": "fixture:qwen3",
            "template": "keeps.jinja",
            "messages": THREE,
        },
        {"text": "<think>new</think>4", "parser": "qwen3", "model": "fixture:qwen3", "messages": THREE},
    ),
    "TPL006": (
        {"text": "<think>new</think>4", "parser": "deepseek_r1", "model": "fixture:qwen3", "messages": TYPED},
        {"text": "<think>new</think>4", "parser": "qwen3", "model": "fixture:qwen3", "messages": TYPED},
    ),
}


@pytest.fixture
def templates(tmp_path: Path) -> Path:
    (tmp_path / "keeps.jinja").write_text(KEEPS)
    (tmp_path / "plain.jinja").write_text("{% for m in messages %}{{ m.content }}\n{% endfor %}Answer:")
    return tmp_path


def arguments(case: dict[str, Any], templates: Path) -> dict[str, Any]:
    return case | ({"template": templates / case["template"]} if "template" in case else {})


@pytest.mark.parametrize("cause", CASES)
def test_is_recognised(cause: str, templates: Path) -> None:
    finding = explained(**arguments(CASES[cause][0], templates))
    assert (finding.cause, finding.evidence["every_step_run"]) == (cause, True)
    steps = [step for step, _ in finding.evidence["chain"]]
    assert "parser" in steps
    assert {"template", "request"} <= set(steps) or "output" in steps


@pytest.mark.parametrize("cause", CASES)
def test_is_not_laid_at_its_neighbours_door(cause: str, templates: Path) -> None:
    assert cause not in caused(**arguments(CASES[cause][1], templates))


@pytest.mark.parametrize("cause", ["FIT104", "FIT110", "FIT111", "FIT113", "FIT114", "FIT121", "TPL006"])
def test_what_can_be_undone_is_undone_as_proof(cause: str, templates: Path) -> None:
    chain = dict(explained(**arguments(CASES[cause][0], templates)).evidence["chain"])
    assert "split" in chain["proof"] or "reaches content" in chain["proof"]


def test_mends_are_replayed_and_the_first_is_the_hint() -> None:
    finding = explained("hm</think>4", "deepseek_v3")
    assert finding.evidence["mends"] == [
        {
            "side": "server",
            "change": "--default-chat-template-kwargs '{\"enable_thinking\": true}'",
            "replayed": "splits right",
        },
        {"side": "server", "change": "--reasoning-parser qwen3", "replayed": "splits right"},
        {
            "side": "client",
            "change": 'extra_body={"chat_template_kwargs": {"enable_thinking": true}}',
            "replayed": "splits right",
        },
    ]
    assert finding.hint.startswith("--default-chat-template-kwargs")
    assert finding.confidence == "high"


def test_a_switch_that_changes_the_prompt_is_no_mend(tmp_path: Path) -> None:
    """The recording answers another prompt than the one the switch would make."""
    path = tmp_path / "moves.jinja"
    path.write_text("{{ messages[0].content }}{% if enable_thinking or thinking %}[on]{% endif %}<think>")
    finding = explained("hm</think>4", "deepseek_v3", template=path)
    assert [mend["change"] for mend in finding.evidence["mends"]] == ["--reasoning-parser qwen3"]
    assert finding.cause != "FIT113"


def test_an_effort_that_breaks_the_parser_is_left_out() -> None:
    finding = explained("It is 4.", "deepseek_v3", model="fixture:deepseek-v31", reasoning_effort="high")
    assert {"side": "client", "change": "send no reasoning_effort", "replayed": "splits right"} in finding.evidence[
        "mends"
    ]


def test_an_effort_that_moves_the_prompt_too_is_not_to_blame(tmp_path: Path) -> None:
    """Without the effort the parser splits this output, but the model would have had another prompt."""
    path = tmp_path / "moves.jinja"
    path.write_text("{{ messages[0].content }}{% if enable_thinking is false %}[quiet]{% endif %}<think>")
    facts = replayed("hm</think>4", "holo2", template=path, reasoning_effort="none")
    (plain,) = [one for one in facts.what_ifs["holo2"] if one.kind == "no-effort"]
    assert (plain.sound, plain.same_prompt) == (True, False)
    assert {finding.cause for finding in found(facts)} & {"FIT114"} == set()


def test_history_that_misleads_every_parser_is_the_templates(templates: Path) -> None:
    """No parser splits it right, and without the earlier turns this one does."""
    arguments_ = {"model": "fixture:qwen3", "template": templates / "keeps.jinja", "messages": THREE}
    facts = replayed("<think>new</think>4", "deepseek_r1", **arguments_)
    misled = ReplayFacts(facts, given=True)
    assert next(f.cause for f in findings(misled)) == "FIT121"
    from dataclasses import replace

    nobody = ReplayFacts(replace(facts, best=(), compared=()), given=True)
    assert next(f.cause for f in findings(nobody) if f.cause) == "TPL005"


def test_special_markers_that_decoding_hides(tmp_path: Path) -> None:
    import json
    import shutil

    from reasonctl.fixtures import model_path

    folder = tmp_path / "special"
    shutil.copytree(model_path("qwen3"), folder)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    for token in tokenizer["added_tokens"]:
        if token["content"] in ("<think>", "</think>"):
            token["special"] = True
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    with Context(Setting(model=str(folder))) as context:
        assert context.model is not None
        assert context.model.tokenizer is not None
        ids = list(context.model.tokenizer.encode("<think>hm hm</think>4"))
        value = {
            "id": "t",
            "output": {"token_ids": ids},
            "request": {"messages": [{"role": "user", "content": "hi"}]},
            "recorded": {"finish_reason": "length", "parser": "deepseek_r1"},
        }
        plan = Plan(explain=True, chunkings=())
        facts = replay_trace(trace_of(value, path="f", line=1), context, plan)
    finding = next(f for f in found(facts) if f.evidence.get("chain"))
    assert finding.cause == "FIT112"
    assert 'extra_body={"skip_special_tokens": false}' in [mend["change"] for mend in finding.evidence["mends"]]


def test_a_server_without_a_parser() -> None:
    value = {
        "id": "t",
        "output": {"text": "<think>hm</think>4"},
        "request": {"messages": [{"role": "user", "content": "hi"}]},
        "recorded": {"finish_reason": "stop", "reasoning": None, "content": "<think>hm</think>4", "parser": "qwen3"},
    }
    with Context(Setting(model="fixture:qwen3")) as context:
        facts = replay_trace(trace_of(value, path="f", line=1), context, Plan(explain=True))
    (finding,) = [f for f in found(facts) if f.rule == "RPL405"]
    assert finding.cause == "FIT101"
    assert finding.hint.startswith("no reasoning parser gives exactly what was recorded")


def test_the_recorded_split_under_other_kwargs_is_told() -> None:
    value = {
        "id": "t",
        "output": {"text": "hm</think>4"},
        "request": {"messages": [{"role": "user", "content": "hi"}], "chat_template_kwargs": {"enable_thinking": True}},
        "recorded": {"finish_reason": "stop", "reasoning": "hm", "content": "4", "parser": "deepseek_v3"},
    }
    value["request"]["chat_template_kwargs"]["enable_thinking"] = False  # type: ignore[index]
    with Context(Setting(model="fixture:qwen3-thinking")) as context:
        facts = replay_trace(trace_of(value, path="f", line=1), context, Plan(explain=True))
    hints = [f.hint for f in found(facts) if f.rule == "RPL405"]
    assert hints == [
        "deepseek_v3 with enable_thinking=true gives exactly what was recorded: check what the server really runs"
    ]


def test_without_model_and_server_nothing_is_tried() -> None:
    value = {
        "id": "t",
        "output": {"text": "hm</think>4"},
        "prompt": {"text": "<think>"},
        "recorded": {"parser": "deepseek_v3"},
    }
    with Context(Setting()) as context:
        facts = replay_trace(trace_of(value, path="f", line=1), context, Plan())
    (finding,) = [f for f in findings(ReplayFacts(facts)) if f.rule == "RPL403"]
    assert (facts.what_ifs, finding.cause, finding.evidence.get("chain")) == ({}, None, None)
    assert "give --model or --serve for the cause" in finding.hint


def test_no_parser_is_a_mend_of_a_thought_that_was_cut() -> None:
    """deepseek_r1 fails in larger deltas here, which another parser mends; that no answer came, it does not."""
    cut = found(replayed("<think>hm hm hm hm hm hm", "deepseek_r1", model="fixture:qwen3", finish="length"))
    by_rule = {finding.rule: finding for finding in cut}
    assert {"RPL402", "RPL411"} <= set(by_rule)
    changes = {rule: [mend["change"] for mend in by_rule[rule].evidence.get("mends", ())] for rule in by_rule}
    assert changes["RPL402"] == ["--reasoning-parser qwen3"]
    assert not any("--reasoning-parser" in change for change in changes["RPL411"])
