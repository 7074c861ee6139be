"""Settings as a file gives them, every key and value checked, each with its place."""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from ..budgets.document import Entry, Node
from ..checks.finding import CONFIDENCES, SEVERITIES, SUBJECT_KEYS, Location, Severity
from ..checks.rule import matching_rules
from ..errors import InputError
from .find import Found, refusal

TABLES = ("audit", "replay", "validate-config", "verify", "check-parser")
"""The tables that `gate` runs, each named as its command."""
FAIL_ON = (*SEVERITIES, "never")


@dataclass(frozen=True, slots=True)
class Ignore:
    """Findings that are known and lived with: `[[ignore]]`.

    Args:
        rule: as written: an id, a prefix or a slug.
        rules: the ids it means.
        subject: what the findings must be about; every key has to be equal.
        reason: why; it becomes the `suppressed` of each.
        expires: the last day it holds.
        place: where the table begins.
    """

    rule: str
    rules: frozenset[str]
    subject: Mapping[str, Any]
    reason: str
    expires: date | None
    place: Location


@dataclass(frozen=True, slots=True)
class Table:
    """One table that `gate` runs: its command, its keys as they stand in the file, and where it begins."""

    command: str
    keys: Mapping[str, Entry]
    place: Location


@dataclass(frozen=True, slots=True)
class Settings:
    """What a file says; all of it empty where there is none.

    `base` is the folder that every path in it is relative to, `places` where each of the plain settings stands.
    """

    path: Path | None = None
    base: Path | None = None
    target: str | None = None
    vllm: str | None = None
    fail_on: str | None = None
    min_confidence: str | None = None
    fail_on_incomplete: bool | None = None
    select: frozenset[str] | None = None
    baseline: str | None = None
    severities: Mapping[str, Severity] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    ignores: tuple[Ignore, ...] = ()
    tables: tuple[Table, ...] = ()
    places: Mapping[str, Location] = field(default_factory=dict)

    def models_from(self, folder: Path) -> dict[str, str]:
        """Where the models are, seen from a folder: two checkouts then name them alike. What is no path stays."""
        base = self.base or folder
        found = {name: base / Path(value).expanduser() for name, value in self.models.items()}
        return {
            name: Path(os.path.relpath(found[name], folder)).as_posix() if found[name].exists() else value
            for name, value in self.models.items()
        }


_KEYS = (
    "target", "vllm", "fail-on", "min-confidence", "fail-on-incomplete", "select", "baseline", "per-rule-severity",
    "models", "ignore", *TABLES,
)  # fmt: skip


def read_settings(found: Found | None) -> Settings:
    """The settings in a file, none of them without one.

    Raises:
        InputError: an unknown key, a value of a wrong type, an unknown rule, a reason that is missing.
    """
    if found is None:
        return Settings()
    keys = fields(found.root, _KEYS, "settings")
    select = keys.get("select")
    return Settings(
        path=found.path,
        base=found.base,
        target=_text(keys.get("target")),
        vllm=_engine(text(keys["vllm"]), found.base) if "vllm" in keys else None,
        fail_on=_choice(keys.get("fail-on"), FAIL_ON),
        min_confidence=_choice(keys.get("min-confidence"), CONFIDENCES),
        fail_on_incomplete=flag(keys["fail-on-incomplete"]) if "fail-on-incomplete" in keys else None,
        select=_rules(select, texts(select)) if select is not None and texts(select) else None,
        baseline=_text(keys.get("baseline")),
        severities=_severities(keys.get("per-rule-severity")),
        models=_models(keys.get("models")),
        ignores=tuple(_ignore(node) for node in _array(keys.get("ignore"))),
        tables=_tables(keys),
        places={key: entry.location for key, entry in keys.items()},
    )


def fields(node: Node, known: Collection[str], what: str) -> Mapping[str, Entry]:
    """The entries of a table. Raises InputError for a key that is none of `known`, with the nearest one."""
    found = node.fields()
    require_known(found, known, what)
    return found


def require_known(found: Mapping[str, Entry], known: Collection[str], what: str) -> None:
    """Raise InputError for a key that is none of `known`, with the nearest one."""
    for key, entry in found.items():
        if key not in known:
            near = difflib.get_close_matches(key.replace("_", "-").lower(), known, 1, 0.5)
            mend = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known))}"
            raise refusal(f"unknown key {key!r} of {what}", entry.location, mend=mend)


def text(entry: Entry) -> str:
    """A value that is a text and not empty. Raises InputError for any other."""
    value = entry.value.scalar
    if not isinstance(value, str):
        raise _wrong(entry, "a text", 'write it in quotes: "..."')
    if not value.strip():
        raise refusal(f"{entry.key} is empty", entry.location, mend="fill it in, or remove the key")
    return value


