"""PLG: what a parser shows when it runs. One finding for each aspect of the contract that it breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .finding import Confidence, Finding, Location, Severity
from .fit_cost import StreamingCostGrows
from .fit_stress import ReasoningTokensZero
from .internal import ResultLost
from .plg import (
    BaseNeedsSingleToken,
    ClassLevelState,
    EmptyDelta,
    LeaksBetweenRequests,
    MethodMissing,
    NotImportable,
    NotRegistered,
    PluginStreamDiffers,
    PromptStateWrong,
    RaisedHungOrExited,
)
from .rule import Rule

if TYPE_CHECKING:
    from ..kit.battery import Battery
    from ..kit.cases import Aspect, Outcome
    from ..kit.generated import Smallest
    from ..kit.subject import Subject

Snippet = Callable[["Battery", "Outcome | Smallest"], str]
"""Writes a failure as a test to paste."""

_METHODS: Mapping[Aspect, tuple[str, ...]] = {
    "split": ("extract_reasoning",),
    "truncated": ("extract_reasoning",),
    "tool-call": ("extract_reasoning",),
    "stream": ("extract_reasoning_streaming",),
    "delta-size": ("extract_reasoning_streaming",),
    "hold-back": ("extract_reasoning_streaming",),
    "empty-delta": ("extract_reasoning_streaming",),
    "thinking-off": ("__init__", "extract_reasoning"),
    "prompt": ("is_reasoning_end",),
    "grammar-end": ("is_reasoning_end_streaming", "is_reasoning_end"),
    "content-ids": ("extract_content_ids",),
    "token-count": ("count_reasoning_tokens",),
    "adjust-request": ("adjust_request",),
    "cost": ("extract_reasoning_streaming",),
}
"""The methods that an aspect is about, the nearest first."""
_RULES: Mapping[Aspect, type[Rule]] = {
    "split": PluginStreamDiffers,
    "truncated": PluginStreamDiffers,
    "tool-call": PluginStreamDiffers,
    "stream": PluginStreamDiffers,
    "delta-size": PluginStreamDiffers,
    "hold-back": PluginStreamDiffers,
    "thinking-off": PromptStateWrong,
    "prompt": PromptStateWrong,
    "grammar-end": PromptStateWrong,
    "content-ids": PromptStateWrong,
    "adjust-request": PromptStateWrong,
    "empty-delta": EmptyDelta,
    "instances": LeaksBetweenRequests,
    "token-count": ReasoningTokensZero,
    "raised": RaisedHungOrExited,
}
_SAYS: Mapping[Aspect, str] = {
    "split": "the split is not the output's own",
    "truncated": "a thought that was cut is not filed as one",
    "tool-call": "a tool call inside a thought is not told from it",
    "stream": "streamed otherwise than in full",
    "delta-size": "the split depends on how many tokens share a delta",
    "hold-back": "text that a stop string holds back is split wrongly",
    "thinking-off": "an answer without a thought is not left alone",
    "prompt": "is_reasoning_end misreads the ids",
    "grammar-end": "a grammar would start in the wrong place",
    "content-ids": "extract_content_ids does not give the answer's ids",
    "adjust-request": "adjust_request does not give the request back",
    "empty-delta": "deltas that say nothing",
    "instances": "a second request changes what the first one gets",
    "token-count": "count_reasoning_tokens does not count the thought",
    "raised": "it raised, hung or exited",
}
_HINTS: Mapping[Aspect, str] = {
    "split": "compare with what was expected below; `reasonctl new-parser` writes a parser that passes",
    "truncated": "decide once for both modes where an output without its end marker goes: it is a thought",
    "tool-call": "end the thought where the tool call opens, and leave the call in content",
    "prompt": "read the ids backwards to the start of the assistant's turn: the last marker there decides; without one "
    "thinking has not ended, unless the request switches it off",
    "hold-back": "find the marker in the text, not in the delta's ids alone: its text may come later",
    "token-count": "write count_reasoning_tokens: ids before the end marker count, a start marker in the prompt too",
    "content-ids": "return the ids behind the end marker, an empty list where there is none",
    "adjust-request": "return the request, changed or not",
}
_TOUCHED: frozenset[Aspect] = frozenset(
    ("split", "stream", "delta-size", "hold-back", "truncated", "thinking-off", "tool-call", "empty-delta", "raised")
)
"""What another request's state can spoil."""
_NAMED = 6
"""Failing cases that a finding names."""
Failing = tuple["Outcome | Smallest", str]


