"""`reasonctl replay` on recordings of several requests: which one a finding is about, and what must never be told."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from reasonctl.reports.formats import NAMES

COMMAND = "replay"
Run = Callable[..., tuple[int, str, str]]
SECRET = "sk-very-secret-123"
PATH = "/v1/chat/completions"
BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def answer(text: str = "<think>hm</think>4", **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {"object": "chat.completion", "model": "m", "choices": [choice]} | more


def entry(content: dict[str, Any], asked: Any = BODY, **request: Any) -> dict[str, Any]:
    """A HAR entry whose address and headers hold a key."""
    headers = [{"name": name, "value": f"Bearer {SECRET}"} for name in ("Authorization", "Cookie", "X-Api-Key")]
    body = {"mimeType": "application/json", "text": json.dumps(asked)}
    url = f"https://user:{SECRET}@host{PATH}?key={SECRET}#{SECRET}"
    return {
        "request": {"method": "POST", "url": url, "headers": headers, "postData": body} | request,
        "response": {"status": 200, "headers": headers, "content": {"mimeType": "application/json"} | content},
    }


def har(folder: Path, *entries: Any, name: str = "capture.har") -> str:
    path = folder / name
    path.write_text(json.dumps({"log": {"version": "1.2", "entries": list(entries)}}), encoding="utf-8")
    return str(path)


def cassette(folder: Path, *bodies: Any) -> str:
    headers = {"Authorization": [f"Bearer {SECRET}"], "content-type": ["application/json"]}
    kept = [
        {
            "request": {"method": "POST", "uri": f"https://host{PATH}?key={SECRET}", "headers": headers, "body": "{}"},
            "response": {"body": {"string": body if isinstance(body, str) else json.dumps(body)}, "headers": headers},
        }
        for body in bodies
    ]
    path = folder / "cassette.yaml"
    path.write_text(yaml.safe_dump(json.loads(json.dumps({"version": 1, "interactions": kept}))), encoding="utf-8")
    return str(path)


def told(run: Run, folder: Path, *arguments: str) -> str:
    """Everything a call tells: stdout, stderr, and a report in each format."""
    reports = [folder / f"report.{name}" for name in NAMES if find_spec(f"reasonctl.reports.{name}") or name == "json"]
    files = [part for file in reports for part in ("--format", f"{file.suffix[1:]}={file}")]
    _, out, err = run(*arguments, "--verbose", "--debug", *files)
    said = [file.read_text(encoding="utf-8") for file in reports if file.exists()]
    assert said or err
    return "".join((out, err, *said))


def text(value: Any) -> dict[str, Any]:
    return {"text": json.dumps(value)}


def test_findings_tell_which_entry_they_are_about(run: Run, tmp_path: Path) -> None:
    """All of them on one line, with ids, with one id twice, and without any."""
    path = har(tmp_path, entry(text(answer(id="a"))), *[entry(text(answer(id="b")))] * 2, *[entry(text(answer()))] * 3)
    _, out, _ = run(path, "--parser", "deepseek_v3", "--select", "RPL403", "--format", "json")
    report = json.loads(out)
    results = {(result["trace"], result["entry"]) for result in report["facts"]["results"]}
    assert len(results) == 6
    assert sorted(place for _, place in results) == [f"log.entries[{n}] POST {PATH}" for n in range(6)]
    messages = {(finding["subject"]["trace"], finding["message"].rpartition(" (")[2]) for finding in report["findings"]}
    assert messages == {(trace, f"{place})") for trace, place in results}
    assert ("b", f"log.entries[1] POST {PATH}") in results
    assert (f"b (log.entries[2] POST {PATH})", f"log.entries[2] POST {PATH}") in results


def test_the_text_tells_the_entry_beside_its_trace_and_once(run: Run, tmp_path: Path) -> None:
    path = har(tmp_path, entry(text(answer(id="a"))), entry(text(answer(id="b"))))
    _, out, _ = run(path, "--parser", "deepseek_v3")
    said = " ".join(out.split())
    assert f"capture.har:1, log.entries[1] POST {PATH}" in said
    assert said.count("log.entries[1]") == 1


def test_entries_of_a_cassette_are_told_too(run: Run, tmp_path: Path) -> None:
    path = cassette(tmp_path, answer(id="a"), '{"error": {"message": "boom"}}', answer(id="b"))
    _, out, _ = run(path, "--parser", "deepseek_v3", "--select", "RPL403,INT903", "--format", "json")
    said = [finding["message"] for finding in json.loads(out)["findings"]]
    assert sorted(message[message.index("interactions[") :] for message in said if message.endswith(")")) == [
        f"interactions[0] POST {PATH})",
        f"interactions[2] POST {PATH})",
    ]
    assert any(
        message.startswith(f"interactions[1] POST {PATH}: the server answered with an error") for message in said
    )


def test_a_refused_recording_names_the_entry_and_a_mend_that_fits(run: Run, tmp_path: Path) -> None:
    packed = {"text": "!", "encoding": "base64"}
    code, _, err = run(har(tmp_path, entry(packed)))
    assert code == 2
    assert f"no trace in it (log.entries[0] POST {PATH}: the body of this interaction cannot be unpacked" in err
    assert err.rstrip().endswith("; record it with its body as text, or take it out")
    path = tmp_path / "t.jsonl"
    path.write_text('{"output": {"text": "4"}, "request": {"stop": 7}}\n')
    code, _, err = run(str(path))
    assert (code, err.count("\n")) == (2, 1)
    assert err.rstrip().endswith("; make request.stop a text or a list of texts, or leave it out")


def test_a_broken_entry_gets_its_own_mend(run: Run, tmp_path: Path) -> None:
    path = har(tmp_path, entry(text(answer())), entry(text(answer()), {**BODY, "max_tokens": "many"}))
    _, out, _ = run(path, "--parser", "qwen3", "--format", "json")
    (finding,) = [finding for finding in json.loads(out)["findings"] if finding["rule"] == "INT903"]
    assert "request.max_tokens is a text, where a number belongs" in finding["message"]
    assert finding["hint"] == "make request.max_tokens a number, or leave it out"


def test_what_a_browser_records_besides_is_no_broken_part(run: Run, tmp_path: Path) -> None:
    picture = {"mimeType": "image/png", "text": base64.b64encode(b"\x89PNG\xff").decode(), "encoding": "base64"}
    code, out, _ = run(har(tmp_path, entry(picture), entry(text(answer()))), "--format", "json")
    report = json.loads(out)
    assert (code, report["verdict"], report["facts"]["traces"]) == (0, "pass", 1)


PACKED = {"text": f"!{SECRET}", "encoding": "base64"}
STREAM = f"data: {json.dumps(answer())[:-2]} {SECRET}\n\n"
CAPTURES: dict[str, list[Any]] = {
    "whole": [entry(text(answer()))],
    "failing": [entry(text(answer("hm</think>4")))],
    "body that cannot be unpacked": [entry(text(answer())), entry(PACKED)],
    "alone": [entry(PACKED)],
    "body in pieces": [entry(text(answer())), entry({"text": f'["{SECRET}"]', "encoding": "hex"})],
    "request of a wrong type": [entry(text(answer())), entry(text(answer()), {**BODY, "stop": {"key": SECRET}})],
    "key in the request": [
        entry(text(answer()), {**BODY, "api_key": SECRET, "user": SECRET, "metadata": {"k": SECRET}})
    ],
    "message of a wrong type": [
        entry(text(answer())),
        entry(text(answer(choices=[{"message": {"content": {"k": SECRET}}}]))),
    ],
    "delta of a wrong type": [entry(text(answer(choices=[{"delta": {"content": {"k": SECRET}}}])))],
    "stream cut in a key": [entry(text(answer())), entry({"mimeType": "text/event-stream", "text": STREAM})],
    "no JSON": [entry(text(answer())), entry({"text": '{"choices": [{"message": {"content": ' + SECRET})],
    "entry of a wrong type": [entry(text(answer())), SECRET],
    "encoding": [entry(text(answer())), entry(PACKED | {"encoding": SECRET})],
    "method": [entry(text(answer()), method=f"POST {SECRET}")],
    "address without a path": [entry(text(answer()), url=f"https://host?key={SECRET}")],
    "odd address": [entry(text(answer()), url=f"//user:{SECRET}@host{PATH};{'x'}?{SECRET}")],
}


@pytest.mark.parametrize("name", CAPTURES)
def test_no_report_tells_a_key_of_a_capture(run: Run, name: str, tmp_path: Path) -> None:
    """Header values, user and query of an address, values of the wrong type: in every format, and in refusals."""
    assert SECRET not in told(run, tmp_path, har(tmp_path, *CAPTURES[name]), "--parser", "deepseek_v3")


def test_no_report_tells_a_key_of_a_cassette(run: Run, tmp_path: Path) -> None:
    path = cassette(tmp_path, answer("hm</think>4"), "{", '{"error": {"message": "boom"}}')
    assert SECRET not in told(run, tmp_path, path, "--parser", "deepseek_v3")


SERVES = [
    f"vllm serve m --api-key {SECRET} --reasoning-parser deepseek_v3",
    f"VLLM_API_KEY={SECRET} HF_TOKEN={SECRET} vllm serve m --hf-token {SECRET} --reasoning-parser deepseek_v3",
    f"vllm serve m --api-key={SECRET} --reasoning-parser nobody",
    f"vllm serve m --api-key {SECRET} --default-chat-template-kwargs '{{'",
    f"docker run -e VLLM_API_KEY={SECRET} vllm/vllm-openai:v0.33.0 --model m --api-key {SECRET}",
]


@pytest.mark.parametrize("serve", SERVES)
def test_no_report_tells_a_key_of_the_serve_command(run: Run, serve: str, tmp_path: Path) -> None:
    path = har(tmp_path, entry(text(answer("hm</think>4"))))
    assert SECRET not in told(run, tmp_path, path, "--serve", serve)
    file = tmp_path / "serve.sh"
    file.write_text(serve)
    assert SECRET not in told(run, tmp_path, path, "--serve", str(file))


REQUESTS = [
    f"curl https://host{PATH}?key={SECRET} -H 'Authorization: Bearer {SECRET}' -d '{json.dumps(BODY)}'",
    f"curl https://host{PATH} -u user:{SECRET} -H 'Authorization: Bearer {SECRET}' -d '{{'",
    f"curl https://host{PATH} -H 'Authorization: Bearer {SECRET}",
    f"curl https://host{PATH} -H 'X-Key: {SECRET}'",
    json.dumps({**BODY, "stop": {"key": SECRET}}),
    json.dumps({**BODY, "extra_headers": {"Authorization": f"Bearer {SECRET}"}, "api_key": SECRET}),
]


@pytest.mark.parametrize("request_", REQUESTS)
def test_no_report_tells_a_key_of_the_request(run: Run, request_: str, tmp_path: Path) -> None:
    file = tmp_path / "request.txt"
    file.write_text(request_)
    trace = tmp_path / "t.jsonl"
    trace.write_text(json.dumps({"output": {"text": "hm</think>4"}, "recorded": {"finish_reason": "stop"}}) + "\n")
    more = ("--parser", "deepseek_v3", "--model", "fixture:qwen3-thinking")
    assert SECRET not in told(run, tmp_path, str(trace), "--request", str(file), *more)


@pytest.mark.parametrize(
    ("with_prompt", "without", "said"),
    [
        (0, 1, "the trace has none"),
        (0, 3, "the traces have none"),
        (2, 1, "1 of 3 traces has none"),
        (1, 2, "2 of 3 traces have none"),
    ],
)
def test_how_many_lack_a_prompt_reads_as_written(
    run: Run, with_prompt: int, without: int, said: str, tmp_path: Path
) -> None:
    prompted = {"output": {"text": "<think>hm</think>4"}, "prompt": {"text": "hi"}}
    lines = [prompted] * with_prompt + [{"output": prompted["output"]}] * without
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    _, out, _ = run(str(path), "--parser", "qwen3", "--format", "json")
    (prompt,) = [row for row in json.loads(out)["coverage"] if row["surface"] == "prompt"]
    assert prompt["reason"] == f"{said}: split as vLLM does without a prompt; give --request"
