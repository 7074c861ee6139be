"""The parsers that work on text: scenarios, constructors and prompts, and that nothing is looked at twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from reasonctl.parsers import Delta, ParserModel, ParserRaisedError, ParserUnsupportedError, Split, build
from reasonctl.parsers.assumed import AssumedVocabulary
from reasonctl.parsers.differential.vocabulary import Spec, SpecVocabulary
from reasonctl.parsers.target import Target

from .channel_scenarios import CHANNEL_SCENARIOS
from .muse_scenarios import MUSE_SCENARIOS
from .scenario import Scenario
from .text_scenarios import TEXT_SCENARIOS

ALL = (*TEXT_SCENARIOS, *CHANNEL_SCENARIOS, *MUSE_SCENARIOS)
HUNYUAN = ((14023, "<th"), (771, "ink"), (397, ">\n"), (1363, ">\n\n"), (198, "\n"), (524, "</"), (27963, "think"),
           (27, "<"), (9399, "answer"), (29, ">"))  # fmt: skip
OLD = Target("vllm", (0, 32, 0))


def words(*markers: str, pieces: Sequence[str] = (), fixed: tuple[tuple[int, str], ...] = ()) -> SpecVocabulary:
    return SpecVocabulary(Spec(tuple(pieces), tuple((marker, "plain") for marker in markers), fixed=fixed))


def model(name: str, vocabulary: SpecVocabulary, kwargs: Mapping[str, Any] | None = None) -> ParserModel:
    return build(name, vocabulary, kwargs)


@pytest.mark.parametrize("target", [Target(), OLD], ids=str)
@pytest.mark.parametrize("scenario", ALL, ids=lambda scenario: f"{scenario.parser}: {scenario.label}")
def test_scenario(scenario: Scenario, target: Target) -> None:
    """The two versions do not differ where both have the name."""
    if target == OLD and scenario.parser in ("muse", "musespark1x"):
        return
    vocabulary = SpecVocabulary(scenario.spec())
    case = scenario.case(vocabulary)
    parsers = [build(scenario.parser, vocabulary, case["kwargs"], target=target) for _ in range(2)]
    for parser, streaming in zip(parsers, (False, True), strict=True):
        parser.begin(case["prompt_ids"], streaming=streaming)
    assert parsers[0].split(case["text"], case["ids"]) == Split(scenario.reasoning, scenario.content)
    (deltas,) = case["streams"]
    got = [parsers[1].feed(text, ids, finished=at == len(deltas)) for at, (text, ids) in enumerate(deltas, 1)]
    assert got == [None if message is None else Delta(*message) for message in scenario.stream]
    assert [parser.count_reasoning_tokens(case["ids"]) for parser in parsers] == [scenario.tokens] * 2


THINK = [(14023, "<th"), (771, "ink"), (397, ">\n")]
ANSWER = [(198, "\n"), (524, "</"), (27963, "think"), (397, ">\n"), (27, "<"), (9399, "answer"), (397, ">\n")]


def hunyuan(tokens: Sequence[tuple[int, str]]) -> list[Delta | None]:
    parser = model("hunyuan_a13b", words(fixed=HUNYUAN))
    parser.begin([], streaming=True)
    return [parser.feed(text, [token_id]) for token_id, text in tokens]


def test_hunyuan_follows_its_own_ids() -> None:
    got = hunyuan([(5, "so "), *THINK, (6, "Hm"), *ANSWER, (7, "4"), (198, "\n"), (524, "</")])
    assert got == [Delta(content="so "), None, None, None, Delta(reasoning="Hm"), *[None] * 7, Delta(content="4"),
                   Delta(content="\n"), Delta(content="</")]  # fmt: skip
    # A thought of nothing but a double line break, and its end without a line break, have tokens of their own.
    assert hunyuan([*THINK[:2], (1363, ">\n\n"), *ANSWER[1:], (7, "4")]) == [*[None] * 9, Delta(content="4")]


def test_hunyuan_gives_what_breaks_off_with_the_token_that_broke_it() -> None:
    assert hunyuan([*THINK[:2], (14023, "<th"), (771, "ink")]) == [
        None, None, Delta(content="<think<th"), Delta(content="ink"),
    ]  # fmt: skip
    assert hunyuan([*THINK, (198, "\n"), (5, "")])[3:] == [None, Delta(reasoning="\n")]
    assert hunyuan([(5, "")]) == [Delta(content="")]


@pytest.mark.parametrize("ids", [[], [5, 6]])
def test_hunyuan_takes_one_token_a_delta(ids: list[int]) -> None:
    parser = model("hunyuan_a13b", words(fixed=HUNYUAN))
    parser.begin(None, streaming=True)
    with pytest.raises(ParserRaisedError, match="one token a delta") as raised:
        parser.feed("x", ids)
    assert raised.value.exception == "AssertionError"


def test_hunyuan_reads_past_the_shorter_end() -> None:
    with pytest.raises(ParserRaisedError) as raised:
        hunyuan([*THINK, *ANSWER[:6], (5, "x")])
    assert raised.value.exception == "IndexError"


@pytest.mark.parametrize(
    ("text", "reasoning", "content"),
    [
        ("<think>\nHm\n</think>\n<answer>\n4\n</answer>", "Hm", "4"),
        ("<think>\n\n</think>\n<answer>\n\n</answer>", None, None),
        ("<think>\nHm\n</think>\n<answer>\n4", "Hm", "4"),
        ("<think>\nHm\n</think>\n<answer>\n4\\n</answer>", "Hm", "4"),
        ("x<think>\nHm\n</think>\n<answer>\n4\n</answer>", None, "x<think>\nHm\n</think>\n<answer>\n4"),
        ("<think>\na\n</answer>\n</think>\n<answer>\nb", None, "<think>\na"),
        ("<think>\nHm", None, "<think>\nHm"),
    ],
)
def test_hunyuan_in_full(text: str, reasoning: str | None, content: str | None) -> None:
    assert model("hunyuan_a13b", words()).split(text, []) == Split(reasoning, content)


def test_hunyuan_has_no_use_for_a_vocabulary_that_stands_in() -> None:
    with pytest.raises(ParserUnsupportedError, match="Hunyuan's own vocabulary"):
        build("hunyuan_a13b", AssumedVocabulary(), {})


@pytest.mark.parametrize("missing", ["Ġ</", "</", "think"])
def test_olmo3_demands_the_pieces_of_its_end_marker(missing: str) -> None:
    pieces = [piece for piece in (" </", "</", "think") if piece.replace(" ", "Ġ") != missing]
    with pytest.raises(ParserRaisedError) as raised:
        model("olmo3", words(pieces=pieces))
    assert (raised.value.exception, raised.value.message) == ("KeyError", repr(missing))


@pytest.mark.parametrize(
    ("name", "who", "markers"),
    [
        ("k2_horizon", "K2HorizonReasoningParser", ("<ifm|think>", "</ifm|think>")),
        ("minimax_m3", "MiniMaxM3ReasoningParser", ("<mm:think>", "</mm:think>")),
    ],
)
def test_markers_that_are_no_tokens_are_an_error(name: str, who: str, markers: tuple[str, str]) -> None:
    assert model(name, words(*markers))
    for marker in markers:
        with pytest.raises(ParserRaisedError, match=f"RuntimeError: {who} reasoning parser could not locate"):
            model(name, words(marker))


@pytest.mark.parametrize("effort", ["none", None, "", ["high"]])
def test_k2_horizon_knows_three_efforts(effort: object) -> None:
    with pytest.raises(ParserRaisedError, match="Unsupported reasoning_effort") as raised:
        model("k2_horizon", words("<ifm|think>", "</ifm|think>"), {"reasoning_effort": effort})
    assert raised.value.exception == "ValueError"


KIMI = words("<|open|>", "<|close|>", "<|sep|>", pieces=("think", "response"))
IFM = words("<ifm|think>", "</ifm|think>", "<ifm|tool_calls>")
MM = words("<mm:think>", "</mm:think>")
ATEM = words("<|start|>", "<|message|>", "<|eom|>", "<|eot|>")
OLMO = words(pieces=(" </", "</", "think"))
CALL = "to=f<|message|><atem:invoke x"


@pytest.mark.parametrize(
    ("name", "vocabulary", "prompt", "ended"),
    [
        ("granite", OLMO, "Here is my response:", None),
        ("hunyuan_a13b", OLMO, "</think>", False),
        ("olmo3", OLMO, "x</think>y<think>", True),
        ("olmo3", OLMO, "x </think>", True),
        ("olmo3", OLMO, "x</think", False),
        ("k2_horizon", IFM, "<ifm|think>a</ifm|think>", True),
        ("k2_horizon", IFM, "</ifm|think>a<ifm|think>", False),
        ("k2_horizon", IFM, "<ifm|think><ifm|tool_calls>", True),
        ("minimax_m3", MM, "<mm:think></mm:think>", True),
        ("minimax_m3", MM, "</mm:think><mm:think>", False),
        ("minimax_m3", MM, "x", False),
        ("kimi_k3", KIMI, "<|open|>think<|sep|>a<|close|>think<|sep|>", True),
        ("kimi_k3", KIMI, "<|close|>think<|sep|><|open|>think<|sep|>", False),
        ("kimi_k3", KIMI, "<|close|>response<|sep|>", False),
        ("muse", ATEM, f" to=self<|message|>a<|eom|> {CALL}", True),
        ("muse", ATEM, f" to=self<|message|>a <atem:invoke<|eom|> {CALL[:12]}", False),
        ("muse", ATEM, f"{CALL}<|start|>user<|message|>hi<|eom|><|start|>assistant", False),
        ("muse", ATEM, f"{CALL}<|start|>assistant to=self", True),
        ("muse", ATEM, f"{CALL}<|start|>assis", False),
        ("muse_glimmer", ATEM, f" to=self<|message|>a<|eom|> {CALL}", True),
        ("muse_glimmer", ATEM, f" to=self<|message|>a {CALL}", True),
        ("muse_glimmer", ATEM, f" to=self<|message|>a {CALL}<|eom|>", False),
        ("muse_glimmer", ATEM, f"{CALL}<|start|>assistant to=self", False),
    ],
)
def test_what_a_prompt_says(name: str, vocabulary: SpecVocabulary, prompt: str, ended: bool | None) -> None:
    assert model(name, vocabulary).is_reasoning_end(vocabulary.encode(prompt)) is ended


def test_kimi_k3_off_reads_every_prompt_as_ended() -> None:
    for kwargs in ({"thinking": False}, {"enable_thinking": False}, {"thinking": False, "enable_thinking": True}):
        assert model("kimi_k3", KIMI, kwargs).is_reasoning_end([]) is True
    assert model("kimi_k3", KIMI, {"thinking": True, "enable_thinking": False}).is_reasoning_end([]) is False


def test_who_asks_for_special_tokens_to_be_kept() -> None:
    keeping = {"kimi_k3": KIMI, "muse": ATEM, "muse_glimmer": ATEM, "musespark1x": ATEM}
    assert [model(name, vocabulary).skip_special_tokens for name, vocabulary in keeping.items()] == [False] * 4
    others = {"granite": OLMO, "hunyuan_a13b": OLMO, "olmo3": OLMO, "k2_horizon": IFM, "minimax_m3": MM}
    assert [model(name, vocabulary).skip_special_tokens for name, vocabulary in others.items()] == [None] * 5


def test_minimax_m3_ids_without_text_end_the_phase_unless_a_block_begins() -> None:
    for ids, then in (([5], Delta(content="<mm:think>x")), ([MM.markers["<mm:think>"]], Delta(reasoning="x"))):
        parser = model("minimax_m3", MM)
        parser.begin([], streaming=True)
        assert parser.feed("", ids) is None
        assert parser.feed("<mm:think>x", []) == then


def test_minimax_m3_counts_a_nested_block_once() -> None:
    ids = MM.encode("a<mm:think>b<mm:think>c</mm:think>d</mm:think>e")
    assert model("minimax_m3", MM).count_reasoning_tokens(ids) == 3
    assert model("minimax_m3", MM, {"thinking_mode": "enabled"}).count_reasoning_tokens(ids) == 5


class Cut(SpecVocabulary):
    """Holds the markers, yet cuts them into two tokens each, as a tokenizer may where they are no added ones."""

    def encode(self, text: str) -> list[int]:
        return {"<mm:think>": [1, 2], "</mm:think>": [1, 3]}[text]


def test_minimax_m3_markers_of_two_tokens() -> None:
    cut = Cut(MM.spec)
    parser = model("minimax_m3", cut)
    assert parser.is_reasoning_end([1, 2, 5, 1, 3]) is True
    assert parser.is_reasoning_end([1, 3, 1, 2, 1]) is False
    assert parser.count_reasoning_tokens([1, 1, 2, 5, 1, 6, 1, 3, 7]) == 3
    # A marker's first token is none yet, so the phase goes on; another token after it ends it.
    for ids, then in (
        ([1], Delta(reasoning="x")),
        ([1, 2], Delta(reasoning="x")),
        ([1, 5], Delta(content="<mm:think>x")),
    ):
        parser = model("minimax_m3", cut)
        parser.begin(None, streaming=True)
        for token_id in ids:
            assert parser.feed("", [token_id]) is None
        assert parser.feed("<mm:think>x", []) == then