def run_findings(
    battery: Battery,
    subject: Subject,
    *,
    snippet: Snippet,
    static: Sequence[Finding] = (),
) -> list[Finding]:
    """What the battery shows, with what the source showed before.

    Args:
        battery: what came of it.
        subject: the parser.
        snippet: writes a failure as a test.
        static: findings in the source; one that the battery shows too stays where it is, with what was seen.
    """
    found = list(static)
    for one in _seen(battery, subject, snippet):
        if battery.refused is not None and any(known.rule == BaseNeedsSingleToken.id for known in static):
            continue  # the source says why
        at = next((number for number, known in enumerate(static) if _same(known, one, subject)), None)
        if at is None:
            found.append(one)
        else:
            evidence = {**found[at].evidence, **one.evidence}
            found[at] = replace(found[at], evidence=evidence, confidence=_surer(found[at].confidence, one.confidence))
    return found


def unloaded(static: Sequence[Finding], subject: Subject, problem: str, *, raised: bool) -> Iterator[Finding]:
    """A plugin that brought no parser of that name; nothing where the source shows why.

    Args:
        static: findings in the source.
        subject: the parser.
        problem: what happened.
        raised: loading it raised, hung or ended the process; else it was loaded.
    """
    rule = NotImportable if raised else NotRegistered
    if subject.source is not None and not any(one.rule == rule.id for one in static):
        yield rule.finding(
            problem,
            hint=" ".join(rule.instead.split()),
            subject={"parser": subject.name},
            location=Location(str(subject.source.path)),
        )


def failing(battery: Battery) -> dict[Aspect, list[Failing]]:
    """What failed, by aspect: named cases first, then generated outputs that none of them covers."""
    found: dict[Aspect, list[Failing]] = {}
    # A prompt that is misread sends its stream the wrong way: that is the same defect.
    asked = [one for one in battery.failed if one.case.name == "is-reasoning-end-before"]
    taken = [one for one in asked if one.got is None or isinstance(one.got, bool)]  # the server takes None for a no
    misread = {id(one.case.cell) for one in taken if bool(one.got) is not one.case.expected}
    for outcome in battery.failed:
        raised = isinstance(outcome.got, Mapping) and "error" in outcome.got
        aspect: Aspect = "raised" if raised else outcome.case.aspect
        if outcome.case.mode == "stream" and aspect in ("split", "thinking-off") and id(outcome.case.cell) in misread:
            aspect = "prompt"
        found.setdefault(aspect, []).append((outcome, outcome.case.name))
    lost = [one for one in battery.outcomes if one.lost is not None]
    # What was not even asked is no sign against the parser, unless loading it was all that went wrong.
    for outcome in [one for one in lost if not one.unasked] or lost:
        found.setdefault("raised", []).append((outcome, outcome.case.name))
    for one in battery.generated.smallest.values():
        aspect = aspect_of(one)
        agrees = one.invariant in ("chunk-sizes-agree", "hold-back-agrees")  # however the prompt is read
        if aspect in ("split", "stream", "thinking-off") and id(one.example.question.cell) in misread and not agrees:
            aspect = "prompt"
        found.setdefault(aspect, []).append((one, one.invariant))
    return found


def aspect_of(one: Smallest) -> Aspect:
    """What of the contract a generated output breaks: where a split goes wrong, how it was cut tells."""
    from ..kit.invariants import INVARIANTS

    aspect = next(each.aspect for each in INVARIANTS if each.name == one.invariant)
    if aspect not in ("split", "stream", "delta-size", "hold-back"):
        return aspect
    if not one.example.question.cell.thinks:
        return "thinking-off"
    if one.example.places is None and one.found.chunking in (None, "token"):
        return "truncated"
    label = one.found.chunking
    if label is None:
        return "split"
    return "stream" if label == "token" else "hold-back" if label.startswith("holdback") else "delta-size"


