"""What the legacy parsers give, value by value; each was first seen in vLLM 0.33.0's own classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from reasonctl.parsers import Delta, ParserModel, ParserRaisedError, Split, Vocabulary, build
from reasonctl.parsers.assumed import AssumedVocabulary

R1_LIKE = ("deepseek_r1", "step5", "holo2")
ON = {
    "deepseek_r1": {}, "step5": {}, "holo2": {}, "ernie45": {}, "step3": {}, "hy_v4": {},
    "deepseek_v3": {"thinking": True}, "poolside_v1": {"enable_thinking": True}, "hy_v3": {"reasoning_effort": "high"},
}  # fmt: skip
"""Kwargs under which each splitting parser splits."""
OFF: dict[str, dict[str, Any]] = {
    "deepseek_v3": {}, "poolside_v1": {"thinking": False}, "holo2": {"enable_thinking": False},
    "hy_v3": {"reasoning_effort": "no_think"}, "hy_v4": {"reasoning_effort": "no_think"},
}  # fmt: skip


class Words(AssumedVocabulary):
    """Markers as single tokens, with a tokenizer configuration of one's own, and some markers missing."""

    def __init__(
        self, *markers: str, without: Sequence[str] = (), init_kwargs: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(("<response>", "</response>", *markers))
        self._init_kwargs = init_kwargs or {}
        self._without = without

    @property
    def vocab(self) -> Mapping[str, int]:
        return {text: token_id for text, token_id in super().vocab.items() if text not in self._without}

    @property
    def init_kwargs(self) -> Mapping[str, Any]:
        return self._init_kwargs


WORDS = Words()


def model(name: str, kwargs: Mapping[str, Any] | None = None, vocabulary: Vocabulary = WORDS) -> ParserModel:
    return build(name, vocabulary, ON.get(name, {}) if kwargs is None else kwargs)


def split(name: str, text: str, kwargs: Mapping[str, Any] | None = None) -> tuple[str | None, str | None]:
    parser = model(name, kwargs)
    parser.begin(WORDS.encode("<think></think>"), streaming=False)
    found = parser.split(text, WORDS.encode(text))
    return found.reasoning, found.content


def stream(
    name: str,
    *deltas: str | tuple[str, str],
    prompt: str | None = "hi",
    kwargs: Mapping[str, Any] | None = None,
    vocabulary: Words = WORDS,
) -> list[Delta | None]:
    """The messages for these deltas; a delta's ids are those of its text, or of the second text of a pair."""
    parser = model(name, kwargs, vocabulary)
    parser.begin(None if prompt is None else vocabulary.encode(prompt), streaming=True)
    pairs = [(delta, delta) if isinstance(delta, str) else delta for delta in deltas]
    return [
        parser.feed(text, vocabulary.encode(of), finished=number == len(pairs))
        for number, (text, of) in enumerate(pairs, 1)
    ]


def thought(text: str) -> Delta:
    return Delta(reasoning=text)


def answer(text: str) -> Delta:
    return Delta(content=text)


@pytest.mark.parametrize("name", sorted(ON))
def test_a_block_is_split(name: str) -> None:
    assert split(name, "plan</think>four") == ("plan", "four")
    assert stream(name, "plan", "</think>", "four", prompt="<think>") == [thought("plan"), None, answer("four")]
    assert stream(name, "plan</think>four") == [Delta("plan", "four")]


@pytest.mark.parametrize("name", sorted(ON))
def test_output_without_an_end_is_reasoning(name: str) -> None:
    assert split(name, "four") == ("four", None)
    assert stream(name, "fo", "ur") == [thought("fo"), thought("ur")]


@pytest.mark.parametrize("name", sorted(ON))
def test_nothing_after_the_end_is_null(name: str) -> None:
    assert split(name, "plan</think>") == ("plan", None)
    assert split(name, "</think>four") == ("", "four")
    assert stream(name, "plan</think>") == [Delta("plan", None)]


@pytest.mark.parametrize("name", sorted(set(ON) - {"step3"}))
def test_in_full_a_generated_start_is_dropped_with_what_stands_before_it(name: str) -> None:
    assert split(name, "noise<think>plan</think>four") == ("plan", "four")


@pytest.mark.parametrize("name", sorted(ON))
def test_only_the_first_end_counts(name: str) -> None:
    assert split(name, "a</think>b</think>c") == ("a", "b</think>c")
    assert stream(name, "a", "</think>", "b", "</think>", "c") == [
        thought("a"), None, answer("b"), answer("</think>"), answer("c"),
    ]  # fmt: skip


@pytest.mark.parametrize("name", sorted(set(ON) - {"step3", "ernie45"}))
def test_a_start_marker_that_shares_its_delta_leaks(name: str) -> None:
    assert stream(name, "<think>", "plan") == [None, thought("plan")]
    assert stream(name, "<think>plan", "</think>four") == [thought("<think>plan"), Delta("", "four")]
    assert stream(name, "noise<think>plan</think>four") == [Delta("plan", "four")]
    assert stream(name, "<think>", "<think>plan</think>four") == [None, Delta("<think>plan", "four")]


def test_ernie45_keeps_a_start_marker_that_shares_its_delta_even_with_the_end() -> None:
    assert stream("ernie45", "<think>step one", " step two</think>", "391") == [
        thought("<think>step one"), Delta(" step two", None), answer("391"),
    ]  # fmt: skip
    assert stream("ernie45", "<think>plan</think>four") == [Delta("<think>plan", "four")]


def test_step3_takes_a_start_marker_for_text() -> None:
    assert split("step3", "<think>plan</think>391") == ("<think>plan", "391")
    assert stream("step3", "<think>", "plan", "</think>", "391") == [
        thought("<think>"), thought("plan"), None, answer("391"),
    ]  # fmt: skip


@pytest.mark.parametrize("name", sorted(ON))
def test_a_lone_marker_takes_the_text_of_its_delta_with_it(name: str) -> None:
    """Text that arrives late (stop strings) and shares a delta with nothing but the marker's id is lost."""
    assert stream(name, ("late", "</think>"), "four") == [None, answer("four")]


@pytest.mark.parametrize("name", sorted(ON))
def test_a_marker_that_decoding_hides_cuts_one_character_before_the_end(name: str) -> None:
    assert stream(name, ("plan it", "plan</think> it")) == [Delta("plan i", None)]
    assert stream(name, ("0123456789", "a</think>b")) == [Delta("012345678", "789")]


@pytest.mark.parametrize("name", sorted(ON))
def test_a_closed_prompt_is_seen_by_the_stream_and_not_in_full(name: str) -> None:
    assert split(name, "391") == ("391", None)
    assert stream(name, "391", "</think>", prompt="<think>\n\n</think>\n\n") == [answer("391"), answer("</think>")]


@pytest.mark.parametrize("name", sorted(ON))
def test_a_closed_block_of_an_older_turn_reads_as_closed(name: str) -> None:
    history = "<think>old</think>answer<|im_end|><|im_start|>user\nnext<|im_end|><|im_start|>assistant\n"
    assert model(name).is_reasoning_end(WORDS.encode(history)) is True
    assert stream(name, "<think>", "new", prompt=history) == [answer("<think>"), answer("new")]


@pytest.mark.parametrize("name", sorted(ON))
def test_without_a_prompt_nothing_is_read_of_it(name: str) -> None:
    assert stream(name, "391", prompt=None) == [thought("391")]


@pytest.mark.parametrize(
    ("prompt", "ended"),
    [("", False), ("hi", False), ("<think>", False), ("</think>", True), ("</think><think>", False)],
)
@pytest.mark.parametrize("name", sorted(set(ON) - {"step3"}))
def test_the_last_marker_of_the_prompt_decides(name: str, prompt: str, ended: bool) -> None:
    assert model(name).is_reasoning_end(WORDS.encode(prompt)) is ended


def test_step3_reads_an_end_anywhere_in_the_prompt() -> None:
    assert model("step3").is_reasoning_end(WORDS.encode("</think>hi<think>")) is True


def test_poolside_reads_the_prompt_up_to_its_turn() -> None:
    parser = model("poolside_v1")
    assert parser.is_reasoning_end(WORDS.encode("</think>old<assistant>")) is False
    assert parser.is_reasoning_end(WORDS.encode("<assistant></think>")) is True
    assert stream("poolside_v1", "plan</think>four", prompt="a</think>b<assistant>") == [Delta("plan", "four")]


@pytest.mark.parametrize("name", sorted(OFF))
def test_switched_off_everything_is_content(name: str) -> None:
    off = OFF[name]
    assert split(name, "<think>a</think>b", off) == (None, "<think>a</think>b")
    assert model(name, off).is_reasoning_end([]) is True
    assert stream(name, "<think>", "", "a", kwargs=off) == [answer("<think>"), answer(""), answer("a")]


@pytest.mark.parametrize("name", sorted(OFF))
def test_switched_off_without_a_prompt_an_empty_first_delta_is_no_message(name: str) -> None:
    assert stream(name, "", "a", prompt=None, kwargs=OFF[name]) == [None, answer("a")]
    assert stream(name, "a", "", prompt=None, kwargs=OFF[name]) == [answer("a"), answer("")]


@pytest.mark.parametrize(
    ("kwargs", "on"),
    [
        ({}, False), ({"thinking": True}, True), ({"enable_thinking": True}, True), ({"thinking": False}, False),
        ({"thinking": False, "enable_thinking": True}, True), ({"enable_thinking": None}, False),
        ({"thinking": "no"}, True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["deepseek_v3", "poolside_v1"])
def test_parsers_that_are_off_by_default(name: str, kwargs: dict[str, Any], on: bool) -> None:
    assert (split(name, "four", kwargs) == ("four", None)) is on


@pytest.mark.parametrize(
    ("kwargs", "on"),
    [
        ({}, True), ({"enable_thinking": None, "thinking": None}, True), ({"enable_thinking": False}, False),
        ({"thinking": False}, False), ({"thinking": False, "enable_thinking": True}, True), ({"other": 1}, True),
    ],
)  # fmt: skip
def test_holo2_is_on_unless_told_otherwise(kwargs: dict[str, Any], on: bool) -> None:
    assert (split("holo2", "four", kwargs) == ("four", None)) is on


@pytest.mark.parametrize(("effort", "v3", "v4"), [
    (None, False, True), ("", False, True), ("no_think", False, False), ("none", True, True), ("high", True, True),
])  # fmt: skip
def test_the_effort_switches_hy(effort: str | None, v3: bool, v4: bool) -> None:
    kwargs = {"reasoning_effort": effort}
    assert (split("hy_v3", "four", kwargs) == ("four", None)) is v3
    assert (split("hy_v4", "four", kwargs) == ("four", None)) is v4


def count(name: str, text: str, kwargs: Mapping[str, Any] | None = None) -> int:
    return model(name, kwargs).count_reasoning_tokens(WORDS.encode(text))


@pytest.mark.parametrize("name", sorted(set(ON) - {"step3", "hy_v4"}))
def test_tokens_count_only_inside_a_generated_block(name: str) -> None:
    assert count(name, "one two three</think>done now") == 0
    assert count(name, "<think>one two three</think>done now") == 3
    assert count(name, "</think><think>a b<think>c</think>d</think>e") == 4


def test_step3_and_hy_v4_count_what_the_prompt_opened() -> None:
    assert count("step3", "one two three</think>done now") == 3
    assert count("step3", "<think>one two") == 3
    assert count("hy_v4", "one two three</think>done now") == 3
    assert count("hy_v4", "<think>one two") == 2
    assert count("hy_v4", "one<think>two") == 3
    assert count("hy_v4", "", {}) == 0


def test_counts_when_switched_off() -> None:
    assert count("hy_v3", "<think>a b</think>c", OFF["hy_v3"]) == 2  # it counts all the same
    assert count("hy_v4", "<think>a b</think>c", OFF["hy_v4"]) == 0
    assert count("deepseek_v3", "<think>a b</think>c", {}) == 0


def test_ernie45_takes_the_answer_out_of_its_response_tags() -> None:
    assert split("ernie45", "abc\n</think>\n\n<response>\ndef\n</response>\n") == ("abc\n", "\ndef\n")
    assert split("ernie45", "a</think>x<response></response>y") == ("a", None)
    assert split("ernie45", "a</think></response>x<response>") == ("a", "</response>x<response>")
    assert split("ernie45", "a</think>x</response>") == ("a", "x</response>")


def test_ernie45_strips_response_tags_only_beside_the_end_marker() -> None:
    whole = "abc\n</think>\n\n<response>\ndef\n</response>\n"
    # The closing tag's place was found before the opening was cut away, so most of it stays.
    assert stream("ernie45", whole) == [Delta("abc\n", "\ndef\n</response")]
    assert stream("ernie45", "abc", "</think>", "<response>", "def", "</response>") == [
        thought("abc"), None, answer("<response>"), answer("def"), answer("</response>"),
    ]  # fmt: skip
    assert stream("ernie45", "a</think>\n\nb</response>") == [Delta("a", "b")]
    assert stream("ernie45", "a", "<response>", "b") == [thought("a"), None, thought("b")]


def test_append_think_splits_nothing() -> None:
    assert split("minimax_m2_append_think", "plan it</think>\n\n391") == (None, "<think>plan it</think>\n\n391")
    assert stream("minimax_m2_append_think", "plan", "</think>", "391") == [
        answer("<think>plan"), answer("</think>"), answer("391"),
    ]  # fmt: skip
    assert count("minimax_m2_append_think", "<think>a</think>") == 0


def test_append_think_adds_nothing_behind_a_closed_prompt() -> None:
    assert stream("minimax_m2_append_think", "391", prompt="<think></think>") == [answer("391")]
    assert split("minimax_m2_append_think", "391") == (None, "<think>391")


def test_append_think_writes_its_marker_until_an_id_has_come() -> None:
    parser = model("minimax_m2_append_think")
    parser.begin([], streaming=True)
    assert parser.feed("a", []) == answer("<think>a")
    assert parser.feed("b", [7]) == answer("<think>b")
    assert parser.feed("c", []) == answer("c")


def test_append_think_needs_no_markers_in_the_vocabulary() -> None:
    bare = Words(without=("<think>", "</think>"))
    assert stream("minimax_m2_append_think", "a", "</think>", vocabulary=bare) == [
        answer("<think>a"),
        answer("</think>"),
    ]
    assert model("minimax_m2_append_think", {}, bare).is_reasoning_end(bare.encode("</think>")) is False


@pytest.mark.parametrize("missing", ["<think>", "</think>"])
@pytest.mark.parametrize(
    ("name", "who"),
    [
        ("deepseek_r1", "DeepSeekR1ReasoningParser"), ("step5", "DeepSeekR1ReasoningParser"),
        ("deepseek_v3", "DeepSeekR1ReasoningParser"), ("holo2", "DeepSeekR1ReasoningParser"),
        ("poolside_v1", "DeepSeekR1ReasoningParser"), ("ernie45", "Ernie45ReasoningParser"),
        ("hy_v3", "HYV3ReasoningParser"),
    ],
)  # fmt: skip
def test_markers_that_are_no_tokens_are_an_error(name: str, who: str, missing: str) -> None:
    with pytest.raises(ParserRaisedError) as raised:
        model(name, None, Words(without=(missing,)))
    assert raised.value.exception == "RuntimeError"
    assert raised.value.message == f"{who} reasoning parser could not locate think start/end tokens in the tokenizer!"


def test_step3_demands_its_end_marker_alone() -> None:
    assert model("step3", {}, Words(without=("<think>",))).split("a", []) == Split("a", None)
    with pytest.raises(ParserRaisedError, match="could not locate think end token"):
        model("step3", {}, Words(without=("</think>",)))


def test_what_is_demanded_when_thinking_is_off() -> None:
    bare = Words(without=("<think>", "</think>"))
    assert model("deepseek_v3", {}, bare).split("a", []) == Split(None, "a")
    assert model("hy_v4", {"reasoning_effort": "no_think"}, bare).split("a", []) == Split(None, "a")
    with pytest.raises(ParserRaisedError, match="HYV3ReasoningParser"):
        model("hy_v3", {}, bare)
    with pytest.raises(ParserRaisedError, match="HYV4 reasoning extractor could not locate"):
        model("hy_v4", {}, bare)


def test_poolside_demands_its_turn_token_after_its_markers() -> None:
    for kwargs in ({}, {"thinking": True}):
        with pytest.raises(ParserRaisedError) as raised:
            model("poolside_v1", kwargs, Words(without=("<assistant>",)))
        assert (raised.value.exception, raised.value.message) == (
            "ValueError", "Tokenizer must contain '<assistant>' token",
        )  # fmt: skip
    with pytest.raises(ParserRaisedError, match="RuntimeError"):
        model("poolside_v1", {"thinking": True}, Words(without=("<assistant>", "<think>")))


def test_hy_v3_takes_its_suffix_from_the_tokenizer_configuration() -> None:
    suffixed = Words("<think:s>", "</think:s>", init_kwargs={"token_suffix": ":s"})
    assert stream("hy_v3", "a</think>", "</think:s>", "b", vocabulary=suffixed) == [
        thought("a</think>"), None, answer("b"),
    ]  # fmt: skip
    with pytest.raises(ParserRaisedError, match="HYV3ReasoningParser"):
        model("hy_v3", None, Words(init_kwargs={"token_suffix": ":s"}))


def test_hy_v4_takes_its_suffix_from_the_vocabulary() -> None:
    suffixed = Words("<think:6124c78e>", "</think:6124c78e>", without=("<think>", "</think>", "<tool_call>"))
    assert stream("hy_v4", "a</think:6124c78e>b", vocabulary=suffixed) == [Delta("a", "b")]


@pytest.mark.parametrize(
    ("special", "exception"), [({"think_begin_token": "<think>"}, "RuntimeError"), (None, "AttributeError"), ({}, None)]
)
def test_hy_v4_refuses_what_transformers_5_dropped(special: object, exception: str | None) -> None:
    vocabulary = Words(init_kwargs={"model_specific_special_tokens": special})
    if exception is None:
        assert model("hy_v4", {}, vocabulary).split("a", []) == Split("a", None)
        return
    for kwargs in ({}, {"reasoning_effort": "no_think"}):
        with pytest.raises(ParserRaisedError) as raised:
            model("hy_v4", kwargs, vocabulary)
        assert raised.value.exception == exception


@pytest.mark.parametrize("name", [*sorted(ON), "minimax_m2_append_think"])
def test_the_request_keeps_its_own_special_tokens(name: str) -> None:
    assert model(name).skip_special_tokens is None


@pytest.mark.parametrize("name", [*sorted(ON), "minimax_m2_append_think"])
def test_a_model_keeps_nothing_of_what_it_has_read(name: str) -> None:
    """Constant memory: what it holds after 20000 deltas is no more than after 10000, and its class holds none of it."""
    parser = model(name)
    before = dict(vars(type(parser)))
    parser.begin([], streaming=True)
    sizes = []
    for _ in range(2):
        for _ in range(10_000):
            parser.feed("word ", [5, 6])
        sizes.append(len(repr(vars(parser))))
    assert sizes[0] == sizes[1]
    assert dict(vars(type(parser))) == before
