"""Where a prompt that we rendered differs from the one that the server itself made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

_SHOWN = 40
"""Characters of either prompt that are shown from the difference on."""
_BEFORE = 12

What = Literal["text", "ids", "refusal"]


@dataclass(frozen=True)
class Difference:
    """The first place where two renderings of one request differ.

    `at` is the character (`text`) or the token (`ids`), from 0; of a `refusal`, where only one of the two gave a
    prompt, it is 0. `ours` and `theirs` are what stands there, from a few characters before, or the error.
    """

    what: What
    at: int
    ours: str
    theirs: str

    @property
    def said(self) -> str:
        """In words: where, and what stands there in either."""
        place = {"text": f"character {self.at}: ", "ids": f"token {self.at}: ", "refusal": ""}[self.what]
        theirs, ours = (json.dumps(text, ensure_ascii=False) for text in (self.theirs, self.ours))
        return f"{place}{theirs} there, {ours} here"

    def as_json(self) -> dict[str, Any]:
        """As a report shows it."""
        return {"what": self.what, "at": self.at, "ours": self.ours, "theirs": self.theirs}


def of_texts(ours: str, theirs: str) -> Difference | None:
    """The first character in which two prompts differ."""
    if ours == theirs:
        return None
    at = next(
        (n for n, (one, two) in enumerate(zip(ours, theirs, strict=False)) if one != two), min(len(ours), len(theirs))
    )
    begin = max(0, at - _BEFORE)
    return Difference("text", at, ours[begin : at + _SHOWN], theirs[begin : at + _SHOWN])


def of_ids(ours: Sequence[int], theirs: Sequence[int]) -> Difference | None:
    """The first token in which the ids of one text differ."""
    if tuple(ours) == tuple(theirs):
        return None
    at = next(
        (n for n, (one, two) in enumerate(zip(ours, theirs, strict=False)) if one != two), min(len(ours), len(theirs))
    )
    return Difference("ids", at, *(" ".join(map(str, ids[at : at + 4])) for ids in (ours, theirs)))
