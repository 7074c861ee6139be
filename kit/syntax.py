"""Reads names, imports and classes from the syntax tree of a plugin's file."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from .source import EndAnswer, Import, Marker, Method, ParserClass, Place

MARKERS = ("start_token", "end_token", "reasoning_start_str", "reasoning_end_str")
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def place(node: ast.AST) -> Place:
    """Where a node stands: of a class or function its name, behind decorators and `def`."""
    line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1
    if isinstance(node, ast.ClassDef):
        return Place(line, column + len("class "))
    if isinstance(node, ast.AsyncFunctionDef):
        return Place(line, column + len("async def "))
    return Place(line, column + len("def ")) if isinstance(node, ast.FunctionDef) else Place(line, column)


class Names:
    """What the names of a file mean: imported ones by their dotted names, and literals set at its top."""

    def __init__(self, tree: ast.Module) -> None:
        self._dotted: dict[str, str] = {}
        self._literals: dict[str, object] = {}
        imported: list[Import] = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for one in node.names:
                    self._dotted[one.asname or one.name.partition(".")[0]] = (
                        one.name if one.asname else one.name.partition(".")[0]
                    )
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                for one in node.names:
                    self._dotted[one.asname or one.name] = f"{node.module}.{one.name}"
        for node in _loaded(tree.body):
            if isinstance(node, ast.Import):
                imported += [Import(one.name, None, place(node)) for one in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                imported += [Import(node.module, one.name, place(node)) for one in node.names]
        for name, value in assigned(tree.body):
            if isinstance(value, ast.Constant):
                self._literals[name] = value.value
        self.imported = tuple(imported)

    def dotted(self, node: ast.expr) -> str:
        """The dotted name of an expression, `?` for one that has none."""
        if isinstance(node, ast.Name):
            return self._dotted.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            return f"{self.dotted(node.value)}.{node.attr}"
        if isinstance(node, ast.Subscript):
            return self.dotted(node.value)
        return "?"

    def text(self, node: ast.expr | None) -> str | None:
        """The string that an expression is, None where that is not told by the file."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        found = self._literals.get(node.id) if isinstance(node, ast.Name) else None
        return found if isinstance(found, str) else None


