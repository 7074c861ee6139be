"""RPL417: what an upgrade of vLLM would change about recorded traffic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..traces.replay import Result
from ..traces.upgrade import Change, changes
from .finding import Finding
from .replayed import ReplayFacts, called, split_json
from .rule import Rule, register


@register
class UpgradeSplitsDifferently(Rule):
    id = "RPL417"
    slug = "upgrade-splits-differently"
    severity = "error"
    what = """With several `--vllm`: two versions of vLLM, each with its own parsers, split the same trace differently.
        The first one given is how it is, each other one how it would be. It is told of the parser that served the
        trace, the serve command's and those of `--parser`; where none is known, of every parser."""
    why = """Parsers change between releases without a word in the release notes: qwen3 in full reads the prompt from
        0.33 on, minicpmv and step3p5 changed families in 0.32. A client that shows `content` shows thoughts then, or
        nothing."""
    example = """
        reasonctl replay traces.jsonl --parser qwen3 --vllm .venv-0.32 --vllm .venv-0.33
        error RPL417 upgrade-splits-differently: qwen3 splits this trace otherwise in vLLM 0.33.0 than in
        0.32.0: in full
    """
    instead = """Read both splits: the new one is often the right one, and then it is the clients that must not count on
        the old. Else stay, or take a parser that splits alike in both (`--parser all` shows them)."""
    versions = "whatever is given with --vllm"
    sources = (
        "vLLM 0.33.0 vllm/parser/engine/parser_engine.py set_prompt_token_ids (not in 0.32.0)",
        "vLLM 0.32.0 vllm/reasoning/step3p5_engine_reasoning_parser.py (legacy in 0.31)",
    )

    @classmethod
    def check(cls, facts: ReplayFacts) -> Iterator[Finding]:
        trace = facts.trace
        subjects = {result.parser for result in trace.results if result.subject}
        for other in trace.others:
            for change in changes(trace.version, trace.results, other):
                if not subjects or change.parser in subjects:
                    after = next(result for result in other.results if result.parser == change.parser)
                    yield cls._found(facts, change, after)

    @classmethod
    def _found(cls, facts: ReplayFacts, change: Change, result_after: Result) -> Finding:
        before, after = change.modes[0]
        where = ", ".join(called(one) for one, _ in change.modes)
        result = next(result for result in facts.trace.results if result.parser == change.parser)
        evidence: dict[str, Any] = {
            "before": split_json(before),
            "after": split_json(after),
            "modes": [one.chunking or "full" for one, _ in change.modes],
        }
        return cls.finding(
            f"{change.parser} splits this trace otherwise in vLLM {change.after} than in {change.before}: {where}",
            hint=_advice(change, before=not result.failing, after=not result_after.failing),
            confidence="high" if facts.on_real_tokens else "medium",
            subject={**facts.subject(result), "upgrade": f"{change.before} to {change.after}"},
            location=facts.location,
            evidence=evidence,
        )


def _advice(change: Change, *, before: bool, after: bool) -> str:
    """What to do, by whether every check passes before and after."""
    if after and not before:
        return f"the upgrade mends it: every check passes in {change.after} only; see that no client counts on the old"
    if before and not after:
        return "it was right before: stay, or take a parser that splits alike in both (--parser all shows them)"
    if before:
        return "every check passes in both: read the two splits, and see which one clients count on"
    return f"{change.parser} fails in both: see what else is told of this trace"


RULES = (UpgradeSplitsDifferently,)
