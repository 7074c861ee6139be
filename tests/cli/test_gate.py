"""`reasonctl gate`: every table of the settings file in one run, one report, one exit code."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reasonctl.reports.formats import NAMES

COMMAND = "gate"
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
FIXTURES = Path(__file__).parents[2] / "fixtures"
Run = Callable[..., tuple[int, str, str]]

PLANTED = {
    ("SRV201", "deploy/compose.yaml", 7),
    ("FIT101", "deploy/compose.yaml", 12),
    ("SRV208", "client/stream.ts", 5),
    ("BUD301", "budgets.json", 4),
    ("RPL410", "traces/monday.jsonl", 2),
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The broken example, to change; the working directory is elsewhere, so that paths must be the file's."""
    shutil.copytree(EXAMPLES / "broken", tmp_path / "project")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path / "project"


def settings(project: Path, text: str) -> str:
    """Write the settings file; its name for `--config`."""
    (project / "reasonctl.toml").write_text(text)
    return str(project / "reasonctl.toml")


def report(run: Run, *arguments: str) -> tuple[int, dict[str, Any], str]:
    code, out, err = run("--format", "json", *arguments)
    return code, json.loads(out), err


def test_the_five_planted_faults_are_found_where_they_are(run: Run, project: Path) -> None:
    code, made, _ = report(run, "--config", str(project / "reasonctl.toml"))
    assert code == 1
    errors = [finding for finding in made["findings"] if finding["severity"] == "error"]
    assert {(one["rule"], one["location"]["path"], one["location"]["line"]) for one in errors} == PLANTED
    assert len(errors) == 5
    assert made["command"] == "gate"
    assert [(one["name"], one["verdict"]) for one in made["facts"]["runs"]] == [
        ("audit deploy/compose.yaml", "fail"),
        ("audit models/assistant", "fail"),
        ("replay models/assistant", "fail"),
        ("validate-config budgets.json", "fail"),
    ]
    assert made["facts"]["runs"][3]["facts"]["dialect"] == "slimserve"


def test_the_mended_copy_passes_even_on_warnings(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES / "mended" / "models")  # the nearest file upwards
    code, made, _ = report(run, "--fail-on", "warning")
    assert (code, made["verdict"]) == (0, "pass")
    assert made["summary"]["suppressed"] == 6
    reasons = {finding["suppressed"] for finding in made["findings"] if finding["suppressed"]}
    assert reasons == {
        "this model always thinks; clients do not offer a switch",
        "clients send no reasoning_effort: the proxy strips it",
    }


def test_two_runs_give_the_same_bytes_in_every_format(run: Run, project: Path, tmp_path: Path) -> None:
    made: list[dict[str, bytes]] = []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        formats = [part for name in NAMES for part in ("--format", f"{name}={folder / name}")]
        assert run("--config", str(project / "reasonctl.toml"), *formats)[0] == 1
        made.append({name: (folder / name).read_bytes() for name in NAMES})
    assert made[0] == made[1]
    assert all(made[0].values())


@pytest.mark.parametrize("name", NAMES)
def test_no_format_changes_the_code(name: str, run: Run, project: Path) -> None:
    call = ("--config", str(project / "reasonctl.toml"), "--only", "validate-config", "--format", name)
    assert [run(*call, *more)[0] for more in ((), ("--exit-zero",), ("--fail-on", "never"))] == [1, 0, 0]


