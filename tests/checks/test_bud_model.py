"""BUD308, 309, 311: budgets against a template's efforts and a tokenizer's markers; and the family as a whole."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from reasonctl.budgets.config import parse_config
from reasonctl.budgets.dialects import EFFORTS
from reasonctl.budgets.facts import gather
from reasonctl.budgets.template import EffortPrompt, Marker, TemplateFacts, template_facts
from reasonctl.checks.bud import RULES, check_budget
from reasonctl.checks.finding import Finding
from reasonctl.checks.rule import all_rules
from reasonctl.parsers.target import Target
from reasonctl.prompts.model import Model, Template
from reasonctl.prompts.survey import PromptState, Survey

LEVELS = {"low": 1000, "medium": 4000, "xhigh": 8000}


def template(
    groups: Mapping[str | None, int],
    *,
    refused: Sequence[str] = (),
    reads: bool = True,
    markers: Sequence[Marker] = (),
) -> TemplateFacts:
    """A template that gives efforts of one number the same prompt, and raises for those in `refused`."""
    prompts: dict[str | None, EffortPrompt] = {
        effort: EffortPrompt(effort, "open", group=group) for effort, group in groups.items()
    }
    prompts |= {effort: EffortPrompt(effort, "error", refused=f"no {effort}", line=7) for effort in refused}
    return TemplateFacts("models/m", "models/m/chat_template.jinja", reads, prompts, tuple(markers))


PLAIN = template(dict.fromkeys((*EFFORTS, None), 0), reads=False)
QWEN = template({"none": 0, "low": 1, "medium": 2, "xhigh": 3, None: 3}, refused=("minimal", "high", "max"))
BY_MEDIUM = template({"none": 0, "low": 1, "medium": 2, "xhigh": 3, None: 2})


def found(rule: str, config: Any, about: TemplateFacts | None, *, dialect: str = "slimserve") -> list[Finding]:
    text = config if isinstance(config, str) else json.dumps(config)
    facts = gather(
        parse_config(text, path="c"),
        dialect=dialect,  # type: ignore[arg-type]
        target=Target("slimserve"),
        limits=(12000,),
        template=about,
    )
    return [finding for finding in check_budget(facts) if finding.rule == rule]


def test_bud308_levels_that_raise() -> None:
    (finding,) = found("BUD308", LEVELS, QWEN)
    assert finding.severity == "warning"
    assert finding.evidence["levels"] == ["minimal", "high", "max"]
    assert finding.location is not None
    assert (finding.location.path, finding.location.line) == ("models/m/chat_template.jinja", 7)
    assert finding.hint == "the template accepts low, medium, xhigh"


def test_a_budget_for_a_level_that_raises_is_at_its_key() -> None:
    own, rest = found("BUD308", {"medium": 1000, "high": 2000}, QWEN)
    assert (own.evidence["levels"], own.location.path if own.location else None) == (["high"], "c")
    assert rest.evidence["levels"] == ["minimal", "max"]


def test_a_request_for_a_level_that_raises() -> None:
    request = {"messages": [], "reasoning_effort": "high"}
    (finding,) = found("BUD308", request, QWEN, dialect="vllm")
    assert finding.evidence["levels"] == ["high"]
    assert found("BUD308", request | {"reasoning_effort": "low"}, QWEN, dialect="vllm") == []


def test_levels_the_template_does_not_tell_apart() -> None:
    (finding,) = found("BUD308", LEVELS, PLAIN)
    assert "does not read reasoning_effort" in finding.message
    assert found("BUD308", 4000, PLAIN) == []
    assert found("BUD308", dict.fromkeys(LEVELS, 4000), PLAIN) == []
    alike = template({"low": 1, "medium": 1, "xhigh": 2, None: 1})
    (finding,) = found("BUD308", LEVELS, alike)
    assert finding.evidence["levels"] == ["low", "medium"]
    assert found("BUD308", LEVELS | {"low": 4000}, alike) == []
    assert found("BUD308", LEVELS, BY_MEDIUM) == []
    assert found("BUD308", LEVELS, None) == []


def test_fallback_disagrees() -> None:
    (finding,) = found("BUD309", LEVELS, QWEN)
    assert finding.severity == "warning"
    assert finding.message == "no effort sent: the prompt asks for xhigh, the cutoff is medium's 4000, not xhigh's 8000"
    assert finding.location is not None
    assert (finding.location.path, finding.location.column) == ("c", json.dumps(LEVELS).index("4000") + 1)
    assert found("BUD309", LEVELS, BY_MEDIUM) == []
    assert found("BUD309", LEVELS, PLAIN) == []
    assert found("BUD309", 4000, QWEN) == []
    unlike_any = template({"low": 1, "medium": 2, "xhigh": 3, None: 9})
    assert found("BUD309", LEVELS, unlike_any) == []


CUT = (Marker("<think>", (1, 2, 3)), Marker("</think>", (4,)))
WHOLE = (Marker("<think>", (1,)), Marker("</think>", (4,)))


def test_marker_not_single_token() -> None:
    (finding,) = found("BUD311", 4000, template({None: 0}, markers=CUT))
    assert (finding.severity, finding.confidence) == ("error", "medium")
    assert finding.evidence["markers"] == {"<think>": [1, 2, 3]}
    assert found("BUD311", 4000, template({None: 0}, markers=WHOLE)) == []


@pytest.mark.parametrize(
    ("command", "fires"),
    [
        ("slimserve p --override-generation-config.thinking_token_budget 5", True),
        ("VLLM_USE_V2_MODEL_RUNNER=1 slimserve p --override-generation-config.thinking_token_budget 5", True),
        ("VLLM_USE_V2_MODEL_RUNNER=0 slimserve p --override-generation-config.thinking_token_budget 5", False),
        ("slimserve p --serve", False),
    ],
)
def test_the_v1_runner_and_no_budget_need_no_single_token(command: str, fires: bool) -> None:
    assert bool(found("BUD311", command, template({None: 0}, markers=CUT))) == fires
    assert found("BUD311", command, template({None: 0}, markers=CUT), dialect="vllm") == []


def state(variant: dict[str, Any], prompt: str | None, error: str | None = None) -> PromptState:
    kind = "error" if error else "open"
    return PromptState("single_turn", variant, {}, kind, prompt=prompt, error=error, error_line=4 if error else None)


def test_facts_of_a_survey_efforts_that_move_nothing_are_the_plain_prompt() -> None:
    model = Model("models/m", "folder", None, template=Template("{{ reasoning_effort }}", "chat_template.jinja"))
    states = (
        state({}, "p"),
        state({"reasoning_effort": "low"}, "low p"),
        state({"reasoning_effort": "max"}, None, "max is not supported"),
        state({"reasoning_effort": "xhigh"}, "low p"),
    )
    facts = template_facts(Survey(model, reads=frozenset({"reasoning_effort"}), states=states), None)
    assert facts is not None
    groups = {effort: prompt.group for effort, prompt in facts.prompts.items()}
    assert groups["low"] == groups["xhigh"] != groups["medium"]
    assert groups["medium"] == groups["high"] == groups[None]
    assert [(prompt.effort, prompt.refused, prompt.line) for prompt in facts.refused] == [
        ("max", "max is not supported", 4)
    ]
    assert facts.default_level is None
    assert facts.markers == ()
    assert template_facts(Survey(model), None) is None


def test_every_rule_of_the_family_is_run_and_explained() -> None:
    family = [rule for rule in all_rules().values() if rule.id.startswith("BUD")]
    assert sorted(rule.id for rule in RULES) == [rule.id for rule in family]
    assert [rule.id for rule in family] == [f"BUD{number}" for number in range(301, 328)]
    for rule in family:
        for text in (rule.what, rule.why, rule.example, rule.instead, rule.versions):
            assert len(text) > 10
        assert rule.sources
