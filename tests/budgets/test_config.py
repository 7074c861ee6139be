"""What a configuration is: told by its content and its name, with the budget and its place."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonctl.budgets.config import parse_config, read_config, read_requests
from reasonctl.budgets.dialects import choose_dialect, near_efforts
from reasonctl.budgets.request import as_messages
from reasonctl.errors import InputError
from reasonctl.parsers.target import Target


@pytest.mark.parametrize(
    ("path", "text", "form", "budget", "place"),
    [
        ("b.json", "4096", "scalar", 4096, (1, 1)),
        ("b.txt", "4096 # tokens\n", "scalar", 4096, (1, 1)),
        ("b", "-1", "scalar", -1, (1, 1)),
        ("b.json", '{"low": 1, "medium": 2}', "map", {"low": 1, "medium": 2}, (1, 1)),
        ("b.json", "{}", "map", {}, (1, 1)),
        ("b", "low: 1\nmedium: 2\n", "map", {"low": 1, "medium": 2}, (1, 1)),
        ("b.yaml", "{low: 1, medium: 2}\n", "map", {"low": 1, "medium": 2}, (1, 1)),
        ("b", "low = 1\nmedium = 2\n", "map", {"low": 1, "medium": 2}, (1, 1)),
        ("b.toml", "[thinking_token_budget]\nmedium = 2\n", "map", {"medium": 2}, (1, 2)),
        ("b", "# note\n[thinking_token_budget]\nmedium = 2\n", "map", {"medium": 2}, (2, 2)),
        ("b.json", '{"thinking_token_budget": 512}', "scalar", 512, (1, 2)),
        ("b.json", '{"fast": 1, "slow": "2k"}', "map", {"fast": 1, "slow": "2k"}, (1, 1)),
        ("g.json", '{"top_k":1,\n "thinking_token_budget": {"medium": 2}}', "generation_config", {"medium": 2}, (2, 2)),
        ("g.json", '{"eos_token_id": [1], "temperature": 0.6}', "generation_config", None, (1, 1)),
        ("r.json", '{"messages": [], "thinking_token_budget": 5}', "request", None, (1, 1)),
        ("r.json", '[{"messages": []}, {"messages": []}]', "request", None, (1, 2)),
        ("r.jsonl", '{"messages": []}\n{"messages": []}\n', "request", None, (1, 1)),
        ("r.yaml", "reasoning_effort: low\nmax_tokens: 10\n", "request", None, (1, 1)),
        ("r", "curl localhost:8000/v1/chat/completions -d '{\"messages\": []}'", "request", None, (1, 45)),
        ("s.sh", "vllm serve m --override-generation-config '{\"thinking_token_budget\": 9}'", "serve", 9, (1, 45)),
        ("s", "#!\nslimserve p --override-generation-config.thinking_token_budget.max 9", "serve", {"max": 9}, (2, 13)),
        ("s", "vllm serve m", "serve", None, (1, 1)),
    ],
)  # fmt: skip
def test_forms(path: str, text: str, form: str, budget: object, place: tuple[int, int]) -> None:
    config = parse_config(text, path=path)
    assert config.form == form
    assert (config.budget.plain() if config.budget is not None else None) == budget
    assert (config.location.path, config.location.line, config.location.column) == (path, *place)


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("b.json", "", "it is empty"),
        ("b.json", "  \n", "it is empty"),
        ("b.yaml", "# nothing\n", "no value in it"),
        ("b.json", "{", "b.json:1:2: not JSON"),
        ("b.json", "low: 1", "b.json:1:1: not JSON"),
        ("b.yaml", "low: [", "not YAML"),
        ("b.toml", "low 1", "not TOML"),
        ("b.json", '{"hello": "world"}', "cannot tell what this is (keys: hello)"),
        ("k.yaml", "apiVersion: v1\nkind: Pod\n", "no serve command in it"),
        ("s.sh", "vllm serve a\nvllm serve b\n", "s.sh:2:1: 2 servers in one file: a, b"),
        ("s.sh", "vllm serve a --override-generation-config '{'", "s.sh:1:46: not JSON"),
        ("r.jsonl", '{"messages": []}\n7\n', "r.jsonl:2:1: a request's body is an object"),
        ("c", "curl http://h/v1/models", "no curl command in it posts a body"),
        ("b.json", "05", "b.json:1:2: not JSON: expected the end of this value, got '5'; correct it there"),
        ("b.json", "1 2", "b.json:1:3: several values in one file; give one budget a file"),
        ("b", "hello there\n", "b:1:1: cannot tell what this is; give a number"),
        ("b.json", '"much"', "b.json:1:1: cannot tell what this is; give a number"),
        ("t.jinja", "{% for m in messages %}", "t.jinja: this is a chat template; hand it to --model or"),
        ("t", "\n{{- bos_token }}", "t: this is a chat template"),
        ("t.yaml", "{# a comment #}", "t.yaml: this is a chat template"),
        ("-", "{", "standard input:1:2: not JSON"),
        ("-", " ", "standard input: it is empty; write a number"),
        ("r.jsonl", '{"messages": []}\n{"low": 5}\n', "r.jsonl:2:1: this is no request's body (keys: low); write"),
        ("t.jsonl", '{"output": {}}\n{"output": {}}\n', "t.jsonl: traces without their requests; give"),
        ("b.yaml", "# nothing\n", "b.yaml:1:1: there is no value in it; give a number"),
    ],
)
def test_what_is_none_of_the_forms(path: str, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_config(text, path=path)
    assert message in str(caught.value)
    assert str(caught.value).startswith("standard input" if path == "-" else path)


@given(st.text(max_size=60), st.sampled_from(["x", "x.json", "x.yaml", "x.toml", "x.sh"]))
def test_no_text_ends_in_a_traceback(text: str, path: str) -> None:
    try:
        config = parse_config(text, path=path)
    except InputError as error:
        assert error.source == path
    else:
        assert config.form in ("scalar", "map", "request", "generation_config", "serve")


def test_config_from_stdin_and_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"medium": 3}')))
    config = read_config("-")
    assert (config.form, config.path) == ("map", "-")
    typed = read_config("2048")
    assert (typed.form, typed.budget.plain() if typed.budget else None) == ("scalar", 2048)
    assert read_config('{"medium": 1}').form == "map"
    assert read_config("slimserve p --serve").form == "serve"
    with pytest.raises(InputError, match="no such file"):
        read_config("missing.json")


def test_folders_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="this is a folder"):
        read_config(str(tmp_path))
    file = tmp_path / "b.json"
    file.write_bytes(b'{"medium":\n \xff}')
    with pytest.raises(InputError, match=r"b\.json:2:2: not UTF-8"):
        read_config(str(file))


CHAT = {"messages": [{"role": "user", "content": "hi"}]}


def write(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_requests_of_every_kind(tmp_path: Path) -> None:
    rows = [
        CHAT | {"reasoning_effort": "low", "thinking_token_budget": 9, "max_tokens": 5, "max_completion_tokens": 7},
        {"model": "m", "prompt": "hi", "thinking_token_budget": 9, "max_tokens": 5},
        {"model": "m", "input": "hi", "reasoning": {"effort": "high"}, "max_output_tokens": 6},
        CHAT
        | {
            "max_tokens": 4096,
            "thinking": {"type": "enabled", "budget_tokens": 2048},
            "output_config": {"effort": "max"},
        },
        CHAT | {"max_tokens": 4096, "thinking": {"type": "disabled"}},
        {"id": "t7", "request": CHAT | {"reasoning_effort": "max"}, "output": {"text": "x"}},
        {"custom_id": "c1", "method": "POST", "url": "/v1/responses", "body": {"input": "x"}},
    ]
    path = write(tmp_path, "r.jsonl", "\n".join(map(json.dumps, rows)))
    requests, _ = read_requests(path)
    seen = [
        (r.name, r.endpoint, r.effort, r.budget.value.plain() if r.budget is not None else None, r.max_tokens)
        for r in requests
    ]
    assert seen == [
        ("#1", "chat", "low", 9, 7),
        ("#2", "completions", None, 9, 5),
        ("#3", "responses", "high", None, 6),
        ("#4", "messages", "max", 2048, 4096),
        ("#5", "messages", "none", None, 4096),
        ("t7", "chat", "max", None, None),
        ("c1", "responses", None, None, None),
    ]
    assert [r.location.line for r in requests] == [1, 2, 3, 4, 5, 6, 7]


def test_requests_as_curl_commands(tmp_path: Path) -> None:
    write(tmp_path, "body.json", '{"messages": [], "thinking_token_budget": 3}')
    path = write(
        tmp_path,
        "calls.sh",
        "#!/bin/sh\n"
        "curl -s http://h:8000/v1/chat/completions \\\n  -H 'Content-Type: application/json' \\\n"
        '  -d \'{"messages": [],\n   "thinking_token_budget": 1}\' | jq .\n'
        'curl http://h/v1/messages --json \'{"messages": [], "thinking": {"budget_tokens": 2048}}\'\n'
        "curl http://h/v1/chat/completions -d @body.json\n"
        'curl http://h/v1/responses -d @- <<\'EOF\'\n{"input": "x",\n "thinking_token_budget": 4}\nEOF\n'
        'curl http://h/v1/completions --data-raw="{\\"prompt\\": \\"a\\"}"\n',
    )
    requests, _ = read_requests(path)
    seen = [(r.endpoint, r.budget.value.plain() if r.budget is not None else None) for r in requests]
    assert seen == [("chat", 1), ("messages", 2048), ("chat", 3), ("responses", 4), ("completions", None)]
    places = [(r.budget.location.line, r.budget.location.column) for r in requests if r.budget is not None]
    assert places == [(5, 4), (6, 65), (1, 18), (10, 2)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "no request in it"),
        ("curl http://h", "no request in it"),
        ("curl http://h -d '{\"a\" }'", "r:1:24: not JSON"),
        ('curl http://h -d "$BODY"', "only the shell knows"),
        ("curl http://h -d @nothing.json", "no such file"),
    ],
)
def test_requests_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r").write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_requests("r")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("given_dialect", "target", "form", "slimserve", "anthropic", "dialect"),
    [
        (None, None, "scalar", False, False, "slimserve"),
        (None, None, "map", False, False, "slimserve"),
        (None, None, "request", False, False, "vllm"),
        (None, None, "request", False, True, "anthropic"),
        (None, None, "generation_config", False, False, "vllm"),
        (None, None, "serve", False, False, "vllm"),
        (None, None, "serve", True, False, "slimserve"),
        (None, Target("slimserve"), "serve", False, False, "slimserve"),
        (None, Target("slimserve"), "request", False, True, "slimserve"),
        (None, Target(), "map", False, False, "vllm"),
        ("vllm", Target("slimserve"), "map", True, False, "vllm"),
        ("slimserve", None, "generation_config", False, False, "slimserve"),
    ],
)
def test_dialects(
    given_dialect: str | None, target: Target | None, form: str, slimserve: bool, anthropic: bool, dialect: str
) -> None:
    chosen = choose_dialect(
        given_dialect,
        target=target,
        form=form,
        slimserve_command=slimserve,
        anthropic_request=anthropic,  # type: ignore[arg-type]
    )
    assert chosen == dialect


def test_an_unknown_dialect_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean slimserve"):
        choose_dialect("slimsrv", target=None, form="map")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("hgih", "high"),
        ("Medium", "medium"),
        ("mid", "medium"),
        ("extra_high", "xhigh"),
        ("minimum", "minimal"),
        ("lo", "low"),
    ],
)
def test_near_names(name: str, near: str) -> None:
    assert near_efforts(name)[0] == near
    assert near_efforts("turbo") == []


@pytest.mark.parametrize(
    ("value", "limit"),
    [
        (4096, 4096),
        (4096.0, 4096),
        ("4096", 4096),
        (" 1_000 ", 1000),
        ("12.0", 12),
        (True, 1),
        (None, None),
        (0, "no positive integer"),
        (-5, "no positive integer"),
        (4096.5, "no positive integer"),
        (1e308, "no positive integer"),
        ("many", "no positive integer"),
        ("1e3", "no positive integer"),
        (False, "no positive integer"),
        ([4096], "no positive integer"),
        ({}, "no positive integer"),
    ],
)
@pytest.mark.parametrize(
    ("body", "field"),
    [
        (CHAT, "max_tokens"),
        (CHAT, "max_completion_tokens"),
        ({"prompt": "x"}, "max_tokens"),
        ({"input": "x"}, "max_output_tokens"),
        (CHAT | {"thinking": {"type": "adaptive"}}, "max_tokens"),
    ],
)
def test_a_limit_is_what_the_server_takes_or_refused(
    body: dict[str, Any], field: str, value: Any, limit: int | str | None
) -> None:
    source = json.dumps(body | {field: value})
    (request,) = parse_config(source, path="r.json").requests
    if not isinstance(limit, str):
        assert request.max_tokens == limit
        return
    with pytest.raises(InputError, match=f"{field} is {limit}; write a number of tokens") as caught:
        _ = request.max_tokens
    assert (caught.value.source, caught.value.line) == ("r.json", 1)
    assert source[(caught.value.column or 0) - 1 :] == json.dumps(value) + "}"


@pytest.mark.parametrize("effort", [5, True, ["low"], {"level": "low"}])
@pytest.mark.parametrize(
    ("body", "path"),
    [
        (CHAT, ("reasoning_effort",)),
        ({"model": "m", "input": "x"}, ("reasoning", "effort")),
        (CHAT | {"stop_sequences": []}, ("output_config", "effort")),
    ],
)
def test_an_effort_is_text(body: dict[str, Any], path: tuple[str, ...], effort: Any) -> None:
    value = effort
    for key in reversed(path):
        value = {key: value}
    (request,) = parse_config(json.dumps(body | value), path="r.json").requests
    with pytest.raises(InputError, match=f"{'.'.join(path)} is no text"):
        _ = request.effort


def test_a_body_without_a_url_can_be_read_as_one_for_messages() -> None:
    body = CHAT | {"thinking_token_budget": 512, "reasoning_effort": "low"}
    (request,) = parse_config(json.dumps(body), path="r.json").requests
    assert (request.endpoint, request.effort) == ("chat", "low")
    read = as_messages(request)
    assert (read.endpoint, read.effort, read.budget) == ("messages", None, None)
    assert [path for path, _ in read.misplaced()] == [("thinking_token_budget",)]
    batch = {"custom_id": "a", "url": "/v1/chat/completions", "body": body}
    (posted,) = parse_config(json.dumps(batch), path="r.json").requests
    assert as_messages(posted).endpoint == "chat"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "it is empty; give request bodies (JSON, JSONL), traces or curl commands"),
        ("# nothing\n", "there is no value in it; give request bodies"),
        ("{% if x %}", "this is a chat template; hand it to --model or --chat-template; here, give request bodies"),
        ('{"output": {"text": "x"}}', "no request in it; give request bodies"),
        ('{"low": 5}', "this is no request's body (keys: low)"),
        ("5", "a request's body is an object"),
    ],
)
def test_a_file_without_requests_says_what_is_wanted(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "r"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_requests(str(path))
    assert message in str(caught.value)


def test_a_trace_without_a_request_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"output": {}}\n{"request": {"messages": []}, "output": {}}\n', encoding="utf-8")
    requests, _ = read_requests(str(path))
    assert [request.name for request in requests] == ["#2"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_every_encoding_with_a_mark_is_read(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "b.json"
    path.write_bytes('{"low": 1,\r\n "medium": 2}'.encode(encoding))
    config = read_config(str(path))
    assert config.budget is not None
    assert config.budget.plain() == {"low": 1, "medium": 2}
    assert config.budget.entries is not None
    assert config.budget.entries[1].location.line == 2


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xff\xfe{\x00\x00", "not UTF-16, as its first bytes say; save it as UTF-8"),
        ("{}".encode("utf-16-le"), "this is a binary file; give a text file"),
        (b"\x7fELF\x00\xff", "this is a binary file; save it as UTF-8"),
        (b'{"low":\n \xff}', "2:2: not UTF-8: byte 0xff; save it as UTF-8"),
    ],
)
def test_what_is_no_text_is_one_clear_line(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "b.json"
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        read_config(str(path))
    assert message in str(caught.value)


def test_text_in_place_of_a_file_has_the_name_of_its_argument() -> None:
    assert read_config('{"medium": 5}').location.path == "CONFIG"
    assert read_config("vllm serve m").location.path == "CONFIG"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.yaml", "model: m\noverride-generation-config: '{\"thinking_token_budget\": 64}'\n"),
        (
            "compose.yaml",
            "services:\n  a:\n    image: vllm/vllm-openai:v0.33.0\n"
            "    command: --model m --override-generation-config.thinking_token_budget 64\n"
            "  b: {image: 'vllm/vllm-openai:v0.33.0', command: --model n}\n",
        ),
        (
            "x.log",
            "INFO non-default args: {'model': 'm', 'override_generation_config': {'thinking_token_budget': 64}}\n",
        ),
    ],
)
def test_the_budget_of_a_server_in_any_form(name: str, text: str) -> None:
    found = parse_config(text, path=name)
    assert (found.form, found.budget.plain() if found.budget else None) == ("serve", 64)
    assert found.command is not None and found.command.model == "m"
