"""Scripts that make much of little: what they come to is bounded, and what is beyond the bounds is unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from reasonctl.errors import InputError
from reasonctl.serve.command import ServeCommand
from reasonctl.serve.read import read_serve, servers_in
from reasonctl.serve.work import MAX_VALUE, MAX_WORDS


def one(script: str) -> ServeCommand:
    (found,) = servers_in(script, path="run.sh")
    assert isinstance(found, ServeCommand)
    return found


def times(count: int, command: str) -> str:
    return f"for i in {' '.join(map(str, range(count)))}; do {command}; done\n"


SERVE = "vllm serve m --reasoning-parser qwen3 --served-model-name $A\n"


@pytest.mark.parametrize(
    "doubling",
    ['A="$A$A"', "A+=$A", 'A="${A}${A}"', 'A="${X:-$A$A}"', "B=$A$A; A=$B", 'f "$A"', "[ -n x ] && A=$A$A"],
)
def test_a_value_that_doubles_is_unknown_once_no_command_could_have_it(doubling: str) -> None:
    function = "f() { A=$1$1; }\n"
    start = f"A={'a' * 64}\n"
    within = one(function + start + times(11, doubling) + SERVE)
    assert within.flags["served-model-name"].value == "a" * MAX_VALUE
    beyond = one(function + start + times(14, doubling) + SERVE)
    assert (beyond.model, beyond.reasoning_parser) == ("m", "qwen3")
    assert (beyond.flags["served-model-name"].dynamic, beyond.flags["served-model-name"].value) == (True, "$A")


@pytest.mark.parametrize("doubling", ['A=("${A[@]}" "${A[@]}")', 'A+=("${A[@]}")'])
def test_an_array_that_doubles_is_unknown_once_it_is_too_long(doubling: str) -> None:
    script = "A=(--max-model-len 8192)\n" + times(11, doubling) + 'vllm serve m --reasoning-parser qwen3 "${A[@]}"'
    assert len(one(script).words) == MAX_WORDS + 3
    beyond = one(script.replace("10; do", "10 11 12; do"))
    assert {word.text for word in beyond.words if word.dynamic} == {"${A[@]}"}
    assert "max-model-len" not in beyond.flags


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("f() { f; f; f; f; f; f; }\nf\n", "goes on for ever"),
        ("for i in 1 2 3 4 5 6 7 8 9; do " * 6 + "x;" + "done; " * 6 + "\n", "goes on for ever"),
        (f"A={'a' * 128}\n" + times(10, "A+=$A") + times(60, times(60, "x $A").replace("\n", "")), "grow for ever"),
        (
            f"A='{'x=1;' * 1000}'\n" + times(60, times(60, 'eval "$A"').replace("\n", "")),
            "for ever",
        ),
        (f"A='{'x ' * 5000}'\n" + times(60, times(60, 'bash -c "$A"').replace("\n", "")), "reads its own texts"),
        ("A=" + "${A:-" * 3000 + "x" + "}" * 3000 + "\n", "reads its own texts"),
        ("(" * 3000 + "x" + ")" * 3000 + "\n", "nested deeper than can be followed"),
    ],
)
def test_a_script_that_never_comes_to_an_end_is_refused(script: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        servers_in(script + SERVE, path="run.sh")


def test_a_script_that_sources_itself_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text(f"# {'x' * 9000}\n" + times(30, ". ./run.sh") + SERVE)
    with pytest.raises(InputError, match="for ever"):
        read_serve(str(script))


def test_here_documents_in_here_documents_are_followed_some_way_down() -> None:
    def inside(depth: int) -> str:
        opened = "".join(f"cat <<E{i}\n" for i in range(depth))
        return opened + SERVE + "".join(f"E{i}\n" for i in reversed(range(depth)))

    assert len(servers_in(inside(8), path="run.sh")) == 1
    assert servers_in(inside(400), path="run.sh") == []


def test_a_pattern_is_taken_from_a_short_value_alone() -> None:
    script = "A=/models/{}\nA=${{A##*/}}\n" + SERVE
    assert one(script.format("qwen")).flags["served-model-name"].value == "qwen"
    assert one(script.format("q" * 9000)).flags["served-model-name"].dynamic


def test_a_sourced_script_that_is_broken_stops_no_other(tmp_path: Path) -> None:
    """Nor is what comes behind it read out of the wrong script."""
    (tmp_path / "env.sh").write_text("P=qwen3\nif true; then\n" + "x\n" * 40)
    script = tmp_path / "run.sh"
    script.write_text(". ./env.sh\nvllm serve m --reasoning-parser ${P:-glm45}\nvllm serve n --reasoning-parser $P\n")
    found = read_serve(str(script))
    assert [(server.model, server.reasoning_parser) for server in found if isinstance(server, ServeCommand)] == [
        ("m", "qwen3"),
        ("n", "qwen3"),
    ]
