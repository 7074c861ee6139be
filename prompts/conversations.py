"""The conversations that prompt states are read from, as vLLM hands them to a chat template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SENTINEL = "Zqreasonctlprobe"
"""Stands at the end of the last message's own text; no template, marker or other message contains it."""

NAMES = (
    "single_turn",
    "system",
    "multi_turn",
    "tools",
    "tool_result",
    "user_start_marker",
    "user_end_marker",
    "continue_final_message",
)

WEATHER: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "description": "Name of the city."}},
            "required": ["city"],
        },
    },
}
PAST_THOUGHT = "Two and two make four."
PARTIAL_THOUGHT = "partial thought"
_CALL_ID = "call00001"
"""Nine letters and digits, the only form that Mistral's templates take."""


@dataclass(frozen=True)
class Conversation:
    """Messages of one request. Only `continue_final_message` is rendered without a generation prompt."""

    name: str
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] | None = None
    continues: bool = False


def conversations(start: str, end: str, sentinel: str = SENTINEL) -> tuple[Conversation, ...]:
    """One of each name of NAMES.

    Args:
        start: the start marker in the user's text of `user_start_marker`, and before the thought that is continued.
        end: the end marker in the user's text of `user_end_marker`.
        sentinel: ends the last message's own text, or the last user text before a message that is continued.

    An assistant's reasoning goes in under both names vLLM gives it, tool-call arguments as an object, and a turn that
    only calls a tool has no content parts, as a client that sends null back has it
    (vLLM 0.33.0, renderers/chat_utils/chat_message.py).
    """
    question = _user(f"What is 2 + 2? {sentinel}")
    past = [_user("What is 2 + 2?"), _assistant("It is 4.", thought=PAST_THOUGHT)]
    called = called_tool(_assistant([], thought="I look it up."))
    result = tool_answer(f"21 degrees {sentinel}")
    return (
        Conversation("single_turn", [question]),
        Conversation("system", [{"role": "system", "content": "Answer briefly."}, question]),
        Conversation("multi_turn", [*past, _user(f"And 3 + 3? {sentinel}")]),
        Conversation("tools", [question], tools=[WEATHER]),
        Conversation("tool_result", [*called, result], tools=[WEATHER]),
        Conversation("user_start_marker", [_user(f"What does {start} mean? {sentinel}")]),
        Conversation("user_end_marker", [_user(f"What does {end} mean? {sentinel}")]),
        Conversation(
            "continue_final_message", [question, _assistant(f"{start}{PARTIAL_THOUGHT}", thought=None)], continues=True
        ),
    )


def called_tool(turn: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A question and the assistant's turn that calls a tool for it; `turn` is that turn without the call."""
    call = {
        "id": _CALL_ID,
        "type": "function",
        "function": {"name": "get_weather", "arguments": {"city": "Rome"}},
    }
    return [_user("What is the weather in Rome?"), {**turn, "tool_calls": [call]}]


def tool_answer(text: str) -> dict[str, Any]:
    """The tool's answer to that call."""
    return {"role": "tool", "tool_call_id": _CALL_ID, "name": "get_weather", "content": text}


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def _assistant(content: str | list[Any], *, thought: str | None) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    return message if thought is None else {**message, "reasoning": thought, "reasoning_content": thought}
