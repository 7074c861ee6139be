"""BUD313, BUD321, BUD325 and BUD326 on models of a few lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from reasonctl.budgets.config import parse_config
from reasonctl.budgets.context import model_context
from reasonctl.budgets.facts import BudgetFacts, gather
from reasonctl.budgets.request import Request, endpoint_of
from reasonctl.budgets.template import template_facts
from reasonctl.checks.bud import check_budget
from reasonctl.checks.finding import Finding
from reasonctl.checks.thinking import read_thinking
from reasonctl.parsers import ROWS
from reasonctl.parsers.target import parse_target
from reasonctl.prompts.model import load_model
from reasonctl.prompts.survey import survey
from reasonctl.serve.commandline import parse_command_line

from .models import OPEN_SWITCH, SILENT, SWITCH, THINK, TOOL, chatml, folder

CALLS = "--enable-auto-tool-choice --tool-call-parser hermes"
BOTH = '--reasoning-config \'{"reasoning_start_str": "<think>", "reasoning_end_str": "</think>"}\''


@dataclass(frozen=True)
class Found:
    """A budget's facts and findings."""

    facts: BudgetFacts
    findings: tuple[Finding, ...]

    @property
    def rules(self) -> list[str]:
        return [finding.rule for finding in self.findings]

    def get(self, rule: str) -> Finding:
        """The one finding of a rule."""
        (found,) = [finding for finding in self.findings if finding.rule == rule]
        return found


def judged(
    path: Path,
    flags: str,
    budget: str = '{"thinking_token_budget": 64, "messages": [], "max_tokens": 9000}',
    *,
    bodies: Sequence[dict[str, Any]] = (),
    target: str = "vllm",
    env: str = "",
    call: str | None = None,
) -> Found:
    """A budget under a serve command of these flags and a model folder."""
    command = parse_command_line(f"{env}vllm serve m {flags}", path="serve.sh")
    nodes = [parse_config(json.dumps(body), path="r.json").documents[0] for body in bodies]
    requests = [Request(f"#{number}", endpoint_of(node, None), node) for number, node in enumerate(nodes, 1)]
    config = replace(parse_config(budget, path="b.json"), command=command)
    seen = survey(load_model(str(path)), target=parse_target(target))
    facts = gather(
        config,
        target=parse_target(target),
        dialect="slimserve" if target == "slimserve" else "vllm",
        requests=requests,
        template=template_facts(seen, command),
        context=model_context(seen, read_thinking(seen, ROWS.values()), call=call),
    )
    return Found(facts, tuple(check_budget(facts)))


def test_bud313_budget_never_fires_where_the_markers_are_another_familys(tmp_path: Path) -> None:
    seed = ("<seed:think>", "</seed:think>")
    path = folder(tmp_path / "m", chatml(OPEN_SWITCH), plain=(*THINK, *TOOL, *seed))
    finding = judged(path, "--reasoning-parser seed_oss").get("BUD313")
    assert (finding.slug, finding.severity, finding.confidence) == ("budget-never-fires", "error", "high")
    assert "the prompt opens thinking with <think>, and the counter waits for <seed:think>" in finding.message
    assert finding.evidence["waits_for"] == "<seed:think>"
    assert finding.subject["variant"] == {}
    assert '"reasoning_start_str": "<think>"' in finding.hint
    assert judged(path, "--reasoning-parser qwen3").rules == ["BUD314", "BUD325"]


def test_bud313_a_model_that_opens_thinking_itself(tmp_path: Path) -> None:
    seed = ("<seed:think>", "</seed:think>")
    path = folder(tmp_path / "m", chatml(SWITCH, head=SILENT), plain=(*THINK, *TOOL, *seed))
    finding = judged(path, f"--reasoning-parser qwen3 {BOTH.replace('<think>', '<seed:think>')}").get("BUD313")
    assert "the model opens thinking with <think>" in finding.message
    assert "BUD313" not in judged(path, f"--reasoning-parser qwen3 {BOTH}").rules


