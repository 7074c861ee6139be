"""k2_horizon: deepseek_r1's tokens for what the prompt says, texts for the output, markers chosen by effort."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..base import Delta, ParserRaisedError, Split, Vocabulary
from .delimited import DelimitedModel, find_delimiters
from .partial import partial_suffix

TOOL_CALLS = "<ifm|tool_calls>"
_MARKERS = {"high": "ifm|think", "medium": "ifm|think_fast", "low": "ifm|think_faster"}


class K2HorizonModel(DelimitedModel):
    """A call's opening ends reasoning too, and stays (vllm/reasoning/k2_horizon_reasoning_parser.py, 0.33.0).

    Raises:
        ParserRaisedError: the effort is none of high, medium, low (ValueError), or a marker is no token.
    """

    def __init__(self, vocabulary: Vocabulary, kwargs: Mapping[str, Any]) -> None:
        effort = kwargs.get("reasoning_effort", "high")
        if not isinstance(effort, str) or effort not in _MARKERS:
            known = ", ".join(_MARKERS)
            raise ParserRaisedError(
                "ValueError", f"Unsupported reasoning_effort {effort!r}. Supported values: {known}."
            )
        name = _MARKERS[effort]
        raised = "K2HorizonReasoningParser reasoning parser could not locate think start/end tokens in the tokenizer!"
        super().__init__(find_delimiters(vocabulary, f"<{name}>", f"</{name}>", raised=raised))
        self._watched = None  # the output is told apart by its text
        self._call_id = vocabulary.vocab.get(TOOL_CALLS)
        self._held = ""
        self._fresh = True
        self._cut = False

    def is_reasoning_end(self, ids: Sequence[int]) -> bool:
        for token_id in reversed(ids):
            if token_id == self._marks.start_id:
                return False
            if token_id in (self._marks.end_id, self._call_id):
                return True
        return False

    def split(self, text: str, ids: Sequence[int]) -> Split:
        found = self._parted(text.removeprefix(self._marks.start))
        return Split("", text.removeprefix(self._marks.start) or None) if found is None else Split(*found)

    def _classify(self, text: str, ids: Sequence[int]) -> Delta | None:
        self._held += text
        start = self._marks.start
        if self._fresh:
            if start.startswith(self._held):
                return None
            self._held = self._held.removeprefix(start)
            self._fresh = False
        found = self._parted(self._held)
        if found is not None:
            self._cut = True
            return Delta(*found)
        ready = len(self._held) - partial_suffix(self._held, self._marks.end, TOOL_CALLS)
        reasoning, self._held = self._held[:ready], self._held[ready:]
        return Delta(reasoning=reasoning) if reasoning else None

    def _ends(self, ids: Sequence[int]) -> bool:
        return self._cut or super()._ends(ids)

    def _parted(self, text: str) -> tuple[str, str | None] | None:
        """Reasoning and content where the text has an end marker or else a call; None where it has neither."""
        reasoning, end, content = text.partition(self._marks.end)
        if end:
            return reasoning, content or None
        at = text.find(TOOL_CALLS)
        return None if at < 0 else (text[:at], text[at:])
