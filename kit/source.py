"""What a plugin's Python file says of itself: read from its syntax tree, nothing imported and nothing run."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..errors import InputError

How = Literal["decorator", "call", "lazy"]
EndAnswer = Literal["none", "always-true", "always-false", "own-state", "ids"]


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A place in the plugin's file; both count from 1, the column in characters."""

    line: int = 1
    column: int = 1


@dataclass(frozen=True, slots=True)
class Method:
    """One function of a class body.

    Attributes:
        positional: names of the parameters a caller can give by place, `self` left out.
        required: how many of them have no default.
        keyword_only: names behind the `*` that have no default.
        star_args: there is a `*args`.
        star_kwargs: there is a `**kwargs`.
        keywords: names of all parameters that a caller can give by name.
        is_property: it is a property, a cached one included.
        is_async: `async def`, or a generator: a call does not give the answer.
        answers: some `return` of it has a value other than None, or its body raises, so that it has an answer of its
            own.
    """

    name: str
    place: Place
    positional: tuple[str, ...] = ()
    required: int = 0
    keyword_only: tuple[str, ...] = ()
    star_args: bool = False
    star_kwargs: bool = False
    keywords: frozenset[str] = frozenset()
    is_property: bool = False
    is_async: bool = False
    answers: bool = True


@dataclass(frozen=True, slots=True)
class Marker:
    """A start or end marker as a class gives it. `text` is None where it is no literal, `given` false for None."""

    place: Place
    text: str | None = None
    given: bool = True


@dataclass(frozen=True, slots=True)
class Registration:
    """A name under which the file registers a class, or means to.

    Attributes:
        name: the name; None where it is no literal.
        class_name: the class; None where it is none of this file.
        how: in which of vLLM's ways.
        place: where.
        module: the module that a lazy registration names.
        entry_point: of the package's pyproject.toml, that runs it (`group: name`).
        not_run: why loading the file does not get there; None where it does.
        wrong_registry: the manager of another kind of parser that it goes to.
    """

    name: str | None
    class_name: str | None
    how: How
    place: Place
    module: str | None = None
    entry_point: str | None = None
    not_run: str | None = None
    wrong_registry: str | None = None


@dataclass(frozen=True, slots=True)
class SharedState:
    """A value of the class, the module or a default that a function changes: every request of the server sees it.

    Attributes:
        name: as the file calls it.
        holder: the class that holds it; None for the module.
        where: the function that changes it.
        defined: where it is made.
        changed: where it is changed.
        by_key: all that is ever done is to set a key of a mapping, as a cache does.
    """

    name: str
    holder: str | None
    where: str
    defined: Place
    changed: Place
    by_key: bool = False


@dataclass(frozen=True, slots=True)
class ParserClass:
    """A class of the file.

    Attributes:
        bases: dotted names, resolved through the file's imports; a class of this file by its bare name.
        methods: its own.
        attributes: other names that its body sets.
        markers: what it says of `start_token`, `end_token`, `reasoning_start_str` and `reasoning_end_str`.
        end_answer: what its own `is_reasoning_end` goes by; None where it has none.
        end_place: where that is.
        reads_kwargs: it, or what it uses of this file, reads `chat_template_kwargs` or hands all kwargs on.
    """

    name: str
    place: Place
    bases: tuple[str, ...]
    methods: tuple[Method, ...] = ()
    attributes: frozenset[str] = frozenset()
    markers: tuple[tuple[str, Marker], ...] = ()
    end_answer: EndAnswer | None = None
    end_place: Place | None = None
    reads_kwargs: bool = False

    def method(self, name: str) -> Method | None:
        """Its own method of this name, None where it has none."""
        return next((one for one in self.methods if one.name == name), None)

    def marker(self, name: str) -> Marker | None:
        """What it says itself of this marker, None where it says nothing."""
        return next((marker for known, marker in self.markers if known == name), None)

    def has(self, name: str) -> bool:
        """Whether its body defines the name, as a method or otherwise."""
        return name in self.attributes or self.method(name) is not None


@dataclass(frozen=True, slots=True)
class Import:
    """A name that loading the file imports: `name` of `module`, or the module itself (None)."""

    module: str
    name: str | None
    place: Place


@dataclass(frozen=True, slots=True)
class PluginSource:
    """One plugin file: its classes, what it registers, what its requests share, and what loading it imports."""

    path: Path
    text: str
    classes: tuple[ParserClass, ...] = ()
    registrations: tuple[Registration, ...] = ()
    shared: tuple[SharedState, ...] = ()
    imports: tuple[Import, ...] = ()

    def class_named(self, name: str | None) -> ParserClass | None:
        """The class of this name, None where the file has none."""
        return next((one for one in self.classes if one.name == name), None)

    def lineage(self, cls: ParserClass) -> tuple[tuple[ParserClass, ...], tuple[str, ...]]:
        """A class and its bases of this file, nearest first, and the dotted names of those from elsewhere."""
        known: dict[str, ParserClass] = {}
        outside: dict[str, None] = {}
        waiting = [cls]
        while waiting:
            one = waiting.pop(0)
            if one.name in known:
                continue
            known[one.name] = one
            for base in one.bases:
                found = self.class_named(base)
                if found is not None:
                    waiting.append(found)
                else:
                    outside.setdefault(base)
        return tuple(known.values()), tuple(outside)


def read_plugin_source(path: Path) -> PluginSource:
    """Read a plugin's Python file.

    Raises:
        InputError: the file cannot be read, or is no Python; with line and column.
    """
    from ..parsers.bridge.plugin import read_plugin
    from .registrations import registrations
    from .shared import shared_state
    from .syntax import Names, parser_classes

    text = read_plugin(path).text
    tree = _parsed(text, path)
    names = Names(tree)
    classes = parser_classes(tree, names)
    return PluginSource(
        path=path,
        text=text,
        classes=classes,
        registrations=registrations(tree, names, path),
        shared=shared_state(tree),
        imports=names.imported,
    )


def _parsed(text: str, path: Path) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError as error:
        line, column = error.lineno or 1, max(1, error.offset or 1)
        raise InputError(
            f"this is no Python: {error.msg}", source=str(path), line=line, column=column, mend="mend that line"
        ) from None
    except (ValueError, RecursionError, MemoryError) as error:
        reason = str(error) or "it is nested too deeply"
        raise InputError(f"this is no Python: {reason}", source=str(path), mend="give the plugin's file") from None
