"""Requests with their responses, however they were kept: HAR files, mock servers, batches, logs, other VCRs."""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import struct
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import pytest
import yaml

from reasonctl.errors import InputError
from reasonctl.traces import bodies
from reasonctl.traces.read import read_traces
from reasonctl.traces.trace import BrokenLine, Trace

REQUEST = {"model": "m", "messages": [{"role": "user", "content": "2 + 2?"}]}
ANSWER = {"id": "r", "choices": [{"index": 0, "message": {"content": "<think>hm</think>4"}, "finish_reason": "stop"}]}
STREAM = (
    'data: {"id":"s","choices":[{"index":0,"delta":{"reasoning":"hm"}}]}\r\n\r\n: ping\r\n\r\n'
    'data: {"id":"s","choices":[{"index":0,"delta":{"content":"4"},"finish_reason":"stop"}]}\r\n\r\n'
    "data: [DONE]\r\n\r\n"
)
URL = "https://host/v1/chat/completions"


def b64(data: bytes | str) -> str:
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()


def read(folder: Path, value: Any, *, text: str | None = None, **options: Any) -> list[Trace | BrokenLine]:
    path = folder / "recording"
    path.write_text(json.dumps(value) if text is None else text, encoding="utf-8")
    return list(read_traces(str(path), **options))


def only(found: list[Trace | BrokenLine]) -> Trace:
    (trace,) = found
    assert isinstance(trace, Trace), trace
    return trace


def split(trace: Trace) -> tuple[str | None, str | None]:
    return (
        ("hm", "4")
        if trace.output_text == "<think>hm</think>4"
        else ((trace.recorded.reasoning, trace.recorded.content) if trace.recorded else (None, None))
    )


def har(content: dict[str, Any], headers: dict[str, str] | None = None, **request: Any) -> dict[str, Any]:
    """One entry of a HAR file."""
    asked = {"method": "POST", "url": URL, "postData": {"mimeType": "application/json", "text": json.dumps(REQUEST)}}
    named = [{"name": key, "value": one} for key, one in (headers or {}).items()]
    return {"request": {**asked, **request}, "response": {"status": 200, "headers": named, "content": content}}


def har_file(*entries: Any, **log: Any) -> dict[str, Any]:
    return {"log": {"version": "1.2", "creator": {"name": "x"}, "pages": [{"id": 1}], **log, "entries": list(entries)}}


GZIPPED = {"Content-Encoding": "gzip"}
CONTENTS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "json": ({"mimeType": "application/json", "text": json.dumps(ANSWER)}, {}),
    "stream": ({"mimeType": "text/event-stream", "text": STREAM}, {}),
    "base64": ({"mimeType": "text/event-stream", "text": b64(STREAM), "encoding": "base64"}, {}),
    "gzip": (
        {"mimeType": "application/json", "text": b64(gzip.compress(STREAM.encode())), "encoding": "base64"},
        GZIPPED,
    ),
    "Polly, pieces": (
        {
            "mimeType": "application/json",
            "encoding": "base64",
            "text": json.dumps([b64(gzip.compress(STREAM.encode())[:20]), b64(gzip.compress(STREAM.encode())[20:])]),
        },
        GZIPPED,
    ),
    "Polly 5, hex": ({"mimeType": "x", "_isBinary": True, "text": json.dumps([STREAM.encode().hex()])}, {}),
    "hex": ({"mimeType": "x", "encoding": "hex", "text": STREAM.encode().hex()}, {}),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_har_bodies(name: str, tmp_path: Path) -> None:
    content, headers = CONTENTS[name]
    if "gzip" in headers.values():
        packed = gzip.compress(STREAM.encode(), mtime=0)
        if name.startswith("Polly"):
            content = {**content, "text": json.dumps([b64(packed[:20]), b64(packed[20:])])}
    for value in (har_file(har(content, headers)), har_file(har(content, headers), comment="long " * 20_000)):
        trace = only(read(tmp_path, value))
        assert (trace.source, trace.request, split(trace)) == ("har", REQUEST, ("hm", "4"))


def test_a_har_file_with_everything_a_browser_records(tmp_path: Path) -> None:
    entries = [
        har({"mimeType": "text/html", "text": "<html></html>"}, postData=None),
        har({"mimeType": "image/png", "text": b64(b"\x89PNG\xff"), "encoding": "base64"}),
        har({"mimeType": "application/json", "size": 0}),
        har({"mimeType": "application/json", "text": "x", "_file": "a.json"}),
        har({"mimeType": "text/event-stream", "text": STREAM}),
    ]
    elsewhere, trace = read(tmp_path, har_file(*entries))
    assert isinstance(elsewhere, BrokenLine)
    assert "in a file beside" in elsewhere.reason
    assert elsewhere.mend == "write the body of that file into the recording"
    assert isinstance(trace, Trace)


