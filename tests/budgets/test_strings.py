"""What a server counts between, which model runner does so, and how the counter treats an output."""

from __future__ import annotations

import pytest

from reasonctl.budgets.counting import Markers, Rule, counter, play
from reasonctl.budgets.slimserve import parser_of
from reasonctl.budgets.strings import Missing, Strings, runner_of, strings_of, without_strings
from reasonctl.parsers.target import Target, parse_target
from reasonctl.serve.commandline import parse_command_line

BOTH = '{"reasoning_start_str": "<think>", "reasoning_end_str": "Stop.</think>"}'


def of(flags: str, target: str = "vllm") -> Strings | Missing | None:
    return strings_of(parse_command_line(f"vllm serve m {flags}", path="c"), parse_target(target))


@pytest.mark.parametrize(
    ("flags", "target", "start", "natural", "forced"),
    [
        ("--reasoning-parser qwen3", "vllm", "<think>", "</think>", "</think>"),
        ("--reasoning-parser gemma4", "vllm", "<|channel>", "<channel|>", "<channel|>"),
        ("--reasoning-parser k2_horizon", "vllm", "<ifm|think>", "</ifm|think>", "</ifm|think>"),
        ("--reasoning-parser step3", "vllm==0.20.0", "<think>", "</think>", "</think>"),
        (
            "--reasoning-parser qwen3 --reasoning-config.reasoning_end_str 'Stop.</think>'", "vllm",
            "<think>", "</think>", "Stop.</think>",
        ),
        (
            "--reasoning-parser qwen3 --reasoning-config.reasoning_end_str 'Stop.</think>'", "vllm==0.27.0",
            "<think>", "Stop.</think>", "Stop.</think>",
        ),
        (f"--reasoning-parser deepseek_v3 --reasoning-config '{BOTH}'", "vllm", "<think>", *["Stop.</think>"] * 2),
        (f"--reasoning-config '{BOTH}'", "vllm", "<think>", *["Stop.</think>"] * 2),
        ("--reasoning-config.reasoning_parser qwen3", "vllm", "<think>", "</think>", "</think>"),
        ("--reasoning-config {}", "vllm==0.19.0", "<think>", "</think>", "</think>"),
        ("--reasoning-parser deepseek_v4", "vllm==0.25.0", "<think>", "</think>", "</think>"),
    ],
)  # fmt: skip
def test_strings(flags: str, target: str, start: str, natural: str, forced: str) -> None:
    found = of(flags, target)
    assert isinstance(found, Strings)
    assert (found.start, found.natural, found.forced) == (start, natural, forced)


@pytest.mark.parametrize(
    ("flags", "target", "text"),
    [
        ("", "vllm", "no --reasoning-parser is set"),
        ("--reasoning-parser poolside_v1", "vllm", "the parser poolside_v1 names no start and end strings"),
        ("--reasoning-parser deepseek_v4", "vllm==0.24.0", "the parser deepseek_v4 names no start and end strings"),
        ("--reasoning-parser qwen3", "vllm==0.19.0", "no --reasoning-config is given"),
    ],
)
def test_no_strings(flags: str, target: str, text: str) -> None:
    found = of(flags, target)
    assert isinstance(found, Missing)
    assert found.text == text


@pytest.mark.parametrize("flags", ["--reasoning-parser hf", "--reasoning-parser hy_v3", '--reasoning-parser "$P"'])
def test_strings_that_nobody_can_tell_from_here(flags: str) -> None:
    assert of(flags) is None


def test_parsers_without_strings_by_release() -> None:
    newest, older = without_strings(Target()), without_strings(parse_target("vllm==0.24.0"))
    assert set(older) - set(newest) == {"deepseek_v4"}
    assert set(newest) <= set(older)


DENSE, MOE, LISTED = ("Qwen3ForCausalLM",), ("Qwen3MoeForCausalLM",), ("Qwen2MoeForCausalLM",)


@pytest.mark.parametrize(
    ("target", "words", "architectures", "runner"),
    [
        ("vllm==0.21.0", "", DENSE, "v1"),
        ("vllm==0.22.0", "", DENSE, "v1"),
        ("vllm==0.23.0", "", DENSE, "v2"),
        ("vllm==0.23.0", "", LISTED, "v1"),
        ("vllm==0.23.0", "--quantization fp8", DENSE, "v1"),
        ("vllm==0.24.0", "", LISTED, "v2"),
        ("vllm==0.24.0", "", MOE, "v1"),
        ("vllm==0.25.0", "", DENSE, "v2"),
        ("vllm==0.25.0", "", MOE, "v1"),
        ("vllm==0.27.0", "", ("SomeNewForCausalLM",), None),
        ("vllm==0.27.0", "", (), None),
        ("vllm==0.27.0", '--speculative-config {"method":"ngram"}', DENSE, "v1"),
        ("vllm==0.29.0", "", (), "v2"),
        ("vllm==0.33.0", "", MOE, "v2"),
        ("vllm==0.33.0", '--speculative-config {"method":"suffix"}', MOE, "v1"),
        ("slimserve", "", (), "v2"),
    ],
)
def test_the_runner_of_a_release(target: str, words: str, architectures: tuple[str, ...], runner: str | None) -> None:
    command = parse_command_line(
        f"vllm serve m {words.replace('{', chr(39) + '{').replace('}', '}' + chr(39))}", path="c"
    )
    assert runner_of(command, parse_target(target), architectures) == runner
    forced = parse_command_line("VLLM_USE_V2_MODEL_RUNNER=0 vllm serve m", path="c")
    assert runner_of(forced, parse_target(target), architectures) == "v1"


