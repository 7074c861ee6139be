"""`reasonctl rules`: every rule of this release."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError
from .explain import paragraphs

if TYPE_CHECKING:
    from ..checks.rule import Rule

FAMILIES: Mapping[str, str] = {
    "TPL": "what the chat template does",
    "FIT": "whether the parser suits template and tokenizer",
    "SRV": "the serve command",
    "BUD": "thinking budgets",
    "RPL": "recorded traces",
    "ENG": "the running engine",
    "PLG": "parser plugins",
    "INT": "the tool's own",
}


def rules(
    format_: Annotated[str, typer.Option("--format", metavar="NAME", help="text, json or markdown.")] = "text",
) -> None:
    """List every rule of this release: id, slug, severity, and when it fires."""
    from ..checks.rule import all_rules
    from ..reports import formats

    forms = {"text": _text, "json": _json, "markdown": _markdown}
    if format_ not in forms:
        raise InputError(f"{format_!r} is none of {', '.join(forms)}", source="--format")
    formats.to_stdout(forms[format_](list(all_rules().values())))


def _text(rules: list[type[Rule]]) -> str:
    import sys

    from rich.text import Text

    from ..reports import formats
    from ..reports.page import STYLE, Page
    from ..reports.wording import SEVERITY_WORD

    page = Page(width=formats.width(sys.stdout), colour=formats.colour(sys.stdout))
    for family, members in _families(rules).items():
        page.line(Text(family, "bold"), Text(f"  {FAMILIES[family]}", STYLE["dim"]))
        page.table(
            ("", "", "", ""),
            [
                (
                    rule.id,
                    Text(SEVERITY_WORD[rule.severity], STYLE[rule.severity]),
                    Text(rule.slug, "bold"),
                    _first(rule),
                )
                for rule in members
            ],
            keep=(0, 1, 2),
        )
        page.blank()
    page.line(f"{len(rules)} rules. `reasonctl explain RULE` says more about each.")
    return page.text()


def _json(rules: list[type[Rule]]) -> str:
    from ..checks.rule import rules_digest

    rows = [
        {
            "id": rule.id,
            "slug": rule.slug,
            "severity": rule.severity,
            "what": "\n\n".join(paragraphs(rule.what)),
            "why": "\n\n".join(paragraphs(rule.why)),
            "example": _verbatim(rule.example),
            "instead": "\n\n".join(paragraphs(rule.instead)),
            "versions": " ".join(rule.versions.split()),
            "sources": list(rule.sources),
        }
        for rule in rules
    ]
    return json.dumps({"rules_digest": rules_digest(), "rules": rows}, indent=1, ensure_ascii=False) + "\n"


def _markdown(rules: list[type[Rule]]) -> str:
    lines = ["# Rules", ""]
    for family, members in _families(rules).items():
        lines += [f"## {family}: {FAMILIES[family]}", "", "| id | slug | severity | fires when |", "|---|---|---|---|"]
        for rule in members:
            what = " ".join(paragraphs(rule.what)).replace("|", "\\|")
            lines.append(f"| {rule.id} | {rule.slug} | {rule.severity} | {what} |")
        lines.append("")
    return "\n".join(lines)


def _families(rules: list[type[Rule]]) -> dict[str, list[type[Rule]]]:
    grouped = {family: [rule for rule in rules if rule.id.startswith(family)] for family in FAMILIES}
    return {family: members for family, members in grouped.items() if members}


def _first(rule: type[Rule]) -> str:
    """The first sentence of what the rule does."""
    text = " ".join(paragraphs(rule.what))
    end = next(
        (i for i in range(len(text)) if text.startswith((". ", ": "), i) and text[i + 2 : i + 3].isupper()), None
    )
    return text if end is None else text[: end + 1].rstrip(":")


def _verbatim(text: str) -> str:
    import inspect

    return inspect.cleandoc(text)
