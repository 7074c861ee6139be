"""`reasonctl check-parser` over a tiny fake vLLM: the good plugin passes, each fault is found where it is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reasonctl.checks.finding import Finding
from reasonctl.checks.plg_run import run_findings
from reasonctl.kit.battery import Battery, run_battery
from reasonctl.kit.bench import GIVEN_UP, BridgeBench, Cost
from reasonctl.kit.pytest_file import snippet
from reasonctl.kit.source import read_plugin_source
from reasonctl.kit.subject import Subject, asked, subject_of
from reasonctl.parsers.bridge.bridge import Bridge
from reasonctl.parsers.bridge.plugin import Plugin
from reasonctl.parsers.bridge.spec import parse_engine
from reasonctl.parsers.target import Target

from .faulty import fake, plugin

EXAMPLES = 120


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> str:
    return fake(tmp_path_factory.mktemp("fake"))


@contextmanager
def bridged(engine: str, path: Path) -> Iterator[tuple[Bridge, Subject]]:
    source = read_plugin_source(path)
    with Bridge(parse_engine(engine), plugin=Plugin(path.name, source.text), seconds=30.0) as bridge:
        assert bridge.plugin_problem is None
        yield bridge, asked(subject_of(source, None), bridge)


def put(engine: str, path: Path, examples: int = EXAMPLES) -> tuple[Battery, list[Finding]]:
    with bridged(engine, path) as (bridge, subject):
        setting = subject.setting(None, Target())
        battery = run_battery(
            BridgeBench(bridge, subject.name, setting.vocabulary), setting, bridge.described, examples=examples
        )
    return battery, run_findings(battery, subject, snippet=snippet)


def line_of(path: Path, text: str) -> int:
    return next(number for number, line in enumerate(path.read_text().splitlines(), 1) if text in line)


def test_the_good_plugin_passes(engine: str, tmp_path: Path) -> None:
    battery, findings = put(engine, plugin(tmp_path))
    assert findings == []
    assert (battery.failed, battery.lost, dict(battery.generated.failing), battery.shared) == ([], [], {}, ())
    assert battery.setting.thinking.start == "<ponder>"
    assert {one.case.name for one in battery.outcomes} >= {
        "start-in-prompt", "start-in-output", "truncated-in-prompt", "nested", "empty-output", "empty-thought",
        "only-the-start-marker", "only-the-end-marker", "end-marker-over-two-texts", "is-reasoning-end-before",
        "text-before-and-after-the-end-marker", "is-reasoning-end-inside", "is-reasoning-end-after", "thinking-off",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "rule", "key", "method"),
    [
        ("class-state", "PLG603", "state", "class PonderReasoningParser"),
        ("state-on-the-tokenizer", "PLG606", "instances", "class PonderReasoningParser"),
        ("one-instance", "PLG606", "one-instance", "class PonderReasoningParser"),
        ("marker-in-two-deltas", "PLG607", "hold-back", "def extract_reasoning_streaming"),
        ("last-id-alone", "PLG608", "prompt", "def is_reasoning_end("),
        ("none", "PLG608", "prompt", "def is_reasoning_end("),
        ("says-nothing", "PLG610", "empty-delta", "def extract_reasoning_streaming"),
        ("counts-none", "FIT118", "token-count", "def count_reasoning_tokens"),
        ("raises", "PLG611", "raised", "class PonderReasoningParser"),
    ],
)
def test_plg606_plg607_plg608_plg610_plg611_are_found_at_the_method(
    engine: str, tmp_path: Path, fault: str, rule: str, key: str, method: str
) -> None:
    path = plugin(tmp_path, fault)
    _, findings = put(engine, path)
    found = {(one.rule, one.subject["key"]): one for one in findings}
    assert (rule, key) in found
    location = found[rule, key].location
    assert location is not None
    assert (location.path, location.line) == (str(path), line_of(path, method))


@pytest.mark.parametrize(
    ("fault", "how"), [("exits", "status 3"), ("crashes", "SIGSEGV"), ("hangs", "no answer within")]
)
def test_what_hangs_or_exits_costs_its_own_results(engine: str, tmp_path: Path, fault: str, how: str) -> None:
    battery, findings = put(engine, plugin(tmp_path, fault), examples=0)
    lost = {one.case.name for one in battery.outcomes if one.lost is not None}
    assert lost == {"nested"}
    assert {one.rule for one in findings} == {"PLG611", "INT904"}
    assert all(how in one.message for one in findings)


def test_what_exits_on_an_empty_output_alone_is_told_there_and_costs_nothing_else(engine: str, tmp_path: Path) -> None:
    battery, findings = put(engine, plugin(tmp_path, "exits-on-nothing"), examples=EXAMPLES)
    assert {one.case.name for one in battery.outcomes if one.lost is not None} == {"empty-output"}
    assert battery.failed == [] and battery.generated.unasked == 0
    assert set(battery.generated.failing) <= {"nothing-raised"}
    assert {one.rule for one in findings} == {"PLG611", "INT904"}
    (finding,) = (one for one in findings if one.rule == "PLG611")
    assert finding.message.startswith("it raised, hung or exited: empty-output: its process ended with status 3")
    assert finding.evidence["output"] == ""
    assert finding.evidence["pytest"].startswith("def test_empty_output_full():")


@pytest.mark.parametrize(("fault", "mode"), [("exits", "full"), ("exits-in-a-stream", "stream")])
def test_what_exits_in_one_mode_is_told_of_that_mode(engine: str, tmp_path: Path, fault: str, mode: str) -> None:
    battery, findings = put(engine, plugin(tmp_path, fault), examples=0)
    lost = {(one.case.name, one.case.mode) for one in battery.outcomes if one.lost is not None and one.case.weighs}
    assert ("nested", mode) in lost
    (finding,) = (one for one in findings if one.rule == "PLG611")
    assert finding.evidence["pytest"].startswith(f"def test_nested_{mode}():")


def test_what_was_not_asked_is_no_sign_against_the_parser(engine: str, tmp_path: Path) -> None:
    battery, findings = put(engine, plugin(tmp_path, "exits-always"), examples=20)
    read = [one for one in battery.outcomes if one.case.name.startswith("is-reasoning-end-before")]
    assert read and all(one.ok for one in read if not one.unasked)
    generated = battery.generated
    assert (generated.examples, generated.failing, generated.smallest) == (0, {}, {})
    assert generated.unasked > 10
    assert battery.lost.count(GIVEN_UP) == sum(one.unasked for one in battery.outcomes) + generated.unasked
    (finding,) = (one for one in findings if one.rule == "PLG611")
    assert "status 3" in finding.message
    assert {one.case.name for one in battery.outcomes if one.lost is not None and not one.unasked} >= {
        *finding.evidence.get("also", [])
    }


def test_an_unruly_plugin_leaves_nothing_behind(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, pids = tmp_path / "here", tmp_path / "pids"
    here.mkdir()
    monkeypatch.chdir(here)
    battery, findings = put(engine, plugin(tmp_path, "unruly", PIDS=str(pids)), examples=20)
    assert findings == [] and battery.lost == []
    assert list(here.iterdir()) == []
    started = pids.read_text().split()
    assert started and not any(Path(f"/proc/{pid}").exists() for pid in started)


@pytest.mark.parametrize("layout", ["delta", "reasoning"])
def test_older_servers_drive_it_in_their_own_way(tmp_path: Path, layout: str) -> None:
    battery, findings = put(fake(tmp_path / "old", layout=layout), plugin(tmp_path), examples=40)
    assert findings == []
    assert (battery.failed, battery.lost, battery.generated.examples > 20) == ([], [], True)


def test_a_failure_is_made_as_small_as_it_gets(engine: str, tmp_path: Path) -> None:
    battery, findings = put(engine, plugin(tmp_path, "marker-in-two-deltas"), examples=400)
    smallest = battery.generated.smallest["hold-back-agrees"].example
    assert len(smallest.probe.text) <= len("<ponder></ponder>\n\n") + 2
    finding = next(one for one in findings if one.subject["key"] == "hold-back")
    assert finding.evidence["expected"] == {"reasoning": "Let me see, two and two make four.", "content": "It is four."}
    assert "</ponder>" in "".join(text for text, _ in finding.evidence["deltas"])
    assert finding.evidence["pytest"].startswith("def test_text_held_back_4_stream():")


def test_two_runs_say_the_same(engine: str, tmp_path: Path) -> None:
    path = plugin(tmp_path, "marker-in-two-deltas")
    one, other = (put(engine, path)[1] for _ in range(2))
    assert [each.as_json() for each in one] == [each.as_json() for each in other]


def test_a_thought_that_grows_dear_is_told(engine: str, tmp_path: Path) -> None:
    battery, _ = put(engine, plugin(tmp_path), examples=0)
    assert battery.cost is not None and battery.cost.tokens == 8000
    subject = Subject("ponder", read_plugin_source(plugin(tmp_path)))
    costs = {(10e-6, 900e-6): ["FIT117"], (10e-6, 20e-6): [], (1e-6, 100e-6): [], (400e-6, 900e-6): []}
    for (early, late), rules in costs.items():
        measured = replace(battery, cost=Cost(8000, early, late))
        assert [one.rule for one in run_findings(measured, subject, snippet=snippet)] == rules


COMMAND = "check-parser"
Run = Callable[..., tuple[int, str, str]]


def report(run: Run, *arguments: str) -> tuple[int, dict[str, Any]]:
    code, out, _ = run(*arguments, "--format", "json", "--no-config")
    found: dict[str, Any] = json.loads(out)
    return code, found


def test_the_command_reports_facts_and_places(run: Run, engine: str, tmp_path: Path) -> None:
    path = plugin(tmp_path, "last-id-alone")
    code, found = report(run, str(path), "--vllm", engine, "--examples", "60")
    assert (code, found["command"], found["verdict"]) == (1, "check-parser", "fail")
    facts = found["facts"]
    assert (facts["name"], facts["vllm"][0]["vllm_version"], facts["comparison"]) == ("ponder", "0.33.0", None)
    wrong = {case["name"] for case in facts["cases"] if case["ok"] is False}
    assert "is-reasoning-end-answering" in wrong and "is-reasoning-end-after" not in wrong
    assert facts["generated"]["invariants"]["nothing-raised"] == {"ok": True, "broken": 0}
    assert {one["rule"] for one in found["findings"]} == {"PLG608"}


@pytest.mark.parametrize(("fault", "rule", "shown"), [("none", "PLG608", "got"), ("class-state", "PLG603", "after")])
def test_one_defect_is_told_once(run: Run, engine: str, tmp_path: Path, fault: str, rule: str, shown: str) -> None:
    _, found = report(run, str(plugin(tmp_path, fault)), "--vllm", engine, "--examples", "0")
    assert [one["rule"] for one in found["findings"]] == [rule]
    assert shown in found["findings"][0]["evidence"]


def test_what_shared_state_spoils_is_told_with_its_cause(run: Run, engine: str, tmp_path: Path) -> None:
    path = str(plugin(tmp_path, "class-state-spoils"))
    _, found = report(run, path, "--vllm", engine, "--examples", "30")
    spoilt = [one for one in found["findings"] if one["rule"] == "PLG607"]
    assert spoilt
    cause = "first mend PLG603 (PonderReasoningParser.calls changed while requests ran)"
    assert all(one["hint"].startswith(cause) for one in spoilt)
    apart = found["facts"]["generated"]["invariants"]["instances-do-not-touch"]
    assert apart == {"ok": None, "broken": 0, "shared": ["PonderReasoningParser.calls"]}
    _, out, _ = run(path, "--vllm", engine, "--examples", "30", "--no-config")
    assert re.search(r"instances do not touch +cannot be told +every request shares PonderReasoningParser.calls", out)


def test_a_plugin_that_cannot_be_loaded_is_not_run(run: Run, engine: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("import no_such_module\n" + plugin(tmp_path).read_text(), encoding="utf-8")
    code, found = report(run, str(path), "--vllm", engine)
    assert (code, [one["rule"] for one in found["findings"]]) == (1, ["PLG601"])
    assert "no_such_module" in found["findings"][0]["message"]
    assert next(row for row in found["coverage"] if row["surface"] == "run")["status"] == "skipped"


def test_a_name_that_the_plugin_does_not_register_is_told(run: Run, engine: str, tmp_path: Path) -> None:
    code, found = report(run, str(plugin(tmp_path)), "--name", "pondr", "--vllm", engine)
    assert (code, [one["rule"] for one in found["findings"]]) == (1, ["PLG602"])


def test_the_fault_and_its_mend_are_compared(run: Run, engine: str, tmp_path: Path) -> None:
    other = fake(tmp_path / "other", version="0.32.0")
    code, found = report(run, str(plugin(tmp_path)), "--vllm", engine, "--vllm", other, "--examples", "20")
    assert code == 0
    comparison = found["facts"]["comparison"]
    assert (comparison["fixed"], comparison["broke"], comparison["left"]) == ([], [], [])
    assert comparison["base"].startswith("vLLM 0.33.0") and comparison["other"].startswith("vLLM 0.32.0")


def test_the_text_shows_what_came_what_was_due_and_a_test(run: Run, engine: str, tmp_path: Path) -> None:
    path = plugin(tmp_path, "marker-in-two-deltas")
    code, out, err = run(str(path), "--vllm", engine, "--examples", "60", "--no-config")
    assert code == 1
    assert "64 named cases" in err and "60 generated outputs" in err
    assert out.startswith("FAIL  ponder: 58 of 64 cases right, ")
    assert re.search(r"text held back 4 +wrong \(2 of 2\)", out)
    assert re.search(r"hold back agrees +\d+ break it +\"", out)
    for label in ("prompt ends", "deltas", "sent", "came back", "expected", "because", "mend"):
        assert re.search(rf"^  {label} ", out, re.MULTILINE)
    assert "    def test_text_held_back_4_stream():" in out
    assert "        same(streamed(deltas, prompt, kwargs), 'Let me see, two and two make four.', 'It is four.')" in out


def test_without_a_vllm_only_the_source_is_looked_at(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reasonctl.doctor.machine.vllms", lambda *_, **__: ())
    code, found = report(run, str(plugin(tmp_path)))
    assert (code, found["verdict"]) == (0, "incomplete")
    row = next(row for row in found["coverage"] if row["surface"] == "run")
    assert row["status"] == "skipped" and "reasonctl vllm install" in row["reason"]


def test_a_built_in_name_runs_as_its_model(run: Run) -> None:
    code, found = report(run, "--name", "qwen3", "--examples", "40")
    assert (code, found["verdict"], found["engine"]["kind"]) == (0, "pass", "builtin")
    code, found = report(run, "--name", "granite", "--examples", "40")
    assert code == 1
    wrong = {case["name"] for case in found["facts"]["cases"] if case["ok"] is False}
    assert {"is-reasoning-end-before", "start-marker-and-text", "truncated-in-output"} <= wrong


def test_a_parser_that_cannot_be_built_is_one_finding(run: Run) -> None:
    code, found = report(run, "--name", "deepseek_r1", "--model", "fixture:split-markers", "--examples", "10")
    assert (code, [one["rule"] for one in found["findings"]]) == (1, ["PLG611"])
    assert "could not locate think start/end tokens" in found["findings"][0]["message"]


def test_the_tests_are_written(run: Run, engine: str, tmp_path: Path) -> None:
    folder = tmp_path / "tests"
    path = plugin(tmp_path, "last-id-alone")
    code, found = report(run, str(path), "--vllm", engine, "--examples", "0", "--emit-tests", str(folder))
    assert code == 1
    written = folder / "test_ponder_reasoning_parser.py"
    assert found["facts"]["emitted"] == str(written)
    text = written.read_text()
    compile(text, str(written), "exec")
    assert "PLUGIN = Path(__file__).parent / '../last_id_alone.py'" in text
    assert "def test_is_reasoning_end_answering():" in text and "reasonctl." not in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "what shall be looked at?; give a plugin's FILE.py, or --name of a built-in parser"),
        (("--name", "qwen33"), "registers no reasoning parser 'qwen33'"),
        (("none.py",), "none.py: cannot be read"),
        (("--name", ""), "--name: is empty"),
    ],
)
def test_a_wrong_call_is_one_line(run: Run, arguments: tuple[str, ...], said: str) -> None:
    code, out, err = run(*arguments, "--no-config")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert said in err
