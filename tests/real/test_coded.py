"""Prompts that mistral-common and openai-harmony build: states, and the same ids as vLLM's own code."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from reasonctl.checks.audit import audit
from reasonctl.checks.audit_json import facts_json
from reasonctl.checks.coverage import coverage
from reasonctl.parsers import Target
from reasonctl.parsers.base import Vocabulary
from reasonctl.prompts import coded_harmony
from reasonctl.prompts.coded import CodedPrompts
from reasonctl.prompts.conversations import conversations
from reasonctl.prompts.kwargs import effective_kwargs
from reasonctl.prompts.messages import as_handed_over, as_sent
from reasonctl.prompts.model import load_model
from reasonctl.prompts.render import RenderRequest
from reasonctl.prompts.survey import survey

from .artefacts import gpt_oss_folder, mistral_folder, o200k_folder
from .driver import ENVIRONMENT

DAY = "2025-06-28"
TEXTS = ("[THINK]", "[/THINK]", "[TOOL_CALLS]", "</s>", " four", "Größe 5 €, 你好 🙂", "\n\n")
WEATHER_CALL = {
    "id": "chatcmpl-tool-0123456789abc",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city": "Rom", "note": "Größe"}'},
}
BODIES: list[dict[str, Any]] = [
    {"messages": [{"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}]},
    {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": "I look.", "reasoning_content": "Rome.", "tool_calls": [WEATHER_CALL]},
            {"role": "tool", "tool_call_id": WEATHER_CALL["id"], "content": "21"},
            {"role": "assistant", "content": "21 degrees.", "reasoning": "It says 21."},
            {"role": "user", "content": "Thanks! <|end|>[/INST]"},
        ]
    },
    {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]},
    {"messages": [{"role": "user", "content": "x"}], "chat_template_kwargs": {"enable_thinking": False}},
    {"messages": [{"role": "user", "content": "x"}], "chat_template_kwargs": {"reasoning_effort": "high"}},
    {"messages": [{"role": "user", "content": "x"}], "chat_template_kwargs": {}},
]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """mistral v3, v13, v15 and gpt-oss, by name."""
    into = tmp_path_factory.mktemp("coded")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(coded_harmony.VARIABLE, str(o200k_folder(into)))
        patch.setattr(coded_harmony, "_today", lambda: DAY)
        folders = {version: mistral_folder(into, version) for version in ("v3", "v13", "v15")}
        folders["harmony"] = gpt_oss_folder(into)
        yield {name: load_model(str(folder)) for name, folder in folders.items()}


def coded(model: Any) -> CodedPrompts:
    assert model.coded is not None, model.code_prompt
    found: CodedPrompts = model.coded
    return found


@pytest.mark.parametrize(
    ("name", "reads"), [("v3", set()), ("v13", set()), ("v15", {"reasoning_effort"}), ("harmony", {"reasoning_effort"})]
)
def test_every_conversation_has_a_prompt(models: Any, name: str, reads: set[str]) -> None:
    assert models[name].code_prompt is None
    found = survey(models[name])
    assert found.reads == reads
    assert {state.conversation for state in found.states} == {talk.name for talk in conversations("a", "b")}
    plain = found.get("single_turn", {})
    assert plain is not None
    assert (plain.state, plain.marker, plain.tokens_after_open, plain.error) == ("none", None, 0, None)
    assert plain.token_ids is not None
    assert plain.prompt is not None
    assert models[name].tokenizer.decode(plain.token_ids) == plain.prompt


def test_the_prompts_themselves(models: Any) -> None:
    mistral, harmony = survey(models["v13"]), survey(models["harmony"])
    plain = mistral.get("single_turn", {})
    assert plain is not None
    assert plain.prompt == "<s>[INST]What is 2 + 2? Zqreasonctlprobe[/INST]"
    assert plain.token_ids is not None
    assert (plain.token_ids[:2], plain.token_ids[-1], plain.after) == ((1, 3), 4, "[/INST]")
    past = mistral.get("multi_turn", {})
    assert past is not None
    assert past.prompt is not None
    assert "[THINK]Two and two make four.[/THINK]It is 4.</s>" in past.prompt
    low = harmony.get("system", {"reasoning_effort": "low"})
    assert low is not None
    assert low.prompt is not None
    assert low.prompt.startswith("<|start|>system<|message|>You are ChatGPT")
    assert "Reasoning: low\n" in low.prompt
    assert f"Current date: {DAY}\n" in low.prompt
    assert "<|start|>developer<|message|># Instructions\n\nAnswer briefly.<|end|>" in low.prompt
    assert low.prompt.endswith("<|end|><|start|>assistant")


def test_text_that_looks_like_a_marker_opens_nothing(models: Any) -> None:
    continued = survey(models["v13"]).get("continue_final_message", {})
    assert continued is not None
    assert continued.prompt is not None
    assert continued.prompt.endswith("[THINK]partial thought")
    assert (continued.state, continued.marker) == ("none", None)


def test_efforts(models: Any) -> None:
    mistral, harmony = survey(models["v15"]), survey(models["harmony"])
    assert mistral.compared == {"reasoning_effort": ("none", "high")}
    errors = {
        effort: state.error
        for effort in ("low", "high")
        if (state := mistral.get("single_turn", {"reasoning_effort": effort})) is not None
    }
    assert errors["high"] is None
    assert errors["low"] is not None
    assert "reasoning_effort should be one of" in errors["low"]
    refused = harmony.get("single_turn", {"reasoning_effort": "none"})
    assert refused is not None
    assert refused.error == "harmony takes no reasoning_effort 'none', only low, medium, high"
    assert refused.refused_by_template
    # medium is what a plain request gets, so it is no variant of its own.
    low, plain, high = (
        harmony.get("single_turn", v) for v in ({"reasoning_effort": "low"}, {}, {"reasoning_effort": "high"})
    )
    assert [
        state.prompt.count(f"Reasoning: {e}\n")
        for state, e in ((low, "low"), (plain, "medium"), (high, "high"))
        if state and state.prompt
    ] == [1, 1, 1]


def test_mistral_refuses_the_requests_own_kwargs(models: Any) -> None:
    state = survey(models["v13"]).get("single_turn", {"enable_thinking": False})
    assert state is not None
    assert state.error == "vLLM refuses chat_template_kwargs for Mistral tokenizers (enable_thinking)"
    harmony = survey(models["harmony"])
    ignored, plain = harmony.get("single_turn", {"enable_thinking": False}), harmony.get("single_turn", {})
    assert ignored is not None
    assert plain is not None
    assert ignored.prompt == plain.prompt


@pytest.mark.parametrize("name", ["v13", "v15", "harmony"])
def test_the_audit_has_prompts_to_try_parsers_on(models: Any, name: str) -> None:
    facts = audit(models[name], source=name, parser="auto", target=Target())
    rows = {row.surface: (row.status, row.reason) for row in coverage(facts)}
    assert rows["prompt"] == ("examined", None)
    assert rows["tokenizer"] == ("examined", None)
    library = "oss-harmony 0.0.11" if name == "harmony" else "mistral-common 1.13.1"
    assert rows["template"] == ("absent", f"no template has a say: {library} builds the prompts")
    assert f"{library} builds the prompts: no template has a say" in facts_json(facts)["model"]["notes"]
    assert facts.real_tokenizer
    assert any(candidate.trials for candidate in facts.candidates)
    assert (facts.thinking.start, facts.thinking.harmony) == ((None, True) if name == "harmony" else ("[THINK]", False))


def test_a_broken_tekken_is_not_evaluated(tmp_path: Path) -> None:
    (tmp_path / "tekken.json").write_text("{}")
    model = load_model(str(tmp_path))
    assert model.coded is None
    assert model.code_prompt is not None
    assert model.code_prompt.startswith("mistral-common renders this model, but cannot read its tekken.json")
    assert survey(model).states == ()


def test_a_broken_vocabulary_of_harmony_is_not_evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / coded_harmony.VOCABULARY).write_text("YQ== 0\n")
    monkeypatch.setenv(coded_harmony.VARIABLE, str(tmp_path))
    model = load_model(str(gpt_oss_folder(tmp_path)))
    assert model.coded is None
    assert model.code_prompt is not None
    assert "hash mismatch" in model.code_prompt


def test_the_vocabulary_inside_the_fork_is_that_of_the_file(
    models: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(coded_harmony.VARIABLE, raising=False)
    inside, of_file = coded(load_model(str(gpt_oss_folder(tmp_path)))).tokenizer, coded(models["harmony"]).tokenizer
    assert inside.size == of_file.size > 201000
    assert dict(inside.vocab) == dict(of_file.vocab)
    assert inside.special_tokens == of_file.special_tokens
    ids = inside.encode("<|start|>Größe 5 €, 你好 🙂")
    assert (ids, inside.joined(ids)) == (of_file.encode("<|start|>Größe 5 €, 你好 🙂"), of_file.joined(ids))


@pytest.mark.parametrize("name", ["v13", "harmony"])
def test_the_tokenizer(models: Any, name: str) -> None:
    tokenizer: Any = models[name].tokenizer
    vocabulary: Vocabulary = tokenizer
    for text in (*TEXTS, "<|start|>assistant<|channel|>analysis<|message|>Hm.<|end|>", "[THINK]a[/THINK]b</s>"):
        ids, ends = tokenizer.encode_with_ends(text)
        assert ids == vocabulary.encode(text)
        assert vocabulary.decode(ids) == text
        assert ends[-1] == len(text)
        assert list(ends) == sorted(ends)
    markers = {"v13": ["[THINK]", "[/THINK]"], "harmony": ["<|start|>", "<|channel|>"]}[name]
    for marker in markers:
        assert vocabulary.encode(marker) == [vocabulary.vocab[marker]] == [vocabulary.special_tokens[marker]]
    assert vocabulary.decode(vocabulary.encode("a" + markers[0]), skip_special_tokens=True) == (
        "a[THINK]" if name == "v13" else "a"
    )
    assert vocabulary.vocab["a"] == vocabulary.encode("a")[0]
    assert models[name].eos_ids == {2 if name == "v13" else 200002}


def cases(models: Any) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """(model, case as vLLM gets it, arguments of our rendering)."""
    bodies: list[tuple[dict[str, Any], list[Any]]] = [
        (
            {
                "messages": as_sent(talk.messages),
                **({"tools": list(talk.tools)} if talk.tools else {}),
                "add_generation_prompt": not talk.continues,
                "continue_final_message": talk.continues,
            },
            list(talk.messages),
        )
        for talk in conversations("[THINK]", "[/THINK]")
    ]
    bodies += [(body, as_handed_over(body["messages"])) for body in BODIES]
    settings: list[tuple[str | None, dict[str, Any] | None, dict[str, str] | None]] = [
        (effort, None, None) for effort in (None, "none", "low", "medium", "high", "max")
    ]
    settings += [("low", None, {"low": "high"}), (None, {"reasoning_effort": "high", "x": 1}, None)]
    found = []
    for name, model in models.items():
        for body, handed in bodies:
            for effort, defaults, renamed in settings:
                sent = {**body, **({"reasoning_effort": effort} if effort else {})}
                own = body.get("chat_template_kwargs")
                kwargs = effective_kwargs(
                    request_kwargs=own, reasoning_effort=effort, default_kwargs=defaults, effort_map=renamed
                )
                reaching = coded(model).reaching(kwargs, effort=effort, own=own)
                ours = {
                    "messages": handed,
                    "tools": body.get("tools"),
                    "kwargs": reaching,
                    "add_generation_prompt": body.get("add_generation_prompt", True),
                    "continue_final_message": body.get("continue_final_message", False),
                }
                folder = "" if name == "harmony" else str(model.path)
                theirs = {"folder": folder, "body": sent, "default_kwargs": defaults, "effort_map": renamed}
                found.append((name, theirs, ours))
    return found


@pytest.mark.vllm
def test_prompts_equal_vllms_own(models: Any) -> None:
    """Every conversation and some odd requests, under every effort, default and map: one vLLM process for all."""
    asked = cases(models)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ENVIRONMENT / "vllm-0.33.0"),
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_SYSTEM_START_DATE": DAY,
        "HF_HUB_OFFLINE": "1",
    }
    done = subprocess.run(
        [ENVIRONMENT / "bin" / "python", Path(__file__).with_name("vllm_coded.py")],
        input=json.dumps({"cases": [case for _, case, _ in asked], "texts": TEXTS}),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer = json.loads(done.stdout)
    different = []
    refused = 0
    for (name, case, ours), theirs in zip(asked, answer["prompts"], strict=True):
        result = coded(models[name]).render(RenderRequest(**ours))
        refused += result.error is not None
        if ("error" in theirs) != (result.error is not None) or list(result.token_ids or ()) != theirs.get("ids", []):
            different.append((name, case, theirs.get("error"), result.error, result.text))
    assert different == []
    assert 0 < refused < len(asked)
    for model in (models["v3"], models["v13"], models["v15"]):
        theirs, own = answer["tokenizers"][str(model.path)], model.tokenizer
        assert {text: own.vocab[text] for text in TEXTS if text in own.vocab} == theirs["vocab"]
        plain = [text for text in TEXTS if text not in own.special_tokens]
        assert {text: own.encode(text) for text in plain} == {text: theirs["ids"][text] for text in plain}
        assert list(own.special_tokens.values()) == theirs["special"]
        assert own.decode(range(40), skip_special_tokens=True) == theirs["shown"]
