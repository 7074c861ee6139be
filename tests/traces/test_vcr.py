"""Cassettes of several makers, YAML and JSON, one interaction at a time."""

from __future__ import annotations

import base64
import gzip
import json
import sys
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
import zstandard

from reasonctl.errors import InputError
from reasonctl.traces.read import read_traces
from reasonctl.traces.trace import BrokenLine, Trace

REQUEST = {"model": "m", "messages": [{"role": "user", "content": "2 + 2?"}], "chat_template_kwargs": {"a": True}}
STREAM = (
    'data: {"id":"s","choices":[{"index":0,"delta":{"reasoning":"hm"}}]}\n\n: ping\n\n'
    'data: {"id":"s","choices":[{"index":0,"delta":{"content":"4"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)


def answer(text: str = "<think>hm</think>4") -> dict[str, Any]:
    return {"id": "r", "choices": [{"index": 0, "message": {"content": text}, "finish_reason": "stop"}]}


def vcrpy(body: Any, headers: dict[str, Any] | None = None, request: Any = None) -> dict[str, Any]:
    return {
        "request": {"method": "POST", "uri": "u", "body": json.dumps(request or REQUEST), "headers": {}},
        "response": {"body": {"string": body}, "headers": headers or {}, "status": {"code": 200, "message": "OK"}},
    }


def read(tmp_path: Path, text: str, name: str = "c.txt") -> list[Trace | BrokenLine]:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return list(read_traces(str(path)))


def as_yaml(*interactions: Any) -> str:
    return yaml.safe_dump({"interactions": list(interactions), "version": 1}, allow_unicode=True)


def test_vcrpy_yaml_keeps_the_request(tmp_path: Path) -> None:
    whole, stream = read(tmp_path, as_yaml(vcrpy(json.dumps(answer())), vcrpy(STREAM)))
    assert isinstance(whole, Trace)
    assert isinstance(stream, Trace)
    assert (whole.source, whole.output_text, whole.line) == ("vcr", "<think>hm</think>4", 2)
    assert whole.request == REQUEST
    assert (stream.lossy, stream.streamed, stream.segments) == (True, True, (("reasoning", "hm"), ("content", "4")))
    assert stream.line > whole.line


def test_vcrpy_json(tmp_path: Path) -> None:
    for indent in (None, 2):
        text = json.dumps({"version": 1, "interactions": [vcrpy(json.dumps(answer())), vcrpy(STREAM)]}, indent=indent)
        found = read(tmp_path, text)
        assert [type(item) for item in found] == [Trace, Trace]


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress], ids=["gzip", "zstd"])
def test_packed_bodies(tmp_path: Path, pack: Any) -> None:
    encoding = "gzip" if pack is gzip.compress else "zstd"
    packed = pack(json.dumps(answer("Grüße")).encode())
    (trace,) = read(tmp_path, as_yaml(vcrpy(packed, {"Content-Encoding": [encoding]})))
    assert isinstance(trace, Trace)
    assert trace.output_text == "Grüße"


@pytest.mark.parametrize(
    ("body", "encoding", "says"),
    [
        (b"\x8b\x02\xff\xfe", "br", "Brotli-compressed"),
        (gzip.compress(b"{}" * 500, mtime=0)[:-9], "gzip", "cannot be unpacked (its compressed data is cut)"),
        (b"\xff\xfe", "deflate", "cannot be unpacked"),
        (b"\xff\xfe", "compress", "no text (compress-compressed)"),
    ],
    ids=["br", "gzip", "deflate", "compress"],
)
def test_a_body_that_cannot_be_unpacked_costs_its_interaction(
    body: bytes, encoding: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "brotli", None)
    monkeypatch.setitem(sys.modules, "brotlicffi", None)
    found = read(tmp_path, as_yaml(vcrpy(body, {"content-encoding": [encoding]}), vcrpy(json.dumps(answer()))))
    assert isinstance(found[0], BrokenLine)
    assert (found[0].line, says in found[0].reason) == (2, True), found[0]
    assert found[0].mend == (
        "pip install brotli" if encoding == "br" else "record it with its body as text, or take it out"
    )
    assert isinstance(found[1], Trace)


