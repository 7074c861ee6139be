"""The HTML report by its structure: what stands where, what is escaped, what it weighs."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonctl.checks.finding import Coverage
from reasonctl.checks.report import DRAWN, Policy, Report, make_report
from reasonctl.reports import html, json_report
from reasonctl.reports.html_tokens import Tokens, encode, strip_json
from reasonctl.reports.markup import el, exact, table
from reasonctl.reports.wording import visible

from .pages import EVIL, LEAK, LEAKED, Node, drawn, evil_report, many, outcome, replay_page, row, strip, tree

REPORTS = ["audit", "passing", "replay", "budget", "recordings", "verify", "servers", "gate"]


@pytest.fixture(params=REPORTS)
def report(request: pytest.FixtureRequest) -> Report:
    made: Report = request.getfixturevalue(f"{request.param}_report")
    return made


def cells(node: Node) -> list[list[str]]:
    return [[one.text for one in line.children if isinstance(one, Node)] for line in node.all("tr")]


def test_every_command_has_a_page_that_is_well_formed_and_the_same_twice(report: Report) -> None:
    page = html.render(report)
    assert page == html.render(report)
    top = tree(page)
    (title,) = top.all("h1")
    assert title.all("span", "verdict")[0].text.split()[1] == report.verdict.upper()
    names = [one.attributes["id"] for one in top.everything() if one.attributes.get("id")]
    assert len(names) == len(set(names))
    for link in top.all("a"):
        assert (link.attributes["href"] or "").removeprefix("#") in names
    rules = {code.text for card in top.all("details", "card") for code in card.all("summary")[0].all("code")}
    assert {finding.rule for finding in report.findings if finding.suppressed is None} <= rules
    assert [line[0] for line in cells(top.by_id("coverage"))[1:]] != []


def test_an_unknown_command_has_its_verdict_findings_and_coverage(replay_report: Report) -> None:
    report = replace(replay_report, command="check-parser", facts={"modes": 3})
    top = tree(html.render(report))
    assert [one.text for one in top.all("h2")] == ["Findings", "What was looked at"]
    empty = make_report("new-thing", target="x", engine={}, facts={}, findings=[], coverage=[], policy=Policy())
    assert tree(html.render(empty)).all("h2") == []


def test_nothing_is_fetched_and_only_the_pages_own_script_and_style_run(audit_report: Report) -> None:
    page = html.render(audit_report)
    top = tree(page)
    (policy,) = [one.attributes["content"] for one in top.all("meta") if one.attributes.get("http-equiv")]
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    for tag in ("script", "style"):
        (own,) = [one.text for one in top.all(tag) if one.attributes.get("type") is None]
        digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    for one in top.everything():
        assert not {"src", "style", "srcset", "action"} & one.attributes.keys()
        assert (one.attributes.get("href") or "#").startswith("#")
        assert not any(name.startswith("on") for name in one.attributes)
    assert "url(" not in page
    assert "@import" not in page


def test_hostile_text_is_text_everywhere() -> None:
    report = evil_report()
    page = html.render(report)
    assert page.encode("utf-8")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029\ud800-\udfff]", page)
    top = tree(page)
    assert [one.attributes.get("type") for one in top.all("script")] == ["application/json", None]
    assert top.all("img") == []
    assert visible(EVIL) in top.by_id("findings").text
    assert top.by_id("suppressed").all("strong")[0].text == visible(EVIL)
    shown = json.loads(top.by_id("drawing").text)["tokens"][0][1]
    assert "".join(shown) == visible(EVIL)


@pytest.mark.parametrize("text", ["a\nb", "a\\nb", "\u202e", "\ud800", "<b>&", "\u200dx", "", "\x1b[0m "])
def test_an_escape_looks_unlike_the_same_characters_written(text: str) -> None:
    made = exact(text)
    top = tree(made)
    assert top.text == visible(text)
    escapes = "".join(one.text for one in top.all("i", "esc"))
    assert escapes == "".join(visible(one) for one in text if visible(one) != one)


def test_elements_take_texts_numbers_and_each_other() -> None:
    made = el(
        "p", "a<b", None, 4, [el("i", "x"), "&"], class_="one two", data_at=3, hidden=True, title=None, open=False
    )
    assert made == '<p class="one two" data-at="3" hidden>a&lt;b4<i>x</i>&amp;</p>'
    assert el("a", href='"><script>') == '<a href="&quot;&gt;&lt;script&gt;"></a>'
    assert el("meta", charset="utf-8") == '<meta charset="utf-8">'
    assert cells(tree(table(("a", "b"), [("1", el("b", 2))]))) == [["a", "b"], ["1", "2"]]


def test_the_matrix_has_a_cell_for_each_prompt_and_each_ending_once(audit_report: Report) -> None:
    top = tree(html.render(audit_report))
    (matrix,) = top.all("table", "matrix")
    head, plain, on, off = cells(matrix)
    assert head == ["request", "single turn", "system", "multi turn", "tool result"]
    assert plain == ["plain", "Oopen1", "!error3", "Oopen1", "–none4"]
    assert on == ["enable_thinking=true", "Oopen1", "not tried", "not tried", "not tried"]
    assert off[1:4] == ["Cclosed2", "not tried", "Cclosed2"]
    endings = [one.text for one in top.all("ol", "endings")[0].all("li")]
    assert endings == [
        "Oopen <think>\\n 1 tokens after the marker",
        "Cclosed <think>\\n\\n</think>\\n\\n",
        "!error raise_exception: no [bold]system[/bold] messages",
        "–none <|im_start|>assistant\\n",
    ]
    cell = matrix.all("button")[0]
    assert cell.attributes["aria-label"] == "plain, single turn: open, ending 1"
    assert cell.attributes["data-end"] == "1"


def test_an_audit_tells_how_parsers_fit_and_what_becomes_of_reasoning(audit_report: Report) -> None:
    top = tree(html.render(audit_report))
    text = top.by_id("run-1").text
    assert "3 other parsers" not in text
    assert "2 other parsers: 1 pass, 1 unsupported" in text
    assert ["deepseek_r1configured", "✕ fail", " 16 of 24"] in [line[:3] for line in cells(top.by_id("run-1"))]
    assert ["reasoning_content", "kept", "dropped"] in cells(top.by_id("run-1"))


def test_findings_stand_by_rule_with_the_rules_own_words(audit_report: Report) -> None:
    top = tree(html.render(audit_report))
    first, *others = top.by_id("findings").all("details", "card")
    assert first.all("summary")[0].text.startswith("errorFIT105content-null")
    assert "open" in first.attributes
    assert all("open" not in card.attributes for card in others)
    assert "fails the run" in first.text
    labels = [one.text for one in first.all("dt")]
    assert [one.text for one in first.all("div", "rule")[0].all("dt")][:3] == ["what", "why", "instead"]
    assert "`" not in first.all("div", "rule")[0].all("dl")[0].text
    assert [one for one in labels if one in ("request", "prompt", "output", "client", "because")] == [
        "request", "prompt", "output", "client", "because",
    ]  # fmt: skip
    assert "suppressed because" in top.by_id("suppressed").text
    assert "never switched off here" in top.by_id("suppressed").text
    assert "TPL002" not in top.by_id("findings").text


def test_coverage_begins_with_what_was_not_evaluated(audit_report: Report) -> None:
    lines = cells(tree(html.render(audit_report)).by_id("coverage"))[1:]
    assert lines == [
        ["budget", "✕ not evaluated", "no --budget"],
        ["template", "✓ examined", ""],
        ["tokenizer", "✓ examined", ""],
        ["server", "– not given", "no --endpoint"],
    ]


def test_budgets_are_bars_of_one_scale(budget_report: Report) -> None:
    (bars,) = tree(html.render(budget_report)).all("table", "bars")
    lines = bars.all("tr")[1:]
    assert len(lines) == 8
    low, omitted = lines[0], lines[1]
    assert low.text.startswith("effort lowmap[low]4096")
    assert low.text.endswith("1024 | 3071 left")
    assert omitted.text.endswith("4095 | 0 left ✕ no answer")
    (drawing,) = low.all("svg")
    assert drawing.attributes["viewbox"] == "0 0 12000 10"
    widths = {one.attributes["class"]: one.attributes["width"] for one in drawing.all("rect")}
    assert widths == {"reasoning": "1024", "content": "3071", "frame": "4096"}
    none = lines[2].all("rect")
    assert [one.attributes["class"] for one in none] == ["open", "frame"]


def test_a_verification_shows_what_was_to_come_where_something_else_came(verify_report: Report) -> None:
    cases = list(verify_report.facts["cases"])
    cases[1] = {**cases[1], "observed": {"thinking_tokens": 64, "forced_end": True}}
    refusal = {"refused": {"status": 400, "text": "no <budget>"}}
    cases.append(
        {**cases[0], "name": "refused: true", "predicted": refusal, "observed": {"refused": None}, "ok": False}
    )
    page = html.render(replace(verify_report, facts={**verify_report.facts, "cases": cases}))
    lines = cells(tree(page).by_id("run-1"))
    by_name = {line[0]: line for line in lines}
    assert by_name["open, budget 0"][3:5] == ["63", "forced"]
    assert by_name["open, budget 64"][3] == "64 predicted 63"
    assert by_name["open, budget 64"][-1] == "✕ differs"
    assert by_name["two at once"][-1] == "✕ lost"
    assert by_name["budget 10000"][-1] == "? open"
    assert by_name["true"] == ["true", "HTTP 400 no <budget>", "taken ", "✕ differs"]


def test_a_gate_shows_each_run_in_a_section(gate_report: Report) -> None:
    top = tree(html.render(gate_report))
    names = [run["name"] for run in gate_report.facts["runs"]]
    assert top.all("h2")[0].text == "5 runs of reasonctl.toml"
    (runs,) = top.all("nav")
    assert [line[1] for line in cells(runs)[1:]] == names
    assert cells(runs)[1][3] == "1 error, 1 warning, 1 suppressed"
    for number, name in enumerate(names, 1):
        assert top.by_id(f"run-{number}").all("h2")[0].text == name
    assert len(top.all("table", "matrix")) == 3
    assert [one.text for one in top.by_id("run-2").all("h3")] == ["chat", "chat"]
    refused = dict(gate_report.facts["runs"][0]) | {"error": "models/qwen3: no such folder", "facts": {}}
    page = html.render(replace(gate_report, facts={**gate_report.facts, "runs": [refused]}))
    assert tree(page).by_id("run-1").text == f"{names[0]}models/qwen3: no such folder"


def test_a_trace_has_a_row_for_each_outcome_and_a_bar_of_it() -> None:
    top = tree(html.render(replay_page(LEAK, findings=(LEAKED,))))
    card = top.by_id("trace-1")
    assert card.all("summary")[0].text == "errort1poolside_v1 leaves </think> in content"
    lines = cells(card.all("table", "outcomes")[0])[1:]
    assert [line[0] for line in lines] == ["1", "2", "3", ""]
    assert [line[1] for line in lines] == ["recorded poolside_v1 ", "qwen3 ", "ernie45 in full", "k2_horizon "]
    assert lines[0][3:] == ["9 content 1 marker ", "✕ RPL403 marker leaked "]
    assert lines[2][3] == "4 reasoning 2 content 3 marker 1 lost "
    assert lines[3][2] == "raised RuntimeError"
    leaked, right = card.all("table", "outcomes")[0].all("svg")[:2]
    parts = {one.attributes["class"]: one.attributes["d"] for one in right.all("path")}
    assert parts == {"reasoning": "M0 0h4v4h-4z", "marker": "M4 0h1v8h-1zM9 0h1v8h-1z", "content": "M5 4h4v4h-4z"}
    assert [one.attributes["class"] for one in leaked.all("path")] == ["content", "marker", "leak"]
    (link,) = top.by_id("findings").all("a")
    assert link.attributes["href"] == "#trace-1"
    assert "reasoningTwo and two.contentIt is 4." in card.all("div", "plain")[0].text
    assert card.all("div", "strip")[0].attributes["data-strip"] == "0"


def test_traces_with_findings_come_first_and_what_is_not_drawn_is_counted() -> None:
    fine = drawn("fine", strip(["a"], [row({"qwen3": []}, [("content", 1)])]), outcome("qwen3"))
    unread = drawn("unread", None, outcome("qwen3", "unsupported", reason="ids alone"))
    top = tree(html.render(replay_page(fine, unread, LEAK, findings=(LEAKED,), number=7)))
    cards = top.all("details", "trace")
    assert [card.all("summary")[0].all("strong")[0].text for card in cards] == ["t1", "fine", "unread"]
    assert "4 more traces" in top.by_id("run-1").text
    assert "ids alone" in cards[2].text
    drawing = json.loads(top.by_id("drawing").text)
    places = [card.all("div", "strip")[0].attributes["data-strip"] for card in cards[:2]]
    assert [decoded(drawing, int(place or ""))[0] for place in places] == [LEAK["strip"]["texts"], ["a"]]


def test_a_trace_that_two_runs_replay_has_a_card_in_each(gate_report: Report) -> None:
    facts = replay_page(LEAK).facts | {"inputs": [{"path": "capture.jsonl", "format": "trace", "traces": 1}]}
    facts |= {"results": [{"trace": "t1", "path": "capture.jsonl", "parser": "qwen3"}]}
    runs = [
        {"name": name, "command": "replay", "target": "x", "verdict": "pass", "summary": {}, "facts": dict(facts)}
        for name in ("replay a", "replay b")
    ]
    report = replace(gate_report, facts={"config": "reasonctl.toml", "runs": runs}, findings=(LEAKED,), coverage=())
    top = tree(html.render(report))
    cards = top.all("details", "trace")
    assert [card.attributes["id"] for card in cards] == ["trace-1", "trace-2"]
    assert [card.all("div", "strip")[0].attributes["data-strip"] for card in cards] == ["0", "1"]
    assert [card.all("summary")[0].all("span", "chip")[0].text for card in cards] == ["error", "leak"]


def decoded(drawing: dict[str, Any], place: int) -> tuple[list[str], list[int]]:
    """A strip's texts and deltas, read as the page's script reads them."""
    one = drawing["strips"][place]
    texts = []
    for number in numbers(one["t"]):
        shown = drawing["tokens"][number][1]
        texts.append(shown if isinstance(shown, str) else "".join(shown).replace("\\n", "\n"))
    runs = numbers(one["d"])
    return texts, [size for count, size in zip(runs[::2], runs[1::2], strict=True) for _ in range(count)]


def numbers(text: str) -> list[int]:
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    found, value, shift = [], 0, 0
    for char in text:
        digit = digits.index(char)
        value += (digit & 31) << shift
        shift += 5
        if digit < 32:
            found.append(value)
            value = shift = 0
    return found


@given(st.lists(st.integers(0, 1 << 40)))
def test_numbers_are_written_as_in_source_maps(made: list[int]) -> None:
    assert numbers(encode(made)) == made


def test_a_strip_is_written_with_its_tokens_deltas_and_rows() -> None:
    tokens = Tokens([LEAK["strip"]])
    made = strip_json(tokens, LEAK["strip"])
    drawing = {"tokens": tokens.as_json(), "strips": [made]}
    assert decoded(drawing, 0) == (LEAK["strip"]["texts"], LEAK["strip"]["deltas"])
    assert made["r"] == [["c9m1", {}, [[4, 1]]], ["r4m1c4m1", {}, []], ["r4m2x1c2m1", {}, []]]
    assert drawing["tokens"][numbers(made["t"])[-1]] == [1009, "", "<|im_end|>"]
    assert drawing["tokens"][numbers(made["t"])[5]] == [1005, ["", "\\n\\n"]]


def test_fifty_long_traces_weigh_less_than_two_megabytes() -> None:
    report = many(50, 4096)
    page = html.render(report)
    assert len(page.encode("utf-8")) < 2_000_000
    drawing = json.loads(tree(page).by_id("drawing").text)
    texts, deltas = decoded(drawing, 0)
    assert len(texts) == sum(deltas) == 4096


def test_a_drawing_is_no_part_of_the_json_report(gate_report: Report) -> None:
    report = replay_page(LEAK)
    assert DRAWN not in json.loads(json_report.render(report))["facts"]
    run = {"name": "replay", "command": "replay", "verdict": "pass", "facts": dict(report.facts)}
    gate = replace(gate_report, facts={"config": "reasonctl.toml", "runs": [run, {"name": "x", "error": "no"}]})
    told = json.loads(json_report.render(gate))["facts"]["runs"]
    assert told[0]["facts"] == {"traces": 1, "tokenizer": "model"}
    assert told[1] == {"name": "x", "error": "no"}


def test_an_incomplete_report_says_so(audit_report: Report) -> None:
    report = replace(audit_report, findings=(), coverage=(Coverage("template", "partial", "half of it"),))
    top = tree(html.render(report))
    assert top.all("span", "verdict")[0].text.split()[1] == "INCOMPLETE"
    assert "◐ in part" in top.by_id("coverage").text


def test_the_pages_files_are_what_the_package_brings() -> None:
    folder = Path(html.__file__).parent
    assert "</" not in (folder / "report.css").read_text("utf-8")
    assert "</script" not in (folder / "report.js").read_text("utf-8")


def bench_case(name: str, mode: str, ok: bool | None, wrong: str | None = None) -> dict[str, Any]:
    return {"name": name, "mode": mode, "weighs": True, "ok": ok, "wrong": wrong}


def test_a_test_bench_is_a_table_of_its_cases(replay_report: Report) -> None:
    smallest = {"output": "<think>\n", "wrong": "another split"}
    facts = {
        "name": "mine",
        "file": "mine.py",
        "markers": {"start": "<think>", "end": "</think>"},
        "tokenizer": "table",
        "cases": [
            bench_case("empty-thought", "full", True),
            bench_case("empty-thought", "full", False, "split-wrong"),
            bench_case("empty-thought", "stream", None),
            bench_case("counts", "ids", True),
            {**bench_case("unread", "full", False), "weighs": False},
        ],
        "generated": {
            "examples": 1200,
            "well_formed": 1100,
            "invariants": {"raises-nothing": {"broken": 0}, "split-is-right": {"broken": 8, "smallest": smallest}},
        },
        "comparison": {"base": "0.32.0", "other": "0.33.0", "fixed": ["a"], "broke": [], "left": ["b", "c"]},
    }
    test = 'def test_it():\n    assert "<b>"\n'
    finding = replace(LEAKED, rule="PLG607", slug="plugin-stream-differs", evidence={"pytest": test})
    report = replace(replay_report, command="check-parser", facts=facts, findings=(finding,))
    top = tree(html.render(report))
    lines = cells(top.by_id("run-1"))
    assert ["empty thought", "✕ wrong (1 of 2) split-wrong", "✕ wrong lost", ""] in lines
    assert ["counts", "", "", "✓ ok"] in lines
    assert not any(line[0] == "unread" for line in lines)
    assert ["split is right", "✕ 8 break it", "<think>\\n another split"] in lines
    assert ["fixed", "1 case", "a"] in lines
    assert [one.text for one in top.by_id("run-1").all("h4")] == [
        "1,200 generated outputs, 1,100 of them well-formed",
        "0.33.0 against 0.32.0",
    ]
    assert top.by_id("findings").all("pre")[0].text == test
