"""Parsers run on one trace, each result judged by what must hold whatever the right answer is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..errors import ReasonctlError
from ..parsers import ROWS, Target
from ..parsers.engines import BuiltinEngine, ParserEngine
from ..parsers.feed import Chunking
from ..parsers.run import TOKEN, ModeResult, ParserRun
from .context import Prepared
from .plan import RECORDED, Plan
from .splits import NO_PARSER, Checks, Status, call_in_reasoning, check, matches, sound, without_parser

NO_CHECKS = Checks(None, None, None, None, None)
NO_MODE = ModeResult(None, None, None, 0)


@dataclass(frozen=True, slots=True)
class Result:
    """One parser on one trace.

    `subject`: findings may be about it. `served`: it is what the server ran, as far as known. `crashed`: the model of
    the parser itself failed. `raw`: the text it was fed. `call_swallowed`: a tool call was filed as reasoning.
    `refused`: the parser cannot even be built.
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
    refused: bool = False

    @property
    def failing(self) -> bool:
        """A check failed, the parser raised, or a tool call was filed as reasoning."""
        return self.status in ("suspect", "error") or self.call_swallowed

    @property
    def modes(self) -> tuple[ModeResult, ...]:
        return (self.full, *self.stream)

    @property
    def real_modes(self) -> tuple[ModeResult, ...]:
        """What a server runs without speculative decoding: in full, as recorded, at one token a delta."""
        token = [mode for mode in self.stream if mode.chunking == str(TOKEN) and mode != self.primary]
        return (self.full, *(() if self.primary is None else (self.primary,)), *token)


