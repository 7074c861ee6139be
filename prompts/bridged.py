"""Prompts that a running vLLM's own chat server makes, in place of ours; where the two differ, that is said."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from .asked import PromptMaker
from .coded import CodedPrompts
from .conversations import WEATHER, called_tool, tool_answer
from .difference import Difference, of_ids, of_texts
from .messages import as_client
from .model import Model
from .render import ErrorKind, Rendered, Renderer, RenderError, RenderRequest

_BODY = ("messages", "tools", "chat_template_kwargs", "reasoning_effort", "add_generation_prompt", "tool_choice")
_FURTHER = ("continue_final_message", "documents", "response_format", "chat_template", "add_special_tokens", "thinking")
"""Fields of a request that its prompt may depend on."""


class BridgedPrompts:
    """A model's prompts as a running vLLM makes them; it has the face of `render.Renderer`.

    Args:
        vllm: makes them.
        model: whose they are.
        own: our own renderer of this kind of request, which is held against it and stands in where it cannot be asked;
            None where code that we do not have builds the prompts.

    Attributes:
        by: who makes the prompts.
    """

    def __init__(self, vllm: PromptMaker, model: Model, own: Renderer | CodedPrompts | None) -> None:
        self.vllm = vllm
        self.by = vllm.by
        self.own = own
        self._tokenizer: Any = model.tokenizer
        self._samples: str | None = None

    @property
    def reads(self) -> frozenset[str]:
        return self.own.reads if self.own is not None else frozenset(self.compared)

    @property
    def declared(self) -> frozenset[str]:
        return self.own.declared if self.own is not None else self.reads

    @property
    def compared(self) -> Mapping[str, tuple[Any, ...]]:
        return self.own.compared if self.own is not None else self.vllm.reads

    @property
    def wants_parts(self) -> bool:
        return self.own is not None and self.own.wants_parts

    @property
    def problem(self) -> RenderError | None:
        return self.own.problem if self.own is not None else None

    @property
    def text(self) -> str:
        """All that the prompts' maker writes of its own: the template, or what code made of a few requests."""
        if self.own is not None:
            return self.own.text
        if self._samples is None:
            found = self.render_all([RenderRequest(*sample) for sample in _samples()])
            self._samples = "\n".join(result.text for result in found if result.text is not None)
        return self._samples

    def reaching(self, effective: Mapping[str, Any], *, effort: Any, own: Mapping[str, Any] | None) -> dict[str, Any]:
        """The request's own kwargs and effort, which that vLLM derives the effective ones from; and what ours gets."""
        asked: dict[str, Any] = {} if own is None else {"chat_template_kwargs": dict(own)}
        if effort is not None:
            asked["reasoning_effort"] = effort
        ours = self.own.reaching(effective, effort=effort, own=own) if self.own is not None else {}
        return {"asked": asked, "ours": ours}

    def render(self, request: RenderRequest) -> Rendered:
        """The prompt, or why there is none."""
        return self.render_all([request])[0]

    def render_all(self, requests: Sequence[RenderRequest]) -> list[Rendered]:
        """Many prompts in one message. Those that only we can make, since they hold more than text, are ours."""
        ours = self._ours(requests)
        bodies = [_body(request) for request in requests]
        if self.own is not None and self.vllm.start() is not None:
            return ours
        asked = [at for at, body in enumerate(bodies) if self.own is None or _is_text(body)]
        found = list(ours)
        for at, answer in zip(asked, self.vllm.answers([bodies[at] for at in asked]), strict=True):
            theirs = self._rendered(answer)
            found[at] = replace(theirs, differs=self._difference(ours[at], theirs)) if self.own is not None else theirs
        return found

    def close(self) -> None:
        """End our own renderer; the vLLM belongs to whoever opened it."""
        if self.own is not None:
            self.own.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _by_code(self) -> bool:
        return self.own is None or isinstance(self.own, CodedPrompts)

    def _ours(self, requests: Sequence[RenderRequest]) -> list[Rendered]:
        if self.own is None:
            return [Rendered(None, RenderError("unseen", "not rendered"))] * len(requests)
        return self.own.render_all([replace(each, kwargs=each.kwargs.get("ours", {})) for each in requests])

    def _rendered(self, answer: Mapping[str, Any]) -> Rendered:
        if "lost" in answer:
            return Rendered(None, answer["lost"])
        if "error" in answer:
            return Rendered(None, _error(answer["error"], by_code=self._by_code))
        ids = tuple(answer["ids"])
        text = answer["text"]
        if self._tokenizer is None or self._tokenizer.toy or max(ids, default=0) >= self._tokenizer.size:
            return Rendered(answer["shown"] if text is None else text)  # the ids are of a tokenizer that is not here
        if text is not None:
            return Rendered(text, token_ids=ids)
        text, ends = _joined(self._tokenizer, ids)
        return Rendered(text, token_ids=ids, ends=ends)

    def _difference(self, ours: Rendered, theirs: Rendered) -> Difference | None:
        """None where the two are the same, or one of them was not made at all."""
        errors = [each.error for each in (ours, theirs)]
        if any(error is not None and error.kind not in ("raised", "refused") for error in errors):
            return None
        if ours.text is None or theirs.text is None:
            if ours.text is None and theirs.text is None:
                return None
            said = [f"error: {error.message}" if error is not None else "a prompt" for error in errors]
            return Difference("refusal", 0, *said)
        found = of_texts(ours.text, theirs.text)
        if theirs.token_ids is None or self._tokenizer is None or self._tokenizer.toy:
            return found
        if found is not None and self.vllm.exact_texts:
            return found
        ids = ours.token_ids if ours.token_ids is not None else self._tokenizer.encode(ours.text)
        by_ids = of_ids(ids, theirs.token_ids)
        return found if by_ids is not None and found is not None else by_ids


