"""What an audit knows about one model, one parser and one server: frozen facts, the rules' only input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from .. import versions
from ..budgets.request import Endpoint
from ..parsers.target import NEWEST, Target
from ..prompts.survey import PromptState, Survey
from ..serve.command import ServeCommand
from ..serve.plugin import PluginFile
from .finding import Confidence, Location
from .probes import Weight, weight_of
from .thinking import Thinking, thinks
from .trial import Candidate

if TYPE_CHECKING:
    from ..budgets.facts import BudgetFacts
    from .live import LiveFacts

Mode = Literal["configured", "auto", "none"]
_OWN_VOCABULARY = ("hunyuan_a13b", "olmo3")
"""Parsers made for one vocabulary, although their markers look like everybody's."""


@dataclass(frozen=True, slots=True)
class MarkerFact:
    """A thinking marker in this tokenizer; without the model's own tokenizer there are no ids and nothing is known."""

    text: str
    ids: tuple[int, ...]
    single_token: bool | None
    special: bool | None

    def as_json(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "ids": list(self.ids),
            "single_token": self.single_token,
            "special": self.special,
        }


@dataclass(frozen=True, slots=True)
class OtherTemplate:
    """A second template of the same model, and the states in which it differs from the one that is used."""

    origin: str
    location: Location
    differs: tuple[tuple[str, Mapping[str, Any], str, str], ...]
    """(conversation, variant, state under the template in use, state under this one)."""


@dataclass(frozen=True, slots=True)
class TokenizerFault:
    """A tokenizer that does not give a text back, or gives other ids than `tokenizer.json` itself."""

    what: str
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request that is really sent (`--requests`), as far as an audit judges by it.

    `structured_at` is the place of what constrains its output (`response_format`, `structured_outputs`, ...), None
    where nothing does. `budget` is its thinking budget as it is written, `count` how often the same request is sent.
    `conversation` is the one of the surveyed conversations whose prompt ends as this request's does.
    """

    name: str
    location: Location
    endpoint: Endpoint = "chat"
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    effort: str | None = None
    structured_at: Location | None = None
    structured_by: str | None = None
    include_reasoning: bool = True
    tools: bool = False
    conversation: str = "single_turn"
    budget: Any = None
    max_tokens: int | None = None
    history: tuple[str, ...] = ()
    """The fields under which earlier reasoning is handed over (`reasoning`, `reasoning_content`)."""
    count: int = 1


@dataclass(frozen=True, slots=True)
class Gate:
    """What the configured parser reads from one prompt: whether a grammar binds from the answer's first token."""

    conversation: str
    variant: Mapping[str, Any]
    thinks: bool
    ended: bool
    tail: str
    weight: Weight


