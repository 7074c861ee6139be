"""Serve command lines: which server, which flags, and where each stands."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from reasonctl.errors import InputError
from reasonctl.parsers.target import Target, parse_target
from reasonctl.serve.command import ServeCommand
from reasonctl.serve.commandline import find_commands, parse_command_line
from reasonctl.serve.read import read_serve


def one(text: str) -> ServeCommand:
    return parse_command_line(text, path="cmd")


LONG = """#!/bin/bash
set -euo pipefail
export VLLM_USE_V2_MODEL_RUNNER=0
# the model we serve
HF_HUB_OFFLINE=1 nohup uv run vllm serve org/m \\
    --reasoning_parser=qwen3 \\
    --default-chat-template-kwargs.enable_thinking=false \\
    --override-generation-config '{"temperature": 0.6,
        "thinking_token_budget": {"low": 1024}}' \\
    --enable-auto-tool-choice --tool-call-parser hermes \\
    -tp 2 --served-model-name chat extra > server.log 2>&1 &
"""


def test_a_long_command_in_a_script() -> None:
    command = one(LONG)
    assert (command.product, command.model, command.name, command.target) == ("vllm", "org/m", "chat", None)
    assert command.env == {"VLLM_USE_V2_MODEL_RUNNER": "0", "HF_HUB_OFFLINE": "1"}
    assert command.runner == "v1"
    assert command.reasoning_parser == "qwen3"
    assert command.tool_call_parser == "hermes"
    assert command.enable_auto_tool_choice
    assert command.default_chat_template_kwargs == {"enable_thinking": False}
    assert command.override_generation_config == {"temperature": 0.6, "thinking_token_budget": {"low": 1024}}
    assert command.text("tensor-parallel-size") == "2"
    assert command.text("served-model-name") == "chat extra"


def test_places_of_flags_and_of_keys_inside_their_values() -> None:
    command = one(LONG)
    place = command.place("reasoning-parser")
    assert (place.path, place.line, place.column) == ("cmd", 6, 5)
    node = command.document("override-generation-config")
    assert node is not None
    places = {".".join(path): (entry.location.line, entry.location.column) for path, entry in node.walk()}
    assert places == {
        "temperature": (8, 36),
        "thinking_token_budget": (9, 9),
        "thinking_token_budget.low": (9, 35),
    }


@pytest.mark.parametrize(
    ("text", "product", "model"),
    [
        ("vllm serve m", "vllm", "m"),
        ("/opt/venv/bin/vllm serve --enforce-eager m", "vllm", "m"),
        ("python3 -m vllm.entrypoints.openai.api_server --model m", "vllm", "m"),
        ("python -u -m vllm.entrypoints.openai.api_server --model=m --port 1", "vllm", "m"),
        ("python -m vllm.entrypoints.cli.main serve m", "vllm", "m"),
        ("CUDA_VISIBLE_DEVICES=0,1 exec vllm serve m", "vllm", "m"),
        ("env A=1 B=2 nohup vllm serve --model m", "vllm", "m"),
        ("srun --gpus 2 vllm serve m | tee log", "vllm", "m"),
        ('bash -lc "vllm serve m --port 1"', "vllm", "m"),
        ("--model m --reasoning-parser qwen3", "vllm", "m"),
        ("cd /srv && vllm serve m", "vllm", "m"),
        ('vllm serve "$MODEL"', "vllm", None),
        ("slimserve k3-xxs-6 --serve --ctx 65536", "slimserve", "k3-xxs-6"),
        ("slimserve serve m --reasoning-parser qwen3", "slimserve", "m"),
        ("slimserve p --model org/m", "slimserve", "org/m"),
    ],
)
def test_ways_to_start_a_server(text: str, product: str, model: str | None) -> None:
    command = one(text)
    assert (command.product, command.model) == (product, model)
    assert command.target == (Target("slimserve") if product == "slimserve" else None)


def test_the_last_of_a_flag_given_twice_wins() -> None:
    command = one(
        "vllm serve m --reasoning-parser a --reasoning-parser b --enable-auto-tool-choice --no-enable-auto-tool-choice"
    )
    assert command.reasoning_parser == "b"
    assert not command.enable_auto_tool_choice


def test_dotted_flags_make_one_object_that_replaces_the_plain_flag() -> None:
    """As vLLM's own argument parser has it, seen with 0.32.0 and 0.33.0."""
    command = one(
        "vllm serve m --override-generation-config.thinking_token_budget.low 1k "
        "--override-generation-config.thinking_token_budget.medium=4096 "
        "--override-generation-config '{\"temperature\": 0}'"
    )
    assert command.override_generation_config == {"thinking_token_budget": {"low": 1000, "medium": 4096}}


