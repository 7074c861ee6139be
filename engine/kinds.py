"""Which server answers at an endpoint, and what is asked of each kind so that nothing of an output is lost."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from .endpoint import Endpoint

Kind = Literal["vllm", "sglang", "llama.cpp", "other"]
_OWNERS: Mapping[str, Kind] = {"vllm": "vllm", "sglang": "sglang", "llamacpp": "llama.cpp"}


@dataclass(frozen=True)
class Server:
    """What a server says of itself.

    Attributes:
        kind: whose it is; `other` where it does not tell.
        version: None where it does not tell.
        models: the names it serves; empty where it does not list them.
        parser: the `--reasoning-parser` a vLLM in development mode admits to.
        roots: where the models of some names come from, as far as it tells: a path of its own, or a hub id.
    """

    kind: Kind
    version: str | None = None
    models: tuple[str, ...] = ()
    parser: str | None = None
    roots: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        name = "OpenAI-compatible server" if self.kind == "other" else self.kind
        return f"{name} {self.version}" if self.version else name


def identify(endpoint: Endpoint) -> Server:
    """Ask a server what it is. Raises EndpointError where nothing answers, RefusedError where it wants a key."""
    listed = endpoint.get("/models", of_api=True)
    entries = _dicts(listed.get("data")) if isinstance(listed, dict) else []
    models = tuple(entry["id"] for entry in entries if isinstance(entry.get("id"), str))
    owners = [str(entry.get("owned_by")) for entry in entries]
    kind: Kind = next((_OWNERS[owner] for owner in owners if owner in _OWNERS), "other")
    parser: str | None = None
    version: str | None = None
    if kind in ("vllm", "other"):
        version = _text(endpoint.get("/version"), "version")
        kind = "vllm" if version is not None else kind
    if kind == "vllm":
        parser = _vllm_parser(endpoint.get("/server_info"))
    elif kind == "sglang":
        version = _text(endpoint.get("/server_info") or endpoint.get("/get_server_info"), "version")
    elif kind in ("llama.cpp", "other"):
        properties = endpoint.get("/props")
        version = _text(properties, "build_info")
        if isinstance(properties, dict) and "default_generation_settings" in properties:
            kind = "llama.cpp"
    roots = {entry["id"]: entry["root"] for entry in entries if isinstance(entry.get("root"), str)}
    return Server(kind, version, models, parser, {name: root for name, root in roots.items() if name in models})


def extras(server: Server, *, stream: bool) -> tuple[Mapping[str, Any], ...]:
    """What is added to a chat completion's body so that its token ids come back; the last is always nothing.

    Each is tried where the server refuses the one before. Sources: vLLM 0.32.0 and 0.33.0,
    entrypoints/openai/chat_completion/protocol.py; sglang, srt/entrypoints/openai/protocol.py, which refuses them in
    streams; llama.cpp, tools/server/README.md (log probabilities carry the id).
    """
    if server.kind == "vllm" and _older(server.version, (0, 10, 2)):
        return {"logprobs": True, "return_tokens_as_token_ids": True}, {}
    if server.kind == "vllm":
        return {"return_token_ids": True, "return_prompt_text": True}, {"return_token_ids": True}, {}
    if server.kind == "sglang":
        wanted = {"return_prompt_token_ids": True, "logprobs": True, "return_meta_info": True}
        return ({},) if stream else ({"return_token_ids": True, **wanted}, wanted, {})
    if server.kind == "llama.cpp":
        return {"logprobs": True, "top_logprobs": 1}, {}
    return {"return_token_ids": True}, {}


def with_ids(value: Mapping[str, Any]) -> dict[str, Any]:
    """A chunk or response with its token ids where vLLM puts them, from wherever another server did."""
    value = dict(value)
    choices: list[Any] = []
    for choice in value.get("choices") or []:
        if not isinstance(choice, dict):
            choices.append(choice)
            continue
        ids = choice.get("token_ids")
        ids = ids if isinstance(ids, list) else _ids_of_logprobs(choice)
        stop = choice.get("stop_reason", choice.get("matched_stop"))
        prompt = choice.get("prompt_token_ids")
        if isinstance(prompt, list) and not value.get("prompt_token_ids"):
            value["prompt_token_ids"] = prompt
        kept = {key: one for key, one in choice.items() if key not in ("logprobs", "meta_info", "matched_stop")}
        choices.append({**kept, "token_ids": ids, "stop_reason": stop})
    return {**value, "choices": choices}


def prompt_of(endpoint: Endpoint, server: Server, model: str, body: Mapping[str, Any]) -> tuple[str | None, Any]:
    """(text, token ids) of a request's prompt as the server itself makes it, None what it does not give."""
    asked = {key: body[key] for key in ("messages", "tools", "chat_template_kwargs") if body.get(key) is not None}
    if server.kind == "llama.cpp":
        text = _text(endpoint.ask("/apply-template", {**asked, **_only(body, "reasoning_effort")}), "prompt")
        if text is None:
            return None, None
        cut = endpoint.ask("/tokenize", {"content": text, "add_special": True, "parse_special": True})
        return text, _ids(cut, "tokens")
    if server.kind == "sglang":
        asked |= _only(body, "reasoning_effort", "continue_final_message")
    elif server.kind == "vllm":
        asked = chat_to_tokenize(body)
    else:
        return None, None
    return None, _ids(endpoint.ask("/tokenize", {"model": model, **asked}), "tokens")


