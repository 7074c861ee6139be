"""Makes a failing case small: fewer tokens, fewer deltas, a shorter prompt, no kwargs that do not matter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from .case import Case, Stream

MOST_TRIES = 2000
"""Candidates that are tried for one case."""


def smallest(case: Case, differs: Callable[[Case], bool], *, tries: int = MOST_TRIES) -> Case:
    """The smallest case found that still differs; `case` itself where nothing smaller does.

    Args:
        case: one that differs.
        differs: puts a case to both sides and compares.
        tries: calls of `differs` at most.
    """
    left = tries

    def still(candidate: Case) -> bool:
        nonlocal left
        left -= 1
        return left >= 0 and differs(candidate)

    case = next(filter(still, _single(case)), case)
    shrunk = True
    while shrunk and left > 0:
        shrunk = False
        for simpler in (_fewer_tokens, _fewer_deltas, _shorter_prompts, _fewer_kwargs, _plainer_vocabulary):
            while (found := next(filter(still, simpler(case)), None)) is not None:
                case, shrunk = found, True
    return replace(case, stop=())


def _single(case: Case) -> Iterator[Case]:
    """The case without streams, else with one of them, the shortest first."""
    yield replace(case, streams=())
    for stream in sorted(case.streams, key=len):
        yield replace(case, streams=(stream,))


def _fewer_tokens(case: Case) -> Iterator[Case]:
    for start, stop in _runs(len(case.pieces)):
        yield _without(case, start, stop)


def _fewer_deltas(case: Case) -> Iterator[Case]:
    for stream in case.streams:
        for start, stop in _runs(len(stream)):
            if stop - start < 2:
                continue
            joined = (
                "".join(text for text, _ in stream[start:stop]),
                tuple(token_id for _, ids in stream[start:stop] for token_id in ids),
            )
            yield replace(case, streams=((*stream[:start], joined, *stream[stop:]),))
        for number, (text, ids) in enumerate(stream):
            if not text and not ids:
                yield replace(case, streams=(stream[:number] + stream[number + 1 :],))


def _shorter_prompts(case: Case) -> Iterator[Case]:
    if case.prompt_ids is None:
        return
    yield replace(case, prompt_ids=None)
    for start, stop in _runs(len(case.prompt_ids)):
        yield replace(case, prompt_ids=[*case.prompt_ids[:start], *case.prompt_ids[stop:]])


def _fewer_kwargs(case: Case) -> Iterator[Case]:
    own = case.request_kwargs or {}
    if case.kwargs or own:
        yield replace(case, kwargs={}, request_kwargs={})
    for key in sorted(case.kwargs.keys() | own.keys()):
        yield replace(
            case,
            kwargs={name: value for name, value in case.kwargs.items() if name != key},
            request_kwargs={name: value for name, value in own.items() if name != key},
        )


def _plainer_vocabulary(case: Case) -> Iterator[Case]:
    head, _, label = case.tokenizer.rpartition("/")
    if label in ("flagged", "declared", "mixed"):  # the same ids, otherwise flagged
        yield replace(case, tokenizer=f"{head}/plain")


def _runs(length: int) -> Iterator[tuple[int, int]]:
    """All of a row, its halves, quarters and so on down to single places."""
    size = length
    while size:
        for start in range(0, length, size):
            yield start, min(length, start + size)
        size //= 2


def _without(case: Case, start: int, stop: int) -> Case:
    """The case less some of its tokens, in every stream too."""
    before = sum(len(text) for text, _ in case.pieces[:start])
    after = before + sum(len(text) for text, _ in case.pieces[start:stop])
    return replace(
        case,
        pieces=case.pieces[:start] + case.pieces[stop:],
        streams=tuple(_less(stream, range(before, after), range(start, stop)) for stream in case.streams),
    )


def _less(stream: Stream, characters: Sequence[int], tokens: Sequence[int]) -> Stream:
    kept: list[tuple[str, tuple[int, ...]]] = []
    at = number = 0
    for text, ids in stream:
        rest = (
            "".join(character for place, character in enumerate(text, at) if place not in characters),
            tuple(token_id for place, token_id in enumerate(ids, number) if place not in tokens),
        )
        at, number = at + len(text), number + len(ids)
        if any(rest) or not (text or ids):
            kept.append(rest)
    return tuple(kept)