START, END, CALL = 1, 2, 3
THINK = Markers((START,), (END,), (END,))
PHRASE = Markers((START,), (END,), (20, 21, END))


def run(rule: Rule, markers: Markers, budget: int, prompt: list[int], said: list[int]) -> str:
    return " ".join(
        f"[{one.token}]" if one.forced else str(one.token)
        for one in play(counter(rule, markers, budget, prompt), said, 40)
    )


@pytest.mark.parametrize(
    ("rule", "prompt", "budget", "output"),
    [
        ("vllm-v1", [50, START, 60], 3, "7 7 [2] 7 7"),
        ("vllm-v2", [50, START, 60], 3, "7 7 [2] 7 7"),
        ("slimserve", [50, START, 60], 3, "7 7 7 [2] 7"),
        ("vllm-v2", [50, START], 3, "7 7 7 [2] 7"),
        ("vllm-v2", [50, START, 60, 61, 62], 3, "[2] 7 7 7 7"),
        ("vllm-v2", [50], 3, "7 7 7 7"),
    ],
)
def test_the_prompts_tokens_are_charged(rule: Rule, prompt: list[int], budget: int, output: str) -> None:
    assert run(rule, THINK, budget, prompt, [7, 7, 7, 7]) == output


@pytest.mark.parametrize("rule", ["vllm-v1", "vllm-v2", "slimserve"])
def test_a_reopened_block_gets_the_whole_budget(rule: Rule) -> None:
    assert run(rule, THINK, 2, [50, START], [11, END, 9, START, 12, 13, 14]) == "11 2 9 1 12 13 [2] 14"
    assert run(rule, THINK, 1, [50, START], [11, 12, START, 13, 14]) == "11 [2] 12 1 13 [2] 14"


def test_a_phrase_misses_the_natural_end_on_v1() -> None:
    said = [11, 12, END, 31, 32, 33]
    assert run("vllm-v1", PHRASE, 4, [50, START], said) == "11 12 2 31 [20] [21] [2] 32 33"
    assert run("vllm-v2", PHRASE, 4, [50, START], said) == "11 12 2 31 32 33"


def test_v2_drops_what_stands_behind_the_end() -> None:
    behind = Markers((START,), (END,), (END, 20, 21))
    assert run("vllm-v2", behind, 2, [START], [11, 12, 13, 14]) == "11 12 [2] 13 14"
    assert run("vllm-v1", behind, 2, [START], [11, 12, 13, 14]) == "11 12 [2] [20] [21] 13 14"


@pytest.mark.parametrize("rule", ["vllm-v1", "vllm-v2"])
def test_a_tool_call_is_no_end(rule: Rule) -> None:
    assert run(rule, THINK, 4, [50, START], [11, 12, CALL, 13, 14, 15]) == "11 12 3 13 [2] 14 15"


@pytest.mark.parametrize(
    ("given", "model_type", "architectures", "parser"),
    [
        (None, "glm_moe_dsa", (), "glm45"),
        (None, "glm4_moe", ("Glm4MoeForCausalLM",), "glm45"),
        ("glm45", "deepseek4", (), "deepseek_v4"),
        (None, "kimi-k3", (), "kimi_k3"),
        ("qwen3", "deepseek4", (), "qwen3"),
        (None, "qwen3", ("Qwen3ForCausalLM",), None),
        ("glm45", None, (), "glm45"),
        (None, None, (), None),
    ],
)
def test_slimserve_takes_its_parser_by_the_architecture(
    given: str | None, model_type: str | None, architectures: tuple[str, ...], parser: str | None
) -> None:
    assert parser_of(given, model_type, architectures) == parser


@pytest.mark.parametrize("target", ["vllm==0.33.0", "vllm==0.19.0"])
def test_nobody_can_tell_where_only_the_shell_knows_what_else_is_given(target: str) -> None:
    assert isinstance(of("", target), Missing)
    assert of('"$@"', target) is None
    assert isinstance(of('--reasoning-parser deepseek_v3 "$@"', "vllm==0.33.0"), Missing)
