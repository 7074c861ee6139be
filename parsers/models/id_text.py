"""The text of a growing run of ids, for parsers that decode all ids again at every step."""

from __future__ import annotations

from collections.abc import Sequence

from ..base import Vocabulary

_MOST = 16
"""Ids after which a character that has not become whole is taken for broken."""


class IdText:
    """Gives what ids add to the text they decode to, special tokens included; characters come when they are whole."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._window: list[int] = []
        self._known = ""

    def feed(self, ids: Sequence[int]) -> str:
        if not ids:
            return ""
        self._window.extend(ids)
        text = self._vocabulary.decode(self._window)
        ready = text if len(self._window) > len(ids) + _MOST else text.rstrip("\ufffd")
        added = ready[len(self._known) :]
        if ready == text:
            self._window = self._window[-1:]
            self._known = self._vocabulary.decode(self._window)
        else:
            self._known = ready
        return added
