"""How each vLLM's chat server drives its reasoning parsers: three layouts of the same thing.

`parser` (0.23 and later): one `Parser` for a request, `parse` and `parse_delta` (entrypoints/openai/chat_completion/
serving.py, renderers/online_renderer.py). `delta` (0.20 to 0.22): the reasoning parser itself for a whole output, a
`Parser` with `parse_delta` for a stream. `reasoning` (0.15 to 0.19): the reasoning parser for both, and the loop of
`chat_completion_stream_generator` around it. Told apart by what is there, not by the version: a checkout has none.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Sequence
from typing import Any, Protocol

REQUESTS = ("vllm.entrypoints.openai.chat_completion.protocol", "vllm.entrypoints.openai.protocol")


class TooOldError(Exception):
    """This vLLM is older than any layout known here."""


class Driven(Protocol):
    """One request's parser, as the server holds it."""

    def prepare(self, prompt_ids: list[int] | None, request: Any) -> tuple[Any, bool | None]:
        """What the server's renderer does: the request as the parser leaves it, and whether the prompt has ended
        reasoning (None without a prompt).
        """

    def parse(self, text: str, ids: list[int], prompt_ids: list[int] | None, request: Any) -> tuple[Any, Any]:
        """A whole output: (reasoning, content)."""

    def delta(self, text: str, ids: list[int], prompt_ids: list[int] | None, request: Any, *, finished: bool) -> Any:
        """One delta of a stream: vLLM's `DeltaMessage` or None."""

    def count(self, ids: Sequence[int]) -> int | None:
        """Reasoning tokens that usage reports; None where this vLLM reports none."""


class Vllm:
    """The vLLM of this interpreter. Raises TooOldError, or what its import raises."""

    def __init__(self) -> None:
        import vllm
        from vllm.reasoning import ReasoningParserManager

        self.version = str(vllm.__version__)
        self.manager: Any = ReasoningParserManager
        base: Any = getattr(importlib.import_module("vllm.reasoning"), "ReasoningParser", None)
        parser: Any = _attribute("vllm.parser.abstract_parser", "Parser")
        self._parsers: Any = _attribute("vllm.parser", "ParserManager")
        if hasattr(parser, "parse") and hasattr(parser, "parse_delta"):
            self.layout = "parser"
        elif hasattr(parser, "parse_delta"):
            self.layout = "delta"
        elif hasattr(base, "extract_reasoning") and hasattr(base, "extract_reasoning_streaming"):
            self.layout = "reasoning"
        else:
            raise TooOldError(f"vLLM {self.version} is too old: 0.15 is the oldest whose parsers can be driven")
        self._request: Any = next(filter(None, (_attribute(name, "ChatCompletionRequest") for name in REQUESTS)))
        self.takes_config = parser is not None and "model_config" in inspect.signature(parser.__init__).parameters
        self.takes_finished = self.layout != "reasoning" and "finished" in _parameters(parser.parse_delta)
        self._reads_prompt = self.layout != "reasoning" or _server_reads_prompt()
        self._classes: dict[str, Any] = {}

    def names(self) -> list[str]:
        """Every registered reasoning parser."""
        return sorted(self.manager.list_registered())

    def request(self, kwargs: dict[str, Any] | None) -> Any:
        """A chat request with these `chat_template_kwargs`."""
        messages = [{"role": "user", "content": "hi"}]
        return self._request(model="m", messages=messages, chat_template_kwargs=kwargs)

    def build(self, name: str, tokenizer: Any, kwargs: dict[str, Any]) -> Driven:
        """This parser for one request. Raises what vLLM raises."""
        own = {"chat_template_kwargs": dict(kwargs)}
        if self.layout == "parser":
            config = {"model_config": None} if self.takes_config else {}
            return Whole(self._class(name)(tokenizer, None, **own, **config), finished=self.takes_finished)
        reasoning = self.manager.get_reasoning_parser(name)(tokenizer, **own)
        if self.layout == "delta":
            return ByDelta(reasoning, self._class(name)(tokenizer, None, **own), finished=self.takes_finished)
        return ByHand(reasoning, self._reads_prompt)

    def forget(self) -> None:
        """Names may mean other classes now."""
        self._classes.clear()

    def _class(self, name: str) -> Any:
        if name not in self._classes:
            get = self._parsers.get_parser
            # A server of gpt-oss, the only model this parser is for, says so.
            harmony = {"is_harmony": True} if name == "openai_gptoss" and "is_harmony" in _parameters(get) else {}
            self._classes[name] = get(reasoning_parser_name=name, **harmony)
        return self._classes[name]


