"""`--vllm ENGINE`: every form names the right interpreter, and what names nothing is refused with the mend."""

from __future__ import annotations

import os
import sys
import textwrap
from pathlib import Path

import pytest

from reasonctl.errors import InputError
from reasonctl.parsers.assumed import AssumedVocabulary
from reasonctl.parsers.bridge.bridge import open_bridge
from reasonctl.parsers.bridge.spec import EngineSpec, parse_engine
from reasonctl.parsers.feed import Chunking
from reasonctl.parsers.run import Output

from .fake_vllm import fake_vllm

STAND_IN = """
#!{python}
import os, sys
arguments = sys.argv[1:]
expected = {expected!r}
if arguments[: len(expected)] != expected or arguments[len(expected)] != "-c" or len(arguments) != len(expected) + 2:
    print("called with", arguments[:-1], file=sys.stderr)
    sys.exit(64)
os.environ["PYTHONPATH"] = {folder!r}
os.execv({python!r}, [{python!r}, *arguments[len(expected) :]])
"""


def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, expected: list[str]) -> None:
    """A command of this name, first on PATH, that runs a fake vLLM where it is called with just these arguments."""
    fake_vllm(tmp_path / "inside")
    folder = tmp_path / "bin"
    folder.mkdir()
    script = STAND_IN.format(python=sys.executable, expected=expected, folder=str(tmp_path / "inside"))
    (folder / name).write_text(textwrap.dedent(script).lstrip(), encoding="utf-8")
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def splits(value: str) -> bool:
    """Whether what the value names comes up and splits an output."""
    vocabulary = AssumedVocabulary()
    with open_bridge(parse_engine(value)) as bridge:
        output = Output(vocabulary, text="a</think>b")
        run = bridge.run("deepseek_r1", vocabulary, {}, output, chunkings=(Chunking("tokens"),))
    return {(mode.reasoning, mode.content) for mode in (run.full, *run.stream)} == {("a", "b")}


def test_an_image_runs_without_a_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    image = "vllm/vllm-openai:v0.33.0"
    expected = ["run", "-i", "--rm", "--network", "none", "--entrypoint", "python3", image]
    stand_in(monkeypatch, tmp_path, "docker", expected)
    assert splits(f"image:{image}")


def test_a_pod_is_entered_by_its_namespace_and_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_in(monkeypatch, tmp_path, "kubectl", ["exec", "-i", "-n", "serving", "chat-0", "--", "python3"])
    assert splits("pod:serving/chat-0")


def test_a_command_is_taken_as_a_shell_would(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_in(monkeypatch, tmp_path, "podman", ["exec", "-i", "my pod", "python3"])
    assert splits("cmd:podman exec -i 'my pod' python3")


def test_what_a_container_says_before_it_fails_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_in(monkeypatch, tmp_path, "docker", ["something else"])
    with pytest.raises(Exception, match=r"it ended with status 64 \(called with \['run', '-i'"):
        open_bridge(parse_engine("image:mine"))


def test_a_folder_is_laid_over_an_interpreter(tmp_path: Path) -> None:
    """A checkout: nothing compiled, no version of its own."""
    value = fake_vllm(tmp_path / "checkout", version=None)
    assert parse_engine(value).overlay == f"{tmp_path}/checkout"
    assert splits(value)


def test_an_environment_means_its_python_and_the_link_is_kept(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    assert parse_engine(str(tmp_path)) == EngineSpec(str(tmp_path), (f"{tmp_path}/bin/python",))
    fake_vllm(tmp_path / "wheel")
    spec = parse_engine(f"{tmp_path}/wheel:{tmp_path}")
    assert (spec.command, spec.overlay) == ((f"{tmp_path}/bin/python",), f"{tmp_path}/wheel")


def test_a_relative_path_is_one_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    monkeypatch.chdir(tmp_path)
    assert parse_engine("bin/python3").command == (f"{tmp_path}/bin/python3",)
    assert parse_engine(".").command == (f"{tmp_path}/bin/python3",)


def test_a_name_is_looked_for_on_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mypython").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert parse_engine("mypython").command == (f"{tmp_path}/mypython",)


def test_the_users_pythonpath_stays_behind_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    environment = EngineSpec("x", ("python3",), str(tmp_path)).environment()
    assert environment["PYTHONPATH"] == f"{tmp_path}{os.pathsep}/somewhere"
    assert EngineSpec("x", ("python3",)).environment()["PYTHONPATH"] == "/somewhere"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("", "--vllm: is empty; give a Python"),
        ("no/such/python", "there is no no/such/python"),
        ("cmd:", "cmd: names nothing"),
        ("cmd:'python3", "cannot be read as a command line"),
        ("cmd:no-such-command python3", "there is no command 'no-such-command' here"),
        ("image:", "image: names nothing"),
        ("image:a b", "'a b' is no image"),
        ("image:--privileged", "is no image"),
        ("pod:chat-0", "'chat-0' names no pod; write pod:NAMESPACE/NAME"),
        ("pod:a/b/c", "names no pod"),
        ("pod:-n/x", "names no pod"),
    ],
)
def test_what_names_nothing_is_refused(value: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_engine(value)
    assert said in str(caught.value)
    assert str(caught.value).startswith("--vllm: ")


def test_a_missing_tool_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"image: needs docker, which is not here; install docker, or use cmd:COMMAND"):
        parse_engine("image:mine")


def test_folders_that_are_neither_are_told_apart(tmp_path: Path) -> None:
    fake_vllm(tmp_path / "wheel")
    with pytest.raises(InputError, match=r"is no virtual environment: .* write .*/wheel:PYTHON to lay it over"):
        parse_engine(str(tmp_path / "wheel"))
    with pytest.raises(InputError, match=r"a:b cannot go on a PYTHONPATH: it holds a :; link it"):
        parse_engine(fake_vllm(tmp_path / "a:b"))
    with pytest.raises(InputError, match=r"holds no vllm package; give the folder that has vllm/ in it"):
        parse_engine(f"{tmp_path}:{sys.executable}")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be executed"):
        parse_engine(str(tmp_path / "file"))
