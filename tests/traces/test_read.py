"""Which format a file is in is told by its content; what is no recording is refused in one line."""

from __future__ import annotations

import gzip
import io
import json
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from reasonctl.errors import InputError
from reasonctl.fixtures import ROOT
from reasonctl.traces import jq
from reasonctl.traces.read import FORMATS, read_traces
from reasonctl.traces.trace import BrokenLine, Trace

NATIVE = {"schema": "reasonctl.trace/1", "id": "t", "output": {"text": "hm</think>4"}}
WHOLE = {"object": "chat.completion", "choices": [{"message": {"content": "hm</think>4"}, "finish_reason": "stop"}]}
PARTS = ("hm", "</think>", "4")
CHUNKS = [{"id": "c", "choices": [{"delta": {"content": part}}]} for part in PARTS]
HAR_BODY = {"mimeType": "application/json", "text": json.dumps(WHOLE)}


def _lines(*values: Any) -> str:
    return "".join(json.dumps(one) + "\n" for one in values)


CONTENTS = {
    "trace": json.dumps(NATIVE) + "\n",
    "response": json.dumps(WHOLE, indent=1),
    "chunks": "".join(json.dumps(one) + "\n" for one in CHUNKS),
    "sse": "".join(f"data: {json.dumps(one)}\r\n\r\n" for one in CHUNKS),
    "responses": _lines(
        {"type": "response.created", "response": {"id": "r", "object": "response", "output": []}},
        *({"type": "response.output_text.delta", "delta": part} for part in PARTS),
        {
            "type": "response.completed",
            "response": {"id": "r", "object": "response", "output": [], "status": "completed"},
        },
    ),
    "anthropic": _lines(
        {"type": "message_start", "message": {"id": "m", "type": "message", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": one}} for one in PARTS),
        {"type": "message_stop"},
    ),
    "ollama": _lines(
        *({"model": "m", "message": {"role": "assistant", "content": one}, "done": False} for one in PARTS),
        {"model": "m", "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"},
    ),
    "cohere": _lines(
        {"type": "message-start", "id": "c"},
        *({"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": one}}}} for one in PARTS),
        {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}},
    ),
    "gemini": _lines(*({"candidates": [{"content": {"parts": [{"text": one}]}}], "responseId": "g"} for one in PARTS)),
    "bedrock": _lines(
        {"messageStart": {"role": "assistant"}},
        *({"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": one}}} for one in PARTS),
        {"messageStop": {"stopReason": "end_turn"}},
    ),
    "vcr": "interactions:\n- request: {}\n  response:\n    parsed_body: " + json.dumps(WHOLE) + "\n",
    "har": json.dumps({"log": {"version": "1.2", "entries": [{"request": {}, "response": {"content": HAR_BODY}}]}}),
    "pairs": _lines({"custom_id": "t", "response": {"status_code": 200, "body": WHOLE}, "error": None}),
    "canitoolcall": _lines({"id": "f/t", "family": "f", "raw_output": "hm</think>4", "expected": {"content": "4"}}),
    "text": "hm</think>4",
}


def read(path: Path | str, **options: Any) -> list[Trace | BrokenLine]:
    return list(read_traces(str(path), **options))


def put(folder: Path, content: str | bytes, name: str = "recording") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "pack", [bytes, gzip.compress, zstandard.ZstdCompressor().compress], ids=["plain", "gz", "zst"]
)
def test_every_format_by_its_content(name: str, pack: Any, tmp_path: Path) -> None:
    (trace,) = read(put(tmp_path, pack(CONTENTS[name].encode())))
    assert isinstance(trace, Trace)
    assert (trace.source, trace.output_text) == (name, "hm</think>4")


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_forced(name: str, tmp_path: Path) -> None:
    (trace,) = read(put(tmp_path, CONTENTS[name]), format=name)
    assert isinstance(trace, Trace)
    assert trace.output_text == "hm</think>4"


def test_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CONTENTS["sse"].encode())))
    (trace,) = read("-")
    assert isinstance(trace, Trace)
    assert (trace.output_text, trace.path) == ("hm</think>4", "<stdin>")


def test_a_closed_stdin_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match=r"^<stdin>: standard input is closed; "):
        read("-")


def test_any_content_can_be_read_as_text(tmp_path: Path) -> None:
    (trace,) = read(put(tmp_path, CONTENTS["trace"]), format="text")
    assert isinstance(trace, Trace)
    assert (trace.output_text, trace.id) == (CONTENTS["trace"], f"{trace.path}:1")


