"""Chat-completion chunks and whole responses, put together into traces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .response import Choice, Origin, Response
from .trace import Segment, Trace

MAX_OPEN = 64
"""Streams that may be under way at once in one file; the oldest is closed when there are more."""
_KNOWN = frozenset(("id", "choices", "model", "usage", "object", "prompt_token_ids", "prompt_text"))
_FIELDS = ("reasoning", "reasoning_content", "reasoning_text", "thinking")
"""Names that servers send reasoning in: vLLM, Ollama and Groq; DeepSeek, SGLang and llama.cpp; Copilot; others."""
_DETAILS = ("reasoning_details", "thinking_blocks")
"""Lists that repeat the reasoning in parts (OpenRouter, LiteLLM); some servers send nothing else."""


class ChunkAssembler:
    """Turns chunks, in the order they arrived, into traces. Holds only the streams that are not over yet.

    A stream is over at `[DONE]`, when another one starts behind its finish reason, or at the end of the input.
    """

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._open: dict[str | None, Response] = {}
        self._latest: str | None = None

    def chunk(self, line: int, value: Mapping[str, Any]) -> Iterator[Trace]:
        """Take one chunk; gives the traces that it shows to be over."""
        key = value.get("id") if isinstance(value.get("id"), str) and value["id"] else None
        stream = self._open.get(key)
        if stream is None and key is None and self._latest is not None and not value.get("choices"):
            stream = self._open.get(self._latest)  # a usage chunk without an id
        if stream is not None and _is_another(stream, value):
            yield from self._close(key)
            stream = None
        if stream is None:
            finished = [other for other, one in self._open.items() if one.finished]
            surplus = list(self._open)[: max(0, len(self._open) - MAX_OPEN + 1)]
            for other in dict.fromkeys((*finished, *surplus)):
                yield from self._close(other)
            stream = self._open[key] = Response(line)
        self._latest = key
        _add(stream, value)

    def done(self) -> Iterator[Trace]:
        """`[DONE]`: the stream that spoke last is over."""
        if self._latest in self._open:
            self._open[self._latest].ended = True
            yield from self._close(self._latest)

    def response(self, line: int, value: Mapping[str, Any]) -> Iterator[Trace]:
        """A whole chat completion."""
        response = Response(line, whole=True)
        _add(response, value)
        yield from response.traces(self._origin)

    def is_open(self, value: Mapping[str, Any]) -> bool:
        """A stream with this value's id is under way."""
        name = value.get("id")
        return (name is None or isinstance(name, str)) and name in self._open

    def end(self) -> Iterator[Trace]:
        """The input is over."""
        for key in list(self._open):
            yield from self._close(key)

    def _close(self, key: str | None) -> Iterator[Trace]:
        yield from self._open.pop(key).traces(self._origin)


def _is_another(stream: Response, value: Mapping[str, Any]) -> bool:
    """A chunk that says something new for a choice that had ended belongs to the next response."""
    for choice in _dicts(value.get("choices")):
        mine = stream.choices.get(_index(choice))
        if mine is not None and mine.finish_reason and _says_something(choice):
            return True
    return False


def _add(response: Response, value: Mapping[str, Any]) -> None:
    if isinstance(value.get("id"), str):
        response.id = response.id or value["id"]
    if isinstance(value.get("model"), str):
        response.model = response.model or value["model"]
    usage = value.get("usage")
    groq = value.get("x_groq")
    if not isinstance(usage, dict) and isinstance(groq, dict):
        usage = groq.get("usage")
    if isinstance(usage, dict):
        response.usage = usage
    response.prompt_ids = response.prompt_ids or _ids(value.get("prompt_token_ids"))
    if isinstance(value.get("prompt_text"), str):
        response.prompt_text = response.prompt_text or value["prompt_text"]
    response.extra.update({key: one for key, one in value.items() if key not in _KNOWN and one is not None})
    for choice in _dicts(value.get("choices")):
        if "text" in choice and "delta" not in choice and "message" not in choice:
            response.api = "completions"
        _add_choice(response.choice(_index(choice)), choice)


