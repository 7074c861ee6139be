"""`reasonctl record`: what it keeps of every kind of server, and what it says where something fails."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reasonctl.engine.endpoint import Endpoint

from . import fake_server as fake
from .fake_server import OUTPUT, PROMPT, PROMPT_TEXT, RAW, Asked, FakeServer

Run = Callable[..., tuple[int, str, str]]
SECRET = "sk-very-secret-123"
CHAT = "/v1/chat/completions"


def recorded(run: Run, server: FakeServer, *arguments: str) -> list[dict[str, Any]]:
    code, out, err = run("record", "--endpoint", server.url, "--served-model-name", "lab", *arguments)
    assert (code, [line for line in err.splitlines() if line.startswith("reasonctl:")]) == (0, [])
    return [json.loads(line) for line in out.splitlines()]


def refused(run: Run, *arguments: str, code: int = 2) -> str:
    got, _, err = run("record", *arguments)
    assert got == code, err
    lines = err.splitlines()
    assert lines[-1].startswith("reasonctl: ")
    assert not [line for line in lines[:-1] if not line.startswith(("recorded ", "  "))]
    return lines[-1]


def test_vllm_gives_everything(run: Run) -> None:
    with fake.vllm() as server:
        streamed, whole = recorded(run, server, "--max-tokens", "50", "--thinking-token-budget", "3")
    assert [body["stream"] for body in server.chats] == [True, False]
    assert all(body["return_token_ids"] and body["return_prompt_text"] for body in server.chats)
    assert (streamed["id"], whole["id"]) == ("chat-stream", "chat-whole")
    for line in (streamed, whole):
        assert line["schema"] == "reasonctl.trace/1"
        assert line["model"] == "lab"
        assert line["request"] == {
            "messages": [{"role": "user", "content": "What is 2 + 2?"}],
            "max_tokens": 50,
            "thinking_token_budget": 3,
        }
        assert line["prompt"] == {"text": PROMPT_TEXT, "token_ids": PROMPT}
        assert (line["output"]["text"], line["output"]["token_ids"]) == (RAW, OUTPUT)
        said = line["recorded"]
        assert (said["server"], said["reasoning"], said["content"]) == ("vllm 0.33.0", "Two and two", "It is 4")
        assert (said["reasoning_field"], said["finish_reason"]) == ("reasoning", "stop")
        assert said["usage"]["completion_tokens"] == 7
    assert streamed["output"]["deltas"] == [{"token_ids": [token]} for token in OUTPUT]
    assert streamed["recorded"]["deltas"][:3] == [
        {"role": "assistant", "content": ""},
        {"reasoning": "Two"},
        {"reasoning": " and"},
    ]
    assert "deltas" not in whole["output"]


def test_vllm_without_a_parser_shows_no_split(run: Run) -> None:
    with fake.vllm(parser=False) as server:
        streamed, whole = recorded(run, server)
    assert streamed["output"]["deltas"][0] == {"text": "Two", "token_ids": [5]}
    for line in (streamed, whole):
        assert line["output"]["text"] == RAW
        assert not {"reasoning", "content", "parser"} & line["recorded"].keys()


def test_a_parser_that_is_named_makes_the_split_known(run: Run) -> None:
    with fake.vllm(parser=False) as server:
        (line,) = recorded(run, server, "--stream", "--parser", "qwen3")
    assert (line["recorded"]["parser"], line["recorded"]["reasoning"], line["recorded"]["content"]) == (
        "qwen3",
        None,
        RAW,
    )


def test_an_old_vllm_gives_ids_through_log_probabilities(run: Run) -> None:
    with fake.vllm(version="0.9.1") as server:
        lines = recorded(run, server)
    assert [line["output"]["token_ids"] for line in lines] == [OUTPUT, OUTPUT]
    assert all(line["prompt"] == {"text": PROMPT_TEXT, "token_ids": PROMPT} for line in lines)
    tokenized = [asked.body for asked in server.asked if asked.path == "/tokenize"]
    assert tokenized[0]["messages"] == [{"role": "user", "content": "What is 2 + 2?"}]


def test_the_prompt_is_asked_for_with_the_kwargs_vllm_derives(run: Run) -> None:
    with fake.vllm(version="0.9.1") as server:
        recorded(run, server, "--stream", "--reasoning-effort", "none", "--chat-template-kwargs", '{"x": 1}')
    (asked,) = [asked.body for asked in server.asked if asked.path == "/tokenize"]
    assert asked["chat_template_kwargs"] == {"x": 1, "reasoning_effort": "none", "enable_thinking": False}


def test_sglang_gives_ids_when_not_streaming(run: Run) -> None:
    with fake.sglang() as server:
        code, out, err = run("record", "--endpoint", server.url)
    assert code == 0
    streamed, whole = map(json.loads, out.splitlines())
    assert whole["output"] == {"text": RAW, "token_ids": OUTPUT}
    assert whole["recorded"]["stop_reason"] == 2
    assert whole["recorded"]["reasoning_field"] == "reasoning_content"
    assert streamed["output"] == {}
    assert (streamed["recorded"]["reasoning"], streamed["recorded"]["content"]) == ("Two and two", "It is 4")
    for line in (streamed, whole):
        assert line["prompt"] == {"text": PROMPT_TEXT, "token_ids": PROMPT}
        assert line["recorded"]["server"] == "sglang 0.5.13"
        assert "parser" not in line["recorded"]  # SGLang's parsers are not vLLM's
    assert "token ids in 1" in err
    assert "1 lossy" in err
    assert "--no-stream" in err


@pytest.mark.parametrize("stop_id", [False, True])
def test_llama_cpp_gives_ids_through_log_probabilities(run: Run, stop_id: bool) -> None:
    with fake.llama_cpp(stop_id=stop_id) as server:
        lines = recorded(run, server)
    for line in lines:
        assert line["output"]["token_ids"] == (OUTPUT if stop_id else OUTPUT[:-1])
        assert line["prompt"] == {"text": PROMPT_TEXT, "token_ids": PROMPT}
        assert line["recorded"]["server"] == "llama.cpp b8681-Debian"
    assert {line["output"]["text"] for line in lines} == {RAW}


@pytest.mark.parametrize("strict", [False, True])
def test_a_plain_server_is_lossy_and_said_to_be(run: Run, strict: bool) -> None:
    with fake.plain(strict=strict) as server:
        code, out, err = run("record", "--endpoint", server.url, "--served-model-name", "lab")
    assert code == 0
    for line in map(json.loads, out.splitlines()):
        assert line["output"] == {}
        assert (line["recorded"]["reasoning"], line["recorded"]["content"]) == ("Two and two", "It is 4")
    assert "token ids in none" in err
    assert "2 lossy" in err
    # What a strict server refused once is not sent to it again in the same way.
    assert ["return_token_ids" in body for body in server.chats] == ([True, False] * 2 if strict else [True] * 2)


def test_a_refusal_is_remembered(run: Run) -> None:
    with fake.plain(strict=True) as server:
        recorded(run, server, "--stream", "--repeat", "3")
    assert ["return_token_ids" in body for body in server.chats] == [True, False, False, False]


def test_raw_text_of_a_plain_server_is_not_lossy(run: Run) -> None:
    with fake.plain(field=None) as server:
        streamed, whole = recorded(run, server, "--quiet")
    assert streamed["output"]["text"] == whole["output"]["text"] == RAW
    assert [delta["text"] for delta in streamed["output"]["deltas"]] == [
        "Two",
        " and",
        " two",
        "</think>",
        "It",
        " is 4",
    ]


def test_recordings_replay_as_recorded(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    with fake.vllm() as server:
        assert run("record", "--endpoint", server.url, "-o", str(file))[0] == 0
    code, out, _ = run("replay", str(file), "--parser", "deepseek_r1", "--format", "json")
    report = json.loads(out)
    assert code == 0
    assert [row["matches_recorded"] for row in report["facts"]["results"]] == [True, True]
    assert [row["full"]["reasoning"] for row in report["facts"]["results"]] == ["Two and two", "Two and two"]


def test_several_choices_are_several_traces(run: Run) -> None:
    def chat(asked: Asked) -> None:
        one = fake.message(asked, field="reasoning")
        two = {"index": 1, "message": {"role": "assistant", "content": "5"}, "finish_reason": "length"}
        asked.json(one | {"choices": [*one["choices"], two]})

    with FakeServer({"/v1/models": fake.models("x", "lab"), "/v1/chat/completions": chat}) as server:
        first, second = recorded(run, server, "--no-stream", "--extra-body", '{"n": 2}')
    assert server.chats[0]["n"] == 2
    assert (first["id"], second["id"]) == ("chat-whole", "chat-whole#1")
    assert (second["output"]["text"], second["recorded"]["finish_reason"]) == ("5", "length")


@pytest.mark.parametrize(("shown", "text"), [(False, "Two and two</think>It"), (True, RAW)])
def test_the_text_ends_before_a_stop_string(run: Run, shown: bool, text: str) -> None:
    with fake.vllm() as server:

        def stopped(asked: Asked) -> None:
            asked.json(fake.message(asked, field="reasoning", token_ids=OUTPUT[:-1], stop_reason=" is"))

        server.routes["/v1/chat/completions"] = stopped
        body = json.dumps({"stop": [" is"], "include_stop_str_in_output": shown})
        (line,) = recorded(run, server, "--no-stream", "--extra-body", body)
    assert (line["output"]["text"], line["output"]["token_ids"]) == (text, OUTPUT[:-1])


def test_requests_come_from_files_and_options_win(run: Run, tmp_path: Path) -> None:
    one, two = tmp_path / "one.json", tmp_path / "two.jsonl"
    one.write_text('[\n {"role": "user",\n  "content": "a"}]')
    lines = [
        [{"role": "user", "content": "b"}],
        {
            "messages": [{"role": "user", "content": "c"}],
            "max_tokens": 5,
            "temperature": 0,
            "model": "x",
            "stream": True,
        },
        {"schema": "reasonctl.trace/1", "request": {"messages": [{"role": "user", "content": "d"}]}, "output": {}},
        {"custom_id": "1", "body": {"messages": [{"role": "user", "content": "e"}]}},
    ]
    two.write_text("\n".join(map(json.dumps, lines)))
    with fake.vllm() as server:
        found = recorded(
            run, server, "--no-stream", "--messages", str(one), "--messages", str(two), "--max-tokens", "9"
        )
    assert [line["request"]["messages"][0]["content"] for line in found] == list("abcde")
    assert all(line["request"]["max_tokens"] == 9 for line in found)
    assert (found[2]["request"]["temperature"], found[2]["model"]) == (0, "lab")
    assert not {"model", "stream"} & found[2]["request"].keys()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "no messages in it"),
        ("[]", "no messages in it"),
        ('{"messages": []}', "neither messages nor a request body"),
        ('[{"role": "user", "content": "a"}]\n{"messages": 3}\n', ":2: neither"),
        ('{"messages": [', "not JSON"),
        ('{"messages": [{"role": "user"}], "max_tokens": "9"}', "request.max_tokens is a text, where a number belongs"),
        ('[{"role": "user", "content": "\\ud83d"}]', "half a character"),
    ],
)
def test_a_file_without_requests_is_refused(run: Run, tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "m.json"
    file.write_text(content)
    assert said in refused(run, "--endpoint", "http://127.0.0.1:1", "--messages", str(file))


def test_the_only_model_needs_no_name(run: Run) -> None:
    with fake.vllm() as server:
        code, out, _ = run("record", "--endpoint", server.url + "/v1/chat/completions", "--no-stream")
    assert (code, json.loads(out)["model"]) == (0, "lab")
    with fake.plain() as server:
        assert "serves lab, other; say which one" in refused(run, "--endpoint", server.url)


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("http://h:8", "http://h:8/v1/chat/completions"),
        ("http://h:8/", "http://h:8/v1/chat/completions"),
        ("http://h:8/v1/", "http://h:8/v1/chat/completions"),
        ("http://h:8/v1/chat/completions", "http://h:8/v1/chat/completions"),
        ("http://h/gate/v1", "http://h/gate/v1/chat/completions"),
        ("http://h/v1beta/openai", "http://h/v1beta/openai/chat/completions"),
        ("http://h/d/x?api-version=1", "http://h/d/x/chat/completions?api-version=1"),
    ],
)
def test_addresses(url: str, asked: str) -> None:
    assert Endpoint(url)._address("/chat/completions", of_api=True) == asked


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://h", "http://", "http://h:99999", "h", "http://[::1"])
def test_what_is_no_address_is_refused(run: Run, url: str) -> None:
    assert "is no URL; write http://localhost:8000" in refused(run, "--endpoint", url)


def test_a_password_in_the_url_is_refused_and_not_shown(run: Run) -> None:
    said = refused(run, "--endpoint", f"http://me:{SECRET}@127.0.0.1:1/v1")
    assert SECRET not in said
    assert "--api-key-env" in said


def test_the_key_is_sent_and_nowhere_else(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", f" {SECRET}\n")
    file = tmp_path / "t.jsonl"
    with fake.vllm() as server:
        code, _, err = run("record", "--endpoint", server.url, "--api-key-env", "THE_KEY", "-o", str(file))
    assert code == 0
    assert {asked.headers["Authorization"] for asked in server.asked} == {f"Bearer {SECRET}"}
    assert SECRET not in file.read_text() + err


def test_a_server_that_echoes_the_key_does_not_make_us_show_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", SECRET)
    wrong = lambda asked: asked.json({"error": f"bad key {asked.headers['Authorization']}"}, 401)  # noqa: E731
    with FakeServer({"/v1/models": wrong}) as server:
        said = refused(run, "--endpoint", server.url, "--api-key-env", "THE_KEY")
    assert "HTTP 401: bad key Bearer ***" in said
    assert SECRET not in said


def _echo(asked: Asked) -> str:
    return asked.headers["Authorization"].removeprefix("Bearer ")


def _answering(make: Callable[[str, dict[str, Any]], Any]) -> fake.Answer:
    """Chat completions with the key put somewhere into the whole answer, or into the first chunk."""

    def chat(asked: Asked) -> None:
        key = _echo(asked)
        if not asked.body["stream"]:
            asked.json(make(key, fake.message(asked, field="reasoning")))
            return
        first = {"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [{"index": 0, "delta": {}}]}
        choice = {"index": 0, "delta": {"content": "4"}, "finish_reason": "stop"}
        asked.events([make(key, first), {**first, "choices": [choice]}])

    return chat


def _in_message(field: str, value: Callable[[str], Any]) -> Callable[[str, dict[str, Any]], Any]:
    def make(key: str, answer: dict[str, Any]) -> dict[str, Any]:
        said = answer["choices"][0].get("message") or answer["choices"][0]["delta"]
        said[field] = value(key)
        return answer

    return make


def _call(key: str) -> list[dict[str, Any]]:
    return [{"index": 0, "id": key, "function": {"name": key, "arguments": json.dumps({"k": key})}}]


ECHOES: dict[str, dict[str, fake.Answer]] = {
    "content": {CHAT: _answering(_in_message("content", lambda key: f"your key {key} is good"))},
    "reasoning": {CHAT: _answering(_in_message("reasoning", lambda key: f"the key is {key}"))},
    "tool call": {CHAT: _answering(_in_message("tool_calls", _call))},
    "id": {CHAT: _answering(lambda key, answer: {**answer, "id": key})},
    "usage": {CHAT: _answering(lambda key, answer: {**answer, "usage": {key: 1, "by": key}})},
    "error in place of an answer": {CHAT: _answering(lambda key, _: {"error": {"message": f"no such key {key}"}})},
    "error as text": {CHAT: _answering(lambda key, _: {"error": key})},
    "refusal": {CHAT: lambda asked: asked.json({"error": {"message": f"bad {_echo(asked)}"}}, 400)},
    "failure": {CHAT: lambda asked: asked.raw(f"oops {_echo(asked)}", "text/plain", 500)},
    "redirect": {CHAT: lambda asked: asked.raw("", "text/plain", 302, Location=f"http://x/?key={_echo(asked)}")},
    "kind": {CHAT: lambda asked: asked.raw("hello", f"text/{_echo(asked)}")},
    "no JSON in a stream": {CHAT: lambda asked: asked.events([f"data: {{{_echo(asked)}\n\n"])},
    "stream that breaks off": {CHAT: lambda asked: asked.events([f": {_echo(asked)}\n\n"], done=False)},
    "models": {"/v1/models": lambda asked: fake.models("vllm", _echo(asked), "other")(asked)},
    "version": {"/version": lambda asked: asked.json({"version": f"0.33.0+{_echo(asked)}"})},
}


@pytest.mark.parametrize("key", [SECRET, 'sk-with-"quote\\and-slash/'], ids=["plain", "escaped"])
@pytest.mark.parametrize("place", ECHOES)
def test_a_key_that_comes_back_is_told_nowhere(
    run: Run, place: str, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a server does with the key it was sent: neither the trace nor a message has it."""
    monkeypatch.setenv("THE_KEY", key)
    spellings = {key, json.dumps(key)[1:-1]}
    with fake.vllm() as server:
        server.routes |= ECHOES[place]
        for way in ("--stream", "--no-stream"):
            file = tmp_path / f"t{way}.jsonl"
            named = () if place == "models" else ("--served-model-name", "lab")
            call = ("record", "--endpoint", server.url, *named, "--api-key-env", "THE_KEY", way)
            _, out, err = run(*call)
            run(*call, "-o", str(file))
            kept = file.read_text(encoding="utf-8") if file.exists() else ""
            assert out + err
            assert not any(one in text for one in spellings for text in (out, err, kept)), way
            for line in (out + kept).splitlines():
                json.loads(line)


