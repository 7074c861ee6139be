"""What a plugin's Python file says of itself: read from its syntax tree, nothing imported and nothing run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

How = Literal["decorator", "call", "lazy", "entry-point"]
EndAnswer = Literal["none", "always-true", "always-false", "own-state", "ids", "unknown"]


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
        is_property: it is a property, a cached one included.
        is_async: `async def`, or a generator: a call does not give the answer.
    """

    name: str
    place: Place
    positional: tuple[str, ...] = ()
    required: int = 0
    keyword_only: tuple[str, ...] = ()
    star_args: bool = False
    star_kwargs: bool = False
    is_property: bool = False
    is_static: bool = False
    is_async: bool = False


@dataclass(frozen=True, slots=True)
class Registration:
    """One name under which the file (or the package's pyproject.toml) registers a class.

    `module` is the module that a lazy registration or an entry point names; None for a class of this file.
    """

    name: str
    class_name: str | None
    how: How
    place: Place
    module: str | None = None
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class SharedState:
    """A value of the class or the module that a method changes: every request of the server sees it.

    Attributes:
        name: as the file calls it.
        holder: the class that holds it, None for the module.
        method: what changes it.
        defined: where it is made.
        changed: where it is changed.
    """

    name: str
    holder: str | None
    method: str
    defined: Place
    changed: Place


@dataclass(frozen=True, slots=True)
class ParserClass:
    """A class that is, or may be, a reasoning parser.

    Attributes:
        bases: dotted names, resolved through the file's imports; a class of this file by its bare name.
        methods: its own.
        start: the text its start marker is, where it stands there as a literal.
        end: the same of its end marker.
        end_answer: what `is_reasoning_end` of its own gives back.
        end_place: where that is.
        reads_kwargs: it, or a base of this file, reads `chat_template_kwargs`.
        marker_place: where the start or end marker is given.
    """

    name: str
    place: Place
    bases: tuple[str, ...]
    methods: tuple[Method, ...] = ()
    start: str | None = None
    end: str | None = None
    end_answer: EndAnswer | None = None
    end_place: Place | None = None
    reads_kwargs: bool = False
    marker_place: Place | None = None

    def method(self, name: str) -> Method | None:
        """Its own method of this name, None where it has none."""
        return next((one for one in self.methods if one.name == name), None)


@dataclass(frozen=True, slots=True)
class PluginSource:
    """One plugin file.

    `imports` are (dotted name, place) of what the file imports when it is loaded.
    """

    path: Path
    text: str
    classes: tuple[ParserClass, ...] = ()
    registrations: tuple[Registration, ...] = ()
    shared: tuple[SharedState, ...] = ()
    imports: tuple[tuple[str, Place], ...] = field(default=())

    def class_named(self, name: str) -> ParserClass | None:
        """The class of this name, None where the file has none."""
        return next((one for one in self.classes if one.name == name), None)


def read_plugin_source(path: Path) -> PluginSource:
    """Read a plugin's Python file.

    Raises:
        InputError: the file cannot be read, or is no Python; with line and column.
    """
    raise NotImplementedError(path)
