"""Chat-completion chunks and whole responses, put together into traces: one for every choice of every response."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .trace import Recorded, Segment, Trace, TraceDelta

_MAX_OPEN = 64
"""Streams that may be under way at once in one file; the oldest is closed when there are more."""
_KNOWN = frozenset(("id", "choices", "model", "usage", "object", "prompt_token_ids", "prompt_text"))


class ChunkAssembler:
    """Turns chunks, in the order they arrived, into traces. Holds only the streams that are not over yet.

    A stream is over at `[DONE]`, when another one starts behind its finish reason, or at the end of the input.
    """

    def __init__(self, path: str, *, source: str, request: Mapping[str, Any] | None = None) -> None:
        self._path = path
        self._source = source
        self._request = dict(request or {})
        self._open: dict[str | None, _Stream] = {}
        self._latest: str | None = None

    def chunk(self, line: int, value: Mapping[str, Any]) -> Iterator[Trace]:
        """Take one chunk; gives the traces that it shows to be over."""
        key = value.get("id") if isinstance(value.get("id"), str) else None
        stream = self._open.get(key)
        if stream is None and key is None and self._latest is not None and not value.get("choices"):
            stream = self._open.get(self._latest)  # a usage chunk without an id
        if stream is not None and stream.is_another(value):
            yield from self._close(key)
            stream = None
        if stream is None:
            finished = [other for other, one in self._open.items() if one.finished]
            surplus = list(self._open)[: max(0, len(self._open) - _MAX_OPEN + 1)]
            for other in dict.fromkeys((*finished, *surplus)):
                yield from self._close(other)
            stream = self._open[key] = _Stream(line)
        self._latest = key
        stream.add(value)

    def done(self) -> Iterator[Trace]:
        """`[DONE]`: the stream that spoke last is over."""
        if self._latest in self._open:
            yield from self._close(self._latest)

    def response(self, line: int, value: Mapping[str, Any]) -> Iterator[Trace]:
        """A whole chat completion."""
        stream = _Stream(line, whole=True)
        stream.add(value)
        yield from stream.traces(self._path, self._source, self._request)

    def is_open(self, value: Mapping[str, Any]) -> bool:
        """A stream with this value's id is under way."""
        return value.get("id") in self._open

    def end(self) -> Iterator[Trace]:
        """The input is over."""
        for key in list(self._open):
            yield from self._close(key)

    def _close(self, key: str | None) -> Iterator[Trace]:
        yield from self._open.pop(key).traces(self._path, self._source, self._request)


@dataclass(slots=True)
class _Choice:
    segments: list[Segment] = field(default_factory=list)
    deltas: list[tuple[list[Segment], tuple[int, ...] | None]] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    ids_missing: bool = False
    token_texts: dict[int, str] = field(default_factory=dict)
    tool_calls: dict[int, dict[str, Any]] = field(default_factory=dict)
    reasoning_field: str | None = None
    finish_reason: str | None = None
    stop_reason: str | int | None = None


