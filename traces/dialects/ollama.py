"""Ollama's own API: NDJSON lines of `/api/chat` (`message.content`, `message.thinking`) and `/api/generate`.

Source: https://github.com/ollama/ollama/blob/main/docs/api.md
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .base import Dialect, Memory, Part, Said, mapping, objects, set_keys, text_of, tokens

_REASONS = {"load": "stop", "unload": "stop"}


def _part(value: Mapping[str, Any]) -> Part | None:
    if not isinstance(value.get("done"), bool):
        return None
    return "event" if isinstance(value.get("message"), dict) or isinstance(value.get("response"), str) else None


def _said(value: Mapping[str, Any], memory: Memory) -> Said:
    said = Said(model=text_of(value.get("model")), ends=value["done"])
    memory["model"] = value.get("model")
    message = mapping(value.get("message"))
    if message:
        said.reason(message.get("thinking"), "message.thinking")
        said.answer(message.get("content"))
    else:
        said.reason(value.get("thinking"), "thinking")
        said.answer(value.get("response"))
    for call in objects(message.get("tool_calls")):
        function = mapping(call.get("function"))
        index = memory["calls"] = memory.get("calls", -1) + 1
        said.call(index, id=call.get("id"), name=function.get("name"), arguments=function.get("arguments"))
    if said.ends:
        reason = value.get("done_reason")
        said.finish_reason = _REASONS.get(str(reason), str(reason)) if reason else "stop"
        if said.finish_reason == "stop" and "calls" in memory:
            said.finish_reason = "tool_calls"
        counts = {key: one for key, one in value.items() if key.endswith(("_count", "_duration"))}
        said.usage = tokens(counts, value.get("prompt_eval_count"), value.get("eval_count"))
    return said


def _begins(value: Mapping[str, Any]) -> bool:
    return False  # no line says so


def _belongs(value: Mapping[str, Any], memory: Memory) -> int:
    """Lines name no response: those of one model are taken to be of one."""
    return int(value.get("model") == memory.get("model"))


def _request(body: Mapping[str, Any]) -> dict[str, Any]:
    options = mapping(body.get("options"))
    think = body.get("think")
    kwargs = {"enable_thinking": think} if isinstance(think, bool) else None
    messages = body.get("messages")
    if messages is None and isinstance(body.get("prompt"), str) and not body.get("raw"):
        system = [{"role": "system", "content": body["system"]}] if isinstance(body.get("system"), str) else []
        messages = [*system, {"role": "user", "content": body["prompt"]}]
    kept = {key: one for key, one in body.items() if key != "messages"}
    return {
        **kept,
        **set_keys(
            messages=[_message(one) for one in objects(messages)] if messages is not None else None,
            max_tokens=options.get("num_predict") if isinstance(options.get("num_predict"), int) else None,
            stop=options.get("stop"),
            reasoning_effort=text_of(think),
            chat_template_kwargs=kwargs,
        ),
    }


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    thinking = text_of(message.get("thinking"))
    return {**{key: one for key, one in message.items() if key != "thinking"}, **set_keys(reasoning=thinking)}


DIALECT = Dialect("ollama", "Ollama's own NDJSON", _part, _said, _begins, _belongs, _request, strict=True)
