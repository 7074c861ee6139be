"""Several vLLMs on one trace: what each of them makes of it, and where they do not agree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..parsers.run import ModeResult
from .plan import Engines
from .splits import NO_PARSER, mode_json
from .work import Result, Work


@dataclass(frozen=True, slots=True)
class Other:
    """What a vLLM besides the first makes of a trace."""

    version: str
    results: tuple[Result, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """One parser that two versions let split a trace differently. `modes` are (before, after) of those that differ."""

    parser: str
    before: str
    after: str
    modes: tuple[tuple[ModeResult, ModeResult], ...]


def others(work: Work, engines: Engines, names: Iterable[str]) -> tuple[Other, ...]:
    """The same parsers on the same trace, by every vLLM behind the first."""
    asked = [name for name in names if name != NO_PARSER]
    return tuple(
        Other(label, tuple(work.by(engine).run(name) for name in asked))
        for label, engine in zip(engines.labels[1:], engines.others, strict=True)
    )


def changes(version: str, results: Sequence[Result], other: Other) -> Iterator[Change]:
    """Every parser that both have and that splits the trace differently; white space at the ends aside."""
    theirs = {result.parser: result for result in other.results}
    for result in results:
        after = theirs.get(result.parser)
        if after is None or not _comparable(result) or not _comparable(after):
            continue
        pairs = zip(result.modes, after.modes, strict=True)
        modes = tuple((one, two) for one, two in pairs if _split(one) != _split(two))
        if modes:
            yield Change(result.parser, version, other.version, modes)


def compared(results: Sequence[Result], other: Other) -> tuple[str, ...]:
    """The parsers that both vLLMs have a result of."""
    theirs = {result.parser for result in other.results if _comparable(result)}
    return tuple(result.parser for result in results if _comparable(result) and result.parser in theirs)


def upgrade_json(trace: str, version: str, results: Sequence[Result], other: Other) -> Iterator[dict[str, Any]]:
    """One entry for each parser of a trace: the other version's result, and the modes in which it differs."""
    changed = {change.parser: change for change in changes(version, results, other)}
    both = compared(results, other)
    for result in other.results:
        change = changed.get(result.parser)
        yield {
            "trace": trace,
            "parser": result.parser,
            "before": version,
            "after": other.version,
            "same": None if result.parser not in both else change is None,
            "status": result.status,
            "reason": result.reason,
            "full": mode_json(result.full),
            "stream": [mode_json(mode) for mode in result.stream],
            "reasoning_tokens": result.reasoning_tokens,
            "differs": [
                {"chunking": one.chunking, "before": mode_json(one), "after": mode_json(two)}
                for one, two in change.modes
            ]
            if change is not None
            else [],
        }


def _comparable(result: Result) -> bool:
    return result.status != "unsupported" and not result.crashed


def _split(mode: ModeResult) -> tuple[Any, ...]:
    return mode.chunking, (mode.reasoning or "").strip(), (mode.content or "").strip(), mode.error
