"""The whole battery on one parser of one vLLM: named cases, generated outputs, what instances share, the cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..parsers.base import ParserUnsupportedError
from .bench import GIVEN_UP, Bench, Cost, Description
from .cases import CLASS_ONLY, NamedCase, Outcome, judged, leading, named_cases, opening
from .feeding import Feeder
from .generated import EXAMPLES, Generated, Generator
from .outputs import Drafts
from .setting import Setting

GROWS = 3.0
DEAR = 500e-6
"""A delta of a long stream that takes so many times the time of an early one, and so many seconds, is told."""
_STRETCH = "Let me see, two and two make four, and then one more.\n"
_PART = 64
"""Named cases that are put to the parser between two steps of the progress."""


class Progress(Protocol):
    """Is told what is done, and how much of it."""

    def __call__(self, what: str, done: int, of: int) -> None: ...


def silent(what: str, done: int, of: int) -> None:
    """Nobody is told."""


@dataclass(frozen=True)
class Battery:
    """What came of it.

    Attributes:
        setting: what the parser was put to the test with.
        engine: who ran it: `engine` of a report.
        asked: vLLM's own class was asked, so that all aspects were looked at.
        description: what the parser's class says of itself; None where nobody knows.
        refused: what its constructor raises for this tokenizer and no kwargs.
        unsupported: why nothing could be run.
        outcomes: the named cases.
        generated: the generated outputs.
        shared: values of its classes and modules that changed meanwhile: name, before, after.
        cost: of a long thought.
    """

    setting: Setting
    engine: Mapping[str, Any]
    asked: bool
    description: Description | None = None
    refused: str | None = None
    unsupported: str | None = None
    outcomes: tuple[Outcome, ...] = ()
    generated: Generated = field(default_factory=Generated)
    shared: tuple[tuple[str, str, str], ...] = ()
    cost: Cost | None = None

    @property
    def version(self) -> str:
        """The vLLM version; of the built-in models, the one they are models of."""
        return str(self.engine.get("vllm_version") or self.engine.get("models", "").removeprefix("vllm=="))

    @property
    def failed(self) -> list[Outcome]:
        """Named cases of requests that people send, with something wrong."""
        return [one for one in self.outcomes if one.case.weighs and one.wrong is not None]

    @property
    def lost(self) -> list[str]:
        """Why results are missing, one text for each."""
        texts = [one.lost for one in self.outcomes if one.lost is not None]
        smallest = self.generated.smallest.get("nothing-raised")
        if smallest is not None and smallest.answer.lost is not None:
            texts.append(smallest.answer.lost)
        return texts + [GIVEN_UP] * self.generated.unasked

    @property
    def grows(self) -> bool:
        """A delta takes longer the longer the stream is, and long."""
        cost = self.cost
        return cost is not None and cost.late > GROWS * cost.early and cost.late > DEAR


def run_battery(
    bench: Bench,
    setting: Setting,
    engine: Mapping[str, Any],
    *,
    examples: int = EXAMPLES,
    progress: Progress = silent,
) -> Battery:
    """Put one parser to the test.

    Args:
        bench: the parser.
        setting: what it is put to the test with.
        engine: who runs it.
        examples: outputs to generate.
        progress: is told what is done.
    """
    asked = engine.get("kind") == "vllm"
    described = bench.describe()
    refused = described if isinstance(described, str) else None
    description = described if isinstance(described, Description) else None
    if setting.problem is not None:
        return Battery(setting, engine, asked, description, refused, setting.problem)
    feeder = Feeder(setting, bench)
    try:
        cases = [case for case in named_cases(feeder) if asked or case.aspect not in CLASS_ONLY]
        before = bench.shared_state()
        outcomes = _named(bench, cases, setting, progress)
        generator = Generator(
            bench, Drafts(feeder, asks=asked), lambda done: progress("generated outputs", done, examples)
        )
        generated = generator.run(examples)
        shared = tuple(_changed(before, bench.shared_state()))
        cost = _cost(bench, feeder)
    except ParserUnsupportedError as why:
        return Battery(setting, engine, asked, description, refused, str(why))
    return Battery(setting, engine, asked, description, refused, None, outcomes, generated, shared, cost)


def _named(bench: Bench, cases: Sequence[NamedCase], setting: Setting, progress: Progress) -> tuple[Outcome, ...]:
    found: list[Outcome] = []
    for at in range(0, len(cases), _PART):
        part = cases[at : at + _PART]
        answers = bench.answers([case.question for case in part])
        found += [judged(case, answer, setting.markers) for case, answer in zip(part, answers, strict=True)]
        progress("named cases", len(found), len(cases))
    return tuple(found)


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[tuple[str, str, str]]:
    return [
        (name, before.get(name, "nothing"), text) for name, text in after.items() if before.get(name, "nothing") != text
    ]


def _cost(bench: Bench, feeder: Feeder) -> Cost | None:
    thinking = feeder.setting.thinking
    if thinking.start is None or thinking.harmony:
        return None
    cell = next((cell for cell in leading(feeder.setting.cells) if cell.thinks), None)
    if cell is None:
        return None
    text = opening(feeder, cell)
    head = (text, feeder.setting.vocabulary.encode(text)) if text else ("", [])
    stretch = feeder.fed(cell, _STRETCH, finished=False).plain
    return bench.cost(cell, head, list(stretch.texts), list(stretch.token_ids))
