"""ENG: the running engine. Each rule looks at one case: what was to come, and what came."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from .finding import Finding
from .rule import Rule, register

if TYPE_CHECKING:
    from ..engine.verify import CaseFacts

_V1 = "vLLM 0.32.0 vllm/v1/sample/thinking_budget_state.py"
_V2 = "vLLM 0.33.0 vllm/v1/worker/gpu/sample/thinking_budget.py"
_SERVING = "vLLM 0.33.0 vllm/entrypoints/openai/chat_completion/serving.py"
_SHOWN = 8
"""Cases that a finding lists."""


@dataclass(frozen=True)
class EngineFacts:
    """What a server did in every case. `parser` is the one it runs, `server` how it is called."""

    cases: tuple[CaseFacts, ...]
    server: str
    parser: str | None


class EngineRule(Rule):
    """A rule that makes one finding of all cases it fires on. A case is told by the first rule that fires on it."""

    order: ClassVar[int]

    @classmethod
    def fires(cls, one: CaseFacts) -> bool:
        raise NotImplementedError

    @classmethod
    def said(cls, one: CaseFacts) -> str:
        """What happened in the case, in a clause."""
        raise NotImplementedError

    @classmethod
    def hint(cls, one: CaseFacts) -> str:
        return " ".join(cls.instead.split())


def findings(facts: EngineFacts) -> Iterator[Finding]:
    """One finding for each rule that fires, with its cases."""
    told: dict[type[EngineRule], list[CaseFacts]] = {}
    for one in facts.cases:
        rule = next((rule for rule in sorted(RULES, key=lambda rule: rule.order) if rule.fires(one)), None)
        if rule is not None:
            told.setdefault(rule, []).append(one)
    subject = {"server": facts.server} | ({"parser": facts.parser} if facts.parser is not None else {})
    for rule, cases in told.items():
        first, more = cases[0], len(cases) - 1
        rest = f" (and {more} more case{'s' if more > 1 else ''})" if more else ""
        yield rule.finding(
            f"{first.case.name}: {rule.said(first)}{rest}",
            hint=rule.hint(first),
            subject=subject,
            evidence={"request": first.as_json()["request"], "cases": [one.as_json() for one in cases[:_SHOWN]]},
        )


def _number(value: int | None, what: str = "thinking token") -> str:
    return "an unknown number of thinking tokens" if value is None else f"{value} {what}{'' if value == 1 else 's'}"


def _answered(one: CaseFacts) -> bool:
    """A case that is about an answer, and has one and a prediction of it."""
    plain = one.predicted.refused is None and one.observed.refused is None and one.lost is None
    return plain and one.case.refused is None and one.ok is not None


@register
class ServerRefused(EngineRule):
    id = "ENG509"
    slug = "server-refused"
    severity = "error"
    order = 0
    what = """The server refuses a request it should answer, answers one it should refuse, or refuses it in other words
        than vLLM does."""
    why = """A budget that is refused costs every request that sends one; a value that is none and is taken is a budget
        that nobody enforces."""
    example = "budget 64: HTTP 400: thinking_token_budget is set but reasoning_config is not configured"
    instead = (
        "Start the server with --reasoning-parser (or --reasoning-config), and ask it for a version that has budgets."
    )
    sources = ("vLLM 0.33.0 vllm/sampling_params.py", "vLLM 0.33.0 vllm/v1/engine/input_processor.py")

    @classmethod
    def fires(cls, one: CaseFacts) -> bool:
        return "refused" in one.differs

    @classmethod
    def said(cls, one: CaseFacts) -> str:
        wanted, seen = one.predicted.refused, one.observed.refused
        if seen is None:
            return "the server took it, where it should answer HTTP 400"
        if wanted is None:
            return f"the server refused it: HTTP {seen[0]}: {seen[1]}"
        return f"refused, but with HTTP {seen[0]}: {seen[1]}"


@register
class OptOutIgnored(EngineRule):
    id = "ENG504"
    slug = "opt-out-ignored"
    severity = "error"
    order = 1
    what = "A request without a budget, or with -1, has its thinking cut all the same."
    why = "The client asked for no limit; something between it and the model sets one, and answers get worse unseen."
    example = "budget -1: 64 thinking tokens and a forced end, where the model thinks for 200"
    instead = "Look for a default budget in the proxy or the server's generation config; vLLM itself has none."
    sources = (_V1, "vLLM 0.33.0 vllm/config/model.py")

    @classmethod
    def fires(cls, one: CaseFacts) -> bool:
        free = one.case.budget is None or one.case.budget < 0
        return _answered(one) and free and "forced_end" in one.differs and bool(one.observed.forced_end)

    @classmethod
    def said(cls, one: CaseFacts) -> str:
        return f"thinking is cut after {_number(one.observed.thinking_tokens)}, although no limit was asked for"


@register
class ForcedEndNotRecognised(EngineRule):
    id = "ENG503"
    slug = "forced-end-not-recognised"
    severity = "error"
    order = 2
    what = """The budget ended the block, and the end does not arrive: the marker is missing from the output, or the
        answer behind it is filed as reasoning."""
    why = (
        "The client gets an endless thought and no answer from exactly those requests that were meant to be cut short."
    )
    example = "budget 64: the answer follows the 63rd thinking token without </think>, and content is null"
    instead = "Look at what stands between client and server, and run `reasonctl audit` on template and parser."
    sources = (_V1, _V2)

    @classmethod
    def fires(cls, one: CaseFacts) -> bool:
        wanted, seen = one.predicted, one.observed
        if not _answered(one) or not wanted.forced_end or not one.differs:
            return False
        # Where fewer tokens were thought, some are missing too, and the answer is all there.
        unmarked = _without_some(wanted.ids, seen.ids) and seen.answer_tokens != wanted.answer_tokens
        unfiled = bool((wanted.content or "").strip()) and not (seen.content or "").strip()
        return unmarked or (unfiled and seen.ids == wanted.ids)

    @classmethod
    def said(cls, one: CaseFacts) -> str:
        if one.observed.ids == one.predicted.ids:
            return "the end was forced, and the answer behind it is filed as reasoning; content is null"
        return "the answer follows the thought, and the end marker between them is missing"


@register
class CutoffNotEnforced(EngineRule):
    id = "ENG501"
    slug = "cutoff-not-enforced"
    severity = "error"
    order = 3
    what = "The model thinks on beyond the budget, as if none had been sent."
    why = "The limit on cost and waiting time that the deployment relies on is not there."
    example = "budget 64: 200 thinking tokens and a natural end, where 63 and a forced end were to come"
    instead = """See whether the field reaches the server (proxies drop fields they do not know), at its top level, and
        whether its version and runner enforce budgets."""
    sources = (_V1, _V2)

    @classmethod
    def fires(cls, one: CaseFacts) -> bool:
        wanted, seen = one.predicted, one.observed
        if not _answered(one) or not wanted.forced_end or seen.forced_end is not False:
            return False
        return seen.thinking_tokens is None or seen.thinking_tokens > (wanted.thinking_tokens or 0)

    @classmethod
    def said(cls, one: CaseFacts) -> str:
        wanted = _number(one.predicted.thinking_tokens)
        return f"{_number(one.observed.thinking_tokens)}, where {wanted} and a forced end were to come"


@register
class FieldMissing(EngineRule):
    id = "ENG507"
    slug = "field-missing"
    severity = "error"
    order = 4
    what = "The reasoning comes under another name than `reasoning`, or not at all, while the token ids hold a thought."
    why = "A client reads one name. Under another one the thought is null for it, and nothing says so."
    example = "budget 64: the reasoning came as reasoning_content"
    instead = "Let the proxy pass `reasoning` through, or have the client read the name that arrives."
    versions = "vLLM 0.16 and newer; 0.15 sent both names"
    sources = (_SERVING, "vLLM pull request 27752")
    facts = ("response-reasoning_content", "response-reasoning")

    @classmethod
    def fires(cls, one: CaseFacts) -> bool:
        if not _answered(one):
            return False
        lost = bool(one.predicted.reasoning) and not one.observed.reasoning
        lost = lost and not {"content", "thinking_tokens"} & set(one.differs)
        return "field" in one.differs or lost

    @classmethod
    def said(cls, one: CaseFacts) -> str:
        field = one.observed.field
        return f"the reasoning came as {field}" if field is not None else "the reasoning came under no known name"


@register
class CutoffOff(EngineRule):
    id = "ENG502"
    slug = "cutoff-off-by-n"
    severity = "error"
    order = 5
    what = "The end is forced, at another place than this server's rule of counting says."
    why = """One version charges the prompt's tokens, another does not; a patched or unknown server may count otherwise.
        A budget that is off by some tokens is one that was not understood, and the next change moves it."""
    example = "budget 64: 64 thinking tokens, where 63 were to come (the prompt's line break is charged)"
    instead = "Say which server it is with --target, and which runner with --runner; see `reasonctl explain BUD314`."
    sources = (_V1, _V2)

    @classmethod
    def fires(cls, one: CaseFacts) -> bool:
        moved = {"thinking_tokens", "forced_end", "answer_tokens", "finish_reason", "ids"}
        return _answered(one) and bool(moved & set(one.differs))

    @classmethod
    def said(cls, one: CaseFacts) -> str:
        wanted, seen = one.predicted.thinking_tokens, one.observed.thinking_tokens
        if wanted is not None and seen is not None and wanted != seen:
            return f"{_number(seen)}, where {wanted} were to come ({seen - wanted:+d})"
        what = next(name for name in ("finish_reason", "answer_tokens", "forced_end", "ids") if name in one.differs)
        if what == "ids":
            return "other tokens came than the budget allows"
        return f"{what} is {getattr(one.observed, what)}, where it was to be {getattr(one.predicted, what)}"


@register
class AnswerEmpty(EngineRule):
    id = "ENG505"
    slug = "answer-empty"
    severity = "warning"
    order = 7
    what = (
        "A run ends by itself, and the content is empty although the model wrote an answer, or after a thought alone."
    )
    why = "The client waited and was charged for nothing it can show."
    example = "no budget: finish_reason stop, reasoning of 200 tokens, content null"
    instead = "Run `reasonctl audit` on template and parser; where the model really wrote nothing, raise the budget."
    sources = (_SERVING,)

    @classmethod
    def fires(cls, one: CaseFacts) -> bool:
        seen = one.observed
        if one.case.refused is not None or seen.refused is not None or one.lost is not None or seen.content is None:
            return False
        expected = one.predicted.content is not None and not one.predicted.content.strip()
        return seen.finish_reason == "stop" and not seen.content.strip() and not expected

    @classmethod
    def said(cls, one: CaseFacts) -> str:
        return f"finish_reason stop after {_number(one.observed.thinking_tokens)}, and no content"


@register
class ServedStreamDiffers(EngineRule):
    id = "ENG508"
    slug = "served-stream-differs"
    severity = "error"
    order = 6
    what = """The reasoning or content that a server sends is not what its parser makes of the answer's own tokens.
        `verify` says so where the tokens are as predicted; `audit --endpoint` of every answer, and, where nobody says
        which parser runs there, of answers that no parser of that version gives."""
    why = "The server runs another parser, or another version of it, than was checked, or a proxy edits texts."
    example = "budget 64, stream: content begins with '</think>', where qwen3 gives '\\n\\nIt is 4.'"
    instead = (
        "Say which parser and version it runs with --parser and --target, and check the deployment for another one."
    )
    sources = (_SERVING, "vLLM 0.33.0 vllm/parser/abstract_parser.py")

    @classmethod
    def fires(cls, one: CaseFacts) -> bool:
        return _answered(one) and bool({"reasoning", "content"} & set(one.differs))

    @classmethod
    def said(cls, one: CaseFacts) -> str:
        name = "content" if "content" in one.differs else "reasoning"
        wanted, seen = getattr(one.predicted, name), getattr(one.observed, name)
        return f"{name} is {_end(seen)}, where {_end(wanted)} was to come"


@register
class UsageWrong(EngineRule):
    id = "ENG506"
    slug = "usage-wrong"
    severity = "warning"
    order = 8
    what = "usage.completion_tokens_details.reasoning_tokens is not the number this server's parser counts."
    why = "What is billed and graphed as thinking is not what was thought."
    example = "budget 64: reasoning_tokens 64, where 63 were thought"
    instead = "Take the number from the token ids, and report it to whoever runs the server."
    versions = "vLLM 0.28 and newer report it"
    sources = (_SERVING,)

    @classmethod
    def fires(cls, one: CaseFacts) -> bool:
        return _answered(one) and "reasoning_tokens" in one.differs

    @classmethod
    def said(cls, one: CaseFacts) -> str:
        return (
            f"reasoning_tokens is {one.observed.reasoning_tokens}, where {one.predicted.reasoning_tokens} were to come"
        )


RULES: tuple[type[EngineRule], ...] = (
    CutoffNotEnforced,
    CutoffOff,
    ForcedEndNotRecognised,
    OptOutIgnored,
    AnswerEmpty,
    UsageWrong,
    FieldMissing,
    ServedStreamDiffers,
    ServerRefused,
)


def _without_some(whole: Sequence[int] | None, seen: Sequence[int] | None) -> bool:
    """The output is the predicted one with a few tokens in a row missing: what somebody took out on the way."""
    if whole is None or seen is None or not 0 < len(whole) - len(seen) <= _SHOWN or not seen:
        return False
    same = next((at for at, (a, b) in enumerate(zip(whole, seen, strict=False)) if a != b), len(seen))
    return list(whole[same + len(whole) - len(seen) :]) == list(seen[same:])


def _end(text: Any) -> str:
    shown = str(text)
    return repr(shown if len(shown) <= 40 else f"{shown[:20]}…{shown[-19:]}")


def lost(cases: Iterable[CaseFacts]) -> Iterator[CaseFacts]:
    """Cases that have no answer at all."""
    return (one for one in cases if one.lost is not None)
