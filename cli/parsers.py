"""`reasonctl parsers`: what vLLM's reasoning parsers do, all in one table or one in full."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError

if TYPE_CHECKING:
    from rich.text import Text

    from ..parsers import ParserRow
    from ..parsers.checked import LastCheck
    from ..parsers.target import Target
    from ..reports.page import Page


def parsers(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="One parser, in full.")] = None,
    target: Annotated[
        str, typer.Option(metavar="SERVER", help="Which server's parsers: vllm, vllm==0.32.0, slimserve.")
    ] = "vllm",
    format_: Annotated[str, typer.Option("--format", metavar="NAME", help="text or json.")] = "text",
) -> None:
    """List the reasoning parsers a server registers, or say everything about one of them."""
    import sys

    from .. import parsers as table
    from ..parsers.checked import last_checks
    from ..parsers.target import parse_target
    from ..reports import formats

    if format_ not in ("text", "json"):
        raise InputError(f"{format_!r} is neither text nor json", source="--format")
    server = parse_target(target)
    rows = [table.row(each, server) for each in ([name] if name is not None else table.names(server))]
    if format_ == "json":
        plain = [
            dataclasses.asdict(row) | {"checked": [dataclasses.asdict(check) for check in last_checks(row.name)]}
            for row in rows
        ]
        data = plain[0] if name is not None else {"target": str(server), "parsers": plain}
        formats.to_stdout(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
        return
    from ..reports.page import Page

    page = Page(width=formats.width(sys.stdout), colour=formats.colour(sys.stdout))
    if name is not None:
        _one(page, rows[0])
    else:
        _all(page, rows, server)
    formats.to_stdout(page.text())


def _all(page: Page, rows: Sequence[ParserRow], server: Target) -> None:
    from rich.text import Text

    from ..parsers.checked import last_checks

    checks = {row.name: {check.version: check.cases for check in last_checks(row.name)} for row in rows}
    versions = list(dict.fromkeys(version for each in checks.values() for version in each))
    page.line(Text(f"{len(rows)} reasoning parsers of {server}", "bold"))
    page.blank()
    page.table(
        ("name", "since", "start and end marker", "switch and its default", *versions),
        [
            (
                Text.assemble(Text(row.name, "bold"), "" if row.modelled else " *"),
                row.since,
                "  ".join(filter(None, (_few(row.start), _few(row.end)))) or "-",
                _switches(row),
                *(str(checks[row.name].get(version, "-")) for version in versions),
            )
            for row in rows
        ],
        keep=(0, 1),
        right=range(4, 4 + len(versions)),
    )
    page.blank()
    if not all(row.modelled for row in rows):
        page.line("* no built-in model yet")
    if versions:
        page.line(
            f"{', '.join(versions)}: on how many cases that vLLM's own parser gave the same (`reasonctl vllm check`)"
        )
    page.line("`reasonctl parsers NAME` says everything about one.")


def _switches(row: ParserRow) -> str:
    """The kwargs that switch the parser, those with one default together: `thinking, enable_thinking: off`."""
    by_default: dict[str, list[str]] = {}
    for kwarg in row.kwargs:
        if kwarg.switches_thinking:
            by_default.setdefault(kwarg.default, []).append(kwarg.name)
    return "; ".join(f"{', '.join(names)}: {default}" for default, names in by_default.items()) or "-"


def _few(texts: Sequence[str]) -> str:
    return (texts[0] + (f" +{len(texts) - 1}" if len(texts) > 1 else "")) if texts else ""


def _one(page: Page, row: ParserRow) -> None:
    from rich.text import Text

    page.line(Text(row.name, "bold"), f"   {row.family}, since vLLM {row.since}")
    page.fields(_details(row))


def _details(row: ParserRow) -> Iterator[tuple[str, str | Text]]:
    """Everything the row knows, in words; what it does not have is left out."""
    from ..parsers.checked import last_checks
    from ..parsers.versions import history

    yield "start markers", _list(row.start) or "none"
    yield "end markers", _list(row.end) or "none"
    for kwarg in row.kwargs:
        label = "switch" if kwarg.switches_thinking else "reads too"
        yield label, f"{kwarg.name}, {kwarg.default} by default: {kwarg.meaning}"
    if not row.kwargs:
        yield "switch", "none: no kwarg is read"
    yield "cut before the end", row.truncation
    yield "needs start in output", _yes(row.needs_start_in_output)
    yield "also ended by", _list(row.implicit_ends) or "nothing else"
    yield "tool calls open with", _list(row.tool_markers) or "nothing of its own"
    yield "reads the prompt", _prompt(row)
    yield "prompt has ended it", row.prompt_rule
    if row.turn_boundaries:
        yield "turn boundaries", _list(row.turn_boundaries)
    yield "grammars bind", row.gates_grammar
    yield "demands of vocabulary", _list(row.demanded_tokens) or "nothing"
    skip = {None: "left as the request says", True: "set to true", False: "set to false"}[row.skip_special_tokens]
    yield "skip_special_tokens", skip
    if row.stripped:
        yield "takes away", _list(row.stripped)
    if row.added:
        yield "adds", _list(row.added)
    yield "counts tokens of", row.counting
    yield "any delta size alike", _yes(row.chunk_invariant)
    yield "paired with", ", ".join(row.architectures) or "no model by documentation or recipes"
    yield "built-in model", "yes" if row.modelled else "not yet"
    yield "checked with", "; ".join(map(_checked, last_checks(row.name))) or "no real vLLM yet"
    for quirk in (*row.quirks, *history(row.name)):
        yield "note", quirk
    for source in row.sources:
        yield "source", source


def _checked(check: LastCheck) -> str:
    return f"vLLM {check.version}: the same on {check.cases} cases (seed {check.seed})"


def _list(texts: Sequence[str]) -> str:
    return "  ".join(texts)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _prompt(row: ParserRow) -> str:
    modes = ["streaming"] if row.reads_prompt_stream else []
    modes += ["whole output from 0.33 on"] if row.reads_prompt_full else []
    return ", ".join(modes) or "in neither mode"
