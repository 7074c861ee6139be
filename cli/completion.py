"""What the shell offers for a value: rule ids, parser names, formats, fixtures. Looked up only when the shell asks."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

ASKED = "_REASONCTL_COMPLETE"
"""Set by the script that `--install-completion` installs, and by nothing else."""
Offer = tuple[str, str]
"""A value, and a few words on it for shells that show them."""
_WORDS = re.compile(r"[a-z0-9]+(?:\|[a-z0-9]+)+")
"""A metavar that names all values: `auto|cpu|cuda`."""


def asked() -> bool:
    """The shell wants completions, not the command."""
    return ASKED in os.environ


def offer(command: Any) -> None:
    """Give every option and argument of the built command line, and of those below it, its values to offer."""
    from typer import core

    attach = getattr(core, "_typer_param_setup_autocompletion_compat", None)
    for below in getattr(command, "commands", {}).values():
        offer(below)
    for parameter in getattr(command, "params", ()):
        values = _values(command.name, parameter)
        if values is not None and attach is not None:
            attach(parameter, autocompletion=_completing(values))


def _values(command: str, parameter: Any) -> Callable[[str], Iterator[Offer]] | None:
    name, metavar = parameter.opts[0], str(getattr(parameter, "metavar", None) or "")
    if name == "--format" and "=FILE" not in metavar:
        words = ("text", "json", "markdown") if command == "rules" else ("text", "json")
        return lambda _: ((word, "") for word in words)
    if name in _BY_NAME:
        return _BY_NAME[name]
    if (command, name) in _ARGUMENTS:
        return _ARGUMENTS[command, name]
    found = _WORDS.fullmatch(metavar)
    return (lambda _: ((word, "") for word in found[0].split("|"))) if found else None


def _completing(values: Callable[[str], Iterator[Offer]]) -> Callable[..., list[Offer]]:
    """As typer calls it. In a comma list the last item is completed."""

    def complete(_context: Any, _args: list[str], incomplete: str) -> list[Offer]:
        head, comma, last = incomplete.rpartition(",")
        return [(f"{head}{comma}{value}", said) for value, said in values(last) if value.startswith(last)]

    return complete


def _rules(start: str) -> Iterator[Offer]:
    """Ids, or slugs once a small letter is typed."""
    from ..checks.rule import all_rules

    for rule in all_rules().values():
        yield (rule.slug, rule.id) if start[:1].islower() else (rule.id, rule.slug)


def _models(start: str) -> Iterator[Offer]:
    """Fixtures once their name is begun; before, the shell offers its own files."""
    from ..fixtures import model_names

    if start and ("fixture:".startswith(start) or start.startswith("fixture:")):
        yield from ((f"fixture:{name}", "") for name in model_names())


def _families(_start: str) -> Iterator[Offer]:
    from ..engine.lab_families import FAMILIES

    yield from ((family.name, family.style) for family in FAMILIES)


def _words_of(module: str, name: str) -> Callable[[str], Iterator[Offer]]:
    """The words of a tuple or the keys of a table of the package, read when they are asked for."""

    def words(_start: str) -> Iterator[Offer]:
        yield from ((str(word), "") for word in getattr(import_module(module, __package__), name))

    return words


_PARSERS = _words_of("..parsers", "ROWS")
_BY_NAME: dict[str, Callable[[str], Iterator[Offer]]] = {
    "--select": _rules,
    "--ignore": _rules,
    "--parser": _PARSERS,
    "--model": _models,
    "--lab": _families,
    "--family": _families,
    "--format": _words_of("..reports.formats", "NAMES"),
    "--from": _words_of("..traces.formats", "FORMATS"),
    "--effort": _words_of("..budgets.dialects", "EFFORTS"),
    "--dialect": _words_of("..budgets.dialects", "DIALECTS"),
    "--only": _words_of("..settings.settings", "TABLES"),
    "--fail-on": _words_of("..settings.settings", "FAIL_ON"),
    "--min-confidence": _words_of("..checks.finding", "CONFIDENCES"),
}
_ARGUMENTS: dict[tuple[str, str], Callable[[str], Iterator[Offer]]] = {
    ("explain", "rule"): _rules,
    ("parsers", "name"): _PARSERS,
    ("audit", "paths"): _models,
}
