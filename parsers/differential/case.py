"""One thing to put to a parser model and to the real parser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Stream = tuple[tuple[str, tuple[int, ...]], ...]
"""An output as deltas: the text and the ids of each."""


@dataclass(frozen=True, slots=True)
class Case:
    """One output of one request, whole and cut into deltas in several ways.

    Attributes:
        parser: the parser's name.
        tokenizer: key of the tokenizer, as in `cases.specs`.
        kwargs: the effective chat-template kwargs.
        request_kwargs: the request's own; None: it has none.
        prompt_ids: the prompt's ids; None: no prompt is known.
        pieces: the output, token by token: the text each brought and its id.
        streams: the ways it is cut. Their texts may lag behind their ids.
        stop: the request's stop strings, by which `pieces` are cut.
    """

    parser: str
    tokenizer: str
    kwargs: Mapping[str, Any]
    request_kwargs: Mapping[str, Any] | None
    prompt_ids: Sequence[int] | None
    pieces: tuple[tuple[str, int], ...]
    streams: tuple[Stream, ...]
    stop: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.pieces)

    @property
    def ids(self) -> list[int]:
        return [token_id for _, token_id in self.pieces]

    def to_json(self) -> dict[str, Any]:
        """What the other interpreter runs (its `run`) and `answers.model_answer` takes."""
        return {
            "parser": self.parser,
            "tokenizer": self.tokenizer,
            "kwargs": dict(self.kwargs),
            "request_kwargs": None if self.request_kwargs is None else dict(self.request_kwargs),
            "prompt_ids": None if self.prompt_ids is None else list(self.prompt_ids),
            "text": self.text,
            "ids": self.ids,
            "streams": [[[text, list(ids)] for text, ids in stream] for stream in self.streams],
        }
