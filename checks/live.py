"""What a running server answered, beside what parsers give on the same tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from .. import versions
from ..parsers import ROWS
from ..parsers.base import Vocabulary
from ..parsers.engines import ParserEngine
from ..parsers.feed import Chunking
from ..parsers.markers import STATE_MARKERS
from ..parsers.run import TOKEN, ModeResult, Output
from ..prompts.asked import PromptMaker
from ..prompts.difference import Difference, of_ids
from ..prompts.model import Model
from ..prompts.survey import Survey
from ..traces.splits import NO_PARSER, matches, without_parser
from .eng import FieldMissing, ServedStreamDiffers, ServerRefused
from .evidence import request_json, said
from .finding import Coverage, Finding
from .internal import ResultLost
from .probes import weight_of

if TYPE_CHECKING:
    from ..engine.live import Answered
    from .facts import AuditFacts
    from .trial import Candidate

SURFACE = "live server"
_RECORDED = Chunking("recorded")


class Live(Protocol):
    """A running server as an audit asks it (`engine.live.LiveServer`)."""

    name: str
    left_out: int

    @property
    def server(self) -> Any:
        """What it said of itself: `kind`, `version`; its text names it."""

    @property
    def url(self) -> str:
        """Where it is."""

    @property
    def prompts(self) -> PromptMaker:
        """Who makes its prompts."""

    @property
    def problem(self) -> str | None:
        """Why its answers cannot be judged; None where they can."""

    def model(self) -> Model | None:
        """The model as far as it shows it."""

    def ask(self, variants: Sequence[Mapping[str, Any]]) -> list[Answered]:
        """Short answers under each variant."""


@dataclass(frozen=True, slots=True)
class LiveAnswer:
    """One answer, and what every parser gives on its tokens.

    `ids`: the server sent them; without them `gives` is empty. `gives` holds each parser's split, by name, in the mode
    the answer came in (`none`: no parser); `explains` the names that give what came. `silent`: nothing came to compare.
    """

    asked: Answered
    raw: str = ""
    gives: Mapping[str, ModeResult] = field(default_factory=dict)
    explains: frozenset[str] = frozenset()
    silent: bool = True

    @property
    def said(self) -> str:
        """The question in a few words."""
        parts = [said(self.asked.variant)] if self.asked.variant else ["plain"]
        parts += ["second turn"] if self.asked.conversation != "single_turn" else []
        return ", ".join([*parts, *(["stream"] if self.asked.stream else [])])

    def as_json(self) -> dict[str, Any]:
        """An entry of `live.answers` in the JSON report."""
        recorded = self.asked.trace.recorded if self.asked.trace is not None else None
        return {
            "conversation": self.asked.conversation,
            "variant": dict(self.asked.variant),
            "stream": self.asked.stream,
            "finish_reason": recorded.finish_reason if recorded is not None else None,
            "reasoning": recorded.reasoning if recorded is not None else None,
            "content": recorded.content if recorded is not None else None,
            "explained_by": sorted(self.explains) if not self.silent else None,
            "refused": self.asked.refused,
            "lost": self.asked.lost,
        }


@dataclass(frozen=True, slots=True)
class LiveFacts:
    """What was seen of a running server.

    Args:
        server: how it is called, with its version.
        url: where it is.
        model: the name it serves the model under.
        answers: its answers.
        problem: why no answer was asked for, or none could be compared; None where they were.
        left_out: questions that were not put, to keep to the most that were allowed.
        prompts: where the prompt of a real answer is not what the server's `/tokenize` says it is.
        told: the parser is known from the call, the serve command or the server itself.
        inferred: the parser that is judged was found by its answers alone.
        ranking: the parsers, those that suit the model best first.
    """

    server: str
    url: str
    model: str
    answers: tuple[LiveAnswer, ...] = ()
    problem: str | None = None
    left_out: int = 0
    prompts: Difference | None = None
    told: bool = True
    inferred: bool = False
    ranking: tuple[str, ...] = ()

    @property
    def compared(self) -> tuple[LiveAnswer, ...]:
        return tuple(answer for answer in self.answers if not answer.silent)

    @property
    def explained_by(self) -> tuple[str, ...]:
        """The parsers that give what came in every answer, those that suit the model best first."""
        compared = self.compared
        if not compared:
            return ()
        names = sorted(frozenset.intersection(*(answer.explains for answer in compared)))
        return tuple(
            sorted(names, key=lambda name: self.ranking.index(name) if name in self.ranking else len(self.ranking))
        )

    def as_json(self) -> dict[str, Any]:
        """`live` of the report's facts."""
        return {
            "server": self.server,
            "url": self.url,
            "model": self.model,
            "answers": [answer.as_json() for answer in self.answers],
            "explained_by": list(self.explained_by) if self.compared else None,
            "parser_known": self.told,
            "inferred": self.inferred,
            "left_out": self.left_out,
            "problem": self.problem,
        }


