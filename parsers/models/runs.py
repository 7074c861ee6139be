"""Markers that are runs of token ids rather than one token."""

from __future__ import annotations

from collections.abc import Sequence


def stands_at(ids: Sequence[int], at: int, run: Sequence[int]) -> bool:
    """Whether the run stands in `ids` from `at` on; a run of no ids stands nowhere."""
    return bool(run) and at + len(run) <= len(ids) and all(ids[at + n] == token_id for n, token_id in enumerate(run))


def last_of(ids: Sequence[int], *runs: Sequence[int]) -> int | None:
    """Which of the runs starts last in `ids`, as its place among the arguments; None where none is there."""
    firsts = {run[0] for run in runs if run}
    for at in range(len(ids) - 1, -1, -1):
        if ids[at] in firsts:
            for number, run in enumerate(runs):
                if stands_at(ids, at, run):
                    return number
    return None


def holds(ids: Sequence[int], run: Sequence[int]) -> bool:
    """Whether the run stands anywhere in `ids`."""
    return last_of(ids, run) is not None


def begins_at_end(ids: Sequence[int], run: Sequence[int]) -> bool:
    """Whether `ids` end in the middle of the run."""
    return any(tuple(ids[-n:]) == tuple(run[:n]) for n in range(min(len(ids), len(run) - 1), 0, -1))
