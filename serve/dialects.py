"""Command lines in other languages than a POSIX shell's: PowerShell, cmd and make, turned into a shell's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from ..budgets.document import Locate

_MAKEFILES = frozenset({"makefile", "gnumakefile"})
_PS_SET = re.compile(r"^[ \t]*\$(?:env:|script:|global:)?(\w+)[ \t]*=[ \t]*", re.IGNORECASE)
_PS_ENV = re.compile(r"\$(?:env|script|global):(\w+)", re.IGNORECASE)
_CMD_SET = re.compile(r'^[ \t]*@?set[ \t]+("?)([A-Za-z_]\w*)=([^"\n]*)"?[ \t]*$', re.IGNORECASE)
_CMD_NOTE = re.compile(r"^[ \t]*@?(?:rem\b|::|echo\b|setlocal\b|endlocal\b|title\b)", re.IGNORECASE)
_CMD_VARIABLE = re.compile(r"%(\w+)%")
_MAKE_SET = re.compile(r"^(?:export[ \t]+|override[ \t]+)*([A-Za-z_][\w.-]*)[ \t]*(\?|:{1,3}|\+|!)?=[ \t]*(.*)$")
_MAKE_VARIABLE = re.compile(r"\$(?:\(([A-Za-z_][\w.-]*)\)|\{([A-Za-z_][\w.-]*)\}|(\$)|([@<^*?%]))")
_MAKE_RULE = re.compile(r"^[^\s#=:][^=:]*::?(?!=)[^;\n]*(;)?")


class _Text:
    """A text made of another one's pieces, which knows where in it each character stood."""

    def __init__(self, locate: Locate) -> None:
        self._locate = locate
        self._chars: list[str] = []
        self._offsets: list[int] = []

    def add(self, text: str, at: int, *, made: bool = False) -> None:
        """`text` as it stands from offset `at` on; what is `made` for it stands at that one place."""
        self._chars += text
        self._offsets += [at] * len(text) if made else range(at, at + len(text))

    def end(self, at: int, *, continued: bool) -> None:
        """A line's end, after which the line goes on or not."""
        self.add("\\\n" if continued else "\n", at, made=True)

    def done(self) -> tuple[str, Locate]:
        offsets, locate = self._offsets, self._locate
        return "".join(self._chars), lambda at: locate(offsets[min(at, len(offsets) - 1)] if offsets else 0)


def as_shell(text: str, path: str, locate: Locate) -> tuple[str, Locate]:
    """The text as a shell would have it, with its places; itself where it is of none of these languages."""
    name = PurePosixPath(path).name.lower()
    if name.endswith((".ps1", ".psm1")):
        return _powershell(text, locate)
    if name.endswith((".bat", ".cmd")):
        return _cmd(text, locate)
    if is_makefile(name):
        return _make(text, locate)
    return text, locate


def is_makefile(name: str) -> bool:
    return name.lower() in _MAKEFILES or name.lower().endswith(".mk")


def _lines(text: str) -> Iterator[tuple[str, int]]:
    """Every line, its end included, with its offset."""
    at = 0
    for line in text.splitlines(keepends=True):
        yield line, at
        at += len(line)


def _end_of(body: str, mark: str) -> tuple[int, bool]:
    """Where what a line says ends, and whether a mark says that it goes on with the next."""
    said = body.rstrip()
    return (len(said) - 1, True) if said.endswith(mark) else (len(body), False)