def variants_to_ask(survey: Survey, asked: tuple[Mapping[str, Any], ...]) -> list[Mapping[str, Any]]:
    """A plain request, and the first under which a prompt ends otherwise, of those that people send."""
    found: dict[tuple[str, str | None], Mapping[str, Any]] = {}
    for variant in survey.variants:
        state = survey.get("single_turn", variant)
        if state is not None and state.prompt is not None and weight_of(variant, survey, asked) != "unread":
            found.setdefault((state.state, state.marker), variant)
    return list(found.values())


def answers_of(
    live: Live,
    survey: Survey,
    vocabulary: Vocabulary,
    engine: ParserEngine,
    *,
    asked: tuple[Mapping[str, Any], ...],
    configured: str | None,
) -> tuple[LiveAnswer, ...]:
    """Ask the server, and put what it says to every parser.

    Args:
        live: the server.
        survey: the model's prompts.
        vocabulary: its tokenizer. Where that cannot tell which tokens are special, the answers show it: markers are
            taken for special where the configured parser, or any, explains the answers with that, and not without.
        engine: runs the parsers.
        asked: kwargs that somebody is known to send.
        configured: the parser that the server is said to run.
    """
    found = live.ask(variants_to_ask(survey, asked))
    answers = _put(found, survey, vocabulary, engine)
    take = getattr(vocabulary, "take_special", None)
    if take is None or _explained(answers, configured):
        return answers
    markers = {text for pair in STATE_MARKERS for text in (pair.start, pair.end)}
    take(frozenset(one for one in map(vocabulary.vocab.get, sorted(markers)) if one is not None))
    hidden = _put(found, survey, vocabulary, engine)
    if _explained(hidden, configured):
        return hidden
    take(frozenset())
    return answers


def facts_of(
    live: Live,
    answers: tuple[LiveAnswer, ...] = (),
    *,
    told: bool = False,
    problem: str | None = None,
    ranking: Sequence[str] = (),
) -> LiveFacts:
    """What was seen of the server, in a whole; arguments as the fields of LiveFacts."""
    problem = live.problem or problem
    if problem is None and answers and all(answer.silent for answer in answers):
        refused = next((a.asked.refused or a.asked.lost for a in answers if a.asked.trace is None), None)
        problem = refused or "its answers hold no token ids (return_token_ids), so no parser can be put to them"
    return LiveFacts(
        server=str(live.server),
        url=live.url,
        model=live.name,
        answers=answers,
        problem=problem,
        left_out=live.left_out,
        prompts=next(filter(None, map(_prompt_differs, answers)), None),
        told=told,
        ranking=tuple(ranking),
    )


def judged_live(facts: AuditFacts, live: Live, answers: tuple[LiveAnswer, ...]) -> AuditFacts:
    """The facts with what was seen of the server; where nobody said which parser it runs, its answers may.

    They are told apart only where the recommended parser does not give them: then the best that does is judged.
    """
    problem = None
    if not answers:
        untold = "there is no tokenizer to read its answers with: give --model"
        problem = "no question was put (--max-requests)" if live.left_out else untold
    ranked = sorted(facts.candidates, key=lambda each: (each.name != facts.recommended, each.fit != "pass", _age(each)))
    ranking = [each.name for each in ranked]
    seen = facts_of(live, answers, told=facts.mode != "auto", problem=problem, ranking=ranking)
    names = seen.explained_by
    if seen.told or not names or facts.recommended in names or (facts.recommended is None and NO_PARSER in names):
        return replace(facts, live=seen)
    seen = replace(seen, inferred=True)
    if NO_PARSER in names:
        return replace(facts, live=seen, mode="none")
    return replace(facts, live=seen, mode="configured", configured=names[0])


