"""What a model is expected to say under a budget: a lab model by its script, another by what it said without one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..budgets.counting import Markers, Rule, counter, rfind
from ..budgets.dialects import Dialect
from ..budgets.resolve import resolve
from .lab_families import LabFamily
from .lab_tokens import build_tokenizer, vocabulary


def cutoff(rule: Rule, budget: int | None, max_tokens: int) -> int | None:
    """What a server enforces of a request's budget; None for no limit."""
    dialect: Dialect = "slimserve" if rule == "slimserve" else "vllm"
    return resolve(dialect, None, effort=None, request_budget=budget, max_tokens=max_tokens).cutoff


@dataclass(frozen=True)
class Said:
    """An output.

    Attributes:
        ids: its token ids, the end of the turn included.
        finish_reason: `stop` or `length`.
        forced: some token is the server's, where the model would have said another.
    """

    ids: tuple[int, ...]
    finish_reason: str
    forced: bool


class Speaker:
    """A lab model as its script has it: the same tokens as the folder that `build_lab` writes."""

    def __init__(self, family: LabFamily, thinking_tokens: int) -> None:
        words = vocabulary(family, thinking_tokens)
        tokenizer = build_tokenizer(family, words)

        def ids(texts: Sequence[str]) -> tuple[int, ...]:
            return tuple(tokenizer.encode(text, add_special_tokens=False).ids[0] for text in texts)

        self.family = family
        self.thinking_tokens = thinking_tokens
        self.markers = Markers(ids(family.start), ids(family.end), ids(family.forced or family.end))
        (self.eos,) = ids((family.eos,))
        self.encode: Callable[[str], list[int]] = lambda text: list(
            tokenizer.encode(text, add_special_tokens=False).ids
        )
        self._follows: Mapping[int, int] = dict(
            zip(ids(list(words.follows)), ids(list(words.follows.values())), strict=True)
        )

    def follower(self, token: int) -> int:
        """What the model says behind a token."""
        return self._follows.get(token, self.eos)

    def say(self, prompt: Sequence[int], *, rule: Rule, budget: int | None, max_tokens: int) -> Said:
        """The output of one request, by a server's rule of counting."""
        follow = counter(rule, self.markers, cutoff(rule, budget, max_tokens), prompt)
        output: list[int] = []
        forced = False
        while len(output) < max_tokens:
            natural = self.follower((output or prompt)[-1])
            token = follow.forced(output)
            forced = forced or token not in (None, natural)
            output.append(natural if token is None else token)
            if output[-1] == self.eos:
                return Said(tuple(output), "stop", forced)
        return Said(tuple(output), "length", forced)


@dataclass(frozen=True)
class Blocks:
    """How an output divides.

    Attributes:
        thinking: tokens inside blocks, markers left out.
        answer: tokens outside of them, markers and the end of the turn left out.
        ended: how often a block was ended by its marker.
    """

    thinking: int
    answer: int
    ended: int


def blocks(
    prompt: Sequence[int],
    output: Sequence[int],
    markers: Markers,
    *,
    eos: frozenset[int] = frozenset(),
    also_end: frozenset[int] = frozenset(),
) -> Blocks:
    """Count the tokens inside and outside of thinking blocks.

    Args:
        prompt, output: token ids.
        markers: what opens and ends a block.
        eos: ends of a turn, which count nowhere.
        also_end: tokens that end a block and belong to the answer, such as the start of a tool call.
    """
    inside = rfind(prompt, markers.start) > rfind(prompt, markers.natural_end)
    thinking = answer = ended = at = 0
    while at < len(output):
        start, end = (
            bool(marker) and tuple(output[at : at + len(marker)]) == marker
            for marker in (markers.start, markers.natural_end)
        )
        if start or end:
            ended += end and inside
            inside = start
            at += len(markers.start if start else markers.natural_end)
            continue
        token = output[at]
        inside = inside and token not in also_end
        if token not in eos:
            thinking += inside
            answer += not inside
        at += 1
    return Blocks(thinking, answer, ended)
