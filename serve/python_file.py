"""Servers written in Python: Ray Serve's `LLMConfig(engine_kwargs=...)`, and command lines that a program starts."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from typing import Any

from ..budgets.document import Entry, Node
from ..checks.finding import Location
from .command import Server
from .container import Container, servers_of
from .kubernetes import model_word
from .nodes import at_key, keyed_flags, text_of
from .python_calls import called_servers


def is_python(path: str) -> bool:
    return path.endswith((".py", ".pyi"))


def python_servers(text: str, path: str) -> list[Server]:
    """Every `LLMConfig(...)` with engine arguments and every command line, by their literal values; nothing is run."""
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found: list[Server] = []
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and _name(call.func) == "LLMConfig":
            found += _config(_node(call, path))
    found += called_servers(tree, path)
    return sorted(found, key=lambda server: server.location.line or 0)


def _name(function: ast.expr) -> str:
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def _config(node: Node) -> list[Server]:
    source = at_key(node, "model_loading_config", "model_source")
    named = at_key(node, "model_loading_config", "model_id")
    return servers_of(
        Container(
            text_of(named) or "LLMConfig",
            node.location,
            model=model_word(source if source is not None and source.is_scalar and source.scalar else named),
            flags=keyed_flags(at_key(node, "engine_kwargs")),
        )
    )


def _node(value: ast.expr, path: str) -> Node:
    """A literal, `dict(...)` or any call's keywords as a document; anything else is null."""
    place = Location(path, value.lineno, value.col_offset + 1)
    if isinstance(value, ast.Call):
        return Node(place, entries=tuple(_entries([(k.arg, k.value) for k in value.keywords], path)))
    if isinstance(value, ast.Dict):
        pairs = [
            (k.value if isinstance(k, ast.Constant) else None, v) for k, v in zip(value.keys, value.values, strict=True)
        ]
        return Node(place, entries=tuple(_entries(pairs, path)))
    if isinstance(value, (ast.List, ast.Tuple)):
        return Node(place, items=tuple(_node(item, path) for item in value.elts))
    if isinstance(value, ast.Constant) and (value.value is None or isinstance(value.value, (bool, int, float, str))):
        return Node(place, scalar=value.value)
    return Node(place)


def _entries(pairs: list[tuple[Any, ast.expr]], path: str) -> Iterator[Entry]:
    for key, value in pairs:
        if isinstance(key, str):
            yield Entry(key, Location(path, value.lineno, value.col_offset + 1), _node(value, path))