def test_dotted_values_are_json_numbers_with_units_lists_or_text() -> None:
    command = one("vllm serve m --x_y.a_b true --x-y.c 2K --x-y.d word --x-y.e+ p,q --x-y.f '{\"g\": 1}' --x-y.f.h 2")
    assert command.json("x-y") == {"a_b": True, "c": 2048, "d": "word", "e": ["p", "q"], "f": {"g": 1, "h": 2}}


def test_quotes_lost_on_the_way_through_ps() -> None:
    command = one('vllm serve m --default-chat-template-kwargs {"enable_thinking": false} --port 8000')
    assert command.default_chat_template_kwargs == {"enable_thinking": False}
    assert command.text("port") == "8000"


@pytest.mark.parametrize(
    ("value", "tokens"),
    [("32768", 32768), ("32k", 32000), ("32K", 32768), ("1.5k", 1500), ("auto", None), ("-1", None)],
)
def test_context_length(value: str, tokens: int | None) -> None:
    assert one(f"vllm serve m --max-model-len {value}").max_model_len == tokens


@pytest.mark.parametrize(
    ("text", "column"),
    [("nohup slimserve p", 7), ("A=1 vllm serve m", 5), ("python -m vllm.entrypoints.openai.api_server --model m", 11)],
)
def test_the_place_of_a_command_is_its_programs_name(text: str, column: int) -> None:
    assert one(text).location.column == column


def test_flags_whose_value_is_written_out() -> None:
    command = one('vllm serve m --xa "$X" --xb 1 --xc.d 2 --xc.e $Y')
    assert [command.known(flag) for flag in ("xa", "xb", "xc", "xz")] == [False, True, False, False]


def test_parser_none_is_no_parser_since_033_and_a_name_before() -> None:
    for text in ("none", "None"):
        command = one(f"vllm serve m --reasoning-parser {text}")
        assert command.parser_in(parse_target("vllm==0.33.0")) is None
        assert command.parser_in(parse_target("vllm==0.32.0")) == text
    assert one("vllm serve m --reasoning-parser auto").parser_in(parse_target("vllm==0.33.0")) == "auto"
    assert one("vllm serve m").reasoning_parser is None


def test_effort_map_must_hold_strings() -> None:
    assert one('vllm serve m --reasoning-effort-map \'{"high": "xhigh"}\'').effort_map == {"high": "xhigh"}
    with pytest.raises(InputError, match="cmd:1:14: --reasoning-effort-map must map"):
        _ = one("vllm serve m --reasoning-effort-map '{\"high\": 3}'").effort_map


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("vllm serve m --override-generation-config '{\"a\" 1}'", "cmd:1:49: not JSON: expected ':' after the key"),
        ("vllm serve m --override-generation-config 7", "takes a JSON object"),
        ('vllm serve m --override-generation-config "$CONFIG"', "only the running shell knows"),
    ],
)
def test_values_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        _ = one(text).override_generation_config
    assert message in str(caught.value)


def test_several_servers_in_one_file() -> None:
    commands = find_commands("vllm serve a --port 1 &\nvllm serve b --port 2\n", path="f")
    assert [(command.model, command.location.line) for command in commands] == [("a", 1), ("b", 2)]
    with pytest.raises(InputError, match="2 serve commands where one is meant"):
        one("vllm serve a; vllm serve b")


def test_read_from_a_file_from_stdin_and_from_the_flag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "serve.sh"
    file.write_bytes(b"\xef\xbb\xbfvllm serve m \\\r\n  --port 1\r\n")
    (from_file,) = read_serve(str(file))
    assert (from_file.model, from_file.text("port"), from_file.location.path) == ("m", "1", str(file))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"vllm serve n")))
    (from_stdin,) = read_serve("-")
    assert (from_stdin.model, from_stdin.location.path) == ("n", "-")
    (typed,) = read_serve("vllm serve o")
    assert (typed.model, typed.location.path) == ("o", "--serve")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.sh", "echo hello\n", "no server in it"),
        ("compose", "services:\n  a:\n    image: redis\n", "no server in it"),
        ("x.yaml", "a: b\n", "no server in it"),
        ("x.sh", b"vllm serve \xff", "not UTF-8: byte 0xff"),
        ("x.sh", "vllm serve 'm", "never closed"),
    ],
)
def test_what_is_no_plain_command_line_is_refused(
    tmp_path: Path, name: str, content: str | bytes, message: str
) -> None:
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as caught:
        read_serve(str(file))
    assert str(caught.value).startswith(str(file))
    assert message in str(caught.value)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="this is a folder: give it as PATH"):
        read_serve(str(tmp_path))
    with pytest.raises(InputError, match="no such file"):
        read_serve("no-such-file")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--max-model-len " + "9" * 5000, "--max-model-len takes a positive number"),
        ("--max-model-len " + "9" * 400 + ".5k", "--max-model-len takes a positive number"),
        ("--max-model-len=0", "--max-model-len takes a positive number, not '0'; write 32768 or 32K"),
        ("--max-model-len=-7", "--max-model-len takes a positive number"),
        ("--max-model-len " + "9" * 999 + "T", None),
    ],
)
def test_a_length_too_long_for_a_number(flags: str, message: str | None) -> None:
    command = parse_command_line(f"vllm serve m {flags}", path="s.sh")
    if message is None:
        assert command.max_model_len is not None
        return
    with pytest.raises(InputError, match=message):
        _ = command.max_model_len


