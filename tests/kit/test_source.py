"""A plugin's source as it is read: nothing of it runs, whatever it holds."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonctl.errors import InputError
from reasonctl.kit.source import Place, PluginSource, SharedState, read_plugin_source


def read(tmp_path: Path, text: str) -> PluginSource:
    path = tmp_path / "plugin.py"
    path.write_text(dedent(text), encoding="utf-8")
    return read_plugin_source(path)


def test_nothing_runs(tmp_path: Path) -> None:
    source = read(tmp_path, f"open({str(tmp_path / 'ran')!r}, 'w')\nimport antigravity\nraise SystemExit\n")
    assert not (tmp_path / "ran").exists()
    assert "antigravity" not in sys.modules
    assert [one.module for one in source.imports] == ["antigravity"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("class P:\n    def f(self)\n        pass\n", ":2:16: this is no Python: expected ':'; mend that line"),
        ("x = 'a\n", ":1:5: this is no Python: unterminated string literal"),
        ("\0", "this is no Python: source code string cannot contain null bytes"),
        ("x = " + "-" * 100_000 + "1", "this is no Python: "),
    ],
)
def test_what_is_no_python_is_refused_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        read(tmp_path, text)
    assert said in str(refused.value)
    assert str(refused.value).startswith(str(tmp_path / "plugin.py"))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.py: cannot be read: No such file"):
        read_plugin_source(tmp_path / "nowhere.py")


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("any") / "plugin.py"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        assert read_plugin_source(path).path == path
    except InputError as refused:
        assert refused.source == str(path)


def test_what_loading_imports(tmp_path: Path) -> None:
    source = read(
        tmp_path,
        """
        import a.b, c as d
        from e import f as g
        from typing import TYPE_CHECKING
        from . import near
        if TYPE_CHECKING:
            import types_only
        try:
            import maybe
        except ImportError:
            pass
        def later():
            import on_call
        class Body:
            import in_body
        """,
    )
    assert [(one.module, one.name) for one in source.imports] == [
        ("a.b", None),
        ("c", None),
        ("e", "f"),
        ("typing", "TYPE_CHECKING"),
        ("in_body", None),
    ]


def test_bases_are_resolved_through_imports_and_the_file(tmp_path: Path) -> None:
    source = read(
        tmp_path,
        """
        import vllm.reasoning as r
        from vllm.reasoning.basic_parsers import BaseThinkingReasoningParser as Base
        from typing import Generic

        class One(Base, Generic[int]): pass
        class Two(One, r.ReasoningParser): pass
        class Loop(Loop): pass
        """,
    )
    two = source.class_named("Two")
    assert two is not None
    own, outside = source.lineage(two)
    assert [one.name for one in own] == ["Two", "One"]
    assert outside == (
        "vllm.reasoning.ReasoningParser",
        "vllm.reasoning.basic_parsers.BaseThinkingReasoningParser",
        "typing.Generic",
    )
    loop = source.class_named("Loop")
    assert loop is not None
    assert source.lineage(loop) == ((loop,), ())


@pytest.mark.parametrize(
    ("value", "text", "is_given"),
    [
        ("start_token = '<a>'", "<a>", True),
        ("start_token: str = MARK", "<m>", True),
        ("start_token = make()", None, True),
        ("start_token = None", None, False),
        ("@property\n    def start_token(self): return '<a>'", "<a>", True),
        ("@property\n    def start_token(self): return self._mark", "<i>", True),
        ("@property\n    def start_token(self): return self.other.start_token", None, True),
        ("@property\n    def start_token(self): return None", None, False),
        ("@property\n    def start_token(self): ...", None, False),
        ("@property\n    def start_token(self): raise NotImplementedError", None, True),
        ("@property\n    def start_token(self): return '<a>' if self.on else None", None, True),
    ],
)
def test_markers(tmp_path: Path, value: str, text: str | None, is_given: bool) -> None:
    head = "MARK = '<m>'\nclass P:\n    def __init__(self):\n        self._mark = '<i>'\n"
    marker = read(tmp_path, f"{head}    {value}\n").classes[0].marker("start_token")
    assert marker is not None
    assert (marker.text, marker.given) == (text, is_given)


def states(tmp_path: Path, body: str, before: str = "") -> list[SharedState]:
    return list(read(tmp_path, f"{before}\nclass P:\n    kept = []\n    count = 0\n    {body}\n").shared)


@pytest.mark.parametrize(
    "body",
    [
        "def f(self): self.kept.append(1)",
        "def f(self): self.kept += [1]",
        "def f(self): self.kept[0] = 1",
        "def f(self): del self.kept[0]",
        "def f(self): P.count += 1",
        "def f(self): type(self).count = 1",
        "def f(self): self.__class__.kept.clear()",
        "@classmethod\n    def f(cls): cls.count = 1",
        "def f(self):\n        def g(): self.kept.append(1)\n        g()",
        "def f(self): a, P.count = 1, 2",
    ],
)
def test_state_of_the_class_that_a_method_changes(tmp_path: Path, body: str) -> None:
    assert [(one.holder, one.where) for one in states(tmp_path, body) if one.where == "f"] == [("P", "f")]


@pytest.mark.parametrize(
    "body",
    [
        "def f(self): self.count += 1",
        "def f(self): self.kept = [1]",
        "def f(self): return len(self.kept)",
        "def f(self): self.other.append(1)",
        "def f(self, kept): kept.append(1)",
        "def __init__(self):\n        self.kept = []\n    def f(self): self.kept.append(1)",
        "def f(self, P): P.count = 1",
    ],
)
def test_state_of_the_instance_is_left_alone(tmp_path: Path, body: str) -> None:
    assert states(tmp_path, body) == []


def test_state_of_the_module_and_of_a_default(tmp_path: Path) -> None:
    before = "seen = set()\nhow_many = 0\nfixed = []"
    body = """def f(self, into=[]):
        global how_many
        how_many += 1
        seen.add(1)
        into.append(2)
        fixed = []
        fixed.append(3)"""
    assert states(tmp_path, body, before) == [
        SharedState("how_many", None, "f", Place(2, 12), Place(9, 9)),
        SharedState("seen", None, "f", Place(1, 8), Place(10, 9)),
        SharedState("into", "f()", "f", Place(7, 22), Place(11, 9)),
    ]
