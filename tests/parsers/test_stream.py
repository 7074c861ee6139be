"""All deltas at once come to the sum of what they come to one by one, for every built-in model."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from reasonctl.parsers import build
from reasonctl.parsers.base import Delta, ParserModel, ParserRaisedError, Split, Sums
from reasonctl.parsers.columns import Deltas
from reasonctl.parsers.differential.case import Case, Stream
from reasonctl.parsers.differential.cases import cases, specs
from reasonctl.parsers.differential.families import FAMILIES
from reasonctl.parsers.differential.vocabulary import SpecVocabulary
from reasonctl.parsers.feed import Chunking, chunk, pieces

CASES = 80


@pytest.mark.parametrize("name", FAMILIES)
def test_at_once_is_one_by_one(name: str) -> None:
    vocabularies = {key: SpecVocabulary(spec) for key, spec in specs(name).items()}
    for case in cases(name, CASES, seed=7):
        vocabulary = vocabularies[case.tokenizer]
        for stream in case.streams:
            expected = summed(case, vocabulary, stream)
            assert outcome(case, vocabulary, Deltas.of(stream)) == expected, (case, stream)
            if all(len(ids) == 1 for _, ids in stream):
                single = Deltas([text for text, _ in stream], [ids[0] for _, ids in stream])
                assert outcome(case, vocabulary, single) == expected, (case, stream)


def model(case: Case, vocabulary: SpecVocabulary) -> ParserModel:
    built = build(case.parser, vocabulary, dict(case.kwargs), request_kwargs=dict(case.request_kwargs or {}))
    built.begin(case.prompt_ids, streaming=True)
    return built


def outcome(case: Case, vocabulary: SpecVocabulary, deltas: Deltas) -> Split | str:
    try:
        return model(case, vocabulary).stream(deltas)
    except ParserRaisedError as error:
        return error.exception


def summed(case: Case, vocabulary: SpecVocabulary, deltas: Stream) -> Split | str:
    sums = Sums()
    try:
        built = model(case, vocabulary)
        for number, (text, ids) in enumerate(deltas, 1):
            sums.add(built.feed(text, ids, finished=number == len(deltas)))
    except ParserRaisedError as error:
        return error.exception
    return sums.split()


@pytest.mark.parametrize("name", ["qwen3", "glm45", "minimax_m2", "deepseek_r1", "step3", "minimax_m2_append_think"])
def test_plain_runs_are_taken_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes it fast: a long output is fed in a handful of deltas."""
    vocabulary = SpecVocabulary(specs(name)[f"{name}/0/plain"])
    start, end = (vocabulary.encode(FAMILIES[name].start), vocabulary.encode(FAMILIES[name].end))
    ids = [*start, *vocabulary.encode("Hello world four. " * 500), *end, *vocabulary.encode(" The answer is ok." * 300)]
    found = pieces(vocabulary, ids)
    built = build(name, vocabulary)
    built.begin(None, streaming=True)
    calls: list[str] = []
    feed = built.feed

    def counted(text: str, ids: Sequence[int], *, finished: bool = False) -> Delta | None:
        calls.append(text)
        return feed(text, ids, finished=finished)

    monkeypatch.setattr(built, "feed", counted)
    split = built.stream(chunk(found, Chunking("tokens")))
    assert len(calls) <= 10
    assert (split.reasoning or "").count("world") + (split.content or "").count("world") == 500
