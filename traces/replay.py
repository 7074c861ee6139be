"""Putting recorded traces to parsers: the facts of `replay`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..parsers import ROWS, paired
from ..parsers.engines import BuiltinEngine
from ..prompts.state import State
from .comparison import Comparison, compare
from .context import Context, NoTextError, Tokenizer
from .plan import DEFAULT_CHUNKINGS, RECORDED, Engines, Plan, open_engines
from .request import last_text
from .splits import NO_PARSER, foreign_markers, mode_json
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
    "explain",
    "open_engines",
    "recorded_json",
    "replay_trace",
    "result_json",
]

_PLAINEST = "qwen3"
_FREE_TEXT = frozenset({"messages", "input", "prompt", "tools", "functions", "response_format", "system", "metadata"})


@dataclass(frozen=True, slots=True)
class TraceFacts:
    """One trace: where it stands, what was recorded of it, and what every parser made of it.

    `compared` are parsers run besides those asked for, because the one that served failed. `best` are those that
    explain the trace, `why` says what speaks for them. `raw` is the output's text as the first parser is fed it,
    `last_message` the text of the request's last message, `request` its body without what is free text in it. `state`
    is the prompt's, `template_at` the template's file and the line that leaves that state, `thoughtless` that it knows
    nothing of thinking. `what_ifs` are, by parser,
    the changes that were tried on a failing one; `comparison` sets it beside parsers that do better. `thought` is
    counted where a rule may need it: a budget, a run cut by its length, a block that opens again. `others` are what
    further vLLMs make of the trace, `version` the one that made `results`. `broken`: why the recording is not whole.
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
    best, why = explain((*results, *compared), prepared.trace, prepared.prompt)
    everything = (*results, *compared)
    last = last_text(prepared.trace.request)
    state = state_of(prepared.prompt, last)
    accused = [result for result in results if result.subject and result.status != "unsupported"]
    tried = {result.parser: what_ifs(work, context, result) for result in accused} if plan.explain else {}
    failing = next((result for result in (*judged, *accused) if result.failing), None)
    raw = next((result.raw for result in results if result.raw), "") or work.raw(None)
    spoken = (*servers, *plan.named, *best[:1])
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
        best=best,
        why=why,
        notes=prepared.notes,
        request=request,
        state=state[0] if state is not None else None,
        template_at=(
            context.template_place(state[0].marker) if state is not None and prepared.prompt_from != "trace" else None
        ),
        thoughtless=context.thoughtless,
        what_ifs={parser: found for parser, found in tried.items() if found},
        comparison=compare(work, failing, tried.get(failing.parser, ()), everything, best) if failing else None,
        thought=read_thought(prepared, spoken, last, plan.strings) if counts else None,
        version=engines.labels[0],
        others=others(work, engines, asked),
        deltas=len(trace.deltas),
        broken=trace.broken,
        streamed=trace.streamed,
        api=trace.api,
    )


def explain(results: Sequence[Result], trace: Trace, prompt: str | None = None) -> tuple[tuple[str, ...], str]:
    """The parsers that explain a trace, and why: every check passes, no family's marker is left, and then whatever sets
    some of them apart (the recorded split, a split at all, the model's own parser).

    `prompt` is the prompt's text, where the trace itself does not hold it.
    """
    passed = [r for r in results if r.status == "ok" and not r.call_swallowed and r.parser != NO_PARSER]
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
    # Of parsers that are equally good the plainest comes first: the engine's for bare <think> blocks; then those whose
    # markers the prompt or the output holds.
    spoken = f"{trace.prompt_text or prompt or ''}{clean[0].raw}"
    return tuple(sorted((result.parser for result in clean), key=lambda name: _plainness(name, spoken))), why


def _plainness(name: str, spoken: str) -> tuple[bool, bool, str]:
    row = ROWS[name]
    return name != _PLAINEST, not any(marker in spoken for marker in (*row.start, *row.end)), name


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
    )
