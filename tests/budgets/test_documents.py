"""JSON, YAML and TOML with positions: the same values as the usual readers, and the right place for every key."""

from __future__ import annotations

import json
import math
import tomllib
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reasonctl.budgets.document import Node, NotFinite, duplicates, locator, strict
from reasonctl.budgets.json_text import read_json, read_json_values
from reasonctl.budgets.toml_text import read_toml
from reasonctl.budgets.yaml_text import read_yaml
from reasonctl.errors import InputError

READERS = {"json": read_json, "yaml": read_yaml, "toml": read_toml}

text = st.text(st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="\u2028\u2029\u0085"), max_size=8)
scalars = st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(allow_nan=False) | text
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4), max_leaves=20
)


def read(kind: str, source: str) -> Node:
    return READERS[kind](source, locator(source, f"f.{kind}"))


def places(node: Node) -> dict[str, tuple[int, int]]:
    return {".".join(path): (entry.location.line, entry.location.column) for path, entry in node.walk()}


@given(documents, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_json_reads_what_python_reads(value: Any, indent: int | str | None, ascii_only: bool) -> None:
    assert read("json", json.dumps(value, indent=indent, ensure_ascii=ascii_only)).plain() == value


@given(documents)
def test_every_json_key_is_where_its_place_says(value: Any) -> None:
    source = json.dumps(value, indent=2)
    rows = source.split("\n")
    for path, entry in read("json", source).walk():
        row = rows[entry.location.line - 1]
        assert row[entry.location.column - 1 :].startswith(json.dumps(path[-1]))


@given(st.text(alphabet='{}[]",:0123456789.eE+-truefalsn \n\\u', max_size=30))
def test_json_accepts_exactly_what_python_accepts(source: str) -> None:
    try:
        expected = json.loads(source, strict=False)
    except ValueError:
        with pytest.raises(InputError) as caught:
            read("json", source)
        assert caught.value.line is not None
        assert caught.value.column is not None
    else:
        assert read("json", source).plain() == expected


@given(documents)
def test_yaml_reads_what_pyyaml_writes(value: Any) -> None:
    source = yaml.safe_dump(value, allow_unicode=True)
    assert read("yaml", source).plain() == value


def same(ours: Any, theirs: Any) -> bool:
    """Equal to what PyYAML gives, type and all; its dates, bytes and sets are text or a mapping here, keys are text."""
    if isinstance(theirs, dict):
        odd = any(not isinstance(key, str) for key in theirs)
        return isinstance(ours, dict) and (odd or all(same(ours[key], theirs[key]) for key in theirs))
    if isinstance(theirs, list):
        return isinstance(ours, list) and all(same(*pair) for pair in zip(ours, theirs, strict=True))
    if not isinstance(theirs, (bool, int, float, str, type(None))):
        return True
    kind = float if isinstance(ours, NotFinite) else type(ours)
    return kind is type(theirs) and (ours == theirs or repr(theirs) == "nan")


yaml_scalars = (
    st.from_regex(r"[-+.]{0,2}[0-9][0-9_:.xobeE+a-fA-F-]{0,9}", fullmatch=True)
    | st.from_regex(r"[-+]?0[xob]?[0-9a-f_]{1,6}", fullmatch=True)
    | st.from_regex(r"[-+]?[1-9][0-9]{0,2}(:[0-5]?[0-9]){1,3}(\.[0-9]*)?", fullmatch=True)
    | st.sampled_from(
        ["yes", "NO", "on", "Off", "True", "y", "n", "~", "null", "Null", "", ".inf", "-.INF", ".nan", "="]
    )
    | st.from_regex(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}", fullmatch=True)
    | st.from_regex(r"!!(int|float|bool|null|str|binary) ?[0-9a-zA-Z]{1,4}", fullmatch=True)
)


def check_against_pyyaml(source: str) -> None:
    try:
        theirs = yaml.safe_load(source)
    except Exception:  # PyYAML lets errors of its own conversions through
        with pytest.raises(InputError) as caught:
            read("yaml", source)
        assert caught.value.line is not None
        return
    try:
        ours = read("yaml", source).plain()
    except InputError as error:
        if "no value" in error.message:
            assert theirs is None
        else:
            assert "plain word" in error.message or "contains itself" in error.message
        return
    assert same(ours, theirs)


@given(yaml_scalars, st.sampled_from(["{}", "k: {}", "- {}", "'{}'", "[{}]", "{}: 1"]))
def test_yaml_scalars_are_what_pyyaml_makes_of_them(scalar: str, frame: str) -> None:
    check_against_pyyaml(frame.replace("{}", scalar))


@given(st.text(alphabet="ab01:- \n[]{}&*!<,'\"#?|>~.", max_size=25))
def test_yaml_documents_are_what_pyyaml_makes_of_them(source: str) -> None:
    check_against_pyyaml(source)


@given(st.text(max_size=40))
def test_yaml_never_ends_in_a_traceback(source: str) -> None:
    try:
        read("yaml", source)
    except InputError as error:
        assert error.source == "f.yaml"


@given(st.text(alphabet="ab.=[]{}\"'#\n 12,_-", max_size=40))
def test_toml_reads_what_tomllib_reads(source: str) -> None:
    try:
        expected = tomllib.loads(source)
    except tomllib.TOMLDecodeError:
        try:
            node = read("toml", source)
        except InputError as error:
            assert error.source == "f.toml"
        else:
            assert list(duplicates(node))
    else:
        assert read("toml", source).plain() == expected


def test_toml_of_every_kind() -> None:
    source = (
        "# budgets\n"
        "title = 'x' # a comment\n"
        'quoted."a.b" = "l1\\n\\"q\\""\n'
        "many = [1, 2_000,\n  # inside\n  0x10, ]\n"
        "[thinking_token_budget]\n"
        "low = 1024\n"
        'medium = """\nx"y"""\n'
        "inline = {a = 1, b.c = [true]}\n"
        "[[row]]\nn = 1\n[[row]]\nn = 2.5\nwhen = 1979-05-27 07:32:00\n"
    )
    node = read("toml", source)
    expected = tomllib.loads(source)
    expected["row"][1]["when"] = str(expected["row"][1]["when"])
    assert node.plain() == expected
    assert places(node)["thinking_token_budget.low"] == (8, 1)
    assert places(node)["thinking_token_budget.inline.b"] == (11, 18)


def test_places_in_json() -> None:
    node = read("json", '{"thinking_token_budget": {\n  "low": 1,\n  "medium":\n    true}}')
    assert places(node) == {
        "thinking_token_budget": (1, 2),
        "thinking_token_budget.low": (2, 3),
        "thinking_token_budget.medium": (3, 3),
    }
    budget = node.get("thinking_token_budget")
    assert budget is not None
    medium = budget.value.get("medium")
    assert medium is not None
    assert (medium.value.location.line, medium.value.location.column) == (4, 5)


def test_places_in_yaml_and_merges() -> None:
    source = "base: &b {low: 1, medium: 2}\nmap:\n  <<: *b\n  medium: 3\n"
    node = read("yaml", source)
    assert node.plain() == {"base": {"low": 1, "medium": 2}, "map": {"low": 1, "medium": 3}}
    assert places(node)["map.medium"] == (4, 3)
    assert list(duplicates(node)) == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10", 10),
        ("0x10", 16),
        ("1_000", 1000),
        ("017", 15),
        ("0o17", "0o17"),
        ("1:30", 90),
        ("4_096", 4096),
        ("0b11", 3),
        ("08", "08"),
        ("1e3", "1e3"),
        ("1.0e+3", 1000.0),
        ("yes", True),
        ("Off", False),
        ("y", "y"),
        ("2024-01-31", "2024-01-31"),
        ("true", True),
        ("~", None),
        ("none", "none"),
        ("'7'", "7"),
    ],
)
def test_yaml_scalars(text: str, value: object) -> None:
    found = read("yaml", f"k: {text}").plain()["k"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("kind", "source", "first", "last"),
    [
        ("json", '{"a": {"b": 1,\n "b": 2}}', (1, 8), (2, 2)),
        ("yaml", "a:\n  b: 1\n\n  b: 2\n", (2, 3), (4, 3)),
        ("toml", "[a]\nb = 1\nb = 2\n", (2, 1), (3, 1)),
        ("toml", "a.b = 1\na.b = 2\n", (1, 3), (2, 3)),
        ("toml", "a = {b = 1, b = 2}\n", (1, 6), (1, 13)),
    ],
)
def test_a_key_given_twice_is_found(kind: str, source: str, first: tuple[int, int], last: tuple[int, int]) -> None:
    node = read(kind, source)
    (found,) = duplicates(node)
    assert found.path == ("a", "b")
    assert (found.lost, found.kept) == (1, 2)
    assert (found.first.line, found.first.column) == first
    assert (found.last.line, found.last.column) == last
    assert node.plain() == {"a": {"b": 2}}


