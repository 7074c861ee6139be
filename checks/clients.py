"""Where a client's source (Python, TypeScript, JSON, YAML) reads `reasoning_content` and not `reasoning`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..budgets.files import read_text
from .facts import OldFieldRead
from .finding import Location

OLD, NEW = "reasoning_content", "reasoning"
_SUFFIXES = frozenset(
    {
        ".py",
        ".pyi",
        ".ts",
        ".tsx",
        ".js",
        ".jsx",
        ".mjs",
        ".cjs",
        ".json",
        ".yaml",
        ".yml",
        ".vue",
        ".svelte",
        ".go",
        ".rs",
        ".java",
        ".kt",
        ".rb",
    }
)
_OLD_WORD = re.compile(r"(?<![\w-])(?:reasoning_content|reasoningContent)(?![\w-])")
_WRITES = re.compile(
    r"""(?:reasoning_content|reasoningContent)["']?\s*(?:\??:(?!:)|=(?!=)|=>)|(?:setdefault|append)\(\s*["']reasoning_content"""
)
_COMMENT = re.compile(r"^\s*(?://|#|\*|/\*)")
_NEARBY = 6
"""Lines around a read in which the new name shows that the client knows both."""
_NEW_READ = re.compile(r"""(?:\.|\?\.|\[["']|get\(["']|getattr\([^,]+,\s*["']|["'])reasoning(?:["'\])]|\b(?!_))""")


def read_clients(paths: Sequence[str]) -> tuple[OldFieldRead, ...]:
    """Every place of these files, or of the sources in these folders, where the old field alone is read.

    Raises:
        InputError: a file cannot be read.
    """
    found: list[OldFieldRead] = []
    for given in paths:
        path = Path(given)
        files = sorted(_sources(path)) if path.is_dir() else [path]
        for file in files:
            shown = str(file)
            text = read_text(file, shown=shown)
            if OLD in text or "reasoningContent" in text:
                found += _reads(text, shown)
    return tuple(found)


def _sources(folder: Path) -> Iterator[Path]:
    skipped = {"node_modules", "dist", "build", "venv", "__pycache__"}
    for path in folder.rglob("*"):
        parts = path.relative_to(folder).parts
        hidden = any(part.startswith(".") or part in skipped for part in parts)
        if path.suffix in _SUFFIXES and not hidden and path.is_file():
            yield path


def _reads(text: str, shown: str) -> Iterator[OldFieldRead]:
    if shown.endswith((".py", ".pyi")):
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            pass
        else:
            yield from _python_reads(tree, text, shown)
            return
    rows = text.splitlines()
    for number, row in enumerate(rows, 1):
        match = _OLD_WORD.search(row)
        if match is None or _COMMENT.match(row) or _WRITES.search(row):
            continue
        near = rows[max(0, number - 1 - _NEARBY) : number + _NEARBY]
        if not any(_NEW_READ.search(_OLD_WORD.sub("", other)) for other in near):
            yield OldFieldRead(Location(shown, number, match.start() + 1), row.strip())


def _python_reads(tree: ast.Module, text: str, shown: str) -> Iterator[OldFieldRead]:
    """Reads of the old name in a function (or the module's own code) that never reads the new one."""
    rows = text.splitlines()
    for scope in _scopes(tree):
        old = [node for node in _own(scope) if _read_name(node) == OLD]
        if not old or any(_read_name(node) == NEW for node in _own(scope)):
            continue
        for node in old:
            line, column = node.lineno, node.col_offset
            where = rows[node.end_lineno - 1].find(OLD) if node.end_lineno else -1
            if node.end_lineno and where >= 0:
                line, column = node.end_lineno, where
            yield OldFieldRead(Location(shown, line, column + 1), rows[line - 1].strip())


def _scopes(tree: ast.Module) -> Iterator[ast.AST]:
    yield tree
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield node


def _own(scope: ast.AST) -> Iterator[ast.expr]:
    """The expressions of a scope, without those of the functions inside it."""
    waiting: list[ast.AST] = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.expr):
            yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)


def _read_name(node: ast.expr) -> str | None:
    """The field that an expression reads: `x.name`, `x["name"]`, `x.get("name")`, `getattr(x, "name")`."""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        return node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        return _text(node.slice)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("get", "pop") and node.args:
            return _text(node.args[0])
        if isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr") and len(node.args) > 1:
            return _text(node.args[1])
    return None


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
