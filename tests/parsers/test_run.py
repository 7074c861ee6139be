"""Running a parser over an output: modes, chunkings, what it is fed, and what is said where it cannot run."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonctl.errors import InputError
from reasonctl.parsers import ROWS, Target
from reasonctl.parsers.assumed import AssumedVocabulary
from reasonctl.parsers.feed import Chunking, Piece, RawDelta
from reasonctl.parsers.rows_legacy import LEGACY_ROWS
from reasonctl.parsers.run import ModeResult, Output, run_parser

WORDS = AssumedVocabulary(("<response>", "</response>"))
LEGACY = [row.name for row in LEGACY_ROWS]


def ids(text: str) -> list[int]:
    return WORDS.encode(text)


def test_one_parser_in_full_and_in_every_chunking() -> None:
    run = run_parser(
        "deepseek_r1", WORDS, {}, text="<think>plan it</think>four", prompt_ids=[], chunkings=["token", "3", "whole"]
    )
    assert run.full == ModeResult(None, "plan it", "four", 0)
    assert run.stream == (
        ModeResult("token", "plan it", "four", 5),
        ModeResult("3", "<think>plan it", "four", 2),
        ModeResult("whole", "plan it", "four", 1),
    )
    assert (run.reasoning_tokens, run.unsupported, run.error) == (2, None, None)
    assert run.text == "<think>plan it</think>four"


def test_a_stream_of_which_nothing_comes_is_null() -> None:
    run = run_parser("deepseek_r1", WORDS, {}, ids=ids("<think></think>"), prompt_ids=[])
    assert run.full == ModeResult(None, "", None, 0)
    assert run.stream == (ModeResult("token", None, None, 2),)


def test_an_empty_output_feeds_nothing() -> None:
    run = run_parser("deepseek_v3", WORDS, {}, text="", prompt_ids=[], chunkings=["token", "whole", "char"])
    assert run.full == ModeResult(None, None, "", 0)
    assert {(result.reasoning, result.content, result.deltas) for result in run.stream} == {(None, None, 0)}


def test_a_closed_prompt_differs_between_full_and_stream() -> None:
    run = run_parser("deepseek_r1", WORDS, {}, text="391", prompt_ids=ids("<think>\n\n</think>\n\n"))
    assert (run.full.reasoning, run.full.content) == ("391", None)
    assert (run.stream[0].reasoning, run.stream[0].content) == (None, "391")
    without = run_parser("deepseek_r1", WORDS, {}, text="391", prompt_ids=None)
    assert (without.stream[0].reasoning, without.stream[0].content) == ("391", None)


def test_recorded_text_deltas_are_fed_as_they_were() -> None:
    deltas = [("<think>step one", None), (" step two</think>", None), ("391", None)]
    run = run_parser("ernie45", WORDS, {}, deltas=deltas, prompt_ids=[], chunkings=["recorded", "token"])
    assert (run.full.reasoning, run.full.content) == ("step one step two", "391")
    assert run.stream == (
        ModeResult("recorded", "<think>step one step two", "391", 3),
        ModeResult("token", "step one step two", "391", 7),
    )


def test_recorded_ids_are_decoded_as_the_parser_would_have_them() -> None:
    given_ids = ids("plan</think>four")
    deltas = [(None, given_ids[:1]), (None, given_ids[1:])]
    run = run_parser("step3", WORDS, {}, deltas=deltas, prompt_ids=[], chunkings=["recorded"])
    assert run.stream == (ModeResult("recorded", "plan", "four", 2),)
    assert run.text == "plan</think>four"


def test_recorded_texts_with_ids_stand_where_text_is_given_too() -> None:
    class Foreign:
        """A tokenizer that cannot decode these ids."""

        vocab: ClassVar = {"<think>": 1, "</think>": 2}
        special_ids = frozenset[int]()
        special_tokens: ClassVar[dict[str, int]] = {}
        chat_template = None
        init_kwargs: ClassVar[dict[str, object]] = {}

        def encode(self, text: str) -> list[int]:
            raise AssertionError(text)

        def decode(self, ids: object, *, skip_special_tokens: bool = False) -> str:
            raise AssertionError(ids)

    deltas = [("plan", [7, 8]), ("</think>", [2]), ("four", [9])]
    run = run_parser(
        "deepseek_r1", Foreign(), {}, ids=[7, 8, 2, 9], text="plan</think>four", deltas=deltas, prompt_ids=[],
        chunkings=["recorded", "token"],
    )  # fmt: skip
    assert run.stream == (ModeResult("recorded", "plan", "four", 3), ModeResult("token", "plan", "four", 4))


def test_recorded_without_deltas_is_one_token_a_delta() -> None:
    run = run_parser("step3", WORDS, {}, text="a b</think>c", prompt_ids=[], chunkings=["recorded"])
    assert run.stream == (ModeResult("recorded", "a b", "c", 4),)


def test_a_stop_token_reaches_the_parser_without_its_text() -> None:
    stop = ids("<|im_end|>")
    run = run_parser("deepseek_r1", WORDS, {}, ids=ids("a</think>b") + stop, stop_ids=frozenset(stop), prompt_ids=[])
    assert (run.full.content, run.stream[0].content, run.stream[0].deltas) == ("b", "b", 4)


def test_stop_strings_cut_the_text_and_make_the_stream_late() -> None:
    run = run_parser("deepseek_r1", WORDS, {}, ids=ids("plan</think> four STOP no"), stop=["STOP"], prompt_ids=[])
    assert (run.full.reasoning, run.full.content) == ("plan", " four ")
    # Three characters late, "lan</thi" arrives with the marker's own id and is thrown away with it.
    assert (run.stream[0].reasoning, run.stream[0].content) == ("p", "nk> four ")


def test_where_the_constructor_raises_every_mode_says_so() -> None:
    class Bare(AssumedVocabulary):
        @property
        def vocab(self) -> dict[str, int]:
            return {}

    run = run_parser("deepseek_r1", Bare(), {}, text="a", prompt_ids=[], chunkings=["token", "whole"])
    assert run.full == ModeResult(None, None, None, 0, "RuntimeError")
    assert [(result.chunking, result.error) for result in run.stream] == [
        ("token", "RuntimeError"), ("whole", "RuntimeError"),
    ]  # fmt: skip
    assert run.reasoning_tokens is None
    assert run.error is not None and "could not locate think start/end tokens" in run.error


def test_where_there_is_no_model_nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reasonctl.parsers.ROWS", {"granite": replace(ROWS["granite"], modelled=False)})
    run = run_parser("granite", WORDS, {}, text="a", prompt_ids=[], chunkings=["token"])
    assert (run.unsupported, run.stream, run.full.error) == ("no built-in model yet", (), None)


def test_names_and_chunkings_nobody_knows_are_refused() -> None:
    with pytest.raises(InputError, match="qwen3"):
        run_parser("qwen_3", WORDS, {}, text="a")
    with pytest.raises(InputError, match="chunking"):
        run_parser("qwen3", WORDS, {}, text="a", chunkings=["often"])
    with pytest.raises(InputError, match=r"0\.33"):
        run_parser("step5", WORDS, {}, text="a", target=Target("vllm", (0, 32, 0)))


def test_one_output_serves_many_parsers() -> None:
    output = Output(WORDS, text="a</think>b", prompt_ids=[])
    for name in ("deepseek_r1", "step3", "hy_v4"):
        assert run_parser(name, WORDS, {}, output).full == ModeResult(None, "a", "b", 0)
    assert output.pieces(True) is output.pieces(True)


def test_pieces_at_hand_are_taken_as_they_are() -> None:
    made = [Piece("plan", 7), Piece("", WORDS.vocab["</think>"]), Piece("four", 8)]
    run = run_parser("step3", WORDS, {}, pieces=made, prompt_ids=[])
    assert (run.full.reasoning, run.text) == ("planfour", "planfour")
    assert (run.stream[0].reasoning, run.stream[0].content) == ("plan", "four")


BITS = st.sampled_from(
    ["<think>", "</think>", "plan", " it", "\n", "four", ".", "<response>", "</response>", "<tool_call>", " <", "🙂"]
)
OUTPUTS = st.lists(BITS, max_size=14).map("".join)
PROMPTS = st.sampled_from(["", "<think>", "<think></think>", "</think>", "<think>a</think><|im_start|>"])
SWITCHES = st.sampled_from([{}, {"enable_thinking": True}, {"thinking": False}, {"reasoning_effort": "high"}])
SIZES = [Chunking("tokens", size) for size in (1, 2, 3, 7)] + [Chunking("whole"), Chunking("random", 1)]


@pytest.mark.parametrize("name", [name for name in LEGACY if ROWS[name].chunk_invariant])
@given(text=OUTPUTS, prompt=PROMPTS, kwargs=SWITCHES)
def test_where_the_table_says_so_delta_size_does_not_matter(
    name: str, text: str, prompt: str, kwargs: dict[str, object]
) -> None:
    run = run_parser(name, WORDS, kwargs, text=text, prompt_ids=ids(prompt), chunkings=SIZES)
    assert len({(result.reasoning or "", result.content or "") for result in run.stream}) == 1


@pytest.mark.parametrize("name", [name for name in LEGACY if ROWS[name].chunk_invariant])
@given(text=OUTPUTS, prompt=st.sampled_from(["", "<think>", "<|im_start|>assistant\n"]))
def test_and_behind_a_prompt_that_is_not_closed_the_stream_equals_full(name: str, text: str, prompt: str) -> None:
    """Streaming drops nothing but the marker; a second end marker is content in both."""
    run = run_parser(name, WORDS, {}, text=text, prompt_ids=ids(prompt), chunkings=SIZES)
    full = (run.full.reasoning or "", run.full.content or "")
    assert not text or {(result.reasoning or "", result.content or "") for result in run.stream} == {full}


@pytest.mark.parametrize("name", [name for name in LEGACY if not ROWS[name].chunk_invariant])
def test_and_where_it_says_the_opposite_it_does_matter(name: str) -> None:
    kwargs = {"thinking": True, "reasoning_effort": "high"}
    run = run_parser(
        name, WORDS, kwargs, text="<think>plan it</think>four", prompt_ids=[], chunkings=["token", "3", "whole"]
    )
    assert {result.reasoning for result in run.stream} == {"plan it", "<think>plan it"}


@pytest.mark.parametrize("name", LEGACY)
@given(text=OUTPUTS, prompt=PROMPTS, kwargs=SWITCHES)
def test_a_stream_never_reorders_text_and_loses_only_what_its_row_names(
    name: str, text: str, prompt: str, kwargs: dict[str, object]
) -> None:
    row = ROWS[name]
    run = run_parser(name, WORDS, kwargs, text=text, prompt_ids=ids(prompt), chunkings=SIZES)
    for result in run.stream:
        got, raw = (result.reasoning or "") + (result.content or ""), text
        for marker in (*row.start, *row.end, *row.stripped, *row.added, " ", "\n"):
            got, raw = got.replace(marker, ""), raw.replace(marker, "")
        if name == "ernie45" and "response" in text:
            continue  # in one delta with the end marker it cuts the closing tag in two
        if "<think>" in text and result.chunking != "token":
            # Text that shares a delta with a start marker behind it and an end marker is dropped.
            rest = iter(raw)
            assert all(character in rest for character in got)
            continue
        assert got == raw


def test_an_output_with_deltas_hands_them_out_as_recorded() -> None:
    output = Output(WORDS, deltas=[RawDelta("a"), RawDelta("b c")])
    assert output.deltas(Chunking("recorded")) == [RawDelta("a"), RawDelta("b c", tuple(ids("ab c")))]
