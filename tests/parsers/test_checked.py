"""What each model was last checked with."""

from __future__ import annotations

from pathlib import Path

from reasonctl.parsers.checked import FILE, LastCheck, last_checks, write_checks
from reasonctl.parsers.table import ROWS


def test_what_is_written_is_read_the_newest_version_first(tmp_path: Path) -> None:
    file = tmp_path / "checked.json"
    assert last_checks("qwen3", file) == ()
    write_checks("0.9.2", {"qwen3": LastCheck("0.9.2", 20, 7)}, file)
    write_checks("0.33.0", {"qwen3": LastCheck("0.33.0", 500, 0), "glm45": LastCheck("0.33.0", 400, 0)}, file)
    assert last_checks("qwen3", file) == (LastCheck("0.33.0", 500, 0), LastCheck("0.9.2", 20, 7))
    assert file.read_text(encoding="utf-8") == (
        '{\n "glm45": {"0.33.0": {"cases": 400, "seed": 0}},\n'
        ' "qwen3": {"0.9.2": {"cases": 20, "seed": 7}, "0.33.0": {"cases": 500, "seed": 0}}\n}\n'
    )


def test_a_name_that_differs_is_no_longer_checked(tmp_path: Path) -> None:
    file = tmp_path / "checked.json"
    write_checks("0.33.0", {"qwen3": LastCheck("0.33.0", 500, 0), "glm45": LastCheck("0.33.0", 500, 0)}, file)
    write_checks("0.32.0", {"qwen3": LastCheck("0.32.0", 500, 0)}, file)
    write_checks("0.33.0", {"qwen3": None, "glm45": None}, file)
    assert last_checks("qwen3", file) == (LastCheck("0.32.0", 500, 0),)
    assert last_checks("glm45", file) == ()
    assert "glm45" not in file.read_text(encoding="utf-8")


def test_the_shipped_file_names_parsers_of_the_table() -> None:
    assert FILE.is_file()
    checked = {name: last_checks(name) for name in ROWS if last_checks(name)}
    for name, checks in checked.items():
        assert ROWS[name].modelled
        assert all(check.cases > 0 for check in checks)
