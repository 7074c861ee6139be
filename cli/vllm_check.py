"""`reasonctl vllm check`: the built-in parsers against a real vLLM's own, on generated cases."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError

if TYPE_CHECKING:
    from ..parsers.bridge import Bridge
    from ..parsers.differential.check import Checked, Difference
    from ..parsers.target import Target
    from ..reports.page import Page


def check(
    vllm: Annotated[
        list[str] | None,
        typer.Option(metavar="ENGINE", help="A real vLLM; repeatable. Default: the installed ones."),
    ] = None,
    cases: Annotated[int, typer.Option(metavar="N", min=1, help="Cases a parser.")] = 200,
    seed: Annotated[int, typer.Option(metavar="S", help="Of the generated cases.")] = 0,
    parser: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Repeatable. Default: every one that vLLM registers.")
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Note what was the same in the table that `reasonctl parsers` shows.")
    ] = False,
    format_: Annotated[str, typer.Option("--format", metavar="NAME", help="text or json.")] = "text",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Hold every built-in parser against a real vLLM's own; where they differ, print the smallest input and exit 1."""
    from ..parsers.bridge import open_bridge, parse_engine
    from ..reports import formats

    if format_ not in ("text", "json"):
        raise InputError(f"{format_!r} is neither text nor json", source="--format")
    reports = []
    for spec in [parse_engine(each) for each in vllm or _installed()]:
        if not quiet:
            typer.echo(f"reasonctl: starting {spec.text}", err=True)
        with _closing(open_bridge(spec)) as bridge:
            reports.append(_one(bridge, parser or [], cases, seed, quiet=quiet))
    if not any(result.cases or result.lost for report in reports for result in report.results):
        reasons = "; ".join(f"{result.name}: {result.skipped}" for report in reports for result in report.results[:3])
        raise InputError(f"nothing could be compared ({reasons})", mend="see `reasonctl parsers`")
    if write:
        for report in reports:
            _write(report)
    if format_ == "json":
        text = json.dumps({"checks": [report.to_json() for report in reports]}, indent=1, ensure_ascii=False) + "\n"
    else:
        text = _text(reports)
    formats.to_stdout(text)
    raise typer.Exit(int(any(result.different or result.lost for report in reports for result in report.results)))


class _Report:
    """What came out against one vLLM."""

    def __init__(self, bridge: Bridge, target: Target, results: Sequence[Checked], count: int, seed: int) -> None:
        self.engine: Mapping[str, Any] = dict(bridge.described)
        self.target = target
        self.results = results
        self.count = count
        self.seed = seed

    @property
    def version(self) -> str:
        return str(self.engine["vllm_version"])

    def to_json(self) -> dict[str, Any]:
        return {
            "engine": self.engine,
            "target": str(self.target),
            "cases": self.count,
            "seed": self.seed,
            "parsers": [
                {
                    "name": result.name,
                    "cases": result.cases,
                    "different": result.different,
                    "lost": result.lost,
                    "lost_over": result.lost_over,
                    "skipped": result.skipped,
                    "smallest": None if result.smallest is None else _difference_json(result.smallest),
                }
                for result in self.results
            ],
        }


def _installed() -> list[str]:
    """Of the installed vLLMs, one of each version that the models are held identical to."""
    from ..parsers.environments import installed
    from ..parsers.target import EXACT

    found = {each.version: each.engine for each in reversed(installed()) if each.version in EXACT}
    if not found:
        raise InputError(
            "no vLLM is installed that the models follow",
            source="--vllm",
            mend=f"name one, or build one: reasonctl vllm install {EXACT[0]}",
        )
    return [found[version] for version in EXACT if version in found]


@contextmanager
def _closing(bridge: Bridge) -> Iterator[Bridge]:
    try:
        yield bridge
    finally:
        bridge.close()


def _one(bridge: Bridge, chosen: Sequence[str], count: int, seed: int, *, quiet: bool) -> _Report:
    from ..parsers.differential.check import check_name
    from ..parsers.target import Target

    target = bridge.target or Target()
    known = bridge.names()
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise InputError(
            f"vLLM {bridge.described['vllm_version']} registers no reasoning parser {unknown[0]!r}", source="--parser"
        )
    names = tuple(dict.fromkeys(chosen)) or known
    with _progress(len(names) * count, quiet=quiet) as (begin, step, end):
        results = []
        for name in names:
            begin(name)
            results.append(check_name(bridge, name, target, count=count, seed=seed, progress=step))
            end(results[-1])
    return _Report(bridge, target, results, count, seed)


@contextmanager
def _progress(
    total: int, *, quiet: bool
) -> Iterator[tuple[Callable[[str], None], Callable[[], None], Callable[[Checked], None]]]:
    """What is told of a parser's beginning, of each case and of its end: a bar on a terminal, else a line a parser."""
    if quiet:
        yield lambda name: None, lambda: None, lambda result: None
        return
    if not sys.stderr.isatty():
        yield lambda name: None, lambda: None, lambda result: typer.echo(f"reasonctl: {_brief(result)}", err=True)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description:24}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda name: bar.update(task, description=name), lambda: bar.advance(task), lambda result: None


def _brief(result: Checked) -> str:
    return f"{result.name}: {result.cases} cases, {_said(result)}"


