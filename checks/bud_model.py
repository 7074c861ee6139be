"""BUD308, BUD309, BUD311: do the model's template and tokenizer agree with the budget's levels and markers?"""

from __future__ import annotations

from collections.abc import Iterator

from ..budgets import slimserve
from ..budgets.dialects import FALLBACK, LEVELS
from ..budgets.facts import BudgetFacts, BudgetValue
from ..budgets.template import TemplateFacts
from .finding import Finding, Location
from .rule import Rule, register


def _levels(facts: BudgetFacts) -> dict[str, BudgetValue]:
    """The valid budgets of a map the server reads, by level, weakest first."""
    if not facts.server_budget_counts:
        return {}
    found = {value.key: value for value in facts.values if value.key is not None and value.tokens is not None}
    return {level: found[level] for level in LEVELS if level in found}


@register
class EffortNotInTemplate(Rule):
    id = "BUD308"
    slug = "effort-not-in-template"
    severity = "warning"
    what = (
        "The model's chat template raises for a level, or gives two levels of the map the same prompt "
        "although their budgets differ."
    )
    why = (
        "A level that raises is an HTTP error for every request that sends it, whatever its budget. Levels "
        "with one prompt differ in the cutoff alone: the model is not told to think less, it is cut off "
        "earlier."
    )
    example = 'Qwen3.8\'s template knows low, medium and xhigh: "high" raises, and a budget for it is never used'
    instead = "Give budgets to the levels the template knows, and send only those."
    versions = "every version"
    sources = (slimserve.SOURCE, "QwenLM/Qwen3.8 #217 (template rejects high)")

    @classmethod
    def check(cls, facts: BudgetFacts) -> Iterator[Finding]:
        template = facts.template
        if template is None:
            return
        levels = _levels(facts)
        yield from cls._refused(facts, template, levels)
        if levels and not template.reads_effort and len({value.tokens for value in levels.values()}) > 1:
            yield cls.finding(
                "the template does not read reasoning_effort: levels differ in their cutoff, never in the prompt",
                hint="one number says the same; or use a template that reads reasoning_effort",
                subject={"model": template.model},
                location=facts.location,
                evidence={"levels": list(levels)},
            )
            return
        groups: dict[int, list[BudgetValue]] = {}
        for level, value in levels.items():
            prompt = template.prompts.get(level)
            if prompt is not None and prompt.group is not None:
                groups.setdefault(prompt.group, []).append(value)
        for alike in groups.values():
            if len({value.tokens for value in alike}) > 1:
                names = " and ".join(value.label for value in alike)
                yield cls.finding(
                    f"the template gives {names} the same prompt: only the cutoff differs",
                    hint="give them one budget, or use the levels the template tells apart",
                    subject={"model": template.model, "key": alike[0].label},
                    location=alike[0].key_location,
                    evidence={"levels": [value.label for value in alike]},
                )

    @classmethod
    def _refused(cls, facts: BudgetFacts, template: TemplateFacts, levels: dict[str, BudgetValue]) -> Iterator[Finding]:
        """Levels that raise: each with a budget of its own at its key, those of requests there, the rest as one."""
        refused = {prompt.effort: prompt for prompt in template.refused}
        accepted = [level for level in LEVELS if level in template.prompts and level not in refused]
        hint = f"the template accepts {', '.join(accepted) or 'none of them'}"
        asked = {request.effort: request.effort_location for request in reversed(facts.requests)}
        rest: list[str] = []
        for effort, prompt in refused.items():
            place = levels[effort].key_location if effort in levels else asked.get(effort)
            if place is None:
                rest.append(str(effort))
                continue
            yield cls._raises([str(effort)], template, hint, place, prompt.refused)
        if rest and facts.server_budget_counts and facts.written_by is not None:
            first = refused[rest[0]]
            place = Location(template.origin, first.line or 1)
            yield cls._raises(rest, template, hint, place, first.refused)

    @classmethod
    def _raises(
        cls, efforts: list[str], template: TemplateFacts, hint: str, place: Location, error: str | None
    ) -> Finding:
        names = ", ".join(f'"{effort}"' for effort in efforts)
        verb = "raises" if len(efforts) == 1 else "raise"
        return cls.finding(
            f"{names} {verb} in this template: every such request is an HTTP error",
            hint=hint,
            subject={"model": template.model, "key": efforts[0]},
            location=place,
            evidence={"levels": efforts, "error": error, "template": template.origin},
        )