def test_brotli_where_it_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps(answer("Grüße"))
    module = SimpleNamespace(decompress=lambda packed: text.encode() if packed == b"\x8b\xff" else b"", error=OSError)
    monkeypatch.setitem(sys.modules, "brotli", module)
    packed, kept = vcrpy(b"\x8b\xff", {"content-encoding": ["br"]}), vcrpy(text, {"content-encoding": ["br"]})
    found = read(tmp_path, as_yaml(packed, kept))
    assert [item.output_text for item in found if isinstance(item, Trace)] == ["Grüße", "Grüße"]


def test_parsed_bodies(tmp_path: Path) -> None:
    text = as_yaml({"request": {"parsed_body": REQUEST, "uri": "u"}, "response": {"parsed_body": answer()}})
    (trace,) = read(tmp_path, text)
    assert isinstance(trace, Trace)
    assert (trace.output_text, trace.request) == ("<think>hm</think>4", REQUEST)


def test_ruby_cassettes(tmp_path: Path) -> None:
    packed = base64.b64encode(STREAM.encode()).decode()
    text = f"""---
http_interactions:
- request:
    method: post
    uri: http://h/v1/chat/completions
    body:
      encoding: UTF-8
      string: '{json.dumps(REQUEST)}'
  response:
    status: !ruby/object:Status
      code: 200
    body:
      encoding: ASCII-8BIT
      base64_string: {packed}
  recorded_at: Tue, 01 Jul 2026 10:00:00 GMT
recorded_with: VCR 6.3.1
"""
    (trace,) = read(tmp_path, text)
    assert isinstance(trace, Trace)
    assert (trace.request, trace.recorded and trace.recorded.content) == (REQUEST, "4")


def test_answers_about_something_else_are_passed_over(tmp_path: Path) -> None:
    models = {"object": "list", "data": []}
    found = read(tmp_path, as_yaml(vcrpy(json.dumps(models)), vcrpy("<html/>"), vcrpy(json.dumps(answer()))))
    assert [type(item) for item in found] == [Trace]


def test_an_error_answer_is_named(tmp_path: Path) -> None:
    failed = {"error": {"message": "model not found", "code": 404}}
    broken, trace = read(tmp_path, as_yaml(vcrpy(json.dumps(failed)), vcrpy(json.dumps(answer()))))
    assert isinstance(broken, BrokenLine)
    assert "model not found" in broken.reason
    assert isinstance(trace, Trace)


def test_a_cassette_without_a_completion_is_no_recording(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no trace in it"):
        read(tmp_path, as_yaml(vcrpy("<html/>")))


def test_yaml_that_breaks_off_keeps_what_was_whole(tmp_path: Path) -> None:
    trace, broken = read(tmp_path, as_yaml(vcrpy(json.dumps(answer()))).replace("version: 1\n", "- {\n"))
    assert isinstance(trace, Trace)
    assert isinstance(broken, BrokenLine)
    assert "not YAML" in broken.reason


def test_anchors_dates_and_foreign_tags(tmp_path: Path) -> None:
    text = """made: 2026-01-01
interactions:
- request:
    headers: &h {accept: [text]}
    recorded: 2026-01-01
    body: !!python/unicode '{"model": "m"}'
    uri: u
  response:
    headers: *h
    parsed_body:
      choices:
      - message: {content: 2026-01-01}
        index: 0
"""
    (trace,) = read(tmp_path, text)
    assert isinstance(trace, Trace)
    assert (trace.output_text, trace.request, trace.line) == ("2026-01-01", {"model": "m"}, 3)


def test_an_alias_that_reaches_outside_is_a_broken_cassette(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="undefined alias"):
        read(tmp_path, "x: &a {b: 1}\ninteractions:\n- request: *a\n")


def test_memory_does_not_grow_with_the_cassette(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        path = tmp_path / f"{count}.yaml"
        one = as_yaml(vcrpy(json.dumps(answer("x" * 2000)))).split("\n", 1)[1].replace("version: 1\n", "")
        path.write_text("interactions:\n" + one * count + "version: 1\n", encoding="utf-8")
        tracemalloc.start()
        assert sum(1 for _ in read_traces(str(path))) == count
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(2)  # what is imported on first use counts once
    assert peak(400) < 1.5 * peak(40)
