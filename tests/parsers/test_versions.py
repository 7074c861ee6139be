"""The table of version differences: complete enough to ask, and heeded by the models."""

from __future__ import annotations

import pytest

from reasonctl.parsers import ROWS, Target, build
from reasonctl.parsers.differential.vocabulary import Spec, SpecVocabulary
from reasonctl.parsers.versions import CHANGES, Change, applies, history

VOCABULARY = SpecVocabulary(Spec((), (("<think>", "plain"), ("</think>", "plain"), ("<|im_start|>", "plain"))))


def vllm(minor: int) -> Target:
    return Target("vllm", (0, minor, 0))


def test_rows_name_registered_parsers_newest_first_and_each_change_once() -> None:
    assert {name for row in CHANGES for name in row.parsers} <= set(ROWS)
    assert [row.since for row in CHANGES] == sorted((row.since for row in CHANGES), reverse=True)
    assert sorted(row.change.name for row in CHANGES if row.change) == sorted(change.name for change in Change)
    assert all(row.source and row.now for row in CHANGES)
    assert all(row.since > since(name) for row in CHANGES for name in row.parsers), "a name is older than its changes"


def since(name: str) -> tuple[int, int, int]:
    major, minor = ROWS[name].since.split(".")[:2]
    return int(major), int(minor), 0


@pytest.mark.parametrize(
    ("change", "target", "expected"),
    [
        (Change.CLOSED_PROMPT, vllm(33), True),
        (Change.CLOSED_PROMPT, vllm(32), False),
        (Change.CLOSED_PROMPT, Target("slimserve"), True),
        (Change.V4_ON, vllm(28), True),
        (Change.V4_ON, vllm(27), False),
        (Change.CALL_REPAIRS, vllm(40), True),
    ],
)
def test_since_when(change: Change, target: Target, expected: bool) -> None:
    assert applies(change, target) is expected


@pytest.mark.parametrize(("minor", "reasoning", "content"), [(28, "a", "b"), (27, None, "ab")])
def test_deepseek_v4_thinks_by_default_since_0_28(minor: int, reasoning: str | None, content: str) -> None:
    parser = build("deepseek_v4", VOCABULARY, {}, target=vllm(minor))
    parser.begin(None, streaming=False)
    found = parser.split("a</think>b", ())
    assert (found.reasoning, found.content) == (reasoning, content)


@pytest.mark.parametrize(("minor", "reasoning", "content"), [(33, None, "four"), (32, "four", None)])
def test_a_closed_prompt_is_read_in_full_since_0_33(minor: int, reasoning: str | None, content: str | None) -> None:
    parser = build("qwen3", VOCABULARY, {}, target=vllm(minor))
    parser.begin(VOCABULARY.encode("<|im_start|><think></think>"), streaming=False)
    found = parser.split("four", ())
    assert (found.reasoning, found.content) == (reasoning, content)


def test_history_is_told_newest_first() -> None:
    told = history("step3p5")
    assert told[0].startswith("since 0.33: non-streaming begins in the answer")
    assert told[-1] == "since 0.32: in the engine (before: a parser of its own)"
    assert history("deepseek_r1") == ()