@register
class FallbackDisagrees(Rule):
    id = "BUD309"
    slug = "fallback-disagrees"
    severity = "warning"
    what = (
        "A request without an effort gets the budget of `medium`, while the template writes the prompt of "
        "another level, which has another budget."
    )
    why = (
        "The prompt asks for one effort and the cutoff belongs to another: the model is cut off where it was "
        "told to go on."
    )
    example = "Qwen3.8 renders an omitted effort as xhigh; the map cuts it off at medium's 4096 instead of xhigh's 8192"
    instead = "Let clients always send `reasoning_effort`, or make medium the template's default."
    versions = "SlimServe since pull request #13"
    sources = (slimserve.SOURCE,)

    @classmethod
    def check(cls, facts: BudgetFacts) -> Iterator[Finding]:
        template = facts.template
        levels = _levels(facts)
        if template is None or not template.reads_effort or FALLBACK not in levels:
            return
        plain, medium = template.prompts.get(None), template.prompts.get(FALLBACK)
        if plain is None or plain.group is None or (medium is not None and medium.group == plain.group):
            return
        default = template.default_level
        if default is None:
            return
        cutoff = levels[FALLBACK].tokens
        own = levels[default].tokens if default in levels else cutoff
        tail = f", not {default}'s {own}" if own != cutoff else ""
        yield cls.finding(
            f"no effort sent: the prompt asks for {default}, the cutoff is medium's {cutoff}{tail}",
            hint="clients send reasoning_effort; or make medium the template's default",
            subject={"model": template.model, "key": FALLBACK},
            location=levels[FALLBACK].location,
            evidence={"template_default": default, "cutoff": cutoff, "template": template.origin},
        )


@register
class MarkerNotSingleToken(Rule):
    id = "BUD311"
    slug = "marker-not-single-token"
    severity = "error"
    what = (
        "The target enforces budgets on its V2 model runner, which wants the reasoning markers to be single "
        "tokens, and this tokenizer cuts one of them up."
    )
    why = "Every request with a budget, and every request at all where the server has a default, is refused."
    example = "GLM-Z1's tokenizer has no token for <think>; it is three tokens"
    instead = "Set VLLM_USE_V2_MODEL_RUNNER=0, or serve with a release that matches markers of several tokens."
    versions = "SlimServe from pull request #13 up to 204d61c5. vLLM's V2 runner takes markers of several tokens"
    sources = (slimserve.SOURCE, "vllm/v1/worker/gpu/sample/thinking_budget.py (0.33.0)")
    facts = ("v2-budget", "v2-default")

    @classmethod
    def check(cls, facts: BudgetFacts) -> Iterator[Finding]:
        template = facts.template
        runner = facts.command.runner if facts.command is not None else None
        asked = facts.written_by is not None or any(request.value is not None for request in facts.requests)
        if template is None or facts.dialect != "slimserve" or runner == "v1" or not asked:
            return
        broken = [marker for marker in template.markers if len(marker.ids) != 1]
        if broken:
            told = ", ".join(f"{marker.text} is {len(marker.ids)} tokens" for marker in broken)
            yield cls.finding(
                f"{told}: the V2 model runner refuses every request with a budget",
                hint="set VLLM_USE_V2_MODEL_RUNNER=0 (SlimServe from 204d61c5 on takes such markers)",
                confidence="medium",
                subject={"model": template.model},
                location=facts.command.place("reasoning-parser") if facts.command is not None else facts.location,
                evidence={"markers": {marker.text: list(marker.ids) for marker in broken}},
            )