@dataclass(frozen=True, slots=True)
class OldFieldRead:
    """A place in a client's source that reads `reasoning_content` and not `reasoning`."""

    location: Location
    text: str


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What the serve command says; `reasoning_parser_at` is the place of its flag, `command` the whole of it."""

    name: str
    location: Location
    reasoning_parser: str | None
    reasoning_parser_at: Location | None
    tools: bool
    default_kwargs: Mapping[str, Any] = field(default_factory=dict)
    effort_map: Mapping[str, str] = field(default_factory=dict)
    command: ServeCommand | None = None
    version_unknown: str | None = None
    """Why nothing tells its version, which is therefore taken to be the newest; None where something does."""


@dataclass(frozen=True, slots=True)
class AuditFacts:
    """Everything one audit gathered.

    Args:
        survey: the rendered prompts, None where no template could be looked at.
        prompt_problem: why not (no template, prompts built by code, model not there).
        thinking: how the model thinks.
        mode: a parser was named, is to be chosen, or there is none.
        configured: the named parser, whether or not it exists.
        unknown: near names and the version that brought it, where the target does not register the named parser.
        tool_plugin: the command's `--tool-parser-plugin`, as far as it can be read.
        unjudged: why nothing can be said of the configured parser here; None where the probes show what it does.
        candidates: what every registered parser did, best first.
        named: the parsers whose table rows name this architecture, best match first.
        recommended: the parser to use, None where none passes or none is needed.
        real_tokenizer: probes ran on the model's own tokenizer.
        lone: the template came alone, not with its model.
        call: how the model opens a tool call.
        asked: kwargs that somebody is known to send.
        requests: requests that are really sent; None where nobody gave any.
        clients: places where a client reads the field of old releases; None where no client was looked at.
        gates: what the judged parser reads from each prompt.
        registered: the parsers of the running vLLM that ran the probes, a plugin's included; empty: the built-in models
            ran them.
        plugin_problem: why a plugin's parsers are not among them.
        budget: the thinking budget that is judged here; None where nobody sets one.
        live: what was seen of a running server; None where none was asked.
    """

    source: str
    target: Target
    survey: Survey | None
    thinking: Thinking
    mode: Mode
    prompt_problem: str | None = None
    configured: str | None = None
    unknown: str | None = None
    unjudged: str | None = None
    tool_plugin: PluginFile | None = None
    candidates: tuple[Candidate, ...] = ()
    named: tuple[str, ...] = ()
    recommended: str | None = None
    real_tokenizer: bool = False
    lone: bool = False
    call: str | None = None
    renders_tools: bool = False
    asked: tuple[Mapping[str, Any], ...] = ()
    markers: tuple[MarkerFact, ...] = ()
    others: tuple[OtherTemplate, ...] = ()
    tokenizer_faults: tuple[TokenizerFault, ...] = ()
    server: ServerFacts | None = None
    requests: tuple[SentRequest, ...] | None = None
    clients: tuple[OldFieldRead, ...] | None = None
    gates: tuple[Gate, ...] = ()
    registered: tuple[str, ...] = ()
    plugin_problem: str | None = None
    budget: BudgetFacts | None = None
    live: LiveFacts | None = None
    template_at: Location | None = None
    """The line of the template that writes the last marker of a plain prompt, or its first line."""

    @property
    def thinks(self) -> bool:
        return thinks(self.thinking)

    @property
    def judged(self) -> Candidate | None:
        """The parser the findings are about: the one named, or in auto mode the one recommended."""
        if self.unjudged is not None:
            return None
        name = self.configured if self.mode == "configured" else self.recommended if self.mode == "auto" else None
        return next((candidate for candidate in self.candidates if candidate.name == name), None)

    @property
    def unmodelled(self) -> tuple[str, ...]:
        """Parsers that may well suit this model and have no built-in model: named for it, or speaking its markers."""
        ours = {text.strip() for text in (self.thinking.start, self.thinking.end) if text is not None}
        blind = [c for c in self.candidates if c.unsupported is not None and c.raised is None]
        alike = [c.name for c in blind if ours & {text.strip() for text in (*c.row.start, *c.row.end)}]
        named = [name for name in self.named if name in {c.name for c in blind}]
        return tuple(dict.fromkeys((*named, *(name for name in alike if name not in _OWN_VOCABULARY))))

    @property
    def parser_at(self) -> Location | None:
        """The place to mend: the serve command's flag, else the template."""
        if self.server is not None and self.configured is not None and self.configured == self.server.reasoning_parser:
            return self.server.reasoning_parser_at
        return self.template_at

    @property
    def template_confidence(self) -> Confidence:
        """High for what a model's own template was seen to do; a lone template may not be the one that is served."""
        return "medium" if self.lone else "high"

    @property
    def fit_confidence(self) -> Confidence:
        inferred = self.live is not None and self.live.inferred
        return "high" if self.real_tokenizer and not self.lone and self.exact and not inferred else "medium"

    @property
    def version_confidence(self) -> Confidence:
        """How sure it is that the server is of the target's release, for what depends on the release alone."""
        foreign = self.server is not None and self.server.command is not None and self.server.command.tag_of
        unknown = self.server is not None and self.server.version_unknown is not None
        return "low" if foreign and unknown else "high" if self.target.version <= versions.NEWEST else "medium"

    @property
    def exact(self) -> bool:
        """The probes show what the target itself does: its own parsers ran, or models held identical to them."""
        return bool(self.registered) or self.target.exact

    @property
    def modelled_on(self) -> str:
        """What to add to a message where the parsers are modelled for another version than the target."""
        return "" if self.exact else f" (modelled on {NEWEST})"

    def weight(self, state: PromptState) -> Weight:
        """How much the request behind this prompt counts."""
        return "unread" if self.survey is None else weight_of(state.variant, self.survey, self.asked)

    def plain(self, conversation: str = "single_turn") -> PromptState | None:
        """The prompt of a request without kwargs."""
        return self.survey.get(conversation, {}) if self.survey is not None else None

    def subject(self, **more: Any) -> dict[str, Any]:
        """A finding's subject: this model, its server where there is one, and what the rule adds."""
        subject: dict[str, Any] = {"model": self.source}
        if self.server is not None:
            subject["server"] = self.server.name
        return subject | {key: value for key, value in more.items() if value is not None}
