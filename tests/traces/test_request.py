"""The request behind a trace: read from a file, rendered into its prompt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reasonctl.errors import InputError
from reasonctl.prompts.model import Model, load_model
from reasonctl.prompts.render import Renderer
from reasonctl.traces.request import Prompts, last_text, messages_of, read_request

BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "reasoning_effort": "low"}


def test_the_text_the_template_follows() -> None:
    assert last_text(BODY) == "hi"
    parts = [{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}]
    assert last_text({"messages": [{"role": "user", "content": parts}]}) == "b"
    assert last_text({}) == ""
    assert messages_of({"messages": ["nonsense", {"role": "user", "content": None}]}) == [
        {"role": "user", "content": []}
    ]
    assert messages_of({"messages": "nonsense"}) == []


def test_prompts_are_rendered_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = Renderer.render
    monkeypatch.setattr(Renderer, "render", lambda self, wanted: calls.append(wanted) or real(self, wanted))
    prompts = Prompts(load_model("fixture:qwen3"))
    try:
        first = prompts.render(messages_of(BODY), BODY, {})
        assert prompts.render(messages_of(BODY), BODY, {}) == first
        assert len(calls) == 1
        off, _ = prompts.render(messages_of(BODY), BODY, {"enable_thinking": False})
        continued, _ = prompts.render(messages_of(BODY), {**BODY, "add_generation_prompt": False}, {})
    finally:
        prompts.close()
    assert first == ("<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n", None)
    assert off is not None
    assert off.endswith("</think>\n\n")
    assert continued == "<|im_start|>user\nhi<|im_end|>\n"


def test_a_model_without_a_template_says_so() -> None:
    prompts = Prompts(Model("m", "folder", None))
    assert prompts.render(messages_of(BODY), BODY, {}) == (None, "the model has no chat template")
    prompts = Prompts(Model("m", "folder", None, code_prompt="by mistral-common"))
    assert (
        prompts.render(messages_of(BODY), BODY, {})[1] == "this model's prompts are built by code (by mistral-common)"
    )


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(BODY, indent=1),
        f"curl http://h/v1/chat/completions \\\n  -H 'Content-Type: application/json' \\\n  -d '{json.dumps(BODY)}'",
        json.dumps({"schema": "reasonctl.trace/1", "request": BODY, "output": {"text": "x"}}),
    ],
    ids=["body", "curl", "trace"],
)
def test_a_request_file(text: str, tmp_path: Path) -> None:
    path = tmp_path / "request"
    path.write_text(text)
    assert read_request(str(path)) == BODY


def test_several_requests_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_text(2 * (json.dumps(BODY) + "\n"))
    with pytest.raises(InputError, match="2 requests"):
        read_request(str(path))