def _powershell(text: str, locate: Locate) -> tuple[str, Locate]:
    made = _Text(locate)
    for line, at in _lines(text):
        body = line.rstrip("\r\n")
        assigned = _PS_SET.match(body)
        start = 0
        if assigned is not None:
            made.add(f"{assigned[1]}=", at, made=True)
            start = assigned.end()
        end, continued = _end_of(body, "`")
        quote = ""
        position = start
        while position < end:
            char = body[position]
            variable = _PS_ENV.match(body, position) if quote != "'" else None
            if variable is not None:
                made.add(f"${{{variable[1]}}}", at + position, made=True)
                position = variable.end()
                continue
            if char in "'\"":
                quote = "" if char == quote else quote or char
            if char == "\\" and quote == "'" and body[position + 1 : position + 2] == '"':
                pass  # kept for the program's own reading of its command line, which takes it away
            elif char == "\\" and quote != "'":
                made.add("\\\\", at + position, made=True)
            elif char == "`" and quote != "'" and position + 1 < end:
                made.add("\\", at + position)
            else:
                made.add(char, at + position)
            position += 1
        made.end(at + len(body) - 1 if body else at, continued=continued)
    return made.done()


def _cmd(text: str, locate: Locate) -> tuple[str, Locate]:
    made = _Text(locate)
    for line, at in _lines(text):
        body = line.rstrip("\r\n")
        if _CMD_NOTE.match(body):
            made.add("\n", at, made=True)
            continue
        given = _CMD_SET.match(body)
        if given is not None:
            made.add(f"{given[2]}='", at, made=True)
            made.add(given[3].replace("'", ""), at + given.start(3))
            made.add("'\n", at, made=True)
            continue
        end, continued = _end_of(body, "^")
        quoted = False
        position = 0
        while position < end:
            char = body[position]
            variable = _CMD_VARIABLE.match(body, position)
            if variable is not None:
                made.add(f"${{{variable[1]}}}", at + position, made=True)
                position = variable.end()
                continue
            quoted ^= char == '"' and body[position - 1 : position] != "\\"
            if char == "\\" and body[position + 1 : position + 2] != '"':
                made.add("\\\\", at + position, made=True)
            elif char in "$`" or (char == "'" and not quoted):
                made.add(f"\\{char}", at + position, made=True)
            elif char == "^" and position + 1 < end:
                pass  # it takes its meaning from the next character
            else:
                made.add(char, at + position)
            position += 1
        made.end(at + len(body) - 1 if body else at, continued=continued)
    return made.done()


def _make(text: str, locate: Locate) -> tuple[str, Locate]:
    """The variables as a script's, then every recipe; `$(NAME)` is a variable, `$$` the shell's own `$`."""
    made = _Text(locate)
    joined = text.replace("\\\n", "\0 ")  # a continued line is one; the backslash keeps its place
    recipe = False
    for line, at in _lines(joined):
        body = line.rstrip("\r\n")
        given = None if body.startswith("\t") else _MAKE_SET.match(body)
        if given is not None:
            name = given[1].replace("-", "_").replace(".", "_")
            made.add(f'{name}+=" ' if given[2] == "+" else f'{name}="', at, made=True)
            _recipe(made, given[3].split(" #")[0].replace('"', '\\"'), at + given.start(3))
            made.add('"\n', at, made=True)
            continue
        rule = None if body.startswith(("\t", "#")) else _MAKE_RULE.match(body)
        if rule is not None:
            recipe = True
            if rule[1]:
                _recipe(made, body[rule.end() :], at + rule.end())
        elif body.startswith("\t") and recipe:
            lead = len(body) - len(body.lstrip("\t @-+"))
            _recipe(made, body[lead:], at + lead)
        elif body.strip():
            recipe = False
        made.add("\n", at + len(body), made=True)
    return made.done()


def _recipe(made: _Text, body: str, at: int) -> None:
    position = 0
    for match in _MAKE_VARIABLE.finditer(body):
        _plain(made, body[position : match.start()], at + position)
        name = match[1] or match[2]
        if name:
            made.add(f"${{{name.replace('-', '_').replace('.', '_')}}}", at + match.start(), made=True)
        else:
            made.add("$" if match[3] else "_", at + match.start(), made=True)
        position = match.end()
    _plain(made, body[position:], at + position)


def _plain(made: _Text, text: str, at: int) -> None:
    """Text as it is, its continued lines as a shell continues them."""
    for index, char in enumerate(text):
        if char == "\0":
            made.add("\\\n", at + index, made=True)
        else:
            made.add(char, at + index)
