"""Holds the built-in models against a running vLLM: every name, many cases, and the smallest case that differs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ..base import ParserUnsupportedError
from ..bridge.process import LostError
from ..target import Target
from .answers import model_answer
from .case import Case
from .cases import cases, specs
from .families import FAMILIES
from .shrink import smallest
from .vocabulary import SpecVocabulary

_AHEAD = 32
"""Cases that the other side may be ahead."""
_PARTS = ("skip_special_tokens", "ended", "error", "full", "streams")
"""Of an answer, what the two sides are compared by."""
_ABSENT = frozenset(("ImportError", "ModuleNotFoundError"))


Answer = Mapping[str, Any] | LostError
"""What the other side makes of a case, or how it was lost."""


class RealParsers(Protocol):
    """The other interpreter, asked one thing at a time."""

    def ask(self, op: str, **fields: Any) -> Mapping[str, Any]:
        """The answer to `tokenizer` or `run`; raises LostError where it crashed or hung over it."""


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
    lost: int = 0
    """Cases over which the real parser crashed or hung."""
    lost_over: str | None = None
    """How, of the first of them."""
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
    lost: list[str] = []
    skipped: str | None = None
    with other.answers(cases(name, count, seed=seed)) as answers:
        for case, theirs in answers:
            progress()
            if isinstance(theirs, LostError):
                lost.append(str(theirs))
                continue
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
    outcome = Checked(name, compared, len(different), None, len(lost), lost[0] if lost else None, skipped)
    if not different:
        return outcome

    def compare(case: Case) -> Difference | None:
        theirs = other.run(case)
        ours = answer(case.to_json(), other.vocabularies[case.tokenizer], target)
        if isinstance(theirs, LostError) or ours == theirs or _absent(theirs):
            return None
        return Difference(case, other.vocabularies[case.tokenizer], ours, theirs)

    small = smallest(different[0], lambda case: compare(case) is not None)
    return replace(outcome, smallest=compare(small))


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

    def run(self, case: Case) -> Answer:
        try:
            if case.tokenizer not in self._told:
                self._ask("tokenizer", key=case.tokenizer, spec=self._specs[case.tokenizer].to_json())
                self._told.add(case.tokenizer)
            answer = self._ask("run", **case.to_json())
            return {key: answer[key] for key in _PARTS if key in answer}
        except LostError as error:
            # Whoever answers now was told of no tokenizer yet.
            self._told.clear()
            return error

    def _ask(self, op: str, **fields: Any) -> Mapping[str, Any]:
        answer = self._real.ask(op, **fields)
        if "failed" in answer:
            raise LostError(str(answer["failed"]))
        return answer

    def answers(self, asked: Iterator[Case]) -> _Ahead:
        return _Ahead(self.run, asked)


class _Ahead:
    """Cases with the other side's answers, which are fetched while this side works on earlier ones."""

    def __init__(self, run: Callable[[Case], Answer], asked: Iterator[Case]) -> None:
        self._run = run
        self._asked = asked
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="reasonctl-check")

    def __enter__(self) -> Iterator[tuple[Case, Answer]]:
        return self._answers()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # Whoever interrupts does not wait for an answer: the one asked is ended next.
        self._pool.shutdown(wait=kind is None, cancel_futures=True)

    def _answers(self) -> Iterator[tuple[Case, Answer]]:
        waiting: deque[tuple[Case, Future[Answer]]] = deque()
        for case in self._asked:
            waiting.append((case, self._pool.submit(self._run, case)))
            if len(waiting) > _AHEAD:
                first, answer = waiting.popleft()
                yield first, answer.result()
        for first, answer in waiting:
            yield first, answer.result()
