"""`reasonctl new-parser`: what it prints, and what it refuses."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from reasonctl import fixtures

COMMAND = "new-parser"
Run = Callable[..., tuple[int, str, str]]


def test_it_says_what_it_found_and_what_to_do_next(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(fixtures.model_path("glim"), "my model")
    assert run("glim-1", "--model", "my model", "-o", "out") == (
        0,
        "glim-1: <|ponder|> ... <|/ponder|>; one token each; opened by the prompt; reasoning_effort 'none' is off; "
        "<|call|> ends it too\n"
        "wrote    out/glim_1_reasoning_parser.py\n"
        "         out/test_glim_1_reasoning_parser.py\n"
        "check it reasonctl check-parser out/glim_1_reasoning_parser.py --name glim-1 --model 'my model'\n"
        "test it  pytest out/test_glim_1_reasoning_parser.py (with vLLM's Python)\n"
        "serve it vllm serve 'my model' --reasoning-parser-plugin out/glim_1_reasoning_parser.py "
        "--reasoning-parser glim-1\n",
        "",
    )
    assert sorted(path.name for path in Path("out").iterdir()) == [
        "glim_1_reasoning_parser.py",
        "test_glim_1_reasoning_parser.py",
    ]


def test_files_stay_unless_force_is_given(run: Run, tmp_path: Path) -> None:
    words = ("glim", "--model", "fixture:glim", "-o", str(tmp_path))
    assert run(*words)[0] == 0
    plugin = tmp_path / "glim_reasoning_parser.py"
    plugin.write_text("mine")
    assert run(*words) == (2, "", f"reasonctl: {plugin}: is there already; give -o another folder, or --force\n")
    assert plugin.read_text() == "mine"
    assert run(*words, "--force")[0] == 0
    assert "class GlimReasoningParser(" in plugin.read_text()


def test_like_takes_over_the_facts_of_a_built_in(run: Run, tmp_path: Path) -> None:
    words = ("mine", "--model", "fixture:instruct", "-o", str(tmp_path))
    code, out, _ = run(*words, "--like", "seed_oss")
    assert (code, out.splitlines()[0]) == (
        0,
        "mine: <seed:think> ... </seed:think>; markers of several tokens; opened by the model; enable_thinking False "
        "is off; <seed:tool_call> ends it too",
    )
    code, out, _ = run(*words, "--start", "[[", "--end", "]]", "--force")
    assert (code, out.splitlines()[0].partition(";")[0]) == (0, "mine: [[ ... ]]")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("qwen3", "--model", "fixture:glim"), "NAME: vLLM has a parser 'qwen3' of its own"),
        (("a b", "--model", "fixture:glim"), "NAME: 'a b' is no parser name"),
        (("x", "--model", "fixture:glam"), "fixture:glam: no such model is shipped"),
        (("x", "--model", "fixture:instruct"), "fixture:instruct: the template shows no markers of thinking"),
        (("x", "--model", "fixture:glim", "--like", "qwen"), "did you mean qwen3"),
        (("x", "--model", "fixture:glim", "--start", "<a>"), "--start: one marker alone tells nothing; give both"),
        (("x", "--model", "fixture:glim", "--end", "<a>"), "--end: one marker alone tells nothing; give both"),
        (
            ("x", "--model", "fixture:glim", "--start", "<a>", "--end", "</<a>"),
            "--start: a marker is part of the other",
        ),
        (("x", "--model", ""), "--model: is empty"),
    ],
)
def test_what_is_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