def load() -> Vllm:
    """Import vLLM, with all that a runner needs of it."""
    found = Vllm()
    found.request({})
    return found


class Whole:
    """Layout `parser`."""

    def __init__(self, parser: Any, *, finished: bool) -> None:
        self._parser = parser
        self._finished = finished

    def prepare(self, prompt_ids: list[int] | None, request: Any) -> tuple[Any, bool | None]:
        self._tell(prompt_ids)
        request = self._parser.adjust_request(request=request)
        return request, None if prompt_ids is None else self._parser.is_reasoning_end(prompt_ids)

    def parse(self, text: str, ids: list[int], prompt_ids: list[int] | None, request: Any) -> tuple[Any, Any]:
        self._tell(prompt_ids)
        reasoning, content, *_ = self._parser.parse(text, request, enable_auto_tools=False, model_output_token_ids=ids)
        return reasoning, content

    def delta(self, text: str, ids: list[int], prompt_ids: list[int] | None, request: Any, *, finished: bool) -> Any:
        last = {"finished": finished} if self._finished else {}
        return self._parser.parse_delta(text, ids, request, prompt_token_ids=prompt_ids, **last)

    def count(self, ids: Sequence[int]) -> int | None:
        return self._parser.count_reasoning_tokens(ids) if hasattr(self._parser, "count_reasoning_tokens") else None

    def _tell(self, prompt_ids: list[int] | None) -> None:
        if prompt_ids is not None and hasattr(self._parser, "set_prompt_token_ids"):
            self._parser.set_prompt_token_ids(prompt_ids)


class ByDelta:
    """Layout `delta`."""

    def __init__(self, reasoning: Any, parser: Any, *, finished: bool) -> None:
        self._reasoning = reasoning
        self._stream = Whole(parser, finished=finished)

    def prepare(self, prompt_ids: list[int] | None, request: Any) -> tuple[Any, bool | None]:
        request = self._reasoning.adjust_request(request=request)
        return request, None if prompt_ids is None else self._reasoning.is_reasoning_end(prompt_ids)

    def parse(self, text: str, ids: list[int], prompt_ids: list[int] | None, request: Any) -> tuple[Any, Any]:
        reasoning, content = self._reasoning.extract_reasoning(text, request=request)
        return reasoning, content

    def delta(self, text: str, ids: list[int], prompt_ids: list[int] | None, request: Any, *, finished: bool) -> Any:
        return self._stream.delta(text, ids, prompt_ids, request, finished=finished)

    def count(self, ids: Sequence[int]) -> int | None:
        return None


class ByHand:
    """Layout `reasoning`: what the server's own loop does where no tool is called."""

    def __init__(self, reasoning: Any, reads_prompt: bool) -> None:
        self._reasoning = reasoning
        self._reads_prompt = reads_prompt
        self._prompt_ended: bool | None = None
        self._text = ""
        self._ids: list[int] = []

    def prepare(self, prompt_ids: list[int] | None, request: Any) -> tuple[Any, bool | None]:
        return request, None if prompt_ids is None else self._reasoning.is_reasoning_end(prompt_ids)

    def parse(self, text: str, ids: list[int], prompt_ids: list[int] | None, request: Any) -> tuple[Any, Any]:
        reasoning, content = self._reasoning.extract_reasoning(text, request=request)
        return reasoning, content

    def delta(self, text: str, ids: list[int], prompt_ids: list[int] | None, request: Any, *, finished: bool) -> Any:
        if prompt_ids and self._prompt_ended is None:
            self._prompt_ended = self._reasoning.is_reasoning_end(prompt_ids)
        before, before_ids = self._text, self._ids
        self._text, self._ids = before + text, before_ids + list(ids)
        if self._reads_prompt and self._prompt_ended:
            return Content(text)
        return self._reasoning.extract_reasoning_streaming(before, self._text, text, before_ids, self._ids, list(ids))

    def count(self, ids: Sequence[int]) -> int | None:
        return None


class Content:
    """A delta that the server makes itself."""

    reasoning = None

    def __init__(self, content: str) -> None:
        self.content = content


def _server_reads_prompt() -> bool:
    """Whether the server's loop passes all on as content once the prompt has ended reasoning."""
    serving: Any = _attribute("vllm.entrypoints.openai.chat_completion.serving", "OpenAIServingChat")
    try:
        source = inspect.getsource(serving.chat_completion_stream_generator)
    except (AttributeError, OSError, TypeError):
        return True
    return "if prompt_is_reasoning_end_arr[i]:\n" in source


def _attribute(module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(module), name, None)
    except ImportError:
        return None


def _parameters(function: Any) -> Any:
    return inspect.signature(function).parameters
