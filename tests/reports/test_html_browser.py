"""The HTML report in Chromium, as a reader uses it: pointing, keys alone, dark, narrow, printed, without script."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from reasonctl.checks.report import Report
from reasonctl.reports import html
from reasonctl.reports.wording import visible

from .pages import EVIL, LEAK, LEAKED, evil_report, many, replay_page

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.fail("no Chromium here: apt-get install -y --no-install-recommends chromium")
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield made
        made.close()


@dataclass
class Visit:
    """An open page, and what it should not have done."""

    page: Page
    address: str
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", lambda message: self.complaints.append(f"console: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        self.page.on("request", self._request)
        self.page.goto(self.address)

    def _request(self, request: Any) -> None:
        if request.url.partition("#")[0] != self.address:
            self.complaints.append(f"request: {request.url}")


Look = Callable[..., Page]
EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"


@pytest.fixture
def look(browser: Browser, tmp_path: Path) -> Iterator[Look]:
    """Opens a report; at the end there must have been no error, no message, no dialog and no request."""
    visits: list[Visit] = []

    def opened(report: Report | Path, **context: Any) -> Page:
        file = tmp_path / f"{len(visits)}.html"
        if isinstance(report, Path):
            file = report
        else:
            file.write_text(html.render(report), encoding="utf-8")
        page = browser.new_context(viewport={"width": 1100, "height": 800}, **context).new_page()
        visits.append(Visit(page, file.as_uri()))
        return visits[-1].page

    yield opened
    for visit in visits:
        visit.page.context.close()
        assert visit.complaints == []


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.outerHTML.slice(0, 80)"))


def kinds(card: Locator) -> list[str]:
    return [name.split()[1] for name in card.locator(".tok").evaluate_all("all => all.map((one) => one.className)")]


def test_a_trace_is_drawn_when_it_is_opened_and_tells_the_token_one_points_at(look: Look) -> None:
    page = look(replay_page(LEAK, findings=(LEAKED,)))
    card = page.locator("#trace-1")
    assert card.locator(".tok").count() == 0
    card.locator("> summary").click()
    texts = card.locator(".tok > b").all_inner_texts()
    assert "".join(texts) == "Two and two.</think>\\n\\nIt is 4.<|im_end|>"
    assert kinds(card) == ["c"] * 9 + ["m"]
    assert card.locator(".plain").is_hidden()
    inspector = card.locator(".inspector")
    card.locator(".tok").nth(4).hover()
    said = inspector.inner_text()
    for part in ("token 5 of 10", "id 1004", "delta 2 of 7 (3 tokens)", "text </think>"):
        assert part in said
    assert "1 recorded and 1 more: content (leaked marker)" in said
    assert "2 qwen3: marker" in said
    card.locator(".tok").nth(9).hover()
    assert "<|im_end|> shows no text" in inspector.inner_text()
    card.locator(".tok").nth(5).click()
    card.locator(".tok").nth(0).hover()
    assert "token 6 of 10" in inspector.inner_text()
    card.locator(".tok").nth(5).click()
    card.locator(".tok").nth(0).hover()
    assert "token 1 of 10" in inspector.inner_text()
    begins = card.locator(".tok").evaluate_all("all => all.map((one) => one.classList.contains('delta'))")
    assert [place for place, begin in enumerate(begins) if begin] == [0, 2, 5, 6, 7, 8]


def test_another_outcome_colours_the_text(look: Look) -> None:
    page = look(replay_page(LEAK, findings=(LEAKED,)))
    card = page.locator("#trace-1")
    card.locator("> summary").click()
    expect(card.locator(".tok.leak")).to_have_count(1)
    second = card.get_by_role("button", name="colour the text by outcome 2, qwen3")
    second.click()
    assert second.get_attribute("aria-pressed") == "true"
    assert kinds(card) == ["r"] * 4 + ["m"] + ["c"] * 4 + ["m"]
    assert card.locator(".tok.leak").count() == 0
    assert card.locator(".tok").nth(4).locator("> i").all_inner_texts() == ["", "m", "m"]
    assert card.locator(".tok").nth(6).locator("> i").evaluate_all("all => all.map((one) => one.className)") == [
        "c", "x",
    ]  # fmt: skip
    assert card.locator(".gutter i").all_inner_texts() == ["1", "2", "3", "1–2", "3"]


def test_everything_is_reached_by_keys_alone(look: Look) -> None:
    page = look(replay_page(LEAK, findings=(LEAKED,)))
    page.keyboard.press("Tab")
    assert "skip to the report" in focused(page)
    page.keyboard.press("Tab")
    assert 'id="theme"' in focused(page)
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.parentElement?.id") == "trace-1":
            break
    page.keyboard.press("Enter")
    card = page.locator("#trace-1")
    assert card.get_attribute("open") is not None
    for _ in range(12):
        page.keyboard.press("Tab")
        if "tok" in focused(page):
            break
    inspector = card.locator(".inspector")
    assert "token 1 of 10" in inspector.inner_text()
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    for key, place in (
        ("ArrowRight", 2),
        ("ArrowRight", 3),
        ("ArrowLeft", 2),
        ("End", 6),
        ("ArrowDown", 10),
        ("Control+Home", 1),
    ):
        page.keyboard.press(key)
        assert f"token {place} of 10" in inspector.inner_text()
    page.keyboard.press("Enter")
    assert card.locator(".tok.pinned").count() == 1
    page.keyboard.press("Escape")
    assert card.locator(".tok.pinned").count() == 0
    page.keyboard.press("Tab")
    assert "tok" not in focused(page)
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Escape")
    assert focused(page).startswith("<summary")
    page.keyboard.press("Enter")
    assert card.get_attribute("open") is None


def test_a_link_of_a_finding_opens_its_trace(look: Look) -> None:
    page = look(replay_page(LEAK, findings=(LEAKED,)))
    page.locator("#findings a").click()
    expect(page.locator("#trace-1 > summary")).to_be_focused()
    assert page.locator("#trace-1 .tok").count() == 10


def test_the_matrix_shows_how_a_prompt_ends(look: Look, audit_report: Report) -> None:
    page = look(audit_report)
    hint = page.locator("#hint")
    assert hint.is_hidden()
    closed = page.get_by_role("button", name="enable_thinking=false, single turn: closed, ending 2")
    closed.hover()
    assert "<think>\\n\\n</think>\\n\\n" in hint.inner_text()
    assert page.locator(".matrix .same").count() == 2
    assert page.locator(".endings .same").get_attribute("data-end") == "2"
    page.mouse.move(0, 0)
    assert hint.is_hidden()
    page.locator(".matrix button").first.focus()
    assert "1 tokens after the marker" in hint.inner_text()
    page.keyboard.press("ArrowRight")
    assert "raise_exception: no [bold]system[/bold] messages" in hint.inner_text()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowDown")
    assert 'aria-label="enable_thinking=true, single turn' in str(page.evaluate("document.activeElement.outerHTML"))
    page.keyboard.press("Escape")
    assert hint.is_hidden()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('.matrix')") is None


def test_it_is_light_or_dark_as_the_system_is_or_as_one_says(look: Look, budget_report: Report) -> None:
    def background(page: Page) -> int:
        """The sum of red, green and blue."""
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in colour.strip("rgb()").split(","))

    light, dark = look(budget_report, color_scheme="light"), look(budget_report, color_scheme="dark")
    assert background(light) > 700
    assert background(dark) < 100
    theme = light.locator("#theme")
    assert theme.inner_text() == "theme: as the system"
    theme.click()
    theme.click()
    assert theme.inner_text() == "theme: dark"
    assert background(light) < 100
    light.reload()
    expect(light.locator("#theme")).to_have_text("theme: dark")
    assert background(light) < 100


def test_paper_is_light_and_everything_is_unfolded_on_it(look: Look, gate_report: Report) -> None:
    page = look(gate_report, color_scheme="dark")
    cards = "details.card:not([open]), section > details:not([open])"
    folded = page.locator(cards).count()
    assert folded > 5
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.locator(cards).count() == 0
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"
    assert page.locator("#theme").is_hidden()
    assert page.pdf().startswith(b"%PDF")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator(cards).count() == folded


def test_traces_are_drawn_on_paper_in_lines_that_fit(look: Look) -> None:
    page = look(replay_page(LEAK, findings=(LEAKED,)))
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    card = page.locator("#trace-1")
    assert card.locator(".tok").count() == 10
    assert card.locator(".inspector").is_hidden()


def test_without_script_the_splits_are_told(look: Look) -> None:
    page = look(replay_page(LEAK, findings=(LEAKED,)), java_script_enabled=False)
    card = page.locator("#trace-1")
    card.locator("> summary").click()
    assert "Two and two." in card.locator(".plain").inner_text()
    assert "It is 4." in card.locator(".plain").inner_text()
    assert page.locator("#theme").is_hidden()


@pytest.mark.parametrize("name", ["audit", "budget", "verify", "gate"])
def test_a_narrow_window_scrolls_down_alone(look: Look, request: pytest.FixtureRequest, name: str) -> None:
    page = look(request.getfixturevalue(f"{name}_report"))
    page.set_viewport_size({"width": 400, "height": 800})
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_a_strip_fits_the_window_and_follows_it(look: Look) -> None:
    page = look(many(1, 200))
    card = page.locator("#trace-1")
    card.locator("> summary").click()
    expect(card.locator(".tok")).to_have_count(200)
    wide = card.locator(".row").count()
    page.set_viewport_size({"width": 400, "height": 800})
    expect(card.locator(".row")).not_to_have_count(wide)
    assert card.locator(".row").count() > 2 * wide
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert card.locator(".tok").count() == 200


def test_hostile_text_stays_text(look: Look) -> None:
    page = look(evil_report())
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    tokens = page.locator("#trace-1 .tok > b").all_text_contents()
    assert tokens == [visible(EVIL), "\\n", "\\n"]
    assert [page.locator("#trace-1 .tok").nth(place).locator(".esc").count() for place in (1, 2)] == [0, 1]
    page.locator("#trace-1 .tok").first.hover()
    assert "</script><script>alert(1)</script>" in page.locator(".inspector").inner_text()
    assert page.locator("img").count() == 0


def test_fifty_long_traces_open_one_by_one(look: Look) -> None:
    page = look(many(50, 4096))
    assert page.locator(".tok").count() == 0
    card = page.locator("#trace-37")
    card.locator("> summary").click()
    expect(card.locator(".tok")).to_have_count(4096)
    assert page.locator(".tok").count() == 4096
    card.locator(".tok").nth(4095).hover()
    assert "token 4096 of 4096" in card.locator(".inspector").inner_text()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".strip .bed").count() == 5  # 20 000 tokens, as many as are drawn unasked


def gate(project: str, file: Path) -> int:
    """The gate of an example, its report in `file`."""
    command = [sys.executable, "-m", "reasonctl", "gate", f"--format=html={file}"]
    return subprocess.run(command, cwd=EXAMPLES / project, capture_output=True, check=False).returncode


def test_the_examples_report_shows_its_five_faults(look: Look, tmp_path: Path) -> None:
    first, again = tmp_path / "first.html", tmp_path / "again.html"
    assert gate("broken", first) == 1
    assert gate("broken", again) == 1
    assert first.read_bytes() == again.read_bytes()
    page = look(first)
    assert page.locator("h1 .verdict").inner_text().split()[-1] == "FAIL"
    errors = page.locator("#findings details.error > summary code").all_inner_texts()
    assert errors == ["BUD301", "FIT101", "RPL410", "SRV201", "SRV208"]
    assert [page.locator(f"nav a[href='#run-{number}']").count() for number in range(1, 5)] == [1, 1, 1, 1]
    assert page.locator(".matrix").count() == 3
    card = page.locator("details.trace", has_text="capital")
    page.get_by_role("link", name="trace capital").click()
    expect(card.locator("> summary")).to_be_focused()
    tokens = "".join(card.locator(".tok > b").all_text_contents())
    assert tokens.endswith("</think>\\n\\nLima.")
    thought = [kind for kind in kinds(card) if kind == "r"]
    assert len(thought) == 47
    card.locator(".tok").nth(len(thought)).hover()
    assert "</think>" in card.locator(".inspector").inner_text()
    assert "marker" in card.locator(".inspector").inner_text()


def test_the_mended_example_passes(look: Look, tmp_path: Path) -> None:
    assert gate("mended", tmp_path / "mended.html") == 0
    page = look(tmp_path / "mended.html")
    assert page.locator("h1 .verdict").inner_text().split()[-1] == "PASS"
    assert page.locator("#findings details.error").count() == 0