def test_each_entry_is_told_by_its_place_and_address(tmp_path: Path) -> None:
    """Also where all stand on one line; what may be a key in an address is not told."""
    content = {"mimeType": "text/event-stream", "text": STREAM}
    packed = {"mimeType": "application/json", "text": "!", "encoding": "base64"}
    address = "https://user:pass@host:8000/v1/chat/completions?key=sk-secret#frag"
    good, bad = har(content, url=address), har(packed, url=address)
    first, broken, second = read(tmp_path, har_file(good, bad, good))
    assert isinstance(first, Trace)
    assert isinstance(second, Trace)
    assert [first.entry, second.entry] == [f"log.entries[{n}] POST /v1/chat/completions" for n in (0, 2)]
    assert isinstance(broken, BrokenLine)
    assert broken.reason.startswith("log.entries[1] POST /v1/chat/completions: the body of this interaction cannot be")
    for shown in (repr(first.entry), repr(broken)):
        assert not any(part in shown for part in ("user", "pass", "secret", "host", "frag"))
    long = har(content, url=f"https://host/{'a' * 300}")
    (trace,) = read(tmp_path, har_file(long))
    assert isinstance(trace, Trace)
    assert trace.entry is not None
    assert len(trace.entry) < 110


def test_a_har_file_that_breaks_off_keeps_what_was_whole(tmp_path: Path) -> None:
    text = json.dumps(har_file(har(CONTENTS["json"][0]), har(CONTENTS["json"][0])), indent=1)
    trace, broken = read(tmp_path, None, text=text[: int(len(text) * 0.9)])
    assert isinstance(trace, Trace)
    assert isinstance(broken, BrokenLine)
    assert broken.line > 5


