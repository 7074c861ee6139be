"""docs/parser-faults.md: what the battery rediscovers of vLLM's own parsers stands in the table."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
BASE_THINKING = ("deepseek_r1", "deepseek_v3", "holo2", "ernie45", "hy_v3", "hy_v4", "poolside_v1", "step5")


@pytest.fixture(scope="module")
def made() -> ModuleType:
    spec = importlib.util.spec_from_file_location("parser_faults", ROOT / "benchmarks" / "parser_faults.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def table(made: ModuleType) -> dict[str, dict[str, str]]:
    """By parser: its cells, by column."""
    found = {}
    for line in made.DOC.read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            name, *cells = (cell.strip() for cell in line.replace("\\|", "¦").strip("|").split("|"))
            found[name.strip("`")] = dict(zip(made.COLUMNS, cells, strict=True))
    return found


@pytest.mark.parametrize("name", BASE_THINKING)
def test_the_base_thinking_parsers_leak_a_marker_that_shares_its_delta(
    table: dict[str, dict[str, str]], name: str
) -> None:
    assert table[name]["larger deltas"] == "streamed: marker-leak"


def test_the_known_faults_are_found_again(table: dict[str, dict[str, str]]) -> None:
    for name in ("olmo3", "k2_horizon"):
        assert table[name]["cut thought"].startswith("full: ") and "reasoning-null" in table[name]["cut thought"]
        assert "streamed" not in table[name]["cut thought"]
    assert table["granite"]["`is_reasoning_end`"] == "has no answer (None)"
    assert table["hunyuan_a13b"]["raises"] == "streamed: raised AssertionError"
    assert "full and streamed: reasoning-null" in table["minimax_m2_append_think"]["split"]
    uncounted = {name for name, cells in table.items() if cells["tokens counted"] == "counts none"}
    assert uncounted >= {*BASE_THINKING, "granite", "hunyuan_a13b", "olmo3", "minimax_m2_append_think"} - {"hy_v4"}


def test_every_parser_is_in_the_table_or_without_a_fault(made: ModuleType, table: dict[str, dict[str, str]]) -> None:
    from reasonctl.parsers import ROWS

    text = made.DOC.read_text(encoding="utf-8")
    good = text.partition("No fault found: ")[2].partition(".\n")[0].replace("`", "").split(", ")
    assert sorted([*good, *table]) == sorted(ROWS)
    assert "qwen3" in good


def test_the_page_is_made_of_its_rows(made: ModuleType) -> None:
    text = made.DOC.read_text(encoding="utf-8")
    rows = made.written(text)
    assert made.document([rows[name] for name in sorted(rows)], "0.33.0") == text


def test_a_row_without_a_fault_is_told_from_one_with(made: ModuleType) -> None:
    assert made.faultless(f"| `a` |{' ok |' * len(made.COLUMNS)}")
    assert not made.faultless(f"| `a` | counts none |{' ok |' * (len(made.COLUMNS) - 1)}")
