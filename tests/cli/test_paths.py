"""Paths in reports: the same in every checkout."""

from pathlib import Path

import pytest

from reasonctl.checks.finding import Finding, Location
from reasonctl.checks.report import Policy, make_report
from reasonctl.cli.paths import relative_path, report_base, with_relative_paths


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy" / "budget.json").write_text("{}")
    return tmp_path.resolve()


def test_the_base_is_the_repository_top_else_the_working_directory(repository: Path) -> None:
    assert report_base(repository / "deploy") == repository
    (repository / ".git").rmdir()
    assert report_base(repository / "deploy") == repository / "deploy"


def test_a_path_is_the_same_from_every_working_directory(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository / "deploy")
    assert relative_path("budget.json", repository) == "deploy/budget.json"
    assert relative_path("../deploy/budget.json", repository) == "deploy/budget.json"
    assert relative_path(str(repository / "deploy" / "budget.json"), repository) == "deploy/budget.json"


def test_a_linked_file_keeps_the_name_the_user_gave(repository: Path) -> None:
    (repository / "link.json").symlink_to(repository / "deploy" / "budget.json")
    assert relative_path(str(repository / "link.json"), repository) == "link.json"


@pytest.mark.parametrize("path", ["-", "fixture:qwen3", "no/such/file.json"])
def test_what_is_no_file_stays_as_given(path: str, repository: Path) -> None:
    assert relative_path(path, repository) == path


def test_findings_of_two_checkouts_have_one_fingerprint(tmp_path: Path) -> None:
    fingerprints = []
    for name in ("a", "b"):
        base = tmp_path / name
        base.mkdir()
        (base / "budget.json").write_text("{}")
        finding = Finding(
            "BUD303", "medium-missing", "error", "high", "m", "h", location=Location(str(base / "budget.json"), 3)
        )
        report = make_report(
            "validate-config", target="slimserve", engine={}, facts={}, findings=[finding], coverage=[], policy=Policy()
        )
        fingerprints.append(with_relative_paths(report, base).findings[0].fingerprint)
    assert fingerprints[0] == fingerprints[1]


def test_the_model_of_a_finding_is_the_same_however_it_is_typed(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository / "deploy")
    fingerprints = set()
    for typed in (".", "../deploy", str(repository / "deploy")):
        finding = Finding("TPL001", "prompt-opens-thinking", "info", "high", "m", "h", subject={"model": typed})
        report = make_report(
            "audit", target="vllm", engine={}, facts={}, findings=[finding], coverage=[], policy=Policy()
        )
        (moved,) = with_relative_paths(report, repository).findings
        assert moved.subject == {"model": "deploy"}
        fingerprints.add(moved.fingerprint)
    assert len(fingerprints) == 1
