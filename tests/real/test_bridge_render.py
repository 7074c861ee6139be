"""The bridge renders: its prompts and ids are what that vLLM's tokenizers and prompt code give when asked directly."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reasonctl.checks.audit import audit
from reasonctl.checks.coverage import coverage
from reasonctl.parsers.bridge.bridge import Bridge
from reasonctl.parsers.bridge.spec import parse_engine
from reasonctl.prompts import coded_harmony
from reasonctl.prompts.asked import Served, VllmPrompts
from reasonctl.prompts.conversations import WEATHER
from reasonctl.prompts.kwargs import effective_kwargs
from reasonctl.prompts.messages import as_handed_over
from reasonctl.prompts.model import Model, load_model
from reasonctl.prompts.survey import survey

from .artefacts import deepseek_v4_folder, gpt_oss_folder, mistral_folder, o200k_folder, otc_folder, qwen3_folder
from .driver import ENVIRONMENT
from .test_bridge import value

pytestmark = pytest.mark.vllm

DAY = "2025-06-28"
CALL = {"id": "call00001", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Größe 🙂"}'}}
TALK = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Weather? </think>"},
    {"role": "assistant", "content": "I look.", "reasoning": "In Rome.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call00001", "content": "21"},
]
BODIES: list[dict[str, Any]] = [
    {"messages": [{"role": "user", "content": "hi"}]},
    {"messages": TALK, "tools": [WEATHER]},
    {"messages": [*TALK, {"role": "assistant", "content": "21."}, {"role": "user", "content": "Thanks!"}]},
    {"messages": [{"role": "user", "content": "hi"}], "reasoning_effort": "high"},
]
SWITCHED: list[dict[str, Any]] = [
    {"messages": [{"role": "user", "content": "hi"}], "chat_template_kwargs": {"enable_thinking": False}},
    {"messages": [{"role": "user", "content": "hi"}], "chat_template_kwargs": {"thinking": True}},
    {"messages": [{"role": "user", "content": "hi"}], "reasoning_effort": "none"},
]
MODES = dict.fromkeys(("qwen3", "deepseek-v3.1", "glm"), "hf") | {"deepseek-v4": "deepseek_v4"}
"""Tokenizer modes of those whose tokenizer itself renders; the others are rendered by libraries."""
NAMES = (*MODES, "mistral", "gpt-oss")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Model]]:
    into = tmp_path_factory.mktemp("rendered")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(coded_harmony.VARIABLE, str(o200k_folder(into)))
        patch.setenv("VLLM_SYSTEM_START_DATE", DAY)
        patch.setattr(coded_harmony, "_today", lambda: DAY)
        folders = {
            "qwen3": qwen3_folder(into),
            "deepseek-v3.1": otc_folder("deepseek-v3.1", into),
            "glm": otc_folder("glm-4.7-flash", into),
            "deepseek-v4": deepseek_v4_folder(into),
            "mistral": mistral_folder(into, "v13"),
            "gpt-oss": gpt_oss_folder(into),
        }
        yield {name: load_model(str(folder)) for name, folder in folders.items()}


@pytest.fixture(scope="module")
def bridge(models: dict[str, Model]) -> Iterator[Bridge]:
    with Bridge(parse_engine(value("0.33.0"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def prompts(models: dict[str, Model], bridge: Bridge) -> dict[str, VllmPrompts]:
    return {name: VllmPrompts(bridge, model) for name, model in models.items()}


def bodies_of(name: str) -> list[dict[str, Any]]:
    return BODIES if name in ("mistral", "gpt-oss") else [*BODIES, *SWITCHED]


@pytest.fixture(scope="module")
def direct(models: dict[str, Model]) -> dict[str, list[dict[str, Any]]]:
    """What comes of every body without the chat server: of tokenizers, mistral-common and harmony as it uses them."""
    cases = []
    for name, model in models.items():
        for body in bodies_of(name):
            case: dict[str, Any] = {"folder": str(model.path), "body": body, "default_kwargs": None, "effort_map": None}
            mode = MODES.get(name)
            if mode is not None:
                own, effort = body.get("chat_template_kwargs"), body.get("reasoning_effort")
                kwargs = effective_kwargs(request_kwargs=own, reasoning_effort=effort)
                handed = as_handed_over(body["messages"])
                case |= {"mode": mode, "messages": handed, "kwargs": {"add_generation_prompt": True, **kwargs}}
            elif name == "gpt-oss":
                case["folder"] = ""
            cases.append(case)
    done = subprocess.run(
        [ENVIRONMENT / "bin" / "python", Path(__file__).with_name("vllm_coded.py")],
        input=json.dumps({"cases": cases, "texts": []}),
        env={**os.environ, "PYTHONPATH": str(ENVIRONMENT / "vllm-0.33.0"), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    prompts = iter(json.loads(done.stdout)["prompts"])
    return {name: [next(prompts) for _ in bodies_of(name)] for name in models}


@pytest.mark.parametrize("name", NAMES)
def test_prompts_and_ids_are_what_it_gives_directly(
    prompts: dict[str, VllmPrompts], direct: dict[str, list[dict[str, Any]]], name: str
) -> None:
    answers = prompts[name].answers(bodies_of(name))
    assert prompts[name].problem is None
    for body, theirs, expected in zip(bodies_of(name), answers, direct[name], strict=True):
        assert ("error" in theirs) == ("error" in expected), (body, theirs, expected)
        if "error" not in expected:
            assert theirs["ids"] == expected["ids"], body
            assert theirs["text"] == expected.get("text"), body
    assert len({tuple(theirs["ids"]) for theirs in answers if "error" not in theirs}) >= 2


@pytest.mark.parametrize("name", [name for name in NAMES if name != "deepseek-v4"])
def test_ours_are_the_same(prompts: dict[str, VllmPrompts], models: dict[str, Model], name: str) -> None:
    found = survey(models[name], vllm=prompts[name])
    assert (found.made_by, found.not_made) == ("vLLM 0.33.0", None)
    assert [(s.conversation, dict(s.variant), s.differs) for s in found.states if s.differs is not None] == []
    assert sum(state.prompt is not None for state in found.states) >= 8


def test_a_model_built_by_code_alone_gets_its_states_and_its_parser(bridge: Bridge, models: dict[str, Model]) -> None:
    model = models["deepseek-v4"]
    assert bridge.target is not None
    assert survey(model).states == ()
    facts = audit(model, source="m", parser="auto", target=bridge.target, engine=bridge)
    assert facts.survey is not None
    states = {
        tuple(variant.items()): state.state
        for variant in facts.survey.variants
        if (state := facts.survey.get("single_turn", variant)) is not None
    }
    assert states[()] == "open"
    assert states[("enable_thinking", False),] == states[("reasoning_effort", "none"),] == "closed-bare"
    assert {row.surface: row.status for row in coverage(facts)}["prompt"] == "examined"
    assert facts.recommended == "deepseek_v4"


def templated(tmp_path: Path, text: str) -> Model:
    file = tmp_path / "t.jinja"
    file.write_text(text)
    return load_model("fixture:qwen3", chat_template=file)


def test_what_the_server_is_started_with_counts(bridge: Bridge, tmp_path: Path) -> None:
    text = "{{ enable_thinking }} {{ reasoning_effort }}{% if tools %} {{ tools | length }}{% endif %}"
    model = templated(tmp_path, text)
    served = Served({"enable_thinking": False}, {"low": "high"}, exclude_tools=True)
    hi = {"messages": [{"role": "user", "content": "hi"}]}
    offers = {**hi, "tools": [WEATHER]}
    bodies = [hi, {**hi, "reasoning_effort": "low"}, offers, {**offers, "tool_choice": "none"}]
    answers = VllmPrompts(bridge, model, served).answers(bodies)
    assert [answer["text"] for answer in answers] == ["False ", "True high", "False  1", "False "]
    assert model.tokenizer is not None
    assert [answer["ids"] for answer in answers] == [model.tokenizer.encode(answer["text"]) for answer in answers]


def test_what_goes_wrong_is_what_the_client_hears(bridge: Bridge, tmp_path: Path) -> None:
    text = "{% if messages | length > 1 %}\n{{ raise_exception('one only') }}{% endif %}{{ 1 + messages[0].x.y }}"
    one = {"role": "user", "content": "hi"}
    answers = VllmPrompts(bridge, templated(tmp_path, text)).answers(
        [
            {"messages": [one, one]},
            {"messages": [one]},
            {"messages": [one], "reasoning_effort": "some"},
            {"messages": [one], "chat_template": "x"},
        ]
    )
    errors = [(e["status"], e.get("below"), e["line"], e["message"]) for e in (a["error"] for a in answers)]
    assert errors[0] == (400, "TemplateError", 2, "one only")
    assert errors[1][:3] == (400, "UndefinedError", 2)
    assert errors[2][:3] == (400, None, None)
    assert errors[2][3].startswith("reasoning_effort: Input should be 'none'")
    assert errors[3][0] == 400
    assert "--trust-request-chat-template is not set" in errors[3][3]


class Hasty:
    """The same vLLM, waited for no longer than this."""

    seconds = 4.0

    def __init__(self, bridge: Bridge) -> None:
        self.described = bridge.described
        self.ask = bridge.ask


def test_a_template_that_does_not_end_costs_its_own_prompt(bridge: Bridge, tmp_path: Path) -> None:
    loop = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    text = f"{{% if 'loop' in messages[0].content %}}{loop}{{% endif %}}{{{{ messages[0].content }}}}"
    told = [{"messages": [{"role": "user", "content": word}]} for word in ("a", "loop", "b")]
    first, lost, last = VllmPrompts(Hasty(bridge), templated(tmp_path, text)).answers(told)
    assert (first["text"], last["text"]) == ("a", "b")
    assert (lost["lost"].kind, lost["lost"].message) == ("timeout", "vLLM 0.33.0: no answer within 4 s")
