"""Budgets in requests, generation configs and serve flags: what is said of vLLM is what vLLM itself does."""

from __future__ import annotations

import json
import os
import random
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from reasonctl.budgets.config import parse_config
from reasonctl.budgets.dialects import EFFORTS
from reasonctl.budgets.facts import gather
from reasonctl.budgets.strings import Missing, strings_of
from reasonctl.checks.bud import check_budget
from reasonctl.errors import InputError
from reasonctl.parsers import ROWS
from reasonctl.parsers.differential.cases import specs
from reasonctl.parsers.differential.families import FAMILIES
from reasonctl.parsers.target import parse_target
from reasonctl.serve.commandline import parse_command_line
from reasonctl.serve.flags import LONG, SEVERAL, stands_alone

from .driver import ENVIRONMENT

SCRIPT = Path(__file__).with_name("budget_facts.py")
BODY: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
VALUES: list[Any] = [0, -1, -2, 1, 10**9, 5.0, 5.5, "5", "x", True, False, None, [], [5], {}, {"medium": 5}]
TOKENS: list[Any] = [1023, 1024, 2048, 4095, 4096, 9000, -1, -7, 2048.0, 2048.5, "2048", "x", True, None, [], 1e4]
REFUSING = {"BUD304", "BUD305", "BUD319"}

pytestmark = pytest.mark.vllm


def argvs() -> list[list[str]]:
    """Serve flags in many spellings and orders."""
    dice = random.Random(310)
    keys, values = (
        ["a", "b_c", "thinking_token_budget"],
        ["1", "2k", "3K", "true", "null", "word", '{"x": 1}', "[1]", "0.5"],
    )
    made = []
    for _ in range(400):
        words: list[str] = []
        for _ in range(dice.randint(0, 6)):
            flag = dice.choice(["override-generation-config", "default-chat-template-kwargs"])
            name = "--" + (flag.replace("-", "_") if dice.random() < 0.3 else flag)
            kind = dice.randrange(5)
            if kind == 0:
                value = json.dumps({dice.choice(keys): dice.randint(0, 9), "z": {"q": 1}})
                words += [f"{name}={value}"] if dice.random() < 0.5 else [name, value]
            elif kind == 1:
                words += ["--max-model-len", dice.choice(["4096", "4k", "4K", "1.5k", "auto", "-1"])]
            elif kind == 2:
                words += [
                    dice.choice(["--reasoning-parser", "--reasoning_parser"]),
                    dice.choice(["qwen3", "deepseek_r1"]),
                ]
            elif kind == 3:
                words.append("--enable-auto-tool-choice")
            else:
                path = ".".join(dice.choice(keys) for _ in range(dice.randint(1, 2)))
                value = dice.choice(values)
                if dice.random() < 0.2:
                    path, value = path + "+", "p,q"
                words += [f"{name}.{path}={value}"] if dice.random() < 0.5 else [f"{name}.{path}", value]
        made.append(words)
    return made


