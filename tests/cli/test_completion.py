"""What the shell gets: the script it installs, and the values it may offer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reasonctl.checks.rule import all_rules
from reasonctl.fixtures import model_names
from reasonctl.parsers import ROWS

PROGRAM = Path(sys.executable).parent / "reasonctl"


def ask(shell: str, line: str) -> list[str]:
    """The offers of a shell, asked as its script asks."""
    asked = {
        "bash": {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": line},
        "fish": {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    env = os.environ | asked | {"_REASONCTL_COMPLETE": f"complete_{shell}"}
    done = subprocess.run([PROGRAM], env=env, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if line]


def test_rule_ids_come_with_their_slugs() -> None:
    wanted = {rule.id: rule.slug for rule in all_rules().values() if rule.id.startswith("FIT10")}
    assert len(wanted) == 9
    assert ask("bash", "reasonctl explain FIT10") == list(wanted)
    assert ask("fish", "reasonctl explain FIT10") == [f"{id_}\t{slug}" for id_, slug in wanted.items()]
    zsh = "\n".join(ask("zsh", "reasonctl explain FIT10"))
    assert all(f'"{id_}":"{slug}"' in zsh for id_, slug in wanted.items())
    assert ask("bash", "reasonctl explain content") == ["content-null"]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("audit --select FIT105,TPL01", [f"FIT105,TPL01{digit}" for digit in range(7)]),
        ("audit --model fixture:", [f"fixture:{name}" for name in model_names()]),
        ("audit --model models", []),
        ("audit fixture:q", [f"fixture:{name}" for name in model_names() if name.startswith("q")]),
        ("replay t.jsonl --parser deep", sorted(name for name in ROWS if name.startswith("deep"))),
        ("parsers kimi", sorted(name for name in ROWS if name.startswith("kimi"))),
        ("audit --format ma", ["markdown"]),
        ("rules --format ma", ["markdown"]),
        ("parsers --format ma", []),
        ("gate --fail-on w", ["warning"]),
        ("verify --device c", ["cpu", "cuda"]),
        ("validate-config --dialect s", ["slimserve"]),
        ("validate-config --eff", ["--effort"]),
        ("lab build d --family qwen", ["qwen3"]),
        ("vali", ["validate-config"]),
    ],
)
def test_values(line: str, offered: list[str]) -> None:
    assert sorted(ask("bash", f"reasonctl {line}")) == sorted(offered)


def test_bash_completes_with_the_script_it_is_given(tmp_path: Path) -> None:
    script = """
        eval "$(_REASONCTL_COMPLETE=source_bash reasonctl)"
        COMP_WORDS=(reasonctl explain FIT12) COMP_CWORD=2
        _reasonctl_completion reasonctl
        echo "${COMPREPLY[@]}"
    """
    env = os.environ | {"PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["FIT120", "FIT121", "FIT122"]


@pytest.mark.parametrize("action", ["--show-completion", "--install-completion"])
def test_the_shell_that_calls_is_the_one_that_is_served(action: str, tmp_path: Path) -> None:
    env = os.environ | {"HOME": str(tmp_path)}
    done = subprocess.run(
        ["bash", "-c", f"{PROGRAM} {action}; exit $?"], env=env, capture_output=True, text=True, check=True
    )
    written = "\n".join(path.read_text() for path in sorted(tmp_path.rglob("*")) if path.is_file())
    assert "complete -o default -F _reasonctl_completion reasonctl" in (done.stdout, written)[action[2] == "i"]


@pytest.mark.parametrize(("shell", "first"), [("zsh", "#compdef reasonctl"), ("fish", "complete --command reasonctl")])
def test_other_shells_get_their_scripts(shell: str, first: str) -> None:
    env = os.environ | {"_REASONCTL_COMPLETE": f"source_{shell}"}
    done = subprocess.run([PROGRAM], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.lstrip().startswith(first)