def _seen(battery: Battery, subject: Subject, snippet: Snippet) -> Iterator[Finding]:
    confidence = _confidence(battery)
    if battery.refused is not None and battery.unsupported is None and not any(one.ok for one in battery.outcomes):
        yield RaisedHungOrExited.finding(
            f"{subject.name} cannot be built for this tokenizer: {battery.refused}",
            hint="look markers up so that a tokenizer without them is told of, or give the model it is for: --model",
            confidence=confidence,
            subject=_subject(subject, "raised"),
            location=_place(subject, "raised"),
        )
        return
    for aspect, cases in failing(battery).items():
        yield _finding(battery, subject, aspect, cases, snippet, confidence)
    for name, before, after in battery.shared[:1]:
        more = len(battery.shared) - 1
        yield ClassLevelState.finding(
            f"{name} changed while requests ran" + (f", and {more} more" if more else ""),
            hint=" ".join(ClassLevelState.instead.split()),
            confidence=confidence,
            subject=_subject(subject, "state"),
            location=_place(subject, "state"),
            evidence={
                "name": name,
                "before": before,
                "after": after,
                "also": [one for one, _, _ in battery.shared[1:]],
            },
        )
    if battery.description is not None and battery.description.one_instance:
        yield LeaksBetweenRequests.finding(
            "two requests get one and the same instance",
            hint=" ".join(LeaksBetweenRequests.instead.split()),
            confidence=confidence,
            subject=_subject(subject, "one-instance"),
            location=_place(subject, "instances"),
        )
    yield from _grown(battery, subject)
    if battery.lost:
        yield ResultLost.finding(
            f"{battery.lost[0]}: {subject.name}" + (f", and {len(battery.lost) - 1} more" if battery.lost[1:] else ""),
            hint="the other results stand; a parser that hangs or exits takes a served request down the same way",
            subject=_subject(subject, "lost"),
            location=_place(subject, "raised"),
        )


def _finding(
    battery: Battery,
    subject: Subject,
    aspect: Aspect,
    cases: list[Failing],
    snippet: Snippet,
    confidence: Confidence,
) -> Finding:
    first, name = cases[0]
    rule = _rule(aspect, first, battery)
    evidence = shown(battery, first) | {"pytest": snippet(battery, first)}
    evidence["also"] = list(dict.fromkeys(other for _, other in cases[1:] if other != name))
    hint = _HINTS.get(aspect) or " ".join(rule.instead.split())
    if aspect in _TOUCHED and (shared := _shared_by_requests(battery)) is not None:
        hint = f"first mend {shared}: what one request leaves there may be all that shows here; then {hint}"
    severity: Severity | None = "info" if aspect == "truncated" and _agrees(battery) else None
    return rule.finding(
        f"{_SAYS[aspect]}: {name}: {wrong(first)}" + _more(cases),
        hint=hint,
        confidence=confidence,
        severity=severity,
        subject=_subject(subject, aspect),
        location=_place(subject, aspect),
        evidence={key: value for key, value in evidence.items() if key == "got" or value not in (None, [])},
    )


def _shared_by_requests(battery: Battery) -> str | None:
    """What requests were seen to share, and the rule that tells of it; None where nothing."""
    if battery.shared:
        return f"{ClassLevelState.id} ({battery.shared[0][0]} changed while requests ran)"
    if battery.description is not None and battery.description.one_instance:
        return f"{LeaksBetweenRequests.id} (two requests get one instance)"
    if "instances-do-not-touch" in battery.generated.failing:
        return f"{LeaksBetweenRequests.id} (a second request changes what the first one gets)"
    return None


def wrong(one: Outcome | Smallest) -> str:
    """What is wrong with a failure, in a few words."""
    from ..kit.generated import Smallest

    if isinstance(one, Smallest):
        return one.found.wrong
    if isinstance(one.got, Mapping) and "error" in one.got:
        return f"raised {one.got['error']}" + (f": {one.got['message']}" if one.got.get("message") else "")
    return one.lost or one.wrong or "nothing"


