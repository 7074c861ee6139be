"""The named cases: what every reviewer of a reasoning parser asks, with what must come of it and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from ..checks.probes import ANSWER, SECOND_THOUGHT, THOUGHT, Cell, Probe, core_probe, stress_probes
from ..checks.trial import symptoms_of
from ..parsers.run import ModeResult
from .feeding import CHUNKINGS, HOLDBACKS, TOKEN, Fed, Feeder
from .question import Answer, Question, Stream

Aspect = Literal[
    "split",
    "stream",
    "delta-size",
    "hold-back",
    "truncated",
    "thinking-off",
    "prompt",
    "tool-call",
    "token-count",
    "content-ids",
    "grammar-end",
    "adjust-request",
    "empty-delta",
    "instances",
    "state",
    "cost",
    "raised",
]
"""What of the contract a case or an invariant is about; what goes wrong in one aspect is one defect."""

CLASS_ONLY: tuple[Aspect, ...] = ("content-ids", "grammar-end", "adjust-request")
"""Aspects that only vLLM's own class can be asked about."""

Mode = Literal["full", "stream", "prompt", "ids"]
"""`full` and `stream` as the client asks; `prompt`: a question about the prompt; `ids`: one about an output's ids."""


@dataclass(frozen=True, slots=True)
class NamedCase:
    """One thing to look at.

    Attributes:
        name: what it is called in reports and in written tests.
        aspect: of the contract.
        mode: of the request.
        question: what is put to the parser.
        chunking: the label of the stream that is judged; None where none is.
        probe: the output and its right split; of a case in mode `prompt` or `ids`, the output alone.
        expected: what must come, JSON-valued.
        why: in a sentence.
        weighs: people send such a request: a failure counts.
    """

    name: str
    aspect: Aspect
    mode: Mode
    question: Question
    probe: Probe
    expected: Any
    why: str
    chunking: str | None = None
    weighs: bool = True

    @property
    def cell(self) -> Cell:
        return self.question.cell


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a case: `got`, JSON-valued as `expected`, and in a few words what is `wrong`; None where nothing.

    `lost` and `unasked` are the answer's.
    """

    case: NamedCase
    got: Any
    wrong: str | None
    messages: tuple[Any, ...] = ()
    lost: str | None = None
    unasked: bool = False

    @property
    def ok(self) -> bool:
        return self.wrong is None and self.lost is None


def named_cases(feeder: Feeder) -> Iterator[NamedCase]:
    """All of them: the whole list on one prompt of each kind, the split and `is_reasoning_end` on every prompt.

    Raises:
        ParserUnsupportedError: the parser cannot be run here.
    """
    setting = feeder.setting
    leads = {id(cell) for cell in leading(setting.cells)}
    for cell in setting.cells:
        yield from _about_prompt(feeder, cell)
        if id(cell) not in leads:
            probe = core_probe(cell, setting.thinking)
            if probe is not None:
                yield from _both(feeder, cell, probe, _core_name(cell), _core_aspect(cell), _core_why(cell))
            continue
        yield from _whole_list(feeder, cell)


def leading(cells: Iterable[Cell]) -> list[Cell]:
    """One prompt of each kind: of those that people send in a plain chat the first, else the first there is."""
    kept: dict[tuple[str, bool], Cell] = {}
    for cell in sorted(cells, key=lambda cell: (not cell.weighs, cell.conversation != "single_turn")):
        kept.setdefault((cell.state, cell.thinks), cell)
    return list(kept.values())


def judged(case: NamedCase, answer: Answer, markers: tuple[str, ...]) -> Outcome:
    """What an answer says of a case.

    Args:
        case: what was put to the parser.
        answer: what came.
        markers: texts that must not reach a client.
    """
    if answer.lost is not None and answer.unlost != case.mode:
        return Outcome(case, None, None, lost=answer.lost, unasked=answer.unasked)
    if case.mode in ("full", "stream"):
        stream = next((one for one in answer.streams if one.result.chunking == case.chunking), None)
        result = answer.full if stream is None else stream.result
        messages = () if stream is None else stream.messages
        return Outcome(case, _split(result, answer, case), _wrong_split(case, result, stream, markers), messages)
    got = _value(case, answer)
    raised = isinstance(got, dict) and "error" in got
    wrong = (
        f"raised {got['error']}: {got['message']}" if raised else None if got == case.expected else _differs(case, got)
    )
    return Outcome(case, got, wrong)


def opening(feeder: Feeder, cell: Cell) -> str:
    """What the model writes first when it thinks behind this prompt."""
    return "" if cell.state == "open" else feeder.setting.thinking.start or ""


def _whole_list(feeder: Feeder, cell: Cell) -> Iterator[NamedCase]:
    thinking = feeder.setting.thinking
    core = core_probe(cell, thinking)
    if core is None:
        return
    yield from _both(feeder, cell, core, _core_name(cell), _core_aspect(cell), _core_why(cell))
    nothing = Probe("empty", "", None, None)
    yield from _both(feeder, cell, nothing, "empty-output", "split", "a run may end before its first token")
    if not cell.thinks or thinking.start is None or thinking.end is None or thinking.harmony:
        return
    stress = {probe.name: probe for probe in stress_probes(cell, thinking, feeder.setting.call)}
    cut = stress["cut-off-thought"]
    yield from _both(feeder, cell, cut, _truncated(cell), "truncated", "a thought that was cut is a thought")
    yield from _both(feeder, cell, stress["empty-thought"], "empty-thought", "split", "nothing was thought: an answer")
    start, end = thinking.start, f"{thinking.end}{thinking.after_end}"
    inner = f"{THOUGHT} {start}{SECOND_THOUGHT}"
    nested = Probe("nested", f"{opening(feeder, cell)}{inner}{end}{ANSWER}", inner, ANSWER)
    yield from _both(feeder, cell, nested, "nested", "split", "a start marker inside a thought opens nothing new")
    if feeder.setting.call is not None:
        call = stress["calls-a-tool-while-thinking"]
        yield from _both(feeder, cell, call, "tool-call-ends-thinking", "tool-call", _CALL_WHY)
    yield from _cuts(feeder, cell, core)
    yield from _about_ids(feeder, cell, core)


def _both(feeder: Feeder, cell: Cell, probe: Probe, name: str, aspect: Aspect, why: str) -> Iterator[NamedCase]:
    """The same output in full and at one token a delta."""
    # Harmony's end of a turn is a token of its format, and no answer is that alone.
    bare = not probe.text and feeder.setting.thinking.harmony
    fed = feeder.fed(cell, probe.text, finished=aspect != "truncated" and not bare)
    question = fed.question([fed.stream(TOKEN)] if len(fed.shown) else [])
    expected = {"reasoning": probe.reasoning, "content": probe.content}
    for mode, chunking in (("full", None), ("stream", "token")):
        if mode == "stream" and not question.streams:
            continue
        yield NamedCase(name, aspect, mode, question, probe, expected, why, chunking, cell.weighs)  # type: ignore[arg-type]


def _cuts(feeder: Feeder, cell: Cell, probe: Probe) -> Iterator[NamedCase]:
    """The same output in larger deltas, with text held back, and cut where it hurts."""
    fed = feeder.fed(cell, probe.text)
    expected = {"reasoning": probe.reasoning, "content": probe.content}

    def case(name: str, aspect: Aspect, stream: Stream, why: str) -> NamedCase:
        return NamedCase(
            name, aspect, "stream", fed.question([stream]), probe, expected, why, stream.label, cell.weighs
        )

    for chunking in CHUNKINGS[1:]:
        yield case(f"deltas-of-{chunking}", "delta-size", fed.stream(chunking), _SIZES_WHY)
    for chunking in HOLDBACKS:
        yield case(f"text-held-back-{chunking.number}", "hold-back", fed.stream(chunking), _HELD_WHY)
    yield from (case(*made) for made in _marked(feeder, cell, probe, fed))


def _marked(feeder: Feeder, cell: Cell, probe: Probe, fed: Fed) -> Iterator[tuple[str, Aspect, Stream, str]]:
    thinking = feeder.setting.thinking
    start, end = thinking.start or "", thinking.end or ""
    head = len(opening(feeder, cell))
    at = probe.text.index(end, head + len(THOUGHT) - 1)
    begin, behind = fed.token_at(at), fed.token_at(at + len(end))
    first = [fed.token_at(head)] if head else []
    if head:
        yield "only-the-start-marker", "stream", fed.cut("start alone", [*first, begin]), _ALONE_WHY
        yield (
            "start-marker-and-text",
            "delta-size",
            fed.cut("start and text", [first[0] + 2, begin]),
            f"{start} {_TEXT_WHY}",
        )
    yield "only-the-end-marker", "stream", fed.cut("end alone", [*first, begin, behind]), _ALONE_WHY
    if behind - begin > 1:
        yield "end-marker-over-two-deltas", "stream", fed.cut("end in two", [*first, begin + 1]), _TWO_WHY
    yield "end-marker-over-two-texts", "hold-back", _torn(fed, first, at + len(end) // 2, behind), _HELD_WHY
    around = fed.cut("text around end", [*first, max(1, begin - 1), min(behind + 1, len(fed.shown))])
    yield "text-before-and-after-the-end-marker", "delta-size", around, f"{end} {_TEXT_WHY}"


def _torn(fed: Fed, first: list[int], character: int, tokens: int) -> Stream:
    """The ids up to a token with the text up to a character before its end, then the rest; `first` is cut off."""
    shown, ids = fed.shown, fed.shown.token_ids
    hidden = len(fed.plain.text) - len(shown.text)
    at, begin = max(0, character - hidden), first[0] if first else 0
    lead = "".join(shown.texts[:begin])
    deltas = [(lead, tuple(ids[:begin]))] if first else []
    deltas += [(shown.text[len(lead) : at], tuple(ids[begin:tokens])), (shown.text[at:], tuple(ids[tokens:]))]
    return Stream("end in two texts", tuple(deltas))


def _about_prompt(feeder: Feeder, cell: Cell) -> Iterator[NamedCase]:
    """`is_reasoning_end` before anything is generated, inside a thought, and behind it."""
    thinking = feeder.setting.thinking
    if cell.unclear or thinking.harmony:
        return
    nothing = Probe("prompt", "", None, None)
    question = feeder.fed(cell, "", finished=False).unsplit()
    why = _PROMPT_WHY["thinks" if cell.thinks else "off" if cell.state == "none" else "closed"]
    yield NamedCase(
        "is-reasoning-end-before", "prompt", "prompt", question, nothing, not cell.thinks, why, None, cell.weighs
    )
    if not cell.thinks or thinking.start is None or thinking.end is None:
        return
    inside = f"{opening(feeder, cell)}{THOUGHT}"
    over = f"{inside}{thinking.end}"
    answering = f"{over}{thinking.after_end}{ANSWER}"
    for name, text, expected in (("inside", inside, False), ("after", over, True), ("answering", answering, True)):
        question = feeder.fed(cell, text, finished=False).unsplit("ended")
        probe = Probe(name, text, None, None)
        yield NamedCase(
            f"is-reasoning-end-{name}", "prompt", "ids", question, probe, expected, _PROMPT_WHY[name], None, cell.weighs
        )


def _about_ids(feeder: Feeder, cell: Cell, probe: Probe) -> Iterator[NamedCase]:
    """What is asked of an output's ids: where the grammar begins, what the answer is, how much was thought."""
    fed = feeder.fed(cell, probe.text)
    question = fed.question([fed.stream(TOKEN)], ("content_ids", "ends", "adjusted_twice"))
    at = Places.of(feeder, fed, probe)
    ids = list(question.ids)

    def case(name: str, aspect: Aspect, expected: Any, why: str, mode: Mode = "ids") -> NamedCase:
        return NamedCase(name, aspect, mode, question, probe, expected, why, None, cell.weighs)

    if feeder.setting.row.family not in _UNIFIED:
        yield case(
            "extract-content-ids", "content-ids", ids[at.behind :], "the ids behind the end marker are the answer's"
        )
    yield case("grammar-starts-behind-the-thought", "grammar-end", at.behind, _GRAMMAR_WHY)
    # Markers may count or not, and a token that is shared with one.
    count = [max(0, at.begin - at.head - 2), at.begin + max(2, at.head)]
    yield case("count-reasoning-tokens", "token-count", count, "usage reports what was thought")
    yield case("adjust-request-twice", "adjust-request", True, "a request is handed back, and the same one each time")
    alone = fed.cut("markers alone", [at.head, at.begin, at.behind])
    yield NamedCase(
        "no-empty-delta",
        "empty-delta",
        "stream",
        fed.question([alone]),
        probe,
        {"reasoning": probe.reasoning, "content": probe.content},
        "a delta that says nothing is None",
        alone.label,
        cell.weighs,
    )


