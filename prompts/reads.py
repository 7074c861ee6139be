"""What a chat template reads, from its Jinja syntax tree. Runs in the child process: templates may be hostile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from jinja2 import Environment, ext, meta, nodes, sandbox

NOT_KWARGS = frozenset(
    {
        "messages",
        "tools",
        "documents",
        "add_generation_prompt",
        "continue_final_message",
        *(f"{name}_token" for name in ("bos", "eos", "pad", "unk", "sep", "cls", "mask")),
        # Undefined in every rendering; templates write it for none.
        "null",
    }
)
"""Names every rendering hands to the template, or none does: no request sets them as chat-template kwargs."""

_GLOBALS = frozenset({"raise_exception", "strftime_now"})


def parse(text: str) -> nodes.Template:
    """The syntax tree, under the environment options of transformers. Raises jinja2.TemplateSyntaxError."""
    environment = sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, ext.loopcontrols]
    )
    return environment.parse(text)


def declared(tree: nodes.Template) -> frozenset[str]:
    """Every name the template leaves to the caller; vLLM (`resolve_chat_template_kwargs`) hands over no other."""
    return frozenset(meta.find_undeclared_variables(tree))


def kwargs_read(tree: nodes.Template, names: frozenset[str]) -> frozenset[str]:
    """Those of the declared `names` that are a request's to set: read before anything in the template assigns them.

    A variable that one branch sets and a later line reads (`loop_messages`) is undeclared to Jinja, yet no kwarg.
    """
    first: dict[str, str] = {}
    for name, context in _names_in_order(tree):
        first.setdefault(name, context)
    macros = {macro.name for macro in tree.find_all(nodes.Macro)}
    return frozenset(name for name in names - NOT_KWARGS - _GLOBALS - macros if first.get(name, "load") == "load")


def compared_values(tree: nodes.Template, names: Iterable[str]) -> dict[str, tuple[Any, ...]]:
    """The constants each of `names` is compared with, sorted; a bare truth test compares with true and false.

    Looks through filters (`effort | lower`), defaults, and variables that are set from the kwarg alone.
    """
    found: dict[str, list[Any]] = {name: [] for name in names}
    owner = {name: name for name in found}
    for assign in tree.find_all(nodes.Assign):
        source = _subject(assign.node, owner)
        if source is not None and isinstance(assign.target, nodes.Name):
            owner.setdefault(assign.target.name, source)

    def add(name: str, value: Any) -> None:
        if isinstance(value, str | bool | int | float) and not any(_same(value, other) for other in found[name]):
            found[name].append(value)

    for compare in tree.find_all(nodes.Compare):
        sides = [compare.expr, *(operand.expr for operand in compare.ops)]
        for side in sides:
            name = _subject(side, owner)
            if name is not None:
                for other in sides:
                    for value in _constants(other) if other is not side else ():
                        add(name, value)
    for test in _truth_tests(tree):
        name = _subject(test, owner)
        if name is not None:
            add(name, True)
            add(name, False)
    for check in tree.find_all(nodes.Test):
        name = _subject(check.node, owner)
        if name is None:
            continue
        if check.name in ("true", "false"):
            add(name, True)
            add(name, False)
        elif check.name in ("eq", "equalto", "==", "ne", "!=", "in", "sameas"):
            for argument in check.args or ():
                for value in _constants(argument):
                    add(name, value)
    return {name: tuple(sorted(values, key=_sort_key)) for name, values in found.items() if values}


def wants_parts(tree: nodes.Template) -> bool:
    """Whether a server hands message contents over as lists of parts: the template loops over a message's content.

    Source: vLLM 0.33.0, renderers/hf.py `_detect_content_format`, which tells "openai" from "string" this way.
    """
    lists = _aliases(tree, "messages")
    items = set()
    for loop in tree.find_all(nodes.For):
        if any(_reads_name(loop.iter, name) for name in lists):
            if not isinstance(loop.target, nodes.Name):
                return False
            items.add(loop.target.name)
    in_macros: dict[int, set[str]] = {}
    for macro in tree.find_all(nodes.Macro):
        handed = _content_parameters(tree, macro, items)
        for loop in macro.find_all(nodes.For):
            in_macros[id(loop)] = handed or in_macros.get(id(loop), set())
    for loop in tree.find_all(nodes.For):
        named = loop.iter.name if isinstance(loop.iter, nodes.Name) else None
        if any(_reads_key(loop.iter, name, "content") for name in items):
            return isinstance(loop.target, nodes.Name)
        if named is not None and (named in in_macros[id(loop)] if id(loop) in in_macros else named == "content"):
            return isinstance(loop.target, nodes.Name)
    return False


class _Generation(ext.Extension):
    """Lets `{% generation %}` parse: its body stands for itself."""

    tags = {"generation"}  # noqa: RUF012  (Jinja's own interface)

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)

    def parse(self, parser: Any) -> nodes.Node | list[nodes.Node]:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body).set_lineno(line)


def _names_in_order(node: nodes.Node) -> Iterator[tuple[str, str]]:
    """(name, `load` or `store`) as they come to be executed: what is read to make a value before its target."""
    if isinstance(node, nodes.Name):
        yield node.name, "load" if node.ctx == "load" else "store"
    elif isinstance(node, nodes.Assign):
        yield from _names_in_order(node.node)
        yield from _names_in_order(node.target)
    elif isinstance(node, nodes.For):
        for part in (node.iter, node.target, *([node.test] if node.test else []), *node.body, *node.else_):
            yield from _names_in_order(part)
    elif isinstance(node, nodes.CondExpr):
        for part in (node.test, node.expr1, *([node.expr2] if node.expr2 else [])):
            yield from _names_in_order(part)
    else:
        for child in node.iter_child_nodes():
            yield from _names_in_order(child)


def _subject(node: nodes.Node | None, owner: dict[str, str]) -> str | None:
    """The kwarg whose value this expression is, through filters and defaults; None for anything else."""
    if isinstance(node, nodes.Name):
        return owner.get(node.name)
    if isinstance(node, nodes.Filter):
        return _subject(node.node, owner)
    if isinstance(node, nodes.Or):
        return _subject(node.left, owner) if isinstance(node.right, nodes.Const) else None
    if isinstance(node, nodes.CondExpr):
        one, two = _subject(node.expr1, owner), _subject(node.expr2, owner)
        if one is not None and (two == one or isinstance(node.expr2, nodes.Const | None)):
            return one
        return two if two is not None and isinstance(node.expr1, nodes.Const) else None
    if isinstance(node, nodes.Call) and isinstance(node.node, nodes.Getattr) and not node.args:
        return _subject(node.node.node, owner)  # effort.lower()
    return None


def _constants(node: nodes.Node) -> Iterator[Any]:
    if isinstance(node, nodes.Const):
        # Looking for undeclared variables folds constant lists.
        yield from node.value if isinstance(node.value, list | tuple | dict) else (node.value,)
    elif isinstance(node, nodes.List | nodes.Tuple):
        for item in node.items:
            yield from _constants(item)
    elif isinstance(node, nodes.Dict):
        for pair in node.items:
            yield from _constants(pair.key)
    elif isinstance(node, nodes.Neg) and isinstance(node.node, nodes.Const):
        yield -node.node.value


def _truth_tests(tree: nodes.Template) -> Iterator[nodes.Node]:
    """Expressions whose bare truth decides a branch: operands of `if`, `and`, `or`, `not`."""

    def operands(node: nodes.Node) -> Iterator[nodes.Node]:
        if isinstance(node, nodes.And | nodes.Or):
            yield from operands(node.left)
            yield from operands(node.right)
        elif isinstance(node, nodes.Not):
            yield from operands(node.node)
        else:
            yield node

    for branch in tree.find_all(nodes.If):
        yield from operands(branch.test)
    for choice in tree.find_all(nodes.CondExpr):
        yield from operands(choice.test)
    for assign in tree.find_all(nodes.Assign):
        if isinstance(assign.node, nodes.And | nodes.Not):
            yield from operands(assign.node)
    for negation in tree.find_all(nodes.Not):
        yield from operands(negation.node)


def _same(one: Any, two: Any) -> bool:
    return type(one) is type(two) and bool(one == two)


def _sort_key(value: Any) -> tuple[str, Any]:
    return (type(value).__name__, value)


def _aliases(tree: nodes.Template, name: str) -> set[str]:
    """`name` and every variable or namespace attribute that is set from it whole, sliced or filtered."""
    known = {name}
    while True:
        new = {alias for assign in tree.find_all(nodes.Assign) for alias in _targets(assign, known)} - known
        if not new:
            return known
        known |= new


def _targets(assign: nodes.Assign, known: set[str]) -> Iterator[str]:
    def reads(node: nodes.Node) -> bool:
        return any(_reads_name(node, name) for name in known)

    target, value = assign.target, assign.node
    if isinstance(target, nodes.Name):
        if reads(value):
            yield target.name
        elif isinstance(value, nodes.Call) and isinstance(value.node, nodes.Name) and value.node.name == "namespace":
            yield from (f"{target.name}.{pair.key}" for pair in value.kwargs if reads(pair.value))
    elif isinstance(target, nodes.NSRef) and reads(value):
        yield f"{target.name}.{target.attr}"


def _reads_name(node: nodes.Node | None, name: str) -> bool:
    node = _unwrapped(node)
    if isinstance(node, nodes.Name):
        return node.ctx == "load" and node.name == name
    if isinstance(node, nodes.Getattr) and "." in name:
        base, _, attribute = name.rpartition(".")
        return node.attr == attribute and isinstance(node.node, nodes.Name) and node.node.name == base
    return False


def _reads_key(node: nodes.Node | None, name: str, key: str) -> bool:
    node = _unwrapped(node)
    if isinstance(node, nodes.Getitem):
        return isinstance(node.arg, nodes.Const) and node.arg.value == key and _is_name(node.node, name)
    return isinstance(node, nodes.Getattr) and node.attr == key and _is_name(node.node, name)


def _is_name(node: nodes.Node, name: str) -> bool:
    return isinstance(node, nodes.Name) and node.ctx == "load" and node.name == name


def _unwrapped(node: nodes.Node | None) -> nodes.Node | None:
    """Without the filters, tests and slices around it."""
    while True:
        if isinstance(node, nodes.Filter | nodes.Test) or (
            isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Slice)
        ):
            node = node.node
        else:
            return node


def _content_parameters(tree: nodes.Template, macro: nodes.Macro, items: set[str]) -> set[str]:
    """Parameters of `macro` that some call fills with a message's content."""
    parameters = [argument.name for argument in macro.args]
    handed: set[str] = set()
    for call in tree.find_all(nodes.Call):
        if isinstance(call.node, nodes.Name) and call.node.name == macro.name:
            given = list(zip(parameters, call.args, strict=False))
            given += [(pair.key, pair.value) for pair in call.kwargs if pair.key in parameters]
            handed |= {name for name, value in given if any(_reads_key(value, item, "content") for item in items)}
    return handed
