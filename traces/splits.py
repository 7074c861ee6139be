"""What one parser made of one trace, and whether that holds together without knowing the right answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..parsers import ROWS, STATE_MARKERS, ParserRow
from ..parsers.markers import holds_marker
from ..parsers.run import ModeResult, ParserRun
from .trace import Recorded

Status = Literal["ok", "suspect", "unsupported", "error"]

ModeWord = Literal["ok", "raises", "leak", "lost", "no call", "no answer", "differs"]

NO_PARSER = "none"
"""The name for a server without a reasoning parser."""
CHECKS = ("stream_equals_full", "chunk_invariant", "no_marker_leak", "text_conserved", "answered")
HARMONY = ("<|channel|>", "<|message|>")
"""What an output in harmony channels always holds."""
CALLS = ("<tool_call>", "<function=", "[TOOL_CALLS]", "<|tool_calls_section_begin|>", "<|tool_call>")
"""What opens a tool call, whichever family it is of."""


@dataclass(frozen=True, slots=True)
class Checks:
    """Label-free checks; None where one cannot be made."""

    stream_equals_full: bool | None
    chunk_invariant: bool | None
    no_marker_leak: bool | None
    text_conserved: bool | None
    answered: bool | None

    def as_json(self) -> dict[str, bool | None]:
        return {name: getattr(self, name) for name in CHECKS}

    @property
    def failed(self) -> tuple[str, ...]:
        return tuple(name for name in CHECKS if getattr(self, name) is False)


def check(
    run: ParserRun,
    *,
    primary: str,
    raw: str,
    finish_reason: str | None,
    tool_called: bool,
) -> Checks:
    """The checks of one parser's results on one output.

    Args:
        run: the results.
        primary: the chunking that stands for streaming: `recorded` where the trace has deltas, else `token`.
        raw: the text that was fed.
        finish_reason: why the run ended, None where unknown.
        tool_called: the server returned a tool call.
    """
    row = ROWS.get(run.parser)
    reads_text = row is None or row.reads_text
    modes = [mode for mode in (run.full, *run.stream) if mode.error is None]
    streams = [mode for mode in run.stream if mode.error is None]
    different = list({(mode.reasoning, mode.content): mode for mode in modes}.values())
    main = next((mode for mode in streams if mode.chunking == primary), None)
    called = tool_called or has_tool_call(raw, row)
    return Checks(
        stream_equals_full=same(main, run.full) if main is not None and run.full.error is None else None,
        chunk_invariant=all(same(streams[0], mode) for mode in streams[1:]) if len(streams) > 1 else None,
        no_marker_leak=not any(leaked(mode, row) for mode in different) if modes else None,
        text_conserved=all(conserved(mode, raw, row) for mode in different) if modes and reads_text else None,
        answered=_answered(modes, finish_reason, called),
    )


def same(one: ModeResult, other: ModeResult) -> bool:
    """Equal splits, empty and null being one."""
    return (one.reasoning or "") == (other.reasoning or "") and (one.content or "") == (other.content or "")


def leaked(mode: ModeResult, row: ParserRow | None) -> tuple[str, ...]:
    """The parser's own markers that stand in reasoning or content; none of one that writes them itself.

    Without a parser every known marker counts.
    """
    if row is not None and row.keeps_thought:
        return ()
    text = f"{mode.reasoning or ''}\0{mode.content or ''}"
    return tuple(marker for marker in _markers(row) if marker in text)


def foreign_markers(mode: ModeResult) -> bool:
    """A marker of any family stands in reasoning or content: whoever reads that sees it."""
    text = f"{mode.reasoning or ''}\0{mode.content or ''}"
    return holds_marker(text) or all(part in text for part in HARMONY)


def sound(modes: Iterable[ModeResult], raw: str, row: ParserRow | None, finish_reason: str | None) -> bool:
    """Nothing is wrong with these modes of one run: no exception, no marker of any family, no loss, one split, an
    answer where the run ended with `stop`.
    """
    found = list(modes)
    called = has_tool_call(raw, row)
    return (
        bool(found)
        and all(mode_word(mode, raw, row, finish_reason, called=called) == "ok" for mode in found)
        and all(same(found[0], mode) for mode in found[1:])
    )


def mode_word(
    mode: ModeResult,
    raw: str,
    row: ParserRow | None,
    finish_reason: str | None,
    *,
    called: bool,
    right: ModeResult | None = None,
) -> ModeWord:
    """What is wrong with one mode, in a word.

    Args:
        mode: the split.
        raw: the text that was fed.
        row: the parser's, None without a parser.
        finish_reason: why the run ended.
        called: a tool call stands in the output.
        right: the right split, where one is known.
    """
    if mode.error is not None:
        return "raises"
    if leaked(mode, row) or foreign_markers(mode):
        return "leak"
    if not conserved(mode, raw, row):
        return "lost"
    if call_in_reasoning(mode, row, finish_reason):
        return "no call"
    if not (mode.content or "").strip() and finish_reason == "stop" and not called:
        return "no answer"
    return "differs" if right is not None and not same_stripped(mode, right) else "ok"


def same_stripped(one: ModeResult, other: ModeResult) -> bool:
    """Equal splits after stripping white space at both ends, empty and null being one."""
    return all(
        (ours or "").strip() == (theirs or "").strip()
        for ours, theirs in ((one.reasoning, other.reasoning), (one.content, other.content))
    )


def conserved(mode: ModeResult, raw: str, row: ParserRow | None) -> bool:
    """Reasoning and content add up to the output, white space, markers and what the row may strip or add aside.

    Where the parser goes by ids alone, or takes tool calls out and there is one, the text shows nothing.
    """
    if row is not None and (not row.reads_text or (row.takes_calls and has_tool_call(raw, row))):
        return True
    parts = (mode.reasoning or "") + (mode.content or "")
    ours, theirs = _without_markers(parts, row), _without_markers(raw, row)
    return ours == theirs or "".join(ours.split()) == "".join(theirs.split())


def has_tool_call(text: str, row: ParserRow | None) -> bool:
    """An opening of a tool call stands in the text: of this parser's dialect, or of a common one."""
    return any(marker in text for marker in (*(row.tool_markers if row else ()), *CALLS))


