"""BUD320, BUD327: what a serve command alone says about how a budget will end a thought."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import versions as releases
from ..budgets.counting import Written
from ..budgets.facts import BudgetFacts
from ..budgets.strings import SPECULATIVE
from .bud_replica import ANSWER, THOUGHT, Replica, replicas
from .finding import Confidence, Finding
from .rule import Rule, register

_V1 = "vllm/v1/sample/thinking_budget_state.py (0.33.0), run"
_V2 = "vllm/v1/worker/gpu/sample/thinking_budget.py (0.33.0), run"


@register
class EndPhraseOrder(Rule):
    id = "BUD320"
    slug = "end-phrase-order"
    severity = "error"
    what = (
        "`--reasoning-config` forces a text other than the end marker, and this server's counter does not cope: the "
        "text starts with the marker or holds none (V2), or it is a phrase on a counter that then no longer sees a "
        "thought end by itself (V1, every release before 0.28, and any without a parser). Each is run on the counter's "
        "replica."
    )
    why = (
        "V2 stops forcing at the marker, so that a phrase behind it is lost, and forces a text without a marker over "
        "and over. A counter that looks for the whole phrase misses the model's own end marker, goes on "
        "counting in the answer, and writes the phrase into the middle of it."
    )
    example = (
        "VLLM_USE_V2_MODEL_RUNNER=0 vllm serve m --reasoning-parser qwen3 --reasoning-config "
        '\'{"reasoning_end_str": "Time is up.</think>"}\''
    )
    instead = (
        "On V2 with a parser, put the phrase in front of the end marker. On V1 leave `reasoning_end_str` out, or give "
        "the end marker alone."
    )
    versions = "V1: every release with budgets; V2: 0.28 and later"
    sources = (_V1, _V2, "vllm #39697, #43210, #53572, #54467")
    facts = (
        "budget-natural-end",
        "v2-budget",
    )

    @classmethod
    def check(cls, facts: BudgetFacts) -> Iterator[Finding]:
        if facts.strings is None or facts.strings.forced == facts.strings.parser_end:
            return  # the parser's own marker; whether the model writes it is BUD313's
        for replica in replicas(facts):
            found = _fault(replica)
            if found is not None:
                message, hint, written = found
                yield cls.finding(
                    f"{_runner(replica)} {message}",
                    hint=hint,
                    confidence=_confidence(facts, replica),
                    subject={"key": "--reasoning-config"},
                    location=replica.strings.location,
                    evidence={
                        "forced": replica.strings.forced,
                        "end": replica.end,
                        "runner": replica.rule.removeprefix("vllm-"),
                        "output": replica.text(written),
                    },
                )
                return


def _fault(replica: Replica) -> tuple[str, str, list[Written]] | None:
    """(message, mend, the output that shows it) where the forced text goes wrong; None where all is well."""
    forced, end = replica.strings.forced, replica.end
    if forced.strip() == end.strip():
        return None
    cut = replica.output(THOUGHT)
    runs = "".join("f" if one.forced else "." for one in cut)
    length = len(replica.markers.forced_end)
    if "f" * (length + 1) in runs or runs.count("f") > length:
        mend = f"end the text with {end}, which the counter takes for the end"
        return f"forces {forced!r} over and over: it holds no end marker {end}", mend, cut[: 4 * length + 12]
    if end not in forced:
        mend = f"end the text with {end}"
        return f"forces {forced!r}, which holds no end marker {end}: the parser sees no end of the thought", mend, cut
    if 0 < runs.count("f") < length:
        said = forced.partition(end)[2]
        mend = f"put the phrase in front: {said.strip()}{end}"
        return f"stops at {end} and drops {said!r} behind it", mend, cut
    ended = replica.output("one two", end, ANSWER, budget=8)
    if any(one.forced for one in ended):
        mend = "leave reasoning_end_str out" + (
            ", or let the V2 model runner serve (vLLM 0.28 and later)"
            if replica.rule == "vllm-v1"
            else f", or name a parser whose end marker is {end}"
        )
        return f"looks for {forced!r} as a whole: a thought that ends by itself gets it into its answer", mend, ended
    if forced.partition(end)[2].strip():
        return f"writes {forced.partition(end)[2]!r} into the answer", f"put the phrase in front of {end}", cut
    return None


def _runner(replica: Replica) -> str:
    return f"the {replica.rule.removeprefix('vllm-').upper()} model runner"


def _confidence(facts: BudgetFacts, replica: Replica) -> Confidence:
    known = facts.runner is not None and (facts.command is None or facts.command.runner is not None or replica.real)
    return "high" if known and facts.target.exact else "medium"


@register
class SpeculativeDecoding(Rule):
    id = "BUD327"
    slug = "speculative-decoding"
    severity = "warning"
    what = (
        "A budget is granted by a server that decodes speculatively, in a release whose model runner was reported not "
        "to enforce budgets on draft tokens: V1 before 0.21, V2 before 0.31."
    )
    why = "Requests are accepted, and thinking runs on: the cutoff never comes, and nothing in the log says so."
    example = (
        'vLLM 0.28, --speculative-config \'{"method": "mtp", "num_speculative_tokens": 2}\', a request with a budget'
    )
    instead = "Prove it with `reasonctl verify`, or upgrade to 0.31 or later."
    versions = "V1: 0.19 and 0.20; V2: 0.28 to 0.30"
    sources = (
        *(
            f"vllm/{row.source}"
            for name in ("v1-budget-drafts", "v2-budget-drafts")
            for row in releases.rows("fact", name)
        ),
    )
    facts = (
        "v1-budget-drafts",
        "v2-budget-drafts",
    )

    @classmethod
    def check(cls, facts: BudgetFacts) -> Iterator[Finding]:
        command, budgets = facts.command, facts.granted
        if command is None or facts.target.product != "vllm" or not command.known(SPECULATIVE) or not budgets:
            return
        runners = [facts.runner] if facts.runner is not None else ["v1", "v2"]
        weak = [runner for runner in runners if not releases.fact(f"{runner}-budget-drafts", facts.target.version)]
        if weak:
            named = " or ".join(str(runner).upper() for runner in weak)
            yield cls.finding(
                f"vLLM {facts.target.version_text} was reported not to enforce budgets with draft tokens on {named}",
                hint="prove it with reasonctl verify; 0.31 and later look at every draft position",
                confidence="medium",
                subject={"key": f"--{SPECULATIVE}"},
                location=command.place(SPECULATIVE),
                evidence=_evidence(weak, budgets[0].tokens),
            )


def _evidence(runners: list[Any], budget: int | None) -> dict[str, Any]:
    return {"runners": [str(runner) for runner in runners], "budget": budget}
