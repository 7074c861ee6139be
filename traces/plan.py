"""What is run on every trace, and who runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..parsers import Target, Vocabulary
from ..parsers.feed import Chunking
from ..parsers.run import TOKEN, Output, ParserRun, run_parser

RECORDED = Chunking("recorded")
DEFAULT_CHUNKINGS = (RECORDED, TOKEN, Chunking("tokens", 3), Chunking("whole"))


@dataclass(frozen=True)
class Plan:
    """What is run on every trace.

    Args:
        parsers: names asked for; empty: each trace's recorded parser and the serve command's, else all of the target.
        named: those given with `--parser NAME`, which findings are about.
        serve_parser: the serve command's; likewise.
        chunkings: the streams to report.
        target: the server to judge by.
        explain: model or server are known, so that the cause of a failure is looked for.
        strings: start and end text of the server's `--reasoning-config`.
    """

    parsers: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    serve_parser: str | None = None
    chunkings: tuple[Chunking, ...] = DEFAULT_CHUNKINGS
    target: Target = Target()  # noqa: RUF009  (frozen)
    explain: bool = False
    strings: tuple[str | None, str | None] = (None, None)


class Engine(Protocol):
    """Who runs parsers."""

    def run(
        self,
        name: str,
        vocabulary: Vocabulary,
        kwargs: Mapping[str, Any] | None,
        output: Output,
        *,
        chunkings: Sequence[Chunking],
        request_kwargs: Mapping[str, Any] | None = None,
    ) -> ParserRun: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Builtin:
    """The built-in models."""

    target: Target

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
        return run_parser(
            name,
            vocabulary,
            kwargs,
            output,
            chunkings=chunkings,
            request_kwargs=request_kwargs,
            target=self.target,
        )

    def close(self) -> None:
        """Nothing is open."""


def open_engine(plan: Plan) -> Engine:
    """The engine of a plan, for one process; its `close` ends what it started."""
    return Builtin(plan.target)