def test_another_form_than_the_forced_one_is_named(tmp_path: Path) -> None:
    path = put(tmp_path, CONTENTS["trace"] + CONTENTS["chunks"])
    found = read(path, format="trace")
    assert [type(item) for item in found] == [Trace, BrokenLine, BrokenLine, BrokenLine]
    assert "chat chunk" in found[1].reason  # type: ignore[union-attr]


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in ("trace", "text")])
def test_a_forced_format_that_is_not_there_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"leave out --from {name}") as caught:
        read(put(tmp_path, CONTENTS["trace"]), format=name)
    assert "forces a format" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "expression", "says"),
    [
        ("sse", ".", "a reasonctl trace, not what --from sse names"),
        ("trace", ".output.text", "plain text here, not what --from trace names"),
        ("text", ".", "no text here"),
        ("vcr", ".", "no cassette"),
        ("har", ".", "no HAR file"),
        ("ollama", ".", "a reasonctl trace, not what --from ollama names"),
    ],
)
def test_what_jq_yields_is_held_to_a_forced_format(name: str, expression: str, says: str, tmp_path: Path) -> None:
    path = put(tmp_path, CONTENTS["trace"])
    with pytest.raises(InputError, match=says):
        read(path, format=name, jq=expression)
    (found,) = read(path, format="text", jq=".output.text")
    assert isinstance(found, Trace)
    assert found.source == "text"


@pytest.mark.parametrize(
    "text",
    [
        "data: is plural",
        "[THINK]hm[/THINK]4",
        "{not json at all}",
        "<think>\nThe line\ndata: {}\nstarts an event.</think>",
        "interactions: a talk",
        "Sure!\n\n- interactions:\n",
    ],
)
def test_model_output_that_looks_like_something_else_is_text(text: str, tmp_path: Path) -> None:
    (trace,) = read(put(tmp_path, text))
    assert isinstance(trace, Trace)
    assert (trace.source, trace.output_text) == ("text", text)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(lambda text: text.strip()))
def test_text_is_kept_to_the_letter(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = put(tmp_path_factory.mktemp("text"), text)
    (trace,) = read(path, format="text")
    assert isinstance(trace, Trace)
    assert trace.output_text == text.removeprefix("\ufeff")


def test_a_mixed_file(tmp_path: Path) -> None:
    path = put(tmp_path, CONTENTS["trace"] + json.dumps(WHOLE) + "\n{broken\n" + CONTENTS["chunks"])
    found = read(path)
    assert [(type(item).__name__, item.line) for item in found] == [
        ("Trace", 1),
        ("Trace", 2),
        ("BrokenLine", 3),
        ("Trace", 4),
    ]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "empty"),
        (" \n\n", "empty"),
        ('{"answer": 4}', "no form that is read"),
        ('{"a": 1}\n{"b": \n', "no form that is read"),
        (": only comments\n\ndata:\n\n", "no trace in it .no event"),
        ("event: x\ndata: 5\n", "no form that is read"),
        ("data: hello\n\ndata: there\n", "not JSON"),
        ("data: [DONE]\n", "no event"),
        ("interactions: []\n", "no interaction"),
        ("version: 1\ninteractions: null\n", "no interaction"),
        ("http_interactions:\n- request: 5\n  response: []\n", "no interaction"),
        ('{"choices": []}', "no choice"),
        ('{"output": {"te', "^[^:]*:1: no trace in it"),
        ('{"output": {"text": "a"},\n\n\n', "^[^:]*:1: no trace in it"),
        ("\x7fELF\x00\x00", "binary"),
        (b"\xff\xfehi", "no trace"),
        ('{"error": {"message": "overloaded"}}', "overloaded"),
    ],
)
def test_no_recording(content: str | bytes, says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=says):
        read(put(tmp_path, content), format="sse" if content == b"\xff\xfehi" else None)


def test_missing_files_folders_and_formats(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file; check"):
        read(tmp_path / "none")
    with pytest.raises(InputError, match="folder"):
        read(tmp_path)
    with pytest.raises(InputError, match="'hal' is no format"):
        read(tmp_path, format="hal")


def test_text_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="UTF-8"):
        read(put(tmp_path, b"caf\xe9"))


def test_utf16_as_powershell_writes_it(tmp_path: Path) -> None:
    (trace,) = read(put(tmp_path, CONTENTS["sse"].encode("utf-16")))
    assert isinstance(trace, Trace)
    assert trace.output_text == "hm</think>4"


