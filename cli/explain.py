"""`reasonctl explain RULE`: what a rule looks for, why it matters, and what to do instead."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.text import Text

    from ..checks.rule import Rule
    from ..reports.page import Page

_WIDTH = 96
"""Prose is read in lines no longer than this."""


def explain(
    rule: Annotated[str, typer.Argument(metavar="RULE", help="A rule's id or slug: FIT105, content-null.")],
) -> None:
    """Say what a rule looks for, why it matters, and what to do instead."""
    import sys

    from ..checks.rule import find_rule
    from ..reports import formats
    from ..reports.page import Page

    page = Page(width=min(formats.width(sys.stdout), _WIDTH), colour=formats.colour(sys.stdout))
    _show(page, find_rule(rule))
    formats.to_stdout(page.text())


def paragraphs(text: str) -> list[str]:
    """A rule's text as paragraphs, each one line: rules are written indented and wrapped, as source code is."""
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", inspect.cleandoc(text)) if part.strip()]


def _show(page: Page, rule: type[Rule]) -> None:
    from rich.text import Text

    from ..reports.page import STYLE
    from ..reports.wording import SEVERITY_WORD

    page.line(Text(f"{rule.id} {rule.slug}", "bold"), "   ", Text(SEVERITY_WORD[rule.severity], STYLE[rule.severity]))
    for title, body in (("What it does", rule.what), ("Why it matters", rule.why)):
        _section(page, title, body)
    _title(page, "Example")
    for line in inspect.cleandoc(rule.example).splitlines():
        page.line(Text(line, "cyan"), indent=4)
    _section(page, "Do instead", rule.instead)
    _section(page, "Affected versions", rule.versions)
    if rule.sources:
        _title(page, "Sources")
        for source in rule.sources:
            page.fields([("-", _prose(source))])


def _section(page: Page, title: str, body: str) -> None:
    _title(page, title)
    for index, paragraph in enumerate(paragraphs(body)):
        if index:
            page.blank()
        page.line(_prose(paragraph), indent=2)


def _title(page: Page, title: str) -> None:
    from rich.text import Text

    page.blank()
    page.line(Text(title, "bold"))


def _prose(text: str) -> Text:
    """One paragraph; what stands in backticks is coloured and keeps them, so that it reads without colour too."""
    from rich.text import Text

    parts = re.split(r"(`[^`]+`)", " ".join(text.split()))
    return Text.assemble(*(Text(part, "cyan" if part.startswith("`") else "") for part in parts))