def live_findings(facts: AuditFacts) -> Iterator[Finding]:
    """What the answers show: another split than the parser's, another field, a refusal, a loss."""
    live = facts.live
    if live is None:
        return
    yield from _splits(facts, live)
    renamed = [a for a in live.answers if _field(a) not in (None, "reasoning")]
    if renamed and not versions.fact("response-reasoning_content", facts.target.version):
        yield FieldMissing.finding(
            f"{renamed[0].said}: the reasoning came as {_field(renamed[0])}{_more(renamed)}",
            hint=" ".join(FieldMissing.instead.split()),
            subject=facts.subject(),
            evidence={"request": _request(renamed[0])},
        )
    refused = [a for a in live.answers if a.asked.refused is not None]
    if refused:
        yield ServerRefused.finding(
            f"{refused[0].said}: the server refused it: {refused[0].asked.refused}{_more(refused)}",
            hint="see what its log says of this request",
            subject=facts.subject(),
            evidence={"request": _request(refused[0])},
        )
    lost = [a for a in live.answers if a.asked.lost is not None]
    if lost:
        yield ResultLost.finding(
            f"{lost[0].said}: {lost[0].asked.lost}{_more(lost)}",
            hint="the other answers stand",
            subject=facts.subject(),
            evidence={"request": _request(lost[0])},
        )


def live_coverage(facts: AuditFacts) -> list[Coverage]:
    """What was seen of the server, and what not and why; no row without one."""
    live = facts.live
    if live is None:
        return []
    if live.problem is not None:
        return [Coverage(SURFACE, "skipped", f"{live.server}: {live.problem}")]
    short = []
    if live.prompts is not None:
        short.append(f"its answers are made of another prompt than its /tokenize tells: {live.prompts.said}")
    silent = len(live.answers) - len(live.compared)
    if silent:
        short.append(f"{silent} of {len(live.answers)} answers could not be compared")
    if live.left_out:
        short.append(f"{live.left_out} questions were not put (--max-requests)")
    if facts.thinks and not any(_ended(answer) for answer in live.compared):
        short.append("no answer was long enough to hold the end of a thought")
    if short:
        return [Coverage(SURFACE, "partial", "; ".join(short))]
    return [Coverage(SURFACE, "examined", _which(live))]


def _which(live: LiveFacts) -> str | None:
    if live.told or not live.explained_by:
        return None
    names = ", ".join(live.explained_by[:3])
    more = len(live.explained_by) - 3
    return f"which parser it runs is not told; {names}{f' and {more} more' if more > 0 else ''} give its answers"


def _splits(facts: AuditFacts, live: LiveFacts) -> Iterator[Finding]:
    if not live.compared or (not live.told and live.explained_by):
        return
    name = facts.configured or (NO_PARSER if facts.mode == "none" else None)
    judged = name if name is not None and any(name in a.gives for a in live.compared) else None
    if name is not None and judged is None:
        return  # it cannot be run here; the parser's own rules and coverage say so
    wrong = [a for a in live.compared if judged not in a.explains] if judged is not None else list(live.compared)
    if not wrong:
        return
    first = next((a for a in wrong if a.asked.stream), wrong[0]) if judged is None else wrong[0]
    shown = judged or facts.recommended or next(iter(first.gives))
    wanted, seen = first.gives.get(shown), first.asked.trace.recorded if first.asked.trace is not None else None
    if wanted is None or seen is None:
        return
    what = "content" if (wanted.content or "") != (seen.content or "") else "reasoning"
    who = f"where {_called(shown)} gives" if judged is not None else f"which no parser of {facts.target} gives;"
    who += "" if judged is not None else f" {_called(shown)} gives"
    yield ServedStreamDiffers.finding(
        f"{first.said}: {what} is {_end(getattr(seen, what))}, {who} {_end(getattr(wanted, what))}{_more(wrong)}",
        hint=_hint(live, wrong),
        confidence=facts.fit_confidence,
        subject=facts.subject(parser=judged),
        location=facts.parser_at,
        evidence={
            "request": _request(first),
            "output": first.raw,
            "client": {"reasoning": seen.reasoning, "content": seen.content},
            "expected": {"reasoning": wanted.reasoning, "content": wanted.content},
            "chunking": wanted.chunking,
            "explained_by": list(live.explained_by),
            "also": ["RPL405"],
        },
    )