def assigned(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    """The names that these statements set, each with its value."""
    for node in body:
        if isinstance(node, ast.Assign):
            yield from ((target.id, node.value) for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
            yield node.target.id, node.value


def functions(tree: ast.AST) -> Iterator[Function]:
    """Every function below a node."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def parser_classes(tree: ast.Module, names: Names) -> tuple[ParserClass, ...]:
    """Every class of the file, in the order they stand there."""
    reading = _reading(tree)
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return tuple(_class(node, names, node.name in reading) for node in sorted(found, key=lambda node: node.lineno))


def _class(node: ast.ClassDef, names: Names, reads_kwargs: bool) -> ParserClass:
    methods = [one for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    attributes = dict(assigned(node.body))
    constants = _own_constants(methods, names)
    ends = next((one for one in reversed(methods) if one.name == "is_reasoning_end"), None)
    marks: dict[str, Marker] = {}
    for name in MARKERS:
        if name in attributes:
            marks[name] = _marker(attributes[name], attributes[name], names, constants)
        for one in methods:
            if one.name == name:
                marks[name] = _returned_marker(one, names, constants)
    return ParserClass(
        name=node.name,
        place=place(node),
        bases=tuple(names.dotted(base) for base in node.bases),
        methods=tuple(_method(one) for one in {one.name: one for one in methods}.values()),
        attributes=frozenset(attributes),
        markers=tuple(marks.items()),
        end_answer=_end_answer(ends) if ends is not None else None,
        end_place=place(ends) if ends is not None else None,
        reads_kwargs=reads_kwargs,
    )


def _method(node: Function) -> Method:
    wraps = [_last(one) for one in node.decorator_list]
    arguments = node.args
    positional = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
    if "staticmethod" not in wraps:
        positional = positional[1:]
    needed = [one.arg for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value is None]
    only_placed = {one.arg for one in arguments.posonlyargs}
    return Method(
        name=node.name,
        place=place(node),
        positional=tuple(positional),
        required=max(0, len(positional) - len(arguments.defaults)),
        keyword_only=tuple(needed),
        star_args=arguments.vararg is not None,
        star_kwargs=arguments.kwarg is not None,
        keywords=frozenset(positional) - only_placed | {one.arg for one in arguments.kwonlyargs},
        is_property=any(one in ("property", "cached_property") for one in wraps),
        is_async=isinstance(node, ast.AsyncFunctionDef) or any(_own(node, ast.Yield, ast.YieldFrom)),
        answers=_answers(node),
    )


def _answers(node: Function) -> bool:
    """Whether a call gives something: a value, or an exception."""
    if any(value is not None and not is_none(value) for value in _returned(node)):
        return True
    return isinstance(node.body[-1], ast.Raise) or any(_own(node, ast.Yield, ast.YieldFrom))


def _end_answer(node: Function) -> EndAnswer:
    values = [value for value in _returned(node) if value is not None and not is_none(value)]
    if not values:
        return "ids" if isinstance(node.body[-1], ast.Raise) else "none"
    constants = {value.value if isinstance(value, ast.Constant) else None for value in values}
    if constants == {True}:
        return "always-true"
    if constants == {False}:
        return "always-false"
    given = {one.arg for one in (*node.args.posonlyargs, *node.args.args)[1:]}
    given |= {one.arg for one in (node.args.vararg, node.args.kwarg) if one is not None}
    looks = any(isinstance(one, ast.Name) and one.id in given for one in ast.walk(node))
    return "ids" if looks else "own-state"


def _marker(at: ast.AST, value: ast.expr, names: Names, constants: dict[str, str]) -> Marker:
    if is_none(value):
        return Marker(place(at), given=False)
    own = value.attr if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name) else None
    return Marker(place(at), names.text(value) or (constants.get(own) if own is not None else None))


def _returned_marker(node: Function, names: Names, constants: dict[str, str]) -> Marker:
    values = [value for value in _returned(node) if value is not None]
    if all(map(is_none, values)):
        return Marker(place(node), given=isinstance(node.body[-1], ast.Raise))
    return _marker(values[0], values[0], names, constants) if len(values) == 1 else Marker(place(values[0]))


def _own_constants(methods: Sequence[Function], names: Names) -> dict[str, str]:
    """What `self.NAME` is where the constructor sets it to a string."""
    found: dict[str, str] = {}
    for one in methods:
        for node in ast.walk(one) if one.name == "__init__" else ():
            if isinstance(node, ast.Assign) and (text := names.text(node.value)) is not None:
                found |= {target.attr: text for target in node.targets if isinstance(target, ast.Attribute)}
    return found


def _reading(tree: ast.Module) -> frozenset[str]:
    """The classes and functions at the top that read `chat_template_kwargs`, themselves or through others of the file.

    A constructor that hands all its kwargs to another class leaves the reading to that one.
    """
    tops = {
        node.name: node
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) or (isinstance(node, ast.FunctionDef) and node in tree.body)
    }
    reading = {name for name, node in tops.items() if _reads(node)}
    uses = {
        name: {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and one.id in tops}
        for name, node in tops.items()
    }
    while more := {name for name, used in uses.items() if name not in reading and used & reading}:
        reading |= more
    return frozenset(reading)


def _reads(node: ast.AST) -> bool:
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and one.value == "chat_template_kwargs":
            return True
        if isinstance(one, ast.arg) and one.arg == "chat_template_kwargs":
            return True
        if isinstance(one, ast.Call) and any(word.arg is None for word in one.keywords) and not _to_super(one):
            return True
    return False


def _to_super(call: ast.Call) -> bool:
    called = call.func
    if not isinstance(called, ast.Attribute) or called.attr != "__init__":
        return False
    return isinstance(called.value, ast.Call | ast.Name)


def _returned(node: Function) -> Iterator[ast.expr | None]:
    """What the function's own `return`s give."""
    return (one.value for one in _own(node, ast.Return) if isinstance(one, ast.Return))


def _own(node: Function, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
    """Nodes of a kind in the function, not in functions and classes inside it."""
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, kinds):
            yield one
        if not isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            waiting += ast.iter_child_nodes(one)


def _loaded(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that loading the file gets to and that must not fail."""
    for node in body:
        yield node
        if isinstance(node, ast.If) and _last(node.test) != "TYPE_CHECKING":
            yield from _loaded([*node.body, *node.orelse])
        elif isinstance(node, ast.With | ast.For | ast.While | ast.ClassDef):
            yield from _loaded(node.body)


def is_none(node: ast.expr) -> bool:
    """Whether it is the literal None."""
    return isinstance(node, ast.Constant) and node.value is None


def _last(node: ast.expr) -> str:
    """The last part of a decorator's or a condition's name."""
    if isinstance(node, ast.Call):
        return _last(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
