"""Command lines that are no POSIX shell's: PowerShell, cmd, make, Python; and what is shown, not started."""

# ruff: noqa: E501  (scripts stand here as people write them)

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonctl.checks.finding import Location
from reasonctl.errors import InputError
from reasonctl.serve.command import ServeCommand
from reasonctl.serve.dialects import as_shell
from reasonctl.serve.read import read_folder, servers_in


def servers(text: str, path: str) -> list[ServeCommand]:
    return [server for server in servers_in(text, path=path) if isinstance(server, ServeCommand)]


def one(text: str, path: str) -> ServeCommand:
    (found,) = servers(text, path)
    return found


def test_powershell_goes_on_after_a_backtick() -> None:
    text = (
        "$model = \"org/m\"\n$env:P = 'qwen3'\n& vllm serve $model `\n"
        "  --reasoning-parser $env:P `\n  --chat-template C:\\models\\t.jinja\n"
    )
    found = one(text, "run.ps1")
    assert (found.model, found.reasoning_parser, found.chat_template) == ("org/m", "qwen3", "C:\\models\\t.jinja")
    assert (found.place("reasoning-parser").line, found.place("reasoning-parser").column) == (4, 3)


def test_cmd_goes_on_after_a_caret_and_knows_its_variables() -> None:
    text = '@echo off\r\nrem vllm serve old\r\nset MODEL=org/m\r\nset "P=qwen3"\r\nvllm serve %MODEL% ^\r\n  --reasoning-parser %P% --port %PORT%\r\n'
    found = one(text, "run.bat")
    assert (found.model, found.reasoning_parser) == ("org/m", "qwen3")
    assert found.flags["port"].dynamic
    assert found.place("reasoning-parser").line == 6


MAKEFILE = """MODEL ?= org/m
PARSER := qwen3
FLAGS = --port 1
FLAGS += --max-model-len 8K
.PHONY: serve
serve: build
\t@VLLM_USE_V2_MODEL_RUNNER=0 vllm serve $(MODEL) \\
\t    --reasoning-parser $(PARSER) ${FLAGS} --host $$HOSTNAME
other: ; vllm serve org/n --reasoning-parser $(PARSER)
"""


def test_a_makefiles_recipes_with_its_variables() -> None:
    first, second = servers(MAKEFILE, "Makefile")
    assert (first.model, first.reasoning_parser, first.max_model_len, first.runner) == ("org/m", "qwen3", 8192, "v1")
    assert first.flags["host"].dynamic
    assert first.place("reasoning-parser").line == 8
    assert (second.model, second.reasoning_parser, second.location.line) == ("org/n", "qwen3", 9)


@pytest.mark.parametrize(
    ("text", "model", "parser"),
    [
        ('import subprocess\nc = ["vllm", "serve", "org/m"]\nc += ["--reasoning-parser", "qwen3"]\nsubprocess.run(c)\n', "org/m", "qwen3"),
        ('M = "org/m"\ndef go(port):\n    c = ["vllm", "serve", M, "--port", str(port)]\n    c.append("--reasoning-parser")\n    c.append("qwen3")\n', "org/m", "qwen3"),
        ('c = ["python3", "-m", "vllm.entrypoints.openai.api_server"]\nc.extend(["--model", "org/m"])\nif x:\n    c += ["--reasoning-parser", "a"]\n', "org/m", None),
        ('P = "qwen3"\nos.system(f"vllm serve org/m --reasoning-parser {P} --port {port()}")\n', "org/m", "qwen3"),
        ('subprocess.Popen("vllm serve org/m --reasoning-parser " + "qwen3", shell=True)\n', "org/m", "qwen3"),
    ],
)  # fmt: skip
def test_command_lines_that_a_program_starts(text: str, model: str, parser: str | None) -> None:
    found = one(text, "start.py")
    assert (found.model, found.reasoning_parser) == (model, parser)


def test_what_a_program_only_shows_starts_nothing() -> None:
    text = (
        '"""vllm serve m --reasoning-parser a"""\nprint("vllm serve m --reasoning-parser a")\n'
        'parser.add_argument("--x", help="as vllm serve --x")\nnames = ["vllm", "sglang"]\n'
    )
    assert servers(text, "x.py") == []
    assert servers("echo vllm serve m --reasoning-parser a\nprintf '%q ' vllm serve m --port 1\n", "x.sh") == []
    assert servers("vllm serve --help\nvllm serve m -h\n", "x.sh") == []


@pytest.mark.parametrize(
    ("script", "parser"),
    [
        ('CMD="vllm serve org/m"\nCMD+=" --reasoning-parser qwen3"\neval "$CMD"\n', "qwen3"),
        ('declare -A P=([a]=qwen3 [b]=glm45)\nK=b\nvllm serve org/m --reasoning-parser "${P[$K]}"\n', "glm45"),
        ('P[a]=qwen3\nvllm serve org/m --reasoning-parser ${P[a]}\n', "qwen3"),
        ('A=(x qwen3)\nvllm serve org/m --reasoning-parser ${A[1]}\n', "qwen3"),
    ],
)  # fmt: skip
def test_eval_and_arrays_with_keys(script: str, parser: str) -> None:
    assert one(script, "run.sh").reasoning_parser == parser


def test_a_sourced_file_beside_the_script_is_run(tmp_path: Path) -> None:
    (tmp_path / "x.env").write_text("MODEL=org/m\nexport PARSER=qwen3\n")
    script = tmp_path / "run.sh"
    script.write_text('. "$(dirname "$0")/x.env"\nsource ./none.env\nvllm serve $MODEL --reasoning-parser $PARSER\n')
    found = one(script.read_text(), str(script))
    assert (found.model, found.reasoning_parser) == ("org/m", "qwen3")


