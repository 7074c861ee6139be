"""Shell words with places: the words shlex gives, and every character where it came from."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonctl.budgets.document import locator
from reasonctl.errors import InputError
from reasonctl.serve.words import Word, split_words

plain = st.text(alphabet="ab= \t'\"\\,:{}", max_size=30)


def words(source: str) -> list[Word]:
    return split_words(source, locator(source, "f"))


@given(st.text(alphabet="ab= \t'\"\\,:}", max_size=30))  # an opening brace may begin JSON that is kept whole
def test_the_words_are_those_of_shlex(source: str) -> None:
    try:
        expected = shlex.split(source)
    except ValueError:
        return
    if source.endswith("\\"):
        return
    assert [word.text for word in words(source)] == expected


@given(st.lists(st.text(alphabet="ab'\" \\$`{}\n#;|<>é", max_size=6), max_size=5))
def test_quoted_words_come_back(given_words: list[str]) -> None:
    found = words(shlex.join(given_words))
    assert [word.text for word in found] == given_words
    assert not any(word.dynamic or word.operator for word in found)


@given(plain)
def test_every_character_knows_its_place(source: str) -> None:
    try:
        found = words(source)
    except InputError:
        return
    for word in found:
        assert len(word.offsets) == len(word.text) + 1
        assert "".join(source[offset] for offset in word.offsets[:-1]) == word.text
        assert list(word.offsets) == sorted(word.offsets)


def test_lines_go_on_after_a_backslash_and_places_count_lines() -> None:
    found = words("vllm serve \\\n  'a\nb' # nothing\nx")
    assert [word.text for word in found] == ["vllm", "serve", "a\nb", "\n", "x"]
    quoted = found[2]
    assert (quoted.location.line, quoted.location.column) == (2, 4)
    assert (quoted.place(2).line, quoted.place(2).column) == (3, 1)


@pytest.mark.parametrize(
    ("source", "texts", "dynamic"),
    [
        ("$A", ["$A"], [True]),
        ("'$A'", ["$A"], [False]),
        (r"\$A", ["$A"], [False]),
        ('"${A:-x y}"', ["${A:-x y}"], [True]),
        ("$(cat x) b", ["$(cat x)", "b"], [True, False]),
        ("`cat x`", ["`cat x`"], [True]),
        ("5$ a$", ["5$", "a$"], [False, False]),
    ],
)
def test_what_only_the_shell_knows(source: str, texts: list[str], dynamic: list[bool]) -> None:
    found = words(source)
    assert [word.text for word in found] == texts
    assert [word.dynamic for word in found] == dynamic


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ('--k {"a": true, "b": {"c": 1}} --x', ["--k", '{"a": true, "b": {"c": 1}}', "--x"]),
        ('--k={"a": 1} y', ['--k={"a": 1}', "y"]),
        ("{a,b} { }", ["{a,b}", "{", "}"]),
    ],
)
def test_json_that_lost_its_quotes_is_one_word(source: str, texts: list[str]) -> None:
    assert [word.text for word in words(source)] == texts


def test_operators_are_words_of_their_own() -> None:
    found = words("a>b 2>&1 &&c|d&")
    assert [(word.text, word.operator) for word in found] == [
        ("a", False), (">", True), ("b", False), ("2", False), (">&", True), ("1", False),
        ("&&", True), ("c", False), ("|", True), ("d", False), ("&", True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "place", "message"),
    [
        ("a 'b", "f:1:3", "quote is never closed"),
        ('a\n "b', "f:2:2", "quote is never closed"),
        ("a ${b", "f:1:4", "bracket is never closed"),
        ("vllm serve m \\ \n --x", "f:1:14", "not continued"),
    ],
)
def test_broken_lines(source: str, place: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        words(source)
    assert str(caught.value).startswith(place)
    assert message in str(caught.value)