@dataclass(frozen=True, slots=True)
class Places:
    """Where in an output the thought begins, where its end marker does, and where that ends: in tokens."""

    head: int
    begin: int
    behind: int

    @classmethod
    def of(cls, feeder: Feeder, fed: Fed, probe: Probe) -> Places:
        """Of an output that holds one thought and its end."""
        head = len(opening(feeder, fed.cell))
        end = feeder.setting.end_marker
        at = probe.text.index(end, head)
        return cls(fed.token_at(head), fed.token_at(at), fed.token_at(at + len(end)))


def empty_messages(question: Question, messages: Iterable[Any], chunking: str | None) -> list[int]:
    """Deltas of which nothing is told although they hold text: numbers of their places, from 1.

    A delta without text is passed on as it is by the server itself, once a thought is over.
    """
    stream = next((one for one in question.streams if one.label == chunking), None)
    deltas = stream.deltas if stream is not None else ()
    pairs = enumerate(zip(deltas, messages, strict=False), 1)
    return [at for at, ((text, _), said) in pairs if text and said is not None and not said[0] and not said[1]]


def _split(result: ModeResult, answer: Answer, case: NamedCase) -> Any:
    if result.error is not None:
        message = (
            answer.raised
            if case.chunking is None
            else next((one.message for one in answer.streams if one.result.chunking == case.chunking), "")
        )
        return {"error": result.error, "message": message}
    return {"reasoning": result.reasoning, "content": result.content}


