"""Where reports go: stdout, files, several at once; and when they are coloured."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from reasonctl.checks.report import Report
from reasonctl.errors import InputError
from reasonctl.reports import formats


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def write(report: Report, *outputs: tuple[str, Path | None], **options: Any) -> None:
    formats.write(report, outputs, **{"verbose": False, "quiet": False, **options})


def test_each_format_goes_where_it_was_sent(
    audit_report: Report, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(audit_report, ("text", None), ("json", tmp_path / "r.json"), ("sarif", tmp_path / "r.sarif"))
    assert capsys.readouterr().out.startswith("FAIL  models/qwen3")
    assert json.loads((tmp_path / "r.json").read_text("utf-8"))["command"] == "audit"
    assert json.loads((tmp_path / "r.sarif").read_text("utf-8"))["version"] == "2.1.0"


def test_dash_is_stdout(audit_report: Report, capsys: pytest.CaptureFixture[str]) -> None:
    write(audit_report, ("json", Path("-")))
    assert json.loads(capsys.readouterr().out)["verdict"] == "fail"


def test_unwritable_file_is_a_wrong_call(audit_report: Report, tmp_path: Path) -> None:
    target = tmp_path / "missing" / "r.json"
    with pytest.raises(InputError, match="cannot write the report: No such file or directory") as caught:
        write(audit_report, ("json", target))
    assert caught.value.exit_code == 2
    assert str(caught.value).startswith(f"{target}: ")
    with pytest.raises(InputError, match="Is a directory"):
        write(audit_report, ("text", tmp_path))


def test_stdout_is_utf8_whatever_the_locale(audit_report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    write(audit_report, ("concise", None))
    assert "›" in raw.getvalue().decode("utf-8")


def test_stdout_without_bytes_gets_text(audit_report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    write(audit_report, ("text", None), quiet=True)
    assert stream.getvalue().startswith("FAIL  1 error")


def test_colour_only_on_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert formats.colour(Terminal())
    assert not formats.colour(io.StringIO())
    assert not formats.colour(None)
    monkeypatch.setenv("TERM", "dumb")
    assert not formats.colour(Terminal())
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not formats.colour(Terminal())
    monkeypatch.setenv("NO_COLOR", "")
    assert formats.colour(Terminal())


def test_width_is_the_terminals_within_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    assert formats.width(io.StringIO()) == 100
    assert formats.width(None) == 100
    for columns, width in (("20", 40), ("72", 72), ("300", 110)):
        monkeypatch.setenv("COLUMNS", columns)
        assert formats.width(Terminal()) == width


def test_text_for_a_terminal_is_coloured_and_for_a_file_is_not(
    audit_report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    write(audit_report, ("text", None))
    write(audit_report, ("text", tmp_path / "report.txt"))
    assert "\x1b[" in terminal.getvalue()
    assert "\x1b" not in (tmp_path / "report.txt").read_text("utf-8")