def test_bud313_a_marker_that_merges_with_its_neighbours(tmp_path: Path) -> None:
    path = folder(tmp_path / "m", chatml("<think>["), plain=TOOL)
    assert "BUD313" not in judged(path, BOTH).rules
    _merge(path, [(">", "[")])
    finding = judged(path, BOTH).get("BUD313")
    assert finding.severity == "error"
    assert "the counter waits for <think>, which is 7 tokens by itself" in finding.message
    assert "max_tokens" in finding.hint


def test_bud313_a_label_behind_the_marker_is_no_other_marker(tmp_path: Path) -> None:
    path = tmp_path / "gemma.jinja"
    path.write_text(chatml("{% if enable_thinking %}<|channel>thought\n{% endif %}").replace("<|im_", "<|turn_"))
    found = judged(path, "--reasoning-parser gemma4")
    assert "BUD313" not in found.rules
    assert judged(path, "--reasoning-parser qwen3").get("BUD313").confidence == "medium"


def _merge(path: Path, merges: Sequence[tuple[str, str]]) -> None:
    """Give a tokenizer merges."""
    file = path / "tokenizer.json"
    data = json.loads(file.read_text())
    vocab = data["model"]["vocab"]
    free = max([*vocab.values(), *(token["id"] for token in data["added_tokens"])]) + 1
    for number, (left, right) in enumerate(merges):
        vocab.setdefault(left + right, free + number)
    data["model"]["merges"] = [list(pair) for pair in merges]
    file.write_text(json.dumps(data))


def test_bud313_an_effort_of_its_own_marker_is_a_warning(tmp_path: Path) -> None:
    tail = "{% if reasoning_effort == 'low' %}<ifm|think_faster>\n{% else %}<ifm|think>\n{% endif %}"
    markers = ("<ifm|think>", "</ifm|think>", "<ifm|think_faster>", "</ifm|think_faster>", "<ifm|tool_calls>")
    markers += ("<ifm|think_fast>", "</ifm|think_fast>")
    path = folder(tmp_path / "m", chatml(tail), plain=markers)
    finding = judged(path, "--reasoning-parser k2_horizon").get("BUD313")
    assert finding.severity == "warning"
    assert finding.subject["variant"] == {"reasoning_effort": "low"}
    assert "<ifm|think_faster>" in finding.message


@pytest.mark.parametrize("budget", [-1, None])
def test_no_budget_no_finding_of_its_counter(tmp_path: Path, budget: int | None) -> None:
    path = folder(tmp_path / "m", chatml(OPEN_SWITCH))
    body = json.dumps({"messages": [], "max_tokens": 9000, "thinking_token_budget": budget})
    assert set(judged(path, "--reasoning-parser qwen3", body).rules) <= {"BUD317"}


CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}'
NO_BUDGET = '{"messages": [], "max_tokens": 9000}'


def test_bud321_cut_inside_tool_call(tmp_path: Path) -> None:
    path = folder(tmp_path / "m", chatml(OPEN_SWITCH, tools=True))
    finding = judged(path, f"--reasoning-parser qwen3 {CALLS}", call=CALL).get("BUD321")
    assert (finding.slug, finding.severity) == ("cut-inside-tool-call", "warning")
    assert finding.evidence["call"] == "<tool_call>"
    assert "<tool_call>" in finding.evidence["output"].partition("[</think>]")[0]
    assert finding.evidence["output"].partition("[</think>]")[2]
    sent = {"messages": [], "tools": [{"type": "function"}], "thinking_token_budget": 64, "max_tokens": 9000}
    assert "BUD321" in judged(path, "--reasoning-parser qwen3", NO_BUDGET, bodies=[sent], call=CALL).rules


