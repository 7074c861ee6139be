"""What a second vLLM makes of the same parser and the same cases: fixed, broken, left as it was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .battery import Battery
from .cases import Outcome


@dataclass(frozen=True, slots=True)
class Comparison:
    """Labels of cases and of invariants, each relative to `base`; `left` are those that weigh and fail in both."""

    base: str
    other: str
    fixed: tuple[str, ...]
    broke: tuple[str, ...]
    left: tuple[str, ...]
    answers: tuple[str, ...]
    """Cases that both get right or both get wrong, and answer differently."""

    def as_json(self) -> dict[str, Any]:
        return {
            "base": self.base,
            "other": self.other,
            "fixed": list(self.fixed),
            "broke": list(self.broke),
            "left": list(self.left),
            "answers_differ": list(self.answers),
        }


def compare(base: Battery, other: Battery, names: tuple[str, str]) -> Comparison:
    """Hold one battery against another of the same setting; `names` is how the user calls their vLLMs."""
    theirs = {label(one): one for one in base.outcomes}
    ours = {label(one): one for one in other.outcomes}
    both = [key for key in ours if key in theirs]
    light = {key for key in both if not ours[key].case.weighs}
    was, now = ({key: one[key].ok for key in both} for one in (theirs, ours))
    if base.unsupported is None and other.unsupported is None:
        for name in dict.fromkeys((*base.generated.failing, *other.generated.failing)):
            both.append(name)
            was[name], now[name] = name not in base.generated.failing, name not in other.generated.failing
    return Comparison(
        *names,
        fixed=tuple(key for key in both if now[key] and not was[key]),
        broke=tuple(key for key in both if was[key] and not now[key]),
        left=tuple(key for key in both if not was[key] and not now[key] and key not in light),
        answers=tuple(key for key in both if key in ours and was[key] == now[key] and ours[key].got != theirs[key].got),
    )


def label(outcome: Outcome) -> str:
    """A name for a case that no other of the same battery has."""
    case = outcome.case
    mode = case.chunking if case.mode == "stream" else case.mode
    return f"{case.name} ({mode}; {case.cell.state}; {case.cell.key})"
