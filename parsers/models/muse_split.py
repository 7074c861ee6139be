"""A whole muse output, split at once (`extract_reasoning` of vllm/reasoning/muse_reasoning_parser.py, 0.33.0)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from ..base import Split
from .muse_spans import OpenSpans
from .muse_text import EOM, EOT, FRAMING, MESSAGE, TURN, after_break, has_call, header_in, is_space
from .muse_tools import NO_TOOLS, Header, Messages

_SELF = f"to=self{MESSAGE}"
_USER = f"to=user{MESSAGE}"


@dataclass(slots=True)
class _Message:
    """A message of a text, by the places of its header, its body and its end."""

    recipient: str | None
    begin: int
    body: int
    body_end: int
    end: int


def split_spark(text: str) -> Split:
    """Messages to nobody and oneself are reasoning, to the user and commentary content.

    Where a tool is called, content is all messages but thoughts and the developer's, headers and all.
    """
    messages = _messages(text)
    if not messages:
        return Split(None, text or None)
    reasoning = "".join(text[m.body : m.body_end] for m in messages if m.recipient in (None, "self"))
    if any(m.recipient not in NO_TOOLS and has_call(text[m.body : m.body_end]) for m in messages):
        content = "".join(text[m.begin : m.end] for m in messages if m.recipient not in (None, "self", "developer"))
    else:
        content = "".join(text[m.body : m.body_end] for m in messages if m.recipient in ("user", "commentary"))
    return Split(reasoning or None, content or None)


def _messages(text: str) -> list[_Message]:
    found: list[_Message] = []
    at = 0
    closed = True
    for part, _ in Messages().feed(text):
        if isinstance(part, Header):
            at += len(MESSAGE)
            begin = at - len(part.text)
            if found:
                found[-1].end = begin
                if not closed:
                    found[-1].body_end = begin
            found.append(_Message(part.recipient, begin, at, len(text), len(text)))
            closed = False
            continue
        if part in FRAMING and not closed:
            found[-1].body_end = at
            closed = True
        at += len(part)
    return found


def split_glimmer(text: str) -> Split:
    """Thoughts joined by line breaks; content is what is left where a tool is called, else the first answer."""
    thoughts = _closed_thoughts(_collapsed(text))
    reasoning = "\n".join(thoughts) if thoughts else None
    open_thought = _open_thought(text)
    if open_thought:
        reasoning = f"{reasoning}\n{open_thought}" if reasoning else open_thought
    rest = _without_thoughts(text)
    if has_call(rest):
        return Split(reasoning, rest or None)
    answer = text.find(_USER)
    if answer >= 0:
        begin = answer + len(_USER)
        ends = [at for at in (text.find(EOM, begin), text.find(EOT, begin)) if at >= 0]
        # Where no marker ends it, a line break at the very end is not part of it.
        end = min(ends, default=len(text) - (text.endswith("\n") and len(text) > begin))
        return Split(reasoning, text[begin:end] or None)
    return Split(reasoning, None) if _SELF in text else Split(None, text or None)


def _collapsed(text: str) -> str:
    """The text with one line break for everything from the end of a thought, or whatever ends, to the next thought."""
    kept: list[str] = []
    at = 0
    while (end := text.find(EOM, at)) >= 0 and (start := text.find(_SELF, end + len(EOM))) >= 0:
        kept += (text[at:end], "\n")
        at = start + len(_SELF)
    return "".join((*kept, text[at:]))


def _closed_thoughts(text: str) -> list[str]:
    thoughts: list[str] = []
    at = 0
    while (start := text.find(_SELF, at)) >= 0 and (end := text.find(EOM, start + len(_SELF))) >= 0:
        thoughts.append(text[start + len(_SELF) : end])
        at = end + len(EOM)
    return thoughts


def _open_thought(text: str) -> str:
    """The first thought that runs into another header or the end of the text."""
    at = 0
    while (start := text.find(_SELF, at)) >= 0:
        begin = start + len(_SELF)
        end = text.find(EOM, begin)
        header = _next_header(text, begin, end if end >= 0 else len(text))
        if header is not None or end < 0:
            return text[begin : len(text) if header is None else header]
        at = start + 1
    return ""


def _next_header(text: str, begin: int, end: int) -> int | None:
    """Where the next header before `end` starts."""
    at = begin
    while (message := text.find(MESSAGE, at, end)) >= 0:
        _, word = after_break(text[at:message])
        header = header_in(word)
        if header:
            return message - len(header)
        at = message + len(MESSAGE)
    return None


def _without_thoughts(text: str) -> str:
    """The text without thoughts that end, and of what that leaves without those that do not."""
    rest = _Collected()
    spans = OpenSpans(rest)
    at = 0
    while (start := text.find(_SELF, at)) >= 0 and (end := text.find(EOM, start + len(_SELF))) >= 0:
        spans.feed(text[at : _turn_before(text, start, at)])
        at = end + len(EOM)
    spans.feed(text[at:])
    return "".join(rest.parts) + ("" if spans.inside else spans.pending)


def _turn_before(text: str, start: int, least: int) -> int:
    """Where the assistant's turn opens right before `start`, else `start`."""
    at = start
    while at > least and is_space(text[at - 1]):
        at -= 1
    return at - len(TURN) if text.endswith(TURN, least, at) else start


class _Collected:
    """Keeps all text it is fed."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def feed(self, text: str) -> None:
        self.parts.append(text)

    def fork(self) -> Self:
        return self