@dataclass(slots=True)
class _Stream:
    """One response, as far as it has arrived."""

    line: int
    whole: bool = False
    id: str | None = None
    model: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    prompt_ids: tuple[int, ...] | None = None
    prompt_text: str | None = None
    choices: dict[int, _Choice] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def finished(self) -> bool:
        return bool(self.choices) and all(choice.finish_reason for choice in self.choices.values())

    def is_another(self, value: Mapping[str, Any]) -> bool:
        """A chunk that says something new for a choice that had ended belongs to the next response."""
        for choice in _dicts(value.get("choices")):
            mine = self.choices.get(_index(choice))
            if mine is not None and mine.finish_reason and _says_something(choice):
                return True
        return False

    def add(self, value: Mapping[str, Any]) -> None:
        if isinstance(value.get("id"), str):
            self.id = self.id or value["id"]
        if isinstance(value.get("model"), str):
            self.model = self.model or value["model"]
        usage = value.get("usage")
        groq = value.get("x_groq")
        if not isinstance(usage, dict) and isinstance(groq, dict):
            usage = groq.get("usage")
        if isinstance(usage, dict):
            self.usage = usage
        self.prompt_ids = self.prompt_ids or _ids(value.get("prompt_token_ids"))
        if isinstance(value.get("prompt_text"), str):
            self.prompt_text = self.prompt_text or value["prompt_text"]
        self.extra.update({key: one for key, one in value.items() if key not in _KNOWN and one is not None})
        for choice in _dicts(value.get("choices")):
            self._add_choice(self.choices.setdefault(_index(choice), _Choice()), choice)

    def _add_choice(self, mine: _Choice, choice: Mapping[str, Any]) -> None:
        message = _message(choice)
        segments, reasoning_field = _segments(choice)
        mine.reasoning_field = mine.reasoning_field or reasoning_field
        mine.segments.extend(segments)
        if isinstance(choice.get("finish_reason"), str):
            mine.finish_reason = choice["finish_reason"]
        if isinstance(choice.get("stop_reason"), (str, int)):
            mine.stop_reason = choice["stop_reason"]
        self._add_tool_calls(mine, message.get("tool_calls"))
        # Some servers spell a lone id `token_id`, inside the delta or beside it.
        lone = next((one.get("token_id") for one in (message, choice) if isinstance(one.get("token_id"), int)), None)
        ids = _ids(choice.get("token_ids")) if lone is None else (lone,)
        if ids is not None:
            mine.ids.extend(ids)
        elif any(text for _, text in segments):
            mine.ids_missing = True
        _note_token_texts(mine, ids, segments, choice)
        if ids or any(text for _, text in segments):
            mine.deltas.append((segments, ids))

    @staticmethod
    def _add_tool_calls(mine: _Choice, calls: Any) -> None:
        for place, call in enumerate(_dicts(calls)):
            index = call["index"] if isinstance(call.get("index"), int) else place
            known = mine.tool_calls.setdefault(index, {"type": "function", "function": {"name": "", "arguments": ""}})
            if isinstance(call.get("id"), str):
                known["id"] = call["id"]
            function = call.get("function")
            for key in ("name", "arguments"):
                if isinstance(function, dict) and isinstance(function.get(key), str):
                    known["function"][key] += function[key]

    def traces(self, path: str, source: str, request: Mapping[str, Any]) -> Iterator[Trace]:
        for index, choice in sorted(self.choices.items()):
            name = self.id or f"{path}:{self.line}"
            lossy = choice.reasoning_field is not None or bool(choice.tool_calls)
            ids = tuple(choice.ids) if choice.ids and not choice.ids_missing else None
            reasoning = [text for kind, text in choice.segments if kind == "reasoning"]
            content = [text for kind, text in choice.segments if kind == "content"]
            yield Trace(
                id=name if index == 0 else f"{name}#{index}",
                path=path,
                line=self.line,
                source=source,
                model=self.model,
                request=request,
                prompt_text=self.prompt_text,
                prompt_ids=self.prompt_ids,
                output_text=None if lossy else "".join(content),
                output_ids=ids,
                deltas=() if self.whole else _deltas(choice, lossy=lossy, with_ids=ids is not None),
                recorded=Recorded(
                    reasoning="".join(reasoning) if reasoning else None,
                    content="".join(content) if content else None,
                    has_split=choice.reasoning_field is not None,
                    tool_calls=tuple(call for _, call in sorted(choice.tool_calls.items())),
                    finish_reason=choice.finish_reason,
                    stop_reason=choice.stop_reason,
                    usage=self.usage,
                    reasoning_field=choice.reasoning_field,
                ),
                segments=tuple(choice.segments) if lossy else (),
                streamed=not self.whole,
                lossy=lossy,
                token_texts=choice.token_texts,
                extra=self.extra,
            )


def _deltas(choice: _Choice, *, lossy: bool, with_ids: bool) -> tuple[TraceDelta, ...]:
    """The stream's deltas. Of a recording that lost its markers only ids, where there are any: see `rebuild`."""
    if lossy:
        return tuple(TraceDelta(None, ids or ()) for _, ids in choice.deltas) if with_ids else ()
    return tuple(
        TraceDelta("".join(text for _, text in segments), (ids or ()) if with_ids else None)
        for segments, ids in choice.deltas
    )


def _segments(choice: Mapping[str, Any]) -> tuple[list[Segment], str | None]:
    """The texts of one choice of a chunk or response, in order, and the name the reasoning came in."""
    message = _message(choice)
    found: list[Segment] = []
    name: str | None = None
    # vLLM 0.15 sends both names with one text; others send the second name empty.
    for field_name in ("reasoning", "reasoning_content"):
        text = message.get(field_name)
        if isinstance(text, str):
            name = name or (field_name if text else None)
            if text and not found:
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
    body = next((part[key] for key in ("thinking", "reasoning", "text", "content") if part.get(key)), "")
    if isinstance(body, list):
        body = "".join(_part(inner)[1] for inner in body)
    return ("reasoning" if kind == "reasoning" else "content"), body if isinstance(body, str) else ""


def _note_token_texts(
    mine: _Choice, ids: tuple[int, ...] | None, segments: list[Segment], choice: Mapping[str, Any]
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
