"""A rule: its fixed id and slug, the text `reasonctl explain` shows, and the findings it makes."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, TypeVar

from ..errors import InputError
from .finding import Confidence, Finding, Location, Severity


class Rule:
    """Base of every rule. A subclass sets the class attributes and adds `check(facts) -> Iterator[Finding]`.

    A rule is a pure function of frozen facts: it reads no file, renders nothing and prints nothing.
    """

    id: ClassVar[str]
    slug: ClassVar[str]
    severity: ClassVar[Severity]
    what: ClassVar[str]
    """What it does: one or two sentences on when the rule fires."""
    why: ClassVar[str]
    """Why it matters: what the client or the operator sees."""
    example: ClassVar[str]
    """A small real example: a command, a prompt tail, a file."""
    instead: ClassVar[str]
    """What to do instead."""
    versions: ClassVar[str] = "every modelled vLLM version"
    sources: ClassVar[tuple[str, ...]] = ()
    """vLLM file and version, documentation page, public report."""
    facts: ClassVar[tuple[str, ...]] = ()
    """What it asks the version table: names of `fact` rows, else `KIND NAME`, `KIND *` for all of a kind."""

    @classmethod
    def finding(
        cls,
        message: str,
        *,
        hint: str,
        confidence: Confidence = "high",
        severity: Severity | None = None,
        cause: str | None = None,
        subject: Mapping[str, Any] | None = None,
        location: Location | None = None,
        evidence: Mapping[str, Any] | None = None,
    ) -> Finding:
        """A finding of this rule, with the rule's own severity unless another one is given."""
        return Finding(
            rule=cls.id,
            slug=cls.slug,
            severity=severity or cls.severity,
            confidence=confidence,
            message=message,
            hint=hint,
            cause=cause,
            subject=subject or {},
            location=location,
            evidence=evidence or {},
        )


_RULES: dict[str, type[Rule]] = {}
R = TypeVar("R", bound=type[Rule])


def register(rule: R) -> R:
    """Class decorator: put a rule into the catalogue. Raises ValueError for an id or slug that is taken."""
    taken = [other for other in _RULES.values() if rule.id == other.id or rule.slug == other.slug]
    if taken:
        raise ValueError(f"{rule.id} {rule.slug} clashes with {taken[0].id} {taken[0].slug}")
    _RULES[rule.id] = rule
    return rule


def all_rules() -> Mapping[str, type[Rule]]:
    """Every rule of this release by id, in the order of their ids."""
    from . import bud, eng, fit, internal, plg, rpl, srv, tpl  # noqa: F401  (importing a family registers its rules)

    return dict(sorted(_RULES.items()))


def rules_digest() -> str:
    """`sha256:...` over ids, slugs and severities: two reports with one digest were judged by the same catalogue."""
    import hashlib  # loads OpenSSL: not for `--help`

    rows = [[rule.id, rule.slug, rule.severity] for rule in all_rules().values()]
    return "sha256:" + hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def find_rule(name: str) -> type[Rule]:
    """The rule with this id or slug. Raises InputError with the nearest names for an unknown one."""
    for rule in all_rules().values():
        if name.upper() == rule.id or name.lower() == rule.slug:
            return rule
    raise InputError(f"no rule is called {name!r}", mend=_nearest(name))


def matching_rules(names: Iterable[str], *, flag: str) -> frozenset[str]:
    """Ids of the rules that ids, id prefixes (`FIT`, `FIT1`) or slugs name.

    Args:
        names: values of a flag, each possibly a comma list.
        flag: the flag they came from, for the message.

    Raises:
        InputError: a name matches no rule.
    """
    names = list(names)
    if any(not value.strip() for value in names):
        raise InputError("it is empty", source=flag, mend="name rules; `reasonctl rules` lists them")
    wanted: set[str] = set()
    for name in (part.strip() for value in names for part in value.split(",")):
        if not name:
            continue
        hits = {r.id for r in all_rules().values() if r.id.startswith(name.upper()) or r.slug == name.lower()}
        if not hits:
            raise InputError(f"no rule is called {name!r}", source=flag, mend=_nearest(name))
        wanted |= hits
    return frozenset(wanted)


def _nearest(name: str) -> str:
    known = [text for rule in all_rules().values() for text in (rule.id, rule.slug)]
    near = difflib.get_close_matches(name.upper(), known, 3) + difflib.get_close_matches(name.lower(), known, 3)
    return f"did you mean {', '.join(dict.fromkeys(near))}?" if near else "`reasonctl rules` lists them"
