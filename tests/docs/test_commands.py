"""Commands on pages that cannot be run there (they need a server, or files of yours) are at least calls that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from reasonctl.cli import app

TOP = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(?:bash)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CALL = re.compile(r"^(?:\S*/)?reasonctl (.+)$", re.MULTILINE)
CALLS = [
    pytest.param(call, id=f"{page.relative_to(TOP)}: {call}")
    for page in (TOP / "README.md", *sorted((TOP / "docs").rglob("*.md")))
    if page.parent.name not in ("rules", "reference")
    for block in FENCE.findall(page.read_text("utf-8"))
    for call in CALL.findall(block)
]


def parsed(call: str) -> Any:
    """The call as the command line reads it, without being run. Raises what a wrong one raises."""
    words = shlex.split(call, comments=True)
    command: Any = get_command(app)
    while hasattr(command, "commands") and words:
        command = command.commands[words.pop(0)]
    return command.make_context("reasonctl", words)


@pytest.mark.parametrize("call", CALLS)
def test_a_call_on_a_page_is_one_that_exists(call: str) -> None:
    assert parsed(call).params is not None


def test_another_is_refused() -> None:
    assert len(CALLS) > 20
    with pytest.raises(Exception, match="No such option"):
        parsed("verify --no-such-option")
    with pytest.raises(KeyError):
        parsed("vllm remove 0.33.0")
