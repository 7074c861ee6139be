"""What a reader copies out of a report stays on one line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonctl.reports.page import Page
from reasonctl.reports.paste import STAND_IN, Advice, Whole, unbroken

KWARGS = "--default-chat-template-kwargs '{\"enable_thinking\": true}'"
BODY = 'extra_body={"chat_template_kwargs": {"enable_thinking": true}}'


@pytest.mark.parametrize(
    ("text", "held"),
    [
        (f"{KWARGS} (replayed: splits right)", [KWARGS]),
        (f"{BODY} (replayed: splits right)", [BODY]),
        ("--reasoning-parser granite splits right", ["--reasoning-parser granite"]),
        ('set --structured-outputs-config={"enable_in_reasoning": false}, then', ['{"enable_in_reasoning": false}']),
        ("reasonctl record --endpoint URL keeps the ids", ["reasonctl record --endpoint URL"]),
        ("run reasonctl audit models/qwen3 --parser auto", ["reasonctl audit models/qwen3 --parser auto"]),
        ("pip install 'reasonctl[harmony]' reads them", ["pip install 'reasonctl[harmony]'"]),
        ("a well-known thing, and -1 asks for no cutoff", []),
    ],
)
def test_flags_commands_and_json_are_held_together(text: str, held: list[str]) -> None:
    joined = unbroken(text)
    assert joined.replace(STAND_IN, " ") == text
    words = [word.replace(STAND_IN, " ") for word in joined.split()]
    for one in held:
        assert any(one in word for word in words), words
    if not held:
        assert STAND_IN not in joined


@pytest.mark.parametrize("width", [40, 79, 100])
def test_what_does_not_fit_beside_its_label_gets_a_line_of_its_own(width: int) -> None:
    page = Page(width=width, colour=False)
    page.fields([("at", "here"), ("instead", Advice(f"send {KWARGS} or {BODY} with each request"))])
    lines = page.text().splitlines()
    assert lines[0] == "  at       here"
    for change in (KWARGS, BODY):
        (line,) = [line for line in lines if change in line]
        assert line.strip() == change or len(line) <= width
    assert " ".join(" ".join(lines).split()) == f"at here instead send {KWARGS} or {BODY} with each request"


@pytest.mark.parametrize("width", [40, 60, 100])
def test_a_whole_command_line_is_one_line(width: int) -> None:
    flags = f"--reasoning-parser qwen3 --enable-auto-tool-choice {KWARGS}"
    page = Page(width=width, colour=False)
    page.fields([("paste", Whole(flags))])
    assert any(line.strip() == flags or line == f"  paste  {flags}" for line in page.text().splitlines())


def test_prose_alone_is_wrapped_in_its_column() -> None:
    page = Page(width=40, colour=False)
    page.fields([("instead", Advice("look at the output itself, and give the parsers what the server had"))])
    assert page.text().splitlines() == [
        "  instead  look at the output itself,",
        "           and give the parsers what the",
        "           server had",
    ]


@given(st.text(st.characters(exclude_categories=()), max_size=40), st.integers(20, 120))
def test_no_text_is_lost_and_none_reaches_the_terminal_as_it_is(text: str, width: int) -> None:
    page = Page(width=width, colour=False)
    page.fields([("instead", Advice(f"--flag {text}"))])
    shown = page.text()
    assert STAND_IN not in shown
    assert "\x1b" not in shown
    from reasonctl.reports.wording import visible

    expected = visible(text).replace(STAND_IN, "\\ufdd0")
    assert "".join(shown.split()) == "".join(f"instead--flag{expected}".split())