def _hint(live: LiveFacts, wrong: Sequence[LiveAnswer]) -> str:
    names = live.explained_by
    if names:
        return f"{_called(names[0])} gives exactly what came: see what the server really runs"
    some = [name for name in wrong[0].gives if name in wrong[0].explains]
    if some:
        return f"{_called(some[0])} gives this answer, and not every other one; see what stands before the server"
    return "see what edits texts on the way (a proxy, a gateway, a plugin), and which version and parser really run"


def _age(candidate: Candidate) -> tuple[Any, ...]:
    """Of parsers that do the same, the oldest is the one that most servers run; a plugin's own comes last."""
    found = versions.rows("reasoning-parser", candidate.name)
    return (0, found[0].since or ()) if found else (1,)


def _put(
    found: Iterable[Answered], survey: Survey, vocabulary: Vocabulary, engine: ParserEngine
) -> tuple[LiveAnswer, ...]:
    return tuple(_compared(each, survey, vocabulary, engine) for each in found)


def _compared(asked: Answered, survey: Survey, vocabulary: Vocabulary, engine: ParserEngine) -> LiveAnswer:
    trace = asked.trace
    recorded = trace.recorded if trace is not None else None
    state = survey.get("single_turn", asked.variant)
    prompt = (trace.prompt_ids if trace is not None else None) or asked.prompt_ids
    if trace is None or recorded is None or trace.output_ids is None or prompt is None or state is None:
        return LiveAnswer(asked)
    ended = recorded.finish_reason == "stop" and recorded.stop_reason is None
    output = Output(
        vocabulary,
        ids=trace.output_ids,
        deltas=[(None, delta.token_ids) for delta in trace.deltas] if trace.deltas else None,
        prompt_ids=prompt,
        stop_ids=frozenset(trace.output_ids[-1:]) if ended else frozenset(),
    )
    own = {name: value for name, value in asked.variant.items() if name != "reasoning_effort"}
    chunkings = (_RECORDED, TOKEN) if asked.stream else ()
    gives: dict[str, ModeResult] = {}
    explains: set[str] = set()
    told = recorded.reasoning is not None or recorded.content is not None
    for name in (*engine.names(), NO_PARSER):
        if name == NO_PARSER:
            run = without_parser(output.pieces().text, map(str, chunkings))
        else:
            run = engine.run(name, vocabulary, state.kwargs, output, chunkings=chunkings, request_kwargs=own)
        if run.unsupported is not None or run.lost is not None:
            continue
        modes = run.stream if asked.stream else (run.full,)
        if all(mode.error is not None for mode in modes):
            continue
        gives[name] = modes[0]
        if any(matches(recorded, mode, ROWS.get(name), stripped=False) for mode in modes):
            explains.add(name)
    return LiveAnswer(asked, output.pieces(False).text, gives, frozenset(explains), silent=not told)


def _explained(answers: Sequence[LiveAnswer], configured: str | None) -> bool:
    compared = [answer for answer in answers if not answer.silent]
    if configured is not None:
        return all(configured in answer.explains for answer in compared)
    return not compared or bool(frozenset.intersection(*(answer.explains for answer in compared)))


def _prompt_differs(answer: LiveAnswer) -> Difference | None:
    trace = answer.asked.trace
    if trace is None or trace.prompt_ids is None or answer.asked.prompt_ids is None:
        return None
    return of_ids(answer.asked.prompt_ids, trace.prompt_ids)


def _ended(answer: LiveAnswer) -> bool:
    """The output shows both sides of a split: an end marker, or all of an answer."""
    trace = answer.asked.trace
    return trace is not None and (trace.finish_reason == "stop" or any(p.end in answer.raw for p in STATE_MARKERS))


def _field(answer: LiveAnswer) -> str | None:
    trace = answer.asked.trace
    return trace.recorded.reasoning_field if trace is not None and trace.recorded is not None else None


def _request(answer: LiveAnswer) -> dict[str, Any]:
    return request_json(answer.asked.variant) | ({"stream": True} if answer.asked.stream else {})


def _called(name: str) -> str:
    return "no reasoning parser" if name == NO_PARSER else name


def _more(answers: Sequence[LiveAnswer]) -> str:
    more = len(answers) - 1
    return f" (and {more} more answer{'s' if more > 1 else ''})" if more else ""


def _end(text: str | None) -> str:
    shown = repr(text or "")
    return shown if len(shown) <= 42 else f"{shown[:20]}…{shown[-20:]}"
