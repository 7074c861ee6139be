"""The text report: what stands in it, that no input styles or breaks it, and what colour and width change."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from reasonctl.checks.finding import Confidence, Coverage, Finding
from reasonctl.checks.report import Policy, Report
from reasonctl.reports import html, text
from reasonctl.reports.wording import quoted, shortened, visible

FORBIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def squeezed(report: Report, **options: object) -> str:
    """The report with runs of blanks as one: what is said, not how it is aligned."""
    return re.sub(r"[ ]+", " ", text.render(report, **options))  # type: ignore[arg-type]


def test_audit_says_what_was_looked_at(audit_report: Report) -> None:
    said = squeezed(audit_report)
    lines = said.splitlines()
    assert lines[0] == "FAIL models/qwen3: deepseek_r1 does not fit (content-null)"
    assert " template chat_template.jinja 41d37c0a, reads enable_thinking" in lines
    assert ' plain; enable_thinking=true open "<think>\\n" +1 after the marker' in lines
    assert ' enable_thinking=false closed "<think>\\n\\n</think>\\n\\n"' in lines
    assert ' tool_result: plain none "<|im_start|>assistant\\n"' in lines
    assert " multi_turn as above" in lines
    assert " reasoning_content, inline: kept in a tool loop, dropped on the next user turn" in lines
    assert " paste --reasoning-parser qwen3" in lines


def test_audit_ranks_the_judged_parser_first(audit_report: Report) -> None:
    said = squeezed(audit_report)
    order = [
        said.index(word) for word in ("deepseek_r1 (configured) fail 16 of 24", "qwen3 (recommended) pass 24 of 24")
    ]
    assert order == sorted(order)
    assert "1 more unsupported muse (--verbose)" in said
    assert "no built-in model yet" in squeezed(audit_report, verbose=True)


def test_finding_shows_place_evidence_and_hint(audit_report: Report) -> None:
    lines = squeezed(audit_report).splitlines()
    start = lines.index("error FIT105 content-null: turn thinking off and the answer comes back as reasoning")
    assert lines[start + 1 : start + 11] == [
        " at deploy/my qwen.sh:3:14 parser deepseek_r1, enable_thinking=false",
        ' request {"chat_template_kwargs": {"enable_thinking": false}}',
        ' prompt "<|im_start|>assistant\\n<think>\\n\\n</think>\\n\\n"',
        ' output "It is 4."',
        ' client reasoning "It is 4."',
        " content null",
        " because the template closes thinking in the prompt; deepseek_r1 files unmarked output as",
        " reasoning",
        " also FIT107",
        " instead --reasoning-parser qwen3",
    ]


def test_evidence_of_a_plain_request_and_of_several(audit_report: Report) -> None:
    cells = [{"conversation": "multi_turn", "variant": {"thinking": on}} for on in (True, False)]
    evidence = {"request": {}, "conversation": "multi_turn", "cells": cells, "limit": 3, "gone": None}
    report = replace(audit_report, findings=(replace(audit_report.findings[0], evidence=evidence),))
    lines = squeezed(report).splitlines()
    start = lines.index(" request a plain one")
    assert lines[start + 1 : start + 4] == [
        " conversation multi_turn",
        " seen with thinking=true, multi_turn; thinking=false, multi_turn",
        " limit 3",
    ]
    assert "gone" not in squeezed(report)


def test_failures_as_evidence_are_laid_out(audit_report: Report) -> None:
    failure = audit_report.facts["parser"]["candidates"][2]["failures"][0]
    report = replace(audit_report, findings=(replace(audit_report.findings[0], evidence={"shown": failure}),))
    lines = squeezed(report).splitlines()
    start = lines.index(" request enable_thinking=false, single_turn")
    assert lines[start + 1 : start + 6] == [
        ' output "It is 4."',
        " expected reasoning null",
        ' content "It is 4."',
        ' got reasoning "It is 4."',
        " content null",
    ]


def test_what_clients_get_from_the_judged_parser(audit_report: Report) -> None:
    gets = "content NULL, the answer filed as reasoning"
    rows = [
        {"conversation": "single_turn", "variant": {}, "state": "open", "gets": "content", "ok": True, "rule": None},
        {"conversation": "tools", "variant": {}, "state": "open", "gets": gets, "ok": False, "rule": "FIT105"},
    ]
    rows.append({**rows[0], "variant": {"thinking": True}})
    parser = {**audit_report.facts["parser"], "requests": rows}
    lines = squeezed(replace(audit_report, facts={**audit_report.facts, "parser": parser})).splitlines()
    start = lines.index(" with deepseek_r1 prompt ends the client gets")
    assert lines[start + 1] == " plain; thinking=true open content ok"
    assert lines[start + 2] == f" tools: plain open {gets} FIT105"


def test_notes_and_suppressed_findings_only_when_verbose(audit_report: Report) -> None:
    brief, full = squeezed(audit_report), squeezed(audit_report, verbose=True)
    assert "TPL001" not in brief
    assert "TPL002" not in brief
    assert "note TPL001 prompt-opens-thinking" in full
    assert "suppressed never switched off here" in full
    assert "confidence medium" in brief
    assert "not given server: no --endpoint" in full


def test_last_line_is_the_verdict(audit_report: Report, passing_report: Report, budget_report: Report) -> None:
    def last(report: Report, **options: object) -> str:
        return squeezed(report, **options).splitlines()[-1]

    assert (
        last(audit_report) == "FAIL 1 error, 1 warning, 1 note (--verbose), 1 suppressed; not fully evaluated: budget"
    )
    assert last(passing_report) == "PASS 0 errors, 0 warnings, 0 notes"
    assert last(budget_report) == "PASS 0 errors, 1 warning, 0 notes; --fail-on warning would fail"
    assert last(replace(audit_report, policy=Policy(fail_on="never"))).startswith("INCOMPLETE 1 error")
    bent = squeezed(replace(audit_report, policy=Policy(exit_zero=True))).splitlines()
    assert bent[-2:] == [
        "not fully evaluated: budget; exit 0 by --exit-zero",
        "FAIL 1 error, 1 warning, 1 note (--verbose), 1 suppressed",
    ]


@pytest.mark.parametrize(("confidence", "said"), [("low", True), ("medium", False)])
def test_an_error_that_is_too_unsure_to_count_is_told_with_the_verdict(
    audit_report: Report, confidence: Confidence, said: bool
) -> None:
    unsure = replace(audit_report.findings[0], severity="error", confidence=confidence)
    report = replace(audit_report, findings=(unsure,), coverage=())
    assert text.render(report).endswith("; --min-confidence low would fail\n") is said
    assert report.verdict == ("pass" if said else "fail")


def test_the_verdict_fits_the_page_and_stays_the_last_line(audit_report: Report) -> None:
    """What a long verdict says besides its tally stands before it, each surface once."""
    rows = [Coverage(f"surface-{number % 7}", "skipped", "why") for number in range(14)]
    lines = text.render(replace(audit_report, coverage=tuple(rows)), width=80).splitlines()
    assert lines[-1] == "FAIL  1 error, 1 warning, 1 note (--verbose), 1 suppressed"
    assert lines[-3:-1] == [
        "not fully evaluated: surface-0, surface-1, surface-2, surface-3, surface-4,",
        "surface-5, surface-6",
    ]


def test_quiet_is_the_verdict_alone(audit_report: Report) -> None:
    assert squeezed(audit_report, quiet=True).splitlines() == [
        "FAIL 1 error, 1 warning, 1 note, 1 suppressed; not fully evaluated: budget"
    ]


def test_reasoning_and_content_differ_by_colour(replay_report: Report) -> None:
    coloured = text.render(replay_report, colour=True)
    codes = {
        field: set(re.findall(rf"(\x1b\[[0-9;]*m)\"{said}", coloured))
        for field, said in (("reasoning", 'Two and two."'), ("content", 'It is 4."'))
    }
    assert codes == {"reasoning": {"\x1b[35m"}, "content": {"\x1b[32m"}}


def test_colour_changes_nothing_that_is_said(
    audit_report: Report, replay_report: Report, budget_report: Report
) -> None:
    for report in (audit_report, replay_report, budget_report):
        coloured = text.render(report, colour=True, verbose=True)
        assert ANSI.search(coloured)
        stripped = [line.rstrip() for line in ANSI.sub("", coloured).splitlines()]
        assert stripped == text.render(report, verbose=True).splitlines()


def test_text_of_a_trace_neither_colours_nor_moves_the_terminal(replay_report: Report) -> None:
    said = text.render(replay_report)
    assert "\x1b" not in said
    assert '"[bold red]\\x1b[31mred\\x1b[0m"' in said
    assert '"left\\u202eright\\nnext"' in said


def test_budgets_are_a_table_of_thinking_against_answer(budget_report: Report) -> None:
    lines = squeezed(budget_report, width=130).splitlines()
    assert lines[0] == "PASS slimserve thinking budget, map"
    assert " budgets low=1024, medium=4096" in lines
    assert " the request says cutoff comes from max_tokens 4096 max_tokens 12000" in lines
    assert " effort low map[low] 1024 | 3071 left 1024 | 10975 left" in lines
    assert " no effort map[medium] 4095 | 0 left !! 4096 | 7903 left" in lines
    assert " effort none no cutoff no cutoff no cutoff" in lines
    assert " thinking_token_budget 6000, effort low the request 4095 | 0 left !! 6000 | 5999 left" in lines


@pytest.mark.parametrize("width", [60, 72, 80, 110])
def test_no_name_in_the_budget_table_is_broken_in_two(width: int, budget_report: Report) -> None:
    lines = text.render(budget_report, width=width).splitlines()
    words = {word for line in lines for word in line.split()}
    assert "budget" in words or "thinking_token_budget" in words
    assert not [word for word in words if word != "thinking_token_budget" and word.startswith("thinking_t")]


def test_budgets_beside_what_the_prompt_says(budget_report: Report) -> None:
    efforts = [
        {"effort": "low", "state": "open", "refused": None},
        {"effort": None, "state": "open", "refused": None},
        {"effort": "none", "state": "closed", "refused": None},
    ]
    prompts = {"model": "m", "template": "t.jinja", "reads_effort": True, "default_effort": "xhigh", "efforts": efforts}

    def lines(**prompt: object) -> list[str]:
        facts = {**budget_report.facts, "prompts": {**prompts, **prompt}, "answer_reserve": 8000}
        return squeezed(replace(budget_report, facts=facts), width=130).splitlines()

    said = lines()
    assert " template t.jinja of m" in said
    assert " the request says cutoff comes from prompt says max_tokens 4096 max_tokens 12000" in said
    assert " effort low map[low] low 1024 | 3071 left ! 1024 | 10975 left" in said
    assert " no effort map[medium] xhigh 4095 | 0 left !! 4096 | 7903 left !" in said
    assert " effort none no cutoff off no cutoff no cutoff" in said
    assert " effort low map[low] no effort read 1024 | 3071 left ! 1024 | 10975 left" in lines(reads_effort=False)
    refused = [{**efforts[0], "refused": "raise_exception"}, *efforts[1:]]
    assert " effort low map[low] refused !! 1024 | 3071 left ! 1024 | 10975 left" in lines(efforts=refused)


def test_a_budget_that_stops_the_server(budget_report: Report) -> None:
    location = {"path": "b.json", "line": 2, "column": 5}
    facts = {
        **budget_report.facts,
        "resolutions": [],
        "path": "b.json",
        "location": location,
        "where": "the map itself",
    }
    lines = squeezed(replace(budget_report, facts=facts)).splitlines()
    assert " the server would not start with this: no request gets anything" in lines
    assert " read b.json:2:5, the map itself" in lines


def test_requests_that_get_no_budget_are_listed(budget_report: Report) -> None:
    asked = {"endpoint": "responses", "effort": "low", "request_budget": 64, "max_tokens": 9, "resolutions": []}
    requests = [
        {**asked, "request": "#1", "standing": "granted", "location": None},
        {**asked, "request": "#2", "standing": "ignored", "location": {"path": "r.jsonl", "line": 2, "column": 1}},
    ]
    said = squeezed(replace(budget_report, facts={**budget_report.facts, "requests": requests}))
    assert " ignored #2 (r.jsonl:2), responses: thinking_token_budget 64, effort low" in said.splitlines()
    assert "#1" not in said


@pytest.mark.parametrize("width", [40, 60, 80, 110])
def test_fits_the_terminal(width: int, audit_report: Report, replay_report: Report, budget_report: Report) -> None:
    for report in (audit_report, replay_report, budget_report):
        *lines, _verdict = text.render(report, width=width, verbose=True).splitlines()
        paste = [line for line in lines if line.lstrip().startswith("--default-chat-template-kwargs")]
        assert max(cell_len(line) for line in lines if line not in paste) <= width
        assert all(line.strip().endswith("'{\"enable_thinking\": true}'") for line in paste)


def test_many_findings_of_one_rule_are_counted(audit_report: Report) -> None:
    error = audit_report.findings[0]
    many = tuple(replace(error, subject={"trace": f"t{index}"}) for index in range(30))
    report = replace(audit_report, findings=many)
    assert squeezed(report).count("error FIT105") == 4
    assert "... and 26 more FIT105 (--verbose)" in squeezed(report)
    assert squeezed(report, verbose=True).count("error FIT105") == 30


def test_several_servers_are_told_apart(audit_report: Report) -> None:
    facts = audit_report.facts
    servers = [{**facts, "name": "a.sh"}, {**facts, "name": "b.sh"}]
    said = squeezed(replace(audit_report, facts={"servers": servers}))
    assert "FAIL a.sh: deepseek_r1 does not fit" in said
    assert "FAIL b.sh: deepseek_r1 does not fit" in said


def test_each_of_several_servers_is_judged_as_its_own_release(audit_report: Report) -> None:
    def server(name: str, target: str) -> dict[str, object]:
        return {**audit_report.facts, "name": name, "location": {}, "target": target}

    two = [server("a", "vllm==0.30.0"), server("b", "vllm==0.22.1")]
    said = squeezed(replace(audit_report, facts={"servers": two}))
    assert re.findall(r"judged as (vllm==[0-9.]+)", said) == ["vllm==0.30.0", "vllm==0.22.1"]
    page = html.render(replace(audit_report, facts={"servers": two}))
    assert "judged as vllm==0.30.0, vllm==0.22.1, with" in page


def test_command_without_facts_still_reports(audit_report: Report) -> None:
    said = squeezed(replace(audit_report, command="new", facts={}))
    assert said.startswith("error FIT105 content-null:")


@given(st.text(st.characters(exclude_categories=()), max_size=60))
def test_nothing_unprintable_gets_through(value: str) -> None:
    finding = Finding(
        "FIT105", "content-null", "error", "high", value, value, evidence={"output": value, value: [value]}
    )
    report = Report("new", "vllm", {}, {}, [finding], [])
    shown = text.render(report).replace("\n", "")
    assert {unicodedata.category(char) for char in shown if char not in "\u200c\u200d"} & FORBIDDEN == set()


@given(st.text(), st.integers(3, 40))
def test_quoting_stays_within_its_limit(value: str, limit: int) -> None:
    shown = quoted(value, limit)
    assert len(shown) <= limit + 2
    assert "\n" not in shown
    assert len(visible(value)) > limit or shown == f'"{visible(value)}"'


def test_shortening_keeps_head_and_tail() -> None:
    assert shortened("abcdefghijklmnop", 9) == "abcdef…op"
    assert quoted(None) == "null"
    assert visible("a\tb\\n 👩\u200d💻 \ud800") == "a\\tb\\n 👩\u200d💻 \\ud800"
