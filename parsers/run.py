"""Runs one parser over one output, in full and streamed in every chunking asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import build
from .base import ParserModel, ParserRaisedError, ParserUnsupportedError, Vocabulary
from .feed import Chunking, Deltas, Piece, Pieces, chunk, parse_chunking, recut, text_deltas, text_pieces
from .feed import pieces as decode
from .target import Target

TOKEN = Chunking("tokens")


@dataclass(frozen=True, slots=True)
class ModeResult:
    """What one mode gave: texts as the parser returned them, of a stream the sum of its deltas (None: none came)."""

    chunking: str | None
    """None: in full, not streamed."""
    reasoning: str | None
    content: str | None
    deltas: int
    """How many deltas the parser was fed; 0 in full."""
    error: str | None = None
    """The class name of what vLLM raises in this mode; the texts are None then."""


@dataclass(frozen=True, slots=True)
class ParserRun:
    """One parser's results on one output."""

    parser: str
    full: ModeResult
    stream: tuple[ModeResult, ...]
    reasoning_tokens: int | None
    """What usage would report after the full run; None where it raised."""
    unsupported: str | None = None
    """Why this parser cannot be run here."""
    error: str | None = None
    """The message of the first exception."""
    text: str = ""
    """The raw output as this parser was fed it: what reasoning, content and markers have to add up to."""
    lost: str | None = None
    """Why there is no result: the process that should have made it crashed, or ran out of time."""


class Output:
    """What a model generated, as a server would feed it to a parser; made once, fed to any number of parsers.

    Give ids where they are known: their text is then made by the tokenizer. Without ids, `text` (or the texts of
    `deltas`) is tokenized whole and is itself what the parser sees.

    Args:
        vocabulary: the model's tokenizer.
        ids: generated token ids.
        text: the output's text, used where there are no ids. With ids and with deltas that hold both, the texts of the
            deltas count as they are and nothing is decoded.
        deltas: the recorded deltas, each with text, ids or both.
        made: pieces already at hand; they count as they are.
        prompt_ids: the prompt's ids; None where the prompt is unknown.
        stop_ids: end-of-sequence ids of model and request, where the run may have ended on one.
        stop: the request's stop strings. Streamed text then lags as the server's does.
        skip_special_tokens: what the request or the generation config says; None: the server's default, true.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        ids: Sequence[int] | None = None,
        text: str | None = None,
        deltas: Sequence[tuple[str | None, Sequence[int] | None]] | None = None,
        made: Sequence[Piece] | None = None,
        prompt_ids: Sequence[int] | None = None,
        stop_ids: frozenset[int] = frozenset(),
        stop: Sequence[str] = (),
        skip_special_tokens: bool | None = None,
    ) -> None:
        recorded = None if deltas is None else _recorded(deltas)
        if recorded and ids is None and made is None and text is None and recorded.ids:
            ids = recorded.ids
        if recorded and ids is not None and text is not None and not hasattr(vocabulary, "token_text"):
            made = made or _as_given(recorded)
        self.prompt_ids = prompt_ids
        self._vocabulary = vocabulary
        self._ids = ids
        self._text = text if text is not None else recorded.text if recorded is not None else ""
        self._deltas = recorded
        self._stop_ids = stop_ids
        self._stop = tuple(text for text in stop if text)
        self._skip = skip_special_tokens is not False
        self._made: dict[bool, Pieces] = {}
        self._recorded: dict[bool, Deltas] = {}
        self._chunked: dict[tuple[bool, Chunking], Deltas] = {}
        if made is not None:
            self._made = dict.fromkeys((True, False), Pieces.of(made))

    def pieces(self, skip: bool | None = None) -> Pieces:
        """The output's pieces under a parser that sets `skip_special_tokens` to `skip`; None: the parser leaves it."""
        decided = self._skip if skip is None else skip
        if decided not in self._made:
            other = self._made.get(not decided)
            self._made[decided] = other if other is not None and self._skips_nothing() else self._make(decided)
        return self._made[decided]

    def deltas(self, chunking: Chunking, skip: bool | None = None) -> Deltas:
        """The deltas of one chunking. `recorded` of an output that was recorded without deltas is one a token."""
        decided = self._skip if skip is None else skip
        found = self.pieces(skip)
        if chunking.kind == "recorded":
            if self._deltas is not None:
                return self._as_recorded(decided, found)
            chunking = TOKEN
        if self._stop and chunking == TOKEN:
            chunking = Chunking("holdback", max(map(len, self._stop)) - 1)
        if (decided, chunking) not in self._chunked:
            self._chunked[decided, chunking] = chunk(found, chunking)
        return self._chunked[decided, chunking]

    def _skips_nothing(self) -> bool:
        """Special tokens are not told from others here: the text is given, or none is generated and the prompt has
        more than such (a stream that nothing was shown in yet may strip a blank).
        """
        if self._ids is None:
            return True
        special = self._vocabulary.special_ids
        return special.isdisjoint(self._ids) and not special.issuperset(self.prompt_ids or ())

    def _as_recorded(self, decided: bool, found: Pieces) -> Deltas:
        if decided not in self._recorded:
            recorded = self._deltas or Deltas([], [])
            self._recorded[decided] = (
                recut(found, recorded) if recorded.ids else text_deltas(self._vocabulary, recorded.texts)
            )
        return self._recorded[decided]

    def _make(self, skip: bool) -> Pieces:
        if self._ids is None:
            return text_pieces(self._vocabulary, self._text)
        return decode(
            self._vocabulary,
            self._ids,
            prompt_ids=self.prompt_ids,
            skip_special_tokens=skip,
            stop_ids=self._stop_ids,
            stop=self._stop,
        )


