"""The verdict and the exit code follow from findings, coverage and policy, and from nothing else."""

import hashlib

import pytest

from reasonctl.checks.finding import Coverage, Finding, Location
from reasonctl.checks.report import Policy, Report, make_report

DEFAULT = Policy()


def finding(severity: str = "error", confidence: str = "high", **more: object) -> Finding:
    values: dict[str, object] = {"rule": "FIT105", "slug": "content-null", "message": "m", "hint": "h"}
    return Finding(**(values | {"severity": severity, "confidence": confidence} | more))  # type: ignore[arg-type]


def report(*findings: Finding, coverage: tuple[Coverage, ...] = (), policy: Policy = DEFAULT) -> Report:
    return make_report(
        "audit", target="vllm==0.33.0", engine={}, facts={}, findings=findings, coverage=coverage, policy=policy
    )


@pytest.mark.parametrize(
    ("severity", "confidence", "policy", "code"),
    [
        ("error", "high", Policy(), 1),
        ("error", "medium", Policy(), 1),
        ("error", "low", Policy(), 0),
        ("error", "low", Policy(min_confidence="low"), 1),
        ("error", "medium", Policy(min_confidence="high"), 0),
        ("warning", "high", Policy(), 0),
        ("warning", "high", Policy(fail_on="warning"), 1),
        ("info", "high", Policy(fail_on="warning"), 0),
        ("info", "high", Policy(fail_on="info"), 1),
        ("error", "high", Policy(fail_on="never"), 0),
        ("error", "high", Policy(exit_zero=True), 0),
    ],
)
def test_what_counts(severity: str, confidence: str, policy: Policy, code: int) -> None:
    made = report(finding(severity, confidence), policy=policy)
    assert made.exit_code == code
    assert made.verdict == ("fail" if code or policy.exit_zero else "pass")


def test_a_suppressed_finding_stays_in_the_report_and_does_not_count() -> None:
    made = report(finding(suppressed="known"))
    assert (made.exit_code, made.verdict) == (0, "pass")
    assert made.summary == {"error": 0, "warning": 0, "info": 0, "suppressed": 1}
    assert made.as_json()["findings"][0]["suppressed"] == "known"


@pytest.mark.parametrize(
    ("status", "verdict", "code"), [("skipped", "incomplete", 1), ("partial", "incomplete", 1), ("absent", "pass", 0)]
)
def test_what_could_not_be_examined(status: str, verdict: str, code: int) -> None:
    rows = (Coverage("template", "examined"), Coverage("tokenizer", status, "no tokenizer.json"))  # type: ignore[arg-type]
    made = report(coverage=rows)
    assert (made.verdict, made.exit_code) == (verdict, 0)
    assert report(coverage=rows, policy=Policy(fail_on_incomplete=True)).exit_code == code


def test_a_failure_outweighs_what_was_not_examined() -> None:
    assert report(finding(), coverage=(Coverage("tokenizer", "skipped", "why"),)).verdict == "fail"


def test_select_and_ignore() -> None:
    both = (finding(), finding(rule="TPL001", slug="prompt-opens-thinking", severity="info"))
    assert [f.rule for f in report(*both, policy=Policy(select=frozenset({"TPL001"}))).findings] == ["TPL001"]
    assert [f.rule for f in report(*both, policy=Policy(ignore=frozenset({"FIT105"}))).findings] == ["TPL001"]


def test_findings_are_sorted_by_severity_rule_and_place() -> None:
    made = report(
        finding("info", rule="TPL001"),
        finding("error", rule="TPL008", location=Location("b", 2)),
        finding("error", rule="TPL008", location=Location("a", 9)),
        finding("warning", rule="TPL002"),
        finding("error", rule="FIT105"),
    )
    assert [(f.rule, f.location.path if f.location else None) for f in made.findings] == [
        ("FIT105", None),
        ("TPL008", "a"),
        ("TPL008", "b"),
        ("TPL002", None),
        ("TPL001", None),
    ]


def test_the_fingerprint_is_the_documented_hash_and_ignores_lines_and_wording() -> None:
    here = finding(location=Location("chat_template.jinja", 85), subject={"parser": "deepseek_r1", "variant": {}})
    key = '["FIT105", "chat_template.jinja", {"parser": "deepseek_r1", "variant": {}}]'
    assert here.fingerprint == hashlib.sha256(key.encode()).hexdigest()[:16]
    moved = finding(
        location=Location("chat_template.jinja", 99, 4),
        subject={"variant": {}, "parser": "deepseek_r1"},
        message="other",
    )
    assert moved.fingerprint == here.fingerprint
    assert finding(location=Location("other.jinja", 85), subject=here.subject).fingerprint != here.fingerprint


def test_the_json_report_has_the_keys_of_the_contract() -> None:
    made = report(finding(location=Location("x", 1))).as_json()
    assert list(made) == [
        "schema",
        "tool",
        "command",
        "target",
        "engine",
        "verdict",
        "facts",
        "findings",
        "coverage",
        "summary",
    ]
    assert set(made["tool"]) == {"name", "version", "rules_digest"}
    assert set(made["findings"][0]) == {
        "rule", "slug", "severity", "confidence", "message", "hint", "cause", "subject", "location", "evidence",
        "fingerprint", "suppressed",
    }  # fmt: skip
    assert made["findings"][0]["location"] == {"path": "x", "line": 1, "column": 1}
