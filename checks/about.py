"""What stands behind a rule: the rows of the version table it asks, and where it was seen to fire."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import cast

from .. import fixtures, versions
from .rule import Rule

KINDS: Mapping[versions.Kind, str] = {
    "flag": "flags of vllm serve",
    "reasoning-parser": "reasoning parsers",
    "tool-parser": "tool parsers",
    "fact": "facts",
}
"""The kinds of the version table, in words."""


def rows_of(rule: type[Rule]) -> tuple[versions.Row, ...]:
    """The rows of the version table that the rule's `facts` name. Raises KeyError for a name the table lacks."""
    return tuple(row for name in rule.facts for row in _rows(name))


def whole_kinds(rule: type[Rule]) -> tuple[versions.Kind, ...]:
    """The kinds of which the rule asks every row (`flag *`)."""
    return tuple(cast(versions.Kind, name.removesuffix(" *")) for name in rule.facts if name.endswith(" *"))


def command_of(rule: type[Rule]) -> str | None:
    """A command on the shipped fixtures that shows the rule, run by the tests; None where none is documented.

    Its paths are those of a clone of the repository.
    """
    return _reproduced().get(rule.id)


def command_here(rule: type[Rule]) -> str | None:
    """The same command for the working directory: outside of a clone it names the installed fixtures."""
    command = command_of(rule)
    if command is None or (Path("fixtures") / "models").is_dir():
        return command
    return command.replace(" fixtures/", f" {fixtures.ROOT}/")


def names_of_tests(rule: type[Rule]) -> str:
    """The `-k` expression that picks the rule's tests: their names hold its id or its slug."""
    return f"{rule.id.lower()} or {rule.slug.replace('-', '_')}"


def _rows(name: str) -> tuple[versions.Row, ...]:
    kind, _, what = name.rpartition(" ")
    table = cast(versions.Kind, kind or "fact")
    found = tuple(versions.every(table)) if what == "*" else versions.rows(table, what)
    if not found:
        raise KeyError(name)
    return found


def _reproduced() -> Mapping[str, str]:
    """Made by `python tests/readme.py --write` from the examples in README.md and docs/, which the tests run."""
    text = (files(__package__) / "reproduced.json").read_text(encoding="utf-8")
    return cast(Mapping[str, str], json.loads(text))
