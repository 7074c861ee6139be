"""The engine models: each named scenario, and what must hold for every output."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonctl.parsers.base import ParserModel, ParserRaisedError
from reasonctl.parsers.differential.vocabulary import Spec, SpecVocabulary
from reasonctl.parsers.models.engine import ENGINE_NAMES, build_engine
from reasonctl.parsers.target import Target

from .engine_dialect_scenarios import DIALECT_SCENARIOS
from .engine_format_scenarios import FORMAT_SCENARIOS
from .engine_scenarios import SCENARIOS
from .scenario import MARKERS, Scenario

ALL = (*SCENARIOS, *DIALECT_SCENARIOS, *FORMAT_SCENARIOS)


def model(scenario: Scenario, vocabulary: SpecVocabulary, *, streaming: bool) -> ParserModel:
    case = scenario.case(vocabulary)
    version = tuple(int(part) for part in scenario.version.split("."))
    built = build_engine(
        scenario.parser,
        vocabulary,
        case["kwargs"],
        request_kwargs=case["request_kwargs"],
        target=Target("vllm", (version[0], version[1], version[2])),
    )
    built.begin(case["prompt_ids"], streaming=streaming)
    return built


@pytest.mark.parametrize("scenario", ALL, ids=lambda scenario: f"{scenario.parser}: {scenario.label}")
def test_whole_output(scenario: Scenario) -> None:
    vocabulary = SpecVocabulary(scenario.spec())
    case = scenario.case(vocabulary)
    parser = model(scenario, vocabulary, streaming=False)
    split = parser.split(case["text"], case["ids"])
    assert (split.reasoning, split.content) == (scenario.reasoning, scenario.content)
    assert parser.count_reasoning_tokens(case["ids"]) == scenario.tokens


@pytest.mark.parametrize("scenario", ALL, ids=lambda scenario: f"{scenario.parser}: {scenario.label}")
def test_stream(scenario: Scenario) -> None:
    vocabulary = SpecVocabulary(scenario.spec())
    case = scenario.case(vocabulary)
    parser = model(scenario, vocabulary, streaming=True)
    (deltas,) = case["streams"]
    got = [parser.feed(text, ids, finished=number == len(deltas) - 1) for number, (text, ids) in enumerate(deltas)]
    assert [delta and (delta.reasoning, delta.content) for delta in got] == list(scenario.stream)
    expected = scenario.tokens if scenario.stream_tokens is None else scenario.stream_tokens
    assert parser.count_reasoning_tokens(case["ids"]) == expected


def test_the_labels_are_names() -> None:
    assert len({(scenario.parser, scenario.label) for scenario in ALL}) == len(ALL)


def test_every_name_has_a_scenario() -> None:
    assert {scenario.parser for scenario in ALL} == set(ENGINE_NAMES) - {"mimo", "glm47"}, "which equal qwen3 and glm45"


VOCABULARY = SpecVocabulary(Spec(("Let me", " see", "\n\n"), tuple((text, "plain") for text in MARKERS)))


@pytest.mark.parametrize(
    ("name", "prompt", "ended"),
    [
        ("qwen3", "<|im_start|>hi", False),
        ("qwen3", "<|im_start|>hi<think>", False),
        ("qwen3", "<|im_start|>hi<think>\n\n</think>\n\n", True),
        ("qwen3", "<think>a</think>b<|im_end|><|im_start|>hi", False),
        ("qwen3", "<|im_start|>hi</think>", True),
        ("qwen3", "<|im_start|>hi<tool_call>", True),
        ("seed_oss", "<seed:bos><think></think>", False),
        ("seed_oss", "<seed:bos><seed:think></seed:think>", True),
        ("glm45", "<think></think><|user|>", False),
        ("glm45", "<|user|></think>", True),
        ("kimi_k2", "<think></think><|im_end|>", True),
        ("kimi_k2", "<|tool_calls_section_begin|>", True),
        ("minimax_m2", "<minimax:tool_call>", True),
        ("minicpmv", "<think></think><|im_end|>", True),
        ("deepseek_v4", "<｜DSML｜tool_calls>", True),
        ("deepseek_v41", "<｜DSML｜tool_calls>", False),
    ],
)
def test_what_a_prompt_says(name: str, prompt: str, ended: bool) -> None:
    assert build_engine(name, VOCABULARY, {}).is_reasoning_end(VOCABULARY.encode(prompt)) is ended


@pytest.mark.parametrize(
    ("name", "kwargs", "ended"),
    [
        ("qwen3", {"enable_thinking": False}, True),
        ("step3p5", {"enable_thinking": False}, False),
        ("glm47", {"thinking": False}, True),
        ("kimi_k2", {"enable_thinking": False}, True),
        ("minimax_m2", {"enable_thinking": False}, False),
        ("deepseek_v4", {"thinking": False}, False),
        ("minicpmv", {"enable_thinking": False}, False),
    ],
)
def test_what_an_open_prompt_says_when_switched_off(name: str, kwargs: dict[str, bool], ended: bool) -> None:
    assert build_engine(name, VOCABULARY, kwargs).is_reasoning_end(VOCABULARY.encode("<think>")) is ended


@pytest.mark.parametrize("name", ENGINE_NAMES)
def test_special_tokens_are_asked_for(name: str) -> None:
    assert build_engine(name, VOCABULARY, {}).skip_special_tokens is False


@pytest.mark.parametrize("name", ["qwen3", "mimo", "step3p5", "minicpmv", "granite_thinking_parser"])
def test_a_switch_that_is_no_plain_value_raises(name: str) -> None:
    with pytest.raises(ParserRaisedError) as caught:
        build_engine(name, VOCABULARY, {"enable_thinking": []})
    assert caught.value.exception == "TypeError"


@pytest.mark.parametrize(
    ("name", "call", "raised"),
    [
        ("qwen3", '<tool_call><function=>{"name": 5}</function></tool_call>', "ValidationError"),
        ("qwen3", '<tool_call><function= >{"name": {"name": "f"}}', "ValidationError"),
        ("qwen3", '<tool_call><function=>{"name": {"name": "f"}}', None),
        ("qwen3", '<tool_call><function=>{"name": ""}', None),
        ("qwen3", '<tool_call><function=>{"name": 5', None),
        ("qwen3", '<tool_call><function=f>{"name": 5}', None),
        ("qwen3", "<tool_call><function=>" + "[" * 100_000, "RecursionError"),
        ("glm45", '<tool_call><arg_key>{"name": 5}', None),
        ("minimax_m2", '<minimax:tool_call><invoke name="">{"name": true}</invoke>', "ValidationError"),
        ("deepseek_v4", '<｜DSML｜tool_calls><｜DSML｜invoke name="">{"name": [1]}', "ValidationError"),
        (
            "kimi_k2",
            '<|tool_calls_section_begin|><|tool_call_begin|>f<|tool_call_argument_begin|>{"name": 1}',
            "ValidationError",
        ),
        (
            "kimi_k2",
            '<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"name": 1}',
            None,
        ),
    ],
)
@pytest.mark.parametrize("thinking", [True, False])
def test_counting_raises_over_a_nameless_call(name: str, call: str, raised: str | None, thinking: bool) -> None:
    """vLLM parses tool calls while it counts, and trips over a name in a call's body that is no string."""
    parser = build_engine(name, VOCABULARY, {"enable_thinking": thinking})
    parser.begin(VOCABULARY.encode("<|im_start|>"), streaming=False)
    ids = VOCABULARY.encode(f"a{call}")
    parser.split(VOCABULARY.decode(ids), ids)
    try:
        parser.count_reasoning_tokens(ids)
    except ParserRaisedError as error:
        assert error.exception == raised
    else:
        assert raised is None