@pytest.mark.parametrize(
    ("flags", "place", "message"),
    [
        ("--override-generation-config.n " + "9" * 5000, (1, 45), "more than 1000 digits"),
        ('--override-generation-config \'{"n": ' + "9" * 5000 + "}'", (1, 50), "more than 1000 digits"),
        ("--override-generation-config.n " + "[" * 200_000, (1, 145), "nested deeper"),
        ("--override-generation-config " + '{"a":' * 200_000, (1, 45), "not JSON"),
    ],
)
def test_values_beyond_reading_are_refused_at_their_place(flags: str, place: tuple[int, int], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse_command_line(f"vllm serve m {flags}", path="s.sh").json("override-generation-config")
    assert (caught.value.line, caught.value.column) == place


@pytest.mark.parametrize(
    ("flags", "column", "message"),
    [
        ("--reasoning-parser", 14, "--reasoning-parser has no value; write it behind the flag"),
        ("--reasoning_parser --port 1", 14, "--reasoning-parser has no value"),
        ("--port 1 --max-model-len", 23, "--max-model-len has no value"),
        ("--served-model-name --port 1", 14, "--served-model-name has no value"),
        ("--override-generation-config.a", 14, "--override-generation-config.a has no value"),
        ("--override-generation-config.a --port 1", 14, "--override-generation-config.a has no value"),
        ("-tp", 14, "--tensor-parallel-size has no value"),
        ("--reasoning-pars x", 14, "may stand for --reasoning-parser, --reasoning-parser-plugin: vLLM refuses it"),
        ("--reasoning_pars=x", 14, "may stand for --reasoning-parser, --reasoning-parser-plugin"),
        ("--max x", 14, "may stand for --max-"),
    ],
)
def test_flags_that_vllm_refuses(flags: str, column: int, message: str) -> None:
    with pytest.raises(InputError) as caught:
        one(f"vllm serve m {flags}")
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.column) == (1, column)


def test_abbreviations_that_vllm_takes() -> None:
    command = one("vllm serve m --tool_call_p hermes --max-model 5 --override-gen.a 5 --default-chat-t '{\"b\": 1}'")
    assert command.tool_call_parser == "hermes"
    assert command.max_model_len == 5
    assert command.override_generation_config == {"a": 5}
    assert command.default_chat_template_kwargs == {"b": 1}
    assert one("vllm serve m --reasoning-parser=").reasoning_parser is None
    assert one("vllm serve m --max-model-len -1 --unheard-of --port 5").text("port") == "5"
    assert "reasoning-pars" in one("slimserve p --reasoning-pars x").flags
    assert "enforce-eager" in one("vllm serve m --enforce-e --port 5").flags


@pytest.mark.parametrize(
    ("flag", "value", "column", "message"),
    [
        ("default-chat-template-kwargs", '{"a": 1, "a": 2}', 55, 'gives "a" twice; keep one'),
        ("default-chat-template-kwargs", '{"a": {"b": 1, "b": 2}}', 61, 'gives "a.b" twice; keep one'),
        ("default-chat-template-kwargs", '{"a": [NaN]}', 53, "holds NaN, which is no JSON; write a number"),
        ("reasoning-effort-map", '{"low": "high", "low": "max"}', 54, 'gives "low" twice'),
        ("override-generation-config", '{"temperature": -Infinity}', 60, "holds -Infinity"),
        ("reasoning-config", '{"x": 1e999}', 40, "holds 1e999"),
    ],
)
def test_json_that_would_be_swallowed_is_refused(flag: str, value: str, column: int, message: str) -> None:
    command = one(f"vllm serve m --{flag} '{value}'")
    with pytest.raises(InputError) as caught:
        command.json(flag)
    assert message in str(caught.value)
    assert caught.value.column == column
    if "twice" in message:
        assert command.json(flag, twice=True) is not None


def test_a_dotted_number_that_is_none() -> None:
    with pytest.raises(InputError, match="holds NaN"):
        one("vllm serve m --default-chat-template-kwargs.a NaN").json("default-chat-template-kwargs")
