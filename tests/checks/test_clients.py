"""Sources of clients: which reads of the old field are found, and which are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from reasonctl.checks.clients import read_clients
from reasonctl.errors import InputError


def lines(tmp_path: Path, name: str, text: str) -> list[int | None]:
    (tmp_path / name).write_text(text)
    return [read.location.line for read in read_clients([str(tmp_path / name)])]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.py", "x = m.reasoning_content\n", [1]),
        ("a.py", "x = m['reasoning_content']\n", [1]),
        ("a.py", "x = m.get('reasoning_content', '')\n", [1]),
        ("a.py", "if hasattr(d, 'reasoning_content'):\n    print(d.reasoning_content)\n", [1, 2]),
        ("a.py", "x = getattr(m, 'reasoning', None) or getattr(m, 'reasoning_content', None)\n", []),
        ("a.py", "m.reasoning_content = 1\nd = {'reasoning_content': 2}\nf(reasoning_content=3)\n", []),
        ("a.py", "def a(m):\n    return m.reasoning\ndef b(m):\n    return m.reasoning_content\n", [4]),
        ("a.py", "x = (chunk.choices[0]\n     .delta\n     .reasoning_content)\n", [3]),
        ("a.py", "# m.reasoning_content\nx = 'the reasoning_content field'\n", []),
        ("a.py", "this is no python: m.reasoning_content\n", [1]),
        ("a.ts", "const r = delta.reasoning_content;\n", [1]),
        ("a.ts", "const r = delta?.reasoning ?? delta?.reasoning_content;\n", []),
        ("a.ts", "// delta.reasoning_content\ninterface D {\n  reasoning_content?: string;\n}\n", []),
        ("a.ts", "const { reasoning_content } = message;\n", [1]),
        ("a.js", "body = { reasoning_content: text };\n", []),
        ("a.yaml", "path: choices[0].message.reasoning_content\n", [1]),
        ("a.json", '{"extract": "$.choices[0].message.reasoning_content"}\n', [1]),
        ("a.json", '{"messages": [{"role": "assistant", "reasoning_content": "x"}]}\n', []),
    ],
)
def test_reads(tmp_path: Path, name: str, text: str, expected: list[int]) -> None:
    assert lines(tmp_path, name, text) == expected


def test_a_folder_is_walked_but_not_what_others_wrote(tmp_path: Path) -> None:
    for place in ("src", "node_modules/x", ".venv/y"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "c.ts").write_text("const r = d.reasoning_content\n")
    (tmp_path / "notes.txt").write_text("d.reasoning_content\n")
    found = read_clients([str(tmp_path)])
    assert [Path(read.location.path).parent.name for read in found] == ["src"]
    assert found[0].text == "d.reasoning_content"


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_clients([str(tmp_path / "x.py")])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = m.reasoning_content", [(7, "m.reasoning_content")]),
        ("é = d['é']['reasoning_content']", [(13, '…["reasoning_content"]')]),
        ("if hasattr(d, 'reasoning_content') and d.reasoning_content: pass", [(16, 'hasattr(d, "reasoning_content")')]),
        ("x = f(key='k').y.get('reasoning_content', 'k')", [(23, 'y.get("reasoning_content")')]),
    ],
)
def test_a_read_is_its_access_alone_one_a_line(tmp_path: Path, text: str, expected: list[tuple[int, str]]) -> None:
    (tmp_path / "a.py").write_text(text + "\n")
    assert [(r.location.column, r.text) for r in read_clients([str(tmp_path / "a.py")])] == expected


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.ts", "const { reasoning_content: rc, content } = delta;\nuse(rc);\n", [1]),
        ("a.ts", "function f({ reasoning_content: rc }: Delta) {\n  use(rc);\n}\n", [1]),
        ("a.ts", "deltas.map(({ reasoning_content: rc }) => rc);\n", [1]),
        ("a.ts", "const { reasoning_content: rc, reasoning } = delta;\n", []),
        ("a.ts", "send({ reasoning_content: text });\n", []),
        ("a.ts", "const message = { role, reasoning_content: text };\n", []),
        ("a.ts", "type Delta = {\n  reasoning_content: string;\n};\n", []),
        ("a.py", 'for k in ("reasoning_content",):\n    out(getattr(delta, k))\n', [1]),
        ("a.py", 'for k in ("reasoning", "reasoning_content"):\n    out(getattr(delta, k))\n', []),
        ("a.py", 'x = [delta[k] for k in ["content", "reasoning_content"]]\n', [1]),
        ("a.py", 'FIELDS = ("reasoning_content",)\n', []),
    ],
)
def test_names_that_are_taken_apart_or_gone_over(tmp_path: Path, name: str, text: str, expected: list[int]) -> None:
    (tmp_path / name).write_text(text)
    assert [read.location.line for read in read_clients([str(tmp_path / name)])] == expected


def test_a_folders_unreadable_file_is_told_and_passed_by(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(bytes(range(256)) * 4)
    (tmp_path / "b.py").write_text("print(delta.reasoning_content)\n")
    unread: list[InputError] = []
    assert len(read_clients([str(tmp_path)], unread=unread)) == 1
    assert [Path(error.source or "").name for error in unread] == ["a.json"]
    with pytest.raises(InputError):
        read_clients([str(tmp_path / "a.json")], unread=unread)
