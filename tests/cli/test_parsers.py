"""`reasonctl parsers`: the table, one parser in full, other servers, wrong calls."""

from __future__ import annotations

import json
import re
import sys

import pytest

from reasonctl import parsers
from reasonctl.cli import main
from reasonctl.parsers.checked import LastCheck


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["reasonctl", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        return int(stop.value.code or 0), re.sub(" +", " ", captured.out), captured.err

    return call


def test_table_has_every_name(run) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = run("parsers")
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "42 reasoning parsers of vllm==0.33.0"
    first_words = {line.split()[0] for line in lines[3:] if line.startswith(" ") and line.split()}
    assert set(parsers.names()) <= first_words
    assert starting(lines, " deepseek_v3 0.11.1 <think> </think> thinking, ")
    assert " enable_thinking: off" in lines
    assert starting(lines, " step3p5 0.15.1 <think> </think> - ")


def starting(lines: list[str], head: str) -> list[str]:
    return [line for line in lines if line.startswith(head)]


def test_table_and_page_say_what_a_model_was_checked_with(run, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    known = {"qwen3": (LastCheck("0.33.0", 500, 7), LastCheck("0.32.0", 60, 8)), "step5": (LastCheck("0.33.0", 9, 7),)}
    monkeypatch.setattr("reasonctl.parsers.checked.last_checks", lambda name: known.get(name, ()))
    lines = run("parsers")[1].splitlines()
    assert lines[2].endswith("switch and its default 0.33.0 0.32.0")
    assert " qwen3 0.9 <think> </think> enable_thinking: on 500 60" in lines
    assert " step5 0.33 <think> </think> - 9 -" in lines
    assert " step3 0.10.1 <think> </think> - - -" in lines
    page = run("parsers", "qwen3")[1]
    assert "checked with vLLM 0.33.0: the same on 500 cases (seed 7); vLLM 0.32.0" in page
    assert "checked with no real vLLM yet" in run("parsers", "step3")[1]
    data = json.loads(run("parsers", "qwen3", "--format", "json")[1])
    assert data["checked"][1] == {"version": "0.32.0", "cases": 60, "seed": 8}
    monkeypatch.setattr("reasonctl.parsers.checked.last_checks", lambda name: ())
    assert run("parsers")[1].splitlines()[2].endswith("switch and its default")


def test_target_leaves_out_what_came_later(run) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = run("parsers", "--target", "vllm==0.30.0")
    assert code == 0
    assert out.startswith("34 reasoning parsers of vllm==0.30.0")
    assert " step5 " not in out


def test_one_parser_in_full(run) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = run("parsers", "qwen3")
    row = parsers.row("qwen3")
    assert code == 0
    assert out.splitlines()[0] == f"qwen3 engine, since vLLM {row.since}"
    for said in (
        "start markers <think>",
        "end markers </think>",
        "switch enable_thinking, on by default: a false value switches the parser off",
        "also ended by <tool_call>",
        "needs start in output no",
        "reads the prompt streaming, whole output from 0.33 on",
        "turn boundaries <|im_start|> <|im_end|>",
        "skip_special_tokens set to false",
        "built-in model yes",
        "source vllm/parser/qwen3.py",
    ):
        assert f" {said}" in out.splitlines()


@pytest.mark.parametrize("name", parsers.names())
def test_every_parser_can_be_shown(run, name: str) -> None:  # type: ignore[no-untyped-def]
    code, out, err = run("parsers", name)
    row = parsers.row(name)
    flat = " ".join(out.split())
    assert (code, err) == (0, "")
    for text in (row.truncation, row.prompt_rule, row.gates_grammar, *row.quirks, *row.sources):
        assert " ".join(text.split()) in flat
    if row.reads_prompt_full:
        assert "whole output from 0.33 on" in flat


def test_json_of_the_table_and_of_one(run) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = run("parsers", "--format", "json", "--target", "vllm==0.32.0")
    data = json.loads(out)
    assert code == 0
    assert data["target"] == "vllm==0.32.0"
    assert [row["name"] for row in data["parsers"]] == list(parsers.names(parsers.Target("vllm", (0, 32, 0))))
    code, out, _ = run("parsers", "deepseek_v3", "--format", "json")
    one = json.loads(out)
    assert one["name"] == "deepseek_v3"
    kwarg = parsers.row("deepseek_v3").kwargs[0]
    assert one["kwargs"][0] == {
        "name": "thinking",
        "default": "off",
        "meaning": kwarg.meaning,
        "switches_thinking": True,
    }


def test_a_kwarg_that_is_no_switch_is_told_apart(run) -> None:  # type: ignore[no-untyped-def]
    _, out, _ = run("parsers")
    assert starting(out.splitlines(), " nemotron_v3 0.17.1 <think> </think> enable_thinking: on")
    _, out, _ = run("parsers", "nemotron_v3")
    assert "\n reads too force_nonempty_content, off by default: " in out


def test_unknown_name_offers_the_nearest(run) -> None:  # type: ignore[no-untyped-def]
    code, out, err = run("parsers", "qwen-3")
    assert (code, out) == (2, "")
    assert err == "reasonctl: vllm==0.33.0 registers no reasoning parser 'qwen-3'; did you mean qwen3?\n"


def test_name_of_a_later_version(run) -> None:  # type: ignore[no-untyped-def]
    code, _, err = run("parsers", "step5", "--target", "vllm==0.32.0")
    assert code == 2
    assert "vllm==0.32.0 registers no reasoning parser 'step5'; vLLM 0.33 and later do" in err


@pytest.mark.parametrize(("flag", "value"), [("--format", "yaml"), ("--target", "sglang")])
def test_wrong_flags(run, flag: str, value: str) -> None:  # type: ignore[no-untyped-def]
    code, _, err = run("parsers", flag, value)
    assert code == 2
    assert err.startswith(f"reasonctl: {flag}: {value!r}")
