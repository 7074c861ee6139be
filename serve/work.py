"""How much a script may make of itself while it is read: a few lines can double a variable for ever."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from ..budgets.document import refuse
from ..checks.finding import Location

MAX_VALUE = 131_072
"""Characters of one argument: Linux starts no command with a longer one (MAX_ARG_STRLEN). What is longer is unknown."""
MAX_WORDS = 4096
"""Words of one array; those of a longer one are unknown."""
MAX_STEPS = 100_000
"""Commands that are followed, all ways and all scripts inside together."""
MAX_CHARACTERS = 16_000_000
"""Characters that all values come to together."""

MAX_READ = 500_000
"""Characters of values that are read as scripts of their own (`eval`, `bash -c`, here-documents, defaults)."""
MAX_INSIDE = 8
"""Scripts inside scripts (`eval`, `source`, `bash -c`) that are followed."""


@dataclass
class Work:
    """What has been done for one file so far."""

    steps: int = 0
    characters: int = 0
    read: int = 0
    inside: int = 0

    @property
    def spent(self) -> bool:
        """Whether a bound has been passed."""
        return self.steps > MAX_STEPS or self.characters > MAX_CHARACTERS or self.read > MAX_READ

    def step(self, place: Location) -> None:
        """Count a command. Raises InputError where they are too many."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise refuse("a script that goes on for ever", place, mend="give the command it ends in")

    def take(self, characters: int, place: Location) -> None:
        """Count what a value comes to. Raises InputError where that is too much."""
        self.characters += characters
        if self.characters > MAX_CHARACTERS:
            raise refuse("a script whose values grow for ever", place, mend="give the command it ends in")

    def cut(self, text: str, place: Location) -> None:
        """Count a text that is cut into words once more. Raises InputError where those are too many."""
        self.read += len(text)
        if self.read > MAX_READ:
            raise refuse("a script that reads its own texts for ever", place, mend="give the command it ends in")


def bounded(value: str) -> str | None:
    """The value, unknown where it is too long."""
    return value if len(value) <= MAX_VALUE else None


_CURRENT: ContextVar[Work | None] = ContextVar("work", default=None)


@contextmanager
def working() -> Iterator[Work]:
    """The work of the script that is read, which the scripts inside it share."""
    current = _CURRENT.get()
    if current is not None:
        yield current
        return
    token = _CURRENT.set(Work())
    try:
        yield _CURRENT.get() or Work()
    finally:
        _CURRENT.reset(token)
