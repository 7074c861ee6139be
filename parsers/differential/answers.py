"""What the built-in models make of a case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .. import build
from ..base import Delta, ParserModel, ParserRaisedError, Split, Sums, Vocabulary
from ..columns import Deltas
from ..target import Target


def model_answer(case: Mapping[str, Any], vocabulary: Vocabulary, target: Target) -> dict[str, Any]:
    """What the built-in models answer to a case, in the shape of what vLLM answers.

    Each stream is fed delta by delta, and once more all at once (`ParserModel.stream`): where that gives another sum or
    another exception, the stream has an `at_once` with it, which no answer of vLLM has.
    """
    request_kwargs = case["request_kwargs"] or {}
    prompt_ids = case["prompt_ids"]
    answer: dict[str, Any] = {}

    def model(*, streaming: bool) -> ParserModel:
        built = build(case["parser"], vocabulary, case["kwargs"], request_kwargs=request_kwargs, target=target)
        built.begin(prompt_ids, streaming=streaming)
        return built

    def attempt(result: dict[str, Any], run: Callable[[], None]) -> dict[str, Any]:
        try:
            run()
        except ParserRaisedError as error:
            result["error"] = error.exception
        return result

    def renderer() -> None:
        built = model(streaming=False)
        answer["skip_special_tokens"] = built.skip_special_tokens
        answer["ended"] = None if prompt_ids is None else built.is_reasoning_end(prompt_ids)

    attempt(answer, renderer)
    full: dict[str, Any] = {}

    def whole() -> None:
        built = model(streaming=False)
        split: Split = built.split(case["text"], case["ids"])
        full.update(reasoning=split.reasoning, content=split.content)
        full["tokens"] = built.count_reasoning_tokens(case["ids"])

    answer["full"] = attempt(full, whole)
    answer["streams"] = []
    for deltas in case["streams"]:
        stream: dict[str, Any] = {"deltas": []}

        def streamed(stream: dict[str, Any] = stream, deltas: list[Any] = deltas) -> None:
            built = model(streaming=True)
            for number, (text, ids) in enumerate(deltas):
                delta: Delta | None = built.feed(text, ids, finished=number == len(deltas) - 1)
                stream["deltas"].append(None if delta is None else [delta.reasoning, delta.content])
            stream["tokens"] = built.count_reasoning_tokens(case["ids"])

        summed: dict[str, Any] = {}

        def at_once(summed: dict[str, Any] = summed, deltas: list[Any] = deltas) -> None:
            split = model(streaming=True).stream(Deltas.of((text, ids) for text, ids in deltas))
            summed["sums"] = [split.reasoning, split.content]

        attempt(stream, streamed)
        attempt(summed, at_once)
        # Where every delta was taken, it is the counting that raised.
        taken = len(stream["deltas"]) == len(deltas)
        if summed != ({"sums": _sums(stream["deltas"])} if taken else {"error": stream["error"]}):
            stream["at_once"] = summed
        answer["streams"].append(stream)
    return answer


def _sums(deltas: list[list[str | None] | None]) -> list[str | None]:
    """The reasoning and the content that the deltas add up to."""
    sums = Sums()
    for delta in deltas:
        sums.add(None if delta is None else Delta(*delta))
    split = sums.split()
    return [split.reasoning, split.content]