@pytest.mark.parametrize("keep", [0.9, 0.5])
def test_a_gzip_cut_short_gives_what_is_there(keep: float, tmp_path: Path) -> None:
    lines = "".join(json.dumps({**NATIVE, "id": str(n), "pad": str(hash(str(n)) ** 3)}) + "\n" for n in range(2000))
    packed = gzip.compress(lines.encode())
    found = read(put(tmp_path, packed[: int(len(packed) * keep)]))
    good = [item for item in found if isinstance(item, Trace)]
    assert 200 < len(good) < 2000
    assert isinstance(found[-1], BrokenLine)
    assert "compressed" in found[-1].reason


@pytest.mark.parametrize(("pack", "name"), [(gzip.compress, "gzip"), (zstandard.compress, "zstd")])
def test_a_compressed_file_cut_in_its_first_block(pack: Any, name: str, tmp_path: Path) -> None:
    packed = pack((json.dumps(NATIVE) + "\n").encode() * 5000)
    for keep in (5, 35, len(packed) // 2):
        if name == "zstd" or keep < 20:
            with pytest.raises(InputError, match=f"truncated {name}"):
                read(put(tmp_path, packed[:keep]))


def test_a_zstd_cut_short_gives_what_is_there(tmp_path: Path) -> None:
    lines = [json.dumps({**NATIVE, "id": str(n), "pad": str(hash(str(n)) ** 3)}) + "\n" for n in range(4000)]
    frames = [zstandard.compress("".join(lines[at : at + 1000]).encode()) for at in range(0, 4000, 1000)]
    assert len(read(put(tmp_path, b"".join(frames)))) == 4000
    found = read(put(tmp_path, b"".join(frames)[: -len(frames[-1]) // 2]))
    assert 3000 <= len([item for item in found if isinstance(item, Trace)]) < 4000
    assert isinstance(found[-1], BrokenLine)
    assert "truncated zstd" in found[-1].reason
    path = put(tmp_path, frames[0] + b"\x00garbage")
    assert "broken zstd" in read(path)[-1].reason  # type: ignore[union-attr]


def test_jq_maps_other_lines(tmp_path: Path) -> None:
    stream = CONTENTS["sse"].replace("\r", "")
    rows = [{"log": {"answer": WHOLE}}, {"log": {"answer": stream}}, {"log": {"answer": "raw</think>5"}}, {"log": None}]
    path = put(tmp_path, "".join(json.dumps(row) + "\n" for row in rows))
    found = read(path, jq=".log.answer // empty")
    assert [item.output_text for item in found if isinstance(item, Trace)] == [
        "hm</think>4",
        "hm</think>4",
        "raw</think>5",
    ]
    assert [item.line for item in found] == [1, 2, 3]


def test_jq_takes_arrays_whole_and_gives_several(tmp_path: Path) -> None:
    path = put(tmp_path, json.dumps([{"a": CHUNKS}], indent=1))
    (trace,) = read(path, jq=".[].a[]")
    assert isinstance(trace, Trace)
    assert trace.output_text == "hm</think>4"


def test_jq_that_fails_on_a_value_costs_that_value(tmp_path: Path) -> None:
    path = put(tmp_path, json.dumps({"a": {"b": WHOLE}}) + '\n{"a": 5}\n')
    trace, broken = read(path, jq=".a.b")
    assert isinstance(trace, Trace)
    assert isinstance(broken, BrokenLine)
    assert (broken.line, "--jq fails" in broken.reason) == (2, True)


def test_a_bad_expression_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--jq"):
        read(put(tmp_path, "{}"), jq=".a[")


@pytest.mark.parametrize("expression", ["def f: f; f", "[range(1e12)]", "last(range(1e12))"])
def test_an_expression_without_end_is_ended(expression: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jq, "_SECONDS", 1)
    with pytest.raises(InputError, match=r":1: --jq had to be stopped on this value .*; give --jq an expression that"):
        read(put(tmp_path, "{}\n{}\n"), jq=expression)


def test_an_expression_that_takes_all_memory_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jq, "_MEMORY", 256 << 20)
    with pytest.raises(InputError, match="had to be stopped on this value"):
        read(put(tmp_path, "{}"), jq="[range(1e12)]")


def test_values_are_taken_as_they_come(tmp_path: Path) -> None:
    path = put(tmp_path, "{}")
    assert len(read(path, jq='range(2000) | "a</think>b"')) == 2000
    with pytest.raises(InputError, match=":1: --jq yields more than 1000 values in a row that are no recording"):
        read(path, jq="range(1e12)")
    endless = read_traces(str(path), jq='repeat("a</think>b")')
    assert isinstance(next(endless), Trace)
    endless.close()  # type: ignore[attr-defined]


def test_a_watcher_hears_how_far_the_file_is_read(tmp_path: Path) -> None:
    path = put(tmp_path, CONTENTS["trace"] * 5000)
    seen: list[int] = []
    assert len(read(path, watch=seen.append)) == 5000
    assert seen == sorted(seen)
    assert seen[-1] == path.stat().st_size


@pytest.mark.parametrize("name", ["trace", "chunks", "sse", "response", "responses", "anthropic", "ollama", "har"])
def test_memory_does_not_grow_with_the_file(name: str, tmp_path: Path) -> None:
    one = {
        "trace": CONTENTS["trace"],
        "response": json.dumps(WHOLE) + ",\n",
        "chunks": "".join(json.dumps({**c, "id": "@"}) + "\n" for c in CHUNKS),
        "sse": CONTENTS["sse"] + "data: [DONE]\n\n",
        "har": json.dumps({"request": {}, "response": {"content": HAR_BODY}}) + ",\n",
    }.get(name) or CONTENTS[name]

    def peak(count: int) -> int:
        content = "".join(one.replace("@", str(n)) for n in range(count))
        if name in ("response", "har"):
            content = "[" + content.rstrip(",\n") + "]"
        path = put(tmp_path, '{"log": {"entries": ' + content + "}}" if name == "har" else content)
        tracemalloc.start()
        assert sum(1 for _ in read_traces(str(path))) == count
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(1)
    assert peak(2_400) < 1.3 * peak(600)


def test_what_ships_is_read() -> None:
    open_ = [item for item in read(ROOT / "traces" / "qwen3-open.jsonl") if isinstance(item, Trace)]
    assert [trace.id for trace in open_] == ["sum", "letters", "cut-short"]
    assert all(not trace.lossy and trace.deltas and trace.recorded for trace in open_)
    (leaked,) = read(ROOT / "traces" / "leaked-marker.sse")
    assert isinstance(leaked, Trace)
    assert leaked.output_text is not None
    assert "</think>" in leaked.output_text
    assert (leaked.lossy, leaked.finish_reason) == (False, "stop")


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        (
            {"message": {"content": 5}},
            "choices\\[0\\].message.content is a number, where a text or a list of parts belongs",
        ),
        ({"message": {"content": [5]}}, "message.content"),
        ({"message": {"content": "a", "reasoning": []}}, "message.reasoning is a list, where a text"),
        ({"message": {"content": "a", "tool_calls": "x"}}, "message.tool_calls is a text, where a list"),
        ({"message": {"content": "a"}, "finish_reason": 3}, "finish_reason is a number, where a text"),
        ({"delta": {"reasoning_content": {}}}, "delta.reasoning_content is an object, where a text"),
    ],
)
def test_an_answer_whose_parts_have_wrong_types_costs_itself(choice: Any, says: str, tmp_path: Path) -> None:
    bad = json.dumps({"choices": [choice]})
    with pytest.raises(InputError, match=says):
        read(put(tmp_path, bad))
    found = read(put(tmp_path, CONTENTS["trace"] + bad + "\n" + CONTENTS["trace"]))
    assert [type(item) for item in found] == [Trace, BrokenLine, Trace]


@pytest.mark.parametrize("value", ["x", [], 5])
def test_a_delta_that_is_no_object_is_not_an_empty_one(value: object, tmp_path: Path) -> None:
    chunk = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": value}]}
    with pytest.raises(InputError, match=r"choices\[0\].delta is .*, where an object belongs"):
        read(put(tmp_path, json.dumps(chunk)))


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 100_000 + "]" * 100_000, '{"a":' * 100_000])
def test_json_that_is_nested_too_deeply_is_no_plain_text(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nested too deeply"):
        read(put(tmp_path, text))


def test_a_cassette_whose_request_has_wrong_types_costs_that_interaction(tmp_path: Path) -> None:
    answer = {"body": {"string": json.dumps({"choices": [{"message": {"content": "b"}}]})}}
    asked = [{"body": json.dumps({"messages": one})} for one in ("x", [])]
    cassette = {"interactions": [{"request": one, "response": answer} for one in asked]}
    broken, found = read(put(tmp_path, json.dumps(cassette)))
    assert isinstance(broken, BrokenLine)
    assert "request.messages" in broken.reason
    assert isinstance(found, Trace)
