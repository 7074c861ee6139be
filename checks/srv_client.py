"""SRV208: clients that read the field of old releases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from .. import versions
from .facts import AuditFacts
from .finding import Finding
from .rule import Rule, register


def shared_once(findings: Sequence[Finding]) -> list[Finding]:
    """Findings of several servers, those about one place in a client as one: the first server's, about none alone."""
    kept: dict[tuple[object, ...], Finding] = {}
    for number, finding in enumerate(findings):
        if finding.rule != ClientReadsOldField.id:
            kept[number,] = finding
            continue
        key = (finding.location, finding.subject.get("key"))
        first = kept.setdefault(key, finding)
        if first is not finding:
            same = {name: value for name, value in first.subject.items() if finding.subject.get(name) == value}
            kept[key] = replace(first, subject=same)
    return list(kept.values())


@register
class ClientReadsOldField(Rule):
    id = "SRV208"
    slug = "client-reads-old-field"
    severity = "error"
    what = "Fires for a place in a client's source (--client FILE) that reads reasoning_content, and not reasoning."
    why = (
        "vLLM sends `reasoning` alone since 0.16: the old field is null in every response, streamed or not, and "
        "nothing says so. In requests the old name is taken again since 0.22, which makes the asymmetry easy to miss."
    )
    example = "text = response.choices[0].message.reasoning_content      # None, always"
    instead = "Read `reasoning`, and fall back to the old name only for other servers."
    versions = "0.16 and later"
    sources = ("vLLM #27752, #33402 (removed in 0.16.0), #50624",)
    facts = ("response-reasoning_content", "response-reasoning")

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        target = facts.target
        if target.product == "vllm" and versions.fact("response-reasoning_content", target.version):
            return
        seen: Counter[tuple[str, str]] = Counter()
        for read in facts.clients or ():
            seen[read.location.path, read.text] += 1
            count = seen[read.location.path, read.text]
            yield cls.finding(
                f"reads reasoning_content, which {target} never sends: the reasoning is always null here",
                hint="read `reasoning` (and the old name only after it)",
                confidence="high" if target.product == "vllm" else "medium",
                subject=facts.subject(key=f"{read.location.path}: {read.text}" + (f" ({count})" if count > 1 else "")),
                location=read.location,
                evidence={"source": read.text},
            )
