"""Prompts and tokens as a running vLLM makes them, over its `/tokenize` and `/detokenize`: no model file is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import ReasonctlError
from ..prompts.asked import PromptMaker
from ..prompts.conversations import PAST_THOUGHT, called_tool, tool_answer
from ..prompts.kwargs import EFFORTS
from ..prompts.messages import as_client
from ..prompts.render import ErrorKind, RenderError
from ..prompts.served import ServedTokenizer, ids_of
from ..prompts.together import together
from .endpoint import BrokenOffError, Endpoint, EndpointError, RefusedError, ServerFailedError, TimedOutError
from .kinds import Server, chat_to_tokenize

_TOGETHER = 4
"""Questions that are under way at once."""
_LOST = 3
"""After so many prompts in a row that a busy or broken server did not make, it is asked for no more."""
_SECONDS = 60.0
"""How long a prompt is waited for: a template that does not end costs no more."""
_NOT_THERE = (401, 403, 404, 405, 501)
_BOTH = (True, False)
_KNOWN: Mapping[str, tuple[Any, ...]] = {
    "enable_thinking": _BOTH,
    "thinking": _BOTH,
    "reasoning_effort": EFFORTS,
    "thinking_mode": ("enabled", "disabled", "adaptive", "thinking", "chat"),
    "preserve_thinking": _BOTH,
    "clear_thinking": _BOTH,
    "drop_thinking": _BOTH,
    "truncate_history_thinking": _BOTH,
    "keep_past_thinking": _BOTH,
    "skip_thinking": _BOTH,
    "thinking_budget": (0, 512),
}
"""Kwargs of thinking that public templates read, with values: what is tried on a template that nobody sees."""


class ServedPrompts(PromptMaker):
    """A running vLLM that is asked for prompts over HTTP; `prompts.asked.VllmPrompts`'s face.

    Args:
        endpoint: where it is.
        server: what it said of itself.
        model: the name it serves the model under.

    Attributes:
        by: who makes the prompts, for the reader.
        problem: why it makes none; the first question finds out. None as far as is known.
        tokenizer: the model's, over the same server.
    """

    exact_texts = False

    def __init__(self, endpoint: Endpoint, server: Server, model: str) -> None:
        self.by = f"the server ({server})"
        self.problem: str | None = None
        self.tokenizer = ServedTokenizer(self._told, model)
        self._endpoint = endpoint
        self._server = server
        self._model = model
        self._is_up = False
        self._lost = 0
        self._reads: Mapping[str, tuple[Any, ...]] | None = None

    def start(self) -> str | None:
        """See whether it makes prompts at all. Raises EndpointError where it has gone away."""
        if self._is_up or self.problem is not None:
            return self.problem
        if self._server.kind != "vllm":
            self.problem = f"{self._server} is no vLLM: its prompts cannot be asked for"
            return self.problem
        try:
            self._asked({"messages": [{"role": "user", "content": "x"}]})
        except RefusedError as error:
            if error.status in _NOT_THERE:
                self.problem = f"the server's /tokenize is not to be had (HTTP {error.status})"
        except (ServerFailedError, TimedOutError, BrokenOffError) as error:
            self.problem = f"the server's /tokenize fails ({error})"
        except EndpointError:
            raise
        except ReasonctlError as error:
            self.problem = f"what answers at the server's /tokenize is not vLLM's ({error})"
        self._is_up = self.problem is None
        return self.problem

    def answers(self, bodies: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """For each body `ids` and `text`, or `error` as the client would hear it, or `lost`.

        Raises:
            EndpointError: the server has gone away.
        """
        if self.start() is not None:
            return [{"lost": RenderError("crashed", str(self.problem))} for _ in bodies]
        return together(self._answer, bodies, most=_TOGETHER)

    @property
    def reads(self) -> Mapping[str, tuple[Any, ...]]:
        """The kwargs that move its prompts, and the values that do, of those that public templates read."""
        if self._reads is None:
            self._reads = self._found_reads() if self.start() is None else {}
        return self._reads

    def _found_reads(self) -> dict[str, tuple[Any, ...]]:
        talks = [{"messages": [as_client(message) for message in talk]} for talk in _talks()]
        tried: list[tuple[str, Any]] = [(name, value) for name, values in _KNOWN.items() for value in values]
        plain, *others = (
            [self._of(answer) for answer in self.answers([{**talk, "chat_template_kwargs": kwargs} for talk in talks])]
            for kwargs in ({}, *({name: value} for name, value in tried))
        )
        moving = [pair for pair, found in zip(tried, others, strict=True) if found != plain]
        names = dict.fromkeys(name for name, _ in moving)
        # A switch is told from others by both of its values, whichever of them is the default.
        return {name: _KNOWN[name] for name in names}

    @staticmethod
    def _of(answer: Mapping[str, Any]) -> object:
        return tuple(answer["ids"]) if "ids" in answer else str(answer.get("error"))

    def _answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        if self._lost >= _LOST:
            return {"lost": RenderError("unseen", f"not asked for: {self.by} failed {_LOST} times in a row")}
        try:
            ids = self._asked(body)
            text = self.tokenizer.decode(ids)
        except RefusedError as error:
            told = {"class": "BadRequestError", "message": error.text, "status": error.status, "line": None}
            return {"error": {**told, "below": None}}
        except (ServerFailedError, TimedOutError, BrokenOffError) as error:
            self._lost += 1
            kind: ErrorKind = "timeout" if isinstance(error, TimedOutError) else "crashed"
            return {"lost": RenderError(kind, f"{self.by}: {error}")}
        self._lost = 0
        self.tokenizer.take(text, ids)
        return {"ids": ids, "text": text, "shown": None}

    def _told(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """What the server says of tokens and texts; a refusal of that is no fault of the call."""
        try:
            return self._endpoint.post(path, body, of_api=False, seconds=_SECONDS)
        except RefusedError as error:
            raise EndpointError(f"{self._endpoint.url}: {path}: HTTP {error.status}: {error.text}") from None

    def _asked(self, body: Mapping[str, Any]) -> tuple[int, ...]:
        asked = {"model": self._model, **chat_to_tokenize(body), "return_token_strs": True}
        value = self._endpoint.post("/tokenize", asked, of_api=False, seconds=_SECONDS)
        ids = ids_of(value)
        self.tokenizer.learn(ids, value.get("token_strs"))
        return ids


def _talks() -> list[list[Mapping[str, Any]]]:
    """A plain question, and a talk whose earlier thoughts a template may keep or drop."""
    thought = {"reasoning": PAST_THOUGHT, "reasoning_content": PAST_THOUGHT}
    past = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y", **thought}]
    called = called_tool({"role": "assistant", "content": [], **thought})
    return [[{"role": "user", "content": "x"}], [*past, *called, tool_answer("21")]]
