"""Thousands of generated outputs, put to a parser in batches; what breaks an invariant is made as small as it gets.

The same outputs come each time: hypothesis is seeded by its test, and keeps no database.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .bench import Bench
from .invariants import INVARIANTS, Break, Example, broken
from .outputs import Draft, Drafts
from .question import Answer

EXAMPLES = 2000
"""Outputs that are generated where nothing else is said."""
_BATCH = 32
_KILLS = "nothing-raised"
_SHRINKS = 400
"""Outputs more, at most, that are put to a parser to make one failure small."""


@dataclass(frozen=True, slots=True)
class Smallest:
    """The smallest output found that breaks an invariant."""

    invariant: str
    found: Break
    example: Example
    answer: Answer


@dataclass(frozen=True, slots=True)
class Generated:
    """What came of the generated outputs: how many there were, and what they broke."""

    examples: int = 0
    tame: int = 0
    unasked: int = 0
    """How many more there were that were not asked: too much had been lost before."""
    smallest: Mapping[str, Smallest] = field(default_factory=dict)
    failing: Mapping[str, int] = field(default_factory=dict)
    """How many of them break each invariant."""


class _BrokenError(Exception):
    """The invariant that is being looked for does not hold."""


class Generator:
    """Puts generated outputs to one parser.

    Args:
        bench: the parser.
        drafts: its outputs.
        progress: told how many outputs were put to it.
    """

    def __init__(self, bench: Bench, drafts: Drafts, progress: Callable[[int], None] = lambda count: None) -> None:
        self._bench = bench
        self._drafts = drafts
        self._progress = progress
        self._known: dict[Draft, tuple[Example, Answer, Mapping[str, Break]]] = {}

    def run(self, examples: int = EXAMPLES) -> Generated:
        """Generate so many outputs, put them to the parser, and make what breaks an invariant small."""
        if not self._drafts.cells or examples < 1:
            return Generated()
        seen = self._generated(examples)
        for at in range(0, len(seen), _BATCH):
            self._put(seen[at : at + _BATCH])
            self._progress(min(at + _BATCH, len(seen)))
        unasked = sum(self._known[draft][1].unasked for draft in seen)
        seen = [draft for draft in seen if not self._known[draft][1].unasked]
        failing: dict[str, int] = {}
        for draft in seen:
            for name in self._known[draft][2]:
                failing[name] = failing.get(name, 0) + 1
        # What kills the parser is made small last: that may use up all the lives that the others need.
        names = sorted((each.name for each in INVARIANTS if each.name in failing), key=_KILLS.__eq__)
        smallest = {name: self._smallest(name, examples) for name in names}
        tame = sum(self._known[draft][0].tame for draft in seen)
        ordered = {each.name: smallest[each.name] for each in INVARIANTS if each.name in smallest}
        return Generated(len(seen), tame, unasked, ordered, failing)

    def _generated(self, examples: int) -> list[Draft]:
        """So many outputs, no two alike, as hypothesis comes upon them."""
        from hypothesis import given

        seen: dict[Draft, None] = {}

        @_settings(examples, shrink=False)
        @given(self._drafts.strategy())
        def generate(draft: Draft) -> None:
            seen[draft] = None

        with _quiet():
            generate()
        return list(seen)

    def _smallest(self, name: str, examples: int) -> Smallest:
        """By hypothesis, out of what it finds itself; else the shortest of those that were seen."""
        from hypothesis import given

        best = min(
            (draft for draft, (_, _, found) in self._known.items() if name in found),
            key=self._size,
        )
        left = _SHRINKS

        @_settings(max(1, examples), shrink=True)
        @given(self._drafts.strategy())
        def shrink(draft: Draft) -> None:
            nonlocal best, left
            if draft not in self._known:
                if left <= 0:
                    return
                left -= 1
                self._put([draft])
            if name in self._known[draft][2]:
                best = min(best, draft, key=self._size)
                raise _BrokenError

        with _quiet(), contextlib.suppress(_BrokenError):
            shrink()
        example, answer, found = self._known[best]
        return Smallest(name, found[name], example, answer)

    def _size(self, draft: Draft) -> tuple[int, int, int, int]:
        texts = (draft.thought or "", draft.answer or "", draft.wild)
        return sum(map(len, texts)), len(draft.sizes), sum(draft.sizes), len(draft.beside)

    def _put(self, drafts: Sequence[Draft]) -> None:
        new = [draft for draft in dict.fromkeys(drafts) if draft not in self._known]
        examples = [self._drafts.example(draft) for draft in new]
        answers = self._bench.answers([example.question for example in examples])
        for draft, example, answer in zip(new, examples, answers, strict=True):
            self._known[draft] = example, answer, broken(example, answer)


def _settings(examples: int, *, shrink: bool) -> Callable[[Callable[[], None]], Callable[[], None]]:
    from hypothesis import HealthCheck, Phase, settings

    phases = (Phase.generate, Phase.shrink) if shrink else (Phase.generate,)
    return settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=phases,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
    )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What hypothesis says and writes goes nowhere: no `.hypothesis` folder where a user happens to be."""
    from hypothesis.configuration import set_hypothesis_home_dir

    with tempfile.TemporaryDirectory(prefix="reasonctl-hypothesis-") as folder:
        set_hypothesis_home_dir(folder)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                yield
        finally:
            set_hypothesis_home_dir(None)
