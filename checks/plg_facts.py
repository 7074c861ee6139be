"""What the PLG rules judge: a plugin's source beside the model it is for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..parsers.target import Target
from .finding import Location

if TYPE_CHECKING:
    from ..kit.source import Place, PluginSource
    from ..parsers.base import Vocabulary


@dataclass(frozen=True)
class PluginLook:
    """A plugin's source, and what it is looked at for.

    Attributes:
        source: the file.
        name: the parser asked for; None: every name it registers.
        vocabulary: the model's tokenizer; None where no model was given.
        switches: (kwarg, off value, on value) of the thinking switches the model's template reads; None where there is
            no template to look at.
        target: the server to judge by.
    """

    source: PluginSource
    name: str | None = None
    vocabulary: Vocabulary | None = None
    switches: Sequence[tuple[str, Any, Any]] | None = None
    target: Target = Target()  # noqa: RUF009  (frozen)

    def at(self, place: Place) -> Location:
        """A place of the file, as findings name it."""
        return Location(str(self.source.path), place.line, place.column)
