"""What vLLM can do in which release, from 0.7 to 0.33: the one table (versions.tsv) and how rules ask it.

A row is a fact that holds from release `since` up to, not including, release `until`, with the file of vLLM (below its
package) or the pull request that it was read from. Kinds: `flag` (of `vllm serve`), `reasoning-parser` and
`tool-parser` (registered names), `fact` (anything else). A name whose fact came, went and came back has several rows.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Version = tuple[int, int, int]
"""A release of vLLM: major, minor, patch."""
Kind = Literal["flag", "reasoning-parser", "tool-parser", "fact"]
OLDEST: Version = (0, 7, 0)
NEWEST: Version = (0, 33, 0)
"""The releases the table was made from; a newer one is taken to be as NEWEST."""


@dataclass(frozen=True, slots=True)
class Row:
    """One fact and the releases it holds in: `since` None for what OLDEST has, `until` None where it still holds."""

    kind: Kind
    name: str
    since: Version | None
    until: Version | None
    source: str
    text: str

    def holds(self, version: Version) -> bool:
        """Whether it holds in this release."""
        return (self.since is None or self.since <= version) and (self.until is None or version < self.until)

    @property
    def range_text(self) -> str:
        """The releases, in words: `0.19 and later`, `before 0.12`, `0.7.1 to before 0.16`."""
        if self.since is None:
            return f"before {shown(self.until)}" if self.until is not None else "every release"
        return (
            f"{shown(self.since)} and later"
            if self.until is None
            else f"{shown(self.since)} to before {shown(self.until)}"
        )


def rows(kind: Kind, name: str) -> tuple[Row, ...]:
    """Every row of this name, oldest first; none for a name no release knows."""
    return _table().get((kind, name), ())


def holds(kind: Kind, name: str, version: Version) -> bool:
    """Whether this holds in the release."""
    return any(row.holds(version) for row in rows(kind, name))


def fact(name: str, version: Version) -> bool:
    """Whether a `fact` row holds in the release. Raises KeyError for a fact the table does not have."""
    found = rows("fact", name)
    if not found:
        raise KeyError(name)
    return any(row.holds(version) for row in found)


def names(kind: Kind, version: Version) -> tuple[str, ...]:
    """The names of this kind in the release, in alphabetical order."""
    return tuple(sorted({row.name for row in every(kind) if row.holds(version)}))


def every(kind: Kind) -> Iterator[Row]:
    """All rows of a kind, in the table's order."""
    for (other, _), found in _table().items():
        if other == kind:
            yield from found


def shown(version: Version | None) -> str:
    """`0.19` for (0, 19, 0), `0.7.1` for (0, 7, 1)."""
    if version is None:
        return ""
    return ".".join(map(str, version if version[2] else version[:2]))


@functools.cache
def _table() -> Mapping[tuple[str, str], tuple[Row, ...]]:
    found: dict[tuple[str, str], tuple[Row, ...]] = {}
    lines = Path(__file__).with_name("versions.tsv").read_text(encoding="utf-8").splitlines()
    for line in lines[1:]:
        kind, name, since, until, source, text = line.split("\t")
        row = Row(kind, name, _version(since), _version(until), source, text)  # type: ignore[arg-type]
        found[kind, name] = (*found.get((kind, name), ()), row)
    return found


def _version(text: str) -> Version | None:
    if not text:
        return None
    major, minor, patch = (int(part) for part in (*text.split("."), "0")[:3])
    return major, minor, patch
