"""What a request's messages are by the time a template sees them."""

from __future__ import annotations

from typing import Any

import pytest

from reasonctl.prompts.messages import as_handed_over


@pytest.mark.parametrize(
    ("given", "handed"),
    [
        ('{"city": "Rome"}', {"city": "Rome"}),
        ({"city": "Rome"}, {"city": "Rome"}),
        ("", {}),
        (None, {}),
        ("[1]", {}),
        ("{broken", {}),
    ],
)
def test_tool_call_arguments_become_an_object(given: Any, handed: dict[str, Any]) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": given}}
    (message,) = as_handed_over([{"role": "assistant", "content": None, "tool_calls": [call]}])
    assert message["content"] == []
    assert message["tool_calls"][0]["function"] == {"name": "f", "arguments": handed}
    assert call["function"]["arguments"] is given  # type: ignore[index]


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_reasoning_goes_in_under_both_names(field: str) -> None:
    (message,) = as_handed_over([{"role": "assistant", "content": "4", field: "two and two"}])
    assert message == {
        "role": "assistant",
        "content": "4",
        "reasoning": "two and two",
        "reasoning_content": "two and two",
    }


def test_only_known_keys_get_through() -> None:
    handed = as_handed_over(
        [
            {"role": "user", "content": "x", "name": "ada", "cache": 1, "reasoning": "no"},
            {"role": "tool", "content": "y", "tool_call_id": "a", "is_error": True},
            {"role": "assistant", "content": "z", "tool_calls": []},
        ]
    )
    assert handed == [
        {"role": "user", "content": "x", "name": "ada"},
        {"role": "tool", "content": "y", "tool_call_id": "a"},
        {"role": "assistant", "content": "z"},
    ]