def test_memory_does_not_grow_with_the_har_file(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        path = tmp_path / f"{count}.har"
        long = {"choices": [{"message": {"content": "x" * 4000}}]}
        path.write_text(json.dumps(har_file(*[har({"mimeType": "x", "text": json.dumps(long)})] * count)))
        tracemalloc.start()
        assert sum(1 for _ in read_traces(str(path))) == count
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(2)
    assert peak(400) < 1.5 * peak(60)


def nock(response: Any, **more: Any) -> dict[str, Any]:
    return {
        "scope": "https://host:443",
        "method": "POST",
        "path": "/v1/chat/completions",
        "body": REQUEST,
        "status": 200,
        "response": response,
        **more,
    }


SHAPES: dict[str, Any] = {
    "OpenAI batch": {"id": "b", "custom_id": "mine", "response": {"status_code": 200, "body": ANSWER}, "error": None},
    "log of bodies": {"request": REQUEST, "response": ANSWER},
    "log of texts": {"request": {"body": json.dumps(REQUEST)}, "response": json.dumps(ANSWER)},
    "log of chunks": {
        "request": REQUEST,
        "response": [json.loads(line[6:]) for line in STREAM.split("\r\n") if "{" in line],
    },
    "nock, object": nock(ANSWER, rawHeaders=["Content-Type", "application/json"]),
    "nock, text": nock(STREAM),
    "nock, gzip": nock([gzip.compress(STREAM.encode()).hex()], rawHeaders={"Content-Encoding": "gzip"}),
    "nock, several": nock([STREAM[:40].encode().hex(), STREAM[40:].encode().hex()]),
    "undici": {
        "request": {"url": URL, "body": json.dumps(REQUEST)},
        "responses": [{"statusCode": 200, "headers": {}, "body": STREAM}],
    },
    "Charles": {
        "request": {"body": {"text": json.dumps(REQUEST), "charset": None, "encoding": None}},
        "response": {"body": {"text": STREAM, "encoding": None}},
    },
    "WireMock, body": {"request": {"urlPath": "/v1/chat/completions"}, "response": {"status": 200, "body": STREAM}},
    "WireMock, jsonBody": {"request": {"url": "/v1/chat/completions"}, "response": {"status": 200, "jsonBody": ANSWER}},
    "WireMock, base64Body": {"request": {"url": "/"}, "response": {"status": 200, "base64Body": b64(STREAM)}},
}


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_of_a_pair(name: str, tmp_path: Path) -> None:
    for text in (json.dumps(SHAPES[name], indent=1), json.dumps(SHAPES[name]) + "\n", json.dumps([SHAPES[name]])):
        trace = only(read(tmp_path, None, text=text))
        assert (trace.source, split(trace)) == ("pairs", ("hm", "4"))
        assert trace.request == (REQUEST if "WireMock" not in name and "batch" not in name else {})
    assert only(read(tmp_path, SHAPES[name], format="pairs")).source == "pairs"


def test_a_batch_is_named_by_the_ids_its_requests_had(tmp_path: Path) -> None:
    two = {**ANSWER, "choices": [{"index": n, "message": {"content": str(n)}, "finish_reason": "stop"} for n in (0, 1)]}
    failed = {"custom_id": "c", "response": {"status_code": 400, "body": {"error": {"message": "too long"}}}}
    lines = [{"custom_id": "a", "response": {"body": two}}, failed, {"custom_id": "b", "response": {"body": ANSWER}}]
    found = read(tmp_path, None, text="".join(json.dumps(line) + "\n" for line in lines))
    assert [item.id if isinstance(item, Trace) else item.reason for item in found] == [
        "a",
        "a#1",
        "the server answered with an error (too long)",
        "b",
    ]


def test_wiremock_files_of_many(tmp_path: Path) -> None:
    value = {"mappings": [SHAPES["WireMock, jsonBody"], SHAPES["WireMock, body"]]}
    assert [split(item) for item in read(tmp_path, value) if isinstance(item, Trace)] == [("hm", "4")] * 2


def test_pairs_about_something_else_are_passed_over_and_broken_ones_cost_themselves(tmp_path: Path) -> None:
    lines = [
        {"request": {"input": "x"}, "response": {"object": "list", "data": []}},
        {"request": REQUEST, "response": {"base64Body": "!"}},
        {"request": {"messages": [], "stop": 5}, "response": ANSWER},
        SHAPES["nock, text"],
    ]
    unpacked, fault, trace = read(tmp_path, None, text="".join(json.dumps(line) + "\n" for line in lines))
    assert isinstance(unpacked, BrokenLine)
    assert (unpacked.line, "cannot be unpacked" in unpacked.reason) == (2, True)
    assert isinstance(fault, BrokenLine)
    assert (fault.line, "request.stop is a" in fault.reason) == (3, True)
    assert isinstance(trace, Trace)
    with pytest.raises(InputError, match="no answer of a model"):
        read(tmp_path, lines[0])


def test_the_model_is_named_in_the_address_or_in_the_request_where_the_answer_does_not(tmp_path: Path) -> None:
    answer = {"output": {"message": {"content": [{"text": "4"}]}}, "stopReason": "end_turn"}
    uri = "https://bedrock/model/us.anthropic.claude-sonnet-4-20250514-v1%3A0/converse"
    pair = {"request": {"uri": uri, "body": "{}"}, "response": {"body": {"string": json.dumps(answer)}}}
    assert only(read(tmp_path, pair)).model == "us.anthropic.claude-sonnet-4-20250514-v1:0"
    assert only(read(tmp_path, {"request": REQUEST, "response": ANSWER})).model == "m"
    uri = "https://azure/models/chat/completions?api-version=1"
    assert only(read(tmp_path, {"request": {"uri": uri}, "response": ANSWER})).model is None
    uri = "https://google/v1beta/models/gemini-3-flash:streamGenerateContent?alt=sse"
    assert only(read(tmp_path, {"request": {"uri": uri}, "response": ANSWER})).model == "gemini-3-flash"


def test_requests_of_other_apis_are_told_in_the_chat_apis_words(tmp_path: Path) -> None:
    asked = {
        "system": "Be brief.",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "2 + 2?"}]}],
    }
    answer = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "4"}],
    }
    trace = only(
        read(
            tmp_path, har_file(har({"mimeType": "x", "text": json.dumps(answer)}, postData={"text": json.dumps(asked)}))
        )
    )
    assert (trace.source, trace.api, split(trace)) == ("har", "anthropic", ("hm", "4"))
    assert trace.request["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "2 + 2?"},
    ]


YAMLS = {
    "go-vcr": {
        "version": 2,
        "interactions": [
            {
                "id": 0,
                "request": {"url": URL, "body": json.dumps(REQUEST)},
                "response": {"body": STREAM, "status": "200 OK"},
            }
        ],
    },
    "php-vcr": [
        {
            "request": {"method": "POST", "url": URL, "body": json.dumps(REQUEST)},
            "response": {"status": {"code": 200}, "body": STREAM},
        }
    ],
}


