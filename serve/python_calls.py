"""Command lines in Python source: lists and texts that a program hands to `subprocess`, `os.system` and their kin."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..checks.finding import Location
from .command import Server
from .commandline import in_words, launch
from .shell import script_servers
from .words import Word, word_at

_MARKS = ("vllm", "slimserve")
_RUNS = re.compile(
    r"(?:\w*_)?(?:system|run|p?open|call|output|split|shell|exec|spawn\w*|command|cmd|start|launch|submit|ssh)", re.I
)
"""Functions that a command line is handed to; others only show it."""
_GROWS = {"append": False, "extend": True}
"""Methods that make a list longer, and whether they take a list."""


@dataclass
class _Known:
    """What the names of one file mean: texts, and lists with the words that are added to them, in their order."""

    path: str
    texts: dict[str, ast.expr | None] = field(default_factory=dict)
    lists: dict[str, list[Word]] = field(default_factory=dict)


def called_servers(tree: ast.Module, path: str) -> list[Server]:
    """The servers of the command lines in a Python file; nothing of it is run.

    A list of words is read with what its own block adds to it (`+=`, `append`, `extend`); what only a branch adds is
    left out, and a value that the program computes is unknown.
    """
    known = _Known(path)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            known.texts[name] = None if name in known.texts else node.value  # one that changes is not known
    found: list[Server] = []
    used: set[int] = set()
    for body in _bodies(tree):
        found += _of_lists(body, known, used)
    for node in ast.walk(tree):
        if isinstance(node, ast.List | ast.Tuple) and id(node) not in used:
            found += _started(_words(node, known))
        elif isinstance(node, ast.Call):
            for argument in node.args if _RUNS.fullmatch(_called(node.func)) else ():
                found += _of_text(argument, known)
    return found


def _called(function: ast.expr) -> str:
    """The last part of a function's name."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _bodies(tree: ast.Module) -> Iterator[Sequence[ast.stmt]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list):
                yield body


def _of_lists(body: Sequence[ast.stmt], known: _Known, used: set[int]) -> Iterator[Server]:
    """The servers of the lists that this block makes, with what it adds to them itself."""
    lists: dict[str, list[Word]] = {}
    for statement in body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(statement.value, ast.List):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    used.add(id(statement.value))
                    lists[target.id] = _words(statement.value, known)
        elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            if statement.target.id in lists and isinstance(statement.value, ast.List | ast.Tuple):
                used.add(id(statement.value))
                lists[statement.target.id] += _words(statement.value, known)
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            _grown(statement.value, lists, known, used)
    for words in lists.values():
        yield from _started(words)


def _grown(call: ast.Call, lists: dict[str, list[Word]], known: _Known, used: set[int]) -> None:
    method = call.func
    if not isinstance(method, ast.Attribute) or not isinstance(method.value, ast.Name) or len(call.args) != 1:
        return
    if method.value.id in lists and method.attr in _GROWS:
        value = call.args[0]
        if _GROWS[method.attr] and isinstance(value, ast.List | ast.Tuple):
            used.add(id(value))
            lists[method.value.id] += _words(value, known)
        elif not _GROWS[method.attr]:
            lists[method.value.id].append(_word(value, known))


def _words(node: ast.List | ast.Tuple, known: _Known) -> list[Word]:
    words: list[Word] = []
    for item in node.elts:
        if isinstance(item, ast.Starred):
            words.append(_unknown(item, known))
        else:
            words.append(_word(item, known))
    return words


def _word(node: ast.expr, known: _Known) -> Word:
    text = _text(node, known.texts)
    return _unknown(node, known) if text is None else word_at(text, _place(node, known))


def _unknown(node: ast.expr, known: _Known) -> Word:
    return word_at(f"${{{ast.unparse(node)}}}", _place(node, known), dynamic=True)


def _place(node: ast.expr, known: _Known) -> Location:
    return Location(known.path, node.lineno, node.col_offset + 1)


def _text(node: ast.expr, texts: Mapping[str, ast.expr | None], depth: int = 0) -> str | None:
    """The text an expression gives, where its own words tell it."""
    if depth > 8:
        return None
    if isinstance(node, ast.Constant):
        return str(node.value) if isinstance(node.value, str | int | float) else None
    if isinstance(node, ast.Name):
        value = texts.get(node.id)
        return _text(value, texts, depth + 1) if value is not None else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str" and len(node.args) == 1:
        return _text(node.args[0], texts, depth + 1)
    if isinstance(node, ast.FormattedValue):
        return _text(node.value, texts, depth + 1) if node.format_spec is None else None
    if isinstance(node, ast.JoinedStr):
        parts = [_text(value, texts, depth + 1) for value in node.values]
        return None if None in parts else "".join(part or "" for part in parts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _text(node.left, texts, depth + 1), _text(node.right, texts, depth + 1)
        return None if left is None or right is None else left + right
    return None


def _started(words: Sequence[Word]) -> list[Server]:
    if not any(word.text.rpartition("/")[2] in _MARKS or "vllm.entrypoints" in word.text for word in words):
        return []
    return in_words(words, {}) if len(words) > 1 else []


def _of_text(node: ast.expr, known: _Known) -> list[Server]:
    """The servers of a text that a call is handed, such as `os.system("vllm serve ...")`."""
    text = _text(node, known.texts)
    if text is None and isinstance(node, ast.JoinedStr):
        text = "".join(
            _text(part, known.texts) or f"${{{ast.unparse(part)[2:-1].strip('{}').replace(' ', '')}}}"
            for part in node.values
        )
    if text is None or not any(f"{mark} " in text for mark in _MARKS) or " -" not in text:
        return []
    place = _place(node, known)
    return script_servers(text, lambda _: place, launch)
