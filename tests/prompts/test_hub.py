"""Hub ids, against a server on the loopback that speaks the part of the hub's file API which a snapshot needs."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from reasonctl.errors import InputError
from reasonctl.fixtures import model_path
from reasonctl.prompts.model import load_model

COMMIT = "0123456789abcdef0123456789abcdef01234567"
OTHER = "fedcba9876543210fedcba9876543210fedcba98"


class Hub(ThreadingHTTPServer):
    """Serves one repository, `lab/model`, at two revisions; counts what is asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        small = {file.name: file.read_bytes() for file in model_path("qwen3").iterdir()}
        weights = {"model.safetensors": b"w" * 4096, "pytorch_model.bin": b"w" * 4096}
        self.revisions = {
            "main": (COMMIT, {**small, **weights}),
            COMMIT: (COMMIT, {**small, **weights}),
            "v2": (OTHER, {**small, "chat_template.jinja": b"second"}),
            OTHER: (OTHER, {**small, "chat_template.jinja": b"second"}),
        }
        self.asked: list[str] = []
        self.up = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._serve(body=True)

    def do_HEAD(self) -> None:
        self._serve(body=False)

    def _serve(self, *, body: bool) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        path = self.path.split("?")[0]
        if not self.server.up:
            self._answer(503, b"down for repairs", body=body)
        elif path.startswith("/api/models/lab/gated"):
            self._answer(403, b"{}", {"X-Error-Code": "GatedRepo"}, body=body)
        elif not path.startswith(("/api/models/lab/model", "/lab/model/")):
            self._answer(401, b"{}", {"X-Error-Code": "RepoNotFound"}, body=body)
        elif path.startswith("/api/"):
            self._listing(path, body)
        else:
            _, _, _, _, revision, name = path.split("/", 5)
            self._file(revision, name, body)

    def _listing(self, path: str, body: bool) -> None:
        parts = path.removeprefix("/api/models/lab/model").strip("/").split("/")
        revision = parts[1] if len(parts) > 1 else "main"
        if revision not in self.server.revisions:
            self._answer(404, b"{}", {"X-Error-Code": "RevisionNotFound"}, body=body)
            return
        commit, files = self.server.revisions[revision]
        if parts[0] == "tree":
            entries = [
                {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
                for name, data in files.items()
            ]
            self._answer(200, json.dumps(entries).encode(), body=body)
            return
        siblings = [{"rfilename": name} for name in files]
        info = {"id": "lab/model", "modelId": "lab/model", "sha": commit, "siblings": siblings}
        self._answer(200, json.dumps(info).encode(), body=body)

    def _file(self, revision: str, name: str, body: bool) -> None:
        commit, files = self.server.revisions[revision]
        if name not in files:
            self._answer(404, b"", {"X-Error-Code": "EntryNotFound"}, body=body)
            return
        data = files[name]
        tag = f'"{hashlib.sha1(data).hexdigest()}"'
        self._answer(200, data, {"ETag": tag, "X-Repo-Commit": commit, "X-Linked-Size": str(len(data))}, body=body)

    def _answer(self, status: int, data: bytes, headers: dict[str, str] | None = None, *, body: bool) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    server = Hub()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_hub_id_is_read_without_its_weights(hub: Hub) -> None:
    model = load_model("lab/model")
    own = load_model("fixture:qwen3")
    assert (model.kind, model.source, model.revision) == ("hub", "lab/model", COMMIT)
    assert model.template is not None
    assert own.template is not None
    assert model.template.text == own.template.text
    assert model.tokenizer is not None
    assert own.tokenizer is not None
    assert model.tokenizer.vocab == own.tokenizer.vocab
    assert model.eos_ids == own.eos_ids
    assert not any("safetensors" in line or ".bin" in line for line in hub.asked)


def test_a_revision(hub: Hub) -> None:
    model = load_model("lab/model@v2")
    assert model.revision == OTHER
    assert model.template is not None
    assert model.template.text == "second"


def test_what_was_fetched_once_is_read_from_the_cache(hub: Hub) -> None:
    load_model(f"lab/model@{COMMIT}")
    fetched = [line for line in hub.asked if line.startswith("GET /lab/model/")]
    assert len(fetched) == 5
    hub.asked.clear()
    assert load_model(f"lab/model@{COMMIT}").revision == COMMIT
    assert not [line for line in hub.asked if line.startswith("GET /lab/model/")]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("lab/missing", "neither a file here nor a repository on the hub"),
        ("lab/gated", "accept this model's terms first"),
        ("lab/model@v9", "the hub has no revision v9"),
    ],
)
def test_what_the_hub_does_not_hand_over_is_exit_2_with_the_reason(hub: Hub, spec: str, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        load_model(spec)
    assert caught.value.exit_code == 2
    assert str(caught.value).startswith(f"{spec}: ")
    assert reason in str(caught.value)


def test_without_a_network_it_is_exit_2_with_the_reason(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(InputError) as caught:
        load_model("lab/model")
    assert caught.value.exit_code == 2
    assert "not in the cache, and the hub cannot be reached (ConnectError" in str(caught.value)


def test_without_a_network_the_cache_still_serves(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    load_model("lab/model")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert load_model("lab/model").revision == COMMIT