def test_a_toml_table_given_twice_is_found() -> None:
    (found,) = duplicates(read("toml", "[a]\nb = 1\n[c]\n[a]\nd = 1\n"))
    assert found.path == ("a",)
    assert (found.first.line, found.last.line) == (1, 4)


@pytest.mark.parametrize(
    ("kind", "source", "place", "words"),
    [
        ("json", '{"a": 1,}', "1:9", "trailing comma"),
        ("json", '{"a" 1}', "1:6", "':'"),
        ("json", "{'a': 1}", "1:2", "double quotes"),
        ("json", '{"a": [1 2]}', "1:10", "',' or ']'"),
        ("json", '{"a": tru}', "1:7", "a value"),
        ("json", '{"a": "x', "1:7", "unterminated string"),
        ("json", '{"a": 1} {"b": 2}', "1:10", "second JSON value"),
        ("json", "", "1:1", "no JSON value"),
        ("json", "[" * 200, "1:101", "nested deeper"),
        ("json", '{"a": ' + "9" * 5000 + "}", "1:7", "more than 1000 digits"),
        ("json", "[" + "9" * 1001 + "]", "1:2", "more than 1000 digits"),
        ("toml", "a = 1\nb = " + "9" * 5000, "2:5", "more than 1000 digits"),
        ("toml", "a = [1, 0x" + "f" * 5000 + "]", "1:9", "more than 1000 digits"),
        ("yaml", "a: 1\nb: " + "9" * 5000, "2:4", "more than 1000 digits"),
        ("yaml", "a: 0x" + "f" * 5000, "1:4", "more than 1000 digits"),
        ("yaml", "a: [1", "1:", "not YAML"),
        ("yaml", "a: 1\n b: 2", "2:", "not YAML"),
        ("yaml", "a: 1\n---\nb: 2\n", "2:1", "several YAML documents"),
        ("yaml", "a: \x07", "1:4", "not YAML"),
        ("yaml", "? [a, b]\n: 1\n", "1:3", "plain word"),
        ("yaml", "a: &a [*a]", "1:", ""),
        ("yaml", "# only a comment\n", "1:1", "no value in it; write"),
        ("yaml", "a: !thing 5", "1:4", "!thing"),
        ("yaml", "a: !thing {b: 5}", "1:4", "!thing"),
        ("yaml", "a: !!int x", "1:4", "this is no int"),
        ("yaml", "a: [[[" + "[" * 5000, "1:104", "nested deeper"),
        ("yaml", "".join(f"{' ' * n}a:\n" for n in range(300)), "101:101", "nested deeper"),
        (
            "yaml",
            "a0: &a0 x\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 300)),
            "102:7",
            "nested deeper",
        ),
        ("toml", "a = 1\nb = \n", "2:", "not TOML"),
        ("toml", "a 1", "1:", "not TOML"),
    ],
)
def test_what_is_broken_is_named_with_its_place(kind: str, source: str, place: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        read(kind, source)
    assert str(caught.value).startswith(f"f.{kind}:{place}")
    assert words in str(caught.value)


def test_yaml_aliases_cannot_explode() -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(InputError, match="aliases expand") as caught:
        read("yaml", "\n".join(rows))
    assert caught.value.line == 5, "the first row that goes beyond"
    rows = ["a0: &a0 {k0: 1}"] + [f"a{n}: &a{n} {{<<: *a{n - 1}, k{n}: [{n}]}}" for n in range(1, 40)]
    assert len(read("yaml", "\n".join(rows)).plain()["a39"]) == 40


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        ("json", '{"a": NaN, "b": [-Infinity, 1e400]}'),
        ("yaml", "a: .nan\nb: [-.Inf, 1.0e+400]\n"),
        ("toml", "a = nan\nb = [-inf, 1e400]\n"),
    ],
)
def test_numbers_that_json_has_not_keep_their_text(kind: str, source: str) -> None:
    value = read(kind, source).plain()
    assert math.isnan(value["a"])
    assert value["b"] == [-math.inf, math.inf]
    shown = json.loads(json.dumps(strict(value), allow_nan=False))
    assert (
        shown
        == {
            "json": {"a": "NaN", "b": ["-Infinity", "1e400"]},
            "yaml": {"a": ".nan", "b": ["-.Inf", "1.0e+400"]},
            "toml": {"a": "nan", "b": ["-inf", "1e400"]},
        }[kind]
    )
    assert strict({"a": [math.nan, 1.5, True, None]}) == {"a": ["NaN", 1.5, True, None]}


def test_several_json_values_on_lines_or_pretty_printed() -> None:
    source = '{"a": 1}\n\n{\n "a": 2\n}{"a": 3}\n'
    nodes = read_json_values(source, locator(source, "f"))
    assert [node.plain()["a"] for node in nodes] == [1, 2, 3]
    assert [node.location.line for node in nodes] == [1, 3, 5]
