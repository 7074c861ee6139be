"""What has to hold for any output: pure functions of what was put to a parser and what came back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..checks.probes import Probe
from ..parsers.row import ParserRow
from ..parsers.run import ModeResult
from ..traces.splits import conserved, leaked, same_stripped
from .cases import Aspect, Places, empty_messages
from .question import Answer, Question, Streamed, summed


@dataclass(frozen=True, slots=True)
class Example:
    """One generated output.

    Attributes:
        question: with the streams token, 3, whole, two that hold text back, and one of random sizes.
        probe: the output, and its right split.
        places: where in its ids the thought stands; None where no end marker was written.
        tame: an output that a well-behaved model writes: one thought at most, its markers, an answer. Of others no
            split is the right one; they must not make a parser raise, nor touch another request.
        row: what is known of the parser.
    """

    question: Question
    probe: Probe
    places: Places | None
    tame: bool
    row: ParserRow


@dataclass(frozen=True, slots=True)
class Break:
    """An invariant that does not hold: what is wrong in a few words, and where it shows."""

    wrong: str
    chunking: str | None = None


Check = Callable[[Example, Answer], Break | None]


@dataclass(frozen=True, slots=True)
class Invariant:
    """One thing that has to hold.

    `wild`: for outputs that no well-behaved model writes, too. `of_split`: the split alone shows it; the others are
    questions to vLLM's own class.
    """

    name: str
    aspect: Aspect
    says: str
    check: Check
    wild: bool = False
    of_split: bool = True


def broken(example: Example, answer: Answer) -> Mapping[str, Break]:
    """The invariants that do not hold, by name; what is lost breaks `nothing-raised` alone, what is unasked none."""
    found: dict[str, Break] = {}
    if answer.unasked:
        return found
    for invariant in INVARIANTS:
        if answer.lost is not None and invariant.name != "nothing-raised":
            continue
        if example.tame or invariant.wild:
            said = invariant.check(example, answer)
            if said is not None:
                found[invariant.name] = said
    return found


def _raised(example: Example, answer: Answer) -> Break | None:
    if answer.lost is not None:
        return Break(answer.lost, example.question.streams[0].label if answer.unlost == "full" else None)
    error = answer.first_error
    where = next((mode.chunking for mode in answer.modes if mode.error is not None), None)
    return Break(f"raised {error}", where) if error is not None else None


def _right_split(example: Example, answer: Answer) -> Break | None:
    """The full split alone: streams are held against it."""
    if answer.full.error is not None:
        return None
    right = ModeResult(None, example.probe.reasoning, example.probe.content, 0)
    return None if same_stripped(answer.full, right) else Break("another split than the output's own")


def _stream_equals_full(example: Example, answer: Answer) -> Break | None:
    token = _stream(answer, "token")
    if token is None or token.result.error is not None or answer.full.error is not None:
        return None
    return None if same_stripped(token.result, answer.full) else Break("streamed otherwise than in full", "token")


def _sizes_agree(example: Example, answer: Answer) -> Break | None:
    return _agree(answer, lambda label: not label.startswith("holdback"), "other deltas, another split")


def _holdback_agrees(example: Example, answer: Answer) -> Break | None:
    return _agree(answer, lambda label: label.startswith("holdback"), "text that comes late, another split")


def _agree(answer: Answer, wanted: Callable[[str], bool], wrong: str) -> Break | None:
    token = _stream(answer, "token")
    if token is None or token.result.error is not None:
        return None
    for stream in answer.streams:
        label = stream.result.chunking or ""
        if wanted(label) and stream.result.error is None and not same_stripped(stream.result, token.result):
            return Break(wrong, label)
    return None


def _no_leak(example: Example, answer: Answer) -> Break | None:
    for mode in answer.modes:
        markers = leaked(mode, example.row) if mode.error is None else ()
        if markers:
            return Break(f"{markers[0]} reaches the client", mode.chunking)
    return None


def _nothing_lost(example: Example, answer: Answer) -> Break | None:
    if not example.row.reads_text:
        return None
    for mode in answer.modes:
        if mode.error is None and not conserved(mode, example.question.text, example.row):
            return Break("reasoning and content do not add up to the output", mode.chunking)
    return None


def _no_empty(example: Example, answer: Answer) -> Break | None:
    for stream in answer.streams:
        empty = empty_messages(example.question, stream.messages, stream.result.chunking)
        if empty:
            return Break(f"delta {empty[0]} says nothing", stream.result.chunking)
    return None


def _apart(example: Example, answer: Answer) -> Break | None:
    """A request beside another one gets what it gets alone."""
    both = answer.asked.get("beside")
    if not isinstance(both, list) or not answer.streams:
        return None
    alone = answer.streams[0]
    messages = tuple(None if one is None else (one[0], one[1]) for one in both[0])
    beside = summed("beside", messages, len(messages))
    if alone.result.error is not None or same_stripped(beside, alone.result):
        return None
    return Break("another split when a second request runs beside it", alone.result.chunking)


def _counts(example: Example, answer: Answer) -> Break | None:
    if example.places is None or answer.tokens is None or isinstance(answer.tokens, str):
        return None
    thought = example.places.begin - example.places.head
    most = example.places.begin + max(2, example.places.head)
    if thought - 2 <= answer.tokens <= most:
        return None
    return Break(f"counts {answer.tokens} of {thought} reasoning tokens")


def _content_ids(example: Example, answer: Answer) -> Break | None:
    ids = answer.asked.get("content_ids")
    if example.places is None or not isinstance(ids, list):
        return None
    wanted = list(example.question.ids[example.places.behind :])
    return None if ids == wanted else Break(f"extract_content_ids gives {len(ids)} of {len(wanted)} ids")


def _grammar_end(example: Example, answer: Answer) -> Break | None:
    ends = answer.asked.get("ends")
    if example.places is None or not isinstance(ends, list) or answer.ended is True:
        return None
    first = next((at for at, one in enumerate(ends, 1) if one is True), None)
    if first == example.places.behind:
        return None
    where = "never" if first is None else f"at token {first}"
    return Break(f"is_reasoning_end_streaming says so {where}, the thought is over at token {example.places.behind}")


def _ends_agree(example: Example, answer: Answer) -> Break | None:
    ends, ended = answer.asked.get("ends"), answer.asked.get("ended")
    if not isinstance(ends, list) or not ends or not isinstance(ended, bool) or not isinstance(answer.ended, bool):
        return None
    streamed = answer.ended or True in ends
    if streamed == ended:
        return None
    return Break(f"is_reasoning_end says {ended} of what is_reasoning_end_streaming calls {streamed}")


def _stream(answer: Answer, label: str) -> Streamed | None:
    return next((stream for stream in answer.streams if stream.result.chunking == label), None)


INVARIANTS: tuple[Invariant, ...] = (
    Invariant("nothing-raised", "raised", "no output makes it raise, hang or exit", _raised, wild=True),
    Invariant("split-is-right", "split", "the full split is the output's own", _right_split),
    Invariant("stream-equals-full", "stream", "streamed token by token as in full", _stream_equals_full),
    Invariant("chunk-sizes-agree", "delta-size", "deltas of any size give one split", _sizes_agree),
    Invariant("hold-back-agrees", "hold-back", "text that comes later than its ids changes nothing", _holdback_agrees),
    Invariant("no-marker-leaks", "stream", "no marker reaches the client", _no_leak),
    Invariant("no-text-lost", "stream", "reasoning and content add up to the output", _nothing_lost),
    Invariant("no-empty-delta", "empty-delta", "a delta with text says something or is None", _no_empty),
    Invariant(
        "instances-do-not-touch", "instances", "two requests at once do not touch", _apart, wild=True, of_split=False
    ),
    Invariant("token-counts-add-up", "token-count", "count_reasoning_tokens counts the thought", _counts),
    Invariant(
        "content-ids-agree",
        "content-ids",
        "extract_content_ids gives what stands behind the end",
        _content_ids,
        of_split=False,
    ),
    Invariant(
        "grammar-starts-in-time",
        "grammar-end",
        "is_reasoning_end_streaming turns true at the end",
        _grammar_end,
        of_split=False,
    ),
    Invariant(
        "ends-agree", "grammar-end", "is_reasoning_end and its streaming form agree", _ends_agree, of_split=False
    ),
)
