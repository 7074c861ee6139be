"""Holds the built-in models against a running vLLM: every name, many cases, and the smallest case that differs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from ..base import ParserUnsupportedError
from ..target import Target
from .answers import model_answer
from .case import Case
from .cases import cases, specs
from .families import FAMILIES
from .shrink import smallest
from .vocabulary import SpecVocabulary

_AHEAD = 32
"""Cases that the other side may be ahead."""
_ABSENT = frozenset(("ImportError", "ModuleNotFoundError"))


class RealParsers(Protocol):
    """The other interpreter, asked one thing at a time."""

    def ask(self, op: str, **fields: Any) -> Mapping[str, Any]:
        """The answer to `tokenizer` or `run`; raises where it crashed or hung over it."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One case that the two sides answer differently. The answers are those of `answers.model_answer`."""

    case: Case
    vocabulary: SpecVocabulary
    built_in: Mapping[str, Any]
    real: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Checked:
    """What became of one name."""

    name: str
    cases: int
    """Compared."""
    different: int = 0
    smallest: Difference | None = None
    skipped: str | None = None
    """Why nothing, or not everything, could be compared."""


def check_name(
    real: RealParsers,
    name: str,
    target: Target,
    *,
    count: int,
    seed: int,
    answer: Callable[[Mapping[str, Any], SpecVocabulary, Target], dict[str, Any]] = model_answer,
    progress: Callable[[], None] = lambda: None,
) -> Checked:
    """Compare one parser on generated cases. Of those that differ the first is made small.

    Args:
        real: the running vLLM.
        name: a parser it registers.
        target: which version it is.
        count: cases.
        seed: of the cases.
        answer: what is held against it.
        progress: called after each case.
    """
    if name not in FAMILIES:
        return Checked(name, 0, skipped="reasonctl has no cases for this name")
    other = _Other(real, name)
    compared = 0
    different: list[Case] = []
    skipped: str | None = None
    with other.answers(cases(name, count, seed=seed)) as answers:
        for case, theirs in answers:
            progress()
            try:
                ours = answer(case.to_json(), other.vocabularies[case.tokenizer], target)
            except ParserUnsupportedError as error:
                skipped = str(error)
                continue
            if absent := _absent(theirs):
                skipped = f"that vLLM raises {absent}: a package this parser needs is missing there"
                continue
            compared += 1
            if ours != theirs:
                different.append(case)
    if not different:
        return Checked(name, compared, skipped=skipped)

    def both(case: Case) -> tuple[dict[str, Any], Mapping[str, Any]]:
        return answer(case.to_json(), other.vocabularies[case.tokenizer], target), other.run(case)

    def differs(case: Case) -> bool:
        ours, theirs = both(case)
        return ours != theirs and not _absent(theirs)

    small = smallest(different[0], differs)
    return Checked(
        name,
        compared,
        len(different),
        Difference(small, other.vocabularies[small.tokenizer], *both(small)),
        skipped,
    )


def _absent(theirs: Mapping[str, Any]) -> str | None:
    """The exception by which the other side says that it lacks a package; None where it lacks none."""
    errors = {part.get("error") for part in (theirs, theirs["full"], *theirs["streams"])}
    return next((error for error in errors if error in _ABSENT), None)


class _Other:
    """The other side, which is told of each tokenizer once."""

    def __init__(self, real: RealParsers, name: str) -> None:
        self._real = real
        self._specs = specs(name)
        self.vocabularies = {key: SpecVocabulary(spec) for key, spec in self._specs.items()}
        self._told: set[str] = set()

    def run(self, case: Case) -> Mapping[str, Any]:
        if case.tokenizer not in self._told:
            self._real.ask("tokenizer", key=case.tokenizer, spec=self._specs[case.tokenizer].to_json())
            self._told.add(case.tokenizer)
        return self._real.ask("run", **case.to_json())

    def answers(self, asked: Iterator[Case]) -> _Ahead:
        return _Ahead(self.run, asked)


class _Ahead:
    """Cases with the other side's answers, which are fetched while this side works on earlier ones."""

    def __init__(self, run: Callable[[Case], Mapping[str, Any]], asked: Iterator[Case]) -> None:
        self._run = run
        self._asked = asked
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="reasonctl-check")

    def __enter__(self) -> Iterator[tuple[Case, Mapping[str, Any]]]:
        return self._answers()

    def __exit__(self, *raised: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def _answers(self) -> Iterator[tuple[Case, Mapping[str, Any]]]:
        waiting: deque[tuple[Case, Future[Mapping[str, Any]]]] = deque()
        for case in self._asked:
            waiting.append((case, self._pool.submit(self._run, case)))
            if len(waiting) > _AHEAD:
                first, answer = waiting.popleft()
                yield first, answer.result()
        for first, answer in waiting:
            yield first, answer.result()
