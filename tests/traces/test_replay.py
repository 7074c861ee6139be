"""One trace put to parsers: where tokens and prompt come from, what is compared, which parser explains it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reasonctl.parsers import Target, engines
from reasonctl.parsers.feed import parse_chunkings
from reasonctl.parsers.run import ModeResult, ParserRun
from reasonctl.traces.context import Context, Setting
from reasonctl.traces.native import trace_of
from reasonctl.traces.replay import Plan, Result, TraceFacts, recorded_json, replay_trace, result_json
from reasonctl.traces.trace import Recorded, Trace

OPEN = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>\n"
CLOSED = OPEN + "\n</think>\n\n"


def make(text: str | None = None, prompt: str | None = None, finish: str | None = "stop", **more: Any) -> Trace:
    output = more.pop("output", {"text": text})
    recorded = {"finish_reason": finish} | more.pop("recorded", {})
    value = {"id": "t", "output": output, "recorded": recorded} | more
    if prompt is not None:
        value["prompt"] = {"text": prompt}
    return trace_of(value, path="f.jsonl", line=1)


def run(trace: Trace, *parsers: str, setting: Setting | None = None, **plan: Any) -> TraceFacts:
    with Context(setting or Setting()) as context:
        return replay_trace(trace, context, Plan(parsers=parsers, named=parsers, **plan))


def only(facts: TraceFacts) -> Result:
    (result,) = facts.results
    return result


def test_a_closed_prompt_makes_streaming_differ() -> None:
    """vLLM issue 17349: deepseek_r1 reads the prompt when it streams, and only then."""
    result = only(run(make("It is 4.", CLOSED), "deepseek_r1"))
    assert (result.full.reasoning, result.full.content) == ("It is 4.", None)
    assert {(mode.reasoning, mode.content) for mode in result.stream} == {(None, "It is 4.")}
    assert result.checks.failed == ("stream_equals_full", "answered")
    assert result.status == "suspect"


def test_the_default_chunkings_and_those_asked_for() -> None:
    streamed = {"deltas": [{"text": "hm"}, {"text": "</think>"}, {"text": "4"}]}
    assert [mode.chunking for mode in only(run(make(output=streamed), "qwen3")).stream] == [
        "recorded",
        "token",
        "3",
        "whole",
    ]
    assert [mode.chunking for mode in only(run(make("hm</think>4"), "qwen3")).stream] == ["token", "3", "whole"]
    asked = only(run(make(output=streamed), "qwen3", chunkings=parse_chunkings("whole,char")))
    assert [mode.chunking for mode in asked.stream] == ["whole", "char"]
    assert asked.primary is not None
    assert asked.primary.chunking == "recorded"
    assert asked.checks.stream_equals_full is True


def test_the_recorded_parser_is_what_runs() -> None:
    facts = run(make("hm</think>4", recorded={"parser": "glm45"}))
    assert [(r.parser, r.subject, r.served) for r in facts.results] == [("glm45", True, True)]


def test_without_one_all_of_the_target_run_and_none_is_accused() -> None:
    facts = run(make("hm</think>4"), target=Target("vllm", (0, 30, 0)))
    assert len(facts.results) == 34
    assert not any(result.subject for result in facts.results)
    assert "qwen3" in facts.best


def test_a_parser_the_target_does_not_have_is_unsupported() -> None:
    result = run(make("x", recorded={"parser": "house_parser"})).results[0]
    assert (result.status, result.reason) == ("unsupported", "vllm==0.33.0 registers no such parser")


def test_what_cannot_be_run_is_unsupported_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(name: str, *_: Any, **__: Any) -> ParserRun:
        return ParserRun(name, ModeResult(None, None, None, 0), (), None, unsupported="needs an extra")

    monkeypatch.setattr(engines, "run_parser", unsupported)
    result = only(run(make("x"), "qwen3"))
    assert (result.status, result.reason) == ("unsupported", "needs an extra")
    assert (result.stream, result.checks.as_json()["answered"]) == ((), None)


def test_kwargs_are_the_effective_ones() -> None:
    def reasoning(**request: Any) -> str | None:
        return only(run(make("hm</think>4", request=request), "deepseek_v3")).full.reasoning

    assert reasoning() is None
    assert reasoning(chat_template_kwargs={"thinking": True}) == "hm"
    assert reasoning(reasoning_effort="high") == "hm"
    assert reasoning(reasoning_effort="none") is None
    assert reasoning(reasoning_effort="high", chat_template_kwargs={"enable_thinking": None}) is None


def test_the_command_lines_kwargs_beat_the_requests_and_servers() -> None:
    trace = make("hm</think>4", request={"chat_template_kwargs": {"enable_thinking": False}})
    asked = Setting(kwargs={"enable_thinking": True})
    assert only(run(trace, "deepseek_v3", setting=asked)).full.reasoning == "hm"
    served = Setting(default_kwargs={"thinking": True})
    assert only(run(make("hm</think>4"), "deepseek_v3", setting=served)).full.reasoning == "hm"


def test_text_deltas_get_their_tokens_where_the_last_character_arrives() -> None:
    """A proxy that cuts a marker in two: the id comes with its last piece."""
    cut = {"deltas": [{"text": "hm</th"}, {"text": "ink>4"}]}
    result = only(run(make(output=cut), "qwen3"))
    assert (result.full.reasoning, result.full.content) == ("hm", "4")
    assert result.stream[0].deltas == 2


def test_a_trace_of_ids_and_token_texts() -> None:
    deltas = [
        {"text": "hm", "token_ids": [11]},
        {"text": "</think>", "token_ids": [7]},
        {"text": "4", "token_ids": [12]},
    ]
    facts = run(make(output={"deltas": deltas}), "deepseek_r1")
    result = only(facts)
    assert facts.tokenizer == "trace"
    assert (result.full.reasoning, result.full.content, result.checks.failed) == ("hm", "4", ())


def test_a_marker_that_is_no_token_of_the_trace_breaks_the_parser_that_needs_one() -> None:
    pieces = [("hm", 1), ("</", 2), ("think", 3), (">", 4), ("4", 5)]
    deltas = [{"text": text, "token_ids": [token_id]} for text, token_id in pieces]
    result = only(run(make(output={"deltas": deltas}), "deepseek_r1"))
    assert result.status == "error"
    assert result.full.error == "RuntimeError"
    assert "RuntimeError" in str(result.reason)


def test_ids_alone_cannot_be_read_without_a_model() -> None:
    facts = run(make(output={"token_ids": [1, 2]}), "qwen3")
    assert only(facts).status == "unsupported"
    assert "--model" in facts.notes[0]


def test_ids_alone_that_are_another_tokenizers_are_not_judged() -> None:
    setting = Setting(model="fixture:qwen3-thinking")
    facts = run(make(output={"token_ids": [999999999, 5]}), "qwen3", setting=setting)
    assert (only(facts).status, facts.best) == ("unsupported", ())
    assert "id 999999999 is beyond the" in str(only(facts).reason)


def test_ids_alone_with_a_recorded_split_are_rebuilt() -> None:
    facts = run(make(output={"token_ids": [1, 2]}, recorded={"reasoning": "hm", "content": "4"}), "qwen3")
    assert (facts.lossy, facts.raw, only(facts).matches_recorded) == (True, "<think>hm</think>4", True)


def test_lossy_traces_are_rebuilt_by_the_serving_parser_and_the_prompt() -> None:
    recorded = {"reasoning": "hm", "content": "4", "parser": "seed_oss"}
    assert run(make(output={}, recorded=recorded), "qwen3").raw == "<seed:think>hm</seed:think>4"
    opened = run(make(output={}, prompt=OPEN, recorded=recorded | {"parser": "qwen3"}), "qwen3")
    assert opened.raw == "hm</think>4"


def test_matching_needs_something_recorded() -> None:
    assert only(run(make("hm</think>4"), "qwen3")).matches_recorded is None
    good = {"reasoning": "hm", "content": "4"}
    assert only(run(make("hm</think>4", recorded=good), "qwen3")).matches_recorded is True
    assert only(run(make("hm</think>4", recorded=good | {"content": "5"}), "qwen3")).matches_recorded is False


def test_a_raw_capture_is_compared_only_where_the_serving_parser_is_known() -> None:
    raw = Trace("t", "f", 1, "sse", output_text="hm</think>4", recorded=Recorded(content="hm</think>4"))
    facts = run(raw, "poolside_v1")
    assert only(facts).matches_recorded is None
    assert recorded_json(facts) is None
    served = run(raw, "poolside_v1", serve_parser="poolside_v1")
    assert only(served).matches_recorded is True
    assert recorded_json(served) == {
        "reasoning": None,
        "content": "hm</think>4",
        "parser": None,
        "finish_reason": None,
    }


def test_others_are_compared_only_where_the_serving_parser_fails() -> None:
    good = run(make("hm</think>4", recorded={"parser": "qwen3"}))
    assert (good.best, good.compared) == (("qwen3",), ())
    bad = run(make("hm</think>4", OPEN, recorded={"parser": "deepseek_v3"}))
    assert bad.results[0].status == "suspect"
    assert len(bad.results) == 1
    assert len(bad.compared) == 41
    assert bad.best[0] == "qwen3"
    assert "deepseek_v3" not in bad.best


def test_no_parser_at_all() -> None:
    result = only(run(make("hm</think>4"), "none"))
    assert (result.full.reasoning, result.full.content) == (None, "hm</think>4")
    assert result.checks.failed == ("no_marker_leak",)


def test_a_crash_costs_one_result(monkeypatch: pytest.MonkeyPatch) -> None:
    real = engines.run_parser

    def fragile(name: str, *args: Any, **more: Any) -> Any:
        if name == "qwen3":
            raise ZeroDivisionError("oops")
        return real(name, *args, **more)

    monkeypatch.setattr(engines, "run_parser", fragile)
    first, second = run(make("hm</think>4"), "qwen3", "glm45").results
    assert (first.status, first.crashed, "ZeroDivisionError: oops" in str(first.reason)) == ("error", True, True)
    assert second.status == "ok"


def test_json_of_a_result_has_the_keys_of_the_contract() -> None:
    facts = run(make("hm</think>4", recorded={"reasoning": "hm", "content": "4"}), "qwen3")
    shown = result_json(facts, only(facts))
    assert shown["full"] == {"reasoning": "hm", "content": "4"}
    assert shown["stream"][0] == {"chunking": "token", "reasoning": "hm", "content": "4", "deltas": 3}
    assert shown["checks"] == {
        "stream_equals_full": True,
        "chunk_invariant": True,
        "no_marker_leak": True,
        "text_conserved": True,
        "answered": True,
    }
    assert {key: shown[key] for key in ("trace", "line", "parser", "status", "reasoning_tokens", "reason")} == {
        "trace": "t",
        "line": 1,
        "parser": "qwen3",
        "status": "ok",
        "reasoning_tokens": 1,
        "reason": None,
    }
    assert shown["matches_recorded"] is True
    json.dumps(shown)


def test_a_model_without_a_tokenizer_is_said(tmp_path: Path) -> None:
    path = tmp_path / "lone.jinja"
    path.write_text("{{ messages[0].content }}<think>")
    facts = run(make("hm</think>4"), "qwen3", setting=Setting(model=str(path)))
    assert facts.tokenizer == "assumed"
    assert "no usable tokenizer: a lone file has no tokenizer" in facts.notes[0]


class TestWithAModel:
    """The shipped model: real ids, its template, its end-of-sequence tokens."""

    setting = Setting(model="fixture:qwen3-thinking")

    def ids(self, text: str) -> list[int]:
        with Context(self.setting) as context:
            assert context.model is not None
            assert context.model.tokenizer is not None
            return list(context.model.tokenizer.encode(text))

    def test_ids_give_the_text_and_bring_back_lost_markers(self) -> None:
        ids = self.ids("hm, 你好\n</think>\n\n4")
        trace = make(output={"token_ids": ids}, recorded={"reasoning": "hm, 你好\n", "content": "\n\n4"})
        facts = run(replace(trace, lossy=True, segments=(("reasoning", "hm"),)), "qwen3", setting=self.setting)
        assert (facts.tokenizer, facts.lossy) == ("model", False)
        assert only(facts).matches_recorded is True

    def test_an_end_of_sequence_token_brings_no_text(self) -> None:
        ids = [*self.ids("hm</think>4"), *self.ids("<|im_end|>")]
        for finish, content in (("stop", "4"), (None, "4"), ("length", "4<|im_end|>")):
            trace = make(output={"token_ids": ids}, finish=finish, request={"skip_special_tokens": False})
            assert only(run(trace, "deepseek_r1", setting=self.setting)).full.content == content

    def test_a_stop_string_cuts_the_text(self) -> None:
        ids = self.ids("hm</think>4, said the END and more")
        trace = make(output={"token_ids": ids}, request={"stop": ["END"]})
        assert only(run(trace, "qwen3", setting=self.setting)).full.content == "4, said the "

    def test_ids_of_another_tokenizer_are_not_believed(self) -> None:
        trace = make(output={"text": "hm</think>4", "token_ids": [999_999, 3]})
        facts = run(trace, "qwen3", setting=self.setting)
        assert only(facts).full.content == "4"
        assert "not of this model's tokenizer" in facts.notes[0]

    def test_a_requests_messages_are_rendered(self) -> None:
        trace = make(
            "hm</think>4", request={"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi!"}]}]}
        )
        facts = run(trace, "qwen3", setting=self.setting)
        assert facts.prompt_from == "template"
        assert facts.prompt is not None
        assert facts.prompt.endswith("Hi!<|im_end|>\n<|im_start|>assistant\n<think>\n")

    def test_a_bare_capture_has_no_prompt_unless_something_is_known(self) -> None:
        assert run(make("hm</think>4"), "qwen3", setting=self.setting).prompt is None
        body = {"messages": [{"role": "user", "content": "Hello?"}]}
        asked = run(make("hm</think>4"), "qwen3", setting=replace(self.setting, request=body))
        assert asked.prompt is not None
        assert "Hello?" in asked.prompt
        served = run(make("hm</think>4"), "qwen3", setting=replace(self.setting, serve_known=True))
        assert served.prompt_from == "plain"

    def test_a_template_alone_renders_too(self, tmp_path: Path) -> None:
        path = tmp_path / "t.jinja"
        path.write_text("{{ messages[0].content }}|{{ bos_token }}{% if enable_thinking %}<think>{% endif %}")
        body = {"messages": [{"role": "user", "content": "Hi"}]}
        setting = Setting(chat_template=str(path), request=body, kwargs={"enable_thinking": True})
        assert run(make("hm</think>4"), "qwen3", setting=setting).prompt == "Hi|<s><think>"

    def test_a_template_that_raises_is_said_and_costs_the_prompt_alone(self, tmp_path: Path) -> None:
        path = tmp_path / "t.jinja"
        path.write_text("{{ raise_exception('no such role') }}")
        body = {"messages": [{"role": "user", "content": "Hi"}]}
        facts = run(make("hm</think>4"), "qwen3", setting=Setting(chat_template=str(path), request=body))
        assert only(facts).status == "ok"
        assert "no such role" in facts.notes[0]


@pytest.mark.parametrize("parser", ["none", "deepseek_v3", "deepseek_r1"])
@pytest.mark.parametrize("chunkings", ["token", "whole,holdback:12", "char,3"])
def test_a_comparison_has_a_word_for_every_mode(parser: str, chunkings: str) -> None:
    facts = run(make("[THINK]hm hm[/THINK]<think>4"), parser, serve_parser=parser, chunkings=parse_chunkings(chunkings))
    assert facts.comparison is not None
    told = facts.comparison.as_json()
    assert {len(row["modes"]) for row in told["rows"]} == {len(told["modes"])}
    assert told["modes"].count("holdback:12") == 1


def test_a_crash_has_words_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str, *_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(engines, "run_parser", broken)
    facts = run(make("<think>hm</think>4"), "qwen3")
    assert facts.comparison is not None
    told = facts.comparison.as_json()
    assert {len(row["modes"]) for row in told["rows"]} == {len(told["modes"])}
