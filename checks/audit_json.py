"""The audit's facts as the JSON report shows them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from .. import versions
from .blame import blames
from .bud_audit import reasoning_config
from .evidence import gets
from .facts import AuditFacts, SentRequest
from .sent import variant_of
from .trial import Candidate, Trial
from .vllm_prompts import not_as_ours, prompts_json

MOST_FAILURES = 5
"""Failures that are listed for one candidate; all of them are counted."""


def facts_json(facts: AuditFacts) -> dict[str, Any]:
    """`facts` of the report of one model or server, plain JSON."""
    found = {
        "model": _model(facts),
        "prompt_states": [state.as_json() for state in facts.survey.states] if facts.survey is not None else [],
        "history": [row.as_json() for row in facts.survey.history] if facts.survey is not None else [],
        "parser": _parser(facts),
        "serve_flags": serve_flags(facts),
    }
    if facts.live is not None:
        found["live"] = facts.live.as_json()
    if facts.budget is not None:
        found["budget"] = facts.budget.as_json()
    return found if facts.requests is None else {**found, "requests": _sent(facts.requests)}


def _sent(requests: Iterable[SentRequest]) -> dict[str, Any]:
    """How many requests are really sent, by variant."""
    counts: dict[str, tuple[dict[str, Any], int]] = {}
    for request in requests:
        variant = variant_of(request)
        key = json.dumps(variant, sort_keys=True)
        counts[key] = variant, counts.get(key, (variant, 0))[1] + request.count
    return {
        "given": sum(count for _, count in counts.values()),
        "variants": [
            {"variant": variant, "count": count}
            for _, (variant, count) in sorted(counts.items(), key=lambda item: (item[0] != "{}", item[0]))
        ],
    }


def serve_flags(facts: AuditFacts) -> list[str]:
    """The flags to paste: the recommended parser's, none where none is needed or none passes."""
    if facts.recommended is None:
        return []
    old = facts.target.product == "vllm" and not versions.fact("reasoning-parser-alone", facts.target.version)
    return [
        *(["--enable-reasoning"] if old else []),
        *("--reasoning-parser", facts.recommended),
        *reasoning_config(facts),
    ]


def _model(facts: AuditFacts) -> dict[str, Any]:
    model = facts.survey.model if facts.survey is not None else None
    template = model.template if model is not None else None
    reads = sorted(facts.survey.reads) if facts.survey is not None else []
    thinking = facts.thinking
    return {
        "source": facts.source,
        "kind": model.kind if model is not None else None,
        "model_type": model.model_type if model is not None else None,
        "architectures": list(model.architectures) if model is not None else [],
        "template": {"origin": template.origin, "sha256": template.sha256, "reads": reads}
        if template is not None
        else None,
        "markers": [marker.as_json() for marker in facts.markers],
        "tokenizer": {
            "kind": "model" if facts.real_tokenizer else "assumed" if facts.candidates else "none",
            "reason": model.tokenizer_problem if model is not None else "the model is not there",
        },
        "thinking": {
            "start": thinking.start,
            "end": thinking.end,
            "after_end": thinking.after_end,
            "mentioned": thinking.mentioned,
            "harmony": thinking.harmony,
        },
        "notes": _notes(facts),
        **(prompts_json(facts.survey) if facts.survey is not None else {}),
    }


def _notes(facts: AuditFacts) -> list[str]:
    notes = []
    if facts.prompt_problem is not None:
        notes.append(f"prompt state not evaluated: {facts.prompt_problem.removesuffix(': not evaluated')}")
    otherwise = not_as_ours(facts.survey) if facts.survey is not None else None
    if otherwise is not None:
        notes.append(otherwise)
    if facts.survey is not None and facts.survey.model.kind == "served":
        notes.append(f"{facts.survey.made_by} makes the prompts; its template is not to be seen")
    elif facts.survey is not None and facts.survey.model.coded is not None:
        notes.append(f"{facts.survey.model.coded.by} builds the prompts: no template has a say")
    if facts.survey is not None and facts.survey.states and not facts.thinks:
        notes.append("the template knows nothing of thinking: this model needs no reasoning parser")
    if facts.thinking.harmony:
        notes.append("a harmony model: vLLM takes openai_gptoss by itself for model_type gpt_oss")
    return notes


def _parser(facts: AuditFacts) -> dict[str, Any]:
    judged = facts.judged
    return {
        "configured": facts.configured,
        "recommended": facts.recommended,
        "mode": facts.mode,
        **({"inferred": True} if facts.live is not None and facts.live.inferred else {}),
        "judged": judged.name if judged is not None else None,
        "named": list(facts.named),
        "requests": _requests(facts, judged) if judged is not None else [],
        "candidates": [_candidate(candidate) for candidate in facts.candidates],
    }


def _candidate(candidate: Candidate) -> dict[str, Any]:
    return {
        "name": candidate.name,
        "fit": candidate.fit,
        "probes": {"passed": candidate.passed, "failed": candidate.failed, "skipped": candidate.skipped},
        "failures": [failure.as_json() for failure in candidate.failures[:MOST_FAILURES]],
        "reason": candidate.unsupported or candidate.refuted,
        "elsewhere": candidate.elsewhere,
    }


def _requests(facts: AuditFacts, judged: Candidate) -> list[dict[str, Any]]:
    """A row for each kind of request: every variant of a plain chat, and other conversations where they differ."""
    rule_of = {
        (trial.cell.conversation, repr(sorted(trial.cell.variant.items()))): blame.rule
        for blame in blames(facts, judged)
        for trial in blame.trials
    }
    rows: list[dict[str, Any]] = []
    seen_in_plain: dict[str, tuple[str, str]] = {}
    shown: set[tuple[str, str, str]] = set()
    for trial in _ordered(judged.trials):
        cell = trial.cell
        variant = repr(sorted(cell.variant.items()))
        state, given = cell.state, _gets(trial)
        if cell.conversation == "single_turn":
            seen_in_plain[variant] = (state, given)
        elif seen_in_plain.get(variant) == (state, given) or (cell.conversation, state, given) in shown:
            continue
        if trial.passed and cell.weight == "unread":
            continue
        shown.add((cell.conversation, state, given))
        rows.append(
            {
                "conversation": cell.conversation,
                "variant": dict(cell.variant),
                "state": state,
                "gets": given,
                "ok": trial.passed,
                "rule": rule_of.get((cell.conversation, variant)),
            }
        )
    return rows


def _ordered(trials: Iterable[Trial]) -> list[Trial]:
    return sorted(trials, key=lambda trial: trial.cell.conversation != "single_turn")


def _gets(trial: Trial) -> str:
    if trial.raised is not None:
        return f"an error ({trial.raised})"
    if trial.run is None:
        return "not known"
    full, stream = (gets(mode, trial.probe) for mode in (trial.run.full, trial.run.stream[0]))
    return full if full == stream else f"{full}; streamed: {stream}"
