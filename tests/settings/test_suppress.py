"""Ignores and baselines: what they cover stays in the report with its reason; what they miss is told."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonctl.checks.finding import Finding, Location
from reasonctl.checks.report import Policy, Report, make_report
from reasonctl.errors import InputError
from reasonctl.settings.baseline import Baseline, baseline_text, read_baseline
from reasonctl.settings.settings import Ignore
from reasonctl.settings.suppress import Suppressions

TODAY = date(2026, 11, 30)


def finding(rule: str = "TPL002", line: int = 1, **subject: Any) -> Finding:
    return Finding(rule, "slug", "error", "high", "m", "h", subject=subject, location=Location("t.jinja", line))


def report(*findings: Finding) -> Report:
    return make_report("audit", target="t", engine={}, facts={}, findings=findings, coverage=(), policy=Policy())


def ignore(rule: str = "TPL002", expires: date | None = None, **subject: Any) -> Ignore:
    return Ignore(rule, frozenset({rule}), subject, "known", expires, Location("reasonctl.toml", 3, 3))


def suppressed(known: Suppressions, *findings: Finding) -> list[str | None]:
    return [one.suppressed for one in known.put_to(report(*findings)).findings]


def test_an_ignore_covers_findings_with_an_equal_subject() -> None:
    known = Suppressions([ignore(model="m", variant={"enable_thinking": True})], today=TODAY)
    same = finding(model="m", variant={"enable_thinking": True}, parser="qwen3")
    assert suppressed(known, same) == ["known"]
    assert suppressed(known, finding(model="m", variant={"enable_thinking": 1})) == [None]
    assert suppressed(known, finding(model="m")) == [None]
    assert suppressed(known, replace(same, rule="TPL003")) == [None]
    assert list(known.stale(lambda rule: True)) == []


@pytest.mark.parametrize(("last", "covers"), [(TODAY, True), (date(2026, 11, 29), False)])
def test_an_ignore_holds_to_its_last_day(last: date, covers: bool) -> None:
    known = Suppressions([ignore(expires=last)], today=TODAY)
    (judged,) = known.put_to(report(finding())).findings
    assert (judged.suppressed == "known") is covers
    assert judged.hint == ("h" if covers else "h; it was ignored until 2026-11-29: known")
    assert list(known.stale(lambda rule: True)) == []  # it matched: it is not stale, it is over


def test_an_ignore_that_meets_nothing_is_stale_unless_its_rule_is_not_reported() -> None:
    known = Suppressions([ignore("TPL003", model="m")], today=TODAY)
    assert suppressed(known, finding()) == [None]
    (stale,) = known.stale(lambda rule: True)
    assert (stale.rule, stale.severity, stale.location) == ("INT901", "warning", Location("reasonctl.toml", 3, 3))
    assert stale.subject == {"key": 'ignore TPL003 about {"model": "m"}'}
    assert list(known.stale(lambda rule: rule != "TPL003")) == []


def test_a_baseline_covers_moved_lines_and_no_other_path(tmp_path: Path) -> None:
    file = tmp_path / "known.json"
    file.write_text(baseline_text([finding(line=10, model="m"), finding("FIT105", parser="p")]))
    known = Suppressions((), read_baseline(file, shown="known.json"), today=TODAY)
    moved = replace(finding(line=99, model="m"), message="in other words")
    assert suppressed(known, moved) == ["in the baseline known.json"]
    elsewhere = replace(moved, location=Location("other.jinja", 10))
    assert suppressed(known, elsewhere) == [None]
    (stale,) = known.stale(lambda rule: True)
    assert (stale.rule, stale.message) == ("INT901", "the baseline's FIT105 of t.jinja is found no more")
    assert stale.location is not None
    assert stale.location.line == known_line_of(file, "FIT105")


def known_line_of(file: Path, rule: str) -> int:
    return next(number for number, line in enumerate(file.read_text().splitlines(), 1) if f'"{rule}"' in line)


def test_no_baseline_covers_what_the_tool_says_of_its_own_run() -> None:
    lost = finding("INT904")
    entries = Baseline("b", ())
    known = Suppressions((), entries, today=TODAY)
    assert suppressed(known, lost) == [None]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"schema": "reasonctl.baseline/1"}', '{"schema": "reasonctl.baseline/1", "findings": [{}]}'],
)
def test_what_is_no_baseline_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "b.json"
    file.write_text(text)
    with pytest.raises(InputError, match="reasonctl baseline write"):
        read_baseline(file, shown="b.json")


SUBJECTS = st.dictionaries(st.sampled_from(["model", "parser", "key"]), st.text(max_size=5), max_size=3)
FINDINGS = st.builds(
    lambda rule, line, subject: finding(rule, line, **subject),
    st.sampled_from(["TPL001", "FIT105", "BUD306"]),
    st.integers(1, 99),
    SUBJECTS,
)


@given(st.lists(FINDINGS, max_size=8), st.lists(FINDINGS, max_size=8))
def test_a_baseline_covers_exactly_what_it_was_written_from(old: list[Finding], new: list[Finding]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "b.json"
        file.write_text(baseline_text(old), encoding="utf-8")
        known = Suppressions((), read_baseline(file, shown="b"), today=TODAY)
    judged = known.put_to(report(*old, *new)).findings
    before = {one.fingerprint for one in old}
    assert all((one.suppressed is not None) == (one.fingerprint in before) for one in judged)
    assert list(known.stale(lambda rule: True)) == []
    assert baseline_text(old) == baseline_text(list(reversed(old)))
