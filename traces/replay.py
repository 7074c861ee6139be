"""Putting recorded traces to parsers: the facts of `replay`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ..errors import ReasonctlError
from ..parsers import ROWS, Target, Vocabulary, names, paired
from ..parsers.feed import Chunking
from ..parsers.run import TOKEN, ModeResult, Output, ParserRun, run_parser
from .context import Context, NoTextError, Prepared, Tokenizer
from .request import last_text
from .splits import (
    NO_PARSER,
    Checks,
    Status,
    call_in_reasoning,
    check,
    foreign_markers,
    matches,
    mode_json,
    without_parser,
)
from .trace import Recorded, Trace

RECORDED = Chunking("recorded")
DEFAULT_CHUNKINGS = (RECORDED, TOKEN, Chunking("tokens", 3), Chunking("whole"))
_PLAINEST = "qwen3"
_NO_CHECKS = Checks(None, None, None, None, None)
_NO_MODE = ModeResult(None, None, None, 0)


@dataclass(frozen=True)
class Plan:
    """What is run on every trace.

    Args:
        parsers: names asked for; empty: each trace's recorded parser and the serve command's, else all of the target.
        named: those given with `--parser NAME`, which findings are about.
        serve_parser: the serve command's; likewise.
        chunkings: the streams to report.
        target: the server to judge by.
    """

    parsers: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    serve_parser: str | None = None
    chunkings: tuple[Chunking, ...] = DEFAULT_CHUNKINGS
    target: Target = Target()  # noqa: RUF009  (frozen)


class Engine(Protocol):
    """Who runs parsers."""

    def run(
        self,
        name: str,
        vocabulary: Vocabulary,
        kwargs: Mapping[str, Any] | None,
        output: Output,
        *,
        chunkings: Sequence[Chunking],
        request_kwargs: Mapping[str, Any] | None = None,
    ) -> ParserRun: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Builtin:
    """The built-in models."""

    target: Target

    def run(
        self,
        name: str,
        vocabulary: Vocabulary,
        kwargs: Mapping[str, Any] | None,
        output: Output,
        *,
        chunkings: Sequence[Chunking],
        request_kwargs: Mapping[str, Any] | None = None,
    ) -> ParserRun:
        return run_parser(
            name,
            vocabulary,
            kwargs,
            output,
            chunkings=chunkings,
            request_kwargs=request_kwargs,
            target=self.target,
        )

    def close(self) -> None:
        """Nothing is open."""


def open_engine(plan: Plan) -> Engine:
    """The engine of a plan, for one process; its `close` ends what it started."""
    return Builtin(plan.target)


@dataclass(frozen=True, slots=True)
class Result:
    """One parser on one trace.

    `subject`: findings may be about it. `served`: it is what the server ran, as far as known. `crashed`: the model of
    the parser itself failed. `raw`: the text it was fed. `call_swallowed`: a tool call was filed as reasoning.
    `primary` is the run that stands for streaming, whether or not its chunking was asked for.
    """

    parser: str
    status: Status
    full: ModeResult
    stream: tuple[ModeResult, ...]
    primary: ModeResult | None
    checks: Checks
    raw: str = ""
    reasoning_tokens: int | None = None
    matches_recorded: bool | None = None
    reason: str | None = None
    subject: bool = False
    served: bool = False
    call_swallowed: bool = False
    crashed: bool = False

    @property
    def modes(self) -> tuple[ModeResult, ...]:
        return (self.full, *self.stream)


@dataclass(frozen=True, slots=True)
class TraceFacts:
    """One trace: where it stands, what was recorded of it, and what every parser made of it.

    `compared` are parsers run besides those asked for, because the one that served failed. `best` are those that
    explain the trace, `why` says what speaks for them. `raw` is the output's text as the first parser is fed it,
    `last_message` the text of the request's last message.
    """

    id: str
    path: str
    line: int
    source: str
    model: str | None
    recorded: Recorded | None
    raw: str
    tokenizer: Tokenizer
    lossy: bool
    prompt_from: str | None
    prompt: str | None
    kwargs: dict[str, Any]
    last_message: str
    results: tuple[Result, ...]
    compared: tuple[Result, ...] = ()
    best: tuple[str, ...] = ()
    why: str = ""
    notes: tuple[str, ...] = ()

    @property
    def finish_reason(self) -> str | None:
        return self.recorded.finish_reason if self.recorded is not None else None


def replay_trace(trace: Trace, context: Context, plan: Plan, engine: Engine | None = None) -> TraceFacts:
    """Put one trace to every parser of the plan. A parser that crashes costs its own result and nothing else.

    Args:
        trace: as it was read.
        context: what stands around it.
        plan: what is run.
        engine: who runs parsers; None: the built-in models.
    """
    recorded = trace.recorded
    known = (recorded.parser if recorded is not None else None, plan.serve_parser)
    servers = tuple(dict.fromkeys(name for name in known if name))
    served = servers[0] if servers else None
    subjects = {*plan.named, *servers}
    asked = plan.parsers or servers or names(plan.target)
    try:
        prepared = context.prepare(trace)
    except NoTextError as error:
        return _unread(trace, asked, subjects, str(error))
    work = _Work(prepared, plan, engine or Builtin(plan.target), subjects, served)
    results = tuple(work.run(name) for name in asked)
    judged = [result for result in results if result.served] or [result for result in results if result.subject]
    compared: tuple[Result, ...] = ()
    if judged and not any(result.status == "ok" for result in judged):
        ran = {result.parser for result in results}
        compared = tuple(work.run(name) for name in names(plan.target) if name not in ran)
    best, why = explain((*results, *compared), prepared.trace)
    return TraceFacts(
        id=trace.id,
        path=trace.path,
        line=trace.line,
        source=trace.source,
        model=trace.model,
        recorded=recorded,
        raw=next((result.raw for result in results if result.raw), "") or work.raw(None),
        tokenizer=prepared.tokenizer,
        lossy=prepared.lossy,
        prompt_from=prepared.prompt_from,
        prompt=prepared.prompt,
        kwargs=dict(prepared.kwargs),
        last_message=last_text(prepared.trace.request),
        results=results,
        compared=compared,
        best=best,
        why=why,
        notes=prepared.notes,
    )


def explain(results: Sequence[Result], trace: Trace) -> tuple[tuple[str, ...], str]:
    """The parsers that explain a trace, and why: every check passes, no family's marker is left, and then whatever sets
    some of them apart (the recorded split, a split at all, the model's own parser).
    """
    passed = [result for result in results if result.status == "ok" and result.parser != NO_PARSER]
    clean = [result for result in passed if not any(foreign_markers(mode) for mode in result.modes)]
    if not clean:
        return (
            (),
            "no parser passes every check" if not passed else "every parser that passes leaves a marker in the text",
        )
    why = "every check passes and no marker is left"
    paired_names = paired(trace.model) if trace.model else ()
    for reason, wanted in (
        ("the split is the recorded one", [r for r in clean if r.matches_recorded]),
        (f"the parser table pairs it with {trace.model}", [r for r in clean if r.parser in paired_names]),
    ):
        if wanted and len(wanted) < len(clean):
            why = f"{why}; {reason}"
        clean = wanted or clean
    # Of parsers that are equally good the plainest comes first: the engine's for bare <think> blocks.
    return tuple(sorted((result.parser for result in clean), key=lambda name: (name != _PLAINEST, name))), why


class _Work:
    """The runs on one trace."""

    def __init__(
        self, prepared: Prepared, plan: Plan, engine: Engine, subjects: Iterable[str], served: str | None
    ) -> None:
        self._prepared = prepared
        self._plan = plan
        self._engine = engine
        self._subjects = frozenset(subjects)
        self._served = served
        self._registered = frozenset(names(plan.target))
        self._raw: dict[bool | None, str] = {}
        streamed = bool(prepared.trace.deltas)
        self._primary = RECORDED if streamed else TOKEN
        self._reported = tuple(one for one in plan.chunkings if streamed or one != RECORDED)
        self._run = tuple(dict.fromkeys((*self._reported, self._primary)))

    def raw(self, skip: bool | None) -> str:
        """The text that a parser with this `skip_special_tokens` is fed."""
        if skip not in self._raw:
            self._raw[skip] = "".join(piece.text for piece in self._prepared.output.pieces(skip))
        return self._raw[skip]

    def run(self, name: str) -> Result:
        prepared = self._prepared
        if name != NO_PARSER and name not in self._registered:
            reason = f"{self._plan.target} registers no such parser"
            return self._not_run(name, "unsupported", reason)
        row = ROWS.get(name)
        raw = self.raw(row.skip_special_tokens if row is not None else None)
        try:
            run = (
                without_parser(raw, map(str, self._run))
                if name == NO_PARSER
                else self._engine.run(
                    name,
                    prepared.vocabulary,
                    prepared.kwargs,
                    prepared.output,
                    chunkings=self._run,
                    request_kwargs=prepared.request_kwargs,
                )
            )
        except ReasonctlError:
            raise
        except Exception as error:
            reason = (
                f"reasonctl's own model of the parser failed: {' '.join(f'{type(error).__name__}: {error}'.split())}"
            )
            return self._not_run(name, "error", reason, crashed=True)
        if run.unsupported is not None:
            return self._not_run(name, "unsupported", run.unsupported)
        return self._judged(run, run.text or raw)

    def _not_run(self, name: str, status: Status, reason: str, *, crashed: bool = False) -> Result:
        return Result(
            parser=name,
            status=status,
            full=_NO_MODE,
            stream=(),
            primary=None,
            checks=_NO_CHECKS,
            reason=reason,
            subject=name in self._subjects,
            served=name == self._served,
            crashed=crashed,
        )

    def _judged(self, run: ParserRun, raw: str) -> Result:
        trace = self._prepared.trace
        recorded = trace.recorded
        row = ROWS.get(run.parser)
        run = _sharing_texts(run)
        checks = check(
            run,
            primary=str(self._primary),
            raw=raw,
            finish_reason=trace.finish_reason,
            tool_called=recorded is not None and bool(recorded.tool_calls),
        )
        primary = next(mode for mode in run.stream if mode.chunking == str(self._primary))
        reported = {str(one) for one in self._reported}
        split_known = self._served is not None or (recorded is not None and recorded.has_split)
        as_recorded = primary if trace.deltas else run.full
        swallowed = any(
            call_in_reasoning(mode, row, trace.finish_reason) for mode in (run.full, *run.stream) if mode.error is None
        )
        return Result(
            parser=run.parser,
            status="error" if run.error is not None else "suspect" if checks.failed else "ok",
            full=run.full,
            stream=tuple(mode for mode in run.stream if mode.chunking in reported),
            primary=primary,
            checks=checks,
            raw=raw,
            reasoning_tokens=run.reasoning_tokens,
            matches_recorded=matches(recorded, as_recorded, row, stripped=self._prepared.lossy)
            if split_known
            else None,
            reason=run.error,
            subject=run.parser in self._subjects,
            served=run.parser == self._served,
            call_swallowed=swallowed and not (recorded is not None and recorded.tool_calls),
        )


def result_json(facts: TraceFacts, result: Result) -> dict[str, Any]:
    """One entry of `results` in the JSON report."""
    return {
        "trace": facts.id,
        "path": facts.path,
        "line": facts.line,
        "parser": result.parser,
        "status": result.status,
        "full": mode_json(result.full),
        "stream": [mode_json(mode) for mode in result.stream],
        "reasoning_tokens": result.reasoning_tokens,
        "checks": result.checks.as_json(),
        "matches_recorded": result.matches_recorded,
        "reason": result.reason,
        "lossy": facts.lossy,
        "tokenizer": facts.tokenizer,
    }


def recorded_json(facts: TraceFacts) -> dict[str, Any] | None:
    """What the server's parser returned, None where the recording shows nothing of it."""
    recorded = facts.recorded
    if recorded is None or all(result.matches_recorded is None for result in facts.results):
        return None
    return {
        "reasoning": recorded.reasoning,
        "content": recorded.content,
        "parser": recorded.parser,
        "finish_reason": recorded.finish_reason,
    }


def _sharing_texts(run: ParserRun) -> ParserRun:
    """The same results with equal texts held once: a long trace has five copies of its answer otherwise."""
    pool: dict[str, str] = {}

    def shared(mode: ModeResult) -> ModeResult:
        reasoning, content = (
            None if text is None else pool.setdefault(text, text) for text in (mode.reasoning, mode.content)
        )
        return replace(mode, reasoning=reasoning, content=content)

    return replace(run, full=shared(run.full), stream=tuple(shared(mode) for mode in run.stream))


def _unread(trace: Trace, asked: Sequence[str], subjects: set[str], reason: str) -> TraceFacts:
    results = tuple(
        Result(name, "unsupported", _NO_MODE, (), None, _NO_CHECKS, reason=reason, subject=name in subjects)
        for name in asked
    )
    return TraceFacts(
        id=trace.id,
        path=trace.path,
        line=trace.line,
        source=trace.source,
        model=trace.model,
        recorded=trace.recorded,
        raw="",
        tokenizer="assumed",
        lossy=trace.lossy,
        prompt_from=None,
        prompt=None,
        kwargs={},
        last_message="",
        results=results,
        why="it could not be read",
        notes=(reason,),
    )
