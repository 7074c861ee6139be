"""A server that serves a lab model as vLLM does: its template, its counting, its parser. And proxies that spoil it."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from reasonctl.budgets.counting import Rule
from reasonctl.engine.lab import build_lab
from reasonctl.engine.speech import Speaker
from reasonctl.parsers import Target
from reasonctl.parsers.run import Output, run_parser
from reasonctl.prompts.kwargs import effective_kwargs
from reasonctl.prompts.messages import as_handed_over
from reasonctl.prompts.model import load_model
from reasonctl.prompts.render import Limits, RenderRequest
from reasonctl.prompts.rendering import renderers

from .fake_server import Asked, FakeServer, models

NOT_AN_INTEGER = "`thinking_token_budget` must be a non-negative integer or -1 for unlimited. (parameter=...)"
Change = Callable[[dict[str, Any]], dict[str, Any]]


class RefusedByTemplateError(Exception):
    """The template makes no prompt of a request."""


class LabServer:
    """What answers. `change` edits each request as a server does that has a mind of its own.

    `parser` runs in place of the family's, `spells` says whether `/tokenize` tells how tokens are spelled, `special`
    whether markers are special tokens.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        *,
        rule: Rule = "vllm-v1",
        change: Change | None = None,
        version: str = "0.32.0",
        parser: str | None = None,
        spells: bool = True,
        special: bool = False,
    ) -> None:
        family = build_lab(folder, name)
        if special:
            _flag_markers(folder, (*family.start, *family.end))
        self._speaker = Speaker(family, 40)
        self._family = replace(family, parser=parser) if parser is not None else family
        self._spells = spells
        self._model = load_model(str(folder))
        self._renderers = renderers(self._model, limits=Limits(template_seconds=3600.0))
        self._lock = threading.Lock()
        self._rule = rule
        self._change = change or (lambda body: body)
        self._version = version

    def serve(self) -> FakeServer:
        return FakeServer(
            {
                "/v1/models": models("vllm", "lab"),
                "/version": lambda asked: asked.json({"version": self._version}),
                "/v1/chat/completions": self._chat,
                "/v1/completions": self._complete,
                "/v1/messages": self._message,
                "/tokenize": self._tokenize,
                "/detokenize": self._detokenize,
            }
        )

    def close(self) -> None:
        for each in self._renderers.values():
            each.close()

    def _chat(self, asked: Asked) -> None:
        body = self._change(asked.body)
        if self._refuses(asked, body):
            return
        prompt = self._prompt(body)
        ids, finish, split = self._said(body, prompt)
        usage = {"completion_tokens": len(ids), "prompt_tokens": len(prompt)}
        usage |= {"completion_tokens_details": {"reasoning_tokens": split.reasoning_tokens}} if split else {}
        if not body.get("stream"):
            reasoning, content = (
                (split.full.reasoning, split.full.content) if split else (None, self._text(ids, finish))
            )
            message = {"role": "assistant", "content": content, "reasoning": reasoning}
            choice = {"index": 0, "message": message, "finish_reason": finish, "token_ids": ids, "stop_reason": None}
            asked.json({"id": "c", "choices": [choice], "usage": usage, "prompt_token_ids": prompt})
            return
        mode = split.stream[0] if split else None
        parts: list[tuple[dict[str, Any], list[int]]] = [({"role": "assistant", "content": ""}, [])]
        parts.append(({"reasoning": mode.reasoning} if mode and mode.reasoning else {}, ids))
        parts.append(({"content": mode.content if mode else self._text(ids, finish)}, []))
        chunks = [
            {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": None, "token_ids": some}]}
            for delta, some in parts
        ]
        chunks[0]["prompt_token_ids"] = prompt
        chunks[-1]["choices"][0]["finish_reason"] = finish  # type: ignore[index]
        asked.events([*chunks, {"id": "c", "choices": [], "usage": usage}])

    def _tokenize(self, asked: Asked) -> None:
        body, tokenizer = asked.body, self._model.tokenizer
        assert tokenizer is not None
        try:
            ids = self._prompt(body) if "messages" in body else tokenizer.encode(body["prompt"])
        except RefusedByTemplateError as error:
            asked.json({"error": {"message": str(error), "type": "BadRequestError", "code": 400}}, 400)
            return
        spelled = {one: text for text, one in tokenizer.vocab.items()}
        strings = [spelled[one] for one in ids] if body.get("return_token_strs") and self._spells else None
        asked.json({"tokens": ids, "token_strs": strings, "count": len(ids), "max_model_len": 4096})

    def _detokenize(self, asked: Asked) -> None:
        assert self._model.tokenizer is not None
        asked.json({"prompt": self._model.tokenizer.decode(asked.body["tokens"])})

    def _complete(self, asked: Asked) -> None:
        body = asked.body
        ids, finish, _ = self._said(body, body["prompt"])
        text = self._text(ids, finish)
        choice = {
            "index": 0,
            "text": text,
            "finish_reason": finish,
            "token_ids": ids,
            "prompt_token_ids": body["prompt"],
        }
        value = {"id": "x", "object": "text_completion", "choices": [choice], "usage": {"completion_tokens": len(ids)}}
        if body.get("stream"):
            asked.events([value])
        else:
            asked.json(value)

    def _message(self, asked: Asked) -> None:
        budget = asked.body["thinking"]["budget_tokens"]
        if budget < 1024:
            asked.json({"type": "error", "error": {"message": "Input should be greater than or equal to 1024"}}, 400)
            return
        body = {**asked.body, "thinking_token_budget": budget}
        _, finish, split = self._said(body, self._prompt(body))
        assert split is not None
        parts = [{"type": "thinking", "thinking": split.full.reasoning}] if split.full.reasoning else []
        parts += [{"type": "text", "text": split.full.content}] if split.full.content else []
        stop = {"stop": "end_turn", "length": "max_tokens"}[finish]
        asked.json({"id": "m", "type": "message", "content": parts, "stop_reason": stop})

    def _refuses(self, asked: Asked, body: dict[str, Any]) -> bool:
        budget = body.get("thinking_token_budget")
        text = None
        if budget is not None and (type(budget) is not int or budget < -1):
            text = NOT_AN_INTEGER
        elif budget is not None and self._family.parser is None:
            text = "thinking_token_budget is set but reasoning_config is not configured. Please set --reasoning-parser"
        if text is not None:
            asked.json({"error": {"message": text, "code": 400}}, 400)
        return text is not None

    def _prompt(self, body: dict[str, Any]) -> list[int]:
        request = RenderRequest(
            as_handed_over(body["messages"]),
            kwargs=_kwargs(body),
            add_generation_prompt=body.get("add_generation_prompt", True),
            continue_final_message=body.get("continue_final_message", False),
        )
        with self._lock:  # one process renders for all threads
            rendered = self._renderers[False].render(request)
        if rendered.text is None:
            raise RefusedByTemplateError(rendered.error)
        assert self._model.tokenizer is not None
        return self._model.tokenizer.encode(rendered.text)

    def _said(self, body: dict[str, Any], prompt: list[int]) -> tuple[list[int], str, Any]:
        budget = body.get("thinking_token_budget")
        said = self._speaker.say(prompt, rule=self._rule, budget=budget, max_tokens=body["max_tokens"])
        assert self._model.tokenizer is not None
        split = None
        if self._family.parser is not None:
            stop = frozenset((self._speaker.eos,)) if said.finish_reason == "stop" else frozenset()
            output = Output(self._model.tokenizer, ids=said.ids, prompt_ids=prompt, stop_ids=stop)
            split = run_parser(
                self._family.parser,
                self._model.tokenizer,
                _kwargs(body),
                output,
                chunkings=("token",),
                request_kwargs=body.get("chat_template_kwargs") or {},
                target=Target("vllm", (0, 32, 0)),
            )
        return list(said.ids), said.finish_reason, split

    def _text(self, ids: list[int], finish: str) -> str:
        assert self._model.tokenizer is not None
        return self._model.tokenizer.decode(ids[:-1] if finish == "stop" else ids, skip_special_tokens=True)


def _kwargs(body: dict[str, Any]) -> dict[str, Any]:
    return effective_kwargs(request_kwargs=body.get("chat_template_kwargs"))


def _flag_markers(folder: Path, markers: Collection[str]) -> None:
    """Make a model's markers special tokens, which decoding leaves out."""
    value = json.loads((folder / "tokenizer.json").read_text())
    for token in value["added_tokens"]:
        token["special"] = token["special"] or token["content"] in markers
    (folder / "tokenizer.json").write_text(json.dumps(value))


def proxy(url: str, *, request: Change = lambda body: body, answer: Change = lambda value: value) -> FakeServer:
    """Hands requests on to a server and its answers back, each changed on the way; streams value by value."""

    def forward(asked: Asked) -> None:
        data = json.dumps(request(asked.body)).encode() if asked.body is not None else None
        sent = urllib.request.Request(url + asked.path, data=data, headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(sent, timeout=60) as got:
                kind, text = got.headers["Content-Type"], got.read().decode()
        except urllib.error.HTTPError as error:
            asked.raw(error.read().decode(), "application/json", error.code)
            return
        if "event-stream" in kind:
            asked.events([answer(value) for value in _values(text)])
        else:
            asked.json(answer(json.loads(text)))

    chat = ("/v1/chat/completions", "/v1/completions", "/v1/messages")
    return FakeServer(dict.fromkeys(("/v1/models", "/version", "/tokenize", "/detokenize", *chat), forward))


def _values(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


def without_budget(body: dict[str, Any]) -> dict[str, Any]:
    """The request as a proxy passes it on that knows no such field."""
    return {key: value for key, value in body.items() if key not in ("thinking_token_budget", "thinking")}


def swallowing(end: int) -> Change:
    """Answers without the end marker's token, as something makes them that takes it for markup."""

    def change(value: dict[str, Any]) -> dict[str, Any]:
        for choice in value.get("choices") or ():
            if choice.get("token_ids"):
                choice["token_ids"] = [token for token in choice["token_ids"] if token != end]
        return value

    return change


def editing(value: dict[str, Any]) -> dict[str, Any]:
    """Answers whose content something has edited, tokens and all else as they were."""
    for choice in value.get("choices") or ():
        for key in ("message", "delta"):
            message = choice.get(key)
            if isinstance(message, dict) and message.get("content"):
                message["content"] = message["content"].lstrip().replace("four", "4")
    return value


def renaming(value: dict[str, Any]) -> dict[str, Any]:
    """Answers whose reasoning comes under the old name."""
    for choice in value.get("choices") or ():
        for key in ("message", "delta"):
            message = choice.get(key)
            if isinstance(message, dict) and "reasoning" in message:
                message["reasoning_content"] = message.pop("reasoning")
    return value
