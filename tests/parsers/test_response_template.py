"""hf and beam: what a response template makes of prompts and outputs, and which templates are refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonctl.parsers import Target, build
from reasonctl.parsers.base import Delta, ParserModel, ParserRaisedError, Split
from reasonctl.parsers.differential.vocabulary import Spec, SpecVocabulary
from reasonctl.parsers.models.template_literals import literals
from reasonctl.parsers.models.template_reader import Event, Reader
from reasonctl.parsers.models.template_spec import Delimiter, serving_template

CALL = {"open": "<tool_call>", "close": "</tool_call>", "content": "json"}
FIELDS = {"thinking": {"open": "<think>", "close": "</think>"}, "tool_calls": CALL}
MARKERS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<|im_start|>")


def vocabulary(fields: Mapping[str, Any] | None = None, **others: Any) -> SpecVocabulary:
    template = {"start_anchor": "<|im_start|>", "fields": dict(FIELDS if fields is None else fields), **others}
    markers = tuple((text, "plain") for text in MARKERS)
    return SpecVocabulary(Spec(("Let me", " see"), markers, init_kwargs={"response_template": template}))


def model(of: SpecVocabulary, prompt: str | None = "<|im_start|>", **kwargs: Any) -> ParserModel:
    built = build("hf", of, kwargs.pop("kwargs", {}), target=kwargs.pop("target", None))
    built.begin(None if prompt is None else of.encode(prompt), streaming=True)
    return built


def stream(of: SpecVocabulary, texts: Sequence[str], prompt: str | None = "<|im_start|>") -> list[Delta | None]:
    built = model(of, prompt)
    return [built.feed(text, of.encode(text), finished=at == len(texts) - 1) for at, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("prompt", "output", "reasoning", "content"),
    [
        ("<|im_start|>", "<think>Hm</think>four", "Hm", "four"),
        ("<|im_start|><think>", "Hm</think>four", "Hm", "four"),
        ("<|im_start|><think></think>", "four", None, "four"),
        ("<think>old<|im_start|>", "four", None, "four"),
        (None, "<think>Hm", "Hm", None),
        ("<|im_start|>", "", None, None),
        ("<|im_start|>", "<think></think>", None, None),
        ("<|im_start|>", '<think>Hm</think><tool_call>{"a": 1}</tool_call>', "Hm", '<tool_call>{"a": 1}</tool_call>'),
        ("<|im_start|>", "<tool_call>no json</tool_call>x", None, "<tool_call>no json</tool_call>x"),
        ("<|im_start|><tool_call>", "{}</tool_call>four", None, "{}</tool_call>four"),
        ("<|im_start|>", "four</thi", None, "four</thi"),
    ],
)
def test_whole_outputs(prompt: str | None, output: str, reasoning: str | None, content: str | None) -> None:
    assert model(vocabulary(), prompt).split(output, ()) == Split(reasoning, content)


def test_what_may_be_a_delimiter_waits() -> None:
    assert stream(vocabulary(), ["<th", "ink>", "Hm<", "/think", "x</think>", "four"]) == [
        None,
        None,
        Delta("Hm", None),
        None,
        Delta("</thinkx", None),
        Delta(None, "four"),
    ]


def test_a_longer_spelling_counts_only_where_it_comes_at_once() -> None:
    """A match that may grow waits for one more delta; with half of the rest in it, the shorter spelling counts."""
    fields = {"thinking": {"open": "<think>", "close": ["</think>", "</think>\n\n"]}}
    assert stream(vocabulary(fields), ["<think>Hm</think>", "\n\nfour"]) == [Delta("Hm", None), Delta(None, "four")]
    assert stream(vocabulary(fields), ["<think>Hm</think>", "\n", "\nfour"]) == [
        Delta("Hm", None),
        Delta(None, "\n"),
        Delta(None, "\nfour"),
    ]


def test_patterns_take_the_white_space_with_them() -> None:
    fields = {"thinking": {"open_pattern": r"<think>\s*", "close_pattern": r"\s*</think>\s*"}}
    assert model(vocabulary(fields)).split("<think>\nHm\n</think>\n\nfour", ()) == Split("Hm", "four")
    assert stream(vocabulary(fields), ["<think>\n", "\nHm", "\n", "</think>", "\n", "four"]) == [
        None,
        Delta("Hm", None),
        None,
        None,
        None,
        Delta(None, "four"),
    ]


def test_the_prompt_is_not_given_out() -> None:
    """What the prompt left undecided belongs to it, though the output decides it."""
    assert stream(vocabulary(), ["x four"], "<|im_start|><thin") == [Delta(None, "x four")]
    assert stream(vocabulary(), ["k>Hm"], "<|im_start|><thin") == [Delta("Hm", None)]


@pytest.mark.parametrize(
    ("prompt", "on", "off"),
    [
        ("<|im_start|>", False, True),
        ("<|im_start|><think>", False, False),
        ("<|im_start|><think>Hm</think>", True, True),
        ("<|im_start|><tool_call>", True, True),
        ("<|im_start|>four", True, True),
        ("<think></think><|im_start|>", False, True),
    ],
)
def test_what_a_prompt_says(prompt: str, on: bool, off: bool) -> None:
    of = vocabulary()
    assert model(of).is_reasoning_end(of.encode(prompt)) is on
    assert model(of, kwargs={"enable_thinking": False}).is_reasoning_end(of.encode(prompt)) is off


def test_thinking_that_may_come_again_never_ends_and_one_that_is_not_there_always_has() -> None:
    again = vocabulary({"thinking": {"open": "<think>", "close": "</think>", "repeats": True}})
    assert model(again).is_reasoning_end(again.encode("<|im_start|><think></think>")) is False
    never = vocabulary({"content": {}})
    assert model(never).is_reasoning_end([]) is True


@pytest.mark.parametrize(
    ("prompt", "output", "tokens"),
    [
        ("<|im_start|>", "<think>ab</think>c", 2),
        ("<|im_start|><think>", "ab</think>c", 2),
        ("<|im_start|>", "<think>a</think><think>b</think>", 2),
        ("<|im_start|>", "<think>ab", 2),
        ("<|im_start|>", "ab", 0),
    ],
)
def test_tokens_between_the_delimiters_count(prompt: str, output: str, tokens: int) -> None:
    of = vocabulary()
    assert model(of, prompt).count_reasoning_tokens(of.encode(output)) == tokens
    older = model(of, prompt, target=Target("vllm", (0, 32, 0)))
    assert older.count_reasoning_tokens(of.encode(output)) == 0, "0.32.0 counts none"


def test_a_closer_that_goes_on_with_the_next_message_is_completed_since_0_33() -> None:
    of = vocabulary({"thinking": {"open": "<think>", "close": "<|im_end|><|im_start|>"}})
    assert model(of).split("<think>Hm<|im_end|>", ()) == Split("Hm", None)
    assert model(of).split("<think>Hm<|im_end|><|im", ()) == Split("Hm", None)
    older = model(of, target=Target("vllm", (0, 32, 0)))
    assert older.split("<think>Hm<|im_end|>", ()) == Split("Hm<|im_end|>", None)


@pytest.mark.parametrize(
    ("template", "exception"),
    [
        (None, "ValueError"),
        ({"fields": FIELDS}, "ValueError"),
        ({"start_anchor": "a", "fields": {}}, "ValueError"),
        ({"start_anchor": "a", "fields": FIELDS, "version": 2}, "ValueError"),
        ({"start_anchor": "a", "fields": FIELDS, "more": 1}, "ValueError"),
        ({"start_anchor": "a", "fields": FIELDS, "defaults": {"name": "x"}}, "ValueError"),
        ({"start_anchor": "a", "fields": {"other": {"open": "x"}}}, "ValueError"),
        ({"start_anchor": "a", "fields": {"thinking": {"open_pattern": "("}}}, "ValueError"),
        ({"start_anchor": "a", "fields": {"thinking": {"open_pattern": 5}}}, "TypeError"),
        ({"start_anchor": "a", "fields": {"thinking": {"open": "x", "content": []}}}, "TypeError"),
        ({"start_anchor": "a", "fields": {"thinking": {"open": "x", "content": "json"}}}, "ValueError"),
        ({"start_anchor": "a", "fields": {"tool_calls": {"open": "x", "content": "python-call-list"}}}, "ValueError"),
    ],
)
@pytest.mark.parametrize("name", ["hf", "beam"])
def test_templates_that_are_refused(name: str, template: object, exception: str) -> None:
    of = SpecVocabulary(Spec(init_kwargs={"response_template": template}))
    with pytest.raises(ParserRaisedError) as caught:
        build(name, of, {})
    assert caught.value.exception == exception


@pytest.mark.parametrize(
    ("call", "body", "exception"),
    [
        ({"content_args": []}, "{}", "AttributeError"),
        ({"content_args": {}}, "[" * 100_000, "RecursionError"),
        ({"content": "xml-inline", "content_args": {"tag_pattern": "("}}, "", "error"),
        ({"content": "kv-lines", "content_args": {"value_parser": []}}, "a: 1", "AttributeError"),
        ({"content": "kv-lines", "content_args": {"value_parser": {"name": "int"}}}, "a: x", None),
        ({"content": "xml-inline"}, "", None),
        ({"content": "int"}, "x", None),
        ({"content_args": {"string_delims": [["'", "'"]], "unquoted_keys": True}}, "{a: 'x'}", None),
        ({"content_args": {"string_delims": [["'", "'"]]}}, "\x01", None),
    ],
)
def test_values_that_raise(call: Mapping[str, Any], body: str, exception: str | None) -> None:
    of = vocabulary({**FIELDS, "tool_calls": {**CALL, **call}})
    output = f"<tool_call>{body}</tool_call>"
    try:
        found = model(of).split(output, ())
    except ParserRaisedError as error:
        assert error.exception == exception
    else:
        assert (exception, found) == (None, Split(None, output))


def test_a_prompt_that_cannot_be_read_refuses_beams_request_at_once() -> None:
    of = vocabulary({**FIELDS, "tool_calls": {**CALL, "content_args": []}})
    prompt = of.encode("<|im_start|><tool_call>{}</tool_call>")
    with pytest.raises(ParserRaisedError):
        build("beam", of, {}).begin(prompt, streaming=False)
    later = build("hf", of, {})
    later.begin(prompt, streaming=False)
    assert later.is_reasoning_end(prompt) is False
    with pytest.raises(ParserRaisedError):
        later.split("four", ())


def test_nothing_comes_after_the_end() -> None:
    built = model(vocabulary())
    assert built.feed("four", (), finished=True) == Delta(None, "four")
    assert built.feed("more", (), finished=True) is None


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("abc", ["abc"]),
        ("a|b|a", ["a", "b"]),
        (r"(?:<\|x\|>|y)z?", ["<|x|>", "<|x|>z", "y", "yz"]),
        (r"a\n", ["a\n"]),
        (r"a\s", []),
        ("a*", []),
        ("(a)", []),
        ("^a", []),
        ("a(?=b)", []),
        ("(?:a|b)(?:c|d)(?:e|f)(?:g|h)(?:i|j)", []),
        ("(?:a", []),
        ("a)b", []),
    ],
)
def test_texts_of_simple_patterns(pattern: str, expected: list[str]) -> None:
    class Compiled:
        def __init__(self, text: str) -> None:
            self.pattern = text

    assert literals(Delimiter(Compiled(pattern), None, grows=True)) == expected  # type: ignore[arg-type]


def test_events_say_where_delimiters_stand() -> None:
    reader = Reader(serving_template(vocabulary()), "x<|im_start|><think>a")
    assert reader.initial == [Event("open", "thinking", 0, 7), Event("text", "thinking", 7, 8, "a")]
    assert reader.feed("b</think>c") == [
        Event("text", "thinking", 8, 9, "b"),
        Event("close", "thinking", 9, 17),
        Event("open", "content", 17, 17),
        Event("text", "content", 17, 18, "c"),
    ]
    assert reader.finish() == [Event("close", "content", 18, 18)]


PIECES = st.lists(st.sampled_from(["<think>", "</think>", "<th", "ink>", "<tool_call>", "</tool_call>", "a", " ", "<"]))


@given(PIECES, st.data())
def test_a_stream_adds_up_to_the_whole(pieces: list[str], data: st.DataObject) -> None:
    """With literals alone nothing depends on where the text is cut."""
    of, whole = vocabulary(), "".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    texts = [whole[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    deltas = [delta for delta in stream(of, texts) if delta is not None]
    reasoning = "".join(delta.reasoning or "" for delta in deltas) or None
    content = "".join(delta.content or "" for delta in deltas) or None
    assert model(of).split(whole, ()) == Split(reasoning, content)
