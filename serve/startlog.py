"""vLLM's own start-up log: the version and the flags that really run, as the server printed them."""

from __future__ import annotations

import ast
import json
import re
import warnings
from typing import Any

from ..budgets.document import Locate
from ..checks.finding import Location
from ..parsers.target import Target
from .command import ServeCommand, Server
from .words import Word

_VERSION = re.compile(
    r"vLLM (?:API server )?version:? v?(\d+)\.(\d+)(?:\.(\d+))?"
    r"|Initializing a V1 LLM engine \(v(\d+)\.(\d+)(?:\.(\d+))?"
)
_ARGS = re.compile(r"non-default args: ")
_NAMESPACE = re.compile(r"\bargs: Namespace\(")
_NOT_FLAGS = frozenset({"model_tag", "subparser", "dispatch_function", "config", "api_key"})


def is_start_log(text: str) -> bool:
    """A log that shows what the server was started with."""
    return _ARGS.search(text) is not None or _NAMESPACE.search(text) is not None


def log_servers(text: str, locate: Locate) -> list[Server]:
    """Every start of a server that the log shows. A start is known by its arguments; the version stands before them."""
    found: list[Server] = []
    for match in sorted([*_ARGS.finditer(text), *_NAMESPACE.finditer(text)], key=lambda one: one.start()):
        values = _values(text, match)
        if values is None:
            continue
        version = None
        for other in _VERSION.finditer(text, 0, match.start()):
            version = other
        found.append(_server(values, locate(match.start()), version))
    return found


def _values(text: str, match: re.Match[str]) -> dict[str, Any] | None:
    """The arguments behind the match: a dictionary, or `Namespace(...)` of releases before 0.9, as Python prints it."""
    if match[0].endswith("("):
        end = _closing(text, match.end() - 1, "()")
        source = f"dict({text[match.end() : end]})"
    else:
        end = _closing(text, match.end(), "{}")
        source = text[match.end() : end + 1]
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(_without_objects(source.replace("\n", " ")), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if isinstance(tree, ast.Dict):
        pairs = [(ast.literal_eval(key), value) for key, value in zip(tree.keys, tree.values, strict=True) if key]
    elif isinstance(tree, ast.Call):
        pairs = [(keyword.arg, keyword.value) for keyword in tree.keywords]
    else:
        return None
    return {str(key): _literal(value) for key, value in pairs}


_UNREADABLE = object()


def _without_objects(source: str) -> str:
    """The text with everything that Python prints in angle brackets (a function, an enum's member) as a name."""
    kept: list[str] = []
    depth = 0
    quote = ""
    position = 0
    while position < len(source):
        char = source[position]
        if quote:
            step = 2 if char == "\\" else 1
            kept += source[position : position + step]
            quote = "" if char == quote else quote
            position += step
            continue
        if char == "<":
            depth += 1
            kept += "_" if depth == 1 else ""
        elif char == ">" and depth:
            depth -= 1
        elif not depth:
            quote = char if char in "'\"" else ""
            kept.append(char)
        position += 1
    return "".join(kept)


def _literal(node: ast.expr) -> Any:
    """A printed value, without the parts of it that cannot be read.

    A printed object (`StructuredOutputsConfig(...)`) is the mapping of what it was made with, one that was made of one
    text (`PosixPath('/m')`) that text.
    """
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        return _literal(node.args[0])
    if isinstance(node, ast.Call):
        return _kept({keyword.arg or "": _literal(keyword.value) for keyword in node.keywords})
    if isinstance(node, ast.Dict):
        pairs = [(_literal(key), _literal(value)) for key, value in zip(node.keys, node.values, strict=True) if key]
        return _kept({key: value for key, value in pairs if isinstance(key, str | int)})
    if isinstance(node, ast.List | ast.Tuple):
        return [value for value in map(_literal, node.elts) if value is not _UNREADABLE]
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError):
        return _UNREADABLE


def _kept(values: dict[Any, Any]) -> dict[Any, Any]:
    return {key: value for key, value in values.items() if value is not _UNREADABLE}


def _closing(text: str, start: int, pair: str) -> int:
    """The offset of the bracket that closes the one at `start`, quotes minded; the line's end where none does."""
    depth = 0
    quote = ""
    position = start
    while position < len(text):
        char = text[position]
        if quote:
            position += char == "\\"
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in pair:
            depth += 1 if char == pair[0] else -1
            if depth == 0:
                return position
        position += 1
    return len(text) - 1


def _server(values: dict[str, Any], place: Location, version: re.Match[str] | None) -> ServeCommand:
    from .commandline import command_of

    words: list[Word] = []

    def add(text: str) -> None:
        words.append(Word(text, tuple(range(len(text) + 1)), lambda _: place))

    model = values.get("model_tag") or values.get("model")
    for key, value in values.items():
        flag = key.replace("_", "-")
        if key in _NOT_FLAGS or key == "model" or value in (None, [], _UNREADABLE):
            continue
        if isinstance(value, bool):
            add(f"--{flag}" if value else f"--no-{flag}")
        elif isinstance(value, (dict, list)) and (isinstance(value, dict) or any(isinstance(v, dict) for v in value)):
            add(f"--{flag}={json.dumps(value, default=str)}")
        elif isinstance(value, list):
            add(f"--{flag}")
            for item in value:
                add(str(item))
        else:
            add(f"--{flag}={value}")
    if isinstance(model, str):
        add(f"--model={model}")
    target = None
    if version is not None:
        parts = [part for part in version.groups() if part is not None]
        target = Target("vllm", (int(parts[0]), int(parts[1]), int(parts[2]) if len(parts) > 2 else 0))
    from dataclasses import replace

    command = command_of("vllm", place, words, {})
    return replace(command, target=target or command.target)
