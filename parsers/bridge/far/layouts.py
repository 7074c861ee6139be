"""How each vLLM's chat server drives its reasoning parsers: three layouts of the same thing.

`parser` (0.23 and later): one `Parser` for a request, `parse` and `parse_delta` (entrypoints/openai/chat_completion/
serving.py, renderers/online_renderer.py). `delta` (0.20 to 0.22): the reasoning parser itself for a whole output, a
`Parser` with `parse_delta` for a stream. `reasoning` (0.12 to 0.19): the reasoning parser for both, and the loop of
`chat_completion_stream_generator` around it. Told apart by what is there, not by the version: a checkout has none.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import os
from collections.abc import Callable, Sequence
from typing import Any, Protocol

HARMONY = "openai_gptoss"
_CHANNEL = ("<|channel|>", 200005)
"""A token of gpt-oss's vocabulary, and of no other, by its id."""
_BASE = "TIKTOKEN_ENCODINGS_BASE"
REQUESTS = ("vllm.entrypoints.openai.chat_completion.protocol", "vllm.entrypoints.openai.protocol")
SERVERS = ("vllm.entrypoints.openai.chat_completion.serving", "vllm.entrypoints.openai.serving_chat")


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
            raise TooOldError(f"vLLM {self.version} is too old: 0.12 is the oldest whose parsers can be driven")
        self._request: Any = first_there([(name, "ChatCompletionRequest") for name in REQUESTS], needed=True)
        self._takes_config = parser is not None and "model_config" in _parameters(parser.__init__)
        self._finished = self.layout != "reasoning" and "finished" in _parameters(parser.parse_delta)
        self._ids = self.layout == "parser" and "model_output_token_ids" in _parameters(parser.parse)
        self._reads_prompt = self.layout != "reasoning" or _server_reads_prompt()
        self._takes_harmony = self.layout == "parser" and "is_harmony" in _parameters(self._parsers.get_parser)
        self._classes: dict[tuple[str, bool], Any] = {}

    def names(self) -> list[str]:
        """Every registered reasoning parser."""
        return sorted(self.manager.list_registered())

    def request(self, kwargs: dict[str, Any] | None) -> Any:
        """A chat request with these `chat_template_kwargs`."""
        messages = [{"role": "user", "content": "hi"}]
        return self._request(model="m", messages=messages, chat_template_kwargs=kwargs)

    def unsupported(self, name: str, tokenizer: Any) -> str | None:
        """Why this parser cannot be run here; None where it can."""
        if name != HARMONY or not _is_gpt_oss(tokenizer):
            return None
        if not self._takes_harmony:
            return f"the server of vLLM {self.version} splits gpt-oss itself, without a parser"
        return None if _has_harmony() else f"openai-harmony would download its vocabulary: set {_BASE} there"

    def build(self, name: str, tokenizer: Any, kwargs: dict[str, Any]) -> Driven:
        """This parser for one request. Raises what vLLM raises."""
        own = {"chat_template_kwargs": dict(kwargs)}
        if self.layout == "parser":
            config = {"model_config": None} if self._takes_config else {}
            parser = self._class(name, tokenizer)(tokenizer, None, **own, **config)
            return Whole(parser, finished=self._finished, ids=self._ids)
        reasoning = self.manager.get_reasoning_parser(name)(tokenizer, **own)
        if self.layout == "delta":
            made = self._class(name, tokenizer)
            return ByDelta(reasoning, lambda: Whole(made(tokenizer, None, **own), finished=self._finished, ids=False))
        return ByHand(reasoning, self._reads_prompt)

    def forget(self) -> None:
        """Names may mean other classes now."""
        self._classes.clear()

    def _class(self, name: str, tokenizer: Any) -> Any:
        # The server of a gpt-oss model says so, which makes another parser of this name than a stub.
        harmony = name == HARMONY and self._takes_harmony and _is_gpt_oss(tokenizer)
        if (name, harmony) not in self._classes:
            more = {"is_harmony": True} if harmony else {}
            self._classes[name, harmony] = self._parsers.get_parser(reasoning_parser_name=name, **more)
        return self._classes[name, harmony]


