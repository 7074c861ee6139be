"""What was measured of vLLM's parsers, and which measurement speaks for a target."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reasonctl.parsers import Target, names
from reasonctl.parsers import streaming_cost as module
from reasonctl.parsers.streaming_cost import StreamingCost, growing, measured_versions, streaming_cost

NEW, OLD = Target("vllm", (0, 33, 0)), Target("vllm", (0, 32, 0))


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {
        "0.33.0": {
            "a": [[10, 1.0], [80, 8.5]],
            "b": [[10, 1.0], [80, 20.0], [20, 2.0], [160, 40.0]],
            "c": [[10, 0], [80, 1]],
        },
        "0.32.0": {"a": [[10, 1.0], [80, 20.0]]},
    }
    monkeypatch.setattr(module, "_measured", lambda: found)


@pytest.mark.usefixtures("measured")
def test_the_longest_pair_that_grows_speaks_else_the_longest() -> None:
    assert streaming_cost("a", NEW) == StreamingCost("0.33.0", 10, 1.0, 80, 8.5, 0.1)
    assert streaming_cost("b", NEW) == StreamingCost("0.33.0", 20, 2.0, 160, 40.0, 0.1)
    assert streaming_cost("unheard-of", NEW) is None


@pytest.mark.usefixtures("measured")
def test_growth_against_the_stream() -> None:
    ordinary, dear = streaming_cost("a", NEW), streaming_cost("a", OLD)
    assert ordinary is not None
    assert dear is not None
    assert (ordinary.growth, ordinary.linear) == (8.5, True)
    assert (dear.growth, dear.linear) == (20.0, False)
    unmeasurable = streaming_cost("c", NEW)
    assert unmeasurable is not None
    assert unmeasurable.linear


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize(
    ("version", "wanted"),
    [((0, 33, 0), "0.33.0"), ((0, 40, 1), "0.33.0"), ((0, 32, 5), "0.32.0"), ((0, 24, 0), "0.32.0")],
)
def test_the_nearest_version_measured_speaks(version: tuple[int, int, int], wanted: str) -> None:
    cost = streaming_cost("a", Target("vllm", version))
    assert cost is not None
    assert cost.version == wanted
    assert streaming_cost("a", Target("slimserve")) is None


@pytest.mark.usefixtures("measured")
def test_what_grows_the_dearest_first() -> None:
    assert list(growing("0.33.0")) == ["b"]
    assert list(growing("0.32.0")) == ["a"]
    assert measured_versions() == ("0.33.0", "0.32.0")


def test_the_shipped_figures_are_of_registered_names_and_whole_pairs() -> None:
    found = json.loads(Path(module.FILE).read_text(encoding="utf-8"))
    assert set(found) == {"0.33.0", "0.32.0"}
    for version, rows in found.items():
        target = Target("vllm", tuple(int(part) for part in version.split(".")))  # type: ignore[arg-type]
        assert set(rows) <= set(names(target))
        for pairs in rows.values():
            assert all(longer[0] == 8 * short[0] for short, longer in zip(pairs[::2], pairs[1::2], strict=True))
    assert {"granite", "muse", "muse_glimmer", "musespark1x", "olmo3", "kimi_k3"} <= set(growing("0.33.0"))
    assert not {"qwen3", "glm45", "deepseek_v4", "kimi_k2", "minimax_m2"} & set(growing("0.33.0"))
