"""One request as a client sends it: which endpoint, which effort, which budget, which limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..checks.finding import Location
from .document import Entry, Node

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
class Request:
    """One request. `name` tells it from the others of its file; `body` is what is posted."""

    name: str
    endpoint: Endpoint
    body: Node

    @property
    def location(self) -> Location:
        return self.body.location

    @property
    def effort(self) -> str | None:
        """`reasoning_effort`, or what the endpoint turns into it (vllm/entrypoints/anthropic/serving.py, 0.33.0)."""
        if self.endpoint == "messages":
            if _text(self.body, "thinking", "type") == "disabled":
                return "none"
            return _text(self.body, "output_config", "effort")
        if self.endpoint == "responses":
            return _text(self.body, "reasoning", "effort")
        return _text(self.body, "reasoning_effort")

    @property
    def effort_location(self) -> Location:
        """Where the effort stands; the body where it has none."""
        paths = {"messages": ("output_config", "effort"), "responses": ("reasoning", "effort")}
        entry = _entry(self.body, *paths.get(self.endpoint, ("reasoning_effort",)))
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
        """The completion limit the request sets, None where it sets none."""
        keys = ("max_output_tokens",) if self.endpoint == "responses" else ("max_completion_tokens", "max_tokens")
        for key in keys:
            entry = self.body.get(key)
            value = entry.value.scalar if entry is not None else None
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
        return None

    @property
    def plain_prompt(self) -> bool:
        """Whether the template alone decides how the prompt ends: no kwargs, no template and no ending of its own."""
        own = ("chat_template_kwargs", "chat_template", "continue_final_message", "add_generation_prompt")
        given = [entry.value.plain() for key in own if (entry := self.body.get(key)) is not None]
        return self.endpoint in ("chat", "messages") and all(value in (None, {}) for value in given)

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


def looks_like_body(node: Node) -> bool:
    """Whether a mapping is a request's body rather than a budget or a generation config."""
    fields = node.fields()
    if _BODY_KEYS & fields.keys():
        return True
    if "thinking" in fields and _entry(node, "thinking", "budget_tokens") is not None:
        return True
    return "model" in fields and bool({"prompt", "input", "thinking", "reasoning", BUDGET_KEY} & fields.keys())


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