def load() -> Vllm:
    """Import vLLM, with all that a runner needs of it."""
    found = Vllm()
    found.request({})
    return found


class Whole:
    """Layout `parser`."""

    def __init__(self, parser: Any, *, finished: bool, ids: bool) -> None:
        self._parser = parser
        self._finished = finished
        self._ids = ids

    def prepare(self, prompt_ids: list[int] | None, request: Any) -> tuple[Any, bool | None]:
        self._tell(prompt_ids)
        request = self._parser.adjust_request(request=request)
        return request, None if prompt_ids is None else self._parser.is_reasoning_end(prompt_ids)

    def parse(self, text: str, ids: list[int], prompt_ids: list[int] | None, request: Any) -> tuple[Any, Any]:
        self._tell(prompt_ids)
        more = {"model_output_token_ids": ids} if self._ids else {}
        reasoning, content, *_ = self._parser.parse(text, request, enable_auto_tools=False, **more)
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
    """Layout `delta`. The `Parser` is built for a stream only: it may demand what the reasoning parser does not."""

    def __init__(self, reasoning: Any, stream: Callable[[], Whole]) -> None:
        self._reasoning = reasoning
        self._build = stream
        self._stream: Whole | None = None

    def prepare(self, prompt_ids: list[int] | None, request: Any) -> tuple[Any, bool | None]:
        request = self._reasoning.adjust_request(request=request)
        return request, None if prompt_ids is None else self._reasoning.is_reasoning_end(prompt_ids)

    def parse(self, text: str, ids: list[int], prompt_ids: list[int] | None, request: Any) -> tuple[Any, Any]:
        reasoning, content = self._reasoning.extract_reasoning(text, request=request)
        return reasoning, content

    def delta(self, text: str, ids: list[int], prompt_ids: list[int] | None, request: Any, *, finished: bool) -> Any:
        if self._stream is None:
            self._stream = self._build()
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


def _is_gpt_oss(tokenizer: Any) -> bool:
    return bool(tokenizer.get_vocab().get(_CHANNEL[0]) == _CHANNEL[1])


def _has_harmony() -> bool:
    """Whether harmony's vocabulary is at hand: in the fork of the library, or where the variable says."""
    if os.environ.get(_BASE):
        return True
    try:
        importlib.metadata.version("oss-harmony")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _server_reads_prompt() -> bool:
    """Whether the server's loop passes all on as content once the prompt has ended reasoning.

    It does where no tool is offered from 0.17 on; 0.16 looks at the prompt where tools are, and older ones never do.
    """
    for name in SERVERS:
        with contextlib.suppress(ImportError, AttributeError, OSError):
            # Read, not imported: it needs more of a server than its parsers do.
            spec: Any = importlib.util.find_spec(name)
            source: str = spec.loader.get_source(name)
            return source.count("if prompt_is_reasoning_end_arr[i]:\n") > 1
    return True


def _attribute(module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(module), name, None)
    except ImportError:
        return None


def first_there(places: Sequence[tuple[str, str]], *, needed: bool = False) -> Any:
    """The first of these names, by module, that this vLLM has; None where it has none.

    Args:
        places: pairs of module and name.
        needed: where none is found since a package is missing that is not vLLM's own, raise what says which.
    """
    lacking: ModuleNotFoundError | None = None
    for module, name in places:
        try:
            found: Any = getattr(importlib.import_module(module), name, None)
        except ModuleNotFoundError as error:
            lacking = lacking or (None if str(error.name).partition(".")[0] == "vllm" else error)
        except ImportError:
            continue
        else:
            if found is not None:
                return found
    if needed and lacking is not None:
        raise lacking
    return None


def _parameters(function: Any) -> Any:
    return inspect.signature(function).parameters