def test_without_a_key_the_way_to_give_one_is_said(run: Run) -> None:
    with FakeServer({"/v1/models": lambda asked: asked.json({"error": "Unauthorized"}, 401)}) as server:
        assert "--api-key-env" in refused(run, "--endpoint", server.url)


@pytest.mark.parametrize("given", [SECRET, "sk_looks_like_a_name", "NOT_SET_AT_ALL"])
def test_a_key_given_in_place_of_its_variable_is_not_shown(run: Run, given: str) -> None:
    assert given not in refused(run, "--endpoint", "http://127.0.0.1:1", "--api-key-env", given)


def test_a_key_no_header_can_carry_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", "a\nb")
    assert "is no API key" in refused(run, "--endpoint", "http://127.0.0.1:1", "--api-key-env", "THE_KEY")


def test_nothing_listens(run: Run) -> None:
    with FakeServer({}) as server:
        url = server.url
    assert "cannot be reached (Connection refused)" in refused(run, "--endpoint", url, code=3)


@pytest.mark.parametrize(
    ("status", "body", "code", "said"),
    [
        (400, {"error": {"message": "too long"}}, 2, "HTTP 400: too long"),
        (404, {"object": "error", "message": "no such model"}, 2, "HTTP 404: no such model; check"),
        (422, {"detail": [{"msg": "bad"}]}, 2, 'HTTP 422: [{"msg": "bad"}]'),
        (429, {"error": "slow down"}, 3, "HTTP 429: slow down"),
        (500, {"error": {"message": "it broke"}}, 3, "HTTP 500: it broke"),
    ],
)
def test_http_errors_are_one_line(run: Run, status: int, body: Any, code: int, said: str) -> None:
    routes = {"/v1/models": fake.models("x", "lab"), "/v1/chat/completions": lambda asked: asked.json(body, status)}
    with FakeServer(routes) as server:
        assert said in refused(run, "--endpoint", server.url, code=code)


