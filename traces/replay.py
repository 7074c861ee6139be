"""Putting recorded traces to parsers: the facts of `replay`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..parsers.engines import BuiltinEngine
from ..prompts.state import State
from .comparison import Comparison, compare
from .context import Context, NoTextError, Tokenizer
from .explain import explain
from .plan import DEFAULT_CHUNKINGS, RECORDED, Engines, Plan, open_engines
from .request import last_text
from .splits import mode_json
from .strip import Strip, strip_of
from .thinking import Thought, read_thought, thinks_again
from .trace import Recorded, Trace
from .upgrade import Other, others
from .whatif import WhatIf, state_of, what_ifs
from .work import NO_CHECKS, NO_MODE, Result, Work

__all__ = [
    "DEFAULT_CHUNKINGS",
    "RECORDED",
    "Engines",
    "Plan",
    "Result",
    "TraceFacts",
    "open_engines",
    "recorded_json",
    "replay_trace",
    "result_json",
]

_FREE_TEXT = frozenset({"messages", "input", "prompt", "tools", "functions", "response_format", "system", "metadata"})


@dataclass(frozen=True, slots=True)
class TraceFacts:
    """One trace: where it stands, what was recorded of it, and what every parser made of it.

    `compared` are parsers run besides those asked for, because the one that served failed. `best` are those that
    explain the trace, `why` says what speaks for them, `shown` that the trace itself points to them, `fragile` that
    they are right but in larger deltas. `raw` is the output's text as the first parser is fed it, `last_message` the
    text of the request's last message, `request` its body without what is free text in it. `state` is the prompt's,
    `template_at` the template's file and the line that leaves that state, `thoughtless` that it knows nothing of
    thinking. `what_ifs` are, by parser, the changes that were tried on a failing one; `comparison` sets it beside
    parsers that do better. `thought` is counted where a rule may need it: a budget, a run cut by its length, a block
    that opens again. `others` are what further vLLMs make of the trace, `version` the one that made `results`.
    `broken`: why the recording is not whole, `entry` which one it is of several in a file. `strip` is the drawing,
    where the plan asks for it.
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
    shown: bool = True
    fragile: bool = False
    notes: tuple[str, ...] = ()
    request: Mapping[str, Any] = field(default_factory=dict)
    state: State | None = None
    template_at: tuple[str, int] | None = None
    thoughtless: bool = False
    what_ifs: Mapping[str, tuple[WhatIf, ...]] = field(default_factory=dict)
    comparison: Comparison | None = None
    thought: Thought | None = None
    version: str = ""
    others: tuple[Other, ...] = ()
    deltas: int = 0
    streamed: bool = False
    api: str = "chat"
    broken: str | None = None
    entry: str | None = None
    strip: Strip | None = None

    @property
    def finish_reason(self) -> str | None:
        return self.recorded.finish_reason if self.recorded is not None else None


def replay_trace(trace: Trace, context: Context, plan: Plan, engines: Engines | None = None) -> TraceFacts:
    """Put one trace to every parser of the plan. A parser that crashes costs its own result and nothing else.

    Args:
        trace: as it was read.
        context: what stands around it.
        plan: what is run.
        engines: who runs parsers; None: the built-in models.
    """
    recorded = trace.recorded
    known = (recorded.parser if recorded is not None else None, plan.serve_parser)
    servers = tuple(dict.fromkeys(name for name in known if name))
    served = servers[0] if servers else None
    subjects = {*plan.named, *servers}
    engines = engines or Engines(BuiltinEngine(plan.target))
    registered = engines.first.names()
    asked = plan.parsers or servers or registered
    try:
        prepared = context.prepare(trace)
    except NoTextError as error:
        return _unread(trace, asked, subjects, str(error))
    work = Work(prepared, plan, engines.first, subjects, served)
    results = tuple(work.run(name) for name in asked)
    judged = [result for result in results if result.served] or [result for result in results if result.subject]
    compared: tuple[Result, ...] = ()
    if judged and all(result.failing or result.status == "unsupported" for result in judged):
        ran = {result.parser for result in results}
        compared = tuple(work.compared(name) for name in registered if name not in ran)
    everything = (*results, *compared)
    last = last_text(prepared.trace.request)
    state = state_of(prepared.prompt, last)
    left_in = state[0].state if state is not None else None
    explained = explain(everything, prepared.trace, prepared.prompt, state=left_in, kwargs=prepared.kwargs)
    accused = [result for result in results if result.subject and result.status != "unsupported"]
    tried = {result.parser: what_ifs(work, context, result) for result in accused} if plan.explain else {}
    failing = next((result for result in (*judged, *accused) if result.failing), None)
    raw = next((result.raw for result in results if result.raw), "") or work.raw(None)
    spoken = (*servers, *plan.named, *explained.parsers[:1])
    request = {key: value for key, value in prepared.trace.request.items() if key not in _FREE_TEXT}
    counts = plan.budgeted or trace.finish_reason == "length" or "budget" in str(request) or thinks_again(raw, spoken)
    return TraceFacts(
        id=trace.id,
        path=trace.path,
        line=trace.line,
        source=trace.source,
        model=trace.model,
        recorded=recorded,
        raw=raw,
        tokenizer=prepared.tokenizer,
        lossy=prepared.lossy,
        prompt_from=prepared.prompt_from,
        prompt=prepared.prompt,
        kwargs=dict(prepared.kwargs),
        last_message=last,
        results=results,
        compared=compared,
        best=explained.parsers,
        why=explained.why,
        shown=explained.shown,
        fragile=explained.fragile,
        notes=prepared.notes,
        request=request,
        state=state[0] if state is not None else None,
        template_at=(
            context.template_place(state[0].marker) if state is not None and prepared.prompt_from != "trace" else None
        ),
        thoughtless=context.thoughtless,
        what_ifs={parser: found for parser, found in tried.items() if found},
        comparison=compare(work, failing, tried.get(failing.parser, ()), everything, explained) if failing else None,
        thought=read_thought(prepared, spoken, last, plan.strings) if counts else None,
        version=engines.labels[0],
        others=others(work, engines, asked),
        deltas=len(trace.deltas),
        broken=trace.broken,
        entry=trace.entry,
        strip=strip_of(prepared, everything, explained.parsers, state and state[0].state) if plan.strips else None,
        streamed=trace.streamed,
        api=trace.api,
    )


def result_json(facts: TraceFacts, result: Result) -> dict[str, Any]:
    """One entry of `results` in the JSON report."""
    return {
        "trace": facts.id,
        "path": facts.path,
        "line": facts.line,
        **({"entry": facts.entry} if facts.entry is not None else {}),
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


def _unread(trace: Trace, asked: Sequence[str], subjects: set[str], reason: str) -> TraceFacts:
    results = tuple(
        Result(name, "unsupported", NO_MODE, (), None, NO_CHECKS, reason=reason, subject=name in subjects)
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
        broken=trace.broken,
        entry=trace.entry,
    )
