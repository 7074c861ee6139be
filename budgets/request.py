"""One request as a client sends it: which endpoint, which effort, which budget, which limit."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..checks.finding import Location
from .document import MAX_DIGITS, Entry, Node, refuse

Endpoint = Literal["chat", "completions", "responses", "messages"]

BUDGET_KEY = "thinking_token_budget"
FIELD: dict[Endpoint, str] = {
    "chat": BUDGET_KEY,
    "completions": BUDGET_KEY,
    "responses": BUDGET_KEY,
    "messages": "thinking.budget_tokens",
}
"""Where a request of this endpoint carries its budget."""

MESSAGES_LEAST = 1024
"""Tokens; /v1/messages refuses a `budget_tokens` below it (vllm/entrypoints/anthropic/protocol.py, 0.33.0)."""

_EFFORT: dict[Endpoint, tuple[str, ...]] = {
    "messages": ("output_config", "effort"),
    "responses": ("reasoning", "effort"),
}
_LIMIT: dict[Endpoint, tuple[str, ...]] = {
    "chat": ("max_completion_tokens", "max_tokens"),
    "responses": ("max_output_tokens",),
}
_THINKING = ("enabled", "disabled", "adaptive")

_BODY_KEYS = frozenset(
    {
        "messages",
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "reasoning_effort",
        "chat_template_kwargs",
        "extra_body",
        "extra_args",
        "vllm_xargs",
        "stream",
        "output_config",
        "tools",
        "tool_choice",
        "include_reasoning",
    }
)
"""Keys that stand in a request's body and in no budget and no generation config."""
_FREE_TEXT = frozenset(
    {"messages", "input", "prompt", "tools", "functions", "response_format", "text", "system", "metadata"}
)
"""Parts of a body that carry anything; a budget's name in them means nothing."""


@dataclass(frozen=True, slots=True)
class Broken:
    """Something the server refuses in a request: what it is, the mend, and where it stands."""

    text: str
    mend: str
    location: Location


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `name` tells it from the others of its file; `body` is what is posted, to `url` where that is known.

    A property that reads a value of the wrong type raises InputError: the server refuses such a request whatever its
    budget, so that no row of a table would be true of it.
    """

    name: str
    endpoint: Endpoint
    body: Node
    url: str | None = None

    @property
    def location(self) -> Location:
        return self.body.location

    @property
    def effort(self) -> str | None:
        """`reasoning_effort`, or what the endpoint turns into it (vllm/entrypoints/anthropic/serving.py, 0.33.0)."""
        if self.endpoint == "messages" and _text(self.body, "thinking", "type") == "disabled":
            return "none"
        path = _EFFORT.get(self.endpoint, ("reasoning_effort",))
        entry = _entry(self.body, *path)
        if entry is None or (entry.value.is_scalar and entry.value.scalar is None):
            return None
        if not isinstance(entry.value.scalar, str):
            name = ".".join(path)
            raise refuse(f"{name} is no text", entry.value.location, mend='write a level, such as "medium"')
        return entry.value.scalar

    @property
    def effort_location(self) -> Location:
        """Where the effort stands; the body where it has none."""
        entry = _entry(self.body, *_EFFORT.get(self.endpoint, ("reasoning_effort",)))
        return entry.value.location if entry is not None else self.location

    @property
    def budget(self) -> Entry | None:
        """The entry that names a budget where this endpoint looks for one (Responses: where it would be looked for)."""
        if self.endpoint != "messages":
            return self.body.get(BUDGET_KEY)
        kind = _text(self.body, "thinking", "type")
        return _entry(self.body, "thinking", "budget_tokens") if kind in ("enabled", None) else None

    @property
    def max_tokens(self) -> int | None:
        """The completion limit the request sets in tokens, None where it sets none."""
        limits: list[int] = []
        for key in _LIMIT.get(self.endpoint, ("max_tokens",)):
            entry = self.body.get(key)
            if entry is None or (entry.value.is_scalar and entry.value.scalar is None):
                continue
            value = pydantic_int(entry.value.plain())
            if value is None or value < 1:
                raise refuse(f"{key} is no positive integer", entry.value.location, mend="write a number of tokens")
            limits.append(value)
        return limits[0] if limits else None

    @property
    def broken_thinking(self) -> Broken | None:
        """What /v1/messages refuses in the form of `thinking` (vllm/entrypoints/anthropic/protocol.py, 0.33.0)."""
        entry = self.body.get("thinking")
        if self.endpoint != "messages" or entry is None or entry.value.entries is None:
            return None
        fields = entry.value.fields()
        kind = fields.get("type")
        if kind is None:
            return Broken("thinking has no type", 'write "type": "enabled" beside the budget', entry.location)
        if kind.value.plain() not in _THINKING:
            text = f"thinking.type is none of {', '.join(_THINKING)}"
            return Broken(text, "write one of them", kind.value.location)
        if kind.value.scalar == "enabled" and "budget_tokens" not in fields:
            mend = f'write "budget_tokens": {MESSAGES_LEAST} or more, or "type": "adaptive" for no budget'
            return Broken("thinking.budget_tokens is missing", mend, entry.location)
        return None

    @property
    def plain_prompt(self) -> bool:
        """Whether the template alone decides how the prompt ends: no kwargs, no template and no ending of its own."""
        own = ("chat_template_kwargs", "chat_template", "continue_final_message", "add_generation_prompt")
        given = [entry.value.plain() for key in own if (entry := self.body.get(key)) is not None]
        return self.endpoint in ("chat", "messages") and all(value in (None, {}) for value in given)

    @property
    def tools(self) -> bool:
        """Whether the model may call tools in it."""
        tools, choice = self.body.get("tools"), self.body.get("tool_choice")
        return tools is not None and bool(tools.value.items) and (choice is None or choice.value.scalar != "none")

    @property
    def beam_search(self) -> bool:
        entry = self.body.get("use_beam_search")
        return entry is not None and entry.value.scalar is True

    def misplaced(self) -> list[tuple[tuple[str, ...], Entry]]:
        """Budgets under the field's name where no server looks, each with the keys that lead to it."""
        found: list[tuple[tuple[str, ...], Entry]] = []
        top = self.body.get(BUDGET_KEY)
        if self.endpoint == "messages" and top is not None:
            found.append(((BUDGET_KEY,), top))
        anthropic = _entry(self.body, "thinking", "budget_tokens")
        if self.endpoint in ("chat", "completions") and anthropic is not None:
            found.append((("thinking", "budget_tokens"), anthropic))
        for entry in self.body.entries or ():
            if entry.key not in _FREE_TEXT:
                found += [
                    (path, inner)
                    for path, inner in entry.value.walk((entry.key,))
                    if inner.key == BUDGET_KEY and not _FREE_TEXT & set(path)
                ]
        return found


