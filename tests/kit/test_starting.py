"""What `new-parser` writes: files that read as vLLM's own do, in which the static look finds nothing."""

from __future__ import annotations

import ast
import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from reasonctl.checks.plg_facts import PluginLook
from reasonctl.checks.plg_static import static_findings
from reasonctl.errors import InputError
from reasonctl.kit.plugin_text import class_name, plugin_text
from reasonctl.kit.source import read_plugin_source
from reasonctl.kit.starting import check_name, write_parser
from reasonctl.kit.tests_text import pytest_text
from reasonctl.kit.traits import Switch, Traits, read_traits
from reasonctl.prompts.model import load_model

from .styles import STYLES

ENABLE = (Switch("enable_thinking", False, True, True),)
SEVERAL = (
    Switch("enable_thinking", False, True, True),
    Switch("thinking_mode", "disabled", "enabled", True),
    Switch("reasoning_effort", "none", None, True),
)
DEFAULT_OFF = (Switch("enable_thinking", False, True, False), Switch("thinking", False, True, False))
RUFF = [sys.executable, "-m", "ruff"]
LIKE_VLLM = """
line-length = 88
[lint]
select = ["E", "F", "UP", "B", "SIM", "I", "G"]
[lint.isort]
known-first-party = ["vllm"]
"""
"""What of vLLM's own settings (pyproject.toml, 0.33.0) is about a file's own text."""


def every_kind() -> list[Traits]:
    """All mixtures of what a parser may have to know."""
    return [
        Traits(
            start="<｜deep▁thought｜>",
            end="</it's\n>",
            single=single,
            special=special,
            opened=opened,
            call=call,
            switches=switches,
            turns=turns,
            prompt="<|a|>\n",
            prompt_off="<|b|>" if switches else None,
            closed=closed,
        )
        for single, special, opened, closed in itertools.product((True, False), repeat=4)
        for call in (None, "<tool_call>")
        for switches in ((), ENABLE, SEVERAL, DEFAULT_OFF)
        for turns in ((), ("<|im_end|>", "<|im_start|>"), tuple(f"<|start_of_turn_{i}|>" for i in range(5)))
    ]


def test_every_mixture_is_as_ruff_formats_it(tmp_path: Path) -> None:
    (tmp_path / "ruff.toml").write_text(LIKE_VLLM)
    for number, traits in enumerate(every_kind()):
        (tmp_path / f"p{number}.py").write_text(plugin_text("some_model", traits), encoding="utf-8")
        (tmp_path / f"test_p{number}.py").write_text(pytest_text("some_model", f"p{number}", traits), encoding="utf-8")
    for words in (["format", "--diff", "--quiet"], ["check", "--output-format", "concise", "--quiet"]):
        done = subprocess.run([*RUFF, *words, "."], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.stdout[:2000], done.returncode) == ("", 0), done.stderr


def test_no_mixture_defines_what_it_does_not_use(tmp_path: Path) -> None:
    for traits in every_kind():
        tree = ast.parse(plugin_text("some_model", traits))
        used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        (cls,) = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        own = {node.name for node in cls.body if isinstance(node, ast.FunctionDef) and node.name.startswith("_")}
        set_here = {
            node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        }
        read = {
            node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
        }
        assert own - {"__init__"} <= used
        assert set_here <= read | {"skip_special_tokens"} | {"skip_special_tokens"}


@pytest.mark.parametrize("style", STYLES)
def test_the_static_look_finds_nothing(style: str, tmp_path: Path) -> None:
    model = load_model(STYLES[style](tmp_path / "model"))
    traits = read_traits(model)
    made = write_parser(style, traits, tmp_path / "out")
    source = read_plugin_source(made.plugin)
    switches = [(one.name, one.off, one.on) for one in traits.switches]
    look = PluginLook(source, style, vocabulary=model.tokenizer, switches=switches)
    assert list(static_findings(look)) == []
    assert source.registrations[0].name == style


def test_a_plain_model_needs_no_more_than_this(tmp_path: Path) -> None:
    text = plugin_text("glim", Traits("<a>", "</a>", True))
    (cls,) = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
    assert [node.name for node in cls.body if isinstance(node, ast.FunctionDef)] == [
        "__init__",
        "set_prompt_token_ids",
        "count_reasoning_tokens",
        "extract_reasoning",
        "extract_reasoning_streaming",
        "has_engine_confirmed_reasoning_end",
        "finish_streaming",
        "_split",
        "_partial_marker",
    ]
    assert len(text.splitlines()) < 100


@pytest.mark.parametrize(
    ("name", "cls"),
    [
        ("glim", "GlimReasoningParser"),
        ("my-model.v2_x", "MyModelV2XReasoningParser"),
        ("4dots", "Model4dotsReasoningParser"),
        ("QwQ", "QwQReasoningParser"),
    ],
)
def test_class_names(name: str, cls: str) -> None:
    check_name(name)
    assert class_name(name) == cls


@pytest.mark.parametrize("name", ["qwen3", "a/b", "", "-x", "a b", "é"])
def test_names_that_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"^NAME: "):
        check_name(name)


def test_nothing_is_overwritten_unless_it_is_asked_for(tmp_path: Path) -> None:
    traits = Traits("<a>", "</a>", True)
    tests = tmp_path / "test_glim_x_reasoning_parser.py"
    tests.write_text("mine")
    with pytest.raises(InputError, match="is there already; give -o another folder, or --force"):
        write_parser("glim-x", traits, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [tests.name]
    assert tests.read_text() == "mine"
    made = write_parser("glim-x", traits, tmp_path, force=True)
    assert made.tests == tests
    assert sorted(path.name for path in tmp_path.iterdir()) == ["glim_x_reasoning_parser.py", tests.name]
    assert 'NAME = "glim-x"' in tests.read_text()


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written: "):
        write_parser("glim", Traits("<a>", "</a>", True), tmp_path / "file" / "below")