def test_a_redirect_names_the_other_address(run: Run) -> None:
    moved = lambda asked: asked.raw("", "text/plain", 308, Location="https://other.example/v1")  # noqa: E731
    with FakeServer({"/v1/models": fake.models("x", "lab"), "/v1/chat/completions": moved}) as server:
        assert "redirects to https://other.example/v1; give that" in refused(run, "--endpoint", server.url)


@pytest.mark.parametrize("way", ["--stream", "--no-stream"])
def test_a_web_page_is_no_server(run: Run, way: str) -> None:
    page = lambda asked: asked.raw("<html>hello", "text/html; charset=utf-8")  # noqa: E731
    with FakeServer({"/v1/models": page, "/v1/chat/completions": page}) as server:
        said = refused(run, "--endpoint", server.url, "--served-model-name", "lab", way)
    assert "no OpenAI-compatible server (text/html)" in said


def cut_after(count: int, **how: Any) -> FakeServer:
    """A vLLM whose streams end after this many chunks."""

    def chat(asked: Asked) -> None:
        values = fake.chunks(asked, field="reasoning", per_token=lambda token, _: {"token_ids": [token]})
        asked.events(values[:count], done=False, **how)

    return FakeServer({"/v1/models": fake.models("x", "lab"), "/v1/chat/completions": chat})


