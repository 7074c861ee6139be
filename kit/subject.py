"""Which parser is put to the test, and what is known of it before it runs: a plugin's file, or a built-in name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..checks.trial import known_row, unknown_row
from ..errors import InputError
from ..parsers import ROWS, ParserRow
from ..parsers.bridge.bridge import Bridge
from ..parsers.markers import STATE_MARKERS, MarkerPair
from ..parsers.target import Target
from ..prompts.model import Model
from .bases import base_of
from .bench import BridgeBench, Description
from .setting import SWITCHES, Setting, from_model, from_plugin, from_table, spelled
from .source import ParserClass, PluginSource

_MARKER = re.compile(r"[<\[]\S{1,60}[>\]]")
_STARTS = ("start_token", "reasoning_start_str")
_ENDS = ("end_token", "reasoning_end_str")


@dataclass(frozen=True)
class Subject:
    """A parser by its name.

    Attributes:
        name: as it is registered.
        source: the plugin's file, None for a name of vLLM's own.
        told: the markers that the parser gives once it is built.
    """

    name: str
    source: PluginSource | None = None
    told: MarkerPair | None = None

    @property
    def parser_class(self) -> ParserClass | None:
        """The class of the file that is registered under the name."""
        if self.source is None:
            return None
        named = [one for one in self.source.registrations if one.name == self.name and one.class_name is not None]
        return self.source.class_named(named[0].class_name) if named else None

    @property
    def pair(self) -> MarkerPair | None:
        """The markers that the file gives as literals, or that its class inherits from one of vLLM's; else those that
        the parser gives; else two texts of the file that look like a pair.
        """
        cls = self.parser_class
        if cls is None or self.source is None:
            return None
        own, outside = self.source.lineage(cls)
        bases = [base for base in map(base_of, outside) if base is not None]
        start = _first(_literals(own, _STARTS)) or next((base.start for base in bases if base.start), None)
        end = _first(_literals(own, _ENDS)) or next((base.end for base in bases if base.end), None)
        if start and end:
            return MarkerPair(start, end)
        return self.told or _paired(self.marker_texts)

    @property
    def marker_texts(self) -> tuple[str, ...]:
        """Texts of the file that look like markers."""
        if self.source is None:
            return ()
        nodes = ast.walk(ast.parse(self.source.text))
        texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        return tuple(sorted(text for text in texts if _MARKER.fullmatch(text)))

    @property
    def reads(self) -> tuple[str, ...]:
        """The thinking switches that the file names."""
        cls = self.parser_class
        if self.source is None or cls is None or not cls.reads_kwargs:
            return ()
        text = self.source.text
        return tuple(name for name in SWITCHES if f'"{name}"' in text or f"'{name}'" in text)

    @property
    def implicit(self) -> tuple[str, ...]:
        """Tool-call openings that end a thought: those of the table's row, or that the file names."""
        row = known_row(self.name)
        if self.source is None:
            return row.implicit_ends if row is not None else ()
        known = {text for each in ROWS.values() for text in (*each.implicit_ends, *each.tool_markers)}
        return tuple(text for text in sorted(known, key=lambda text: (-len(text), text)) if text in self.source.text)

    @property
    def row(self) -> ParserRow:
        """What is known of the parser: the table's row of a built-in name, else its markers."""
        row = known_row(self.name) if self.source is None else None
        if row is not None:
            return row
        bare, pair = unknown_row(self.name), self.pair
        return bare if pair is None else replace(bare, start=(pair.start,), end=(pair.end,))

    def setting(self, model: Model | None, target: Target) -> Setting:
        """What to put the parser to the test with; its `problem` says where nothing can be.

        Args:
            model: the model it is for; None where none was given.
            target: the server to judge by.
        """
        if model is not None:
            own = self.pair
            told = own is not None and own not in STATE_MARKERS
            used = own if told and own is not None and own.end in model.prompt_text else None
            return from_model(model, self.name, self.row, pair=used, target=target, implicit=self.implicit)
        if self.source is None:
            return from_table(self.row)
        pair = self.pair
        if pair is None:
            bare = from_plugin(self.name, self.row, STATE_MARKERS[0], reads=())
            return replace(bare, problem="no markers are seen in the plugin: give --model")
        texts = self.marker_texts
        return from_plugin(self.name, self.row, pair, reads=self.reads, implicit=self.implicit, texts=texts)


def asked(subject: Subject, bridge: Bridge) -> Subject:
    """The subject, with the markers that its parser gives when it is built for a tokenizer that has all its texts."""
    if subject.source is None or subject.name not in bridge.names():
        return subject
    bench = BridgeBench(bridge, subject.name, spelled(subject.marker_texts))
    found = bench.describe()
    if not isinstance(found, Description) or not found.start or not found.end:
        return subject
    return replace(subject, told=MarkerPair(found.start, found.end))


def subject_of(source: PluginSource | None, name: str | None) -> Subject:
    """The parser that is meant.

    Args:
        source: the plugin's file, None without one.
        name: `--name`.

    Raises:
        InputError: no name is given where there is none, or more than one.
    """
    if source is None:
        if name is None:
            raise InputError("what shall be looked at?", mend="give a plugin's FILE.py, or --name of a built-in parser")
        return Subject(name)
    if name is not None:
        return Subject(name, source)
    names = dict.fromkeys(one.name for one in source.registrations if one.name is not None and one.not_run is None)
    if len({one.class_name for one in source.registrations if one.name in names}) > 1:
        listed = ", ".join(map(str, names))
        raise InputError(f"it registers {listed}", source=str(source.path), mend="say which with --name")
    return Subject(next(iter(names), source.path.stem), source)


def _paired(texts: tuple[str, ...]) -> MarkerPair | None:
    """A text and the same with a slash behind its bracket; else a pair that is known."""
    closing = {text: f"{text[0]}/{text[1:]}" for text in texts}
    made = [MarkerPair(text, closed) for text, closed in closing.items() if closed in texts]
    known = [pair for pair in STATE_MARKERS if pair.start in texts and pair.end in texts]
    return next(iter((*known, *made)), None)


def _literals(classes: tuple[ParserClass, ...], names: tuple[str, ...]) -> Iterator[str]:
    for cls in classes:
        for name in names:
            marker = cls.marker(name)
            if marker is not None and marker.text:
                yield marker.text


def _first(texts: Iterator[str]) -> str | None:
    return next(texts, None)
