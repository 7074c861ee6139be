"""`reasonctl render`: raw bytes on stdout, the state on stderr, refusals in one line."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest


def run(*arguments: str, stdin: bytes = b"") -> tuple[int, bytes, str]:
    done = subprocess.run(
        [sys.executable, "-m", "reasonctl", "render", *arguments], input=stdin, capture_output=True, check=False
    )
    return done.returncode, done.stdout, done.stderr.decode()


def test_the_prompt_is_printed_byte_for_byte() -> None:
    code, out, err = run("--model", "fixture:qwen3-thinking")
    assert code == 0
    assert out.endswith(b"What is 2 + 2?<|im_end|>\n<|im_start|>assistant\n<think>\n")
    assert err == 'state open; last marker <think>; 1 token after it; prompt ends "<think>\\n"\n'


def test_kwargs_move_the_state() -> None:
    _, out, err = run("--model", "fixture:qwen3", "--chat-template-kwargs", '{"enable_thinking": false}')
    assert out.endswith(b"<think>\n\n</think>\n\n")
    assert err.startswith("state closed; last marker </think>;")


def test_a_request_body_from_stdin_with_tools_from_a_file(tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps([{"type": "function", "function": {"name": "find_it", "parameters": {}}}]))
    body = {
        "messages": [{"role": "user", "content": [{"type": "text", "text": "say </think>, ä 🙂"}]}],
        "reasoning_effort": "none",
    }
    code, out, err = run(
        "--model", "fixture:qwen3", "--messages", "-", "--tools", str(tools), stdin=json.dumps(body).encode()
    )
    assert code == 0
    assert b"find_it" in out
    assert "say </think>, ä 🙂<|im_end|>".encode() in out
    # The marker the user typed does not count; the one that `none` brought does.
    assert err.startswith("state closed; last marker </think>;")


def test_on_a_terminal_markers_stand_out_and_escapes_are_harmless(tmp_path: Path) -> None:
    template = tmp_path / "chat_template.jinja"
    template.write_text("{{ messages[0].content }}\x1b[2J<think>")
    main, other = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "reasonctl", "render", "--model", str(template)],
        stdout=other,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TERM": "xterm-256color", "NO_COLOR": ""},
    )
    os.close(other)
    seen = b""
    while True:
        try:
            data = os.read(main, 4096)
        except OSError:
            break
        if not data:
            break
        seen += data
    os.close(main)
    assert process.wait() == 0
    assert b"\\x1b[2J" in seen
    assert b"\x1b[2J" not in seen
    assert b"m<think>\x1b[0m" in seen


DEEP = b"[" * 100_000
LONG = b'{"n": ' + b"1" * 10_000 + b"}"
HALF = rb'[{"role": "user", "content": "\ud800"}]'


@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        (["--chat-template-kwargs", "[1]"], b"", "--chat-template-kwargs: is not a JSON object; write "),
        (["--chat-template-kwargs", "{"], b"", "--chat-template-kwargs:1:2: not JSON"),
        (["--chat-template-kwargs", ""], b"", "--chat-template-kwargs: is empty; "),
        (["--chat-template-kwargs", '{"a": 1, "a": 2}'], b"", "the key 'a' stands there twice; keep one of the two"),
        (["--chat-template-kwargs", '{"a": [{"b": NaN}]}'], b"", "NaN is no JSON; "),
        (["--chat-template-kwargs", LONG.decode()], b"", "holds an integer of thousands of digits; "),
        (["--chat-template-kwargs", DEEP.decode()], b"", "nested too deeply; "),
        (["--chat-template-kwargs", r'{"a": "\ud800"}'], b"", "holds half a character"),
        (["--chat-template-kwargs", '{"chat_template": "x"}'], b"", "vLLM refuses a request with these"),
        (["--chat-template-kwargs", '{"messages": []}'], b"", "kwargs: messages; leave them out"),
        (["--chat-template-kwargs", '{"tools": 5}'], b"", "chat_template_kwargs: tools are a list of objects"),
        (["--messages", ""], b"", "--messages: is empty; "),
        (["--messages", "-"], b"[]", "standard input: each message is an object with a role"),
        (["--messages", "-"], b"{}", "standard input: holds neither a list of messages nor a request body; write "),
        (["--messages", "-"], b"", "standard input: is empty where JSON is expected; "),
        (["--messages", "-"], b"[\n x", "standard input:2:2: not JSON: Expecting value; mend the file there"),
        (["--messages", "-"], b"\xff", "standard input: byte 0 is not UTF-8; "),
        (["--messages", "-"], DEEP, "standard input: nested too deeply; "),
        (["--messages", "-"], LONG, "standard input: holds an integer of thousands of digits; "),
        (["--messages", "-"], HALF, "standard input: holds half a character"),
        (["--messages", "-"], b'[{"role": "assistant", "tool_calls": 5}]', "standard input: tool_calls are a list; "),
        (["--messages", "-"], b'{"messages": [{"role": "user"}], "reasoning_effort": [1]}', "effort is not a text; "),
        (["--messages", "-"], b'{"messages": [{"role": "x"}], "chat_template_kwargs": [1]}', "is not an object; "),
        (["--messages", "nowhere.json"], b"", "nowhere.json: cannot be read: No such file or directory; give a file"),
        (["--messages", "-", "--tools", "-"], b"[]", "standard input: cannot be both the messages and the tools; put"),
        (["--tools", "-"], b"{}", "standard input: tools are a list of objects; write "),
    ],
)
def test_refusals_are_one_line_with_the_mend_and_exit_2(arguments: list[str], stdin: bytes, message: str) -> None:
    code, out, err = run("--model", "fixture:qwen3", *arguments, stdin=stdin)
    assert (code, out) == (2, b"")
    assert message in err
    assert err.count("\n") == 1


def test_kwargs_that_the_requests_own_fields_beat_are_said_to_have_no_effect() -> None:
    plain = run("--model", "fixture:qwen3")
    kwargs = '{"add_generation_prompt": false, "tokenize": true}'
    code, out, err = run("--model", "fixture:qwen3", "--chat-template-kwargs", kwargs)
    assert (code, out) == (0, plain[1])
    assert err.splitlines()[0].startswith(
        "reasonctl: --chat-template-kwargs: add_generation_prompt, tokenize: no effect"
    )


def test_tools_among_the_kwargs_win_as_in_vllm() -> None:
    kwargs = '{"tools": [{"type": "function", "function": {"name": "find_it", "parameters": {}}}]}'
    code, out, _ = run("--model", "fixture:qwen3", "--chat-template-kwargs", kwargs)
    assert code == 0
    assert b"find_it" in out


def test_half_a_character_that_the_template_writes_is_no_prompt(tmp_path: Path) -> None:
    template = tmp_path / "chat_template.jinja"
    template.write_text(r'{{ "\ud800" }}{% if mode == "\ud801" %}x{% endif %}')
    code, out, err = run("--model", str(template))
    assert (code, out) == (2, b"")
    assert "the prompt holds half a character" in err
    template.write_text(r'{{ raise_exception("\ud800") }}')
    code, _, err = run("--model", str(template))
    assert code == 2
    assert r"for these messages: \ud800; change the messages or the kwargs" in err


def test_a_template_that_raises_names_its_line(tmp_path: Path) -> None:
    template = tmp_path / "chat_template.jinja"
    template.write_text("ok\n{{ raise_exception('roles must alternate') }}")
    code, _, err = run("--model", str(template))
    assert code == 2
    assert err == (
        f"reasonctl: {template}:2: the template gives no prompt for these messages: roles must alternate"
        "; change the messages or the kwargs\n"
    )


def test_a_model_without_a_template_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "deepseek_v32", "architectures": ["DeepseekV32ForCausalLM"]}')
    code, _, err = run("--model", str(tmp_path))
    assert code == 2
    assert "built by code" in err
    (tmp_path / "config.json").write_text('{"model_type": "qwen3"}')
    assert run("--model", str(tmp_path))[2] == (
        f"reasonctl: {tmp_path}: has no chat template; give a folder with a chat_template.jinja, or that file itself\n"
    )
