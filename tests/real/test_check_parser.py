"""`reasonctl check-parser` on real vLLMs: the good plugin, written tests, and the table of known faults."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from reasonctl.checks.plg_run import run_findings
from reasonctl.kit.battery import Battery, run_battery
from reasonctl.kit.bench import BridgeBench
from reasonctl.kit.compare import compare
from reasonctl.kit.pytest_file import file_name, snippet
from reasonctl.kit.pytest_file import test_file as pytest_file_of
from reasonctl.kit.setting import from_table
from reasonctl.kit.source import read_plugin_source
from reasonctl.kit.subject import Subject, asked, subject_of
from reasonctl.parsers import ROWS
from reasonctl.parsers.bridge.bridge import Bridge
from reasonctl.parsers.bridge.plugin import Plugin
from reasonctl.parsers.bridge.spec import parse_engine
from reasonctl.parsers.target import Target

from ..kit.faulty import plugin
from .driver import ENVIRONMENT

pytestmark = pytest.mark.vllm

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ENVIRONMENT / "bin" / "python"
ENGINES = {"0.33.0": f"{ENVIRONMENT / 'vllm-0.33.0'}:{PYTHON}", "0.32.0": str(PYTHON)}


@pytest.fixture(scope="module")
def bridge() -> Iterator[Bridge]:
    with Bridge(parse_engine(ENGINES["0.33.0"])) as opened:
        yield opened


def put(version: str, path: Path, examples: int = 200) -> tuple[Battery, Subject]:
    source = read_plugin_source(path)
    with Bridge(parse_engine(ENGINES[version]), plugin=Plugin(path.name, source.text)) as opened:
        subject = asked(subject_of(source, None), opened)
        setting = subject.setting(None, Target())
        bench = BridgeBench(opened, subject.name, setting.vocabulary)
        return run_battery(bench, setting, opened.described, examples=examples), subject


@pytest.mark.parametrize("version", sorted(ENGINES))
def test_the_good_plugin_passes(tmp_path: Path, version: str) -> None:
    battery, subject = put(version, plugin(tmp_path))
    assert battery.version == version
    assert (battery.failed, battery.lost, dict(battery.generated.failing)) == ([], [], {})
    assert run_findings(battery, subject, snippet=snippet) == []


@pytest.mark.parametrize(
    ("fault", "found"),
    [("marker-in-two-deltas", ("PLG607", "hold-back")), ("ignores-the-switch", ("PLG608", "thinking-off"))],
)
def test_a_fault_is_found(tmp_path: Path, fault: str, found: tuple[str, str]) -> None:
    battery, subject = put("0.33.0", plugin(tmp_path, fault))
    assert found in {(one.rule, one.subject["key"]) for one in run_findings(battery, subject, snippet=snippet)}


def test_written_tests_run_with_vllm_alone_and_fail_where_the_cases_do(bridge: Bridge, tmp_path: Path) -> None:
    setting = from_table(ROWS["deepseek_r1"])
    bench = BridgeBench(bridge, "deepseek_r1", setting.vocabulary)
    battery = run_battery(bench, setting, bridge.described, examples=100)
    subject = Subject("deepseek_r1")
    (tmp_path / file_name(subject)).write_text(pytest_file_of(battery, subject, tmp_path), encoding="utf-8")
    wrong = {one.case.name for one in battery.failed}
    assert {"deltas-of-3", "text-held-back-4", "nested", "count-reasoning-tokens"} <= wrong
    failed = run_pytest(tmp_path, file_name(subject))
    named = {name for name in failed if not name.startswith("generated_")}
    assert {"nested_full", "count_reasoning_tokens", "deltas_of_3_stream_2", "text_held_back_4_stream"} <= named
    assert len(named) == len(battery.failed)
    assert {name.removeprefix("generated_").replace("_", "-") for name in failed - named} == set(
        battery.generated.smallest
    )


def run_pytest(folder: Path, name: str) -> set[str]:
    """The tests that fail, run by the other Python; pytest is lent to it, and nothing else."""
    lent = folder / "lent"
    lent.mkdir()
    for package in ("pytest", "_pytest", "pluggy", "iniconfig", "py"):
        spec = importlib.util.find_spec(package)
        assert spec is not None and spec.origin is not None
        origin = Path(spec.origin)
        (lent / (origin.name if origin.stem == package else package)).symlink_to(
            origin if origin.stem == package else origin.parent
        )
    path = os.pathsep.join([str(ENVIRONMENT / "vllm-0.33.0"), str(lent)])
    done = subprocess.run(
        [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rf", "--tb=no", name],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "VLLM_LOGGING_LEVEL": "ERROR", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert " passed" in done.stdout, done.stdout + done.stderr
    return set(re.findall(r"^FAILED \S+::test_(\w+)", done.stdout, re.MULTILINE))


def test_what_an_upgrade_fixed_is_told() -> None:
    """Since 0.33.0 engine parsers read the prompt in full mode too."""
    found = []
    for version in ("0.32.0", "0.33.0"):
        setting = from_table(ROWS["qwen3"])
        with Bridge(parse_engine(ENGINES[version])) as opened:
            bench = BridgeBench(opened, "qwen3", setting.vocabulary)
            found.append(run_battery(bench, setting, opened.described, examples=40))
    told = compare(found[0], found[1], ("old", "new"))
    assert [one.partition(" (")[0] for one in told.fixed] == ["answer-behind-a-closed-block"]
    assert (told.broke, told.left) == ((), ())
    back = compare(found[1], found[0], ("new", "old"))
    assert (back.broke, back.fixed) == (told.fixed, ())


def faults() -> object:
    spec = importlib.util.spec_from_file_location("parser_faults", ROOT / "benchmarks" / "parser_faults.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["deepseek_r1", "granite", "olmo3", "hunyuan_a13b", "k2_horizon"])
def test_the_table_of_faults_is_what_the_battery_finds_now(bridge: Bridge, name: str) -> None:
    made = faults()
    row = made.row(made.battery(bridge, name))  # type: ignore[attr-defined]
    assert row in made.DOC.read_text(encoding="utf-8").splitlines()  # type: ignore[attr-defined]