def run_parser(
    name: str,
    vocabulary: Vocabulary,
    kwargs: Mapping[str, Any] | None,
    output: Output | None = None,
    *,
    prompt_ids: Sequence[int] | None = None,
    ids: Sequence[int] | None = None,
    pieces: Sequence[Piece] | None = None,
    text: str | None = None,
    deltas: Sequence[tuple[str | None, Sequence[int] | None]] | None = None,
    stop_ids: frozenset[int] = frozenset(),
    stop: Sequence[str] = (),
    skip_special_tokens: bool | None = None,
    chunkings: Sequence[Chunking | str] = (TOKEN,),
    request_kwargs: Mapping[str, Any] | None = None,
    target: Target | None = None,
) -> ParserRun:
    """Put an output to a parser: in full, and streamed in each chunking. Each mode has a parser of its own.

    Args:
        name: a name the target registers.
        vocabulary: the model's tokenizer.
        kwargs: the effective chat-template kwargs.
        output: what was generated; without it, the arguments up to `skip_special_tokens` make it, as in `Output`
            (`pieces` is its `made`). One output given to many parsers is decoded once.
        chunkings: the streams to run, as `Chunking` or in the words of the command line.
        request_kwargs: the `chat_template_kwargs` the client itself sent; None: `kwargs`.
        target: the server to judge by.

    Raises:
        InputError: the target registers no such name, or a chunking is none.
    """
    given = output or Output(
        vocabulary,
        ids=ids,
        text=text,
        deltas=deltas,
        made=pieces,
        prompt_ids=prompt_ids,
        stop_ids=stop_ids,
        stop=stop,
        skip_special_tokens=skip_special_tokens,
    )
    streams = [parse_chunking(chunking) if isinstance(chunking, str) else chunking for chunking in chunkings]
    tokens: int | None = None
    fed = ""
    raised: list[str] = []

    def attempt(chunking: Chunking | None) -> ModeResult:
        nonlocal tokens, fed
        try:
            model = build(name, vocabulary, kwargs, request_kwargs=request_kwargs, target=target)
            if chunking is not None:
                return _streamed(model, given, chunking)
            found = given.pieces(model.skip_special_tokens)
            fed, ids = found.text, found.token_ids
            model.begin(given.prompt_ids, streaming=False)
            split = model.split(fed, ids)
            tokens = model.count_reasoning_tokens(ids)
        except ParserRaisedError as error:
            raised.append(str(error))
            return ModeResult(None if chunking is None else str(chunking), None, None, 0, error.exception)
        return ModeResult(None, split.reasoning, split.content, 0)

    try:
        full = attempt(None)
        stream = tuple(map(attempt, streams))
    except ParserUnsupportedError as error:
        return ParserRun(name, ModeResult(None, None, None, 0), (), None, unsupported=str(error))
    return ParserRun(name, full, stream, tokens, error=raised[0] if raised else None, text=fed)


def _streamed(model: ParserModel, output: Output, chunking: Chunking) -> ModeResult:
    deltas = output.deltas(chunking, model.skip_special_tokens)
    model.begin(output.prompt_ids, streaming=True)
    split = model.stream(deltas)
    return ModeResult(str(chunking), split.reasoning, split.content, len(deltas))


def _recorded(given: Sequence[tuple[str | None, Sequence[int] | None]]) -> Deltas:
    if isinstance(given, Deltas):
        return given
    return Deltas.of((text or "", ids or ()) for text, ids in given)


def _as_given(recorded: Deltas) -> Pieces:
    """Pieces of deltas whose texts stand: of a delta's ids the last shows its text."""
    if recorded.ends is None:
        return Pieces(recorded.texts, recorded.ids)
    return Pieces.of(_shown_by_the_last(recorded))


def _shown_by_the_last(recorded: Deltas) -> Iterator[Piece]:
    for delta in recorded:
        yield from (Piece("", token_id) for token_id in delta.ids[:-1])
        if delta.text or delta.ids:
            yield Piece(delta.text, delta.ids[-1] if delta.ids else None)
