"""A server that runs already, as an audit asks it: for prompts, and for a few short answers. Nothing is started."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..prompts.model import Model
from ..traces.trace import Trace
from .chat import answer_to
from .endpoint import CHAT, BrokenOffError, Endpoint, RefusedError, ServerFailedError
from .kinds import Server
from .prompts import ServedPrompts

MOST = 8
"""Answers that are asked for, unless told otherwise."""
MAX_TOKENS = 512
"""The longest answer: small, and long enough for most models' thought about a sum to end."""
_SUM = "What is 2 + 2? Answer with the number alone."
_TALKS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "single_turn": [{"role": "user", "content": _SUM}],
    "multi_turn": [
        {"role": "user", "content": "What is 1 + 1? Answer with the number alone."},
        {"role": "assistant", "content": "2", "reasoning": "One and one make two."},
        {"role": "user", "content": _SUM},
    ],
}


@dataclass(frozen=True)
class Answered:
    """One question and what came of it: the answer, a refusal (`status: text`), or why there is neither.

    `prompt_ids` is what the server's `/tokenize` makes of the question's messages; None where it does not tell.
    """

    conversation: str
    variant: Mapping[str, Any]
    stream: bool
    body: Mapping[str, Any]
    trace: Trace | None = None
    refused: str | None = None
    lost: str | None = None
    prompt_ids: tuple[int, ...] | None = None


class LiveServer:
    """One model of a running server.

    Args:
        endpoint: where the server is.
        server: what it said of itself.
        model: the name it serves the model under.
        most: answers that may be asked for.
        watch: called with the number of answers that have come, and how many there will be.

    Attributes:
        prompts: makes the model's prompts.
        left_out: questions that were not put, since there were enough.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        server: Server,
        model: str,
        *,
        most: int = MOST,
        watch: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        self.server = server
        self.name = model
        self.prompts = ServedPrompts(endpoint, server, model)
        self.left_out = 0
        self._endpoint = endpoint
        self._most = most
        self._watch = watch

    @property
    def url(self) -> str:
        """Its address, without what may be secret in it."""
        return self._endpoint.url

    @property
    def problem(self) -> str | None:
        """Why its answers cannot be judged: its parsers are not vLLM's."""
        return None if self.server.kind == "vllm" else f"its parsers are not known to be vLLM's ({self.server.kind})"

    def model(self) -> Model | None:
        """The model as far as the server shows it: its prompts and its tokens. None where it makes no prompts."""
        from ..prompts.bridged import BridgedPrompts

        if self.prompts.start() is not None:
            return None
        root = self.server.roots.get(self.name)
        found = Model(self.name, "served", None, tokenizer=self.prompts.tokenizer, known_as=root)
        return replace(found, coded=BridgedPrompts(self.prompts, found, None))

    def ask(self, variants: Sequence[Mapping[str, Any]]) -> list[Answered]:
        """A short question under every variant, and a second turn under the first of them; each whole and streamed.

        Args:
            variants: chat-template kwargs, in which `reasoning_effort` is the request's field.

        Raises:
            EndpointError: the server has gone away.
        """
        wanted = [("single_turn", variant) for variant in variants] + [("multi_turn", v) for v in variants[:1]]
        questions = [(name, variant, stream) for name, variant in wanted for stream in (False, True)]
        self.left_out = max(0, len(questions) - self._most)
        found = []
        for number, question in enumerate(questions[: self._most]):
            self._watch(number, min(len(questions), self._most))
            found.append(self._asked(*question))
        return self._with_prompts(found)

    def _asked(self, conversation: str, variant: Mapping[str, Any], stream: bool) -> Answered:
        kwargs = {name: value for name, value in variant.items() if name != "reasoning_effort"}
        body: dict[str, Any] = {"messages": list(_TALKS[conversation]), "max_tokens": MAX_TOKENS, "temperature": 0}
        body |= {"chat_template_kwargs": kwargs} if kwargs else {}
        body |= {"reasoning_effort": variant["reasoning_effort"]} if "reasoning_effort" in variant else {}
        asked = Answered(conversation, variant, stream, body)
        sent = {**body, "model": self.name, "return_token_ids": True, "stream": stream}
        try:
            trace = answer_to(self._endpoint, CHAT, sent)
        except RefusedError as error:
            return replace(asked, refused=f"HTTP {error.status}: {error.text}")
        except (BrokenOffError, ServerFailedError) as error:
            return replace(asked, lost=str(error))
        return replace(asked, trace=trace, lost=None if trace is not None else "the answer holds no choice")

    def _with_prompts(self, found: list[Answered]) -> list[Answered]:
        if self.prompts.start() is not None:
            return found
        told = self.prompts.answers([each.body for each in found])
        return [
            replace(each, prompt_ids=tuple(prompt["ids"])) if "ids" in prompt else each
            for each, prompt in zip(found, told, strict=True)
        ]
