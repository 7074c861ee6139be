"""What is run on every trace, and who runs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..parsers import Target
from ..parsers.bridge.bridge import Bridge, open_bridge
from ..parsers.bridge.plugin import Plugin
from ..parsers.bridge.spec import EngineSpec
from ..parsers.engines import BuiltinEngine, ParserEngine
from ..parsers.feed import Chunking
from ..parsers.run import TOKEN

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
        budgeted: the server has a default thinking budget.
        vllm: real ones that run the parsers in place of the built-in models; those behind the first are compared.
        plugin: a user's own parsers, for these.
        strips: each trace is drawn token by token.
    """

    parsers: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    serve_parser: str | None = None
    chunkings: tuple[Chunking, ...] = DEFAULT_CHUNKINGS
    target: Target = Target()  # noqa: RUF009  (frozen)
    explain: bool = False
    strings: tuple[str | None, str | None] = (None, None)
    budgeted: bool = False
    vllm: tuple[EngineSpec, ...] = ()
    plugin: Plugin | None = None
    strips: bool = False


class Engines:
    """Those who run parsers: the one whose results are judged, and others that are held against it.

    Args:
        first: whose results are judged.
        others: in the order of the command line.
    """

    def __init__(self, first: ParserEngine, others: Sequence[ParserEngine] = ()) -> None:
        self.first = first
        self.others = tuple(others)
        versions = [engine.described.get("vllm_version", "") for engine in (first, *others)]
        self.labels = tuple(
            version if versions.count(version) == 1 else f"{version} ({engine.name})"
            for version, engine in zip(versions, (first, *others), strict=True)
        )
        """What tells them apart: their versions, and how they were named where these are the same."""

    def close(self) -> None:
        for engine in (self.first, *self.others):
            engine.close()


def open_engines(plan: Plan) -> Engines:
    """The engines of a plan, for one process. Raises BridgeError where a vLLM does not come up."""
    if not plan.vllm:
        return Engines(BuiltinEngine(plan.target))
    opened: list[Bridge] = []
    try:
        opened += (open_bridge(spec, plugin=plan.plugin) for spec in plan.vllm)
    except BaseException:
        for bridge in opened:
            bridge.close()
        raise
    return Engines(opened[0], opened[1:])