@pytest.mark.parametrize("how", [{}, {"length": 9999}], ids=["closed", "shorter than promised"])
def test_of_a_cut_stream_what_came_is_kept(run: Run, tmp_path: Path, how: dict[str, int]) -> None:
    file = tmp_path / "t.jsonl"
    with cut_after(4, **how) as server:
        said = refused(run, "--endpoint", server.url, "--stream", "-o", str(file), code=3)
    assert "the answer broke off" in said
    (line,) = map(json.loads, file.read_text().splitlines())
    assert line["output"]["token_ids"] == OUTPUT[:3]
    assert line["recorded"]["reasoning"] == "Two and two"
    assert "finish_reason" not in line["recorded"]
    assert "broke off" in line["broken"]


def test_a_stream_that_ends_without_done_but_with_a_finish_is_whole(run: Run) -> None:
    with cut_after(8) as server:
        (line,) = recorded(run, server, "--stream")
    assert line["recorded"]["finish_reason"] == "stop"
    assert "broken" not in line


def test_an_error_inside_a_stream_is_told_and_what_came_is_kept(run: Run, tmp_path: Path) -> None:
    def chat(asked: Asked) -> None:
        values: list[Any] = fake.chunks(asked, field="reasoning", per_token=lambda token, _: {"token_ids": [token]})
        asked.events([*values[:3], {"error": {"message": "engine died", "code": 500}}])

    file = tmp_path / "t.jsonl"
    with FakeServer({"/v1/models": fake.models("x", "lab"), "/v1/chat/completions": chat}) as server:
        said = refused(run, "--endpoint", server.url, "--stream", "-o", str(file), code=3)
    assert said.endswith("answered with engine died")
    assert json.loads(file.read_text())["output"]["token_ids"] == OUTPUT[:2]


