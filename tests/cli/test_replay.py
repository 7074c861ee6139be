"""`reasonctl replay`: what it prints, what it exits with, and how a wrong call is refused."""

from __future__ import annotations

import gzip
import io
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reasonctl.fixtures import ROOT
from reasonctl.parsers import engines
from reasonctl.parsers.run import ModeResult, ParserRun

COMMAND = "replay"
Run = Callable[..., tuple[int, str, str]]
OPEN_TRACES = str(ROOT / "traces" / "qwen3-open.jsonl")
LEAKED = str(ROOT / "traces" / "leaked-marker.sse")
TEMPLATE = str(ROOT / "models" / "qwen3-thinking" / "chat_template.jinja")
CLOSED = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"


def as_json(run: Run, *arguments: str) -> tuple[int, dict[str, Any]]:
    code, out, _ = run(*arguments, "--format", "json")
    report: dict[str, Any] = json.loads(out)
    return code, report


def refused(run: Run, *arguments: str) -> str:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    return err


def put(folder: Path, *values: Any, name: str = "t.jsonl") -> str:
    path = folder / name
    path.write_text("".join(v if isinstance(v, str) else json.dumps(v) + "\n" for v in values), encoding="utf-8")
    return str(path)


def trace(name: str, text: str, **more: Any) -> dict[str, Any]:
    recorded = {"finish_reason": "stop"} | more.pop("recorded", {})
    return {"id": name, "output": {"text": text}, "recorded": recorded} | more


def found(report: dict[str, Any]) -> list[tuple[str, str | None, str | None]]:
    return [(f["rule"], f["subject"].get("trace"), f["subject"].get("parser")) for f in report["findings"]]


def test_the_shipped_traces_pass(run: Run) -> None:
    code, report = as_json(run, OPEN_TRACES, "--model", "fixture:qwen3-thinking")
    assert (code, report["verdict"], report["command"]) == (0, "pass", "replay")
    assert [(f["rule"], f["severity"], f["subject"]["trace"]) for f in report["findings"]] == [
        ("RPL411", "warning", "cut-short"),
        ("RPL416", "info", "sum"),
        ("RPL416", "info", "letters"),
    ]
    facts = report["facts"]
    assert (facts["traces"], facts["parsers"], facts["tokenizer"]) == (3, ["qwen3"], "model")
    assert [(r["trace"], r["line"], r["status"], r["matches_recorded"]) for r in facts["results"]] == [
        ("sum", 1, "ok", True),
        ("letters", 2, "ok", True),
        ("cut-short", 3, "ok", True),
    ]
    first = facts["results"][0]
    assert first["full"]["content"] == "\n\n17 times 23 is 391."
    assert [row["chunking"] for row in first["stream"]] == ["recorded", "token", "3", "whole"]
    assert first["reasoning_tokens"] > 5
    assert facts["best"][0]["parsers"] == ["qwen3"]
    assert {row["surface"]: row["status"] for row in report["coverage"]} == {
        "trace": "examined",
        "tokenizer": "examined",
        "prompt": "examined",
        "parser": "examined",
        "server": "absent",
    }


def test_without_a_model_the_tokenizer_is_assumed_and_said(run: Run) -> None:
    code, report = as_json(run, OPEN_TRACES)
    assert (code, report["facts"]["tokenizer"]) == (0, "assumed")
    row = next(row for row in report["coverage"] if row["surface"] == "tokenizer")
    assert (row["status"], "assumed" in row["reason"]) == ("absent", True)


def test_the_capture_with_a_leaked_marker_names_its_cause(run: Run) -> None:
    serve = "vllm serve example/laguna-s --reasoning-parser poolside_v1"
    code, report = as_json(run, LEAKED, "--serve", serve, "--chat-template", TEMPLATE)
    assert code == 1
    leak = next(f for f in report["findings"] if f["rule"] == "RPL403")
    assert (leak["cause"], leak["subject"]) == ("FIT113", {"trace": "chatcmpl-leak1", "parser": "poolside_v1"})
    assert [step for step, _ in leak["evidence"]["chain"]] == ["template", "request", "parser", "proof", "check"]
    assert leak["evidence"]["mends"][0] == {
        "side": "server",
        "change": "--default-chat-template-kwargs '{\"enable_thinking\": true}'",
        "replayed": "splits right",
    }
    result = report["facts"]["results"][0]
    assert (result["matches_recorded"], result["checks"]["no_marker_leak"]) == (True, False)
    assert report["facts"]["compared"]["chatcmpl-leak1"]["qwen3"] == "ok"