def test_copies_that_differ_in_their_port_are_one_server_and_a_branch_is_named_once() -> None:
    loop = "for i in 0 1; do CUDA_VISIBLE_DEVICES=$i vllm serve m --port 800$i & done\n"
    assert [server.name for server in servers(loop, "x.sh")] == ["m"]
    branch = 'c=(vllm serve m)\n[[ -n "$D" ]] && c+=(--chat-template t)\nprintf "%q " "${c[@]}"\nexec "${c[@]}"\n'
    assert [s.name for s in servers(branch, "x.sh")] == ["m (if [[ -n $D ]])", "m (unless [[ -n $D ]])"]


def test_conditions_on_what_is_not_judged_tell_nothing_apart() -> None:
    text = "A=()\n" + "".join(f'[ -n "$F{i}" ] && A+=(--max-num-seqs {i})\n' for i in range(9))
    (found,) = servers(text + 'vllm serve m --reasoning-parser qwen3 "${A[@]}"\n', "x.sh")
    assert (found.name, found.text("max-num-seqs")) == ("m", "8")


def test_of_many_open_conditions_each_is_tried_by_itself() -> None:
    text = "A=()\n" + "".join(f'[ -n "$F{i}" ] && A+=(--reasoning-parser p{i})\n' for i in range(9))
    found = servers(text + 'vllm serve m "${A[@]}"\n', "x.sh")
    assert {s.reasoning_parser for s in found} == {None, *(f"p{i}" for i in range(9))}
    assert "m (if [ -n $F3 ])" in {s.name for s in found}
    assert len({s.name for s in found}) == len(found)


def test_words_that_may_hold_any_flag_are_kept() -> None:
    assert one('vllm serve m $EXTRA "$@"', "x.sh").open_words == ("$EXTRA", "$@")
    assert one("vllm serve $MODEL --port $PORT", "x.sh").open_words == ()
    (told,) = one("vllm serve --model m ${P:+--api-key secret $P}", "x.sh").open_words
    assert told.startswith("$P")
    assert "secret" not in told


@pytest.mark.parametrize("path", ["flake.nix", "compose.yaml.j2", "values.gotmpl"])
def test_templates_by_their_name(path: str) -> None:
    with pytest.raises(InputError, match="nothing runs until it is rendered"):
        servers("x = 'vllm serve m'\n", path)


@pytest.mark.parametrize(
    "text",
    [
        "- hosts: gpu\n  tasks:\n  - shell: vllm serve {{ model }} --port 1\n",
        "a:\n  command: vllm serve m --reasoning-parser {{ parser }}\n",
        "services:\n  a:\n    image: vllm/vllm-openai:{{ tag }}\n    command: --model m\n",
    ],
)
def test_a_jinja_template_is_told_by_where_its_braces_stand(text: str) -> None:
    with pytest.raises(InputError, match="Jinja template"):
        servers(text, "play.yml")


def test_braces_that_are_no_templates_of_ours() -> None:
    kserve = "kind: ServingRuntime\nmetadata: {name: r}\nspec: {containers: [{name: c, image: 'vllm/vllm-openai:v0.30.0', args: [--model=/m, '--served-model-name={{.Name}}']}]}\n"
    assert one(kserve, "r.yaml").model == "/m"
    actions = "jobs:\n  a:\n    steps:\n    - run: |\n        vllm serve m --reasoning-parser ${{ inputs.parser }}\n"
    assert one(actions, "ci.yaml").flags["reasoning-parser"].dynamic


def test_a_folder_knows_these_files(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(MAKEFILE)
    (tmp_path / "run.ps1").write_text("vllm serve org/p --reasoning-parser qwen3\n")
    (tmp_path / "flake.nix").write_text('x = "vllm serve m";\n')
    found, unread = read_folder(str(tmp_path))
    assert sorted(s.name for s in found) == ["org/m", "org/n", "org/p"]
    assert [Path(file.location.path).name for file in unread] == ["flake.nix"]


@given(
    text=st.text(alphabet="ab$%`^'\"\\(){}=:;\n\r\t @-+#", max_size=80),
    path=st.sampled_from(["run.ps1", "run.bat", "Makefile"]),
)
def test_every_character_of_a_turned_text_has_a_place_in_order(text: str, path: str) -> None:
    made, place = as_shell(text, path, lambda at: Location("x", at + 1, 1))
    lines = [place(index).line or 0 for index in range(len(made))]
    assert lines == sorted(lines)
    assert all(1 <= line <= len(text) + 1 for line in lines)


@given(
    text=st.text(alphabet="abc $\n\"'=(){}[]<>;|&\\`-", max_size=60),
    path=st.sampled_from(["x.sh", "x.ps1", "Makefile", "x.py"]),
)
def test_whatever_stands_there_is_read_or_refused(text: str, path: str) -> None:
    with contextlib.suppress(InputError):
        servers_in(f"{text}\nvllm serve m --reasoning-parser qwen3\n", path=path)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("vllm serve m --default-chat-template-kwargs '{\"a\": true}'\n", "run.ps1"),
        ("vllm serve m --default-chat-template-kwargs '{\\\"a\\\": true}'\n", "run.ps1"),
        ('vllm serve m --default-chat-template-kwargs "{\\"a\\": true}"\r\n', "run.bat"),
    ],
)
def test_json_as_windows_wants_it_quoted(text: str, path: str) -> None:
    assert one(text, path).default_chat_template_kwargs == {"a": True}


def test_what_means_nothing_to_cmd_stays_as_it_is() -> None:
    found = one('vllm serve m --served-model-name "it\'s $5" --chat-template C:\\t.jinja\r\n', "run.cmd")
    assert (found.text("served-model-name"), found.chat_template) == ("it's $5", "C:\\t.jinja")