def texts(entry: Entry) -> list[str]:
    """A text or a list of texts. Raises InputError for anything else."""
    if entry.value.items is None:
        return [text(entry)]
    return [text(Entry(entry.key, item.location, item)) for item in entry.value.items]


def flag(entry: Entry) -> bool:
    """true or false. Raises InputError for anything else."""
    if not isinstance(entry.value.scalar, bool):
        raise _wrong(entry, "true or false", "write true or false, without quotes")
    return entry.value.scalar


def number(entry: Entry) -> int:
    """A whole number. Raises InputError for anything else."""
    if type(entry.value.scalar) is not int:
        raise _wrong(entry, "a whole number", "write it without quotes")
    return entry.value.scalar


def numbers(entry: Entry) -> list[int]:
    """A whole number or a list of them. Raises InputError for anything else."""
    if entry.value.items is None:
        return [number(entry)]
    return [number(Entry(entry.key, item.location, item)) for item in entry.value.items]


def table(entry: Entry) -> Node:
    """A table, inline or with a header. Raises InputError for anything else."""
    if entry.value.entries is None:
        raise _wrong(entry, "a table", f"write {entry.key} = {{NAME = VALUE, ...}}")
    return entry.value


def _wrong(entry: Entry, what: str, mend: str) -> InputError:
    return refusal(f"{entry.key} is not {what}", entry.location, mend=mend)


def _text(entry: Entry | None) -> str | None:
    return text(entry) if entry is not None else None


def _choice(entry: Entry | None, allowed: Sequence[str]) -> str | None:
    if entry is None:
        return None
    value = text(entry)
    if value not in allowed:
        near = difflib.get_close_matches(value, allowed, 1)
        mend = f"did you mean {near[0]}?" if near else f"use {', '.join(allowed)}"
        raise refusal(f"{entry.key} is {value!r}, none of {', '.join(allowed)}", entry.location, mend=mend)
    return value


def _rules(entry: Entry, names: Sequence[str]) -> frozenset[str]:
    try:
        return matching_rules(names, flag=entry.key)
    except InputError as error:
        raise refusal(error.message, entry.location, mend=error.mend or "`reasonctl rules` lists them") from None


def _severities(entry: Entry | None) -> dict[str, Severity]:
    found: dict[str, Severity] = {}
    for name, given in table(entry).fields().items() if entry is not None else ():
        rules = _rules(given, [name])
        severity = next(one for one in SEVERITIES if one == _choice(given, SEVERITIES))
        found |= dict.fromkeys(sorted(rules), severity)
    return found


def _models(entry: Entry | None) -> dict[str, str]:
    return {name: text(given) for name, given in table(entry).fields().items()} if entry is not None else {}


def _engine(value: str, base: Path) -> str:
    """A `--vllm` value whose relative paths are those of the file's folder."""
    parts = [str(base / part) if part and (base / part).exists() else part for part in value.split(":")]
    return ":".join(parts)


def _array(entry: Entry | None) -> Sequence[Node]:
    if entry is None:
        return ()
    if entry.value.items is None or any(item.entries is None for item in entry.value.items):
        raise _wrong(entry, "an array of tables", f"write [[{entry.key}]] for each")
    return entry.value.items


def _ignore(node: Node) -> Ignore:
    keys = fields(node, ("rule", "subject", "reason", "expires"), "[[ignore]]")
    for key, mend in (("rule", 'rule = "TPL002"'), ("reason", 'reason = "why it is lived with"')):
        if key not in keys:
            raise refusal(f"[[ignore]] without {key}", node.location, mend=f"add {mend}")
    rule = text(keys["rule"])
    subject = fields(table(keys["subject"]), SUBJECT_KEYS, "a subject") if "subject" in keys else {}
    return Ignore(
        rule=rule,
        rules=_rules(keys["rule"], [rule]),
        subject={key: _subject(key, entry.value.plain()) for key, entry in subject.items()},
        reason=" ".join(text(keys["reason"]).split()),
        expires=_date(keys["expires"]) if "expires" in keys else None,
        place=node.location,
    )


def _subject(key: str, value: Any) -> Any:
    """A value as findings have it: the path of a model without a leading `./` or a trailing `/`."""
    return Path(value).as_posix() if key == "model" and isinstance(value, str) and value else value


def _date(entry: Entry) -> date:
    value = entry.value.scalar
    try:
        return date.fromisoformat(value if isinstance(value, str) else "")
    except ValueError:
        raise _wrong(entry, "a date", "write expires = 2027-06-01") from None


def _tables(keys: Mapping[str, Entry]) -> tuple[Table, ...]:
    """Every table, in the order of the commands and, of one command, of the file."""
    return tuple(
        Table(command, node.fields(), node.location) for command in TABLES for node in _array(keys.get(command))
    )
