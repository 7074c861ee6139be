"""Files of NAME=VALUE lines: `.env`, compose's `env_file`, systemd's `EnvironmentFile`."""

from __future__ import annotations

import re

from ..budgets.document import Locate
from .wrappers import Variable

_LINE = re.compile(r"[ \t]*(?:export[ \t]+)?([A-Za-z_][\w.-]*)[ \t]*=[ \t]*(.*)$", re.MULTILINE)

_STRICT = re.compile(r"[ \t]*(?:export[ \t]+)?[A-Za-z_][\w.-]*=(?:[^\s;&|'\"]*|'[^']*'|\"[^\"]*\")[ \t]*(?:#.*)?")


def env_variables(text: str, locate: Locate) -> dict[str, Variable]:
    """The variables of such a text; quotes around a value and a comment behind it are taken away."""
    found: dict[str, Variable] = {}
    for match in _LINE.finditer(text):
        value = match[2].strip()
        if value[:1] in ("'", '"') and len(value) > 1 and (end := value.find(value[0], 1)) > 0:
            value = value[1:end]
        else:
            value = re.split(r"\s#", value, maxsplit=1)[0].strip()
        found[match[1]] = Variable(value, locate(match.start(1)))
    return found


def is_env_text(text: str, *, named: bool = False) -> bool:
    """Nothing but NAME=VALUE lines, comments and empty lines, and at least one of the first kind.

    A value with white space is quoted, or the line may be a command with a variable before it; a file that is `named`
    as one of variables needs no quotes.
    """
    rows = [row for row in text.splitlines() if row.strip() and not row.lstrip().startswith("#")]
    return bool(rows) and all((_LINE if named else _STRICT).fullmatch(row) for row in rows)
