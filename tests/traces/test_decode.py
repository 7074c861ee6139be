"""JSON values that Python reads and a recording cannot hold: each costs its own place in the file, and says why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonctl.errors import InputError
from reasonctl.traces.decode import BadValueError, NotJsonError, loads, raw_decode
from reasonctl.traces.read import read_traces
from reasonctl.traces.request import read_request
from reasonctl.traces.surrogates import holds_half, whole
from reasonctl.traces.trace import BrokenLine, Trace

HUGE = "9" * 5000
TEXTS = st.text(st.characters(exclude_categories=())) | st.text()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
GOOD = '{"output": {"text": "<think>a</think>b"}}'


def read(folder: Path, content: str, name: str = "r.txt") -> list[Trace | BrokenLine]:
    path = folder / name
    path.write_text(content)
    return list(read_traces(str(path)))


def chunk(text: str, **more: Any) -> str:
    return json.dumps({"id": "r", "choices": [{"index": 0, "delta": {"content": text}}]} | more)


@given(VALUES)
def test_what_python_writes_is_read(value: Any) -> None:
    text = json.dumps(value)
    assert loads(text) == value
    assert raw_decode(f" {text} ,", 1)[0] == value


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": {"b": 1, "b": 2}}', "the key 'b' stands twice"),
        (f'{{"a": [{HUGE}]}}', "a number too long"),
        (f'{{"a": [-{HUGE}]}}', "a number too long"),
    ],
)
def test_a_value_that_cannot_be_taken_says_why_and_where_it_ends(text: str, says: str) -> None:
    with pytest.raises(BadValueError, match=says):
        loads(text)
    with pytest.raises(BadValueError, match=says) as caught:
        raw_decode(f"[{text}, 1]", 1)
    assert caught.value.end == 1 + len(text)


@pytest.mark.parametrize("text", ["{", '{"a": 1, "a": 2', f'{{"a": {HUGE}', "[1 2]"])
def test_what_is_cut_or_no_json_is_no_bad_value(text: str) -> None:
    with pytest.raises(NotJsonError) as caught:
        raw_decode(text, 0)
    assert not isinstance(caught.value, BadValueError)


@pytest.mark.parametrize(
    ("bad", "says"),
    [(f'{{"output": {{"text": "x"}}, "n": {HUGE}}}', "too long"), ('{"output": {}, "output": {"text": "x"}}', "twice")],
)
@pytest.mark.parametrize("layout", ["{0}\n{1}\n{0}\n", "[{0}, {1}, {0}]", "[\n{0},\n{1},\n{0}\n]"])
def test_one_bad_value_costs_itself(bad: str, says: str, layout: str, tmp_path: Path) -> None:
    first, broken, last = read(tmp_path, layout.format(GOOD, bad))
    assert isinstance(first, Trace)
    assert isinstance(broken, BrokenLine)
    assert says in broken.reason
    assert "set_int_max" not in broken.reason
    assert broken.line == 1 + layout.partition("{1}")[0].count("\n")
    assert isinstance(last, Trace)


def test_one_bad_event_costs_itself(tmp_path: Path) -> None:
    bad = chunk("lost")[:-1] + f', "created": {HUGE}}}'
    content = "".join(f"data: {one}\n\n" for one in (chunk("a"), bad, chunk("b"), "[DONE]"))
    broken, found = read(tmp_path, content)
    reason = "the data of this event cannot be taken (a number too long to be one)"
    assert broken == BrokenLine(str(tmp_path / "r.txt"), 3, reason, "mend it or take it out")
    assert isinstance(found, Trace)
    assert found.output_text == "ab"


def test_a_bad_last_event_is_not_called_cut(tmp_path: Path) -> None:
    _, broken = sorted(
        read(tmp_path, f'data: {chunk("a")}\n\ndata: {{"a": 1, "a": 2}}\n'), key=lambda x: isinstance(x, BrokenLine)
    )
    assert isinstance(broken, BrokenLine)
    assert "the key 'a' stands twice" in broken.reason


@pytest.mark.parametrize("bad", [f"- n: {HUGE}", "- ? [a]\n  : 3", '- response: {body: {base64_string: "x"}}'])
def test_one_bad_interaction_costs_itself(bad: str, tmp_path: Path) -> None:
    answer = json.dumps({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]})
    good = f"- response: {{body: {{string: {json.dumps(answer)}}}}}"
    content = f"version: {HUGE}\ninteractions:\n{good}\n{bad}\n{good}\nmore: {HUGE}\n"
    first, broken, last = read(tmp_path, content)
    assert isinstance(first, Trace)
    assert isinstance(broken, BrokenLine)
    assert broken.line == 4
    assert "interaction" in broken.reason
    assert isinstance(last, Trace)


def test_a_bad_body_costs_its_interaction(tmp_path: Path) -> None:
    body = f'{{"choices": [{{"message": {{"content": "hi"}}}}], "created": {HUGE}}}'
    answers = [
        {"response": {"body": {"string": one}}} for one in (body, '{"choices": [{"message": {"content": "b"}}]}')
    ]
    broken, found = read(tmp_path, json.dumps({"interactions": answers}))
    assert isinstance(broken, BrokenLine)
    assert "too long" in broken.reason
    assert isinstance(found, Trace)


@given(VALUES)
def test_whole_texts_can_be_encoded_and_others_stay(value: Any) -> None:
    mended = whole(value)
    json.dumps(mended, ensure_ascii=False).encode()
    if not holds_half(value):
        assert mended == value


def test_halves_are_joined_across_deltas(tmp_path: Path) -> None:
    parts = ("<think>a\ud83d", "", "\ude00</think>", "x\ud83d")
    (found,) = read(tmp_path, "".join(f"data: {chunk(part)}\n\n" for part in parts))
    assert isinstance(found, Trace)
    assert found.output_text == "<think>a😀</think>x�"
    assert [delta.text for delta in found.deltas] == ["<think>a", "😀</think>", "x�"]


def test_halves_are_joined_within_each_field(tmp_path: Path) -> None:
    deltas = [{"reasoning": "a\ud83d"}, {"reasoning": "\ude00"}, {"content": "\ude00b"}]
    lines = [json.dumps({"id": "r", "choices": [{"index": 0, "delta": delta}]}) for delta in deltas]
    (found,) = read(tmp_path, "\n".join(lines))
    assert isinstance(found, Trace)
    assert found.segments == (("reasoning", "a"), ("reasoning", "😀"), ("content", "�b"))
    assert found.recorded is not None
    assert (found.recorded.reasoning, found.recorded.content) == ("a😀", "�b")


def test_a_trace_line_with_half_a_character(tmp_path: Path) -> None:
    line = {
        "id": "\ud800",
        "output": {"text": "a\udfff", "deltas": [{"text": "a"}, {"text": "\udfff"}]},
        "request": {"messages": [{"role": "user", "content": "\ud83d\ude00\ud83d"}]},
        "more\ud800": ["\ud800"],
    }
    (found,) = read(tmp_path, json.dumps(line))
    assert isinstance(found, Trace)
    assert (found.id, found.output_text, found.deltas[1].text) == ("�", "a�", "�")
    assert found.request["messages"][0]["content"] == "😀�"
    assert found.extra == {"more�": ["�"]}


def test_a_request_with_half_a_character_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps({"model": "m", "messages": [{"role": "user", "content": "a\ud800"}]}))
    with pytest.raises(InputError, match="half a character"):
        read_request(str(path))