def test_the_mend_of_that_cause_passes(run: Run) -> None:
    serve = "vllm serve m --reasoning-parser poolside_v1 --default-chat-template-kwargs '{\"enable_thinking\": true}'"
    code, report = as_json(run, LEAKED, "--serve", serve)
    result = report["facts"]["results"][0]
    assert (code, result["status"], result["full"]["content"]) == (1, "ok", "\n\nIt is 4.")
    assert [f["rule"] for f in report["findings"]] == ["RPL405"]


def test_which_parsers_run(run: Run, tmp_path: Path) -> None:
    bare = put(tmp_path, trace("t", "hm</think>4"))
    assert len(as_json(run, bare)[1]["facts"]["parsers"]) == 42
    assert as_json(run, bare, "--parser", "qwen3", "--parser", "none")[1]["facts"]["parsers"] == ["qwen3", "none"]
    everything = as_json(run, bare, "--parser", "all", "--target", "vllm==0.32.0")[1]
    assert (len(everything["facts"]["parsers"]), everything["target"]) == (38, "vllm==0.32.0")
    assert as_json(run, bare, "--serve", "vllm serve m --reasoning-parser glm45")[1]["facts"]["parsers"] == ["glm45"]
    both = as_json(run, bare, "--serve", "vllm serve m --reasoning-parser glm45", "--parser", "qwen3")[1]
    assert both["facts"]["parsers"] == ["qwen3"]


def test_the_serve_commands_parser_runs_beside_the_recorded_one(run: Run, tmp_path: Path) -> None:
    path = put(tmp_path, trace("t", "hm</think>4", prompt={"text": "<think>\n"}, recorded={"parser": "qwen3"}))
    code, report = as_json(run, path, "--serve", "vllm serve m --reasoning-parser deepseek_v3")
    assert (code, report["facts"]["parsers"]) == (1, ["qwen3", "deepseek_v3"])
    assert [result["status"] for result in report["facts"]["results"]] == ["ok", "suspect"]
    assert found(report) == [("RPL403", "t", "deepseek_v3")]
    same = as_json(run, path, "--serve", "vllm serve m --reasoning-parser qwen3")[1]
    assert same["facts"]["parsers"] == ["qwen3"]


def test_a_serve_command_with_an_unknown_parser_is_refused(run: Run) -> None:
    serve = ("--serve", "vllm serve m --reasoning-parser qwen_3")
    err = refused(run, OPEN_TRACES, *serve)
    assert err.startswith("reasonctl: --serve:1:14: ")
    assert "did you mean qwen3" in err
    assert as_json(run, OPEN_TRACES, *serve, "--parser", "qwen3")[0] == 0


def test_an_unknown_parser_is_refused_with_near_names(run: Run) -> None:
    err = refused(run, OPEN_TRACES, "--parser", "qwen_3")
    assert "qwen3" in err
    assert "'step5'" in refused(run, OPEN_TRACES, "--parser", "step5", "--target", "vllm==0.32.0")


def test_findings_make_exit_1(run: Run, tmp_path: Path) -> None:
    path = put(tmp_path, trace("t", "It is 4.", prompt={"text": CLOSED}, recorded={"parser": "deepseek_r1"}))
    code, report = as_json(run, path)
    assert code == 1
    assert found(report) == [(rule, "t", "deepseek_r1") for rule in ("RPL401", "RPL404", "RPL408")]
    assert run(path, "--exit-zero")[0] == 0
    assert run(path, "--ignore", "RPL4")[0] == 0


def test_int903_a_broken_line_costs_that_line(run: Run, tmp_path: Path) -> None:
    path = put(tmp_path, trace("a", "hm</think>4"), "{broken\n", trace("b", "hm</think>5"))
    code, report = as_json(run, path, "--parser", "qwen3")
    assert (code, report["verdict"], report["facts"]["traces"]) == (0, "incomplete", 2)
    (finding,) = report["findings"]
    assert (finding["rule"], finding["severity"], finding["location"]["line"]) == ("INT903", "warning", 2)
    assert run(path, "--parser", "qwen3", "--fail-on", "warning")[0] == 1
    assert run(path, "--parser", "qwen3", "--fail-on-incomplete")[0] == 1


