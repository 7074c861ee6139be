"""Runs the cases against a server and sets what came back beside what was to come: the facts of `verify`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Literal

from ..budgets.counting import Markers, Rule, counter, rfind
from ..parsers import ROWS, Target, Vocabulary
from ..parsers.run import Output, run_parser
from ..prompts.together import together
from ..traces.trace import Trace
from .cases import Case
from .chat import answer_to
from .endpoint import CHAT, BrokenOffError, Endpoint, EndpointError, RefusedError, ServerFailedError
from .speech import Blocks, Speaker, blocks, cutoff

_PATHS = {"chat": CHAT, "completions": "/completions", "messages": "/messages"}
_COMPARED = (
    "thinking_tokens",
    "forced_end",
    "answer_tokens",
    "finish_reason",
    "ids",
    "reasoning",
    "content",
    "reasoning_tokens",
)
_EXTRAS = {"return_token_ids": True}
_STOPS = {"end_turn": "stop", "max_tokens": "length", "stop_sequence": "stop", "tool_use": "tool_calls"}


@dataclass(frozen=True)
class Subject:
    """The model that is served and how it is judged.

    Args:
        name: what it is served as.
        rule: how its server counts.
        markers: its markers; None where they are not known.
        parser: the reasoning parser the server runs; None without one.
        target: the server's version, for the parser's model.
        vocabulary: its tokenizer; None where it is not at hand.
        speaker: its script, where it is a lab model.
        eos: ids that end a turn.
    """

    name: str
    rule: Rule
    markers: Markers | None
    parser: str | None
    target: Target
    vocabulary: Vocabulary | None = None
    speaker: Speaker | None = None
    eos: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Outcome:
    """One answer, as predicted or as seen. What is None is not predicted, or was not to be seen.

    Attributes:
        ids: the output's token ids.
        thinking_tokens: inside blocks, markers left out.
        forced_end: the server ended the block, not the model.
        end: how the last block ended: `forced`, `natural`, or `none` where none did.
        answer_tokens: outside of blocks.
        finish_reason: `stop` or `length`.
        reasoning, content: the split the client gets; both empty text where it gets null.
        reasoning_tokens: in usage.
        field: the name the reasoning came under; None where none came.
        refused: (HTTP status, text) of a refusal.
    """

    ids: tuple[int, ...] | None = None
    thinking_tokens: int | None = None
    forced_end: bool | None = None
    end: Literal["forced", "natural", "none"] | None = None
    answer_tokens: int | None = None
    finish_reason: str | None = None
    reasoning: str | None = None
    content: str | None = None
    reasoning_tokens: int | None = None
    field: str | None = None
    refused: tuple[int, str] | None = None


@dataclass(frozen=True)
class CaseFacts:
    """One case: what was to come, and what came.

    `ok` is None where the case proves nothing. `lost` says why there is no answer at all. `differs` names the parts of
    the outcome that are not as predicted.
    """

    case: Case
    predicted: Outcome
    observed: Outcome
    prompt_state: str
    ok: bool | None
    differs: tuple[str, ...] = ()
    lost: str | None = None
    charged: int = 0
    """Tokens of the prompt that the budget is charged for."""

    def as_json(self) -> dict[str, Any]:
        """An entry of `cases` in the JSON report."""
        request = {key: value for key, value in self.case.body.items() if key not in ("messages", "prompt")}
        if self.case.api == "chat":
            request = {"thinking_token_budget": None} | request
        return {
            "name": self.case.name,
            "request": request | {"stream": self.case.stream},
            "endpoint": self.case.api,
            "prompt_state": self.prompt_state,
            "charged": self.charged,
            "predicted": _outcome_json(self.predicted, self.case, observed=False),
            "observed": _outcome_json(self.observed, self.case, observed=True),
            "ok": self.ok,
            "differs": list(self.differs),
            "lost": self.lost,
            "note": self.case.note,
        }


def _outcome_json(outcome: Outcome, case: Case, *, observed: bool) -> dict[str, Any]:
    if outcome.refused is not None:
        return {"refused": {"status": outcome.refused[0], "text": outcome.refused[1]}}
    found: dict[str, Any] = {
        "thinking_tokens": outcome.thinking_tokens,
        "forced_end": outcome.forced_end,
        "end": outcome.end,
        "finish_reason": outcome.finish_reason,
        "answer_tokens": outcome.answer_tokens,
        "reasoning_tokens_reported" if observed else "reasoning_tokens": outcome.reasoning_tokens,
        "reasoning": outcome.reasoning,
        "content": outcome.content,
    }
    return found | ({"reasoning_field": outcome.field} if observed else {})


class Verifier:
    """Sends cases and judges the answers.

    Args:
        endpoint: where the server is.
        subject: what is served there.
        most: requests that may be sent; None for no limit.
        watch: called with the number of cases done.
        alive: called after a request that was cut off; raises where the server has ended.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        subject: Subject,
        *,
        most: int | None = None,
        watch: Callable[[int], None] = lambda done: None,
        alive: Callable[[], None] = lambda: None,
    ) -> None:
        self._endpoint = endpoint
        self._subject = subject
        self._most = most
        self._watch = watch
        self._alive = alive
        self._prompts: dict[str, tuple[int, ...]] = {}
        self._natural: Trace | None = None
        self.sent = 0
        self.left_out: list[str] = []

    def run(self, cases: Sequence[Case]) -> Iterator[CaseFacts]:
        """The facts of every case, in order. Raises ReasonctlError where the server goes away."""
        done = 0
        for at_once, group in groupby(cases, key=lambda case: case.together):
            some = list(group)
            for part in [some] if at_once is not None else [[case] for case in some]:
                if self._most is not None and self.sent + len(part) > self._most:
                    self.left_out += [case.name for case in part]
                    continue
                self.sent += len(part)
                yield from self._run(part)
                done += len(part)
                self._watch(done)

    def _run(self, cases: Sequence[Case]) -> Iterator[CaseFacts]:
        bodies = [self._body(case) for case in cases]
        pairs = list(zip(cases, bodies, strict=True))
        answers = together(lambda pair: self._ask(*pair), pairs, most=len(pairs))
        for case, answer in zip(cases, answers, strict=True):
            yield self._facts(case, answer)

    def _body(self, case: Case) -> dict[str, Any]:
        body = {**case.body, "model": self._subject.name}
        if case.wants_prompt:
            body["prompt"] = list(self._prompts.get(case.state, ()))
        if case.api != "messages":
            body |= _EXTRAS
        if case.stream:
            body |= {"stream": True} | ({} if case.api == "messages" else {"stream_options": {"include_usage": True}})
        return body

    def _ask(self, case: Case, body: Mapping[str, Any]) -> Trace | RefusedError | str:
        """The answer, a refusal, or why there is neither."""
        path = _PATHS[case.api]
        try:
            if case.api == "messages":
                return _message_trace(self._endpoint.post(path, body), self._endpoint.url)
            return answer_to(self._endpoint, path, body) or "the answer holds no choice"
        except RefusedError as error:
            return error
        except EndpointError as error:
            if not isinstance(error, ServerFailedError):
                self._alive()
            if not isinstance(error, (BrokenOffError, ServerFailedError)):
                raise
            return str(error)

    def _facts(self, case: Case, answer: Trace | RefusedError | str) -> CaseFacts:
        if isinstance(answer, str):
            return CaseFacts(case, Outcome(), Outcome(), case.state, False, lost=answer)
        if isinstance(answer, RefusedError) or case.refused is not None:
            return self._refusal(case, answer)
        prompt = answer.prompt_ids
        if prompt is None and case.api != "chat":
            prompt = self._prompts.get(case.state)
        if prompt is not None and case.is_plain:
            self._prompts.setdefault(case.state, prompt)
            self._natural = self._natural or answer
        return self._judged(case, answer, prompt)

    def _refusal(self, case: Case, answer: Trace | RefusedError) -> CaseFacts:
        wanted = Outcome(refused=(400, case.refused)) if case.refused is not None else Outcome()
        if isinstance(answer, RefusedError):
            seen = Outcome(refused=(answer.status, answer.text))
            fits = case.refused is not None and answer.status == 400 and case.refused in answer.text
            return CaseFacts(case, wanted, seen, case.state, fits, () if fits else ("refused",))
        return CaseFacts(case, wanted, self._seen(case, answer, answer.prompt_ids), case.state, False, ("refused",))

    def _judged(self, case: Case, answer: Trace, prompt: tuple[int, ...] | None) -> CaseFacts:
        seen = self._seen(case, answer, prompt)
        predicted = self._predicted(case, prompt)
        state, charged = case.state, 0
        markers = self._subject.markers
        if prompt is not None and markers is not None:
            start, end = rfind(prompt, markers.start), rfind(prompt, markers.natural_end)
            state = "open" if start > end else "closed" if end >= 0 else "none"
            charged = len(prompt) - start - len(markers.start) if start > end else 0
        if predicted is None:
            return CaseFacts(case, Outcome(), seen, state, None, charged=charged)
        differs = tuple(
            name
            for name in _COMPARED
            if getattr(predicted, name) is not None and getattr(predicted, name) != getattr(seen, name)
        )
        if predicted.reasoning and seen.field not in (None, "reasoning", "thinking"):
            differs = (*differs, "field")
        grave = [name for name in differs if name != "reasoning_tokens"]
        return CaseFacts(case, predicted, seen, state, not grave, differs, charged=charged)

    def _seen(self, case: Case, answer: Trace, prompt: tuple[int, ...] | None) -> Outcome:
        recorded = answer.recorded
        subject = self._subject
        usage = dict(recorded.usage) if recorded is not None else {}
        details = usage.get("completion_tokens_details")
        reported = details.get("reasoning_tokens") if isinstance(details, dict) else None
        outcome = Outcome(
            ids=answer.output_ids,
            finish_reason=recorded.finish_reason if recorded is not None else None,
            reasoning=(recorded.reasoning or "") if recorded is not None else "",
            content=(recorded.content or "") if recorded is not None else "",
            reasoning_tokens=reported if type(reported) is int else None,
            field=recorded.reasoning_field if recorded is not None else None,
        )
        if case.api == "completions":
            outcome = replace(outcome, reasoning=None, content=None)
        if answer.output_ids is None or prompt is None or subject.markers is None:
            return outcome
        parts = blocks(prompt, answer.output_ids, subject.markers, eos=subject.eos, also_end=self._also_end)
        forced = self._was_forced(case, prompt, answer.output_ids, parts)
        return replace(
            outcome,
            thinking_tokens=parts.thinking,
            answer_tokens=parts.answer,
            forced_end=forced,
            end=_end(forced, parts),
        )

    def _was_forced(self, case: Case, prompt: Sequence[int], ids: Sequence[int], parts: Blocks) -> bool:
        speaker = self._subject.speaker
        if speaker is not None:
            follows = zip((prompt[-1], *ids), ids, strict=False)
            return any(token != speaker.follower(before) for before, token in follows)
        natural, markers = self._natural, self._subject.markers
        if natural is None or natural.output_ids is None or markers is None or not parts.ended:
            return False
        # Without a script: an end that comes before the one of the run without a budget is not the model's own.
        size = len(markers.natural_end)
        own, seen = (
            next((at for at in range(len(some)) if tuple(some[at : at + size]) == markers.natural_end), len(some))
            for some in (natural.output_ids, ids)
        )
        return seen < own

    def _predicted(self, case: Case, prompt: tuple[int, ...] | None) -> Outcome | None:
        """What is to come; None where nothing can be said."""
        subject = self._subject
        if subject.speaker is None:
            return self._predicted_of_natural(case, prompt)
        if prompt is None:
            return None
        said = subject.speaker.say(prompt, rule=subject.rule, budget=case.budget, max_tokens=case.max_tokens)
        parts = blocks(prompt, said.ids, subject.speaker.markers, eos=subject.eos, also_end=self._also_end)
        outcome = Outcome(
            ids=said.ids,
            thinking_tokens=parts.thinking,
            forced_end=said.forced,
            end=_end(said.forced, parts),
            answer_tokens=parts.answer,
            finish_reason=said.finish_reason,
        )
        if case.api == "messages":  # token ids are not to be had there
            outcome = replace(outcome, ids=None, thinking_tokens=None, forced_end=None, answer_tokens=None)
        return self._with_split(case, outcome, said.ids, prompt)

    def _with_split(self, case: Case, outcome: Outcome, ids: Sequence[int], prompt: Sequence[int]) -> Outcome:
        """The outcome with the split that the parser's model makes of it."""
        subject = self._subject
        if subject.vocabulary is None or case.api == "completions":
            return outcome
        output = Output(
            subject.vocabulary,
            ids=ids,
            prompt_ids=list(prompt),
            stop_ids=subject.eos if outcome.finish_reason == "stop" else frozenset(),
        )
        if subject.parser is None:
            text = "".join(piece.text for piece in output.pieces(None))
            return replace(outcome, reasoning="", content=text)
        kwargs = _kwargs(case.body)
        run = run_parser(
            subject.parser,
            subject.vocabulary,
            kwargs,
            output,
            chunkings=("token",),
            request_kwargs=case.body.get("chat_template_kwargs") or {},
            target=subject.target,
        )
        mode = run.stream[0] if case.stream and run.stream else run.full
        if run.unsupported is not None or mode.error is not None:
            return outcome
        reported = None if case.api == "messages" else run.reasoning_tokens
        return replace(outcome, reasoning=mode.reasoning or "", content=mode.content or "", reasoning_tokens=reported)

    def _predicted_of_natural(self, case: Case, prompt: tuple[int, ...] | None) -> Outcome | None:
        """Of a model without a script: where the budget cuts what it said without one. None: it would not cut it."""
        natural, subject = self._natural, self._subject
        if natural is None or natural.output_ids is None or subject.markers is None or prompt is None:
            return None
        enforced = cutoff(subject.rule, case.budget, case.max_tokens)
        follow = counter(subject.rule, subject.markers, enforced, prompt)
        for size in range(len(natural.output_ids)):
            if follow.forced(natural.output_ids[:size]) is not None:
                parts = blocks(prompt, natural.output_ids[:size], subject.markers, also_end=self._also_end)
                return Outcome(thinking_tokens=parts.thinking, forced_end=True)
        return None

    @property
    def _also_end(self) -> frozenset[int]:
        """Tokens that end a block for this parser besides its end marker."""
        row = ROWS.get(self._subject.parser or "")
        vocabulary = self._subject.vocabulary
        if row is None or vocabulary is None:
            return frozenset()
        ids = [vocabulary.vocab.get(text) for text in row.implicit_ends]
        return frozenset(one for one in ids if one is not None)


def _end(forced: bool, parts: Blocks) -> Literal["forced", "natural", "none"]:
    return "forced" if forced else "natural" if parts.ended else "none"


def _kwargs(body: Mapping[str, Any]) -> dict[str, Any]:
    from ..prompts.kwargs import effective_kwargs

    effort = body.get("reasoning_effort")
    return effective_kwargs(
        request_kwargs=body.get("chat_template_kwargs"), reasoning_effort=effort if isinstance(effort, str) else None
    )


def _message_trace(value: Mapping[str, Any], url: str) -> Trace:
    """An answer of the Messages API, as far as it shows what a budget does."""
    from ..traces.trace import Recorded

    parts = [part for part in value.get("content") or () if isinstance(part, dict)]
    texts = {
        kind: "".join(str(part.get(kind) or "") for part in parts if part.get("type") == kind)
        for kind in ("thinking", "text")
    }
    stop = value.get("stop_reason")
    recorded = Recorded(
        reasoning=texts["thinking"] or None,
        content=texts["text"] or None,
        finish_reason=_STOPS.get(str(stop)),
        reasoning_field="thinking" if texts["thinking"] else None,
    )
    return Trace(id=str(value.get("id")), path=url, line=1, source="anthropic", recorded=recorded)