def _wrong_split(case: NamedCase, result: ModeResult, stream: Any, markers: tuple[str, ...]) -> str | None:
    if result.error is not None:
        return "raised"
    if case.aspect == "empty-delta":
        empty = empty_messages(case.question, stream.messages, case.chunking) if stream is not None else []
        return f"delta {empty[0]} says nothing" if empty else None
    probe = case.probe
    if case.name == "nested":
        texts = (result.reasoning, result.content, probe.reasoning, probe.content)
        plain = [_without(text, markers) for text in texts]
        return None if plain[:2] == plain[2:] else "text-lost" if len(plain[0]) < len(plain[2]) else "split-wrong"
    found = symptoms_of(result, probe, markers)
    return ", ".join(found) or None


def _without(text: str | None, markers: tuple[str, ...]) -> str:
    text = text or ""
    for marker in markers:
        text = text.replace(marker, "")
    return "".join(text.split())


def _value(case: NamedCase, answer: Answer) -> Any:
    if answer.unbuilt is not None:
        name, _, message = answer.unbuilt.partition(": ")
        return {"error": name, "message": message}
    if case.name == "is-reasoning-end-before":
        return answer.ended
    if case.aspect == "prompt":
        return answer.asked.get("ended")
    if case.aspect == "content-ids":
        return answer.asked.get("content_ids")
    if case.aspect == "grammar-end":
        ends = answer.asked.get("ends")
        if not isinstance(ends, list):
            return ends
        odd = next((one for one in ends if not isinstance(one, bool)), True)
        return odd if not isinstance(odd, bool) else next((at for at, one in enumerate(ends, 1) if one), None)
    if case.aspect == "token-count":
        return _counted(case, answer)
    asked = answer.asked.get("adjusted_twice") or {}
    return asked if "error" in asked else asked.get("given") and asked.get("same")


