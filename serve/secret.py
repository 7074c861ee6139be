"""What in a serve command may be a secret: such values are never told, and names of servers are made without them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .words import Word

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SECRET = re.compile(
    r"(?:^|_)(?:SECRETS?|PASSWORDS?|PASSWD|PASSPHRASE|CREDENTIALS?)(?:_|$)|"
    r"(?:^|_)(?:(?:API|ACCESS|PRIVATE|SECRET|SIGNING|ENCRYPTION)?KEYS?|(?:AUTH|ACCESS|API|BEARER)?TOKEN|PASS|PWD|AUTH|"
    r"AUTHORIZATION|BEARER|CREDS?|COOKIE|PAT)(?:_(?:ID|FILE|PATH|VALUE|BASE64|B64|\d+))?$"
)
_MARKER = re.compile(r"(?:^|_)(?:START|BEGIN|OPEN|END|CLOSE|STOP|EOS|BOS|PAD|UNK|THINK|THINKING|SPECIAL)_")
"""Tokens of a vocabulary, not of a service."""
_PLAIN = re.compile(r"[a-z]{1,12}|[A-Za-z0-9._-]{1,4}")
_NOTHING = re.compile(r"(?!)")
_OPERAND = {
    **dict.fromkeys(("-e", "-f", "-d", "-r", "-x", "-s"), re.compile(r"[\w./-]{1,60}")),
    **dict.fromkeys(("-eq", "-ne", "-gt", "-ge", "-lt", "-le"), re.compile(r"\d{1,9}")),
}
"""What stands behind these operators of a test, a path or a number, is told whole."""
_OPERATOR = re.compile(r"-[a-z]{1,2}|==?|!=|=~|[<>!]|\]\]?")
_NAMED = re.compile(r"\$\{?([A-Za-z_]\w*|[@*#?0-9])")
_USER = re.compile(r"(?<=://)[^/@\s]*@")
_COMMAND = re.compile(r"\$\(\s*([\w./+-]{1,40})|`\s*([\w./+-]{1,40})")


def holds_secret(name: str) -> bool:
    """Whether a variable of this name holds a key, a token or a password."""
    spelled = _HUMP.sub("_", name).replace("-", "_").upper()
    return _SECRET.search(spelled) is not None and _MARKER.search(spelled) is None


def told(words: Sequence[Word]) -> str:
    """A condition of a shell script by its commands, operators and variables.

    What is compared with is left out unless it is a short plain word, a number or a parser's name, and none of the
    variables holds a secret: the rest of a condition (a password, a header of curl's) belongs to nobody else.
    """
    parts: list[str] = []
    hidden = any(holds_secret(match[1]) for word in words for match in _NAMED.finditer(word.text))
    testing = ""
    begins = True
    before = ""
    for word in words:
        text = word.text
        if text in ("\n", ";"):
            continue
        if word.operator or (begins and text == "!"):
            parts.append(text)
            if testing != "[[":
                testing, begins = "", True
        elif begins:
            if re.match(r"[A-Za-z_]\w*\+?=", text):
                continue
            testing = text if text in ("[", "[[", "test") else ""
            parts.append(text if testing else _command(word))
            begins = False
        elif testing:
            operand = _OPERAND.get(before, _NOTHING) if not hidden else _NOTHING
            asis = _OPERATOR.fullmatch(text) or operand.fullmatch(text)
            parts.append(text if asis else _literals(word, hidden))
            testing = "" if text in ("]", "]]") else testing
        elif parts[-1] != "…":
            parts.append("…")
        before = text
    return " ".join(parts)


def told_case(subject: Word, patterns: Sequence[Word]) -> str:
    """The condition of one branch of a `case`, as `told` does it."""
    hidden = any(holds_secret(match[1]) for match in _NAMED.finditer(subject.text))
    shown = "|".join(_literals(pattern, hidden) for pattern in patterns)
    return f"{_literals(subject, hidden)} is {shown}"


def told_value(value: str) -> str:
    """What is not known of a value: its variables by name, its commands without their arguments."""
    found: list[str] = []
    position = 0
    while (
        start := min((at for at in (value.find("$", position), value.find("`", position)) if at >= 0), default=-1)
    ) >= 0:
        rest = value[start:]
        command, name = _COMMAND.match(rest), _NAMED.match(rest)
        if command is not None and rest[command.end() :].startswith(")"):
            found.append(f"$({command[1]})")
        elif command is not None:
            found.append(f"$({(command[1] or command[2]).rpartition('/')[2]} …)")
        elif name is not None:
            found.append(f"${name[1]}")
        if command is not None:
            break
        position = start + (name.end() if name is not None else 1)
    return " ".join(found) or "a value"


def without_user(name: str) -> str:
    """A model's address without the user and the password in front of its host."""
    return _USER.sub("", name)


def numbered(conditions: Mapping[str, str]) -> dict[str, str]:
    """Conditions by their own text, each told; those that are told alike get numbers."""
    seen: dict[str, int] = {}
    found: dict[str, str] = {}
    for text, said in conditions.items():
        seen[said] = seen.get(said, 0) + 1
        found[text] = said if seen[said] == 1 else f"{said} ({seen[said]})"
    return found


def _command(word: Word) -> str:
    if word.expansions:
        return _literals(word, hidden=True)
    name = word.text.rpartition("/")[2]
    return name if re.fullmatch(r"[\w.+-]{1,40}", name) else "…"


def _literals(word: Word, hidden: bool) -> str:
    """A word with its variables by name, its commands by theirs, and of its own text what is plain."""
    parts: list[str] = []
    position = 0
    for begin, end, _ in (*word.expansions, (len(word.text), len(word.text), False)):
        parts += _plain(word.text[position:begin], hidden)
        expansion = word.text[begin:end]
        command, name = _COMMAND.match(expansion), _NAMED.match(expansion)
        if command is not None:
            parts.append(f"$({(command[1] or command[2]).rpartition('/')[2]} …)")
        elif name is not None:
            parts.append(f"${name[1]}")
        elif expansion:
            parts.append("$…")
        position = end
    return "".join(parts) or '""'


def _plain(text: str, hidden: bool) -> list[str]:
    from ..parsers.table import names  # only a script with open conditions needs it

    pieces = [piece for piece in re.split(r"([*?|])", text) if piece]
    known = names()
    return [
        piece if piece in ("*", "?", "|") or (not hidden and (_PLAIN.fullmatch(piece) or piece in known)) else "…"
        for piece in pieces
    ]