@pytest.mark.parametrize(("version", "raised"), [((0, 33, 0), True), ((0, 32, 0), False)])
def test_a_call_inside_a_broken_one_counts_since_0_33(version: tuple[int, int, int], raised: bool) -> None:
    """vLLM 0.32.0 takes what follows `<function=g` as the rest of the name, up to the first bracket."""
    parser = build_engine("qwen3", VOCABULARY, {}, target=Target("vllm", version))
    parser.begin(None, streaming=False)
    ids = VOCABULARY.encode('<tool_call><function=g<tool_call><function=>{"name": 5}')
    try:
        parser.count_reasoning_tokens(ids)
    except ParserRaisedError:
        assert raised
    else:
        assert not raised


TOKENS = st.lists(
    st.sampled_from([*range(ord("a"), ord("d")), ord("<"), ord("\n"), *range(256, 259), *VOCABULARY.markers.values()]),
    max_size=25,
)


@given(name=st.sampled_from(ENGINE_NAMES), ids=TOKENS, data=st.data())
def test_cutting_after_the_thought_or_within_it_changes_nothing(name: str, ids: list[int], data: st.DataObject) -> None:
    """Up to the delta that ends reasoning, the stream does not depend on where it is cut."""
    thought = [token_id for token_id in ids if VOCABULARY.decode([token_id]) not in MARKERS]
    text = VOCABULARY.texts(thought)
    streams = []
    for _ in range(2):
        parser = build_engine(name, VOCABULARY, {})
        parser.begin(None, streaming=True)
        at, got = 0, []
        while at < len(thought):
            size = data.draw(st.integers(1, 5))
            delta = parser.feed(
                "".join(text[at : at + size]), thought[at : at + size], finished=at + size >= len(thought)
            )
            got.append(delta.reasoning or "" if delta else "")
            at += size
        streams.append(("".join(got), parser.count_reasoning_tokens(thought)))
    assert streams[0] == streams[1]


