"""Who runs parsers: the built-in models, or a real vLLM in another interpreter."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, Protocol

from . import build
from .assumed import why_not
from .base import ParserRaisedError, ParserUnsupportedError, Vocabulary
from .feed import Chunking
from .run import ModeResult, Output, ParserRun, run_parser
from .table import names
from .target import BUILTIN_ENGINE, Target


class ParserEngine(Protocol):
    """Runs parsers of one version. `close` ends what it started."""

    @property
    def described(self) -> Mapping[str, str]:
        """`engine` of `reasonctl.report/1`."""

    @property
    def target(self) -> Target | None:
        """The vLLM version it is; None where it can be any."""

    @property
    def name(self) -> str:
        """How the user names it."""

    @property
    def plugin_problem(self) -> str | None:
        """Why the parsers of a plugin are not among its names; None where there is no plugin, or they are."""

    def names(self) -> tuple[str, ...]:
        """The parsers it knows."""

    def run(
        self,
        name: str,
        vocabulary: Vocabulary,
        kwargs: Mapping[str, Any] | None,
        output: Output,
        *,
        chunkings: Sequence[Chunking],
        request_kwargs: Mapping[str, Any] | None = None,
    ) -> ParserRun:
        """Put an output to a parser (see `run_parser`). A crash or a hang is told by `ParserRun.lost`, never raised."""

    def starter(
        self,
        name: str,
        vocabulary: Vocabulary,
        kwargs: Mapping[str, Any] | None,
        request_kwargs: Mapping[str, Any] | None = None,
    ) -> Callable[[Sequence[int]], Hashable]:
        """From a prompt's ids to what they make of the parser: with equal ones, the same output has the same result.

        The prompt itself where nothing less can be said.
        """

    def refusal(
        self,
        name: str,
        vocabulary: Vocabulary,
        kwargs: Mapping[str, Any] | None,
        request_kwargs: Mapping[str, Any] | None = None,
    ) -> str | None:
        """What the parser's constructor raises for this tokenizer and these kwargs; None where it raises nothing."""

    def loads(self, folder: Path, texts: Sequence[str]) -> Mapping[str, Any] | None:
        """The tokenizer its transformers builds from a model's folder, on these texts; None: this process's is meant.

        Returns:
            `version` of transformers, and `error`, or `class`, `size`, `special_tokens` and `results`: for each text
            its `ids`, and the `text` that they give back.
        """

    def close(self) -> None:
        """End whatever was started."""


class BuiltinEngine:
    """The parser models of this package.

    Args:
        judged_as: the server whose parsers they are models of.
    """

    described: Mapping[str, str] = BUILTIN_ENGINE
    target: Target | None = None
    name = "built-in"
    plugin_problem: str | None = None

    def __init__(self, judged_as: Target) -> None:
        self.judged_as = judged_as

    def names(self) -> tuple[str, ...]:
        return names(self.judged_as)

    def run(
        self,
        name: str,
        vocabulary: Vocabulary,
        kwargs: Mapping[str, Any] | None,
        output: Output,
        *,
        chunkings: Sequence[Chunking],
        request_kwargs: Mapping[str, Any] | None = None,
    ) -> ParserRun:
        why = why_not(name, vocabulary)
        if why is not None:
            return ParserRun(name, ModeResult(None, None, None, 0), (), None, unsupported=why)
        return run_parser(
            name,
            vocabulary,
            kwargs,
            output,
            chunkings=chunkings,
            request_kwargs=request_kwargs,
            target=self.judged_as,
        )

    def starter(
        self,
        name: str,
        vocabulary: Vocabulary,
        kwargs: Mapping[str, Any] | None,
        request_kwargs: Mapping[str, Any] | None = None,
    ) -> Callable[[Sequence[int]], Hashable]:
        try:
            built = build(name, vocabulary, kwargs, request_kwargs=request_kwargs, target=self.judged_as)
        except (ParserRaisedError, ParserUnsupportedError):
            return tuple

        def start(prompt_ids: Sequence[int]) -> Hashable:
            full, streamed = copy(built), copy(built)
            try:
                full.begin(prompt_ids, streaming=False)
                streamed.begin(prompt_ids, streaming=True)
            except ParserRaisedError:
                return tuple(prompt_ids)
            states = full.start_state, streamed.start_state
            return tuple(prompt_ids) if None in states else states

        return start

    def refusal(
        self,
        name: str,
        vocabulary: Vocabulary,
        kwargs: Mapping[str, Any] | None,
        request_kwargs: Mapping[str, Any] | None = None,
    ) -> str | None:
        try:
            build(name, vocabulary, kwargs, request_kwargs=request_kwargs, target=self.judged_as)
        except ParserRaisedError as error:
            return str(error)
        except ParserUnsupportedError:
            return None
        return None

    def loads(self, folder: Path, texts: Sequence[str]) -> Mapping[str, Any] | None:
        return None

    def close(self) -> None:
        """Nothing is open."""
