"""hunyuan_a13b: texts in full, the token ids of one vocabulary in a stream."""

from __future__ import annotations

from collections.abc import Sequence

from ..base import Delta, ParserRaisedError, Split
from .delegating import LegacyModel

_START = "<think>\n"
_END = "\n</think>\n<answer>\n"
_CLOSE = "\n</answer>"
_UNESCAPED_CLOSE = r"\n</answer>"

_OPENING = ((14023, 771, 397), (14023, 771, 1363))
_CLOSING = ((198, 524, 27963, 397, 27, 9399, 397), (524, 27963, 397, 27, 9399, 397))


class HunyuanModel(LegacyModel):
    """Nothing but Hunyuan's own ids steers the stream (vllm/reasoning/hunyuan_a13b_reasoning_parser.py, 0.33.0).

    Before the opening ids everything is content, between them and the closing ids reasoning. There are two ways to
    write each, and the parser takes at every place the token of either, so it follows mixtures that are neither. What
    breaks off is given out, with the token that broke it, which begins nothing. `</answer>` is never taken away from a
    stream: after the closing ids the server asks the parser no more.
    """

    def __init__(self) -> None:
        super().__init__()
        self._thinking = False
        self._answering = False
        self._place = 0
        self._held: list[str] = []

    def is_reasoning_end(self, ids: Sequence[int]) -> bool:
        return self._answering

    def split(self, text: str, ids: Sequence[int]) -> Split:
        close = text.find(_CLOSE)
        if close >= 0:
            end = text.find(_END, len(_START)) if text.startswith(_START) else -1
            after = end + len(_END)
            closed = text.find(_CLOSE, after) if end >= 0 else -1
            if closed >= 0:
                return Split(text[len(_START) : end] or None, text[after:closed] or None)
            return Split(None, text[:close] or None)
        start = text.find(_START)
        begin = start + len(_START)
        end = text.find(_END, begin) if start >= 0 else -1
        if end < 0:
            return Split(None, text)
        # The parser compares the text with its own pattern, in which the line break is a backslash and an n.
        content = text[end + len(_END) :].removesuffix(_UNESCAPED_CLOSE)
        return Split(text[begin:end] or None, content or None)

    def count_reasoning_tokens(self, ids: Sequence[int]) -> int:
        return 0

    def _classify(self, text: str, ids: Sequence[int]) -> Delta | None:
        if len(ids) != 1:
            raise ParserRaisedError("AssertionError", f"the parser takes one token a delta, this one has {len(ids)}")
        follows = self._follows(ids[0])
        self._held.append(text)
        if follows and self._place:
            return None
        shown = "".join(self._held)
        self._place = 0
        self._held.clear()
        if follows:
            return None
        return Delta(reasoning=shown) if self._thinking else Delta(content=shown)

    def _ends(self, ids: Sequence[int]) -> bool:
        return self._answering

    def _follows(self, token_id: int) -> bool:
        """Take the token as the next of the sequence being written, if it is."""
        longer, other = _CLOSING if self._thinking else _OPENING
        place = self._place
        by_other = place < len(other) and token_id == other[place]
        if token_id != longer[place] and not by_other:
            if place >= len(other):
                raise ParserRaisedError("IndexError", "the shorter way to write the end has no seventh token")
            return False
        self._place = place + 1
        if self._place == len(other if by_other else longer):
            self._answering = self._thinking
            self._thinking = True
            self._place = 0
        return True