def _said(result: Checked) -> str:
    """What became of a parser, in words."""
    if not result.cases and not result.lost:
        return f"not compared: {result.skipped}"
    parts = [f"{result.different} differ" if result.different else "the same"] if result.cases else []
    if result.lost:
        parts.append(f"{result.lost} lost: {result.lost_over}")
    if result.skipped:
        parts.append(f"the others not compared: {result.skipped}")
    return "; ".join(parts)


def _write(report: _Report) -> None:
    from ..parsers.checked import FILE, LastCheck, write_checks

    checks = {
        result.name: None if result.different or result.lost else LastCheck(report.version, result.cases, report.seed)
        for result in report.results
        if result.cases
    }
    try:
        write_checks(report.version, checks, FILE)
    except OSError as error:
        raise InputError(
            f"cannot write {FILE.name}: {error.strerror or error}",
            source="--write",
            mend="run it in a checkout of reasonctl",
        ) from error


def _text(reports: Sequence[_Report]) -> str:
    from ..reports import formats
    from ..reports.page import Page

    page = Page(width=formats.width(sys.stdout), colour=formats.colour(sys.stdout))
    for report in reports:
        _table(page, report)
        for result in report.results:
            if result.smallest is not None:
                _difference(page, report, result, result.smallest)
    _verdict(page, reports)
    return page.text()


def _table(page: Page, report: _Report) -> None:
    from rich.text import Text

    from ..reports.page import STYLE

    page.line(
        Text(f"built-in parsers against vLLM {report.version}", "bold"),
        f"   up to {report.count} cases a parser, seed {report.seed}",
    )
    if not report.target.exact:
        page.line("modelled on other versions than this one: differences are to be expected")
    page.blank()
    page.table(
        ("parser", "cases", "different", ""),
        [
            (
                Text(result.name, "bold"),
                str(result.cases),
                Text(str(result.different), STYLE["error"]) if result.different else "-",
                _said(result),
            )
            for result in report.results
        ],
        right=(1, 2),
        keep=(0, 1, 2),
    )
    page.blank()


def _verdict(page: Page, reports: Sequence[_Report]) -> None:
    from rich.text import Text

    from ..reports.page import STYLE

    results = [result for report in reports for result in report.results]
    compared = [result for result in results if result.cases]
    different = [result for result in compared if result.different]
    lost = sum(result.lost for result in results)
    total = sum(result.cases for result in compared)
    skipped = f", {len(results) - len(compared)} not compared" if len(results) > len(compared) else ""
    if different or lost:
        gone = f", {lost} results lost" if lost else ""
        page.line(Text("FAIL", STYLE["fail"]), f"  {len(different)} of {len(compared)} parsers differ{gone}{skipped}")
    else:
        page.line(Text("pass", STYLE["pass"]), f"  {len(compared)} parsers, {total} cases, no difference{skipped}")


def _difference(page: Page, report: _Report, result: Checked, found: Difference) -> None:
    from rich.text import Text

    case, vocabulary, prompt = found.case, found.vocabulary, found.case.prompt_ids
    page.line(Text(result.name, "bold"), f": {result.different} of {result.cases} cases differ; the smallest found:")
    seen = {*case.ids, *(prompt or ())}
    flags = dict(vocabulary.spec.markers)
    marked = [f"{text} {token_id} ({flags[text]})" for text, token_id in vocabulary.markers.items() if token_id in seen]
    page.fields(
        [
            ("added tokens", "  ".join(marked) or "none in it"),
            ("kwargs", _plain(case.kwargs)),
            ("the request's own", _plain(case.request_kwargs)),
            (
                "prompt",
                "unknown" if case.prompt_ids is None else _tokens(vocabulary.decode(case.prompt_ids), case.prompt_ids),
            ),
            *(
                (f"delta {number}", _tokens(text, ids))
                for stream in case.streams
                for number, (text, ids) in enumerate(stream, 1)
            ),
            *([] if case.streams else [("output", _tokens(case.text, case.ids))]),
        ]
    )
    ours, theirs = _flat(found.built_in), _flat(found.real)
    page.table(
        ("", f"vLLM {report.version}", "reasonctl"),
        [
            (label, theirs.get(label, "-"), ours.get(label, "-"))
            for label in dict.fromkeys((*theirs, *ours))
            if theirs.get(label) != ours.get(label)
        ],
    )
    page.blank()


def _tokens(text: str, ids: Sequence[int]) -> str:
    return f"{_plain(text)}  {list(ids)}"


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _flat(answer: Mapping[str, Any]) -> dict[str, str]:
    """An answer as labels and values: those about the prompt, in full, and delta by delta."""
    flat = {label: _plain(answer[key]) for key, label in _LABELS.items() if key in answer}
    flat |= {f"in full: {key}": _plain(value) for key, value in answer["full"].items()}
    for stream in answer["streams"]:
        for number, delta in enumerate(stream["deltas"], 1):
            flat[f"delta {number}"] = _message(delta)
        flat |= {f"streamed: {key}": _plain(value) for key, value in stream.items() if key != "deltas"}
    return flat


def _message(delta: Sequence[str | None] | None) -> str:
    return "nothing" if delta is None else f"reasoning {_plain(delta[0])}, content {_plain(delta[1])}"


_LABELS = {"skip_special_tokens": "skip_special_tokens", "ended": "the prompt has ended reasoning", "error": "raises"}


def _difference_json(found: Difference) -> dict[str, Any]:
    """All that is needed to run it again."""
    return {
        "tokenizer": found.vocabulary.spec.to_json(),
        "case": found.case.to_json(),
        "vllm": found.real,
        "reasonctl": found.built_in,
    }
