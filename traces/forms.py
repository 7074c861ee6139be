"""Whether the parts of a recording have the types they must have: what would else be passed over in silence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Test = tuple[Callable[[Any], bool], str]


def request_fault(request: Mapping[str, Any]) -> str | None:
    """Which key of a chat-completion body has a type no server takes, and what it should be; None where all is well.

    Null stands for absent, as it does in vLLM's `ChatCompletionRequest` (0.33.0).
    """
    return _first_fault(request, _REQUEST, "request")


def choices_fault(value: Mapping[str, Any]) -> str | None:
    """The same for the messages of a chat completion or of one of its chunks."""
    choices = value.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if not isinstance(choice, dict):
            continue
        fault = _first_fault(choice, _CHOICE, "choices[]")
        if fault is not None:
            return fault
        for key in ("delta", "message"):
            message = choice.get(key)
            fault = _first_fault(message, _MESSAGE, f"choices[].{key}") if isinstance(message, dict) else None
            if fault is not None:
                return fault
    return None


def _first_fault(value: Mapping[str, Any], tests: Mapping[str, Test], where: str) -> str | None:
    for key, one in value.items():
        if one is None or key not in tests:
            continue
        test, wanted = tests[key]
        if not test(one):
            return f"{where}.{key} is no {wanted}"
    return None


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_list_of(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(isinstance(one, kind) for one in value)


_TEXT: Test = (_is_text, "text")
_NUMBER: Test = (_is_number, "number")
_BOOLEAN: Test = (lambda value: isinstance(value, bool), "boolean")
_OBJECT: Test = (lambda value: isinstance(value, dict), "object")
_OBJECTS: Test = (_is_list_of(dict), "list of objects")
_TEXTS: Test = (lambda value: _is_text(value) or _is_list_of(str)(value), "text or list of texts")
_IDS: Test = (lambda value: isinstance(value, list) and all(type(one) is int for one in value), "list of token ids")

_REQUEST: Mapping[str, Test] = {
    "messages": _OBJECTS,
    "chat_template_kwargs": _OBJECT,
    "reasoning_effort": _TEXT,
    "max_tokens": _NUMBER,
    "max_completion_tokens": _NUMBER,
    "thinking_token_budget": _NUMBER,
    "include_reasoning": _BOOLEAN,
    "tools": _OBJECTS,
    "stop": _TEXTS,
    "stop_token_ids": _IDS,
    "skip_special_tokens": _BOOLEAN,
    "add_generation_prompt": _BOOLEAN,
    "continue_final_message": _BOOLEAN,
    "model": _TEXT,
}
_CHOICE: Mapping[str, Test] = {
    "delta": _OBJECT,
    "message": _OBJECT,
    "text": _TEXT,
    "finish_reason": _TEXT,
    "token_ids": (lambda value: isinstance(value, list), "list of token ids"),
}
_MESSAGE: Mapping[str, Test] = {
    "content": (
        lambda value: _is_text(value) or (isinstance(value, list) and all(isinstance(p, (str, dict)) for p in value)),
        "text or list of parts",
    ),
    "reasoning": _TEXT,
    "reasoning_content": _TEXT,
    "reasoning_text": _TEXT,
    "tool_calls": (lambda value: isinstance(value, list), "list"),
}
