"""`replay --serve --request`: the deployment and request behind a capture, the cause, and mends that were replayed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reasonctl.cli.replay_kept import Ids
from reasonctl.fixtures import ROOT

COMMAND = "replay"
Run = Callable[..., tuple[int, str, str]]
LEAKED = str(ROOT / "traces" / "leaked-marker.sse")
OPEN_TRACES = str(ROOT / "traces" / "qwen3-open.jsonl")
TEMPLATE = str(ROOT / "models" / "qwen3-thinking" / "chat_template.jinja")


def as_json(run: Run, *arguments: str) -> tuple[int, dict[str, Any]]:
    code, out, _ = run(*arguments, "--format", "json")
    report: dict[str, Any] = json.loads(out)
    return code, report


def put(folder: Path, *values: Any, name: str = "t.jsonl") -> str:
    path = folder / name
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return str(path)


def trace(name: str, text: str, **more: Any) -> dict[str, Any]:
    recorded = {"finish_reason": "stop"} | more.pop("recorded", {})
    return {"id": name, "output": {"text": text}, "recorded": recorded} | more


def leaking(number: int, **more: Any) -> dict[str, Any]:
    return trace(f"t{number}", f"hm</think>{number}", recorded={"parser": "deepseek_v3"}, **more)


def test_a_server_without_a_parser_is_the_cause(run: Run, tmp_path: Path) -> None:
    path = put(tmp_path, trace("t", "hm</think>4"))
    code, report = as_json(run, path, "--serve", "vllm serve m", "--model", "fixture:qwen3-thinking")
    leak = next(f for f in report["findings"] if f["rule"] == "RPL403")
    assert (code, leak["cause"], leak["subject"]) == (1, "FIT101", {"trace": "t", "parser": "none"})
    assert leak["evidence"]["mends"] == [
        {"side": "server", "change": "--reasoning-parser qwen3", "replayed": "splits right"}
    ]


def test_a_parser_set_for_structured_outputs_splits_too(run: Run, tmp_path: Path) -> None:
    path = put(tmp_path, trace("t", "hm</think>4", request={"thinking_token_budget": 0}))
    serve = "vllm serve m --structured-outputs-config.reasoning_parser qwen3"
    _, report = as_json(run, path, "--serve", serve, "--model", "fixture:qwen3-thinking")
    assert report["facts"]["parsers"] == ["qwen3"]
    assert [(f["rule"], f["cause"]) for f in report["findings"]] == [("RPL410", "SRV206")]


def test_an_engine_of_another_kind_is_refused(run: Run, tmp_path: Path) -> None:
    path = put(tmp_path, trace("t", "hm</think>4"))
    script = tmp_path / "serve.sh"
    script.write_text("python -m sglang.launch_server --model-path m --reasoning-parser qwen3\n")
    code, _, err = run(path, "--serve", str(script))
    assert (code, err.count("\n")) == (2, 1)
    assert "SGLang" in err


def test_the_request_decides_the_cause(run: Run, tmp_path: Path) -> None:
    capture = tmp_path / "out.txt"
    capture.write_text("It is 4.")
    body = {"messages": [{"role": "user", "content": "Hi"}], "chat_template_kwargs": {"enable_thinking": False}}
    arguments = (str(capture), "--serve", "vllm serve m --reasoning-parser deepseek_r1", "--model", "fixture:qwen3")
    code, report = as_json(run, *arguments, "--request", put(tmp_path, body, name="body.json"))
    first = report["findings"][0]
    assert (code, first["rule"], first["cause"]) == (1, "RPL401", "FIT105")
    assert dict(first["evidence"]["chain"])["request"] == 'effective chat-template kwargs {"enable_thinking": false}'


def test_the_table_sets_it_beside_what_does_better(run: Run) -> None:
    serve = "vllm serve example/laguna-s --reasoning-parser poolside_v1"
    _, report = as_json(run, LEAKED, "--serve", serve, "--chat-template", TEMPLATE)
    table = report["facts"]["comparisons"]["chatcmpl-leak1"]
    assert table["modes"] == ["full", "recorded", "token", "3", "whole", "holdback:12"]
    assert [(row["parser"], row["change"], set(row["modes"])) for row in table["rows"]] == [
        ("poolside_v1", None, {"leak"}),
        ("poolside_v1", {"enable_thinking": True}, {"ok", "leak"}),
        ("qwen3", None, {"ok"}),
        ("deepseek_r1", None, {"ok", "leak"}),
    ]
    assert [row["as_recorded"] for row in table["rows"]] == [True, False, False, False]
    assert table["rows"][3]["reasoning_tokens_zero"] is True
    assert table["expected"]["content"] == "\n\nIt is 4."


def test_the_text_tells_it_as_a_story(run: Run) -> None:
    serve = "vllm serve example/laguna-s --reasoning-parser poolside_v1"
    _, out, _ = run(LEAKED, "--serve", serve, "--chat-template", TEMPLATE)
    said = " ".join(out.split())
    order = [
        "served with poolside_v1 (--serve:1)",
        "the client got reasoning null",
        "marker leaked",
        "it should be reasoning",
        "cause FIT113 default-disagrees",
        "every step was run",
        "1 template a plain request ends in",
        "fix server --default-chat-template-kwargs",
        "replayed: splits right",
        "or client extra_body=",
        "poolside_v1 as served leak",
        "= recorded",
        "do not explain it",
        "error RPL403 replay-marker-leak",
        "FAIL 2 errors",
    ]
    places = [said.index(part) for part in order]
    assert places == sorted(places)


def test_many_traces_are_told_by_rates_and_the_worst(run: Run, tmp_path: Path) -> None:
    good = [trace(f"g{n}", f"hm</think>{n}", recorded={"parser": "deepseek_v3"}, request=_on()) for n in range(30)]
    path = put(tmp_path, *good, *(leaking(n) for n in range(10)))
    code, out, _ = run(path, "--model", "fixture:qwen3-thinking")
    assert code == 1
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "10 of 40 traces (25%) have an error; the other 30 are clean" in lines
    assert "deepseek_v3 30 (75%) 10 (25%)" in lines
    assert "error RPL403 replay-marker-leak 10 (25%) FIT113 10" in lines
    assert "35 more traces, 5 with something wrong (--verbose)" in lines
    shown = [line.split()[0] for line in lines if line.endswith("finish_reason stop") and line.startswith("t")]
    assert shown == [] or set(shown) <= {f"t{n}" for n in range(10)}
    assert lines[-1].startswith("FAIL 20 errors")


def test_what_is_kept_depends_on_the_format_and_the_verdict_does_not(run: Run, tmp_path: Path) -> None:
    path = put(tmp_path, *(leaking(n) for n in range(12)))
    code, report = as_json(run, path, "--model", "fixture:qwen3-thinking")
    assert (code, len(report["facts"]["results"]), len(report["findings"])) == (1, 12, 24)
    assert report["facts"]["rules"]["RPL403"]["traces"] == 12
    assert report["facts"]["scores"]["deepseek_v3"]["suspect"] == 12
    code, out, _ = run(path, "--model", "fixture:qwen3-thinking", "--format", "concise")
    assert (code, out.count("error RPL403")) == (1, 12)
    code, out, _ = run(path, "--model", "fixture:qwen3-thinking", "--quiet")
    assert (code, out.split()) == (1, ["FAIL", "24", "errors,", "0", "warnings,", "0", "notes"])
    assert run(path, "--model", "fixture:qwen3-thinking", "--ignore", "RPL4")[0] == 0
    code, out, _ = run(path, "--model", "fixture:qwen3-thinking", "--format", "junit")
    assert out.count("<testcase") >= 12


def test_the_worst_traces_are_kept_wherever_they_stand(run: Run, tmp_path: Path) -> None:
    good = [trace(f"g{n}", "hm</think>4", recorded={"parser": "qwen3"}) for n in range(20)]
    path = put(tmp_path, *good[:10], leaking(7), *good[10:])
    _, out, _ = run(path, "--model", "fixture:qwen3-thinking")
    assert out.index(f"  t7  {path}:11") < out.index(f"  g0  {path}:1")


def test_a_budget_that_nobody_reads(run: Run, tmp_path: Path) -> None:
    request = {"extra_body": {"thinking_token_budget": 2}}
    path = put(tmp_path, trace("t", "a b c d e</think>4", request=request, recorded={"parser": "qwen3"}))
    code, report = as_json(run, path, "--model", "fixture:qwen3-thinking")
    (finding,) = report["findings"]
    assert (code, finding["rule"], finding["cause"], finding["confidence"]) == (1, "RPL410", "BUD318", "high")
    assert finding["evidence"]["budget"] == 2


@pytest.mark.parametrize("number", [0, 1, 700, 5000])
def test_ids_are_told_apart(number: int) -> None:
    ids = Ids()
    assert all(ids.add(f"trace-{n}") for n in range(number))
    assert not any(ids.add(f"trace-{n}") for n in range(number))
    assert ids.add("another")


def _on() -> dict[str, Any]:
    return {"chat_template_kwargs": {"enable_thinking": True}}