def pydantic_int(value: Any) -> int | None:
    """What vLLM's request models make of a value in a plain `int` field: 2048.0, "2048" and true are taken too.

    Seen in 0.32.0 and 0.33.0; a float has to fit 64 bits.
    """
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**63 else None
    if isinstance(value, str) and len(value) <= MAX_DIGITS:
        match = re.fullmatch(r"\s*([-+]?\d+(?:_\d+)*)(?:\.0*)?\s*", value, re.ASCII)
        return int(match[1]) if match is not None else None
    return None


def as_messages(request: Request) -> Request:
    """The request as /v1/messages reads it, unless a URL says that it goes elsewhere."""
    return replace(request, endpoint="messages") if request.endpoint == "chat" and request.url is None else request


def looks_like_body(node: Node) -> bool:
    """Whether a mapping is a request's body rather than a budget or a generation config."""
    fields = node.fields()
    if _BODY_KEYS & fields.keys():
        return True
    if "thinking" in fields and _is_anthropic(fields["thinking"]):
        return True
    return "model" in fields and bool({"prompt", "input", "thinking", "reasoning", BUDGET_KEY} & fields.keys())


def has_body_key(node: Node) -> bool:
    """Whether a mapping holds anything that a request's body holds."""
    known = _BODY_KEYS | {"prompt", "input", "thinking", "reasoning", "model", BUDGET_KEY}
    return bool(known & node.fields().keys())


def wrapped_body(node: Node) -> tuple[Node, str | None, str | None] | None:
    """The body inside a trace or a batch line, with the URL and the name given beside it; None for no wrapper.

    Read: `reasonctl.trace/1` (`request`), vLLM's and OpenAI's batch files (`body`, `url`), Anthropic's (`params`).
    """
    for key in ("request", "body", "params"):
        inner = node.get(key)
        if inner is not None and inner.value.entries is not None and "messages" not in node.fields():
            return inner.value, _text(node, "url"), _text(node, "id") or _text(node, "custom_id")
    return None


def endpoint_of(body: Node, url: str | None) -> Endpoint:
    """The endpoint a body is posted to: by its URL, else by the keys it has."""
    for part, endpoint in _PATHS:
        if url is not None and part in url:
            return endpoint
    fields = body.fields()
    if "messages" not in fields:
        if "input" in fields or "max_output_tokens" in fields:
            return "responses"
        if "prompt" in fields:
            return "completions"
    thinking = fields.get("thinking")
    if "output_config" in fields or "stop_sequences" in fields or (thinking is not None and _is_anthropic(thinking)):
        return "messages"
    return "chat"


_PATHS: tuple[tuple[str, Endpoint], ...] = (
    ("/chat/completions", "chat"),
    ("/completions", "completions"),
    ("/responses", "responses"),
    ("/messages", "messages"),
)


def _is_anthropic(thinking: Entry) -> bool:
    return bool({"budget_tokens", "type"} & thinking.value.fields().keys())


def _entry(node: Node, *path: str) -> Entry | None:
    entry = None
    for key in path:
        entry = node.get(key)
        if entry is None:
            return None
        node = entry.value
    return entry


def _text(node: Node, *path: str) -> str | None:
    entry = _entry(node, *path)
    return entry.value.scalar if entry is not None and isinstance(entry.value.scalar, str) else None