def test_no_trace_is_exit_2(run: Run, tmp_path: Path) -> None:
    assert "no trace in it" in refused(run, put(tmp_path, '{"answer": 4}\n'))
    assert "no such file; check the path" in refused(run, str(tmp_path / "none"))
    assert "empty" in refused(run, put(tmp_path))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--chunking", "token,sideways"), "sideways"),
        (("--from", "hare"), "--from"),
        (("--jq", ".["), "--jq"),
        (("--chat-template-kwargs", "{"), "--chat-template-kwargs"),
        (("--chat-template-kwargs", "[]"), "JSON object"),
        (("--model", "fixture:nosuch"), "fixture:nosuch"),
        (("--serve", "vllm serve m --reasoning-parser a & vllm serve n"), "2 servers"),
        (("--request", "none.json"), "none.json"),
    ],
)
def test_wrong_calls(run: Run, arguments: tuple[str, ...], says: str) -> None:
    assert says in refused(run, OPEN_TRACES, *arguments)


def test_chunkings_are_the_ones_asked_for(run: Run) -> None:
    _, report = as_json(run, OPEN_TRACES, "--chunking", "char,holdback:6,random:7,5")
    assert [row["chunking"] for row in report["facts"]["results"][0]["stream"]] == [
        "char",
        "holdback:6",
        "random:7",
        "5",
    ]
    assert all(result["status"] == "ok" for result in report["facts"]["results"])


def test_a_bare_capture_gets_its_context(run: Run, tmp_path: Path) -> None:
    capture = put(tmp_path, "hm</think>4", name="out.txt")
    body = put(
        tmp_path, {"messages": [{"role": "user", "content": "Hi"}], "reasoning_effort": "high"}, name="body.json"
    )
    arguments = (capture, "--parser", "deepseek_v3", "--request", body, "--chat-template", TEMPLATE)
    code, report = as_json(run, *arguments)
    result = report["facts"]["results"][0]
    assert (code, result["full"]["reasoning"], result["trace"]) == (0, "hm", f"{capture}:1")
    assert {row["surface"]: row["status"] for row in report["coverage"]}["prompt"] == "examined"
    off = as_json(run, *arguments, "--chat-template-kwargs", '{"enable_thinking": false}')[1]["facts"]["results"][0]
    assert off["full"]["reasoning"] is None


def test_other_json_through_jq(run: Run, tmp_path: Path) -> None:
    whole = {"choices": [{"message": {"content": "hm</think>4"}, "finish_reason": "stop"}]}
    path = put(tmp_path, {"row": {"reply": whole}}, {"row": {"reply": "hm</think>5"}})
    _, report = as_json(run, path, "--jq", ".row.reply", "--parser", "qwen3")
    assert [r["full"]["content"] for r in report["facts"]["results"]] == ["4", "5"]


def test_several_files_and_ids_that_clash(run: Run, tmp_path: Path) -> None:
    first = put(tmp_path, trace("t", "hm</think>4"), name="a.jsonl")
    second = tmp_path / "b.jsonl.gz"
    second.write_bytes(gzip.compress(Path(first).read_bytes()))
    _, report = as_json(run, first, str(second), "--parser", "qwen3")
    assert [r["trace"] for r in report["facts"]["results"]] == ["t", f"t ({second}:1)"]
    assert [entry["traces"] for entry in report["facts"]["inputs"]] == [1, 1]


def test_a_lossy_recording_is_noted(run: Run, tmp_path: Path) -> None:
    whole = {"choices": [{"message": {"content": "4", "reasoning": "hm"}, "finish_reason": "stop"}]}
    code, report = as_json(run, put(tmp_path, whole), "--parser", "qwen3")
    assert (code, [f["rule"] for f in report["findings"]]) == (0, ["RPL412", "RPL415"])
    assert report["facts"]["results"][0]["lossy"] is True