def _counted(case: NamedCase, answer: Answer) -> Any:
    """What is expected where the count fits, or where this vLLM counts nothing (before 0.28)."""
    least, most = case.expected
    fits = answer.tokens is None or (isinstance(answer.tokens, int) and least <= answer.tokens <= most)
    return case.expected if fits else answer.tokens


def _differs(case: NamedCase, got: Any) -> str:
    match case.aspect:
        case "prompt":
            return "has no answer (None)" if got is None else f"says {got}"
        case "token-count":
            return "counts none" if got == 0 else f"counts {got}"
        case "content-ids":
            return "returns None" if got is None else f"returns {len(got)} ids where {len(case.expected)} are due"
        case "grammar-end":
            return "never says so" if got is None else f"says so at token {got}"
        case _:
            return "gives no request back, or another one the second time"


def _core_name(cell: Cell) -> str:
    if not cell.thinks:
        return "thinking-off" if cell.off else "answer-behind-a-closed-block"
    return "start-in-prompt" if cell.state == "open" else "start-in-output"


def _core_aspect(cell: Cell) -> Aspect:
    return "split" if cell.thinks else "thinking-off"


def _core_why(cell: Cell) -> str:
    if cell.thinks:
        opened = "the prompt opened the block" if cell.state == "open" else "the model opens the block itself"
        return f"{opened}: up to the end marker it thinks, then it answers"
    return "the prompt closed the block: all of it is the answer" if cell.state != "none" else _PROMPT_WHY["off"]


def _truncated(cell: Cell) -> str:
    return f"truncated-{'in-prompt' if cell.state == 'open' else 'in-output'}"


_UNIFIED = ("cohere", "response-template", "harmony")
"""Families whose reasoning parser is a stub: the server asks another class for the answer."""
_CALL_WHY = "the model may call a tool without closing its thought: the call is no thought"
_SIZES_WHY = "speculative decoding and busy servers put several tokens into one delta"
_HELD_WHY = "a stop string holds text back: its token ids have come before it"
_ALONE_WHY = "a marker that comes alone is no text"
_TEXT_WHY = "and text in one delta must be told apart"
_TWO_WHY = "an end marker of several tokens may come in two deltas"
_GRAMMAR_WHY = "a grammar binds from the token behind the end marker: is_reasoning_end_streaming says when that is"
_PROMPT_WHY = {
    "thinks": "nothing was thought yet: a grammar must wait",
    "closed": "the prompt closed the block: a grammar binds from the first token",
    "off": "thinking is switched off: the whole output is the answer, and a grammar binds from the first token",
    "inside": "the thought is not over",
    "after": "the end marker came",
    "answering": "the end marker came, some tokens ago",
}
