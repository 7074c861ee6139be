"""A file of a user's own parsers (`--reasoning-parser-plugin`), read here and loaded over there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...errors import InputError


@dataclass(frozen=True)
class Plugin:
    """The file's name and text; plain data, so that it can be handed to another process."""

    name: str
    text: str


def read_plugin(path: Path) -> Plugin:
    """Raises InputError for a file that is not there or is no text."""
    try:
        return Plugin(path.name, path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"byte {error.start} is not UTF-8", source=str(path), mend="save the file as UTF-8") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot be read: {reason}", source=str(path), mend="give the plugin's Python file") from None