def evaluated(model: Model, vllm: PromptMaker | None) -> Model:
    """The model with its prompts built by that vLLM, where we have no code that builds them."""
    if vllm is None or model.code_prompt is None:
        return model
    problem = vllm.start()
    if problem is not None:
        return replace(model, code_prompt=f"{model.code_prompt}; {problem}")
    return replace(model, coded=BridgedPrompts(vllm, model, None), code_prompt=None, template=None)


def _body(request: RenderRequest) -> dict[str, Any]:
    """The request as a client sends it."""
    if request.sent is not None:
        body = {name: request.sent[name] for name in (*_BODY, *_FURTHER) if request.sent.get(name) is not None}
    else:
        body = {"messages": [as_client(message) for message in request.messages]}
        if request.tools is not None:
            body["tools"] = list(request.tools)
        body["add_generation_prompt"] = request.add_generation_prompt
        body["continue_final_message"] = request.continue_final_message
    return {**body, **request.kwargs.get("asked", {})}


def _is_text(body: Mapping[str, Any]) -> bool:
    """Whether all contents are text: what vLLM makes of an image needs the model itself."""
    contents = [message.get("content") for message in body["messages"] if isinstance(message, Mapping)]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    return all(not isinstance(part, Mapping) or isinstance(part.get("text"), str) for part in parts)


def _error(error: Mapping[str, Any], *, by_code: bool) -> RenderError:
    """An error as our own renderers tell it: one that the server means for the client is a refusal."""
    for_client = error["status"] < 500
    below = error.get("below")
    refuses = for_client and (by_code or below in (None, "TemplateError"))
    named = below or error["class"]
    message = error["message"] if refuses else f"{named}: {error['message']}"
    kind: ErrorKind = "refused" if below == "SecurityError" else "raised"
    return RenderError(kind, message, None if by_code else error.get("line"), by_template=refuses)


def _joined(tokenizer: Any, ids: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    """A prompt that was made as ids: its text, and the character at which each token ends."""
    if hasattr(tokenizer, "joined"):
        text, ends = tokenizer.joined(ids)
        return text, ends
    parts = tokenizer.detokenizer.texts(ids, None, skip_special_tokens=False)
    return "".join(parts), tuple(itertools.accumulate(map(len, parts)))


def _samples() -> Iterator[tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]] | None, Mapping[str, Any]]]:
    """Messages, tools and kwargs of requests that make prompt code write all that it has."""
    called = called_tool({"role": "assistant", "content": [], "reasoning": "Hm."})
    talk = [{"role": "system", "content": "Be brief."}, *called, tool_answer("21")]
    for switch in ({}, {"enable_thinking": True}, {"enable_thinking": False}):
        asked = {"asked": {"chat_template_kwargs": switch} if switch else {}}
        yield talk, [WEATHER], asked
        yield [{"role": "user", "content": "x"}], None, asked
