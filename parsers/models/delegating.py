"""How the server drives a reasoning parser that is no engine, whatever the parser: vLLM's DelegatingParser."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence

from ..base import Delta, ParserModel, Split, Sums
from ..columns import Deltas


class LegacyModel(ParserModel):
    """The flow around a legacy reasoning parser with no tool parser beside it.

    Streaming has two phases: the parser classifies deltas until one ends reasoning; from the next delta on everything
    is content as it stands, markers included. A prompt that reads as ended starts in the second phase; without a prompt
    nothing is read (vllm/parser/abstract_parser.py, `parse_delta`, 0.32.0 and 0.33.0 alike).
    """

    _watched: frozenset[int] | None = None
    """The ids a delta must hold for the parser to do anything but file its text as it files any text; None: no such
    thing can be said."""

    def __init__(self) -> None:
        self._ended = False

    def begin(self, prompt_ids: Sequence[int] | None, *, streaming: bool) -> None:
        self._ended = streaming and prompt_ids is not None and bool(self.is_reasoning_end(prompt_ids))

    @property
    def start_state(self) -> Hashable:
        return (self._ended,)

    def feed(self, text: str, ids: Sequence[int], *, finished: bool = False) -> Delta | None:
        if self._ended:
            return Delta(content=text)
        delta = self._classify(text, ids)
        self._ended = self._ends(ids)
        return delta

    def stream(self, deltas: Deltas) -> Split:
        sums = Sums()
        at, last = 0, len(deltas)
        watched = iter(range(last) if self._watched is None else deltas.holding(self._watched))
        while at < last and not self._ended:
            alone = next(watched, last)
            if alone > at:
                sums.add(self._classify(deltas.between(at, alone), ()))
            if alone < last:
                sums.add(self.feed(*deltas[alone], finished=alone == last - 1))
            at = alone + 1
        if at < last:
            sums.add(self.feed(deltas.between(at, last), (), finished=True))
        return sums.split()

    @abstractmethod
    def _classify(self, text: str, ids: Sequence[int]) -> Delta | None:
        """One delta of the reasoning phase (`extract_reasoning_streaming`)."""

    @abstractmethod
    def _ends(self, ids: Sequence[int]) -> bool:
        """Whether this delta, just classified, ends the reasoning phase (`is_reasoning_end_streaming`)."""
