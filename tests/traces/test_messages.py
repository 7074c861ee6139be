"""Messages as the template gets them, and the request behind a bare capture."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reasonctl.errors import InputError
from reasonctl.traces.messages import for_template, read_request

BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "reasoning_effort": "low"}


def test_text_is_one_string_arguments_are_objects_reasoning_has_both_names() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    broken = {"id": "2", "type": "function", "function": {"name": "f", "arguments": "{"}}
    shown = for_template(
        [
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": [call, broken]},
            {"role": "tool", "tool_call_id": "1", "content": "5"},
            "nonsense",
        ]
    )
    assert shown[0] == {"role": "user", "content": "a\nb"}
    assert (shown[1]["content"], shown[1]["reasoning"], shown[1]["reasoning_content"]) == ("", "hm", "hm")
    assert [one["function"]["arguments"] for one in shown[1]["tool_calls"]] == [{"a": 1}, {}]
    assert shown[2] == {"role": "tool", "tool_call_id": "1", "content": "5"}
    assert len(shown) == 3


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