def _add_choice(mine: Choice, choice: Mapping[str, Any]) -> None:
    message = _message(choice)
    segments, reasoning_field = _segments(choice)
    _note_traps(mine, choice, message, segments)
    if isinstance(choice.get("finish_reason"), str):
        mine.finish_reason = choice["finish_reason"]
    if isinstance(choice.get("stop_reason"), (str, int)):
        mine.stop_reason = choice["stop_reason"]
    if message.get("tool_calls"):
        mine.add_calls(message["tool_calls"])
    # Some servers spell a lone id `token_id`, inside the delta or beside it.
    lone = next((one.get("token_id") for one in (message, choice) if isinstance(one.get("token_id"), int)), None)
    ids = _ids(choice.get("token_ids")) if lone is None else (lone,)
    _note_token_texts(mine, ids, segments, choice)
    mine.add(segments, ids, reasoning_field)


def _note_traps(mine: Choice, choice: Mapping[str, Any], message: Mapping[str, Any], segments: list[Segment]) -> None:
    """Count what trips real clients: see `Recorded.traps`."""
    if "delta" not in choice:
        return
    texts = {kind for kind, text in segments if text}
    if not mine.seen and "content" in message and message["content"] is None:
        mine.trap("null-content")
    if len(texts) > 1:
        mine.trap("both-fields")
    if not texts and not (message.get("tool_calls") or message.get("role") or choice.get("finish_reason")):
        mine.trap("empty-delta")
    mine.seen = True


def _segments(choice: Mapping[str, Any]) -> tuple[list[Segment], str | None]:
    """The texts of one choice of a chunk or response, in order, and the name the reasoning came in."""
    message = _message(choice)
    found: list[Segment] = []
    name: str | None = None
    # vLLM 0.15 sends both names with one text; others send the second name empty.
    for field_name in _FIELDS:
        text = message.get(field_name)
        if text and not found and isinstance(text, str):
            name = field_name
            found.append(("reasoning", text))
    if not found:
        for list_name in _DETAILS:
            text = "".join(_part(one)[1] for one in _dicts(message.get(list_name)))
            if text and not found:
                name = list_name
                found.append(("reasoning", text))
    content = message.get("content")
    if content is None and isinstance(choice.get("text"), str) and "delta" not in choice and "message" not in choice:
        content = choice["text"]
    if isinstance(content, str):
        found.append(("content", content))
    for part in content if isinstance(content, list) else ():
        kind, text = _part(part)
        if text:
            found.append((kind, text))
        if kind == "reasoning" and text:
            name = name or "content[].thinking"
    return found, name


def _part(part: Any) -> Segment:
    """One part of a content list: thinking (Mistral's nest a list of texts in it) or text."""
    if isinstance(part, str):
        return "content", part
    if not isinstance(part, dict):
        return "content", ""
    kind = "reasoning" if part.get("type") in ("thinking", "reasoning") else "content"
    body = next((part[key] for key in ("thinking", "reasoning", "summary", "text", "content") if part.get(key)), "")
    if isinstance(body, list):
        body = "".join(_part(inner)[1] for inner in body)
    return ("reasoning" if kind == "reasoning" else "content"), body if isinstance(body, str) else ""


def _note_token_texts(
    mine: Choice, ids: tuple[int, ...] | None, segments: list[Segment], choice: Mapping[str, Any]
) -> None:
    """Texts of single tokens: from log probabilities that fit the ids in number, else from a delta of one token."""
    if not ids:
        return
    logprobs = choice.get("logprobs")
    entries = _dicts(logprobs.get("content")) if isinstance(logprobs, dict) else []
    if len(entries) == len(ids):
        for token_id, entry in zip(ids, entries, strict=True):
            if isinstance(entry.get("token"), str):
                mine.token_texts.setdefault(token_id, entry["token"])
    elif len(ids) == 1 and all(kind == "content" for kind, _ in segments):
        text = "".join(text for _, text in segments)
        if text:
            mine.token_texts.setdefault(ids[0], text)


def _says_something(choice: Mapping[str, Any]) -> bool:
    return any(text for _, text in _segments(choice)[0]) or bool(_message(choice).get("tool_calls"))


def _message(choice: Mapping[str, Any]) -> Mapping[str, Any]:
    for key in ("delta", "message"):
        one = choice.get(key)
        if isinstance(one, dict):
            return one
    return {}


def _index(choice: Mapping[str, Any]) -> int:
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def _ids(value: Any) -> tuple[int, ...] | None:
    if isinstance(value, list) and all(type(one) is int for one in value):
        return tuple(value)
    return None


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
