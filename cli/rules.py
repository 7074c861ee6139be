"""`reasonctl rules`: every rule of this release."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping
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
    from ..checks.about import command_of, names_of_tests, rows_of
    from ..checks.rule import rules_digest
    from ..versions import shown

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
            "facts": [
                {
                    "kind": row.kind,
                    "name": row.name,
                    "since": shown(row.since) or None,
                    "until": shown(row.until) or None,
                    "source": row.source,
                    "text": row.text,
                }
                for row in rows_of(rule)
            ],
            "sources": list(rule.sources),
            "reproduced": {"command": command_of(rule), "tests": names_of_tests(rule)},
        }
        for rule in rules
    ]
    return json.dumps({"rules_digest": rules_digest(), "rules": rows}, indent=1, ensure_ascii=False) + "\n"


def _markdown(rules: list[type[Rule]]) -> str:
    """Everything as one document; `docs/rules/` holds the same, a page for each family."""
    from ..checks.rule import rules_digest

    grouped = _families(rules)
    lines = ["# Rules", "", f"{len(rules)} rules, digest `{rules_digest()}`.", ""]
    for family, members in grouped.items():
        lines += [f"## {family}: {FAMILIES[family]}", "", *_overview(members, lambda rule: f"#{rule.id.lower()}"), ""]
    for members in grouped.values():
        for rule in members:
            lines += [*_page(rule, "###"), ""]
    return "\n".join(lines)


def family_pages() -> Mapping[str, str]:
    """The pages of `docs/rules/` by file name: an index, and each family's rules in full."""
    from ..checks.rule import all_rules, rules_digest

    rules = list(all_rules().values())
    grouped = _families(rules)
    index = ["# Rules", "", _MADE, "", f"{len(rules)} rules, digest `{rules_digest()}`.", ""]
    pages = {}
    for family, members in grouped.items():
        name = f"{family.lower()}.md"
        link = functools.partial(_link, name)
        index += [f"## [{family}]({name}): {FAMILIES[family]}", "", *_overview(members, link), ""]
        body = [line for rule in members for line in (*_page(rule, "##"), "")]
        pages[name] = "\n".join([f"# {family}: {FAMILIES[family]}", "", _MADE, "", *body])
    return {"README.md": "\n".join(index), **pages}


_MADE = "Made from the rules' own texts by `python tests/readme.py --write`; `reasonctl explain RULE` prints the same."


def _link(page: str, rule: type[Rule]) -> str:
    return f"{page}#{rule.id.lower()}"


def _overview(members: list[type[Rule]], link: Callable[[type[Rule]], str]) -> list[str]:
    lines = ["| id | slug | severity | fires when |", "|---|---|---|---|"]
    for rule in members:
        what = " ".join(_prose(rule.what)).replace("|", "\\|")
        lines.append(f"| [{rule.id}]({link(rule)}) | {rule.slug} | {rule.severity} | {what} |")
    return lines


def _page(rule: type[Rule], level: str) -> list[str]:
    """One rule in full. Its id stands above its heading as an anchor, so that a link outlives the slug's wording."""
    from ..checks.about import KINDS, command_of, names_of_tests, rows_of, whole_kinds

    whole = whole_kinds(rule)
    rows = [row for row in rows_of(rule) if row.kind not in whole]
    counts = {kind: len({row.name for row in rows_of(rule) if row.kind == kind}) for kind in whole}
    command = command_of(rule)
    lines = [f'<a id="{rule.id.lower()}"></a>', "", f"{level} {rule.id} {rule.slug}", "", f"Severity: {rule.severity}."]
    for title, text in (("What it does", rule.what), ("Why it matters", rule.why)):
        lines += ["", f"**{title}.** " + "\n\n".join(_prose(text))]
    lines += ["", "**Example**", "", "```", *_verbatim(rule.example).splitlines(), "```"]
    lines += ["", "**Do instead.** " + "\n\n".join(_prose(rule.instead))]
    lines += ["", f"**Affected versions.** {' '.join(_prose(rule.versions))}"]
    if rows:
        lines += ["", "| releases | what holds in them | read from |", "|---|---|---|"]
        lines += [
            "| " + " | ".join(" ".join(_prose(cell)).replace("|", "\\|") for cell in cells) + " |"
            for cells in ((row.range_text, row.text or f"{row.kind} {row.name}", row.source) for row in rows)
        ]
    for kind, count in counts.items():
        lines += ["", f"It asks for any of {count} {KINDS[kind]}, each with its releases (`versions.tsv`)."]
    if rule.sources:
        lines += ["", "**Sources**", "", *(f"- {' '.join(_prose(source))}" for source in rule.sources)]
    lines += ["", "**How it was reproduced**", "", "```"]
    lines += [f"$ {command}"] if command is not None else []
    return [*lines, f'$ python -m pytest tests -k "{names_of_tests(rule)}"', "```"]


def _prose(text: str) -> list[str]:
    """Paragraphs for Markdown: a marker such as `<think>` that stands in plain words is text, and no HTML."""
    return [re.sub(r"(`[^`]*`)|<", lambda found: found[1] or "&lt;", part) for part in paragraphs(text)]


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
