"""Where a client's source (Python, TypeScript, JSON, YAML) reads `reasoning_content` and not `reasoning`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..budgets.files import read_text
from ..errors import InputError
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
_TAKEN_APART = re.compile(
    r"\{[^{}]*\b(?:reasoning_content|reasoningContent)\b[^{}]*\}\s*"
    r"(?:=(?![=>])|(?::[^=]{0,80})?\)\s*(?:=>|\{)|of\b|\)\s*:)"
)
"""An object that is taken apart into names (`const { reasoning_content: text } = delta`): a read for all its colons."""
_NEW_NAME = re.compile(r"(?<![\w$.])reasoning(?![\w$])")
_ACCESS = re.compile(
    r"""(?:(?<![\w$])[A-Za-z_$][\w$]{0,40})?(?:\?\.|\.|::|->|\??\.?\[\s*["'`])?(?:reasoning_content|reasoningContent)(?:["'`]\s*\])?"""
)
_COMMENT = re.compile(r"^\s*(?://|#|\*|/\*)")
_NEARBY = 6
"""Lines around a read in which the new name shows that the client knows both."""
_NEW_READ = re.compile(r"""(?:\.|\?\.|\[["']|get\(["']|getattr\([^,]+,\s*["']|["'])reasoning(?:["'\])]|\b(?!_))""")


def read_clients(paths: Sequence[str], *, unread: list[InputError] | None = None) -> tuple[OldFieldRead, ...]:
    """Every line of these files, or of the sources in these folders, where the old field alone is read.

    A read is told by its access and no more of its line, which may hold a key or a token.

    Args:
        paths: files and folders.
        unread: takes what is wrong with a folder's file that cannot be read; the others are read all the same.

    Raises:
        InputError: a file that is named itself cannot be read, or one of a folder without `unread`.
    """
    found: list[OldFieldRead] = []
    for given in paths:
        path = Path(given)
        files = sorted(_sources(path)) if path.is_dir() else [path]
        for file in files:
            shown = str(file)
            try:
                text = read_text(file, shown=shown)
            except InputError as error:
                if unread is None or file == path:
                    raise
                unread.append(error)
                continue
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
        apart = _TAKEN_APART.search(row)
        if match is None or _COMMENT.match(row) or (apart is None and _WRITES.search(row)):
            continue
        if apart is not None and _NEW_NAME.search(apart[0]):
            continue
        near = rows[max(0, number - 1 - _NEARBY) : number + _NEARBY]
        if not any(_NEW_READ.search(_OLD_WORD.sub("", other)) for other in near):
            access = next((m[0] for m in _ACCESS.finditer(row) if m.end() >= match.end()), match[0])
            yield OldFieldRead(Location(shown, number, match.start() + 1), access)


def _python_reads(tree: ast.Module, text: str, shown: str) -> Iterator[OldFieldRead]:
    """Reads of the old name in a function (or the module's own code) that never reads the new one."""
    rows = text.splitlines()
    seen: set[int] = set()
    for scope in _scopes(tree):
        looped = [text for node in ast.iter_child_nodes(scope) for text in _looped(node)]
        old = [node for node in _own(scope) if _read_name(node) == OLD]
        old += [text for text in looped if text.value == OLD]
        if not old or any(_read_name(node) == NEW for node in _own(scope)) or any(t.value == NEW for t in looped):
            continue
        for node in old:
            named = _names_it(node)
            line = named.end_lineno or named.lineno
            if line in seen:
                continue
            seen.add(line)
            end = (named.end_col_offset or 0) - (0 if isinstance(named, ast.Attribute) else 1)
            column = len(rows[line - 1].encode()[:end].decode(errors="replace")) - len(OLD) + 1
            yield OldFieldRead(Location(shown, line, max(column, 1)), _access(node))


def _looped(node: ast.AST) -> Iterator[ast.Constant]:
    """The texts that a loop of this scope goes over, as names of fields: `for key in ("reasoning_content",)`."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        return
    if isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)) and isinstance(node.iter, (ast.Tuple, ast.List)):
        yield from (item for item in node.iter.elts if isinstance(item, ast.Constant) and isinstance(item.value, str))
    for child in ast.iter_child_nodes(node):
        yield from _looped(child)


def _names_it(node: ast.expr) -> ast.expr:
    """The part of a read that ends in the field's name."""
    if isinstance(node, ast.Subscript):
        return node.slice
    if isinstance(node, ast.Call):
        return node.args[0] if isinstance(node.func, ast.Attribute) else node.args[1]
    return node


def _access(node: ast.expr) -> str:
    """A read in short: the field and the name it is read from."""
    if isinstance(node, ast.Attribute):
        return f"{_receiver(node.value)}.{OLD}"
    if isinstance(node, ast.Subscript):
        return f'{_receiver(node.value)}["{OLD}"]'
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return f'{_receiver(node.func.value)}.{node.func.attr}("{OLD}")'
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return f'{node.func.id}({_receiver(node.args[0])}, "{OLD}")'
    return OLD


def _receiver(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else "…"


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
