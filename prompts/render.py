"""Renders a chat template as `apply_chat_template` does, in a process of its own that no template can outlast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType, TracebackType
from typing import Any, Literal, Self

from .difference import Difference
from .kwargs import template_kwargs
from .model import LONE_TEMPLATE_TOKENS, Template
from .sandbox import Limits, Worker, WorkerGoneError

ErrorKind = Literal["raised", "timeout", "memory", "output", "crashed", "unseen", "refused"]

__all__ = ["ErrorKind", "Limits", "RenderError", "RenderRequest", "Rendered", "Renderer"]


@dataclass(frozen=True)
class RenderRequest:
    """One prompt to render.

    Args:
        messages: as vLLM hands them to the template: tool-call arguments are objects, contents strings.
        tools: JSON schemas in OpenAI form, or None.
        kwargs: effective kwargs; only names the template declares reach it.
        parts: contents as lists of parts. None lets the template decide as vLLM does (a list where it loops over
            contents), and takes the other form where that one raises, as `--chat-template-content-format` would.
        sent: the whole request body as the client sent it, where there is one: a running vLLM renders that.
    """

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] | None = None
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    parts: bool | None = None
    sent: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class RenderError:
    """Why there is no prompt.

    `kind`: the template `raised`; the sandbox `refused` what it tried; it ran into `timeout`, `memory` or `output`; its
    process `crashed`; or it was `unseen`, because an earlier rendering of this template had to be ended. `line` is the
    template's, from 1. `by_template`: it called `raise_exception`, so it refuses on purpose, as does the code that
    builds prompts where it raises an error of its own for the client.
    """

    kind: ErrorKind
    message: str
    line: int | None = None
    by_template: bool = False


@dataclass(frozen=True)
class Rendered:
    """Exactly one of text and error is set.

    A prompt built by code is ids: `token_ids`, and `ends`, the character of `text` at which each of them ends. Without
    `ends` it is a text that somebody else cut into `token_ids`. `differs`: a running vLLM made it, and ours is another.
    """

    text: str | None
    error: RenderError | None = None
    token_ids: tuple[int, ...] | None = None
    ends: tuple[int, ...] | None = None
    differs: Difference | None = None


class Renderer:
    """One template, ready to render many prompts. A context manager; its process lives until `close`.

    Attributes:
        reads: chat-template kwargs the template reads, from its Jinja syntax tree.
        declared: every name it leaves to the caller.
        compared: constants that each of `reads` is compared with.
        wants_parts: contents go in as lists of parts (vLLM's `chat_template_content_format` "openai").
        problem: why the template cannot be used at all; then every rendering gives this error.
    """

    def __init__(
        self,
        template: Template,
        *,
        special_tokens: Mapping[str, str] = MappingProxyType(LONE_TEMPLATE_TOKENS),
        limits: Limits = Limits(),  # noqa: B008  (frozen)
    ) -> None:
        self.template = template
        self.reads: frozenset[str] = frozenset()
        self.declared: frozenset[str] = frozenset()
        self.compared: Mapping[str, tuple[Any, ...]] = {}
        self.wants_parts = False
        self.problem: RenderError | None = None
        self._special_tokens = dict(special_tokens)
        self._limits = limits
        self._worker = Worker(limits)
        self._ended = False
        self._read()

    @property
    def text(self) -> str:
        """The template's text."""
        return self.template.text

    def reaching(self, effective: Mapping[str, Any], *, effort: Any, own: Mapping[str, Any] | None) -> dict[str, Any]:
        """What of a request's kwargs the template gets to see: the names it declares.

        Args:
            effective: the effective kwargs.
            effort: the request field `reasoning_effort`, which only code tells from a kwarg of that name.
            own: the request's own chat_template_kwargs, None where it has none.
        """
        return template_kwargs(effective, self.declared)

    def render(self, request: RenderRequest) -> Rendered:
        """The prompt, or why there is none."""
        return self.render_all([request])[0]

    def render_all(self, requests: Sequence[RenderRequest]) -> list[Rendered]:
        """Many prompts in one message to the process; after one that had to be ended the rest are `unseen`."""
        if self.problem is not None:
            return [Rendered(None, self.problem)] * len(requests)
        results: list[Rendered] = []
        if not self._ended and requests:
            items = [self._item(request) for request in requests]
            try:
                for answer in self._worker.ask({"op": "render", "items": items}, len(items)):
                    results.append(_rendered(answer))
            except WorkerGoneError as gone:
                self._ended = True
                results.append(Rendered(None, self._cause(gone)))
        unseen = RenderError("unseen", "not rendered: an earlier rendering of this template had to be ended")
        return results + [Rendered(None, unseen)] * (len(requests) - len(results))

    def close(self) -> None:
        """End the template's process."""
        self._worker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self) -> None:
        try:
            (answer,) = self._worker.ask({"op": "template", "text": self.template.text}, 1)
        except WorkerGoneError as gone:
            self._ended = True
            self.problem = self._cause(gone)
            return
        if "error" in answer:
            self.problem = RenderError(**answer["error"])
            return
        self.reads = frozenset(answer["reads"])
        self.declared = frozenset(answer["declared"])
        self.compared = {name: tuple(values) for name, values in answer["compared"].items()}
        self.wants_parts = answer["wants_parts"]

    def _item(self, request: RenderRequest) -> dict[str, Any]:
        return {
            "messages": list(request.messages),
            "tools": None if request.tools is None else list(request.tools),
            "kwargs": dict(request.kwargs),
            "add_generation_prompt": request.add_generation_prompt,
            "continue_final_message": request.continue_final_message,
            "parts": request.parts,
            "special_tokens": self._special_tokens,
        }

    def _cause(self, gone: WorkerGoneError) -> RenderError:
        if gone.timed_out:
            return RenderError(
                "timeout",
                f"not done within {self._limits.render_seconds:g} s"
                f" (all renderings of a template: {self._limits.template_seconds:g} s)",
            )
        status = "no exit status" if gone.status is None else f"exit status {gone.status}"
        return RenderError("crashed", f"the template's process died ({status})")


def _rendered(answer: Mapping[str, Any]) -> Rendered:
    if "error" in answer:
        return Rendered(None, RenderError(**answer["error"]))
    return Rendered(answer["text"])
