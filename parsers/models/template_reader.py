"""Reads a message by its response template, piece by piece: where its fields begin and end, and their text between.

Models `ResponseParser` of vllm/parser/chat_parsing/response_parser.py (0.33.0; 0.32.0 differs in tool arguments alone).
Text that may be a part of a delimiter is held until it is decided, by the partial matches of the `regex` package.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

from ..base import ParserRaisedError
from .template_spec import Delimiter, Field, Template
from .template_values import check_value

if TYPE_CHECKING:
    from regex import Match


class Event(NamedTuple):
    """A field opened, brought text, or closed. `begin` and `end`: where its delimiter stands, if it has one."""

    kind: Literal["open", "text", "close"]
    field: str
    begin: int
    end: int
    text: str = ""


class Reader:
    """One message.

    Args:
        prefix: the prompt. What is left of it behind the last message's start is read first.

    Attributes:
        text: all that has been read, what is left of the prompt included.
        initial: what the prompt brought.

    Raises:
        ParserRaisedError: reading the prompt, or later `feed` and `finish`, does what vLLM's parser raises over.
    """

    def __init__(self, template: Template, prefix: str) -> None:
        self.text = ""
        self.initial: list[Event] = []
        self._template = template
        self._at = 0
        self._implicit = template.fields[template.implicit] if template.implicit is not None else None
        self._outside = [("open", field, field.open) for field in template.fields.values() if field.open is not None]
        if self._implicit is not None and self._implicit.close is not None:
            self._outside.append(("close", self._implicit, self._implicit.close))
        self._field = self._implicit
        self._is_open = False
        self._body: list[str] = []
        self._prefix_end = 0
        rest = _behind_anchor(template, prefix)
        if rest:
            self.initial = self.feed(rest)
        self._prefix_end = len(rest)

    def feed(self, text: str) -> list[Event]:
        """What this piece decides."""
        # The one reference is dropped before the text grows, so that it grows in place.
        whole, self.text = self.text, ""
        whole += text
        self.text = whole
        return list(self._read(final=False))

    def finish(self) -> list[Event]:
        """What the end of the message decides."""
        return list(self._read(final=True))

    def _read(self, *, final: bool) -> Iterator[Event]:
        while True:
            found, held = self._next(final=final)
            if found is None:
                until = len(self.text) if final else held
                yield from self._take(until)
                if final:
                    yield from self._close(until, until)
                return
            kind, field, match = found
            yield from self._take(match.start())
            was_open = self._is_open
            self._at = match.end()
            if kind == "open":
                yield from self._close(match.start(), match.start())
                self._field, self._is_open = field, True
                yield Event("open", field.name, match.start(), match.end())
            else:
                yield from self._close(match.start(), match.end())
                if not was_open and match.start() == match.end():
                    return

    def _next(self, *, final: bool) -> tuple[tuple[str, Field, Match[str]] | None, int]:
        """The next delimiter that is certain, if any, and from where on text may still be a part of one."""
        held = len(self.text)
        best: tuple[str, Field, Match[str]] | None = None
        best_key: tuple[int, int, bool, str] | None = None
        for kind, field, delimiter in self._watched():
            match = delimiter.pattern.search(self.text, self._at, partial=not final)
            if match is None:
                continue
            if not final and (match.partial or self._may_grow(delimiter, match)):
                held = min(held, match.start())
                continue
            key = (match.start(), match.start() - match.end(), kind != "open", field.name)
            if best_key is None or key < best_key:
                best_key, best = key, (kind, field, match)
        if best is not None and best[2].start() >= held:
            best = None
        return best, held

    def _watched(self) -> list[tuple[str, Field, Delimiter]]:
        """What may come now: the open field's end, or any beginning and the end of what is between."""
        field = self._field
        if field is None or field is self._implicit:
            return self._outside
        return [] if field.close is None else [("close", field, field.close)]

    def _may_grow(self, delimiter: Delimiter, match: Match[str]) -> bool:
        """Whether more text may change a whole match: only one that ends where the text ends."""
        return match.end() == len(self.text) and (match.start() == match.end() or delimiter.grows)

    def _take(self, until: int) -> Iterator[Event]:
        """The text up to there belongs to the field; outside of all fields it is nobody's."""
        begin, field = self._at, self._field
        if until <= begin:
            return
        self._at = until
        if field is None:
            return
        if not self._is_open:
            self._is_open = True
            yield Event("open", field.name, begin, begin)
        text = self.text[begin:until]
        self._body.append(text)
        # What the prompt held back is no output.
        if shown := text[max(0, self._prefix_end - begin) :]:
            yield Event("text", field.name, begin, until, shown)

    def _close(self, begin: int, end: int) -> Iterator[Event]:
        field, body = self._field, "".join(self._body)
        was_open = self._is_open
        self._field, self._is_open = self._implicit, False
        self._body.clear()
        if field is None or not was_open:
            return
        try:
            check_value(field.content, field.content_args, body)
        except Exception as error:
            raise ParserRaisedError(type(error).__name__, str(error)) from None
        yield Event("close", field.name, begin, end)


def _behind_anchor(template: Template, prefix: str) -> str:
    ends = [match.end() for match in template.anchor.pattern.finditer(prefix)]
    return prefix[ends[-1] :] if ends else prefix
