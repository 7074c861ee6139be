"""FIT117: what a parser costs the server as a stream gets longer, as measured in real vLLMs."""

from __future__ import annotations

from collections.abc import Iterator

from ..parsers.streaming_cost import LINEAR, StreamingCost, growing, measured_versions, streaming_cost
from .facts import AuditFacts
from .finding import Finding
from .rule import Rule, register

DEAR = 10e-6
"""CPU seconds a token of a short stream, twice what an engine parser costs: from there on growth is felt early."""


def _figure(cost: StreamingCost) -> str:
    return (
        f"{cost.longer_seconds:.2g} s of CPU for {cost.longer:,} tokens, {cost.growth:.0f} times what {cost.tokens:,} "
        "take"
    )


def _figures() -> str:
    """What was measured, version by version."""
    parts = []
    for version in measured_versions():
        found = growing(version)
        dear = [f"{name} {_figure(cost)}" for name, cost in found.items() if cost.token >= DEAR]
        others = [name for name, cost in found.items() if cost.token < DEAR]
        parts.append(
            f"vLLM {version}, CPU time inside the parser at one token a delta: {'; '.join(dear)}. Not told, because "
            f"short streams cost them no more than an engine parser: {', '.join(others)} (at most "
            f"{max(found[name].longer_seconds for name in others):.2g} s for 32,000 tokens)."
        )
    return "\n\n".join(parts)


@register
class StreamingCostGrows(Rule):
    id = "FIT117"
    slug = "streaming-cost-grows"
    severity = "warning"
    what = (
        "Fires when the parser itself, as measured in vLLM, spends more on every token the longer the stream is (eight "
        f"times the tokens took more than {LINEAR:g} times the time), and costs at least {DEAR * 1e6:g} microseconds a "
        "token to begin with."
    )
    why = (
        "The API server parses all streams in one process. A parser that costs a millisecond a token late in a long "
        "answer holds up every other stream, and many long answers at once slow to what one core can parse."
    )
    example = "granite with 24,000 tokens: 22 s of CPU in the API server, where qwen3 takes 0.15 s"
    instead = "Use a parser that costs the same at every token, limit max_tokens, or run more API servers."
    versions = _figures()
    sources = ("benchmarks/streaming_cost.py, run on the versions above", "docs/benchmarks.md")

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        judged = facts.judged
        cost = streaming_cost(judged.name, facts.target) if judged is not None else None
        if judged is None or cost is None or cost.linear or cost.token < DEAR:
            return
        yield cls.finding(
            f"{judged.name} grows slower with every token: {_figure(cost)} (measured in vLLM {cost.version})",
            hint="limit max_tokens or run more API servers; engine parsers cost the same at every token",
            confidence="high" if cost.version == facts.target.version_text else "medium",
            subject=facts.subject(parser=judged.name),
            location=facts.parser_at,
            evidence={
                "vllm": cost.version,
                "tokens": [cost.tokens, cost.longer],
                "cpu_seconds": [cost.seconds, cost.longer_seconds],
                "growth": round(cost.growth, 1),
            },
        )