def test_a_baseline_covers_what_there_was_and_nothing_new(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    text = (project / "reasonctl.toml").read_text()
    settings(project, f'baseline = "known.json"\n{text}')
    code, _, err = run()
    assert code == 2
    assert "known.json: no such file" in err
    baseline = _baseline(run)
    code, out, err = baseline("write", "known.json")
    assert (code, out) == (0, "")
    assert "wrote known.json: 5 errors, 5 warnings" in err
    before = (project / "known.json").read_bytes()
    assert baseline("write", "known.json")[0] == 0
    assert (project / "known.json").read_bytes() == before

    compose = project / "deploy" / "compose.yaml"
    compose.write_text("# a line more\n" + compose.read_text())  # moved lines change nothing
    code, made, _ = report(run)
    assert (code, made["verdict"], made["summary"]["suppressed"]) == (0, "pass", 10)

    compose.write_text(compose.read_text().replace("--enable-reasoning\n", "--enable-auto-tool-choice\n"))
    code, made, _ = report(run)
    live = [finding for finding in made["findings"] if finding["suppressed"] is None and finding["severity"] != "info"]
    assert [(finding["rule"], finding["location"]["path"]) for finding in live] == [
        ("SRV205", "deploy/compose.yaml"),
        ("INT901", "known.json"),
    ]
    assert code == 1


def _baseline(run: Run) -> Run:
    import sys

    def call(*arguments: str) -> tuple[int, str, str]:
        module = sys.modules[__name__]
        module.COMMAND = "baseline"  # type: ignore[attr-defined]
        try:
            return run(*arguments)
        finally:
            module.COMMAND = "gate"  # type: ignore[attr-defined]

    return call


def test_a_baseline_is_not_written_over_another_file_nor_after_a_failed_run(run: Run, project: Path) -> None:
    file = str(project / "reasonctl.toml")
    code, _, err = _baseline(run)("write", str(project / "budgets.json"), "--config", file)
    assert code == 2
    assert "is no reasonctl.baseline/1 file" in err
    settings(project, (project / "reasonctl.toml").read_text().replace('"budgets.json"', '"none.json"'))
    code, _, err = _baseline(run)("write", str(project / "new.json"), "--config", file)
    assert code == 2
    assert "nothing is written" in err
    assert not (project / "new.json").exists()


def test_int901_stale_ignores_are_told_and_ones_that_are_over_cover_nothing(run: Run, project: Path) -> None:
    file = settings(
        project,
        """
[[ignore]]
rule = "BUD301"
reason = "a level of our own"
expires = 2020-01-01

[[ignore]]
rule = "BUD302"
reason = "none is a level here"

[[validate-config]]
budget = "budgets.json"
""",
    )
    code, made, _ = report(run, "--config", file)
    assert code == 1
    found = {finding["rule"]: finding for finding in made["findings"] if finding["severity"] != "info"}
    assert found["BUD301"]["suppressed"] is None
    assert found["BUD301"]["hint"].endswith("; it was ignored until 2020-01-01: a level of our own")
    assert (found["INT901"]["severity"], found["INT901"]["location"]["line"]) == ("warning", 7)
    _, made, _ = report(run, "--config", file, "--ignore", "BUD302")
    assert "INT901" not in {finding["rule"] for finding in made["findings"]}


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ("", "no table to run"),
        ("[[audit]]\nmodle = 'm'", "1:1: unknown key 'modle' of [[audit]]; did you mean model?"),
        ("[[replay]]\nmodel = 'm'", "[[replay]] without traces"),
        ("[[replay]]\ntraces = []", "traces is empty"),
        ("[[replay]]\ntraces = 'none/*.jsonl'", "none/*.jsonl: no file matches"),
        ("[[validate-config]]\nmodel = 'm'", "[[validate-config]] without budget"),
        ("[[validate-config]]\nbudget = 1\nmax-tokens = 'many'", "max-tokens is not a whole number"),
        ("[[audit]]\nmodel = 'm'\nbudget = [1, 2]", "budget is a list"),
        ("[[audit]]\nmodel = 'm'\ntarget = 'sglang'", "'sglang' names no server"),
        ("[[audit]]\nmodel = 'm'\nexpect = {states = {plain = 'open'}}", "'plain' is no JSON object"),
        ("[[audit]]\nmodel = 'm'\nexpect = {states = {'{}' = 'opened'}}", "'opened' is no prompt state"),
        ("[[audit]]\nmodel = 'm'\nexpect = {parsers = 'x'}", "did you mean parser?"),
        ("[[audit]]\nmodel = 'none/here'", "[[audit]] none/here: "),
        ("[[gate]]\nmodel = 'm'", "unknown key 'gate' of settings"),
    ],
)
def test_what_is_wrong_in_a_table_is_one_line_with_its_place(tables: str, said: str, run: Run, project: Path) -> None:
    code, out, err = run("--config", settings(project, tables), "--quiet")
    assert code == 2
    assert said.partition(": ")[2] in err if said.startswith("1:1") else said in err
    assert "reasonctl.toml" in err
    assert len(err.splitlines()) == 1
    assert "Traceback" not in out + err


def test_a_table_that_cannot_run_costs_the_others_nothing(run: Run, project: Path) -> None:
    tables = (project / "reasonctl.toml").read_text().replace('serve = "deploy/compose.yaml"', 'serve = "gone.yaml"')
    code, made, err = report(run, "--config", settings(project, tables))
    assert code == 2
    assert {finding["rule"] for finding in made["findings"] if finding["severity"] == "error"} == {
        "SRV208",
        "RPL410",
        "BUD301",
    }
    assert made["facts"]["runs"][0]["error"].endswith("[[audit]] gone.yaml: no such file, and no command line; give "
        + err.split("no command line; give ", 1)[1].rstrip("\n"))  # fmt: skip
    assert err.startswith("reasonctl: ")
    assert ("audit", "skipped") in {(row["surface"], row["status"]) for row in made["coverage"]}


