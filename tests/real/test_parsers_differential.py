"""Every modelled parser against vLLM's own, on generated cases: splits, deltas, counts, and what the prompt says.

More cases than by default: `--parser-cases N` (see conftest.py).
"""

from __future__ import annotations

import pytest

from reasonctl.parsers.differential.answers import model_answer
from reasonctl.parsers.differential.cases import cases, specs
from reasonctl.parsers.differential.families import FAMILIES
from reasonctl.parsers.differential.vocabulary import SpecVocabulary
from reasonctl.parsers.table import names
from reasonctl.parsers.target import Target

from ..parsers.engine_dialect_scenarios import DIALECT_SCENARIOS
from ..parsers.engine_format_scenarios import FORMAT_SCENARIOS
from ..parsers.engine_scenarios import SCENARIOS
from ..parsers.scenario import Scenario
from .driver import VllmDriver

OLD_NAMES = tuple(name for name in names(Target("vllm", (0, 32, 0))) if name in FAMILIES)
"""Those that 0.32.0 has too."""


def assert_same(driver: VllmDriver, name: str, count: int, seed: int) -> None:
    target = Target("vllm", tuple(int(part) for part in driver.version.split(".")))  # type: ignore[arg-type]
    described = specs(name)
    vocabularies = {key: SpecVocabulary(spec) for key, spec in described.items()}
    asked = [case.to_json() for case in cases(name, count, seed=seed)]
    answers = driver.run({key: spec.to_json() for key, spec in described.items()}, asked)
    # All answers are taken in before any is judged: one that stays in the pipe would be read by the next test.
    judged = [
        (case, model_answer(case, vocabularies[case["tokenizer"]], target), expected)
        for case, expected in zip(asked, answers, strict=True)
    ]
    wrong = [(case, got, expected) for case, got, expected in judged if got != expected]
    for case, got, expected in wrong[:1]:
        assert got == expected, f"the first of {len(wrong)} in {count}, seed {seed}: {case}"


@pytest.mark.vllm
@pytest.mark.parametrize(
    "scenario", (*SCENARIOS, *DIALECT_SCENARIOS, *FORMAT_SCENARIOS), ids=lambda scenario: f"{scenario.parser}: {scenario.label}"
)
def test_scenario_is_what_vllm_does(scenario: Scenario, vllm_0_33: VllmDriver, vllm_0_32: VllmDriver) -> None:
    driver = {"0.33.0": vllm_0_33, "0.32.0": vllm_0_32}[scenario.version]
    spec = scenario.spec()
    key = f"{scenario.parser}: {scenario.label}"
    (answer,) = driver.run({key: spec.to_json()}, [scenario.case(SpecVocabulary(spec)) | {"tokenizer": key}])
    assert {part: answer[part] for part in ("full", "streams")} == scenario.answer()


@pytest.mark.vllm
@pytest.mark.parametrize("name", FAMILIES)
def test_model_is_vllm_0_33(name: str, vllm_0_33: VllmDriver, parser_cases: int) -> None:
    assert_same(vllm_0_33, name, parser_cases, seed=33)


@pytest.mark.vllm
@pytest.mark.parametrize("name", OLD_NAMES)
def test_model_is_vllm_0_32(name: str, vllm_0_32: VllmDriver, parser_cases: int) -> None:
    assert_same(vllm_0_32, name, parser_cases // 3, seed=32)