def chat_to_tokenize(body: Mapping[str, Any]) -> dict[str, Any]:
    """The body, without its model, that has vLLM's `/tokenize` make the prompt of a chat completion.

    It knows no `reasoning_effort`, so what the effort means for the template's kwargs is worked out here; the server's
    own defaults are put in over there (vLLM 0.33.0, entrypoints/serve/tokenize/serving.py).
    """
    from ..prompts.kwargs import effective_kwargs

    effort = body.get("reasoning_effort")
    own = body.get("chat_template_kwargs")
    kwargs = effective_kwargs(request_kwargs=own, reasoning_effort=effort if isinstance(effort, str) else None)
    asked = _only(body, "messages", "tools", "add_generation_prompt", "continue_final_message", "add_special_tokens")
    return {**asked, "chat_template_kwargs": kwargs}


def text_of(endpoint: Endpoint, server: Server, model: str, ids: Sequence[int]) -> str | None:
    """The text of token ids with every special token shown, as the server's own tokenizer gives it."""
    if server.kind == "other" or not ids:
        return None
    # vLLM and llama.cpp show special tokens anyway and pass over what they do not know.
    value = endpoint.ask("/detokenize", {"model": model, "tokens": list(ids), "skip_special_tokens": False})
    return next((text for key in ("prompt", "text", "content") if (text := _text(value, key)) is not None), None)


def _older(version: str | None, than: tuple[int, ...]) -> bool:
    numbers = re.match(r"(\d+)\.(\d+)\.(\d+)", version or "")
    return numbers is not None and tuple(map(int, numbers.groups())) < than


def _vllm_parser(value: Any) -> str | None:
    config = str(value.get("vllm_config")) if isinstance(value, dict) else ""
    found = re.search(r"reasoning_parser='([\w.-]+)'", config)
    return found[1] if found else None


def _ids_of_logprobs(choice: Mapping[str, Any]) -> list[int] | None:
    meta = choice.get("meta_info")
    rows = meta.get("output_token_logprobs") if isinstance(meta, dict) else None
    if isinstance(rows, list) and rows:
        ids = [row[1] for row in rows if isinstance(row, list) and len(row) > 1 and type(row[1]) is int]
        return ids if len(ids) == len(rows) else None
    logprobs = choice.get("logprobs")
    entries = _dicts(logprobs.get("content")) if isinstance(logprobs, dict) else []
    ids = [entry["id"] for entry in entries if type(entry.get("id")) is int]
    if not ids:
        marked = [re.fullmatch(r"token_id:(\d+)", str(entry.get("token"))) for entry in entries]
        ids = [int(one[1]) for one in marked if one is not None]
    return ids if ids and len(ids) == len(entries) else None


def _only(body: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: body[key] for key in keys if body.get(key) is not None}


def _text(value: Any, key: str) -> str | None:
    one = value.get(key) if isinstance(value, dict) else None
    return one if isinstance(one, str) else None


def _ids(value: Any, key: str) -> list[int] | None:
    ids = value.get(key) if isinstance(value, dict) else None
    return ids if isinstance(ids, list) and ids and all(type(one) is int for one in ids) else None


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
