"""What a drawing of a trace holds: its tokens, its deltas, and a row for each way it was split."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from reasonctl.traces.context import Context, Setting
from reasonctl.traces.plan import Plan
from reasonctl.traces.replay import replay_trace
from reasonctl.traces.strip import Strip
from reasonctl.traces.trace import Recorded, Trace, TraceDelta

LEAKED = "Hm, two.</think>\n\nIt is 4."


def drawn(trace: Trace, *, parsers: tuple[str, ...], model: str | None = None, **request: Any) -> Strip:
    with Context(Setting(model=model, request=request)) as context:
        facts = replay_trace(trace, context, Plan(parsers=parsers, named=parsers, strips=True))
    assert facts.strip is not None
    assert "".join(facts.strip.texts) == facts.raw
    for row in facts.strip.rows:
        assert row.error is not None or sum(length for _, length in row.spans) == len(facts.strip.texts)
    return facts.strip


def names(strip: Strip) -> list[list[str]]:
    return [[f"{name} {','.join(modes)}".strip() for name, modes in row.parsers] for row in strip.rows]


def test_parsers_with_one_outcome_share_a_row_and_a_leak_is_marked() -> None:
    recorded = Recorded(content=LEAKED, parser="poolside_v1")
    trace = Trace("t", "t.jsonl", 1, "trace", output_text=LEAKED, recorded=recorded)
    strip = drawn(trace, parsers=("poolside_v1", "qwen3", "deepseek_r1"))
    assert strip.texts == ["Hm", ",", " two", ".", "</think>", "\n\nIt", " is", " 4", "."]
    assert all(isinstance(one, int) for one in strip.ids)
    leaked, right = strip.rows[:2]
    assert names(strip)[0][:2] == ["recorded", "poolside_v1"]
    assert names(strip)[1][:2] == ["qwen3", "deepseek_r1"]
    assert leaked.spans == (("content", 9),)
    assert leaked.leaks == ((4, 1),)
    assert right.spans == (("reasoning", 4), ("marker", 1), ("content", 4))
    assert right.leaks == ()
    assert strip.deltas == []


def test_a_parser_whose_modes_differ_has_a_row_for_each_outcome() -> None:
    text = "Hm.</think>It is</think> 4."
    trace = Trace("t", "t.jsonl", 1, "trace", output_text=text)
    strip = drawn(trace, parsers=("qwen3",))
    full, streamed = strip.rows[:2]
    assert [row[0] for row in names(strip)[:2]] == ["qwen3 full,whole", "qwen3 token,3"]
    assert [kind for kind, _ in full.spans] == ["reasoning", "marker", "content", "marker", "content"]
    assert [kind for kind, _ in streamed.spans] == ["reasoning", "marker", "content"]
    assert len(streamed.leaks) == 1


def test_deltas_are_counted_in_tokens_and_a_token_may_be_shared() -> None:
    deltas = [TraceDelta("Hm, "), TraceDelta("two.</think>"), TraceDelta(""), TraceDelta("\n\nIt is 4.")]
    trace = Trace("t", "t.sse", 1, "sse", output_text=LEAKED, deltas=deltas, streamed=True)
    strip = drawn(trace, parsers=("ernie45",))
    assert strip.deltas == [2, 3, 0, 4]
    assert sum(strip.deltas) == len(strip.texts)
    (stripped,) = [row for row in strip.rows if row.mixed]
    assert stripped.mixed == {5: [("marker", 2), ("content", 2)]}


def test_what_a_parser_writes_itself_is_counted_and_an_exception_is_a_row() -> None:
    trace = Trace("t", "t.jsonl", 1, "trace", output_text="It is 4.")
    strip = drawn(trace, parsers=("minimax_m2_append_think", "k2_horizon"), model="fixture:qwen3")
    wrote, raised = strip.rows
    assert wrote.own == len("<think>")
    assert [kind for kind, _ in wrote.spans] == ["content"]
    assert raised.error == "RuntimeError"
    assert raised.spans == ()


def test_a_token_that_shows_nothing_has_a_name_and_is_no_loss() -> None:
    with Context(Setting(model="fixture:qwen3")) as context:
        assert context.model is not None
        tokenizer = context.model.tokenizer
        assert tokenizer is not None
        ids = [*tokenizer.encode("<think>Hm.</think>4"), *tokenizer.encode("<|im_end|>")]
    recorded = Recorded(finish_reason="stop")
    trace = Trace("t", "t.jsonl", 1, "trace", output_ids=tuple(ids), recorded=recorded)
    strip = drawn(trace, parsers=("qwen3",), model="fixture:qwen3")
    assert strip.texts[-1] == ""
    assert strip.names == {len(ids) - 1: "<|im_end|>"}
    kinds = [kind for kind, length in strip.rows[0].spans for _ in range(length)]
    assert kinds[0] == "marker"
    assert kinds[-2:] == ["content", "marker"]
    assert "lost" not in kinds


def test_no_plan_draws_unasked() -> None:
    trace = Trace("t", "t.jsonl", 1, "trace", output_text=LEAKED)
    with Context(Setting()) as context:
        facts = replay_trace(trace, context, Plan(parsers=("qwen3",)))
        assert facts.strip is None
        again = replay_trace(trace, context, replace(Plan(parsers=("qwen3",)), strips=True))
    assert again.strip is not None
    assert again.strip.as_json()["rows"][0]["parsers"] == [["qwen3", []]]


def test_the_prompt_is_shown_by_its_end() -> None:
    trace = Trace("t", "t.jsonl", 1, "trace", output_text=LEAKED, prompt_text="x" * 500 + "<think>\n")
    strip = drawn(trace, parsers=("qwen3",))
    assert strip.state == "open"
    assert strip.prompt is not None
    assert strip.prompt.endswith("x<think>\n")
    assert len(strip.prompt) == 160
