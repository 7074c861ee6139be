"""README.md and docs/ show what the commands print; each pitfall's first command finds it and its second does not."""

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from reasonctl import fixtures
from reasonctl.checks.about import command_here, command_of, names_of_tests, rows_of
from reasonctl.checks.rule import Rule, all_rules

TESTS = Path(__file__).parent
RULES = list(all_rules().values())


def _readme() -> ModuleType:
    spec = importlib.util.spec_from_file_location("readme_examples", TESTS / "readme.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


readme = _readme()
EXAMPLES = [
    pytest.param(block, id=f"{page.name}: {block['command']}")
    for page in readme.pages()
    for block in readme.BLOCK.finditer(page.read_text(encoding="utf-8"))
]
PITFALLS = re.split(r"^## ", (readme.ROOT / "docs" / "pitfalls.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]


@pytest.mark.parametrize("block", EXAMPLES)
def test_an_example_is_what_the_command_prints(block: "re.Match[str]") -> None:
    assert readme.output_of(block["command"]) == block["output"]


def test_every_command_that_needs_no_server_has_an_example() -> None:
    shown = {example.values[0]["command"].split()[1] for example in EXAMPLES}
    assert {"audit", "render", "replay", "validate-config", "parsers", "explain", "lab"} <= shown


def test_there_are_fifteen_pitfalls() -> None:
    assert [text.split(".")[0] for text in PITFALLS] == [str(number) for number in range(1, 16)]


@pytest.mark.parametrize("text", PITFALLS, ids=[text.split("\n")[0] for text in PITFALLS])
def test_a_pitfall_is_found_and_its_mend_is_clean(text: str) -> None:
    """What the blocks show is what the commands print: the test above says so."""
    found, mended, *_ = readme.BLOCK.finditer(text)
    (rule,) = re.findall(r"^Rule: ([A-Z]{3}\d{3})\.", text, re.MULTILINE)
    assert f" {rule} " in found["output"]
    assert found["output"].endswith("(exit code 1)\n")
    assert rule not in mended["output"]
    assert "exit code" not in mended["output"]


MADE = list(readme.made())


@pytest.mark.parametrize(("path", "text"), MADE, ids=[path.name for path, _ in MADE])
def test_what_is_made_from_rules_and_pages_is_not_old(path: Path, text: str) -> None:
    """`python tests/readme.py --write` makes them anew."""
    assert path.read_text(encoding="utf-8") == text


def test_docs_rules_holds_no_other_page() -> None:
    folder = readme.ROOT / "docs" / "rules"
    assert set(folder.iterdir()) == {path for path, _ in MADE if path.parent == folder}


def _names() -> Iterator[str]:
    """The tests of the suite by name, parameters written out as strings included, as `pytest -k` sees them."""
    for file in TESTS.rglob("test_*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield node.name
        if file.name == "test_rpl.py":  # one test for all, its parameter the rule
            yield from re.findall(r'^    "(RPL\d{3})": ', file.read_text(encoding="utf-8"), re.MULTILINE)


NAMES = [name.lower() for name in _names()]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_the_tests_that_explain_names_exist(rule: type[Rule]) -> None:
    """Name a rule's tests by its id or its slug: `test_fit105_fires_where_...`, `test_content_null`."""
    assert any(word in name for word in names_of_tests(rule).split(" or ") for name in NAMES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_the_facts_a_rule_names_are_in_the_table(rule: type[Rule]) -> None:
    assert len(rows_of(rule)) >= len(rule.facts)


def test_elsewhere_a_command_names_the_installed_fixtures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rule = all_rules()["RPL411"]
    command = command_of(rule)
    assert command is not None and " fixtures/traces/cut-thought.jsonl " in command
    monkeypatch.chdir(readme.ROOT)
    assert command_here(rule) == command
    monkeypatch.chdir(tmp_path)
    assert command_of(rule) == command
    there = command_here(rule)
    assert there is not None and f" {fixtures.ROOT}/traces/cut-thought.jsonl " in there
    assert command_here(all_rules()["ENG502"]) is None