def test_a_silent_server_costs_the_time_that_was_given(run: Run, tmp_path: Path) -> None:
    silent = threading.Event()

    def chat(asked: Asked) -> None:
        values = fake.chunks(asked, field="reasoning", per_token=lambda token, _: {"token_ids": [token]})
        asked.events(values[:3], done=False)
        silent.wait(30)

    file = tmp_path / "t.jsonl"
    with FakeServer({"/v1/models": fake.models("x", "lab"), "/v1/chat/completions": chat}) as server:
        said = refused(run, "--endpoint", server.url, "--stream", "--timeout", "0.3", "-o", str(file), code=3)
        silent.set()
    assert "no answer within 0.3 s" in said
    assert json.loads(file.read_text())["output"]["token_ids"] == OUTPUT[:2]


def test_ctrl_c_keeps_what_came(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Endpoint.lines

    def interrupted(endpoint: Endpoint, path: str, body: Any) -> Iterator[str]:
        for line in whole(endpoint, path, body):
            yield line
            if '"token_ids": [6]' in line:
                raise KeyboardInterrupt

    monkeypatch.setattr(Endpoint, "lines", interrupted)
    file = tmp_path / "t.jsonl"
    with cut_after(8) as server:
        code, _, err = run("record", "--endpoint", server.url, "--stream", "-o", str(file))
    assert code == 130
    assert err.splitlines()[1] == "  1 broke off; what had come of it was kept"
    line = json.loads(file.read_text())
    assert line["output"]["token_ids"] == OUTPUT[:2]
    assert line["broken"] == "stopped before the answer was whole"


def test_a_real_ctrl_c_ends_it(tmp_path: Path) -> None:
    reached, over = threading.Event(), threading.Event()

    def chat(asked: Asked) -> None:
        reached.set()
        over.wait(30)

    with FakeServer({"/v1/models": fake.models("x", "lab"), "/v1/chat/completions": chat}) as server:
        command = [sys.executable, "-m", "reasonctl", "record", "--endpoint", server.url, "-o", str(tmp_path / "t")]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert reached.wait(60)
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
        over.set()
    assert (process.returncode, err) == (130, "")
    assert not (tmp_path / "t").exists()


def test_a_file_is_replaced_only_by_a_recording(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text("{}\n")
    refused(run, "--endpoint", "http://127.0.0.1:1", "-o", str(file), code=3)
    assert file.read_text() == "{}\n"
    with fake.vllm() as server:
        run("record", "--endpoint", server.url, "--stream", "-o", str(file), "--append")
        assert len(file.read_text().splitlines()) == 2
        run("record", "--endpoint", server.url, "--stream", "-o", str(file))
    assert len(file.read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "{dir}"], "this is a folder"),
        (["-o", "{dir}/none/t.jsonl"], "cannot be written"),
        (["--append"], "--append: standard output"),
        (["--extra-body", "3"], "--extra-body: is not a JSON object"),
        (["--chat-template-kwargs", "x"], "--chat-template-kwargs"),
        (["--messages", "-", "--messages", "-"], "once only"),
        (["--messages", ""], "is empty"),
    ],
)
def test_wrong_calls(run: Run, tmp_path: Path, arguments: list[str], said: str) -> None:
    with fake.vllm() as server:
        arguments = [argument.replace("{dir}", str(tmp_path)) for argument in arguments]
        assert said in refused(run, "--endpoint", server.url, *arguments)


def test_an_untrusted_certificate_is_said_so(run: Run, tmp_path: Path) -> None:
    pair = tmp_path / "pair.pem"
    what = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    how = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    where = ["-keyout", pair, "-out", tmp_path / "c.pem"]
    made = subprocess.run(["openssl", "req", *how, *what, *where], capture_output=True, check=False)
    assert made.returncode == 0, made.stderr
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "c.pem", pair)
    with FakeServer({"/v1/models": fake.models("x", "lab")}, context) as server:
        said = refused(run, "--endpoint", server.url, code=3)
        assert "its TLS certificate is not trusted (self-signed certificate)" in said
        assert "SSL_CERT_FILE" in said
    with FakeServer({}) as server:
        said = refused(run, "--endpoint", server.url.replace("http", "https"), code=3)
        assert "no TLS connection" in said