def call_in_reasoning(mode: ModeResult, row: ParserRow | None, finish_reason: str | None) -> bool:
    """A tool call was filed as reasoning: it stands there, none in content, and nothing else was the answer."""
    if not has_tool_call(mode.reasoning or "", row) or has_tool_call(mode.content or "", row):
        return False
    return not (mode.content or "").strip() or finish_reason == "tool_calls"


def matches(recorded: Recorded | None, mode: ModeResult, row: ParserRow | None, *, stripped: bool) -> bool | None:
    """Whether the split is what the server returned; None where nothing was recorded, or the parser raised.

    Of a recording whose tool calls were parsed, only what stands before the raw call is compared.
    """
    if recorded is None or (recorded.reasoning is None and recorded.content is None) or mode.error is not None:
        return None
    content = mode.content or ""
    if recorded.tool_calls:
        places = [content.find(mark) for mark in (*(row.tool_markers if row else ()), *CALLS) if mark in content]
        content = content[: min(places)] if places else content
    pairs = (((recorded.reasoning or ""), (mode.reasoning or "")), ((recorded.content or ""), content))
    if stripped or recorded.tool_calls:
        return all(ours.strip() == theirs.strip() for ours, theirs in pairs)
    return all(ours == theirs for ours, theirs in pairs)


def without_parser(raw: str, chunkings: Iterable[str]) -> ParserRun:
    """What a server without a reasoning parser gives: the output, as content."""
    content = raw or None
    stream = tuple(ModeResult(chunking, None, content, 0) for chunking in chunkings)
    return ParserRun(NO_PARSER, ModeResult(None, None, content, 0), stream, 0, text=raw)


def mode_json(mode: ModeResult) -> dict[str, Any]:
    """One mode as the JSON report of `replay` shows it."""
    split: Mapping[str, Any] = {"reasoning": mode.reasoning, "content": mode.content}
    if mode.error is not None:
        split = {"error": mode.error}
    if mode.chunking is None:
        return dict(split)
    return {"chunking": mode.chunking, **split, "deltas": mode.deltas}


def _answered(modes: list[ModeResult], finish_reason: str | None, called: bool) -> bool | None:
    if not modes:
        return None
    if all((mode.content or "").strip() for mode in modes) or called:
        return True
    return None if finish_reason is None else finish_reason != "stop"


def _markers(row: ParserRow | None) -> tuple[str, ...]:
    if row is None:
        return tuple(text for pair in STATE_MARKERS for text in (pair.start, pair.end))
    return (*row.start, *row.end)


def _without_markers(text: str, row: ParserRow | None) -> str:
    texts = (*_markers(row), *(row.stripped if row else ()), *(row.added if row else ()))
    # Longest first, so that no text is torn by one that it contains; white space last, since some hold white space.
    for one in sorted({one for one in texts if one.strip()}, key=len, reverse=True):
        text = text.replace(one, "")
    return text
