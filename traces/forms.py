"""Whether the parts of a recording have the types they must have: what would else be passed over in silence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Test = tuple[Callable[[Any], bool], str]


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a part of a recording, and what to do about it."""

    message: str
    mend: str

    def __str__(self) -> str:
        return self.message


def type_fault(where: str, value: Any, wanted: str, *, needed: bool = False) -> Fault:
    """A part of the wrong type.

    Args:
        where: the part, as a path: `request.stop`.
        value: what stands there; it is named by its type and never shown.
        wanted: what belongs there, with its article.
        needed: it cannot be left out.
    """
    mend = f"make {where} {wanted}" + ("" if needed else ", or leave it out")
    return Fault(f"{where} is {_type_of(value)}, where {wanted} belongs", mend)


def ids_fault(where: str, ids: Any) -> Fault | None:
    """What keeps a value from being a list of token ids; None where it is one."""
    if type(ids) is not list:
        return type_fault(where, ids, _ID_LIST)
    wrong = next((at for at, one in enumerate(ids) if type(one) is not int or one < 0), None)
    if wrong is None:
        return None
    one = ids[wrong]
    what = "below 0" if type(one) is int else _type_of(one)
    mend = f"make every entry of {where} a whole number from 0 on, or leave {where} out"
    return Fault(f"{where}[{wrong}] is {what}, where a token id belongs", mend)


def _type_of(value: Any) -> str:
    names = {
        str: "a text",
        bool: "true or false",
        int: "a number",
        float: "a number",
        list: "a list",
        dict: "an object",
    }
    return names.get(type(value), "null" if value is None else f"a {type(value).__name__}")


def request_fault(request: Mapping[str, Any]) -> Fault | None:
    """Which key of a chat-completion body has a type no server takes, and what it should be; None where all is well.

    Null stands for absent, as it does in vLLM's `ChatCompletionRequest` (0.33.0).
    """
    return _first_fault(request, _REQUEST, "request")


def choices_fault(value: Mapping[str, Any]) -> Fault | None:
    """The same for the messages of a chat completion or of one of its chunks."""
    choices = value.get("choices")
    for number, choice in enumerate(choices if isinstance(choices, list) else ()):
        if not isinstance(choice, dict):
            continue
        fault = _first_fault(choice, _CHOICE, f"choices[{number}]")
        if fault is not None:
            return fault
        for key in ("delta", "message"):
            message = choice.get(key)
            fault = _first_fault(message, _MESSAGE, f"choices[{number}].{key}") if isinstance(message, dict) else None
            if fault is not None:
                return fault
    return None


def near_miss(value: Any) -> Fault | None:
    """What keeps a value that is in no form from the one it comes nearest to; None where it comes near to none."""
    if not isinstance(value, dict):
        return None
    if str(value.get("schema", "")).startswith("reasonctl.report/"):
        return Fault("it is a report of reasonctl", "give the recordings that were replayed")
    choices = value.get("choices")
    if "choices" in value and not isinstance(choices, list):
        return type_fault("choices", choices, "a list of objects", needed=True)
    for number, choice in enumerate(choices or ()):
        where = f"choices[{number}]"
        if not isinstance(choice, dict):
            return type_fault(where, choice, "an object", needed=True)
        if not any(isinstance(choice.get(key), kind) for key, kind in _SAID.items()):
            return Fault(f"{where} holds no message, delta or text", f"give {where} the message the server sent")
    output = value.get("output")
    if value.get("object") == "response" and not isinstance(output, list):
        return type_fault("output", output, "a list of objects", needed=True)
    if "output" in value and (len(value) == 1 or not value.keys().isdisjoint(("request", "recorded", "prompt", "id"))):
        if not isinstance(output, dict):
            return type_fault("output", output, "an object", needed=True)
        return Fault("its output holds none of text, token_ids and deltas", "give output one of them")
    if isinstance(value.get("messages"), list):
        return Fault("it is a request without an answer", "give the answer's recording, and this with --request")
    return None


_SAID: Mapping[str, type] = {"message": dict, "delta": dict, "text": str}


def _first_fault(value: Mapping[str, Any], tests: Mapping[str, Test], where: str) -> Fault | None:
    for key, one in value.items():
        if one is None or key not in tests:
            continue
        test, wanted = tests[key]
        if not test(one):
            return _inside(f"{where}.{key}", one, wanted) or type_fault(f"{where}.{key}", one, wanted)
    return None


def _inside(where: str, value: Any, wanted: str) -> Fault | None:
    """The first element that keeps a list from being one of that kind; None where it is no list."""
    if wanted == _ID_LIST:
        return ids_fault(where, value)
    of = _ELEMENTS.get(wanted)
    if of is None or not isinstance(value, list):
        return None
    test, named = of
    at = next((at for at, one in enumerate(value) if not test(one)), None)
    return None if at is None else type_fault(f"{where}[{at}]", value[at], named)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_list_of(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(isinstance(one, kind) for one in value)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


_ID_LIST = "a list of token ids"
_TEXT: Test = (_is_text, "a text")
_NUMBER: Test = (_is_number, "a number")
_BOOLEAN: Test = (lambda value: isinstance(value, bool), "true or false")
_OBJECT: Test = (_is_object, "an object")
_LIST: Test = (lambda value: isinstance(value, list), "a list")
_OBJECTS: Test = (_is_list_of(dict), "a list of objects")
_TEXTS: Test = (lambda value: _is_text(value) or _is_list_of(str)(value), "a text or a list of texts")
_IDS: Test = (lambda value: ids_fault("", value) is None, _ID_LIST)
_PARTS: Test = (
    lambda value: _is_text(value) or (isinstance(value, list) and all(isinstance(p, (str, dict)) for p in value)),
    "a text or a list of parts",
)
_ELEMENTS: Mapping[str, Test] = {
    _OBJECTS[1]: _OBJECT,
    _TEXTS[1]: _TEXT,
    _PARTS[1]: (lambda value: isinstance(value, (str, dict)), "a text or an object"),
}
"""What each element of a list has to be."""

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
    "token_ids": (lambda value: isinstance(value, list), _ID_LIST),
}
_MESSAGE: Mapping[str, Test] = {
    "content": _PARTS,
    "reasoning": _TEXT,
    "reasoning_content": _TEXT,
    "reasoning_text": _TEXT,
    "tool_calls": _LIST,
}
