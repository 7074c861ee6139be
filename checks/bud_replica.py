"""What a server's own counting makes of outputs a model may write: the replica of the counter, run for a rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..budgets.context import markers_of
from ..budgets.counting import Markers, Rule, Written, counter, play
from ..budgets.facts import BudgetFacts
from ..budgets.strings import Runner, Strings, counting_rule
from ..parsers.base import Vocabulary

THOUGHT = "one two three four five six seven eight nine ten eleven twelve"
ANSWER = (
    "It is four, and here is a long answer that goes on and on for much longer than the thought was ever allowed to"
)
_MOST = 400
_BUDGET = 4
"""Tokens: enough to tell a prompt's from a model's, few enough for every thought to pass it."""


@dataclass(frozen=True, slots=True)
class Replica:
    """A counter with texts for its tokens.

    `end` is what the model itself ends a thought with. `real` says that the ids are the model's own.
    """

    rule: Rule
    markers: Markers
    strings: Strings
    end: str
    words: Vocabulary
    real: bool

    def output(self, *parts: str, budget: int = _BUDGET) -> list[Written]:
        """What comes of a model that says these parts behind a prompt that ends in the start marker."""
        said = [token for part in parts for token in self.words.encode(part)]
        return play(counter(self.rule, self.markers, budget, self.markers.start), said, _MOST)

    def text(self, written: Sequence[Written]) -> str:
        """The output, forced stretches in brackets."""
        runs: list[tuple[bool, list[int]]] = []
        for one in written:
            if not runs or runs[-1][0] != one.forced:
                runs.append((one.forced, []))
            runs[-1][1].append(one.token)
        return " ".join(
            f"[{self.words.decode(ids)}]" if forced else self.words.decode(ids).strip() for forced, ids in runs
        )


def replicas(facts: BudgetFacts) -> list[Replica]:
    """The counter of a server, for each model runner that it may have; none where it counts nothing that is known."""
    strings = facts.strings
    if strings is None or facts.target.product != "vllm" or facts.command is None:
        return []
    words = facts.context.vocabulary if facts.context is not None else _words(strings)
    end = _end(facts, strings)
    real = facts.context is not None and facts.context.real
    runners: tuple[Runner, ...] = (facts.runner,) if facts.runner is not None else ("v1", "v2")
    return [
        Replica(counting_rule(facts.target, runner), markers_of(strings, words), strings, end, words, real)
        for runner in runners
    ]


def _words(strings: Strings) -> Vocabulary:
    from ..parsers.assumed import AssumedVocabulary

    return AssumedVocabulary([text for text in (strings.start, strings.natural, strings.parser_end or "") if text])


def _end(facts: BudgetFacts, strings: Strings) -> str:
    """What a model ends a thought with: its template's marker, its parser's, else a known one in the forced text."""
    from ..parsers.markers import STATE_MARKERS

    if facts.context is not None and facts.context.end is not None:
        return facts.context.end
    if strings.parser_end is not None:
        return strings.parser_end
    known = [pair.end for pair in STATE_MARKERS if pair.end in strings.forced]
    return max(known, key=len, default=strings.forced)
