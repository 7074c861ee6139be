"""What a model's chat template makes of each reasoning effort, and whether its markers are single tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .dialects import EFFORTS, LEVELS

if TYPE_CHECKING:
    from ..prompts.survey import Survey
    from ..serve.command import ServeCommand


@dataclass(frozen=True, slots=True)
class EffortPrompt:
    """What the template renders for one effort (None: omitted). Prompts with the same `group` are the same text.

    `refused` is the error of a template that raises, and `line` the template's line. `marker` is the last state marker,
    `after_open` the number of tokens behind an open one (None without a tokenizer).
    """

    effort: str | None
    state: str
    group: int | None = None
    refused: str | None = None
    line: int | None = None
    marker: str | None = None
    after_open: int | None = None


@dataclass(frozen=True, slots=True)
class Marker:
    """A start or end marker of the reasoning parser in the model's tokenizer."""

    text: str
    ids: tuple[int, ...]


@dataclass(frozen=True)
class TemplateFacts:
    """The template of a model, as far as budgets go. `origin` is the file to point at."""

    model: str
    origin: str
    reads_effort: bool
    prompts: Mapping[str | None, EffortPrompt] = field(default_factory=dict)
    markers: tuple[Marker, ...] = ()

    @property
    def refused(self) -> tuple[EffortPrompt, ...]:
        """Thinking levels that make the template raise."""
        return tuple(self.prompts[level] for level in LEVELS if level in self.prompts and self.prompts[level].refused)

    @property
    def default_level(self) -> str | None:
        """The thinking level whose prompt a request without an effort gets; None where no level's is the same."""
        plain = self.prompts.get(None)
        if plain is None or plain.group is None:
            return None
        same = [level for level in LEVELS if level in self.prompts and self.prompts[level].group == plain.group]
        return same[0] if len(same) == 1 else None

    def as_json(self) -> dict[str, Any]:
        """One entry an effort: what the prompt says."""
        return {
            "model": self.model,
            "template": self.origin,
            "reads_effort": self.reads_effort,
            "default_effort": self.default_level,
            "efforts": [
                {
                    "effort": prompt.effort,
                    "state": prompt.state,
                    "same_prompt": prompt.group,
                    "refused": prompt.refused,
                    "tokens_after_open": prompt.after_open,
                }
                for prompt in self.prompts.values()
            ],
        }


def template_facts(survey: Survey, command: ServeCommand | None) -> TemplateFacts | None:
    """The facts of a surveyed model; None where it has no template to ask."""
    model = survey.model
    plain = survey.get("single_turn", {})
    if plain is None:
        return None
    groups: dict[str, int] = {}
    prompts: dict[str | None, EffortPrompt] = {}
    for effort in (*EFFORTS, None):
        tried = survey.get("single_turn", {"reasoning_effort": effort}) if effort is not None else plain
        seen = tried or plain
        group = groups.setdefault(seen.prompt, len(groups)) if seen.prompt is not None else None
        prompts[effort] = EffortPrompt(
            effort, seen.state, group, seen.error, seen.error_line, seen.marker, seen.tokens_after_open
        )
    origin = "the server's own" if model.kind == "served" else str(model.path or model.source)
    if model.template is not None:
        origin = str(model.template.path) if model.template.path is not None else model.template.origin
    return TemplateFacts(model.source, origin, "reasoning_effort" in survey.reads, prompts, _markers(survey, command))


def _markers(survey: Survey, command: ServeCommand | None) -> tuple[Marker, ...]:
    """The markers the budget counts between: of the reasoning config, the parser, or else the template."""
    tokenizer = survey.model.tokenizer
    if tokenizer is None or tokenizer.toy:
        return ()
    texts: tuple[str, ...] = ()
    if command is not None:
        given = (command.json("reasoning-config", twice=True) or {}) if command.known("reasoning-config") else {}
        strings = (given.get("reasoning_start_str"), given.get("reasoning_end_str"))
        texts = tuple(text for text in strings if isinstance(text, str) and text)
        parser = command.reasoning_parser if command.known("reasoning-parser") else None
        if len(texts) < 2 and parser is not None:
            from ..parsers import ROWS

            found = ROWS.get(parser)
            texts = (*found.start[:1], *found.end[:1]) if found is not None else ()
    if not texts:
        from ..parsers.markers import STATE_MARKERS

        used = {state.marker for state in survey.states if state.marker is not None}
        texts = tuple(
            text for pair in STATE_MARKERS if {pair.start, pair.end} & used for text in (pair.start, pair.end)
        )
    return tuple(Marker(text, tuple(tokenizer.encode(text))) for text in dict.fromkeys(texts))
