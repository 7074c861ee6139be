"""What vLLM's own parsers cost a stream as it gets longer, as measured: `streaming_cost.json` beside this file.

`benchmarks/streaming_cost.py` measures it in real vLLMs: CPU seconds spent inside the reasoning parser, one token a
delta, on an output and on one eight times as long. Seconds are those of one machine; how they grow is the parser's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .target import Target

FILE = Path(__file__).with_name("streaming_cost.json")
LINEAR = 11.0
"""Eight times the tokens at most so many times the time: what counts as growing with the stream and no faster."""


@dataclass(frozen=True, slots=True)
class StreamingCost:
    """One parser's cost in one vLLM version: an output of `tokens` and one of `longer` tokens, in CPU seconds.

    `token` is what a token of the shortest output measured costs, in CPU seconds.
    """

    version: str
    tokens: int
    seconds: float
    longer: int
    longer_seconds: float
    token: float

    @property
    def growth(self) -> float:
        """How many times the time the longer stream took."""
        return self.longer_seconds / self.seconds if self.seconds else 1.0

    @property
    def linear(self) -> bool:
        return self.growth <= LINEAR


def streaming_cost(name: str, target: Target) -> StreamingCost | None:
    """The cost that shows how a parser grows: of the longest streams that grow faster than their length, else of the
    longest.

    It is that of the target's own version, else of the newest one measured before it, else of the oldest; None for a
    parser never measured.
    """
    versions = sorted((version for version, found in _measured().items() if name in found), key=_place)
    if not versions or target.product != "vllm":
        return None
    before = [version for version in versions if _place(version) <= target.version]
    version = before[-1] if before else versions[0]
    rows = _measured()[version][name]
    pairs = [
        StreamingCost(version, int(short[0]), short[1], int(longer[0]), longer[1], rows[0][1] / rows[0][0])
        for short, longer in zip(rows[::2], rows[1::2], strict=True)
    ]
    return next((pair for pair in reversed(pairs) if not pair.linear), pairs[-1])


def measured_versions() -> tuple[str, ...]:
    """The vLLM versions that were measured, the newest first."""
    return tuple(sorted(_measured(), key=_place, reverse=True))


def growing(version: str) -> Mapping[str, StreamingCost]:
    """The parsers of one measured version that grow faster than the stream, the most expensive first."""
    target = Target("vllm", _place(version))
    costs = {name: streaming_cost(name, target) for name in _measured().get(version, {})}
    found = {name: cost for name, cost in costs.items() if cost is not None and not cost.linear}
    return dict(sorted(found.items(), key=lambda item: -item[1].longer_seconds / item[1].longer))


@cache
def _measured() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def _place(version: str) -> tuple[int, int, int]:
    major, minor, patch = (int(part) for part in version.split("."))
    return major, minor, patch
