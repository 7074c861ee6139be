"""Each invariant, on answers made by hand: it holds for the right one, and not for one with a single fault."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from reasonctl.checks.plg_run import aspect_of
from reasonctl.kit.battery import run_battery
from reasonctl.kit.bench import BuiltinBench
from reasonctl.kit.compare import compare, label
from reasonctl.kit.facts import battery_json, comparisons
from reasonctl.kit.feeding import Feeder
from reasonctl.kit.generated import Smallest
from reasonctl.kit.invariants import INVARIANTS, Break, Example, broken
from reasonctl.kit.outputs import Draft, Drafts
from reasonctl.kit.question import Answer, Streamed, lost, summed
from reasonctl.kit.setting import from_table
from reasonctl.parsers import ROWS
from reasonctl.parsers.run import ModeResult
from reasonctl.parsers.target import BUILTIN_ENGINE, Target

SETTING = from_table(ROWS["qwen3"])
BENCH = BuiltinBench("qwen3", SETTING.vocabulary, Target())
DRAFTS = Drafts(Feeder(SETTING, BENCH), asks=True)
OPEN = next(number for number, cell in enumerate(DRAFTS.cells) if cell.state == "open")
THOUGHT, SAID = "Let me see it.", "It is 4."


def example(**changes: Any) -> Example:
    draft = Draft(OPEN, THOUGHT, SAID, "", (2, 5), "q")
    return DRAFTS.example(replace(draft, **changes))


def right(made: Example) -> Answer:
    """What a parser without a fault answers."""
    places = made.places
    assert places is not None
    streams = []
    for stream in made.question.streams:
        messages = [(THOUGHT, None), *[None] * (len(stream.deltas) - 2), (None, f"\n\n{SAID}")][: len(stream.deltas)]
        if len(stream.deltas) == 1:
            messages = [(THOUGHT, SAID)]
        streams.append(Streamed(summed(stream.label, messages, len(stream.deltas)), tuple(messages)))
    ids = list(made.question.ids)
    return Answer(
        full=ModeResult(None, THOUGHT, f"\n\n{SAID}", 0),
        streams=tuple(streams),
        ended=False,
        tokens=places.begin,
        asked={
            "content_ids": ids[places.behind :],
            "ends": [number >= places.behind for number in range(1, len(ids) + 1)],
            "ended": True,
            "beside": [[[THOUGHT, SAID]], [["q", "Other."]]],
        },
    )


def with_stream(answer: Answer, label: str, *messages: tuple[str | None, str | None] | None) -> Answer:
    streams = [
        replace(one, result=summed(label, messages, len(messages)), messages=messages)
        if one.result.chunking == label
        else one
        for one in answer.streams
    ]
    return replace(answer, streams=tuple(streams))


def asked(answer: Answer, **changes: Any) -> Answer:
    return replace(answer, asked={**answer.asked, **changes})


def test_nothing_is_broken_by_the_right_answer() -> None:
    made = example()
    assert broken(made, right(made)) == {}


@pytest.mark.parametrize("name", [each.name for each in INVARIANTS])
def test_one_fault_breaks_its_invariant(name: str) -> None:
    made = example()
    answer = right(made)
    leak = ModeResult(None, f"{THOUGHT}</think>", SAID, 0)
    faults: Mapping[str, Answer] = {
        "nothing-raised": replace(answer, full=ModeResult(None, None, None, 0, "ValueError"), raised="no"),
        "split-is-right": replace(answer, full=ModeResult(None, f"{THOUGHT} {SAID}", None, 0)),
        "stream-equals-full": with_stream(answer, "token", (None, f"{THOUGHT} {SAID}")),
        "chunk-sizes-agree": with_stream(answer, "3", (f"{THOUGHT} {SAID}", None)),
        "hold-back-agrees": with_stream(answer, "holdback:12", (f"{THOUGHT} {SAID}", None)),
        "no-marker-leaks": replace(answer, full=leak),
        "no-text-lost": with_stream(answer, "whole", ("Let me", SAID)),
        "no-empty-delta": with_stream(answer, "random", ("", None), (THOUGHT, SAID)),
        "instances-do-not-touch": asked(answer, beside=[[[f"{THOUGHT}q", SAID]], []]),
        "token-counts-add-up": replace(answer, tokens=0),
        "content-ids-agree": asked(answer, content_ids=[]),
        "grammar-starts-in-time": asked(answer, ends=[False] * (len(made.question.ids) - 1) + [True]),
        "ends-agree": asked(answer, ended=False),
    }
    assert name in broken(made, faults[name])


def test_what_is_lost_breaks_one_invariant_alone() -> None:
    assert list(broken(example(), lost("it hung"))) == ["nothing-raised"]


def test_of_a_wild_output_no_split_is_the_right_one() -> None:
    made = example(wild="<think>again</think>")
    answer = replace(right(example()), full=ModeResult(None, None, "all of it", 0), tokens=0)
    assert broken(made, answer) == {}


@settings(max_examples=150, deadline=None)
@given(DRAFTS.strategy())
def test_a_tame_output_holds_the_markers_that_are_meant(draft: Draft) -> None:
    made = DRAFTS.example(draft)
    text, cell = made.probe.text, made.question.cell
    for stream in made.question.streams:
        assert "".join(part for part, _ in stream.deltas) == made.question.text
        assert [token for _, ids in stream.deltas for token in ids] == list(made.question.ids)
    if not made.tame:
        return
    assert text.count("<think>") == (draft.thought is not None and cell.state == "none")
    assert text.count("</think>") == (draft.thought is not None and draft.answer is not None)
    if made.places is not None:
        marker = made.question.ids[made.places.begin : made.places.behind]
        assert SETTING.vocabulary.decode(marker) == "</think>"


@pytest.mark.parametrize(
    ("invariant", "chunking", "changes", "aspect"),
    [
        ("no-marker-leaks", "holdback:4", {}, "hold-back"),
        ("no-marker-leaks", "random", {}, "delta-size"),
        ("no-text-lost", "token", {}, "stream"),
        ("no-text-lost", None, {}, "split"),
        ("split-is-right", None, {"answer": None}, "truncated"),
        ("token-counts-add-up", None, {}, "token-count"),
    ],
)
def test_a_broken_invariant_is_told_by_how_the_output_was_cut(
    invariant: str, chunking: str | None, changes: dict[str, Any], aspect: str
) -> None:
    made = example(**changes)
    assert aspect_of(Smallest(invariant, Break("so", chunking), made, lost("x"))) == aspect


def test_two_batteries_are_compared_case_by_case() -> None:
    good = run_battery(BENCH, SETTING, BUILTIN_ENGINE, examples=0)
    assert good.failed == []
    worse = replace(good, outcomes=(replace(good.outcomes[0], wrong="so", got=None), *good.outcomes[1:]))
    told = compare(good, worse, ("one", "other"))
    assert len(told.broke) == 1 and told.broke[0].startswith(good.outcomes[0].case.name)
    assert (told.fixed, told.left, told.answers) == ((), (), ())
    assert compare(worse, good, ("other", "one")).fixed == told.broke
    assert compare(worse, worse, ("a", "b")).left == told.broke
    aside = replace(worse.outcomes[0], case=replace(worse.outcomes[0].case, weighs=False))
    unsent = replace(good, outcomes=(aside, *good.outcomes[1:]))  # nobody sends it: the report does not count it either
    assert compare(unsent, unsent, ("a", "b")).left == ()
    assert len({label(one) for one in good.outcomes}) == len(good.outcomes)
    both = comparisons([good, worse, good], ["a", "b", "c"])
    assert both is not None and [len(pair["broke"]) for pair in both["others"]] == [1, 0]
    rows = battery_json(worse)["cases"]
    assert [row["ok"] for row in rows].count(False) == 1 and rows[0]["wrong"] == "so"
