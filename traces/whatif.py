"""One thing changed and everything else as it was: what the parser then makes of a trace it fails on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

from ..parsers import ROWS, STATE_MARKERS, ParserRow
from ..parsers.feed import Chunking, Piece, text_pieces
from ..parsers.run import TOKEN
from ..parsers.target import Target
from ..prompts.state import State, prompt_state
from .context import Context, Prepared
from .request import last_text, messages_of
from .retold import disarmed, holds, thoughtless, unmarked
from .splits import CALLS, NO_PARSER, sound
from .work import Result, Work

Kind = Literal[
    "kwargs",
    "no-effort",
    "specials",
    "version",
    "no-parser",
    "alone",
    "user-markers",
    "history",
    "start-marker",
    "end-before-call",
    "one-end",
    "forced-end",
]
"""`kwargs`: another chat-template kwarg. `no-effort`: no `reasoning_effort`. `specials`: special tokens stay in the
text. `version`: the newest modelled vLLM. `no-parser`: no reasoning parser at all. `alone`: only this turn's own part
of the prompt. `user-markers`: no markers in the users' words. `history`: earlier turns without their reasoning.
`start-marker`: the output has one in front. `end-before-call`: an end marker in front of the tool call. `one-end`: all
end markers but the last spelled so that they are none. `forced-end`: the thought cut and closed where a budget would.
"""
_ON: Mapping[str, Any] = {"thinking_mode": "enabled", "reasoning_effort": "high"}
_OFF: Mapping[str, Any] = {"thinking_mode": "disabled", "reasoning_effort": "no_think"}
RESERVE = 256
"""Tokens that the forced end leaves for the answer."""
HELD = Chunking("holdback", 12)
"""Text that lags its ids as much as a stop string of that length makes it lag."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """One change and its result.

    `change` is the change as data: kwargs of the request, or a version. `effective` says whether the server alone, the
    client alone or both can make it. `same_prompt`: the template writes the same prompt with it; None where no template
    is known. `sound`: in the modes of a plain server nothing is wrong; `right`: in no chunking that is asked for.
    """

    kind: Kind
    result: Result
    change: Mapping[str, Any] = field(default_factory=dict)
    sides: tuple[Literal["server", "client"], ...] = ()
    same_prompt: bool | None = True
    sound: bool = False
    right: bool = False


@lru_cache(maxsize=16)
def state_of(prompt: str | None, last_message: str) -> tuple[State, int] | None:
    """The state a prompt leaves the model in, and the character where this turn's own part of it begins.

    That is behind the request's last message; where it is unknown, at the last turn boundary.
    """
    if prompt is None:
        return None
    begin = _behind(prompt, last_message)
    if begin is None:
        begin = max(0, *(prompt.rfind(token) for token in _BOUNDARIES))
    return prompt_state(prompt, begin), begin


def _behind(prompt: str, text: str) -> int | None:
    """The character behind the last place where a text stands, but not inside a marker: `hi` stands in `<think>`."""
    at = prompt.rfind(text) if text else -1
    while at >= 0:
        end = at + len(text)
        torn = (place for marker in _MARKERS for place in _places(prompt, marker, at - len(marker) + 1, end))
        if not any(place < at or end < place + len(marker) for marker, place in torn):
            return end
        at = prompt.rfind(text, 0, end - 1)
    return None


def _places(prompt: str, marker: str, begin: int, stop: int) -> Iterator[tuple[str, int]]:
    """Where a marker starts between two characters."""
    at = prompt.find(marker, max(0, begin))
    while 0 <= at < stop:
        yield marker, at
        at = prompt.find(marker, at + 1)


_BOUNDARIES = frozenset(token for row in ROWS.values() for token in row.turn_boundaries)
_MARKERS = tuple({marker for pair in STATE_MARKERS for marker in (pair.start, pair.end)})


def what_ifs(work: Work, context: Context, result: Result) -> tuple[WhatIf, ...]:
    """What the changes that may explain or mend a failure lead to; each is run.

    Args:
        work: the trace, and who runs parsers on it.
        context: renders the prompts of changed requests.
        result: what the parser did without any change.
    """
    if result.parser == NO_PARSER or result.crashed:
        return ()
    row = ROWS.get(result.parser)
    return () if row is None else tuple(_Changes(work, context, result, row).all())


class _Changes:
    def __init__(self, work: Work, context: Context, result: Result, row: ParserRow) -> None:
        self._work = work
        self._context = context
        self._result = result
        self._row = row
        self._prepared = work.prepared
        self._state = state_of(work.prepared.prompt, last_text(work.prepared.trace.request))

    def all(self) -> Iterator[WhatIf]:
        if not self._result.failing and self._result.matches_recorded is not False:
            yield from self._forced_end()
            return
        yield from self._switches()
        yield from self._version()
        if self._result.matches_recorded is False:
            yield self._made("no-parser", self._work.run(NO_PARSER))
        if not self._result.failing:
            return
        yield from self._specials()
        yield from self._prompts()
        yield from self._outputs()
        yield from self._forced_end()

    def _switches(self) -> Iterator[WhatIf]:
        """The request without its effort, and with each switch of the parser the other way."""
        request = self._prepared.trace.request
        if request.get("reasoning_effort") is not None:
            yield from self._asked("no-effort", {**request, "reasoning_effort": None}, {"reasoning_effort": None})
        for change in self._turned():
            own = request.get("chat_template_kwargs")
            asked = {**request, "chat_template_kwargs": {**(own if isinstance(own, dict) else {}), **change}}
            yield from self._asked("kwargs", asked, change)

    def _turned(self) -> Iterator[Mapping[str, Any]]:
        names = [kwarg.name for kwarg in self._row.kwargs if kwarg.switches_thinking]
        names.sort(key=lambda name: ("enable_thinking", "thinking").index(name) if name.endswith("thinking") else 2)
        state = self._state[0].state if self._state is not None else None
        for name in names[:2]:
            for table, default, wanted in ((_ON, True, True), (_OFF, False, False)):
                value = table.get(name, default)
                # A prompt that is open is no place to switch the parser off, and the other way round.
                at_odds = state == "open" if not wanted else state in ("closed", "closed-bare")
                if not at_odds and self._prepared.kwargs.get(name) != value:
                    yield {name: value}

    def _asked(self, kind: Kind, request: Mapping[str, Any], change: Mapping[str, Any]) -> Iterator[WhatIf]:
        """The request asked otherwise by the client, and where that comes to the same by the server's defaults."""
        own, kwargs = self._context.kwargs_of(request)
        if dict(kwargs) == dict(self._prepared.kwargs) and dict(own) == dict(self._prepared.request_kwargs):
            return
        sides: tuple[Literal["server", "client"], ...] = ("client",)
        if kind == "kwargs":
            by_server = self._context.kwargs_of(self._prepared.trace.request, server=change)[1]
            sides = ("server", "client") if by_server == kwargs else sides
        before = self._context.rendered(self._prepared.trace.request, self._prepared.kwargs)
        after = self._context.rendered(request, kwargs)
        changed = replace(self._prepared, kwargs=kwargs, request_kwargs=own)
        result = self._mended(changed)
        yield self._made(kind, result, change, sides, None if before is None or after is None else before == after)

    def _version(self) -> Iterator[WhatIf]:
        newest, target = Target(), self._work.target
        if self._work.builtin and target.product == newest.product and target.version < newest.version:
            result = self._mended(self._prepared, newest)
            yield self._made("version", result, {"target": str(newest)}, ("server",))

    def _specials(self) -> Iterator[WhatIf]:
        prepared = self._prepared
        vocabulary = prepared.vocabulary
        hidden = any(
            marker.strip() not in vocabulary.decode(vocabulary.encode(marker), skip_special_tokens=True)
            for marker in (*self._row.start, *self._row.end)
        )
        skips = self._row.skip_special_tokens is not False and prepared.made_of["skip_special_tokens"] is not False
        if hidden and skips:
            result = self._mended(prepared.changed(skip_special_tokens=False))
            yield self._made("specials", result, {"skip_special_tokens": False}, ("client",))

    def _prompts(self) -> Iterator[WhatIf]:
        prompt = self._prepared.prompt
        if prompt is None or self._state is None:
            return
        begin = self._state[1]
        markers = [*self._row.start, *self._row.end]
        if any(marker.strip() in prompt[:begin] for marker in markers):
            for kind, text in (
                ("user-markers", self._without_user_markers(prompt, markers)),
                ("history", self._without_reasoning()),
                ("alone", prompt[begin:]),
            ):
                if text is not None and text != prompt:
                    yield self._tried(kind, self._prepared.changed(prompt=text))  # type: ignore[arg-type]

    def _without_user_markers(self, prompt: str, markers: Sequence[str]) -> str | None:
        request = self._prepared.trace.request
        messages = messages_of(request)
        typed = [message for message in messages if message.get("role") == "user" and holds(message, markers)]
        if not typed:
            return None
        told = [unmarked(message, markers) if message in typed else message for message in messages]
        rendered = self._context.rendered(request, self._prepared.kwargs, told)
        if rendered is not None:
            return rendered
        for message in typed:
            text = message.get("content")
            if isinstance(text, str):
                prompt = prompt.replace(text, str(unmarked(message, markers)["content"]))
        return prompt

    def _without_reasoning(self) -> str | None:
        request = self._prepared.trace.request
        messages = messages_of(request)
        told = [thoughtless(message, self._row) for message in messages]
        return None if told == messages else self._context.rendered(request, self._prepared.kwargs, told)

    def _outputs(self) -> Iterator[WhatIf]:
        found = self._prepared.output.pieces(self._row.skip_special_tokens)
        raw = "".join(piece.text for piece in found)
        start, end = next(iter(self._row.start), None), next(iter(self._row.end), None)
        state = self._state[0].state if self._state is not None else None
        if start is not None and start not in raw and state in ("open", None):
            yield self._fed("start-marker", [*self._pieces(start), *found])
        if end is None:
            return
        places = [raw.find(mark) for mark in (*self._row.tool_markers, *CALLS) if mark in raw]
        if self._result.call_swallowed and places:
            before, after = _cut(found, min(places))
            yield self._fed("end-before-call", [*before, *self._pieces(end), *after])
        if raw.count(end) > 1:
            last = raw.rfind(end)
            before, after = _cut(found, last)
            text = "".join(piece.text for piece in before).replace(end, disarmed(end))
            yield self._fed("one-end", [*self._pieces(text), *after])

    def _forced_end(self) -> Iterator[WhatIf]:
        """The thought cut where a budget that leaves `RESERVE` tokens would have cut it."""
        end = next(iter(self._row.end), None)
        if self._prepared.trace.finish_reason != "length" or end is None:
            return
        full = self._result.full
        if not (full.reasoning or "").strip() or (full.content or "").strip():
            return
        found = self._prepared.output.pieces(self._row.skip_special_tokens)
        budget = len(found) - RESERVE if len(found) > 2 * RESERVE else len(found) // 2
        if budget:
            cut = self._fed("forced-end", [*found[:budget], *self._pieces(end), *self._pieces("\n\n42")])
            yield replace(cut, change={"thinking_token_budget": budget})

    def _pieces(self, text: str) -> Sequence[Piece]:
        return text_pieces(self._prepared.vocabulary, text)

    def _fed(self, kind: Kind, pieces: Sequence[Piece]) -> WhatIf:
        made = self._prepared.changed(ids=None, text=None, deltas=None, made=list(pieces))
        return self._tried(kind, replace(made, trace=replace(made.trace, deltas=())))

    def _mended(self, changed: Prepared, target: Target | None = None) -> Result:
        """A mend has to hold in every chunking, late text included."""
        chunkings = tuple(dict.fromkeys((*self._work.chunkings, HELD)))
        return self._work.on(changed, chunkings=chunkings, target=target).run(self._result.parser)

    def _tried(self, kind: Kind, changed: Prepared) -> WhatIf:
        """A proof: only the modes of a plain server are run."""
        return self._made(kind, self._work.on(changed, chunkings=(TOKEN,)).run(self._result.parser))

    def _made(
        self,
        kind: Kind,
        result: Result,
        change: Mapping[str, Any] | None = None,
        sides: tuple[Literal["server", "client"], ...] = (),
        same_prompt: bool | None = True,
    ) -> WhatIf:
        finish = self._prepared.trace.finish_reason
        ran = result.status in ("ok", "suspect")
        asked = [mode for mode in result.modes if mode.chunking != str(HELD) or HELD in self._work.chunkings]
        return WhatIf(
            kind,
            result,
            change or {},
            sides,
            same_prompt,
            sound=ran and sound(result.real_modes, result.raw, ROWS.get(result.parser), finish),
            right=ran and sound(asked, result.raw, ROWS.get(result.parser), finish),
        )


def _cut(found: Sequence[Piece], at: int) -> tuple[list[Piece], list[Piece]]:
    """The pieces before and from a character on; one that holds it is cut in two, its id going with the rest."""
    passed = 0
    for number, piece in enumerate(found):
        if passed + len(piece.text) > at:
            inside = at - passed
            head = [Piece(piece.text[:inside], None)] if inside else []
            return [*found[:number], *head], [Piece(piece.text[inside:], piece.id), *found[number + 1 :]]
        passed += len(piece.text)
    return list(found), []