@given(name=st.sampled_from(ENGINE_NAMES), ids=TOKENS)
def test_no_state_is_shared(name: str, ids: list[int]) -> None:
    """What one output was leaves nothing behind for the next."""

    def run() -> list[object]:
        parser = build_engine(name, VOCABULARY, {})
        parser.begin(VOCABULARY.encode("<|im_start|>"), streaming=True)
        return [parser.feed(text, [token_id]) for text, token_id in zip(VOCABULARY.texts(ids), ids, strict=True)]

    first = run()
    build_engine(name, VOCABULARY, {}).split("<think>x</think>y", ())
    assert run() == first


class MistralCommon(SpecVocabulary):
    """A tokenizer of mistral-common itself, of version 11 or later."""

    supports_grammar = True


def test_mistrals_own_tokenizer_has_think_texts_where_it_has_no_think_tokens() -> None:
    vocabulary = MistralCommon(Spec(markers=(("[TOOL_CALLS]", "declared"),)))
    parser = build_engine("mistral", vocabulary, {})
    assert parser.skip_special_tokens is None
    assert parser.is_reasoning_end([]) is False
    found = parser.split("<think>Hm</think>four", ())
    assert (found.reasoning, found.content) == ("Hm", "four")
    ids = vocabulary.encode("<think>Hm</think>four")
    assert build_engine("mistral", vocabulary, {}).count_reasoning_tokens(ids) == 2


@pytest.mark.parametrize("supports_grammar", [True, False])
def test_mistral_demands_the_marker_of_calls(supports_grammar: bool) -> None:
    with pytest.raises(ParserRaisedError) as caught:
        build_engine("mistral", (MistralCommon if supports_grammar else SpecVocabulary)(Spec()), {})
    assert caught.value.exception == "RuntimeError"


@pytest.mark.parametrize(
    ("name", "prompt", "kwargs", "ended"),
    [
        ("gemma4", "<|turn>", {}, True),
        ("gemma4", "<|turn>", {"enable_thinking": True}, False),
        ("gemma4", "<|channel>", {}, False),
        ("gemma4", "<|channel><channel|>", {"enable_thinking": True}, True),
        ("gemma4", "<channel|><|turn>", {"enable_thinking": True}, False),
        ("inkling", "<|message_model|>", {}, False),
        ("inkling", "<|message_model|><|content_text|>", {}, True),
        ("inkling", "<|content_text|><|end_message|>", {}, True),
        ("inkling", "", {}, False),
        ("mistral", "[THINK]a[/THINK]", {}, True),
        ("mistral", "hi", {}, False),
        ("plamo3", "<|plamo:begin_think:plamo|>", {}, False),
        ("plamo3", "<|plamo:begin_think:plamo|>a<|plamo:end_think:plamo|>", {}, True),
        ("plamo3", "<|plamo:end_think:plamo|><|plamo:tag|>", {}, False),
        ("plamo3", "a", {"enable_thinking": False}, True),
    ],
)
def test_what_a_prompt_says_to_formats_of_their_own(
    name: str, prompt: str, kwargs: dict[str, bool], ended: bool
) -> None:
    assert build_engine(name, VOCABULARY, kwargs).is_reasoning_end(VOCABULARY.encode(prompt)) is ended


@pytest.mark.parametrize(
    ("name", "call", "raised"),
    [
        ("gemma4", '<|tool_call>call:{{"name": 5}', "ValidationError"),
        ("gemma4", "<|tool_call>call:f{a:1}", None),
        ("inkling", '<|content_invoke_tool_json|>{"name": 5}', "ValidationError"),
        ("inkling", '<|content_invoke_tool_json|>{"name": "f"}', None),
        ("mistral", '[TOOL_CALLS]{"name": 5}', None),
        ("mistral", '[TOOL_CALLS]f{"a":' + "[" * 100_000, "RecursionError"),
        (
            "plamo3",
            "<|plamo:begin_tool_requests:plamo|><|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json"
            "<|plamo:msg|>{}",
            "IndexError",
        ),
    ],
)
def test_counting_raises_over_calls_of_formats_of_their_own(name: str, call: str, raised: str | None) -> None:
    ids = VOCABULARY.encode(f"a{call}")
    try:
        build_engine(name, VOCABULARY, {}).count_reasoning_tokens(ids)
    except ParserRaisedError as error:
        assert error.exception == raised
    else:
        assert raised is None
