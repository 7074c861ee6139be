"""The request behind a trace: read from a file, and rendered into its prompt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..prompts.messages import as_client, as_handed_over
from .forms import request_fault
from .surrogates import holds_half

if TYPE_CHECKING:
    from ..prompts.asked import VllmPrompts
    from ..prompts.model import Model
    from ..prompts.render import Rendered
    from ..prompts.rendering import PromptRenderer

_READS = "one chat-completion body: JSON, a curl command, or a trace that holds one"
_CACHED = 64
"""Prompts that are remembered: a file of traces often repeats a few requests."""
_NO_LIMIT = 1e7
"""Seconds. A file of traces renders as many prompts as it has; only a single rendering is limited."""


def read_request(path: str) -> dict[str, Any]:
    """The chat-completion body of `--request`: JSON, a `curl` command, or a trace that holds one; `-` reads stdin.

    Raises:
        InputError: the file cannot be read, or holds no body, or several.
    """
    from ..budgets.config import read_requests

    try:
        requests, _ = read_requests(path)
    except InputError as error:
        # Its own mends are about budgets, which the same reader reads.
        raise InputError(
            error.message, source=error.source, line=error.line, column=error.column, mend=f"give {_READS}"
        ) from None
    if len(requests) != 1:
        raise InputError(f"{len(requests)} requests in it, where one is meant", source=path, mend=f"give {_READS}")
    body = dict(requests[0].body.plain())
    fault = request_fault(body)
    if fault is not None:
        raise InputError(fault.message, source=path, mend=fault.mend)
    if holds_half(body):
        raise InputError(
            "half a character (\\ud800 to \\udfff alone) in it, which no tokenizer takes",
            source=path,
            mend="write the whole character",
        )
    return body


def messages_of(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The request's messages as the template gets them; empty where it holds none."""
    messages = request.get("messages")
    if not isinstance(messages, list):
        return []
    return as_handed_over(message for message in messages if isinstance(message, dict))


def last_text(request: Mapping[str, Any]) -> str:
    """The text of the last message, which the template's own text follows; empty where there is none."""
    messages = messages_of(request)
    content = messages[-1]["content"] if messages else ""
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        content = next((text for text in reversed(texts) if isinstance(text, str)), "")
    return content if isinstance(content, str) else ""


class Prompts:
    """Renders requests with a model's template. Keeps a process for each of its templates, until `close`.

    Args:
        model: whose template.
        vllm: a running vLLM that makes the prompts in place of ours.
    """

    def __init__(self, model: Model, vllm: VllmPrompts | None = None) -> None:
        self._model = model
        self._vllm = vllm
        self._renderers: dict[bool, PromptRenderer] | None = None
        self._known: dict[str, Rendered] = {}

    def close(self) -> None:
        for renderer in (self._renderers or {}).values():
            renderer.close()

    def render(
        self, messages: list[dict[str, Any]], request: Mapping[str, Any], kwargs: Mapping[str, Any]
    ) -> tuple[str | None, str | None]:
        """(the prompt, None) or (None, why there is none); arguments as those of `rendered`."""
        made = self.rendered(messages, request, kwargs)
        return made.text, made.error.message if made.error is not None else None

    def rendered(
        self, messages: list[dict[str, Any]], request: Mapping[str, Any], kwargs: Mapping[str, Any]
    ) -> Rendered:
        """The prompt, or why there is none.

        Args:
            messages: as `messages_of` gives them.
            request: for its tools and for how the generation prompt is asked for; its own chat-template kwargs are all
                that a client sends.
            kwargs: the effective chat-template kwargs.
        """
        from ..prompts.render import Rendered, RenderError, RenderRequest

        self._open()
        if self._model.code_prompt is not None:
            why = f"this model's prompts are built by code ({self._model.code_prompt})"
            return Rendered(None, RenderError("unseen", why))
        tools = request.get("tools")
        generate = request.get("add_generation_prompt")
        wanted = RenderRequest(
            messages=messages,
            tools=tools if isinstance(tools, list) and tools else None,
            kwargs=kwargs,
            add_generation_prompt=generate if isinstance(generate, bool) else True,
            continue_final_message=request.get("continue_final_message") is True,
            sent=self._sent(messages, request),
        )
        asked = (messages, wanted.tools, dict(kwargs), wanted.add_generation_prompt, wanted.continue_final_message)
        key = json.dumps(asked if self._vllm is None else (*asked, wanted.sent), default=str)
        if key not in self._known:
            if len(self._known) >= _CACHED:
                self._known.pop(next(iter(self._known)))
            renderer = (self._renderers or {}).get(wanted.tools is not None)
            if renderer is None:
                self._known[key] = Rendered(None, RenderError("unseen", "the model has no chat template"))
            else:
                own = request.get("chat_template_kwargs")
                reaching = renderer.reaching(
                    kwargs, effort=request.get("reasoning_effort"), own=own if isinstance(own, dict) else None
                )
                self._known[key] = renderer.render(replace(wanted, kwargs=reaching))
        return self._known[key]

    @property
    def problem(self) -> str | None:
        """Why a running vLLM that was asked made no prompt; None where it did, or none was asked."""
        return self._vllm.problem if self._vllm is not None and self._renderers is not None else None

    @property
    def by(self) -> str:
        """The running vLLM, by name; empty without one."""
        return self._vllm.by if self._vllm is not None else ""

    def _sent(self, messages: list[dict[str, Any]], request: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The body as the client sent it, for a running vLLM; with other messages where these are others."""
        if self._vllm is None:
            return None
        told = request["messages"] if messages == messages_of(request) else list(map(as_client, messages))
        return {**request, "messages": told}

    def _open(self) -> None:
        from ..prompts.render import Limits
        from ..prompts.rendering import renderers

        if self._renderers is None:
            if self._vllm is not None:
                from ..prompts.bridged import evaluated

                self._model = evaluated(self._model, self._vllm)
            self._renderers = renderers(self._model, limits=Limits(template_seconds=_NO_LIMIT), vllm=self._vllm)
