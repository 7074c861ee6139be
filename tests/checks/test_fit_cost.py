"""FIT117: a parser that is measured to slow down as its stream grows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reasonctl.checks import fit_cost
from reasonctl.checks.facts import AuditFacts
from reasonctl.checks.fit_cost import StreamingCostGrows
from reasonctl.parsers import Target
from reasonctl.parsers.streaming_cost import StreamingCost

from .models import OPEN, chatml, lone


@pytest.fixture(scope="module")
def facts() -> AuditFacts:
    return lone(chatml(OPEN), "qwen3").facts


def judged_with(
    monkeypatch: pytest.MonkeyPatch, facts: AuditFacts, cost: StreamingCost | None
) -> list[tuple[str, str]]:
    monkeypatch.setattr(fit_cost, "streaming_cost", lambda name, target: cost)
    return [(found.severity, found.confidence) for found in StreamingCostGrows.check(facts)]


def test_fit117_fires_where_cost_outgrows_the_stream(monkeypatch: pytest.MonkeyPatch, facts: AuditFacts) -> None:
    grows = StreamingCost("0.33.0", 1000, 0.06, 8000, 3.5, 60e-6)
    assert judged_with(monkeypatch, facts, grows) == [("warning", "high")]
    assert judged_with(monkeypatch, facts, replace(grows, version="0.32.0")) == [("warning", "medium")]


@pytest.mark.parametrize(
    "cost",
    [
        None,
        StreamingCost("0.33.0", 1000, 0.5, 8000, 5.0, 500e-6),
        StreamingCost("0.33.0", 4000, 0.04, 32000, 1.9, 5e-6),
    ],
    ids=["never measured", "in step with the stream", "cheap to begin with"],
)
def test_fit117_is_silent(monkeypatch: pytest.MonkeyPatch, facts: AuditFacts, cost: StreamingCost | None) -> None:
    assert judged_with(monkeypatch, facts, cost) == []


def test_streaming_cost_grows_by_the_shipped_figures(facts: AuditFacts) -> None:
    assert "FIT117" not in lone(chatml(OPEN), "qwen3").rules
    assert "FIT117" not in lone(chatml(OPEN), "deepseek_r1").rules
    found = lone(chatml(OPEN), "granite").get("FIT117")
    assert found.severity == "warning"
    assert found.evidence["vllm"] == "0.33.0"
    assert found.evidence["growth"] > 11
    assert lone(chatml(OPEN), "granite", target=Target("vllm", (0, 32, 0))).get("FIT117").evidence["vllm"] == "0.32.0"


def test_fit117_tells_every_figure_it_fires_on() -> None:
    assert "granite" in StreamingCostGrows.versions
    assert "vLLM 0.32.0" in StreamingCostGrows.versions
    assert "qwen3" not in StreamingCostGrows.versions
