"""The parser a switched-off legacy parser becomes: everything is content."""

from __future__ import annotations

from collections.abc import Sequence

from ..base import Delta, Split
from .delegating import LegacyModel


class IdentityModel(LegacyModel):
    """Nothing is reasoning and every prompt reads as ended (vllm/reasoning/identity_reasoning_parser.py, 0.33.0)."""

    def is_reasoning_end(self, ids: Sequence[int]) -> bool:
        return True

    def split(self, text: str, ids: Sequence[int]) -> Split:
        return Split(None, text)

    def count_reasoning_tokens(self, ids: Sequence[int]) -> int:
        return 0

    def _classify(self, text: str, ids: Sequence[int]) -> Delta | None:
        return Delta(content=text) if text else None

    def _ends(self, ids: Sequence[int]) -> bool:
        return True
