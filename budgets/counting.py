"""How a server counts thinking tokens against a request's budget, and where it forces the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Rule = Literal["vllm-v1", "vllm-v2", "slimserve"]


@dataclass(frozen=True)
class Markers:
    """The token sequences a counter goes by.

    Attributes:
        start: what opens a block.
        natural_end: what a model ends one with.
        forced_end: what the server writes when the budget is used up: usually the same, with `--reasoning-config` a
            phrase around it.
    """

    start: tuple[int, ...]
    natural_end: tuple[int, ...]
    forced_end: tuple[int, ...]


class Counter(Protocol):
    """Follows one output; asked before every token."""

    def forced(self, output: Sequence[int]) -> int | None:
        """The token that is forced behind this output, None where the model goes on by itself."""
        ...


def counter(rule: Rule, markers: Markers, budget: int | None, prompt: Sequence[int]) -> Counter:
    """The counter of a request. A budget of None or -1 is no limit.

    Sources: vLLM 0.32.0 and 0.33.0, v1/sample/thinking_budget_state.py (V1) and
    v1/worker/gpu/sample/thinking_budget.py (V2), both run; SlimServe docs/reasoning-token-budgets.md.
    """
    if budget is None or budget < 0:
        return _Free()
    if rule == "vllm-v1":
        return _V1(markers, budget, prompt)
    return _Rescan(markers, budget, prompt, charge_prompt=rule == "vllm-v2")


def rfind(tokens: Sequence[int], wanted: Sequence[int], begin: int = 0) -> int:
    """The last place at or behind `begin` where a sequence stands, -1 where it does not."""
    size, first = len(wanted), wanted[0] if wanted else None
    for at in range(len(tokens) - size, begin - 1, -1):
        if tokens[at] == first and tuple(tokens[at : at + size]) == tuple(wanted):
            return at
    return -1


@dataclass(frozen=True, slots=True)
class Written:
    """One token of an output, and whether the server forced it."""

    token: int
    forced: bool


def play(follow: Counter, said: Sequence[int], most: int) -> list[Written]:
    """What comes out where the model says these tokens one after the other, those that are forced in between.

    Args:
        follow: the request's counter.
        said: the model's own tokens; the output ends behind the last of them.
        most: the output is cut at this many tokens, as by max_tokens.
    """
    output: list[int] = []
    found: list[Written] = []
    rest = list(reversed(said))
    while rest and len(found) < most:
        token = follow.forced(output)
        found.append(Written(rest.pop() if token is None else token, token is not None))
        output.append(found[-1].token)
    return found


class _Free:
    def forced(self, output: Sequence[int]) -> int | None:
        return None


class _Rescan:
    """Looks at all tokens anew before each one, as vLLM's V2 runner does on the GPU."""

    def __init__(self, markers: Markers, budget: int, prompt: Sequence[int], *, charge_prompt: bool) -> None:
        self._markers = markers
        self._budget = budget
        self._prompt = list(prompt)
        self._charge_prompt = charge_prompt

    def forced(self, output: Sequence[int]) -> int | None:
        markers = self._markers
        tokens = [*self._prompt, *output]
        start = rfind(tokens, markers.start)
        if start < 0 or start <= rfind(tokens, markers.natural_end):
            return None
        begin = start + len(markers.start)
        if not self._charge_prompt:
            begin = max(begin, len(self._prompt))
        if len(tokens) - begin < self._budget:
            return None
        written = next(
            (
                size
                for size in range(len(markers.forced_end) - 1, 0, -1)
                if tuple(tokens[-size:]) == markers.forced_end[:size]
            ),
            0,
        )
        return markers.forced_end[written]


class _V1:
    """Keeps a count from token to token, as vLLM's V1 runner does on the CPU.

    It knows one end only, the forced one: where that is a phrase, a natural end goes unseen. A start marker of several
    tokens that the prompt ends in is counted late by all its tokens but one. An end marker outside of any block makes
    it blind for the end of the next one.
    """

    def __init__(self, markers: Markers, budget: int, prompt: Sequence[int]) -> None:
        self._markers = markers
        self._budget = budget
        self._seen = 0
        """What was looked at for good: places in the output before it belong to blocks that are over."""
        self._start: int | None = None
        """Where the block starts in the output; before it, in the prompt, it is negative."""
        self._begin = 0
        """Where its tokens are counted from."""
        self._end: int | None = None
        self._writing: int | None = None
        """How many tokens of the forced end are written; None while none is."""
        start = rfind(prompt, markers.start)
        if start > rfind(prompt, markers.forced_end):
            used = len(prompt) - start - len(markers.start)
            self._start = start - len(prompt)
            self._begin = len(markers.start) - 1 - used
            if used >= budget:
                self._writing = 0

    def forced(self, output: Sequence[int]) -> int | None:
        if self._writing is None:
            self._look(output)
            if self._start is None or len(output) - self._begin < self._budget:
                return None
            self._writing = 0
        token = self._markers.forced_end[self._writing]
        self._writing += 1
        if self._writing == len(self._markers.forced_end):
            self._leave(len(output) + 1)
        return token

    def _look(self, output: Sequence[int]) -> None:
        """Find the start of a block, or its end, in what came since the last one."""
        markers = self._markers
        if self._start is None:
            start = rfind(output, markers.start, self._seen)
            if start >= 0:
                self._start, self._begin = start, start + len(markers.start)
        if self._end is None:
            end = rfind(output, markers.forced_end, self._seen)
            self._end = end if end >= 0 else None
        if self._start is not None and self._end is not None and self._end > self._start:
            self._leave(len(output))

    def _leave(self, seen: int) -> None:
        self._start, self._end, self._writing, self._seen = None, None, None, seen
