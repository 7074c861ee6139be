"""canitoolcall's fixtures with expected reasoning, each through the parser its family names; what comes of every one.

Run as a program it writes docs/canitoolcall.md.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reasonctl.parsers.engines import BuiltinEngine, ParserEngine
from reasonctl.parsers.feed import parse_chunkings
from reasonctl.parsers.run import ModeResult
from reasonctl.parsers.target import Target
from reasonctl.traces.context import Context, Setting
from reasonctl.traces.plan import Plan
from reasonctl.traces.read import read_traces
from reasonctl.traces.trace import Trace
from reasonctl.traces.work import Result, Work

if __package__:
    from .artefacts import gpt_oss_with_tokenizer, o200k_folder, package
else:  # run as a program
    from artefacts import gpt_oss_with_tokenizer, o200k_folder, package  # type: ignore[import-not-found,no-redef]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "canitoolcall.md"
INTRODUCTION = """\
# canitoolcall's fixtures

The package [canitoolcall](https://pypi.org/project/canitoolcall/) 0.1.1 holds 469 raw model outputs, each with the
parse that a right engine gives; {count} of them expect reasoning. `reasonctl replay` reads its files as they are and
takes the parser that the fixture's family names. This page lists what comes of each, in full and streamed: one token a
delta, three, all at once, one character, random sizes, and text six characters late. Every marker is taken to be one
token, but for gpt-oss, which goes by its own token ids. White space at both ends does not count.

vLLM 0.33.0 gives the same in every one of these runs, errors and token counts included:
`tests/real/test_canitoolcall.py` feeds it the same tokens. So where a split is another than the fixture expects, that
is vLLM's doing, or the fixture looks at more than reasoning: canitoolcall takes tool calls out of content, a reasoning
parser leaves them there.

Made by `python tests/real/canitoolcall_outcomes.py`."""
_VARIABLE = "TIKTOKEN_ENCODINGS_BASE"
CHUNKINGS = parse_chunkings("token,3,whole,char,random:7,holdback:6")


def fixtures() -> list[Trace]:
    """The fixtures with expected reasoning, as the reader gives them, in the order of their files."""
    found = []
    for path in sorted((package("canitoolcall") / "_data" / "fixtures").glob("*/*.jsonl")):
        traces = list(read_traces(str(path)))
        assert all(isinstance(one, Trace) for one in traces)
        found += [one for one in traces if isinstance(one, Trace) and one.recorded and one.recorded.reasoning]
    return found


class Contexts:
    """What stands around the fixtures: every marker one token, but for gpt-oss, whose parser goes by its own ids."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        into = Path(self._folder.name)
        self._before = os.environ.get(_VARIABLE)
        os.environ[_VARIABLE] = str(o200k_folder(into))
        self._assumed = Context(Setting())
        self._harmony = Context(Setting(model=str(gpt_oss_with_tokenizer(into))))

    def __enter__(self) -> Contexts:
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = self._before
        self._folder.cleanup()

    def of(self, parser: str) -> Context:
        return self._harmony if parser == "openai_gptoss" else self._assumed


def outcome_of(trace: Trace, contexts: Contexts, engine: ParserEngine) -> Result:
    """What an engine makes of one fixture."""
    assert trace.recorded is not None
    parser = trace.recorded.parser
    assert parser is not None
    plan = Plan(parsers=(parser,), named=(parser,), chunkings=CHUNKINGS)
    return Work(contexts.of(parser).prepare(trace), plan, engine, {parser}, parser).run(parser)


def said(result: Result) -> dict[str, Any]:
    """All that two engines have to agree on."""
    return {
        "status": result.status,
        "modes": [(mode.chunking, mode.reasoning, mode.content, mode.error) for mode in result.modes],
        "reasoning_tokens": result.reasoning_tokens,
        "checks": result.checks.as_json(),
        "unsupported": result.reason if result.status == "unsupported" else None,
    }


def told(trace: Trace, result: Result) -> str:
    """The outcome in a few words."""
    if result.status == "unsupported":
        return f"not run: {result.reason}"
    if result.status == "error":
        return f"raises {', '.join(sorted({mode.error for mode in result.modes if mode.error}))}"
    right = [str(mode.chunking or "full") for mode in result.modes if _right(trace, mode)]
    if len(right) == len(result.modes):
        return "as expected"
    if not right:
        return "another split"
    return f"as expected in {', '.join(right)}; another split in the rest"


def _right(trace: Trace, mode: ModeResult) -> bool:
    """The reasoning is the expected one, and so is content as far as it goes before the tool calls."""
    recorded = trace.recorded
    assert recorded is not None
    content = (mode.content or "").strip()
    wanted = (recorded.content or "").strip()
    same = content == wanted if not recorded.tool_calls else content.startswith(wanted) or wanted.startswith(content)
    return (mode.reasoning or "").strip() == (recorded.reasoning or "").strip() and same


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    id: str
    parser: str
    outcome: str
    failed: tuple[str, ...]


def rows(engine: ParserEngine) -> Iterator[Row]:
    """What an engine makes of every fixture."""
    with Contexts() as contexts:
        for trace in fixtures():
            result = outcome_of(trace, contexts, engine)
            yield Row(trace.id, result.parser, told(trace, result), result.checks.failed)


_KINDS = ("as expected", "in part", "another split", "raises", "not run")


def _kind(outcome: str) -> str:
    if outcome.startswith("as expected in"):
        return "in part"
    return next(kind for kind in _KINDS if outcome.startswith(kind))


def page(found: list[Row]) -> str:
    """docs/canitoolcall.md."""
    counts: dict[str, Counter[str]] = {}
    for row in found:
        counts.setdefault(row.parser, Counter())[_kind(row.outcome)] += 1
    kinds = [kind for kind in _KINDS if any(one[kind] for one in counts.values())]
    lines = [
        *INTRODUCTION.format(count=len(found)).splitlines(),
        "",
        f"| parser | fixtures | {' | '.join(kinds)} |",
        f"|---|---:|{'---:|' * len(kinds)}",
        *(
            f"| {parser} | {sum(one.values())} | {' | '.join(str(one[kind] or '') for kind in kinds)} |"
            for parser, one in sorted(counts.items())
        ),
        "",
        "| fixture | parser | outcome | checks that fail |",
        "|---|---|---|---|",
        *(f"| {row.id} | {row.parser} | {row.outcome} | {', '.join(row.failed)} |" for row in found),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(list(rows(BuiltinEngine(Target())))), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")
