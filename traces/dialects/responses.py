"""The Responses API: `response.*` events and whole responses, of OpenAI, vLLM, LM Studio and those that follow them.

Source: vLLM 0.33.0 vllm/entrypoints/openai/responses/protocol.py; https://platform.openai.com/docs/api-reference/responses
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .base import Dialect, Memory, Part, Said, function_tool, mapping, objects, set_keys, text_of, tokens

_ITEMS = frozenset(("message", "reasoning", "function_call", "custom_tool_call", "mcp_call", "web_search_call"))
_REASONS = {"max_output_tokens": "length", "max_tokens": "length", "content_filter": "content_filter"}
_LAST = frozenset(("response.completed", "response.incomplete", "response.failed", "response.done"))
_FIRST = frozenset(("response.created", "response.queued"))
_TEXT = frozenset(("response.reasoning_text.delta", "response.reasoning.delta"))
_SUMMARY = frozenset(("response.reasoning_summary_text.delta", "response.reasoning_summary.delta"))
_ARGUMENTS = frozenset(("response.function_call_arguments.delta", "response.custom_tool_call_input.delta"))


def _part(value: Mapping[str, Any]) -> Part | None:
    kind = value.get("type")
    if isinstance(kind, str) and kind.startswith("response."):
        return "event"
    if kind == "error" and "sequence_number" in value:
        return "event"
    output = value.get("output")
    if not isinstance(output, list) or "choices" in value:
        return None
    if value.get("object") == "response":
        return "whole"
    items = [text_of(one.get("type")) for one in objects(output)]
    return "whole" if items and len(items) == len(output) and _ITEMS.issuperset(items) else None


def _said(value: Mapping[str, Any], memory: Memory) -> Said:
    kind = value.get("type")
    if not isinstance(kind, str) or "output" in value:
        return _whole(value)
    number = value.get("sequence_number")
    if isinstance(number, int):
        memory["next"] = number + 1
    if kind == "error":
        return Said(error=_error(value.get("error") or value))
    response = value.get("response")
    if isinstance(response, dict):
        said = _whole(response)
        said.ends, said.restated = kind in _LAST, True
        memory["id"] = said.id
        if not said.ends:
            said.finish_reason = None
        elif said.finish_reason == "stop" and memory.get("called"):
            said.finish_reason = "tool_calls"
        return said
    said = Said()
    _add_event(said, kind, value, memory)
    return said


def _add_event(said: Said, kind: str, value: Mapping[str, Any], memory: Memory) -> None:
    items = memory.setdefault("items", {})
    item = mapping(value.get("item"))
    if kind == "response.output_item.added":
        if isinstance(item.get("id"), str):
            items[item["id"]] = len(items)
        if str(item.get("type")).endswith("_call"):
            memory["called"] = True
            said.call(_index(value, memory), id=item.get("call_id"), name=item.get("name"))
    elif kind in _TEXT:
        memory["reasoned"] = True
        said.reason(value.get("delta"), "response.reasoning_text")
    elif kind in _SUMMARY:
        if not memory.get("reasoned"):
            said.reason(value.get("delta"), "response.reasoning_summary_text")
    elif kind in ("response.output_text.delta", "response.refusal.delta"):
        said.answer(value.get("delta"))
    elif kind in _ARGUMENTS:
        said.call(_index(value, memory), arguments=value.get("delta"))
    elif kind == "response.reasoning_summary_part.added":
        if memory.get("summaries") and not memory.get("reasoned"):
            said.reason("\n\n", "response.reasoning_summary_text")
        memory["summaries"] = True


def _index(value: Mapping[str, Any], memory: Memory) -> int:
    index = value.get("output_index")
    if isinstance(index, int):
        return index
    items: dict[str, int] = memory["items"]
    return items.get(str(value.get("item_id")), len(items))


def _whole(value: Mapping[str, Any]) -> Said:
    said = Said(id=text_of(value.get("id")), model=text_of(value.get("model")))
    for index, item in enumerate(objects(value.get("output"))):
        kind = item.get("type")
        if kind == "reasoning":
            _add_reasoning(said, item)
        elif kind == "message":
            for part in objects(item.get("content")):
                said.answer(part.get("text") if part.get("type") == "output_text" else part.get("refusal"))
        elif str(kind).endswith("_call"):
            arguments = item.get("arguments", item.get("input"))
            said.call(index, id=item.get("call_id"), name=item.get("name"), arguments=arguments)
    usage = mapping(value.get("usage"))
    said.usage = tokens(usage, usage.get("input_tokens"), usage.get("output_tokens"))
    said.finish_reason = _finish_reason(value, called=bool(said.calls))
    said.request = _repeated(value)
    error = value.get("error")
    if isinstance(error, dict):
        said.error = _error(error)
    return said


def _add_reasoning(said: Said, item: Mapping[str, Any]) -> None:
    texts = [part.get("text") for part in objects(item.get("content"))]
    if any(texts):
        for text in texts:
            said.reason(text, "output[].content")
        return
    summaries = [part.get("text") for part in objects(item.get("summary"))]
    said.reason("\n\n".join(text for text in summaries if isinstance(text, str)) or None, "output[].summary")


def _finish_reason(value: Mapping[str, Any], *, called: bool) -> str | None:
    status = value.get("status")
    reason = mapping(value.get("incomplete_details")).get("reason")
    if status == "incomplete":
        return _REASONS.get(str(reason), str(reason) if reason else "length")
    if status == "failed":
        return "error"
    if status == "completed" or (status is None and value.get("output")):
        return "tool_calls" if called else "stop"
    return None


def _error(error: Mapping[str, Any] | Any) -> str:
    said = error.get("message") if isinstance(error, dict) else error
    return str(said or error)


def _begins(value: Mapping[str, Any]) -> bool:
    return text_of(value.get("type")) in _FIRST


def _belongs(value: Mapping[str, Any], memory: Memory) -> int:
    """Few events name their response; items have ids that are its own, and events are numbered in each response."""
    response = value.get("response")
    if isinstance(response, dict):
        return 2 if response.get("id") == memory.get("id") else 0
    item = value.get("item_id")
    if isinstance(item, str) and item in memory.get("items", ()):
        return 2
    return 1 if "next" in memory and value.get("sequence_number") == memory["next"] else 0


def _repeated(value: Mapping[str, Any]) -> dict[str, Any]:
    """What a response tells of its request; not its input, so that a known request still counts."""
    known = set_keys(
        tools=_tools(value.get("tools")),
        reasoning_effort=mapping(value.get("reasoning")).get("effort"),
        max_tokens=value.get("max_output_tokens"),
    )
    return {key: one for key, one in known.items() if one != []}


def _request(body: Mapping[str, Any]) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    if isinstance(body.get("instructions"), str):
        messages.append({"role": "system", "content": body["instructions"]})
    asked = body.get("input")
    if isinstance(asked, str):
        messages.append({"role": "user", "content": asked})
    for item in objects(asked):
        if item.get("type", "message") == "message" and isinstance(item.get("role"), str):
            content = item.get("content")
            texts = [part.get("text") for part in objects(content)]
            plain = "".join(text for text in texts if isinstance(text, str))
            messages.append({"role": item["role"], "content": content if isinstance(content, str) else plain})
        elif item.get("type") == "function_call":
            function = {"name": item.get("name"), "arguments": item.get("arguments")}
            call = {"id": item.get("call_id"), "type": "function", "function": function}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        elif item.get("type") == "function_call_output":
            output = item.get("output")
            messages.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": output})
    kept = {key: one for key, one in body.items() if key not in ("tools", "input", "instructions")}
    return {**kept, **({"messages": messages} if messages else {}), **_repeated(body)}


def _tools(tools: Any) -> list[dict[str, Any]] | None:
    if not isinstance(tools, list):
        return None
    return [
        function_tool(tool.get("name"), tool.get("description"), tool.get("parameters"))
        for tool in objects(tools)
        if tool.get("type") == "function" and isinstance(tool.get("name"), str)
    ]


DIALECT = Dialect("responses", "an answer of the Responses API", _part, _said, _begins, _belongs, _request)