@pytest.mark.parametrize(
    ("flags", "body", "target", "call"),
    [
        ("--reasoning-parser qwen3", {}, "vllm", CALL),
        (f"--reasoning-parser deepseek_r1 {CALLS}", {}, "vllm", CALL),
        (f"--reasoning-parser qwen3 {CALLS}", {}, "slimserve", CALL),
        (f"--reasoning-parser qwen3 {CALLS}", {}, "vllm", None),
        ("--reasoning-parser qwen3", {"tools": [{}], "tool_choice": "none"}, "vllm", CALL),
        (f"--reasoning-parser qwen3 {CALLS}", {"thinking_token_budget": None}, "vllm", CALL),
    ],
)
def test_bud321_is_silent_where_no_call_can_be_cut(
    tmp_path: Path, flags: str, body: dict[str, Any], target: str, call: str | None
) -> None:
    path = folder(tmp_path / "m", chatml(OPEN_SWITCH, tools=True))
    sent = {"messages": [], "thinking_token_budget": 64, "max_tokens": 9000} | body
    assert "BUD321" not in judged(path, flags, json.dumps(sent), target=target, call=call).rules


@pytest.mark.parametrize(
    ("target", "env", "severity", "said"),
    [
        ("vllm", "", "info", "every block that the model opens again gets the whole of it"),
        ("vllm", "VLLM_USE_V2_MODEL_RUNNER=0 ", "info", "gets the whole of it"),
        ("vllm==0.26.0", "VLLM_USE_V2_MODEL_RUNNER=0 ", "info", "gets the whole of it"),
        ("vllm==0.25.0", "VLLM_USE_V2_MODEL_RUNNER=0 ", "warning", "closes a block at once"),
        ("vllm==0.21.0", "", "warning", "counts the first block only"),
        ("vllm==0.20.0", "", None, ""),
        ("slimserve", "", "info", "gets the whole of it"),
    ],
)
def test_bud325_per_block(tmp_path: Path, target: str, env: str, severity: str | None, said: str) -> None:
    path = folder(tmp_path / "m", chatml(OPEN_SWITCH))
    found = judged(path, "--reasoning-parser qwen3", target=target, env=env)
    if severity is None:
        assert "BUD325" not in found.rules
        return
    finding = found.get("BUD325")
    assert finding.severity == severity
    assert said in finding.message
    if target == "vllm":
        assert finding.evidence["output"].count("[</think>]") == 1


def test_bud326_user_marker_spends_budget(tmp_path: Path) -> None:
    path = folder(tmp_path / "m", chatml(SWITCH, head=SILENT))
    found = judged(path, "--reasoning-parser qwen3")
    finding = found.get("BUD326")
    assert (finding.slug, finding.severity, finding.confidence) == ("user-marker-spends-budget", "warning", "high")
    assert finding.subject["conversation"] == "user_start_marker"
    assert finding.evidence["charged"] > 5
    assert "BUD326" not in judged(path, "--reasoning-parser qwen3", target="slimserve").rules
    opened = folder(tmp_path / "n", chatml(OPEN_SWITCH))
    assert "BUD326" not in judged(opened, "--reasoning-parser qwen3").rules


def test_bud322_a_dense_model_runs_on_the_runner_that_refuses(tmp_path: Path) -> None:
    config = {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]}
    path = folder(tmp_path / "m", chatml(OPEN_SWITCH), config=config)
    finding = judged(path, "--reasoning-parser qwen3", target="vllm==0.25.0").get("BUD322")
    assert (finding.severity, finding.confidence) == ("error", "medium")
    assert "this model's default" in finding.message
    moe = folder(tmp_path / "n", chatml(OPEN_SWITCH), config=config | {"architectures": ["Qwen3MoeForCausalLM"]})
    for other, target in ((moe, "vllm==0.25.0"), (path, "vllm==0.28.0"), (path, "vllm==0.22.0")):
        assert "BUD322" not in judged(other, "--reasoning-parser qwen3", target=target).rules