def test_a_wrong_call_comes_before_a_tool_that_failed(run: Run, project: Path) -> None:
    unreachable = '[[verify]]\nendpoint = "http://127.0.0.1:9"\n'
    good = '[[validate-config]]\nbudget = "budgets.json"\n'
    code, _, err = run("--config", settings(project, unreachable + good))
    assert code == 3
    assert "[[verify]] " in err
    code, _, err = run("--config", settings(project, unreachable + '[[validate-config]]\nbudget = "none.json"\n'))
    assert code == 2
    assert len(err.splitlines()) == 2


def test_traces_that_match_nothing_beside_others_leave_the_report_incomplete(run: Run, project: Path) -> None:
    file = settings(project, '[[replay]]\ntraces = ["traces/*.jsonl", "old/*.jsonl"]\nparser = ["qwen3"]\n')
    code, made, _ = report(run, "--config", file, "--ignore", "RPL410")
    assert (code, made["verdict"]) == (0, "incomplete")
    gaps = [row["reason"] for row in made["coverage"] if (row["surface"], row["status"]) == ("trace", "partial")]
    assert gaps == ["replay traces/*.jsonl, old/*.jsonl: old/*.jsonl: no file matches"]
    assert report(run, "--config", file, "--ignore", "RPL410", "--fail-on-incomplete")[0] == 1


def test_int902_expectations_that_no_longer_hold(run: Run, project: Path) -> None:
    file = settings(
        project,
        """[[audit]]
model = "models/assistant"
[audit.expect]
parser = "granite"
states = {"{}" = "none", '{"enable_thinking": false}' = "open", '{"mood": "grim"}' = "closed"}
""",
    )
    code, made, _ = report(run, "--config", file, "--select", "INT")
    assert code == 1
    found = [(one["message"], one["location"]["line"], one["evidence"]["seen"]) for one in made["findings"]]
    assert found == [
        ("the parser is expected to be granite, and it fails probes; qwen3 passes", 4, "qwen3"),
        ("a plain request is expected to leave the prompt none, and leaves it open", 5, "open"),
        ('{"mood": "grim"} is expected to leave the prompt closed, and leaves it open', 5, "open"),
    ]
    assert all(one["rule"] == "INT902" and one["severity"] == "error" for one in made["findings"])


def test_a_budget_may_be_a_pattern_and_an_error_is_told_at_the_key_that_names_it(run: Run, project: Path) -> None:
    shutil.copy(project / "budgets.json", project / "other.json")
    code, made, _ = report(run, "--config", settings(project, '[[validate-config]]\nbudget = "*s.json"\n'))
    assert code == 1
    assert {finding["location"]["path"] for finding in made["findings"]} == {"budgets.json"}
    code, _, err = run("--config", settings(project, '[[validate-config]]\nbudget = "*.none"\n'))
    assert (code, "reasonctl.toml:2:10: *.none: no file matches" in err) == (2, True)
    code, _, err = run("--config", settings(project, '[[audit]]\nparser = "qwen3"\nmodel = "gone/x"\n'))
    assert (code, "reasonctl.toml:3:1: [[audit]] gone/x: " in err) == (2, True)


def test_two_tables_that_find_the_same_tell_it_once(run: Run, project: Path) -> None:
    table = '[[validate-config]]\nbudget = "budgets.json"\n'
    _, once, _ = report(run, "--config", settings(project, table))
    _, twice, _ = report(run, "--config", settings(project, table + table))
    assert twice["findings"] == once["findings"]
    assert len(twice["facts"]["runs"]) == 2


def test_a_parser_that_is_unknown_is_told_where_the_table_names_it(run: Run, project: Path) -> None:
    file = settings(project, '[[audit]]\nmodel = "models/assistant"\nparser = "qwen33"\n')
    _, made, _ = report(run, "--config", file, "--select", "FIT102")
    assert [one["location"] for one in made["findings"]] == [{"path": "reasonctl.toml", "line": 3, "column": 1}]


