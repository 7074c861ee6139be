"""Every settings file, whole or in part, that the pages show is one that the gate takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reasonctl.cli import app
from reasonctl.cli.tables import run_of
from reasonctl.errors import InputError
from reasonctl.settings.find import find
from reasonctl.settings.settings import read_settings

TOP = Path(__file__).resolve().parents[2]
COMMANDS = {str(known.name): known.callback for known in app.registered_commands if known.callback is not None}
BLOCKS = [
    pytest.param(block, id=f"{page.relative_to(TOP)}-{number}")
    for page in (TOP / "README.md", *sorted((TOP / "docs").rglob("*.md")))
    for number, block in enumerate(re.findall(r"^```toml[^\n]*\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S), 1)
]


def understood(text: str, folder: Path) -> list[str]:
    """The commands of the tables in it. Raises InputError for what is not understood."""
    (folder / "reasonctl.toml").write_text(text, encoding="utf-8")
    return [run_of(table, COMMANDS[table.command]).command for table in read_settings(find(folder)).tables]


@pytest.mark.parametrize("block", BLOCKS)
def test_a_settings_file_on_a_page_is_understood(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "monday.jsonl").touch()
    monkeypatch.chdir(tmp_path)
    assert len(understood(block, tmp_path)) == block.count("\n[[") + block.startswith("[[") - block.count("[[ignore]]")
    wrong = re.sub(r"^(\w[\w-]*) = ", r"\1x = ", block, count=1, flags=re.MULTILINE)
    if wrong != block:
        with pytest.raises(InputError, match="unknown key"):
            understood(wrong, tmp_path)


def test_there_are_some() -> None:
    assert len(BLOCKS) >= 4
