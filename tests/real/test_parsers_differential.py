"""The scenarios of the parser tests: vLLM's own parsers give the values that stand in them."""

from __future__ import annotations

import pytest

from reasonctl.parsers.differential.vocabulary import SpecVocabulary

from ..parsers.channel_scenarios import CHANNEL_SCENARIOS
from ..parsers.engine_dialect_scenarios import DIALECT_SCENARIOS
from ..parsers.engine_format_scenarios import FORMAT_SCENARIOS
from ..parsers.engine_scenarios import SCENARIOS
from ..parsers.muse_scenarios import MUSE_SCENARIOS
from ..parsers.scenario import Scenario
from ..parsers.text_scenarios import TEXT_SCENARIOS
from .driver import VllmDriver


@pytest.mark.vllm
@pytest.mark.parametrize(
    "scenario",
    (*SCENARIOS, *DIALECT_SCENARIOS, *FORMAT_SCENARIOS, *TEXT_SCENARIOS, *CHANNEL_SCENARIOS, *MUSE_SCENARIOS),
    ids=lambda scenario: f"{scenario.parser}: {scenario.label}",
)
def test_scenario_is_what_vllm_does(scenario: Scenario, vllm_0_33: VllmDriver, vllm_0_32: VllmDriver) -> None:
    driver = {"0.33.0": vllm_0_33, "0.32.0": vllm_0_32}[scenario.version]
    spec = scenario.spec()
    key = f"{scenario.parser}: {scenario.label}"
    (answer,) = driver.run({key: spec.to_json()}, [scenario.case(SpecVocabulary(spec)) | {"tokenizer": key}])
    assert {part: answer[part] for part in ("full", "streams")} == scenario.answer()
