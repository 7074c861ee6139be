"""A page of terminal text: rich's tables and colours, without markup, so that no input can style or break it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from typing import Any, Literal

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from .paste import STAND_IN, Advice, runs, unbroken
from .wording import quoted, visible

STYLE: Mapping[str, str] = {
    "error": "bold red",
    "warning": "yellow",
    "info": "cyan",
    "pass": "bold green",
    "fail": "bold red",
    "incomplete": "bold yellow",
    "reasoning": "magenta",
    "content": "green",
    "dim": "dim",
    "label": "dim",
    "head": "bold",
}
"""Styles by meaning. Every one of them is also told in words."""
_ROOMY = 80
"""Columns from which on a table may keep columns unwrapped."""

Cell = str | Text


class Page:
    """Collects lines for a terminal of `width` columns. Plain strings are escaped by `visible`; Text comes styled."""

    def __init__(self, *, width: int, colour: bool, verbose: bool = False) -> None:
        self.width = width
        self.colour = colour
        self.verbose = verbose
        self.limit = 4000 if verbose else 160
        """Characters of one quoted text that are shown."""
        self._out = StringIO()
        self._console = Console(
            file=self._out,
            width=width,
            force_terminal=colour,
            color_system="standard" if colour else None,
            no_color=not colour,
            legacy_windows=False,
            markup=False,
            emoji=False,
            highlight=False,
        )

    def line(self, *parts: Cell, indent: int = 0, wrap: bool = True) -> None:
        """One paragraph, wrapped at words; without `wrap` one line, however long."""
        text = Text.assemble(*map(styled, parts))
        if wrap:
            self._print(text, indent)
        else:
            self._console.print(Text.assemble(" " * indent, text), soft_wrap=True)

    def blank(self) -> None:
        self._console.print()

    def fields(self, rows: Iterable[tuple[str, Cell]], *, indent: int = 2) -> None:
        """Label and text pairs, the texts aligned and wrapped in their own column.

        What an `Advice` has to paste is on a line of its own, unfolded, where it is wider than that column.
        """
        pairs = [(styled(label, "label"), text) for label, text in rows]
        labels = max((label.cell_len for label, _ in pairs), default=0)
        column = self.width - indent - labels - 2
        grid = self._grid(labels)
        for label, text in pairs:
            if not isinstance(text, Advice):
                grid.add_row(label, styled(text))
                continue
            for number, (stretch, wide) in enumerate(runs(unbroken(text), column)):
                if wide:
                    if not number:
                        grid.add_row(label, "")
                    if grid.row_count:
                        self._print(grid, indent)
                    grid = self._grid(labels)
                    self.line(Text(stretch), indent=indent + 2, wrap=False)
                else:
                    grid.add_row(Text("") if number else label, Text(stretch))
        if grid.row_count:
            self._print(grid, indent)

    @staticmethod
    def _grid(labels: int) -> Table:
        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True, min_width=labels)
        grid.add_column(overflow="fold")
        return grid

    def table(
        self,
        head: Sequence[str],
        rows: Iterable[Sequence[Cell]],
        *,
        indent: int = 2,
        right: Sequence[int] = (),
        keep: Sequence[int] = (),
        firm: bool = False,
    ) -> None:
        """A table without lines. `right` are the columns to align at the right, `keep` those not to wrap.

        `firm`: they are kept on a narrow page too, since the others have room enough.
        """
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style=STYLE["dim"], show_header=any(head))
        for index, title in enumerate(head):
            justify: Literal["left", "right"] = "right" if index in right else "left"
            roomy = index in keep and (firm or self.width >= _ROOMY)
            table.add_column(Text(title), justify=justify, overflow="fold", no_wrap=roomy)
        for row in rows:
            table.add_row(*map(styled, row))
        if table.row_count:
            self._print(table, indent)

    def text(self) -> str:
        """Everything so far. Without colour, no line ends in blanks."""
        raw = self._out.getvalue().replace(STAND_IN, " ")
        return raw if self.colour else "\n".join(line.rstrip() for line in raw.split("\n"))

    def _print(self, what: Any, indent: int) -> None:
        self._console.print(Padding(what, (0, 0, 0, indent)) if indent else what)


def styled(part: Cell, style: str = "") -> Text:
    """A Text; a plain string is escaped first."""
    return part if isinstance(part, Text) else Text(visible(part), STYLE.get(style, style))


def split_text(split: Mapping[str, Any], limit: int) -> Text:
    """`reasoning "..."  content "..."`, each in its colour; an error in place of both where the parser raised."""
    if split.get("error"):
        return styled(f"raised {split['error']}", "error")
    parts = []
    for field in ("reasoning", "content"):
        if field in split:
            parts.append(Text.assemble(styled(f"{field} ", "label"), styled_quote(split[field], field, limit)))
    return Text("\n").join(parts)


def styled_quote(text: str | None, style: str, limit: int) -> Text:
    return Text("null", STYLE["dim"]) if text is None else Text(quoted(text, limit), STYLE[style])
