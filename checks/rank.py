"""Puts the candidates in order, and says which parser to use."""

from __future__ import annotations

from collections.abc import Sequence

from .. import versions
from ..parsers.target import Target
from ..prompts.survey import PromptState
from .thinking import Thinking, thinks
from .trial import Candidate


def ranked(
    candidates: Sequence[Candidate], named: Sequence[str], template: str, *, rewritten: bool = False
) -> tuple[Candidate, ...]:
    """The candidates, best first.

    Those that pass stand before those that fail, and these before those that could not be run. Among equals: what the
    table names for this architecture, what stress probes show least against, what speaks this template's dialect.

    Args:
        candidates: what each parser did.
        named: parsers whose rows name this architecture, best match first.
        template: the template's text, in which a parser's turn and tool tokens are looked for.
        rewritten: the target is older than the engine that some parsers were rewritten on: how those behaved there is
            not what their probes show, so parsers that are what they were stand before them.
    """
    order = ("pass", "fail", "unsupported")

    def key(candidate: Candidate) -> tuple[object, ...]:
        place = named.index(candidate.name) if candidate.name in named else len(named)
        failed = candidate.failed / max(1, candidate.failed + candidate.passed)
        stress = _stress_faults(candidate)
        return (
            order.index(candidate.fit),
            failed,
            place,
            rewritten and candidate.row.family == "engine",
            stress,
            candidate.elsewhere,
            candidate.row.family != "engine",
            _foreign(candidate, template),
            candidate.name,
        )

    return tuple(sorted(candidates, key=key))


def recommended(
    candidates: Sequence[Candidate], named: Sequence[str], thinking: Thinking, *, rewritten: bool = False
) -> str | None:
    """The parser the table names for this architecture if it passes, else the best that passes.

    None where no parser passes, where the template shows no markers to try one with, or where the model does not think.
    Where the target is older than the engine (`rewritten`, as in `ranked`), a parser of the engine is recommended for
    the models it is named for alone: what it made of others there, no probe shows.
    """
    if not thinks(thinking) or thinking.start is None:
        return None
    known = [each for each in candidates if not (rewritten and each.row.family == "engine") or each.name in named]
    passing = [candidate.name for candidate in known if candidate.fit == "pass"]
    by_table = [name for name in named if name in passing]
    return next(iter((*by_table, *passing)), None)


def refuted(candidate: Candidate, target: Target, plain: PromptState | None) -> str | None:
    """Why a parser does not fit in a release that is not modelled, as far as vLLM's history tells; else None."""
    if plain is None or plain.state != "open" or target.product != "vllm":
        return None
    fact = f"{candidate.name}-needs-both-markers"
    rows = [row for row in versions.rows("fact", fact) if row.holds(target.version)]
    return f"needs the start marker in the output up to vLLM {_before(rows[0])}" if rows else None


def _before(row: versions.Row) -> str:
    """The last release, or minor release, in which it holds."""
    major, minor, patch = row.until or versions.NEWEST
    if row.until is None:
        return versions.shown((major, minor, 0))
    return f"{major}.{minor}.{patch - 1}" if patch else f"{major}.{minor - 1}"


def _stress_faults(candidate: Candidate) -> int:
    """How many stress probes went wrong; a split that streaming makes otherwise counts twice."""
    faults = sum(not trial.passed for trial in (*candidate.stress, *candidate.hidden))
    faults += sum(trial.modes_differ for trial in candidate.stress)
    return faults + sum(
        trial.run is not None and trial.run.reasoning_tokens == 0 and trial.cell.state == "open"
        for trial in candidate.deciding
        if trial.passed
    )


def _foreign(candidate: Candidate, template: str) -> tuple[int, int, int]:
    """How far the parser's own dialect is from the template's: unknown turn tokens, unread switches, rarer rows."""
    row = candidate.row
    turns = sum(token not in template for token in row.turn_boundaries) or (0 if row.turn_boundaries else 1)
    tools = sum(token not in template for token in row.implicit_ends)
    switches = sum(kwarg.name not in template for kwarg in row.kwargs)
    return (turns + tools + switches, -len(row.architectures), len(row.quirks))