def test_int902_is_silent_where_expectations_hold_and_speaks_where_another_parser_is_configured(
    run: Run, project: Path
) -> None:
    expect = 'expect = {parser = "qwen3", states = {"{}" = "open", \'{"reasoning_effort": "low"}\' = "open"}}\n'
    table = '[models]\n"/models/assistant" = "models/assistant"\n[[audit]]\nserve = "deploy/compose.yaml"\n'
    _, made, _ = report(run, "--config", settings(project, table + expect), "--select", "INT902")
    assert made["findings"] == []
    compose = project / "deploy" / "compose.yaml"
    compose.write_text(compose.read_text().replace("--reasoning-parser=qwen3", "--reasoning-parser=glm45"))
    _, made, _ = report(run, "--config", settings(project, table + expect), "--select", "INT902")
    assert [(one["message"], one["subject"]["server"]) for one in made["findings"]] == [
        ("the parser is expected to be qwen3, and glm45 is configured", "chat")
    ]


def test_only_some_tables(run: Run, project: Path) -> None:
    file = str(project / "reasonctl.toml")
    _, made, _ = report(run, "--config", file, "--only", "validate-config,replay")
    assert [one["command"] for one in made["facts"]["runs"]] == ["replay", "validate-config"]
    code, _, err = run("--config", file, "--only", "verify")
    assert (code, "no [[verify]] in it" in err) == (2, True)
    code, _, err = run("--config", file, "--only", "audits")
    assert (code, "'audits' is no table" in err) == (2, True)


def test_severities_and_selection_of_the_file(run: Run, project: Path) -> None:
    (project / "map.json").write_text('{"low": 8192, "medium": 4096}')
    tables = '[[validate-config]]\nbudget = "map.json"\nmax-tokens = 4096\n'
    file = settings(project, f'per-rule-severity = {{BUD306 = "error"}}\nselect = ["BUD306", "BUD315"]\n{tables}')
    code, made, _ = report(run, "--config", file)
    assert code == 1
    assert [(finding["rule"], finding["severity"]) for finding in made["findings"]] == [
        ("BUD306", "error"),
        ("BUD306", "error"),
        ("BUD315", "warning"),
    ]


def test_the_command_line_beats_the_environment_beats_the_file(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = '[[audit]]\nmodel = "models/assistant"\nparser = "qwen3"\n'
    file = settings(project, f'target = "vllm==0.32.0"\n{tables}')
    assert report(run, "--config", file)[1]["target"] == "vllm==0.32.0"
    monkeypatch.setenv("REASONCTL_TARGET", "vllm==0.31.0")
    assert report(run, "--config", file)[1]["target"] == "vllm==0.31.0"
    assert report(run, "--config", file, "--target", "vllm==0.30.0")[1]["target"] == "vllm==0.30.0"
    monkeypatch.setenv("REASONCTL_CONFIG", file)
    monkeypatch.setenv("REASONCTL_FORMAT", "json")
    monkeypatch.setenv("REASONCTL_TRAGET", "x")
    _, out, err = run()
    assert json.loads(out)["target"] == "vllm==0.31.0"
    assert err == "reasonctl: REASONCTL_TRAGET is no setting; did you mean REASONCTL_TARGET?\n"


def test_a_servers_own_evidence_beats_the_file_and_a_tables_target_beats_both(run: Run, project: Path) -> None:
    tables = '[models]\n"/models/assistant" = "models/assistant"\n[[audit]]\nserve = "deploy/compose.yaml"\n'
    file = settings(project, f'target = "vllm==0.31.0"\n{tables}')
    assert report(run, "--config", file)[1]["facts"]["runs"][0]["target"] == "vllm==0.33.0"  # the image's tag
    file = settings(project, f'target = "vllm==0.31.0"\n{tables}target = "vllm==0.32.0"\n')
    assert report(run, "--config", file)[1]["facts"]["runs"][0]["target"] == "vllm==0.32.0"


def test_no_settings_file(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = run()
    assert (code, "reasonctl init" in err) == (2, True)
    code, _, err = run("--no-config")
    assert (code, "leave it out" in err) == (2, True)
    code, _, err = run("--no-config", "--config", "x.toml")
    assert (code, "--no-config forbids it" in err) == (2, True)


def test_other_commands_go_by_the_file_too(run: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.chdir(project)
    monkeypatch.setattr(sys.modules[__name__], "COMMAND", "validate-config")
    settings(project, '[[ignore]]\nrule = "BUD301"\nreason = "ours"\n[[ignore]]\nrule = "TPL001"\nreason = "x"\n')
    code, made, _ = report(run, "budgets.json", "--max-tokens", "16384")
    assert code == 0
    assert [finding["suppressed"] for finding in made["findings"] if finding["rule"] == "BUD301"] == ["ours"]
    assert "INT901" not in {finding["rule"] for finding in made["findings"]}  # one command sees a part only
    assert run("budgets.json", "--max-tokens", "16384", "--no-config")[0] == 1
