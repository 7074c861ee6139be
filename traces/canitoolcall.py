"""Fixtures of canitoolcall: one raw model output, the tools offered, and the split that a right engine gives.

Source: canitoolcall 0.1.1 spec/README.md (fixture spec 0.1) and canitoolcall/adapters/vllm.py
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from .dialects.base import mapping, objects, text_of
from .forms import Fault, ids_fault, type_fault
from .trace import Recorded, Trace

_PARSERS: Mapping[str, tuple[tuple[str, str | None], ...]] = {
    "qwen3-hermes": (("instruct-2507", None), ("thinking-2507", "deepseek_r1"), ("qwen2.5", None), ("qwen3", "qwen3")),
    "qwen3-xml": (("qwen3-coder", None), ("qwen3.", "qwen3")),
    "gpt-oss": (("gpt-oss", "openai_gptoss"),),
    "deepseek": (
        ("deepseek-v4.1", "deepseek_v41"),
        ("deepseek-v4", "deepseek_v4"),
        ("deepseek-v3.", "deepseek_v3"),
        ("deepseek-r1", "deepseek_r1"),
    ),
    "kimi": (("kimi-k3", "kimi_k3"), ("kimi-k2-instruct", None), ("kimi-k2", "kimi_k2")),
    "glm": (("glm-4.5", "glm45"), ("glm-4.6", "glm45"), ("glm-", "glm47")),
    "mistral": (
        ("magistral", "mistral"),
        ("mistral-medium-3.5", "mistral"),
        ("mistral-small-4", "mistral"),
        ("reasoning", "mistral"),
    ),
    "gemma4": (("gemma-4", "gemma4"),),
}
"""The reasoning parser that canitoolcall serves a family's models with; the first name piece that fits."""
_CLOSED = ("</think>", "<channel|>")


class FixtureFormError(ValueError):
    """A value that calls itself a fixture and is not one: what is wrong with it, and the mend."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.mend = fault.mend


def is_fixture(value: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a fixture."""
    return "raw_output" in value and "family" in value and ("expected" in value or "expected_error" in value)


def parser_of(family: str, model: str | None) -> str | None:
    """The reasoning parser that a family names for a model; None where it serves without one."""
    name = (model or "").lower()
    return next((parser for piece, parser in _PARSERS.get(family, ()) if piece in name), None)


def fixture_of(value: Mapping[str, Any], *, path: str, line: int) -> Trace:
    """The trace a fixture holds. What it expects stands where other traces have what the server returned.

    The prompt is the generation prompt it was made behind: its own, else the model's default in the `family.json`
    beside the file, where thinking is not switched.

    Raises:
        FixtureFormError: a part has another type than the specification says.
    """
    raw = value["raw_output"]
    if not isinstance(raw, str):
        raise FixtureFormError(type_fault("raw_output", raw, "a text", needed=True))
    ids = value.get("output_token_ids")
    fault = ids_fault("output_token_ids", ids) if ids is not None else None
    if fault is not None:
        raise FixtureFormError(fault)
    version = str(value.get("spec_version", "0"))
    if version.partition(".")[0] != "0":
        message = f"its specification {version} is newer than 0.1"
        raise FixtureFormError(Fault(message, "give fixtures of specification 0, or their outputs with --jq"))
    models = value.get("models")
    model = text_of(models[0]) if isinstance(models, list) and models else None
    family = str(value["family"])
    thinking = value.get("thinking")
    request: dict[str, Any] = {}
    if objects(value.get("tools")):
        request["tools"] = list(objects(value["tools"]))
    if isinstance(thinking, bool):
        request["chat_template_kwargs"] = {"enable_thinking": thinking, "thinking": thinking}
    prompt = text_of(value.get("generation_prompt"))
    if prompt is None and thinking is not False and "generation_prompt" not in value:
        prompt = _default_prompt(path, model, thinking=thinking is True)
    identity = value.get("id")
    return Trace(
        id=identity if isinstance(identity, str) else f"{path}:{line}",
        path=path,
        line=line,
        source="canitoolcall",
        model=model,
        request=request,
        prompt_text=prompt,
        output_text=raw,
        output_ids=tuple(ids) if ids is not None else None,
        recorded=_expected(value, parser_of(family, model)),
        extra={key: one for key, one in value.items() if key not in ("id", "raw_output", "output_token_ids", "tools")},
    )


def _expected(value: Mapping[str, Any], parser: str | None) -> Recorded:
    expected = mapping(value.get("expected"))
    calls = [
        {
            "type": "function",
            "function": {
                "name": call.get("name"),
                "arguments": json.dumps(call.get("arguments"), ensure_ascii=False),
            },
        }
        for call in objects(expected.get("tool_calls"))
    ]
    tags = value.get("tags")
    cut = isinstance(tags, list) and "truncated" in tags
    return Recorded(
        reasoning=text_of(expected.get("reasoning_content")),
        content=text_of(expected.get("content")),
        has_split=bool(expected),
        parser=parser,
        tool_calls=tuple(calls),
        finish_reason="length" if cut else "tool_calls" if calls else "stop",
    )


def _default_prompt(path: str, model: str | None, *, thinking: bool) -> str | None:
    """What the family's own file says of this model's generation prompt; None where there is no such file, or where
    that prompt closes a thought that the request asked for.
    """
    for known in objects(_family(Path(path).parent).get("reference_models")):
        prompt = text_of(known.get("default_generation_prompt"))
        if known.get("repo") == model and prompt is not None:
            return None if thinking and prompt.rstrip().endswith(_CLOSED) else prompt
    return None


@lru_cache(maxsize=8)
def _family(folder: Path) -> Mapping[str, Any]:
    try:
        return mapping(json.loads((folder / "family.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError):
        return {}