@pytest.mark.parametrize("name", YAMLS)
def test_other_vcrs_in_yaml(name: str, tmp_path: Path) -> None:
    text = yaml.safe_dump(YAMLS[name], sort_keys=False)
    for one in (text, "---\n" + text):
        trace = only(read(tmp_path, None, text=one))
        assert (trace.source, trace.request, split(trace)) == ("vcr", REQUEST, ("hm", "4"))


def test_betamax(tmp_path: Path) -> None:
    body = {"encoding": "utf-8", "base64_string": b64(gzip.compress(STREAM.encode()))}
    asked = {"body": {"encoding": "utf-8", "string": json.dumps(REQUEST)}, "uri": URL, "headers": {}}
    answer = {"body": body, "headers": {"Content-Encoding": ["gzip"]}, "status": {"code": 200, "message": "OK"}}
    value = {"http_interactions": [{"request": asked, "response": answer}], "recorded_with": "betamax/0.9"}
    trace = only(read(tmp_path, value))
    assert (trace.source, trace.request, split(trace)) == ("vcr", REQUEST, ("hm", "4"))


def amazon(*events: tuple[str, Any], kind: str = "event") -> bytes:
    """Events in Amazon's binary framing."""

    def header(name: str, value: str) -> bytes:
        return bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()

    framed = b""
    for name, value in events:
        heads = (
            header(f":{kind}-type", name) + header(":content-type", "application/json") + header(":message-type", kind)
        )
        payload = json.dumps(value).encode()
        prelude = struct.pack(">II", len(heads) + len(payload) + 16, len(heads))
        prelude += struct.pack(">I", binascii.crc32(prelude))
        message = prelude + heads + payload
        framed += message + struct.pack(">I", binascii.crc32(message))
    return framed


def cassette(body: bytes, kind: str = "application/vnd.amazon.eventstream") -> str:
    answer = {"body": {"string": body}, "headers": {"Content-Type": [kind]}, "status": {"code": 200}}
    return yaml.safe_dump({"interactions": [{"request": {"uri": "u", "body": "{}"}, "response": answer}], "version": 1})


CONVERSED = (
    ("messageStart", {"role": "assistant", "p": "ab"}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "h"}}}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "m"}}}),
    ("contentBlockStop", {"contentBlockIndex": 0}),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "4"}}),
    ("messageStop", {"stopReason": "end_turn"}),
    ("metadata", {"usage": {"inputTokens": 1, "outputTokens": 3}}),
)


def test_amazons_binary_streams(tmp_path: Path) -> None:
    trace = only(read(tmp_path, None, text=cassette(amazon(*CONVERSED))))
    assert (trace.api, split(trace), trace.finish_reason, trace.streamed) == ("bedrock", ("hm", "4"), "stop", True)
    inner = [
        {"type": "message_start", "message": {"id": "m1", "type": "message", "content": []}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "4"}},
        {"type": "message_stop"},
    ]
    packed = amazon(*(("chunk", {"bytes": b64(json.dumps(event)), "p": "a"}) for event in inner))
    trace = only(read(tmp_path, None, text=cassette(packed)))
    assert (trace.api, trace.id, split(trace)) == ("anthropic", "m1", ("hm", "4"))


def test_amazons_binary_streams_that_break_off_or_fail(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="event stream of this interaction is cut"):
        read(tmp_path, None, text=cassette(amazon(*CONVERSED)[:-7]))
    failed = amazon(*CONVERSED[:3]) + amazon(("throttlingException", {"message": "Too many"}), kind="exception")
    broken, trace = read(tmp_path, None, text=cassette(failed))
    assert isinstance(broken, BrokenLine)
    assert "throttlingException: Too many" in broken.reason
    assert isinstance(trace, Trace)
    assert trace.recorded is not None
    assert trace.recorded.reasoning == "hm"


@pytest.mark.parametrize("pack", [zlib.compress, lambda data: zlib.compress(data, wbits=-15)], ids=["zlib", "raw"])
def test_deflated_bodies(pack: Any, tmp_path: Path) -> None:
    packed = pack(json.dumps(ANSWER).encode())
    answer = {"body": {"string": packed}, "headers": {"Content-Encoding": ["deflate"]}}
    text = yaml.safe_dump({"interactions": [{"request": {"uri": "u"}, "response": answer}]})
    assert split(only(read(tmp_path, None, text=text))) == ("hm", "4")


def test_a_body_that_unpacks_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MAX_BODY", 1 << 20)
    packed = gzip.compress(b"x" * (1 << 21))
    with pytest.raises(InputError, match="becomes more than 1 MiB"):
        read(tmp_path, None, text=cassette(packed, "text/plain"))
