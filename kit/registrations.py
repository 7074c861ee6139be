"""Finds what a plugin's file registers: vLLM's decorator, its calls, its lazy form, and a package's entry points."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from .source import Registration
from .syntax import Names, is_none, place

MANAGER = "ReasoningParserManager"
GROUP = "vllm.general_plugins"
"""Entry points that every process of vLLM runs (vllm/plugins/__init__.py)."""
_MAIN = "__main__"


def registrations(tree: ast.Module, names: Names, path: Path) -> tuple[Registration, ...]:
    """What loading the file registers, or means to, in the order of the file."""
    found = sorted(_Reader(tree, names).found(), key=lambda one: one[0].place)
    entries = _entry_points(path)
    called = _called_at_top(tree)
    return tuple(_reached(one, function, called, entries) for one, function in found)


class _Reader:
    """Walks the file, and knows the function that a registration stands in."""

    def __init__(self, tree: ast.Module, names: Names) -> None:
        self._tree = tree
        self._names = names
        self._classes = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}

    def found(self) -> Iterator[tuple[Registration, str | None]]:
        """Every registration, with the name of the function around it."""
        yield from self._below(self._tree.body, None)

    def _below(self, body: Sequence[ast.AST], function: str | None) -> Iterator[tuple[Registration, str | None]]:
        for node in body:
            if isinstance(node, ast.ClassDef):
                for decorator in node.decorator_list:
                    yield from ((one, function) for one in self._decorator(decorator, node.name))
                yield from self._below(node.body, function)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from self._below(node.body, node.name)
            elif isinstance(node, ast.If) and _is_main(node.test):
                yield from self._below(node.body, _MAIN)
                yield from self._below(node.orelse, function)
            elif isinstance(node, ast.Call):
                yield from ((one, function) for one in self._call(node))
                yield from self._below(list(ast.iter_child_nodes(node)), function)
            else:
                yield from self._below(list(ast.iter_child_nodes(node)), function)

    def _decorator(self, node: ast.expr, class_name: str) -> Iterator[Registration]:
        called = node.func if isinstance(node, ast.Call) else node
        manager = self._manager(called, "register_module")
        if manager is None:
            return
        if not isinstance(node, ast.Call):
            # The class becomes the name, and what is left of it is the decorator.
            why = "the decorator is not called: write register_module with the name in brackets"
            yield Registration(None, class_name, "decorator", place(node), not_run=why)
            return
        for name in self._given(node, class_name):
            yield Registration(name, class_name, "decorator", place(node), wrong_registry=_wrong(manager))

    def _call(self, node: ast.Call) -> Iterator[Registration]:
        lazy = self._manager(node.func, "register_lazy_module")
        if lazy is not None:
            name, module, cls = (
                self._names.text(_argument(node, at, key))
                for at, key in enumerate(("name", "module_path", "class_name"))
            )
            yield Registration(name, cls, "lazy", place(node), module=module, wrong_registry=_wrong(lazy))
            return
        eager = self._manager(node.func, "register_module")
        given = _argument(node, 2, "module")
        if eager is not None and given is not None and not is_none(given):
            for name in self._given(node, self._class_of(given)):
                yield Registration(name, self._class_of(given), "call", place(node), wrong_registry=_wrong(eager))
            return
        outer = node.func  # register_module("x")(Parser)
        if isinstance(outer, ast.Call) and node.args and (manager := self._manager(outer.func, "register_module")):
            for name in self._given(outer, self._class_of(node.args[0])):
                yield Registration(
                    name, self._class_of(node.args[0]), "call", place(node), wrong_registry=_wrong(manager)
                )

    def _given(self, call: ast.Call, class_name: str | None) -> list[str | None]:
        """The names of a `register_module`: a string, a list of them, or else the class's own name."""
        value = _argument(call, 0, "name")
        if value is None or is_none(value) or isinstance(value, ast.Tuple | ast.Set):
            return [class_name]  # vLLM takes a tuple for no list of names
        if isinstance(value, ast.List):
            return [self._names.text(one) for one in value.elts] or [class_name]
        return [self._names.text(value)]

    def _class_of(self, node: ast.expr) -> str | None:
        return node.id if isinstance(node, ast.Name) and node.id in self._classes else None

    def _manager(self, node: ast.expr, method: str) -> str | None:
        """The manager whose method this is, None where it is nothing of the kind."""
        if not isinstance(node, ast.Attribute) or node.attr != method:
            return None
        manager = self._names.dotted(node.value).rpartition(".")[2]
        return manager if manager.endswith("ParserManager") else None


def _reached(
    one: Registration, function: str | None, called: frozenset[str], entries: Mapping[str, str]
) -> Registration:
    """The registration, with what runs it or why nothing does."""
    if function is None or function in called:
        return one
    if function == _MAIN:
        return replace(one, not_run=one.not_run or 'it stands under `if __name__ == "__main__"`')
    if function in entries:
        return replace(one, entry_point=entries[function])
    return replace(one, not_run=one.not_run or f"it stands in {function}(), which loading the file does not call")


def _called_at_top(tree: ast.Module) -> frozenset[str]:
    """Functions that are called while the file is loaded, themselves or by such a one."""
    tops = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    waiting: list[ast.AST] = [
        node for node in tree.body if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    ]
    found: set[str] = set()
    while waiting:
        for node in ast.walk(waiting.pop()):
            called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None
            if called in tops and called not in found:
                found.add(called)
                waiting.append(tops[called])
    return frozenset(found)


def _entry_points(path: Path) -> dict[str, str]:
    """Functions of this file that entry points of the package around it run, by name.

    The package's pyproject.toml is looked for beside the file and in the folders above, up to a repository's top.
    """
    import tomllib

    path = path.absolute()
    for folder in path.parents:
        project = folder / "pyproject.toml"
        if project.is_file():
            try:
                known = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["entry-points"][GROUP]
                pairs = [(str(name), str(value).partition("[")[0]) for name, value in known.items()]
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                return {}
            found: dict[str, str] = {}
            for name, value in pairs:
                module, _, function = value.strip().partition(":")
                if module.rpartition(".")[2] in (path.stem, path.parent.name if path.stem == "__init__" else path.stem):
                    found[function.strip()] = f"{GROUP}: {name}"
            return found
        if (folder / ".git").exists():
            break
    return {}


def _argument(call: ast.Call, at: int, name: str) -> ast.expr | None:
    placed = call.args[at] if at < len(call.args) else None
    return next((word.value for word in call.keywords if word.arg == name), placed)


def _wrong(manager: str) -> str | None:
    return None if manager == MANAGER else manager


def _is_main(test: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(test))