class Work:
    """The runs on one trace."""

    def __init__(
        self, prepared: Prepared, plan: Plan, engine: ParserEngine, subjects: Iterable[str], served: str | None
    ) -> None:
        self.prepared = prepared
        self._plan = plan
        self._engine = engine
        self._subjects = frozenset(subjects)
        self._served = served
        self._registered = frozenset(engine.names())
        self._raw: dict[bool | None, str] = {}
        streamed = bool(prepared.trace.deltas)
        self._primary = RECORDED if streamed else TOKEN
        self._reported = tuple(one for one in plan.chunkings if streamed or one != RECORDED)
        self._run = tuple(dict.fromkeys((*self._reported, self._primary)))

    @property
    def target(self) -> Target:
        return self._plan.target

    @property
    def chunkings(self) -> tuple[Chunking, ...]:
        return self._plan.chunkings

    @property
    def builtin(self) -> bool:
        """Parsers are run by the built-in models, so that any version can be asked."""
        return self._engine.target is None

    def on(
        self, prepared: Prepared, *, chunkings: tuple[Chunking, ...] | None = None, target: Target | None = None
    ) -> Work:
        """The same work on a changed run, in other chunkings, or with the built-in models of another version."""
        plan = replace(self._plan, chunkings=chunkings or self._plan.chunkings, target=target or self._plan.target)
        engine = self._engine if target is None else BuiltinEngine(target)
        return Work(prepared, plan, engine, self._subjects, self._served)

    def by(self, engine: ParserEngine) -> Work:
        """The same work by another engine."""
        return Work(self.prepared, self._plan, engine, self._subjects, self._served)

    def raw(self, skip: bool | None) -> str:
        """The text that a parser with this `skip_special_tokens` is fed."""
        if skip not in self._raw:
            self._raw[skip] = self.prepared.output.pieces(skip).text
        return self._raw[skip]

    def run(self, name: str) -> Result:
        """One parser's result."""
        run = self._ran(name, self._run)
        return run if isinstance(run, Result) else self._judged(run)

    def compared(self, name: str) -> Result:
        """The result of a parser that others are compared with: one that is wrong in full is not streamed as well."""
        if not self.builtin:
            return self.run(name)
        run = self._ran(name, ())
        if isinstance(run, Result):
            return run
        if sound([run.full], run.text, ROWS.get(name), self.prepared.trace.finish_reason):
            return self.run(name)
        status: Status = "error" if run.error is not None else "suspect"
        return replace(self._not_run(name, status, run.error), full=run.full, raw=run.text)

    def _ran(self, name: str, chunkings: tuple[Chunking, ...]) -> ParserRun | Result:
        """What the parser gives; the result where it could not be run."""
        prepared = self.prepared
        if self.builtin and name != NO_PARSER and name not in self._registered:
            reason = f"{self._engine.target or self._plan.target} registers no such parser"
            return self._not_run(name, "unsupported", reason)
        row = ROWS.get(name)
        raw = self.raw(row.skip_special_tokens if row is not None else None)
        if name == NO_PARSER:
            return without_parser(raw, map(str, chunkings))
        try:
            run = self._engine.run(
                name,
                prepared.vocabulary,
                prepared.kwargs,
                prepared.output,
                chunkings=chunkings,
                request_kwargs=prepared.request_kwargs,
            )
        except ReasonctlError:
            raise
        except Exception as error:
            said = " ".join(f"{type(error).__name__}: {error}".split())
            reason = f"reasonctl's own model of the parser failed: {said}"
            return self._not_run(name, "error", reason, crashed=True)
        if run.lost is not None:
            return self._not_run(name, "error", run.lost, crashed=True)
        if run.unsupported is not None:
            return self._not_run(name, "unsupported", run.unsupported)
        return replace(run, text=run.text or raw)

    def _not_run(self, name: str, status: Status, reason: str | None, *, crashed: bool = False) -> Result:
        return Result(
            parser=name,
            status=status,
            full=NO_MODE,
            stream=(),
            primary=None,
            checks=NO_CHECKS,
            reason=reason,
            subject=name in self._subjects,
            served=name == self._served,
            crashed=crashed,
        )

    def _judged(self, run: ParserRun) -> Result:
        trace = self.prepared.trace
        recorded = trace.recorded
        row = ROWS.get(run.parser)
        run = _sharing_texts(run)
        checks = check(
            run,
            primary=str(self._primary),
            raw=run.text,
            finish_reason=trace.finish_reason,
            tool_called=recorded is not None and bool(recorded.tool_calls),
        )
        primary = next(mode for mode in run.stream if mode.chunking == str(self._primary))
        reported = {str(one) for one in self._reported}
        split_known = self._served is not None or (recorded is not None and recorded.has_split)
        as_recorded = primary if trace.deltas else run.full
        stripped = self.prepared.lossy or trace.source == "canitoolcall"  # whose answers leave separators out
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
            raw=run.text,
            reasoning_tokens=run.reasoning_tokens,
            matches_recorded=matches(recorded, as_recorded, row, stripped=stripped) if split_known else None,
            reason=run.error,
            subject=run.parser in self._subjects,
            served=run.parser == self._served,
            refused=self._refused(run),
            call_swallowed=swallowed and not (recorded is not None and recorded.tool_calls),
        )

    def _refused(self, run: ParserRun) -> bool:
        if run.parser == NO_PARSER or any(mode.error is None for mode in (run.full, *run.stream)):
            return False
        prepared = self.prepared
        refusal = self._engine.refusal(run.parser, prepared.vocabulary, prepared.kwargs, prepared.request_kwargs)
        return refusal is not None


def _sharing_texts(run: ParserRun) -> ParserRun:
    """The same results with equal texts held once: a long trace has five copies of its answer otherwise."""
    pool: dict[str, str] = {}

    def shared(mode: ModeResult) -> ModeResult:
        reasoning, content = (
            None if text is None else pool.setdefault(text, text) for text in (mode.reasoning, mode.content)
        )
        return replace(mode, reasoning=reasoning, content=content)

    return replace(run, full=shared(run.full), stream=tuple(shared(mode) for mode in run.stream))
