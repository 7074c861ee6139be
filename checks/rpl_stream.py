"""RPL413, RPL415, RPL416: what a recording shows by itself: reopened blocks, field names, chunks that trip clients."""

from __future__ import annotations

from collections.abc import Iterator

from ..parsers import ROWS, ParserRow
from ..traces.replay import Result
from .finding import Finding
from .replayed import ReplayFacts, shorten
from .rule import Rule, register

_SERVING = "vLLM 0.33.0 vllm/entrypoints/openai/chat_completion/serving.py"
_FIELDS = {"reasoning": "reasoning_content", "reasoning_content": "reasoning"}
"""A chat response's field, and the name it goes by elsewhere (`reasoning_content` was removed in vLLM 0.16)."""


@register
class BlockReopened(Rule):
    id = "RPL413"
    slug = "block-reopened"
    severity = "warning"
    what = "The output thinks again: behind the end of a first block of thinking it opens another one."
    why = """Most parsers split once. What comes after the first end marker is content to them, markers included; an
        engine parser files each block. A thinking budget starts afresh with every block (BUD325)."""
    example = "'Let me see.</think>It is 4.\\n<think>Is it?</think>Yes.'"
    instead = "Use a parser of the engine family, which files every block; see the table for what each makes of it."
    sources = ("vLLM 0.33.0 vllm/parser/engine/parser_engine.py", _SERVING)

    @classmethod
    def check(cls, facts: ReplayFacts) -> Iterator[Finding]:
        thought = facts.trace.thought
        if thought is None or len(thought.blocks) < 2:
            return
        again = [block.tokens for block in thought.blocks[1:]]
        yield cls.finding(
            f"the output opens {thought.start} again behind {thought.end}: {len(thought.blocks)} blocks of thinking",
            hint="an engine parser (qwen3, glm45, kimi_k2, ...) files every block; a budget counts each afresh",
            confidence=facts.confidence,
            subject=facts.subject(),
            location=facts.location,
            evidence={"output": shorten(facts.trace.raw), "blocks": [thought.blocks[0].tokens, *again]},
        )


@register
class OldField(Rule):
    id = "RPL415"
    slug = "old-field"
    severity = "info"
    what = """Says in which field the recording's reasoning came: a client that reads the other name sees null. A
        warning where the parser leaves every thought in content by design (minimax_m2_append_think)."""
    why = """vLLM 0.16 removed reasoning_content from responses and sends reasoning; others still send the old name. The
        parser works, and a client that reads the wrong name shows no thought at all, without any error."""
    example = '{"choices": [{"delta": {"reasoning_content": "Two and two."}}]}'
    instead = "Read the name this server sends, or both: delta.reasoning or delta.reasoning_content."
    versions = "reasoning_content up to vLLM 0.15 (which sends both names), reasoning from 0.16 on"
    sources = (
        "vLLM 0.33.0 vllm/entrypoints/openai/chat_completion/protocol.py",
        "vLLM pull requests 27752 and 33402",
    )
    facts = ("response-reasoning_content", "response-reasoning")

    @classmethod
    def check(cls, facts: ReplayFacts) -> Iterator[Finding]:
        for result in facts.subjects:
            if _kept_in_content(facts, result):
                yield cls._in_content(facts, result)
        recorded = facts.trace.recorded
        name = recorded.reasoning_field if recorded is not None else None
        if name is None or facts.trace.source == "trace":
            return
        other = _FIELDS.get(name, "reasoning")
        yield cls.finding(
            f"the reasoning came in the field {name}; a client that reads {other} sees null",
            hint=f"read {name} from this server",
            confidence="high",
            subject=facts.subject(),
            location=facts.location,
            evidence={"field": name, "not": other},
        )

    @classmethod
    def _in_content(cls, facts: ReplayFacts, result: Result) -> Finding:
        row = ROWS[result.parser]
        start, end = row.start[0], row.end[0]
        fills = next((name for name in facts.known_names if _fills(name, row)), None)
        mend = f"--reasoning-parser {fills} files such thoughts as reasoning" if fills else "take another parser"
        return cls.finding(
            f"{result.parser} never fills reasoning: by design the thought is in content, between {start} and {end}",
            hint=f"{mend}; else let clients cut content at {end}",
            severity="warning",
            confidence=facts.confidence,
            subject=facts.subject(result),
            location=facts.location,
            evidence=facts.evidence(result) | {"field": "content", "not": "reasoning"},
        )


def _kept_in_content(facts: ReplayFacts, result: Result) -> bool:
    row = ROWS.get(result.parser)
    if row is None or not row.keeps_thought:
        return False
    return any(marker in (facts.trace.raw or "") for marker in (*row.start, *row.end)) or (
        facts.trace.state is not None and facts.trace.state.state == "open"
    )


def _fills(name: str, row: ParserRow) -> bool:
    """A parser of the same models that does split."""
    other = ROWS.get(name)
    return other is not None and not other.keeps_thought and bool(set(other.architectures) & set(row.architectures))


@register
class ClientTraps(Rule):
    id = "RPL416"
    slug = "client-traps"
    severity = "info"
    what = """The recorded stream holds chunks that trip real clients: a first chunk with content null, reasoning and
        content in one delta, content that starts with newlines behind the thought, deltas that hold nothing."""
    why = """Clients that test for the key instead of its value take an empty answer for the end of thinking, lose one
        half of a mixed delta, or open an answer with blank lines."""
    example = '{"choices": [{"delta": {"role": "assistant", "content": null, "reasoning": "Two"}}]}'
    instead = "Test for a non-empty string in each field on its own, and strip white space at the answer's start."
    sources = (_SERVING,)

    @classmethod
    def check(cls, facts: ReplayFacts) -> Iterator[Finding]:
        recorded = facts.trace.recorded
        if recorded is None or not facts.trace.streamed:
            return
        traps = [_WORDS[key].format(count) for key, count in sorted(recorded.traps.items()) if key in _WORDS and count]
        content = recorded.content or ""
        if recorded.has_split and content.strip() and content.startswith("\n"):
            traps.append("content starts with newlines")
        if not traps:
            return
        yield cls.finding(
            f"the stream trips clients: {'; '.join(traps)}",
            hint="test each field for a non-empty string of its own, and strip the answer's start",
            confidence="high",
            subject=facts.subject(),
            location=facts.location,
            evidence={"traps": dict(sorted(recorded.traps.items()))},
        )


_WORDS = {
    "null-content": "the first chunk has content null",
    "both-fields": "{} with reasoning and content in one delta",
    "empty-delta": "{} empty",
}

RULES = (BlockReopened, OldField, ClientTraps)
