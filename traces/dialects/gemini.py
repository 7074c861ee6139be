"""The Gemini API: `generateContent` and its stream, whose thoughts are parts with `thought: true`.

Source: https://ai.google.dev/api/generate-content
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .base import Dialect, Memory, Part, Said, function_tool, mapping, objects, set_keys, text_of, tokens

_REASONS = {"max_tokens": "length", "safety": "content_filter"}
_ROLES = {"model": "assistant"}


def _part(value: Mapping[str, Any]) -> Part | None:
    candidates = value.get("candidates")
    if not isinstance(candidates, list) or "choices" in value:
        return None
    known = any("content" in one or "finishReason" in one for one in objects(candidates))
    return "event" if known or "usageMetadata" in value else None


def _said(value: Mapping[str, Any], memory: Memory) -> Said:
    memory["id"] = value.get("responseId")
    said, *others = [_candidate(one, memory) for one in objects(value.get("candidates"))] or [Said()]
    said.id, said.model, said.others = text_of(value.get("responseId")), text_of(value.get("modelVersion")), others
    usage = mapping(value.get("usageMetadata"))
    said.usage = tokens(usage, usage.get("promptTokenCount"), usage.get("candidatesTokenCount"))
    return said


def _candidate(candidate: Mapping[str, Any], memory: Memory) -> Said:
    index = candidate.get("index")
    said = Said(choice=index if isinstance(index, int) else 0)
    for part in objects(mapping(candidate.get("content")).get("parts")):
        if part.get("thought") is True:
            said.reason(part.get("text"), "parts[].thought")
        else:
            said.answer(part.get("text"))
        call = mapping(part.get("functionCall"))
        if call:
            place = memory["calls"] = memory.get("calls", -1) + 1
            said.call(place, id=call.get("id"), name=call.get("name"), arguments=call.get("args"))
    reason = candidate.get("finishReason")
    if isinstance(reason, str):
        memory["over"] = True
        said.finish_reason = _REASONS.get(reason.lower(), reason.lower())
        if said.finish_reason == "stop" and "calls" in memory:
            said.finish_reason = "tool_calls"
    return said


def _begins(value: Mapping[str, Any]) -> bool:
    return False  # no chunk says so


def _belongs(value: Mapping[str, Any], memory: Memory) -> int:
    """Chunks name their response; of those that do not, one behind a finish reason is of the next."""
    if value.get("responseId") is None and "over" in memory and "candidates" in value:
        return 0
    return int(value.get("responseId") == memory.get("id"))


def _request(body: Mapping[str, Any]) -> dict[str, Any]:
    config = mapping(body.get("generationConfig"))
    system = _text(body.get("systemInstruction") or body.get("system_instruction"))
    messages = [{"role": "system", "content": system}] if system else []
    for content in objects(body.get("contents")):
        role = str(content.get("role") or "user")
        messages.append({"role": _ROLES.get(role, role), "content": _text(content)})
    tools = [
        function_tool(tool.get("name"), tool.get("description"), tool.get("parameters"))
        for group in objects(body.get("tools"))
        for tool in objects(group.get("functionDeclarations"))
    ]
    kept = {key: one for key, one in body.items() if key not in ("tools", "contents")}
    limit = config.get("maxOutputTokens")
    return {**kept, **set_keys(messages=messages or None, tools=tools or None, max_tokens=limit)}


def _text(content: Any) -> str:
    return "".join(str(part.get("text") or "") for part in objects(mapping(content).get("parts")))


DIALECT = Dialect("gemini", "an answer of the Gemini API", _part, _said, _begins, _belongs, _request, strict=True)
