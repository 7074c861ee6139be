"""`reasonctl explain RULE`: what a rule looks for, why it matters, what to do instead, and how it was seen to fire."""

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
    """Say what a rule looks for, why it matters, what to do instead, and how it was reproduced."""
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

    from ..checks.about import command_here, names_of_tests
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
    _releases(page, rule)
    if rule.sources:
        _title(page, "Sources")
        for source in rule.sources:
            page.fields([("-", _prose(source))])
    _title(page, "How it was reproduced")
    if (command := command_here(rule)) is not None:
        page.line(Text(f"$ {command}", "cyan"), indent=4)
    page.line(Text(f'$ python -m pytest tests -k "{names_of_tests(rule)}"', "cyan"), indent=4)


def _releases(page: Page, rule: type[Rule]) -> None:
    """The rows of the version table that the rule asks; of a kind that it asks as a whole, how many there are."""
    from ..checks.about import KINDS, rows_of, whole_kinds

    rows = rows_of(rule)
    whole = whole_kinds(rule)
    named: list[tuple[str, Text]] = []
    for row in rows:
        if row.kind not in whole:
            named += [(row.range_text, _prose(row.text or f"{row.kind} {row.name}")), ("", _prose(row.source))]
    page.fields(named, indent=4)
    for kind in whole:
        count = len({row.name for row in rows if row.kind == kind})
        page.line(f"{count} {KINDS[kind]}, each with its releases: reasonctl rules --format json", indent=4)


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
