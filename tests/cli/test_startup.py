"""What starting up may import. Heavy packages cost seconds, so the quick commands must do without them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROBE = """
import sys
before = set(sys.modules) | set(sys.stdlib_module_names)
from reasonctl.cli import main
sys.argv = ["reasonctl", *sys.argv[1:]]
try:
    main()
except SystemExit as stop:
    code = stop.code or 0
names = {name.partition(".")[0] for name in sys.modules} - before
print("CODE", code, "MODULES", *sorted(names), file=sys.stderr)
"""
COMMAND_LINE = {
    "typer",
    "rich",
    "shellingham",
    "annotated_doc",
    # typer 0.29 coerces arguments with pydantic
    "pydantic",
    "pydantic_core",
    "annotated_types",
    "typing_inspection",
    "typing_extensions",
    # typer and rich lay out help pages with these
    "markdown_it",
    "mdurl",
    "pygments",
    "attr",
    "click",
}
READERS = {"yaml"}
HEAVY = {
    "transformers",
    "tokenizers",
    "torch",
    "vllm",
    "httpx",
    "huggingface_hub",
    "jinja2",
    "numpy",
    "jq",
    "zstandard",
}


def imported(*arguments: str) -> set[str]:
    """Top-level packages outside the standard library that one run of the command line imports."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", PROBE, *arguments], capture_output=True, text=True, encoding="utf-8", check=False
    )
    head, _, names = done.stderr.rpartition("CODE ")
    assert names.startswith("0 MODULES "), done.stderr
    assert head == ""
    return {name for name in names.split()[2:] if not name.startswith("_")} - {"reasonctl"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["audit", "--help"],
        ["explain", "INT904"],
        ["rules"],
        ["rules", "--format", "json"],
        ["parsers"],
        ["parsers", "qwen3"],
        ["parsers", "qwen3", "--format", "json"],
        ["doctor", "--help"],
        ["vllm", "--help"],
        ["vllm", "check", "--help"],
        ["vllm", "install", "--help"],
        ["new-parser", "--help"],
        ["check-parser", "--help"],
    ],
    ids=" ".join,
)
def test_commands_that_only_tell_import_no_more_than_the_command_line(arguments: list[str]) -> None:
    assert imported(*arguments) - COMMAND_LINE == set()


@pytest.mark.parametrize("form", ["text", "json", "sarif", "junit"])
def test_validate_config_imports_readers_only(form: str, tmp_path: Path) -> None:
    budget = tmp_path / "budget.json"
    budget.write_text('{"low": 1024, "medium": 4096}', encoding="utf-8")
    assert imported("validate-config", str(budget), "--format", form) - COMMAND_LINE - READERS == set()


LOOK = """
import sys
before = set(sys.modules) | set(sys.stdlib_module_names)
from pathlib import Path
from reasonctl.checks.plg_facts import PluginLook
from reasonctl.checks.plg_static import static_findings
from reasonctl.kit.source import read_plugin_source
(found,) = static_findings(PluginLook(read_plugin_source(Path(sys.argv[1])), "my-glim"))
print(found.rule, *{name.partition(".")[0] for name in sys.modules} - before)
"""


def test_a_plugins_source_is_looked_at_with_nothing_imported() -> None:
    plugin = Path(__file__).parents[1] / "kit" / "plugins" / "plg602_fault.py"
    done = subprocess.run([sys.executable, "-I", "-c", LOOK, plugin], capture_output=True, text=True, check=True)
    rule, *names = done.stdout.split()
    assert rule == "PLG602"
    assert {name for name in names if not name.startswith("_")} == {"reasonctl"}


def test_probe_sees_imports() -> None:
    probe = PROBE.replace("from reasonctl.cli", "import jinja2\nfrom reasonctl.cli")
    done = subprocess.run([sys.executable, "-I", "-c", probe, "--help"], capture_output=True, text=True, check=True)
    assert "jinja2" in done.stderr.split()
    assert HEAVY.isdisjoint(COMMAND_LINE | READERS)
