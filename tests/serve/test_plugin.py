"""What is known of a plugin's file without running it."""

# ruff: noqa: E501  (scripts stand here as people write them)

from __future__ import annotations

from pathlib import Path

import pytest

from reasonctl.serve.command import ServeCommand
from reasonctl.serve.plugin import PluginFile, plugin_file
from reasonctl.serve.read import read_serve

HEAD = "from vllm.reasoning import ReasoningParserManager, ReasoningParser\n"
CLASS = "class P(ReasoningParser):\n    pass\n"


def read(folder: Path, text: str | None, flag: str = "reasoning-parser") -> PluginFile | None:
    if text is not None:
        (folder / "plug.py").write_text(text)
    script = folder / "run.sh"
    script.write_text(f"vllm serve m --{flag}-plugin plug.py\n")
    (command,) = read_serve(str(script))
    assert isinstance(command, ServeCommand)
    return plugin_file(command, f"{flag}-plugin")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "mine", "other"),
    [
        (f'{HEAD}@ReasoningParserManager.register_module("mine")\n{CLASS}', True, False),
        (f'{HEAD}@ReasoningParserManager.register_module(["mine", "two"])\n{CLASS}', True, False),
        (f"{HEAD}@ReasoningParserManager.register_module(NAMES[0])\n{CLASS}", None, None),
        (f'{HEAD}from shop.parsers import register\nregister("mine")\n', None, None),
        (f'{HEAD}{CLASS}if __name__ == "__main__":\n    ReasoningParserManager.register_module("mine", module=P)\n', False, False),
        ("def broken(:\n", False, False),
        (None, None, None),
    ],
)  # fmt: skip
def test_what_a_file_brings(tmp_path: Path, text: str | None, mine: bool | None, other: bool | None) -> None:
    found = read(tmp_path, text)
    assert found is not None
    assert (found.brings("mine"), found.brings("other")) == (mine, other)


def test_a_tool_parsers_plugin_registers_tool_parsers(tmp_path: Path) -> None:
    head = "from vllm.tool_parsers import ToolParserManager\n"
    text = f'{head}@ToolParserManager.register_module("mine")\nclass T:\n    pass\n'
    tools = read(tmp_path, text, "tool-parser")
    assert tools is not None and tools.brings("mine") is True
    reasoning = read(tmp_path, text)
    assert reasoning is not None and reasoning.brings("mine") is False


def test_no_flag_is_no_plugin(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("vllm serve m --reasoning-parser-plugin p.y\n")
    (command,) = read_serve(str(tmp_path / "run.sh"))
    assert isinstance(command, ServeCommand)
    assert plugin_file(command, "reasoning-parser-plugin") is None
    assert plugin_file(command, "tool-parser-plugin") is None
