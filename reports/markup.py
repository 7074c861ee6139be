"""HTML in which no input can be anything but text: elements are built, never pasted together."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from itertools import groupby
from typing import Any

from .wording import shortened, visible

Value = str | int | float | bool | None
_VOID = frozenset({"br", "hr", "input", "link", "meta"})


class Html(str):
    """Finished HTML. Any other string is text, and is escaped where it is put into an element."""

    __slots__ = ()


Child = Html | str | int | None | Iterable["Child"]


def el(tag: str, *children: Child, **attributes: Value) -> Html:
    """An element.

    Args:
        tag: its name.
        children: finished HTML, text, or several of them; None is nothing. Text is shown through `visible`.
        attributes: `_` stands for `-`, and one at the end is dropped (`class_`). None and False leave one out, True
            gives it no value.
    """
    head = [tag]
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        key = name.removesuffix("_").replace("_", "-")
        head.append(key if value is True else f'{key}="{escape(visible(str(value)))}"')
    if tag in ("path", "rect"):  # of SVG, where an element may close itself
        return Html(f"<{' '.join(head)}/>")
    start = f"<{' '.join(head)}>"
    return Html(start) if tag in _VOID else Html(f"{start}{join(*children)}</{tag}>")


def join(*children: Child) -> Html:
    """Several children as one piece of HTML."""
    return Html("".join(_one(child) for child in children))


def exact(text: str, limit: int | None = None) -> Html:
    """Text in which an escape cannot be taken for what was written: `\\n` for a line's end looks unlike a backslash and
    an n. At most `limit` characters of it, its head and its tail.
    """
    cut = shortened(text, limit)
    if cut.isprintable():
        return Html(escape(cut))
    return join(*(el("i", part, class_="esc") if escaped else part for escaped, part in runs(cut)))


def runs(text: str) -> list[tuple[bool, str]]:
    """The text in runs of characters that are shown as they are (False) or as escapes (True)."""
    shown = ((visible(char) != char, visible(char)) for char in text)
    return [(escaped, "".join(part for _, part in run)) for escaped, run in groupby(shown, key=lambda pair: pair[0])]


def embedded(value: Any) -> Html:
    """JSON for a script element: `<` is an escape in it, so that no text can end the element."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return Html(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def table(head: Iterable[Child], rows: Iterable[Iterable[Child]], *, class_: str | None = None) -> Html:
    """A table whose rows begin with their headings. It scrolls where the page is too narrow for it."""
    body = (
        el("tr", *(el("th", cell, scope="row") if not index else el("td", cell) for index, cell in enumerate(row)))
        for row in rows
    )
    titles = el("thead", el("tr", *(el("th", title, scope="col") for title in head)))
    return el("div", el("table", titles, el("tbody", *body), class_=class_), class_="scroll")


def fields(rows: Iterable[tuple[Child, Child]], *, class_: str | None = None) -> Html | None:
    """Labels and what they say; None where there are none."""
    found = [join(el("dt", label), el("dd", said)) for label, said in rows]
    return el("dl", *found, class_=class_) if found else None


def _one(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child
    if isinstance(child, str | int):
        return escape(visible(str(child)), quote=False)
    return "".join(map(_one, child))