def shown(battery: Battery, one: Outcome | Smallest) -> dict[str, Any]:
    """A failure as evidence: the request, the prompt's end, the deltas as they came, what came back, what was due."""
    from ..kit.generated import Smallest
    from ..kit.invariants import INVARIANTS

    if isinstance(one, Smallest):
        question, probe, label = one.example.question, one.example.probe, one.found.chunking
        mode = next((m for m in one.answer.modes if m.chunking == label), one.answer.full)
        expected: Any = {"reasoning": probe.reasoning, "content": probe.content} if one.example.tame else None
        got: Any = (
            {"reasoning": mode.reasoning, "content": mode.content} if mode.error is None else {"error": mode.error}
        )
        why = next(each.says for each in INVARIANTS if each.name == one.invariant)
        messages: Any = next((s.messages for s in one.answer.streams if s.result.chunking == label), ())
        if one.invariant in ("stream-equals-full", "chunk-sizes-agree", "hold-back-agrees"):
            other = one.answer.full if one.invariant == "stream-equals-full" else one.answer.streams[0].result
            expected = {"reasoning": other.reasoning, "content": other.content}
    else:
        question, probe, label = one.case.question, one.case.probe, one.case.chunking
        expected, got, why, messages = one.case.expected, one.got, one.case.why, one.messages
        if one.case.aspect == "token-count":
            expected = f"{expected[0]} to {expected[1]} tokens"
    marker = battery.setting.end_marker
    if marker and marker in probe.text and marker not in question.text:
        why = f"{why}; decoding hides {marker} (it is flagged special), as adjust_request leaves skip_special_tokens on"
    stream = next((each for each in question.streams if each.label == label), None)
    tail = battery.setting.vocabulary.decode(question.cell.prompt_ids[-40:])
    return {
        "request": {"variant": dict(question.cell.variant), "conversation": question.cell.conversation},
        "prompt_tail": tail,
        "output": probe.text,
        "chunking": label,
        "deltas": [[text, list(ids)] for text, ids in stream.deltas] if stream is not None else None,
        "messages": [None if said is None else list(said) for said in messages] if stream is not None else None,
        "expected": expected,
        "got": got,
        "because": why,
    }


def _rule(aspect: Aspect, one: Outcome | Smallest, battery: Battery) -> type[Rule]:
    description = battery.description
    defined = description.defined.get("extract_content_ids") if description is not None else None
    if aspect == "content-ids" and getattr(one, "got", ()) is None and defined == "ReasoningParser":
        return MethodMissing
    return _RULES[aspect]


def _agrees(battery: Battery) -> bool:
    """Both modes file a cut thought alike: a policy, if not the usual one."""
    cut = [one for one in battery.outcomes if one.case.aspect == "truncated" and one.case.weighs]
    texts = {(one.case.name, one.case.cell.key, repr(one.got)) for one in cut}
    return len(texts) == len({text[:2] for text in texts}) and all(one.lost is None for one in cut)


def _more(cases: list[Failing]) -> str:
    names = list(dict.fromkeys(name for _, name in cases))[1:]
    if not names:
        return ""
    rest = len(names) - _NAMED
    return f" (also {', '.join(names[:_NAMED])}{f' and {rest} more' if rest > 0 else ''})"


def _grown(battery: Battery, subject: Subject) -> Iterator[Finding]:
    cost = battery.cost
    if cost is None or not battery.grows:
        return
    yield StreamingCostGrows.finding(
        f"a delta takes {cost.late / cost.early:.0f} times as long after {cost.tokens:,} tokens as at the begin",
        hint="keep what was found so far on self, and look at the new text alone",
        confidence="medium",
        subject=_subject(subject, "cost"),
        location=_place(subject, "cost"),
        evidence={"tokens": cost.tokens, "microseconds": [round(cost.early * 1e6), round(cost.late * 1e6)]},
    )


def _confidence(battery: Battery) -> Confidence:
    return "high" if battery.setting.origin == "model" and battery.asked else "medium"


def _subject(subject: Subject, aspect: str) -> dict[str, str]:
    return {"parser": subject.name, "key": aspect}


def _place(subject: Subject, aspect: Aspect) -> Location | None:
    """The method of the file that an aspect is about, else its class."""
    cls, source = subject.parser_class, subject.source
    if source is None:
        return None
    if cls is None:
        return Location(str(source.path))
    own, _ = source.lineage(cls)
    for name in _METHODS.get(aspect, ()):
        for one in own:
            method = one.method(name)
            if method is not None:
                return Location(str(source.path), method.place.line, method.place.column)
    return Location(str(source.path), cls.place.line, cls.place.column)


def _same(known: Finding, one: Finding, subject: Subject) -> bool:
    """The source already shows what the run does: the same rule, inside the same method or about what is shared."""
    if known.rule != one.rule:
        return False
    if known.rule == ClassLevelState.id:
        return True
    if known.location is None or one.location is None:
        return False
    cls = subject.parser_class
    starts = sorted(method.place.line for method in cls.methods) if cls is not None else []
    until = next((line for line in starts if line > one.location.line), one.location.line + 1000)
    if one.subject.get("key") == "thinking-off":  # told of the whole class, or of what makes it
        return (cls is not None and known.location.line <= cls.place.line) or known.location.line == one.location.line
    return one.location.line <= known.location.line < until


def _surer(one: Confidence, other: Confidence) -> Confidence:
    return "high" if "high" in (one, other) else "medium" if "medium" in (one, other) else "low"
