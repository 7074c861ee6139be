"""Servers of every kind, as far as a client can tell: on a loopback port, in a thread, saying what a test wants."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WORDS = [(5, "Two"), (6, " and"), (7, " two"), (1, "</think>"), (8, "It"), (9, " is 4"), (2, "")]
"""The output of every fake server: ids and texts; 1 ends the thought, 2 ends the run."""
TEXTS = {0: "<|user|>", 3: "hi", 4: "<think>", 2: "<|end|>"} | {i: text for i, text in WORDS if i != 2}
PROMPT = [0, 3, 4]
PROMPT_TEXT = "<|user|>hi<think>"
OUTPUT = [i for i, _ in WORDS]
RAW = "Two and two</think>It is 4"

Answer = Callable[["Asked"], None]


class Asked:
    """One request, and the ways to answer it."""

    def __init__(self, handler: BaseHTTPRequestHandler, body: Any) -> None:
        self._handler = handler
        self.body = body
        self.headers = dict(handler.headers)
        self.path = handler.path

    def json(self, value: Any, status: int = 200) -> None:
        self.raw(json.dumps(value), "application/json", status)

    def raw(self, text: str, kind: str, status: int = 200, **headers: str) -> None:
        data = text.encode()
        self._handler.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **headers}.items():
            self._handler.send_header(name, value)
        self._handler.end_headers()
        self._handler.wfile.write(data)

    def events(self, values: Iterable[Any], *, done: bool = True, length: int | None = None) -> None:
        """An event stream; with a `length` beyond what is sent, the connection ends too early."""
        self._handler.send_response(200)
        self._handler.send_header("Content-Type", "text/event-stream")
        if length is not None:
            self._handler.send_header("Content-Length", str(length))
        self._handler.end_headers()
        for value in values:
            text = value if isinstance(value, str) else f"data: {json.dumps(value)}\n\n"
            self._handler.wfile.write(text.encode())
            self._handler.wfile.flush()
        if done:
            self._handler.wfile.write(b"data: [DONE]\n\n")
        self._handler.close_connection = True


class FakeServer:
    """Answers by path; a path without an answer is a 404. A context manager.

    Attributes:
        asked: every request with a body, in order.
    """

    def __init__(self, routes: dict[str, Answer], context: ssl.SSLContext | None = None) -> None:
        self.asked: list[Asked] = []
        self.routes = dict(routes)
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # else a body waits for the client to acknowledge the head

            def _answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                asked = Asked(self, body)
                if body is not None:
                    server.asked.append(asked)
                answer = server.routes.get(self.path)
                if answer is None:
                    asked.json({"detail": "Not Found"}, 404)
                else:
                    answer(asked)

            do_GET = do_POST = _answer

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        if context is not None:
            self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def __enter__(self) -> FakeServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def close_port(self) -> None:
        """Let nobody connect any more."""
        self._http.socket.close()

    @property
    def chats(self) -> list[dict[str, Any]]:
        """The bodies of the chat completions, in order."""
        return [asked.body for asked in self.asked if asked.path.endswith("/chat/completions")]


def models(owner: str, *names: str) -> Answer:
    return lambda asked: asked.json({"object": "list", "data": [{"id": name, "owned_by": owner} for name in names]})


def message(asked: Asked, *, field: str | None, **choice: Any) -> dict[str, Any]:
    """A whole answer: split, its reasoning under `field`, or raw where that is None."""
    said: dict[str, Any] = {"role": "assistant", "content": RAW}
    if field is not None:
        said |= {field: "Two and two", "content": "It is 4"}
    return {
        "id": "chat-whole",
        "object": "chat.completion",
        "model": asked.body["model"],
        "choices": [{"index": 0, "message": said, "finish_reason": "stop", **choice}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 7, "total_tokens": 10},
    }


def chunks(
    asked: Asked, *, field: str | None, per_token: Callable[[int, str], dict[str, Any]], **first: Any
) -> list[dict[str, Any]]:
    """The chunks of a streamed answer, one for each token, with what `per_token` adds to its choice."""
    found: list[dict[str, Any]] = []
    thinking = True

    def chunk(delta: dict[str, Any], **choice: Any) -> dict[str, Any]:
        return {
            "id": "chat-stream",
            "object": "chat.completion.chunk",
            "model": asked.body["model"],
            "choices": [{"index": 0, "delta": delta, "finish_reason": None, **choice}],
        }

    found.append(chunk({"role": "assistant", "content": ""}) | first)
    for token, text in WORDS:
        delta = {"content": text}
        if field is not None and token == 1:
            delta, thinking = {}, False
        elif field is not None and thinking:
            delta = {field: text}
        last = {"finish_reason": "stop"} if token == 2 else {}
        found.append(chunk(delta, **per_token(token, text), **last))
    if (asked.body.get("stream_options") or {}).get("include_usage"):
        usage = {"prompt_tokens": 3, "completion_tokens": 7, "total_tokens": 10}
        found.append({"id": "chat-stream", "object": "chat.completion.chunk", "choices": [], "usage": usage})
    return found


def decode(tokens: list[int]) -> str:
    return "".join(TEXTS[token] for token in tokens)


def vllm(*, parser: bool = True, version: str = "0.33.0") -> FakeServer:
    """As vLLM answers: `return_token_ids`, the prompt with it, and its text where that is asked for."""
    field = "reasoning" if parser else None

    def chat(asked: Asked) -> None:
        with_ids = asked.body.get("return_token_ids") is True and version != "0.9.1"
        prompt: dict[str, Any] = {"prompt_token_ids": PROMPT} if with_ids else {}
        if with_ids and asked.body.get("return_prompt_text"):
            prompt["prompt_text"] = PROMPT_TEXT
        as_texts = asked.body.get("return_tokens_as_token_ids") and asked.body.get("logprobs")

        def extra(token: int, _: str) -> dict[str, Any]:
            if as_texts:
                return {"logprobs": {"content": [{"token": f"token_id:{token}", "logprob": 0}]}}
            return {"token_ids": [token]} if with_ids else {}

        if asked.body["stream"]:
            asked.events(chunks(asked, field=field, per_token=extra, **prompt))
            return
        rows = {"content": [{"token": f"token_id:{token}", "logprob": 0} for token in OUTPUT]}
        choice = {"logprobs": rows} if as_texts else {"token_ids": OUTPUT} if with_ids else {}
        asked.json(message(asked, field=field, **choice) | prompt)

    return FakeServer(
        {
            "/v1/models": models("vllm", "lab"),
            "/version": lambda asked: asked.json({"version": version}),
            "/v1/chat/completions": chat,
            "/tokenize": lambda asked: asked.json({"tokens": PROMPT, "count": 3, "max_model_len": 99}),
            "/detokenize": lambda asked: asked.json({"prompt": decode(asked.body["tokens"])}),
        }
    )


def sglang() -> FakeServer:
    """As SGLang answers: ids in whole answers only, `reasoning_content`, `matched_stop`."""

    def chat(asked: Asked) -> None:
        if asked.body["stream"]:
            if asked.body.get("return_token_ids") or asked.body.get("return_prompt_token_ids"):
                asked.json({"message": "not supported with streaming", "code": 400}, 400)
                return
            asked.events(chunks(asked, field="reasoning_content", per_token=lambda *_: {}))
            return
        extra: dict[str, Any] = {"matched_stop": 2}
        if asked.body.get("return_meta_info") and asked.body.get("logprobs"):
            extra["meta_info"] = {"output_token_logprobs": [[0.0, token, None] for token in OUTPUT]}
        if asked.body.get("return_prompt_token_ids"):
            extra["prompt_token_ids"] = PROMPT
        asked.json(message(asked, field="reasoning_content", **extra))

    return FakeServer(
        {
            "/v1/models": models("sglang", "lab"),
            "/server_info": lambda asked: asked.json({"version": "0.5.13", "reasoning_parser": "qwen3"}),
            "/v1/chat/completions": chat,
            "/tokenize": lambda asked: asked.json({"tokens": PROMPT, "count": 3}),
            "/detokenize": lambda asked: asked.json({"text": decode(asked.body["tokens"])}),
        }
    )


def llama_cpp(*, stop_id: bool) -> FakeServer:
    """As llama-server answers: ids inside log probabilities, the stop token's perhaps; paths of its own for tokens."""
    sent = OUTPUT if stop_id else OUTPUT[:-1]

    def chat(asked: Asked) -> None:
        def logprobs(tokens: list[int]) -> dict[str, Any]:
            if not asked.body.get("logprobs"):
                return {}
            return {"logprobs": {"content": [{"id": t, "token": TEXTS[t], "logprob": 0.0} for t in tokens]}}

        field = "reasoning_content"
        if asked.body["stream"]:
            per_token = lambda token, _: logprobs([token]) if token in sent else {}  # noqa: E731
            asked.events(chunks(asked, field=field, per_token=per_token))
        else:
            asked.json(message(asked, field=field, **logprobs(sent)))

    return FakeServer(
        {
            "/v1/models": models("llamacpp", "lab"),
            "/props": lambda asked: asked.json({"default_generation_settings": {}, "build_info": "b8681-Debian"}),
            "/v1/chat/completions": chat,
            "/apply-template": lambda asked: asked.json({"prompt": PROMPT_TEXT}),
            "/tokenize": lambda asked: asked.json({"tokens": PROMPT if asked.body["parse_special"] else []}),
            "/detokenize": lambda asked: asked.json({"content": decode(asked.body["tokens"])}),
        }
    )


def plain(*, field: str | None = "reasoning_content", strict: bool = False) -> FakeServer:
    """As a hosted service answers: nothing but the standard; a `strict` one refuses what it does not know."""

    def chat(asked: Asked) -> None:
        if strict and "return_token_ids" in asked.body:
            asked.json({"error": {"message": "Unrecognized request argument supplied: return_token_ids"}}, 400)
        elif asked.body["stream"]:
            asked.events(chunks(asked, field=field, per_token=lambda *_: {}))
        else:
            asked.json(message(asked, field=field))

    return FakeServer({"/v1/models": models("someone", "lab", "other"), "/v1/chat/completions": chat})
