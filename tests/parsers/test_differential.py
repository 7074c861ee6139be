"""The differential suite itself: what its cases hold, what it calls a difference, and how small it makes one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonctl.parsers.base import ParserUnsupportedError
from reasonctl.parsers.bridge.process import LostError
from reasonctl.parsers.differential.answers import model_answer
from reasonctl.parsers.differential.case import Case
from reasonctl.parsers.differential.cases import cases, specs
from reasonctl.parsers.differential.check import check_name
from reasonctl.parsers.differential.families import FAMILIES
from reasonctl.parsers.differential.shrink import smallest
from reasonctl.parsers.differential.vocabulary import SpecVocabulary
from reasonctl.parsers.target import Target

from .twin import Twin


@pytest.mark.parametrize("name", FAMILIES)
def test_any_three_cases_end_on_a_stop_token_on_a_stop_string_and_cut(name: str) -> None:
    made = list(cases(name, 30, seed=5))
    assert [bool(case.stop) for case in made] == [False, True, False] * 10
    stopped = [case for case in made[::3] if case.pieces and not case.pieces[-1][0]]
    assert len(stopped) >= 5
    cut = [case for case in made[1::3] if case.pieces and not any(text in case.text for text in case.stop)]
    assert cut


@pytest.mark.parametrize("name", ["qwen3", "deepseek_r1"])
def test_streams_bring_the_whole_text_and_ids_in_order(name: str) -> None:
    late = 0
    for case in cases(name, 60, seed=7):
        for stream in case.streams:
            ids = [token_id for _, its in stream for token_id in its]
            assert "".join(text for text, _ in stream) == case.text
            assert ids == case.ids or not ids
        late += any(text_after(stream) for stream in case.streams)
    assert late > 30


def text_after(stream: Any) -> bool:
    """Whether some text comes later than its id: a delta with ids and no text before one with text."""
    return any(ids and not text for text, ids in stream[:-1])


def test_stop_strings_hold_every_stream_back() -> None:
    """Up to the last token, as many characters stay behind as the longest stop string has, less one."""
    behind_by_much = 0
    for case in cases("qwen3", 90, seed=9):
        behind = max(map(len, case.stop), default=1) - 1
        shown = made = 0
        for (text, _), (piece, _) in zip(case.streams[0], case.pieces[:-1], strict=False):
            shown, made = shown + len(text), made + len(piece)
            assert made - behind <= shown <= made
            behind_by_much += made - shown > 3
    assert behind_by_much > 100


def test_a_seed_gives_the_same_cases() -> None:
    assert list(cases("glm45", 20, seed=3)) == list(cases("glm45", 20, seed=3))
    assert list(cases("glm45", 20, seed=3)) != list(cases("glm45", 20, seed=4))


def test_the_same_on_both_sides() -> None:
    result = check_name(Twin(), "qwen3", Target(), count=40, seed=1)
    assert (result.name, result.cases, result.different, result.lost, result.smallest) == ("qwen3", 40, 0, 0, None)


def test_a_broken_model_is_found_with_a_small_input() -> None:
    def broken(case: Mapping[str, Any], vocabulary: SpecVocabulary, target: Target) -> dict[str, Any]:
        """A model that loses an answer behind two line ends, streamed only."""
        answer = model_answer(case, vocabulary, target)
        for stream in answer["streams"]:
            for delta in stream["deltas"]:
                if delta and delta[1] and delta[1].startswith("\n\n"):
                    delta[1] = delta[1][2:]
        return answer

    result = check_name(Twin(), "deepseek_r1", Target(), count=80, seed=1, answer=broken)
    assert result.different > 1
    assert result.smallest is not None
    case = result.smallest.case
    assert case.text.endswith("\n\n") or "\n\n" in case.text
    assert len(case.pieces) <= 4
    assert [len(stream) for stream in case.streams] in ([1], [2], [3])
    assert (case.kwargs, case.request_kwargs) == ({}, {})
    assert result.smallest.built_in != result.smallest.real
    assert model_answer(case.to_json(), result.smallest.vocabulary, Target()) == result.smallest.real


def test_crashes_cost_their_cases_only() -> None:
    class Crashing(Twin):
        def ask(self, op: str, **fields: Any) -> Mapping[str, Any]:
            if op == "run" and self.runs in (4, 9):
                self.runs += 1
                self.crash()
                raise LostError("it ended with signal 11")
            return super().ask(op, **fields)

    result = check_name(Crashing(), "qwen3", Target(), count=30, seed=1)
    assert (result.cases, result.lost, result.lost_over, result.different) == (28, 2, "it ended with signal 11", 0)


def test_what_a_package_is_missing_for_is_not_compared() -> None:
    def lacking(answer: dict[str, Any]) -> dict[str, Any]:
        return {"error": "ModuleNotFoundError", "full": {"error": "ModuleNotFoundError"}, "streams": []}

    result = check_name(Twin(lacking), "qwen3", Target(), count=5, seed=1)
    assert (result.cases, result.different) == (0, 0)
    assert result.skipped is not None and "ModuleNotFoundError" in result.skipped

    def unsupported(*_: object) -> dict[str, Any]:
        raise ParserUnsupportedError("needs an extra")

    result = check_name(Twin(), "qwen3", Target(), count=5, seed=1, answer=unsupported)
    assert (result.cases, result.skipped) == (0, "needs an extra")
    assert check_name(Twin(), "mine", Target(), count=5, seed=1).skipped == "reasonctl has no cases for this name"


def test_a_stream_taken_at_once_must_sum_up_to_its_deltas(monkeypatch: pytest.MonkeyPatch) -> None:
    from reasonctl.parsers.models.append_think import AppendThinkModel

    spec = next(iter(specs("minimax_m2_append_think").values()))
    vocabulary = SpecVocabulary(spec)
    case = next(case for case in cases("minimax_m2_append_think", 20, seed=2) if case.text).to_json()
    right = model_answer(case, vocabulary, Target())
    assert not any("at_once" in stream for stream in right["streams"])
    stream = AppendThinkModel.stream

    def forgetful(self: AppendThinkModel, deltas: Any) -> Any:
        split = stream(self, deltas)
        return type(split)(split.reasoning, "")

    monkeypatch.setattr(AppendThinkModel, "stream", forgetful)
    wrong = model_answer(case, vocabulary, Target())
    assert wrong["streams"][0]["at_once"] == {"sums": [None, ""]}


PIECES = st.lists(st.tuples(st.sampled_from(["a", "bc", "", "d"]), st.integers(0, 5)), min_size=1, max_size=12)


@given(PIECES, st.integers(0, 5), st.integers(1, 4))
def test_shrinking_keeps_what_matters_and_drops_the_rest(pieces: list[tuple[str, int]], wanted: int, size: int) -> None:
    groups = [pieces[at : at + size] for at in range(0, len(pieces), size)]
    stream = tuple(("".join(text for text, _ in group), tuple(token for _, token in group)) for group in groups)
    case = Case("p", "p/0/flagged", {"k": 1}, None, [7, 8, 9], tuple(pieces), (stream, stream), ("stop",))

    def differs(case: Case) -> bool:
        return wanted in case.ids and bool(case.streams) and 8 in (case.prompt_ids or ())

    if not differs(case):
        return
    small = smallest(case, differs)
    assert small.ids == [wanted]
    assert [len(each) for each in small.streams] == [1]
    assert small.streams[0][0] == (small.text, (wanted,))
    assert list(small.prompt_ids or ()) == [8]
    assert (small.kwargs, small.request_kwargs, small.tokenizer, small.stop) == ({}, {}, "p/0/plain", ())


def test_shrinking_stops_after_so_many_tries() -> None:
    tried = 0

    def differs(case: Case) -> bool:
        nonlocal tried
        tried += 1
        return True

    case = next(case for case in cases("qwen3", 9, seed=1) if len(case.pieces) > 10)
    smallest(case, differs, tries=3)
    assert tried == 3