def ask(version: str, **request: Any) -> dict[str, Any]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment |= {"VLLM_LOGGING_LEVEL": "ERROR", "HF_HUB_OFFLINE": "1"}
    overlay = ENVIRONMENT / f"vllm-{version}"
    if overlay.exists():
        environment["PYTHONPATH"] = str(overlay)
    asked = {"chat": [], "messages": [], "generation": [], "argv": [], "flags": False, "tokenizers": {}} | request
    done = subprocess.run(
        [ENVIRONMENT / "bin" / "python", SCRIPT],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
        env=environment,
        timeout=300,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.fixture(scope="module", params=["0.33.0", "0.32.0"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def vllm(version: str) -> dict[str, Any]:
    return ask(
        version,
        chat=[BODY | {"thinking_token_budget": value} for value in VALUES],
        messages=[messages(value) for value in TOKENS],
        generation=[{"thinking_token_budget": 5}, {"temperature": 0.5, "thinking_token_budget": {"medium": 5}}],
        argv=argvs(),
        tokenizers=tokenizers(),
    )


def tokenizers() -> dict[str, Any]:
    """A tokenizer for every parser that has cases."""
    return {name: next(iter(specs(name).values())).to_json() for name in sorted(ROWS) if name in FAMILIES}


def messages(tokens: Any) -> dict[str, Any]:
    return BODY | {"max_tokens": 4096, "thinking": {"type": "enabled", "budget_tokens": tokens}}


def ours(body: dict[str, Any], target: str) -> tuple[bool, Any]:
    """Whether we say it is refused, and the cutoff we give it."""
    facts = gather(
        parse_config(json.dumps(body), path="r.json"), dialect="vllm", target=parse_target(target), limits=(4096,)
    )
    refused = bool({finding.rule for finding in check_budget(facts)} & REFUSING)
    rows = facts.requests[0].rows
    return refused, rows[0].resolution.cutoff if rows else None


@pytest.mark.parametrize(("surface", "values"), [("chat", VALUES), ("messages", TOKENS)])
def test_requests_are_refused_and_granted_alike(
    vllm: dict[str, Any], version: str, surface: str, values: list[Any]
) -> None:
    assert len(vllm[surface]) == len(values)
    for value, theirs in zip(values, vllm[surface], strict=True):
        body = BODY | {"thinking_token_budget": value} if surface == "chat" else messages(value)
        refused, cutoff = ours(body, f"vllm=={version}")
        assert refused == ("refused" in theirs), (surface, value, theirs)
        if not refused:
            assert cutoff == theirs["budget"], (surface, value)


def test_a_server_default_never_reaches_the_sampling_parameters(vllm: dict[str, Any]) -> None:
    assert vllm["generation"] == [{}, {"temperature": 0.5}]


def test_efforts_and_the_responses_endpoint(vllm: dict[str, Any]) -> None:
    assert tuple(vllm["efforts"]) == EFFORTS
    assert "thinking_token_budget" not in vllm["responses_fields"]
    assert "max_output_tokens" in vllm["responses_fields"]


def test_a_counter_goes_by_the_strings_that_vllm_goes_by(vllm: dict[str, Any], version: str) -> None:
    target, compared = parse_target(f"vllm=={version}"), 0
    for name, theirs in vllm["strings"].items():
        ours = strings_of(parse_command_line(f"vllm serve m --reasoning-parser {name}", path="c"), target)
        if ours is None or isinstance(theirs, dict):
            continue
        compared += 1
        seen = [None, None] if isinstance(ours, Missing) else [ours.start, ours.forced]
        assert seen == theirs, name
    assert compared > 30


def test_flags_are_read_as_vllm_reads_them(vllm: dict[str, Any]) -> None:
    compared = 0
    for words, theirs in zip(argvs(), vllm["argv"], strict=True):
        command = parse_command_line(f"vllm serve m {shlex.join(words)}", path="c")
        if "refused" in theirs:
            continue
        compared += 1
        length = theirs["max_model_len"]
        try:
            seen = {
                "reasoning_parser": command.reasoning_parser,
                "override_generation_config": command.override_generation_config,
                "default_chat_template_kwargs": command.default_chat_template_kwargs,
                "max_model_len": command.max_model_len,
                "enable_auto_tool_choice": command.enable_auto_tool_choice,
            }
        except InputError as error:
            raise AssertionError(f"{words}: {error}") from error
        assert seen == theirs | {"max_model_len": None if length == -1 else length}, words
    assert compared > 300


def test_which_flags_take_a_value() -> None:
    """By 0.32.0's own list: the newer one's parser wants a device that the laid-over files do not find."""
    flags = ask("0.32.0", flags=True)["flags"]
    assert [name for name in flags["alone"] if not stands_alone(name, product="vllm")] == []
    assert [name for name in flags["valued"] if stands_alone(name, product="vllm")] == []
    assert sorted(flags["several"]) == sorted(SEVERAL)
    assert {short: long for short, long in flags["short"].items() if LONG.get(short) != long} == {}
