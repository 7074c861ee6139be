"""The README shows what the commands print."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


def _readme() -> ModuleType:
    spec = importlib.util.spec_from_file_location("readme_examples", Path(__file__).with_name("readme.py"))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


readme = _readme()
EXAMPLES = list(readme.BLOCK.finditer(readme.README.read_text(encoding="utf-8")))


@pytest.mark.parametrize("block", EXAMPLES, ids=[block["command"] for block in EXAMPLES])
def test_an_example_is_what_the_command_prints(block: "readme.re.Match[str]") -> None:
    assert readme.output_of(block["command"]) == block["output"]


def test_every_command_but_the_list_of_rules_has_an_example() -> None:
    shown = {block["command"].split()[1] for block in EXAMPLES}
    assert {"audit", "render", "replay", "validate-config", "parsers", "explain"} <= shown
