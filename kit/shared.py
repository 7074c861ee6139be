"""Finds values of a class or a module that a plugin's functions change: every request of a server shares them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from .source import SharedState
from .syntax import Function, assigned, functions, place

_CHANGES = frozenset(
    ("add", "append", "appendleft", "clear", "discard", "extend", "extendleft", "insert", "pop", "popitem", "popleft",
     "remove", "reverse", "rotate", "setdefault", "sort", "update", "write")
)  # fmt: skip
"""Methods that change a list, dict, set, deque, Counter or buffer."""
_MAKERS = frozenset(
    ("bytearray", "Counter", "defaultdict", "deque", "dict", "list", "OrderedDict", "set", "StringIO",
     "WeakKeyDictionary", "WeakValueDictionary")
)  # fmt: skip
_BY_KEY = frozenset({"setdefault"})


@dataclass(frozen=True, slots=True)
class _Change:
    """One change to a value: `owner` is what is named before the dot, None for a bare name."""

    owner: str | None
    name: str
    at: ast.AST
    rebinds: bool
    by_key: bool


def shared_state(tree: ast.Module) -> tuple[SharedState, ...]:
    """Each shared value that some function changes, with the first change, in the order of the changes."""
    found: dict[tuple[str | None, str], list[SharedState]] = {}
    for state in [*_of_classes(tree), *_of_module(tree), *_of_defaults(tree)]:
        found.setdefault((state.holder, state.name), []).append(state)
    merged = []
    for states in found.values():
        first = min(states, key=lambda one: one.changed)
        by_key = all(one.by_key for one in states)
        merged.append(SharedState(first.name, first.holder, first.where, first.defined, first.changed, by_key=by_key))
    return tuple(sorted(merged, key=lambda one: one.changed))


def _of_classes(tree: ast.Module) -> Iterator[SharedState]:
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    by_name = {node.name: node for node in classes}
    for node in classes:
        family = _family(node, by_name)
        values: dict[str, tuple[ast.expr, ast.ClassDef]] = {}
        for owner in reversed(family):
            values |= {name: (value, owner) for name, value in assigned(owner.body)}
        on_self = {name for owner in family for name in _set_in_constructor(owner)}
        for method in (one for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)):
            first, kind = _first(method)
            local = _local_names(method)
            for change in _changes(method):
                of_class = (change.owner in by_name and change.owner not in local) or change.owner in (
                    "type(self)",
                    "self.__class__",
                )
                of_class |= kind == "classmethod" and change.owner == first
                if of_class:
                    owner = by_name.get(change.owner or "", node)
                    known = dict(assigned(owner.body)).get(change.name) or values.get(change.name, (None, None))[0]
                    if change.rebinds or (known is not None and _is_mutable(known)):
                        yield _state(change, owner.name, method, known)
                elif change.owner == first and kind == "method" and change.name in values:
                    value, owner = values[change.name]
                    in_place = not change.rebinds or isinstance(change.at, ast.AugAssign)
                    if in_place and _is_mutable(value) and change.name not in on_self:
                        yield _state(change, owner.name, method, value)


def _of_module(tree: ast.Module) -> Iterator[SharedState]:
    values = dict(assigned(tree.body))
    for function in functions(tree):
        said_global = {name for node in ast.walk(function) if isinstance(node, ast.Global) for name in node.names}
        local = _local_names(function) - said_global
        for change in _changes(function):
            if change.owner is not None or change.name in local:
                continue
            if change.rebinds and change.name in said_global:
                yield _state(change, None, function, values.get(change.name))
            elif not change.rebinds and change.name in values and _is_mutable(values[change.name]):
                yield _state(change, None, function, values[change.name])


def _of_defaults(tree: ast.Module) -> Iterator[SharedState]:
    """A default that is a list or a dict is made once."""
    for function in functions(tree):
        arguments = function.args
        placed = [*arguments.posonlyargs, *arguments.args]
        pairs = list(zip(placed[len(placed) - len(arguments.defaults) :], arguments.defaults, strict=True))
        pairs += [
            (one, value)
            for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            if value is not None
        ]
        mutable = {one.arg: value for one, value in pairs if _is_mutable(value)}
        rebound = {change.name for change in _changes(function) if change.owner is None and change.rebinds}
        for change in _changes(function):
            if change.owner is None and not change.rebinds and change.name in mutable and change.name not in rebound:
                yield _state(change, f"{function.name}()", function, mutable[change.name])


def _state(change: _Change, holder: str | None, function: Function, value: ast.expr | None) -> SharedState:
    defined = place(value) if value is not None else place(change.at)
    return SharedState(change.name, holder, function.name, defined, place(change.at), by_key=change.by_key)


def _changes(function: Function) -> Iterator[_Change]:
    """Every change of a name or an attribute in a function, and in what is nested in it."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _target(target, node)
        elif isinstance(node, ast.AugAssign) or (isinstance(node, ast.AnnAssign) and node.value is not None):
            yield from _target(node.target, node)
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                yield from _target(target, node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES:
            named = _named(node.func.value)
            if named is not None:
                yield _Change(*named, node, rebinds=False, by_key=node.func.attr in _BY_KEY)


def _target(target: ast.expr, node: ast.AST) -> Iterator[_Change]:
    if isinstance(target, ast.Tuple | ast.List):
        for one in target.elts:
            yield from _target(one, node)
        return
    if isinstance(target, ast.Starred):
        yield from _target(target.value, node)
        return
    inside = target
    while isinstance(inside, ast.Subscript):
        inside = inside.value
    named = _named(inside)
    if named is not None:
        by_key = isinstance(target, ast.Subscript) and isinstance(node, ast.Assign | ast.AnnAssign)
        yield _Change(*named, node, rebinds=inside is target, by_key=by_key)


def _named(node: ast.expr) -> tuple[str | None, str] | None:
    """(owner, name) of `name`, `owner.name`, `type(self).name` and `self.__class__.name`."""
    if isinstance(node, ast.Name):
        return None, node.id
    if not isinstance(node, ast.Attribute):
        return None
    owner = node.value
    if isinstance(owner, ast.Name):
        return owner.id, node.attr
    if isinstance(owner, ast.Call) and isinstance(owner.func, ast.Name) and owner.func.id == "type":
        return "type(self)", node.attr
    if isinstance(owner, ast.Attribute) and owner.attr == "__class__":
        return "self.__class__", node.attr
    return None


def _first(method: Function) -> tuple[str | None, str]:
    """The name of the first parameter, and whether it is an instance or a class."""
    wraps = {node.id for node in method.decorator_list if isinstance(node, ast.Name)}
    placed = [*method.args.posonlyargs, *method.args.args]
    kind = next((one for one in ("staticmethod", "classmethod") if one in wraps), "method")
    return (placed[0].arg if placed else None), kind


def _family(node: ast.ClassDef, by_name: dict[str, ast.ClassDef]) -> list[ast.ClassDef]:
    """A class and its bases of this file, nearest first."""
    found: dict[str, ast.ClassDef] = {}
    waiting = [node]
    while waiting:
        one = waiting.pop(0)
        if one.name not in found:
            found[one.name] = one
            waiting += [by_name[base.id] for base in one.bases if isinstance(base, ast.Name) and base.id in by_name]
    return list(found.values())


def _set_in_constructor(node: ast.ClassDef) -> Iterator[str]:
    """Names that `__init__` sets on self, so that the class's value is not what methods change."""
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            first, _ = _first(method)
            yield from (one.name for one in _changes(method) if one.owner == first and one.rebinds)


def _local_names(function: Function) -> set[str]:
    """Parameters and names that the function sets itself."""
    arguments = function.args
    found = {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    found |= {one.arg for one in (arguments.vararg, arguments.kwarg) if one is not None}
    return found | {
        node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _is_mutable(node: ast.expr) -> bool:
    if isinstance(node, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp):
        return True
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
    return name in _MAKERS
