"""The table of version facts: what it says of releases that are known, and that its ranges make sense."""

from __future__ import annotations

import pytest

from reasonctl import versions
from reasonctl.parsers.table import ROWS
from reasonctl.serve.options import EVERY


def test_the_newest_release_registers_the_parsers_of_the_parser_table() -> None:
    assert versions.names("reasoning-parser", versions.NEWEST) == tuple(sorted(ROWS))


@pytest.mark.parametrize(
    ("version", "count"), [((0, 7, 0), 0), ((0, 7, 1), 1), ((0, 15, 0), 16), ((0, 30, 0), 34), ((0, 32, 0), 38)]
)
def test_how_many_parsers_a_release_registers(version: versions.Version, count: int) -> None:
    assert len(versions.names("reasoning-parser", version)) == count


@pytest.mark.parametrize(
    ("flag", "version", "there"),
    [
        ("enable-reasoning", (0, 7, 0), False),
        ("enable-reasoning", (0, 9, 2), True),
        ("enable-reasoning", (0, 10, 0), False),
        ("guided-decoding-backend", (0, 10, 2), True),
        ("guided-decoding-backend", (0, 11, 0), False),
        ("reasoning-effort-map", (0, 32, 0), False),
        ("reasoning-effort-map", (0, 33, 0), True),
        ("default-chat-template-kwargs", (0, 13, 0), False),
        ("no-such-flag", (0, 33, 0), False),
    ],
)
def test_flags_of_releases(flag: str, version: versions.Version, there: bool) -> None:
    assert versions.holds("flag", flag, version) is there


def test_the_flags_of_the_newest_release_are_those_that_command_lines_are_read_by() -> None:
    known = set(versions.names("flag", versions.NEWEST))
    negated = {name.removeprefix("no-") for name in EVERY if name.startswith("no-")}
    assert known <= set(EVERY)
    assert {name for name in EVERY if name not in known and name.removeprefix("no-") not in negated} - {
        name for name in EVERY if name.startswith(("disable-", "enable-"))
    } == {"help"}


def test_facts() -> None:
    assert versions.fact("response-reasoning_content", (0, 15, 1))
    assert not versions.fact("response-reasoning_content", (0, 16, 0))
    taken = [versions.fact("history-in-reasoning_content", (0, minor, 0)) for minor in (10, 12, 18, 22, 33)]
    assert taken == [False, True, False, True, True]
    assert versions.fact("v2-refuses-budget", (0, 27, 1))
    with pytest.raises(KeyError):
        versions.fact("no-such-fact", (0, 33, 0))


def test_every_row_has_a_source_and_a_range_that_is_not_empty() -> None:
    for kind in ("flag", "reasoning-parser", "tool-parser", "fact"):
        found = list(versions.every(kind))  # type: ignore[arg-type]
        assert found
        for row in found:
            assert row.source
            assert row.text or kind != "fact"
            assert row.since is None or row.since > versions.OLDEST
            assert row.until is None or row.until <= versions.NEWEST
            assert row.since is None or row.until is None or row.since < row.until
            assert row.holds(row.since or versions.OLDEST)


@pytest.mark.parametrize(
    ("kind", "name", "text"),
    [
        ("flag", "enable-reasoning", "0.7.1 to before 0.10"),
        ("flag", "model", "every release"),
        ("flag", "task", "before 0.13"),
        ("fact", "budget-chat", "0.19 and later"),
    ],
)
def test_ranges_in_words(kind: versions.Kind, name: str, text: str) -> None:
    assert versions.rows(kind, name)[0].range_text == text