def test_what_cannot_be_run_for_the_one_asked_is_incomplete(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(name: str, *_: Any, **__: Any) -> ParserRun:
        return ParserRun(name, ModeResult(None, None, None, 0), (), None, unsupported="needs an extra")

    monkeypatch.setattr(engines, "run_parser", unsupported)
    code, report = as_json(run, OPEN_TRACES, "--parser", "qwen3")
    assert (code, report["verdict"]) == (0, "incomplete")
    assert report["facts"]["results"][0]["status"] == "unsupported"
    assert report["facts"]["results"][0]["reason"] == "needs an extra"


def test_jobs_give_the_same_report(run: Run, tmp_path: Path) -> None:
    path = put(tmp_path, *(trace(f"t{n}", f"hm</think>{n}") for n in range(9)))
    assert as_json(run, path, "--parser", "qwen3", "--jobs", "2") == as_json(run, path, "--parser", "qwen3")


def test_text_and_quiet(run: Run) -> None:
    code, out, _ = run(OPEN_TRACES)
    assert code == 0
    assert "qwen3" in out
    assert "\x1b[" not in out
    _, quiet, _ = run(OPEN_TRACES, "--quiet")
    assert quiet.splitlines()[-1].startswith("PASS")
    assert len(quiet.splitlines()) == 1


def test_a_report_is_the_same_twice(run: Run) -> None:
    assert run(OPEN_TRACES, LEAKED, "--format", "json") == run(OPEN_TRACES, LEAKED, "--format", "json")


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="watches child processes through Linux's pidfd")
@pytest.mark.parametrize(
    ("number", "whole_group", "code"),
    [
        (signal.SIGINT, True, 130),
        (signal.SIGINT, False, 130),
        (signal.SIGKILL, False, -signal.SIGKILL),
        (signal.SIGTERM, False, -signal.SIGTERM),
        (signal.SIGHUP, True, -signal.SIGHUP),
    ],
)
def test_no_child_outlives_the_command(tmp_path: Path, number: signal.Signals, whole_group: bool, code: int) -> None:
    fifo = tmp_path / "endless.jsonl"
    os.mkfifo(fifo)
    command = ["env", "--default-signal=HUP"]  # under nohup it is ignored, which children inherit
    command += [sys.executable, "-m", "reasonctl", "replay", str(fifo), "--jobs", "2", "--parser", "qwen3"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    with fifo.open("w") as pipe:
        # Far more than pipe and buffers hold: when all is written, the workers have long been at it.
        for count in range(2000):
            pipe.write(json.dumps(trace(f"t{count}", "hm</think>4" + " x" * 200)) + "\n")
        pipe.flush()
        tasks = Path(f"/proc/{process.pid}/task").glob("*/children")
        children = [int(pid) for task in tasks for pid in task.read_text().split()]
        watched = [os.pidfd_open(child) for child in children]
        (os.killpg if whole_group else os.kill)(process.pid, number)
        said, _ = process.communicate(timeout=60)  # ends when nobody holds the pipe any more
    assert (process.returncode, said) == (code, b"")
    assert len(children) == 2
    for descriptor in watched:
        assert select.select([descriptor], [], [], 30)[0], "a child outlived the command"
        os.close(descriptor)


def test_what_no_tokenizer_takes_is_no_crash(run: Run, tmp_path: Path) -> None:
    path = put(tmp_path, trace("t\ud800", "<think>a\ud800</think>b", request={"messages": []}))
    code, report = as_json(run, path, "--model", "fixture:qwen3", "--parser", "qwen3")
    assert code == 0
    assert report["facts"]["results"][0]["full"] == {"reasoning": "a�", "content": "b"}


@pytest.mark.parametrize(
    ("kwargs", "says"),
    [
        ('{"a": "\\ud800"}', "half a character"),
        (f'{{"a": {"9" * 5000}}}', "thousands of digits"),
        ('{"a": 1, "a": 2}', "twice"),
    ],
)
def test_kwargs_that_cannot_be_taken_are_refused(run: Run, kwargs: str, says: str) -> None:
    err = refused(run, OPEN_TRACES, "--chat-template-kwargs", kwargs)
    assert says in err
    assert "set_int_max" not in err


def test_standard_input_is_read_once_and_named(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert "once only" in refused(run, "-", "-")
    assert "once only" in refused(run, "-", "--serve", "-")
    assert "once only" in refused(run, OPEN_TRACES, "--serve", "-", "--request", "-")
    content = '{"output": {"text": "a</think>b"}}\n{"output": {"te\n'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    _, report = as_json(run, "-", "--parser", "qwen3")
    assert report["findings"][0]["location"] == {"path": "<stdin>", "line": 2, "column": 1}
    assert report["facts"]["results"][0]["trace"] == "<stdin>:1"


@pytest.mark.parametrize("arguments", [("-",), (OPEN_TRACES, "--request", "-"), (OPEN_TRACES, "--serve", "-")])
def test_a_closed_standard_input_is_a_wrong_call(arguments: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "reasonctl", "replay", *arguments]
    shell = ["sh", "-c", 'exec "$@" <&-', "sh", *command]
    done = subprocess.run(shell, check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "internal error" not in done.stderr


def test_workers_start_without_a_standard_input() -> None:
    command = [sys.executable, "-m", "reasonctl", "replay", OPEN_TRACES, "--jobs", "2", "--format", "json"]
    shell = ["sh", "-c", 'exec "$@" <&-', "sh", *command]
    done = subprocess.run(shell, check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["facts"]["traces"] == 3


def test_what_cannot_be_read_names_its_mend(run: Run, tmp_path: Path) -> None:
    empty = put(tmp_path, name="empty")
    assert "no such file; give --chat-template" in refused(run, OPEN_TRACES, "--chat-template", str(tmp_path / "nope"))
    assert "folder; give --chat-template" in refused(run, OPEN_TRACES, "--chat-template", str(tmp_path))
    assert "give one chat-completion body" in refused(run, OPEN_TRACES, "--request", empty)
    assert "budget" not in refused(run, OPEN_TRACES, "--request", empty)
    assert "is empty; give " in refused(run, empty)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="watches child processes through Linux's pidfd")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_an_expression_without_end_hears_signals(tmp_path: Path, number: signal.Signals, code: int) -> None:
    fifo = tmp_path / "one.jsonl"
    os.mkfifo(fifo)
    command = [sys.executable, "-m", "reasonctl", "replay", str(fifo), "--jq", "def f: f; f"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    with fifo.open("w") as pipe:
        pipe.write("{}\n")
    (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    watched = os.pidfd_open(int(child))
    before = _ticks(child)
    while _ticks(child) < before + 20:
        assert process.poll() is None
    process.send_signal(number)
    said, _ = process.communicate(timeout=60)
    assert (process.returncode, said) == (code, b"")
    assert select.select([watched], [], [], 30)[0], "the child outlived the command"
    os.close(watched)


def _ticks(pid: str) -> int:
    """User time of a process, in clock ticks."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])


def test_a_model_file_that_is_not_read_is_said(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    shutil.copytree(ROOT / "models" / "qwen3-thinking", folder)
    (folder / "generation_config.json").write_text('{"eos_token_id": 5,\n "a"')
    (folder / "config.json").write_text("[]")
    for more in ((), ("--jobs", "2")):
        code, report = as_json(run, OPEN_TRACES, "--model", str(folder), *more)
        assert (code, report["facts"]["traces"]) == (0, 3)
        unread = [f for f in report["findings"] if f["rule"] == "INT903"]
        assert {(f["rule"], f["subject"]["key"]) for f in unread} == {
            ("INT903", "config.json"),
            ("INT903", "generation_config.json"),
        }
    place = next(f["location"] for f in unread if f["subject"]["key"] == "generation_config.json")
    assert (Path(place["path"]).name, place["line"]) == ("generation_config.json", 2)
    assert run(OPEN_TRACES, "--model", str(folder), "--fail-on", "warning")[0] == 1


@pytest.mark.parametrize(
    ("name", "text", "broken"),
    [
        ("a.sse", 'data: {"id": "a", "choices": [{"index": 0, "delta": {"content": "Half an ans"}}]}\n\n', True),
        (
            "b.sse",
            'data: {"id": "a", "choices": [{"index": 0, "delta": {"content": "whole"}}]}\n\ndata: [DONE]\n\n',
            False,
        ),
        (
            "c.sse",
            'data: {"id": "a", "choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}]}\n\n',
            False,
        ),
        (
            "d.sse",
            'event: message_start\ndata: {"type": "message_start", "message": {"id": "m", "role": "assistant"}}\n\n'
            'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 0, "delta": '
            '{"type": "text_delta", "text": "Half"}}\n\nevent: con',
            True,
        ),
        ("e.jsonl", '{"output": {"text": "Half"}, "broken": "the engine died"}\n', True),
        ("f.jsonl", '{"output": {"text": "whole"}}\n', False),
    ],
)
def test_a_recording_that_broke_off_is_said_to_be_so(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path, name: str, text: str, broken: bool
) -> None:
    (tmp_path / name).write_text(text)
    code, out, _ = run(str(tmp_path / name), "--parser", "none", "--format", "json")
    report = json.loads(out)
    assert code == 0
    assert [f["rule"] for f in report["findings"]].count("INT903") == int(broken)
    assert (report["verdict"] == "incomplete") is broken


@pytest.mark.parametrize(("target", "served"), [("vllm==0.8.5", "none"), ("vllm==0.33.0", "deepseek_r1")])
def test_what_a_command_runs_is_told_by_the_server_it_is_judged_as(run: Run, target: str, served: str) -> None:
    """Before 0.9 a parser takes no effect without --enable-reasoning."""
    trace = str(Path(__file__).parents[2] / "fixtures" / "traces" / "qwen3-open.jsonl")
    command = ("--serve", "vllm serve m --reasoning-parser deepseek_r1", "--target", target)
    _, report = as_json(run, trace, *command)
    assert report["facts"]["server"]["parser"] == served
