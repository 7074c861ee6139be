"""docs/reference/commands.md: nothing of the command line is missing on it."""

from __future__ import annotations

import html
import re

from typer.main import get_command

from reasonctl.cli import app
from reasonctl.cli.options import Group
from reasonctl.cli.reference import command_page

PAGE = html.unescape(command_page())
PARTS = dict(re.findall(r"^## (reasonctl [^\n]+|Options of [^\n]+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))


def test_every_command_has_a_part_with_all_its_options() -> None:
    seen = 0
    for name, command in get_command(app).commands.items():
        for below, one in (getattr(command, "commands", None) or {"": command}).items():
            part = PARTS[f"reasonctl {name} {below}".strip()]
            for parameter in one.params:
                if parameter.name == "help":
                    continue
                shared = getattr(parameter, "rich_help_panel", None) == Group
                where = PARTS["Options of every checking command"] if shared else part
                shown = parameter.metavar if parameter.param_type_name == "argument" else parameter.opts[0]
                assert f"<code>{shown}" in where, (name, shown)
                seen += 1
    assert seen > 200


def test_options_of_every_checking_command_stand_once_with_their_variables() -> None:
    assert PAGE.count("<code>--fail-on X</code>") == 1
    row = next(line for line in PAGE.splitlines() if "<code>--fail-on X</code>" in line)
    assert row.endswith("| error | `REASONCTL_FAIL_ON` |")


def test_a_bar_in_a_value_does_not_end_the_cell() -> None:
    rows = [line for line in command_page().splitlines() if line.startswith("| <code>--parser")]
    assert rows
    assert {len(re.split(r"(?<!\\)\|", row)) for row in rows} == {5}


def test_options_of_the_program_itself_come_first() -> None:
    head = PAGE.partition("\n## ")[0]
    assert all(f"<code>{name}" in head for name in ("--version", "--install-completion", "--show-completion"))
