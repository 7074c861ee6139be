"""The text report of a replay: the story of a failing trace, who explains it, and what many traces have in common."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from reasonctl.checks.finding import Finding
from reasonctl.checks.report import Report
from reasonctl.reports import text
from reasonctl.reports.text_rates import names_of, rate

LEAK = {"reasoning": None, "content": "Two and two.</think>It is 4."}
RIGHT = {"reasoning": "Two and two.", "content": "It is 4."}
FLAG = "--default-chat-template-kwargs '{\"enable_thinking\": true}'"
BODY = 'extra_body={"chat_template_kwargs": {"enable_thinking": true}}'


def squeezed(report: Report, **options: object) -> str:
    """The report with runs of blanks as one: what is said, not how it is aligned."""
    return re.sub(r"[ ]+", " ", text.render(report, **options))  # type: ignore[arg-type]


def lines_of(report: Report, **options: object) -> list[str]:
    return squeezed(report, **options).splitlines()


def with_facts(report: Report, **more: Any) -> Report:
    return replace(report, facts={**report.facts, **more})


def failing(report: Report, *mends: dict[str, str]) -> Report:
    """The report with its first trace as a failure of its parser."""

    def row(served: bool, change: dict[str, Any] | None, modes: list[str], zero: bool) -> dict[str, Any]:
        told = {"parser": "poolside_v1", "served": served, "change": change, "modes": modes}
        return told | {"as_recorded": served, "reasoning_tokens_zero": zero}

    comparison = {
        "modes": ["full", "token", "holdback:12"],
        "rows": [
            row(True, None, ["leak", "leak", "leak"], False),
            row(False, {"enable_thinking": True}, ["ok", "ok", "leak"], True),
        ],
        "do_not_explain_it": 3,
        "not_run": 1,
        "expected": RIGHT,
    }
    (finding,) = report.findings
    finding = replace(finding, evidence={**finding.evidence, "mends": list(mends), "every_step_run": False})
    told = with_facts(report, comparisons={"t1": comparison}, streams={"t1": 41})
    return replace(told, findings=[finding])


def test_splits_scores_and_the_explanation(replay_report: Report) -> None:
    lines = lines_of(replay_report)
    assert lines[0] == "FAIL 2 traces, poolside_v1, deepseek_r1, qwen3, muse"
    assert " deepseek_r1 2 1 - 1 - -" in lines
    t1 = lines[lines.index(" t1 line 1") + 1 : lines.index(" t2 line 2")]
    assert t1 == [
        " explained by qwen3, mimo: every check passes",
        " qwen3, mimo ok: 12 reasoning tokens in usage",
        ' reasoning "Two and two."',
        ' content "It is 4."',
        " poolside_v1 suspect: marker leaked; as recorded; 12 reasoning tokens in usage",
        " reasoning null",
        ' content "Two and two.</think>It is 4."',
        " deepseek_r1 ok: 12 reasoning tokens in usage",
        " in full, token by token:",
        ' reasoning "Two and two."',
        ' content "It is 4."',
        " 3 tokens a delta:",
        " reasoning null",
        ' content "Two and two.</think>It is 4."',
        " not run muse: no built-in model yet",
        "",
        " cause FIT113 default-disagrees confidence: high, every step was run",
        " 1 template a plain request ends in <think>",
        " 2 parser poolside_v1 stays off unless asked",
        "",
        " error RPL403 replay-marker-leak: </think> stands in content",
        f" instead {FLAG}",
        "",
    ]
    assert " deepseek_r1 error: RuntimeError: no token; 12 reasoning tokens in usage" in lines
    assert lines[-4:] == ["", "looked at trace, tokenizer", "only in part tokenizer: assumed; give --model", lines[-1]]


def test_a_failing_trace_is_told_as_a_story(replay_report: Report) -> None:
    report = failing(replay_report, {"side": "client", "change": "extra_body={}", "replayed": "splits right"})
    lines = lines_of(report)
    t1 = lines[lines.index(" t1 line 1, 41 deltas") + 1 : lines.index(" t2 line 2")]
    assert t1 == [
        " poolside_v1 gives reasoning null",
        ' content "Two and two.</think>It is 4." marker leaked',
        ' it should be reasoning "Two and two."',
        ' content "It is 4."',
        "",
        " cause FIT113 default-disagrees confidence: high, not every step could be run",
        " 1 template a plain request ends in <think>",
        " 2 parser poolside_v1 stays off unless asked",
        "",
        " fix client extra_body={} replayed: splits right",
        "",
        " on this output whole token held 12",
        " poolside_v1 as served leak leak leak = recorded",
        " poolside_v1 enable_thinking=true ok ok leak usage says 0",
        " 3 more do not explain it, 1 cannot be run here (--parser all)",
        " usage says 0: the server would report 0 reasoning tokens",
        " held 12: text comes 12 characters behind its ids, as with stop strings",
        "",
        " error RPL403 replay-marker-leak: </think> stands in content",
        f" instead {FLAG}",
        "",
    ]


def test_modes_are_told_in_words_where_their_columns_do_not_fit(replay_report: Report) -> None:
    lines = [line.strip() for line in text.render(failing(replay_report), width=60).splitlines()]
    at = lines.index("on this output")
    assert lines[at + 1 : at + 5] == [
        "poolside_v1  as served  = recorded",
        "leak in every mode",
        "poolside_v1  enable_thinking=true  usage says 0",
        "ok: whole, token; leak: held 12",
    ]


@pytest.mark.parametrize("width", [40, 50, 60, 70, 79, 80, 100, 110, 200])
def test_what_is_to_be_pasted_is_never_folded(width: int, replay_report: Report) -> None:
    mends = [
        {"side": side, "change": change, "replayed": "splits right but in larger deltas"}
        for side, change in (("server", FLAG), ("server", "--reasoning-parser qwen3"), ("client", BODY))
    ]
    for report in (failing(replay_report, *mends), replay_report):
        said = text.render(report, width=width)
        for change in (FLAG, BODY, "--reasoning-parser qwen3") if report is not replay_report else (FLAG,):
            (line,) = [line for line in said.splitlines() if change in line]
            assert len(line) <= width or line.strip() == change


def test_the_streamed_split_is_not_told_twice(replay_report: Report) -> None:
    """The client got the stream; what is told besides is what it would have got in full."""
    report = failing(replay_report)
    (finding,) = report.findings
    finding = replace(finding, evidence={**finding.evidence, "streamed": LEAK})
    row = {**report.facts["results"][0], "full": RIGHT, "matches_recorded": True}
    served = with_facts(report, results=[row], recorded={"t1": {**LEAK, "finish_reason": "stop"}})
    lines = lines_of(replace(served, findings=[finding]))
    assert [line for line in lines if line.startswith((" the client got", " in full", " streamed"))] == [
        " the client got reasoning null",
        ' in full reasoning "Two and two."',
    ]


def test_each_split_has_its_own_fault(replay_report: Report) -> None:
    """What the client got is right here: the marker leaks in larger deltas alone."""
    report = failing(replay_report)
    comparison = {**report.facts["comparisons"]["t1"]}
    comparison["modes"] = ["full", "3"]
    comparison["rows"] = [{**comparison["rows"][0], "modes": ["ok", "leak"]}]
    (finding,) = report.findings
    finding = replace(finding, evidence={**finding.evidence, "streamed": LEAK, "chunking": "3"})
    row = {**report.facts["results"][0], "full": RIGHT, "matches_recorded": True}
    told = with_facts(report, results=[row], recorded={"t1": RIGHT}, comparisons={"t1": comparison}, traces=1)
    lines = lines_of(replace(told, findings=[finding]))
    at = lines.index(' the client got reasoning "Two and two."')
    assert lines[at : at + 5] == [
        ' the client got reasoning "Two and two."',
        ' content "It is 4."',
        " 3 tokens a delta reasoning null",
        ' content "Two and two.</think>It is 4." marker leaked',
        " it should be what the client got",
    ]


def test_a_hint_and_a_doubt_that_several_findings_share_are_told_once(replay_report: Report) -> None:
    def finding(rule: str, hint: str) -> Finding:
        where = {"trace": "t1", "parser": "poolside_v1"}
        return Finding(rule, "slug", "error", "medium", f"message of {rule}", hint, subject=where)

    long = "--reasoning-parser qwen3 splits right (replayed)"
    found = [finding("RPL401", long), finding("RPL403", long), finding("RPL408", "--reasoning-parser qwen3")]
    row = {**replay_report.facts["results"][0], "tokenizer": "assumed"}
    report = replace(with_facts(replay_report, results=[row], traces=1), findings=found)
    lines = lines_of(report)
    at = lines.index(" error RPL401 slug: message of RPL401")
    assert lines[at : at + 5] == [
        " error RPL401 slug: message of RPL401",
        " error RPL403 slug: message of RPL403",
        f" instead {long}",
        " error RPL408 slug: message of RPL408",
        " confidence medium: the tokenizer is assumed",
    ]


def test_mends_are_those_of_the_finding_whose_cause_is_told(replay_report: Report) -> None:
    """Another finding's mend is its own hint: it does not follow from this cause."""
    where = {"trace": "t1", "parser": "poolside_v1"}
    other = [{"side": "server", "change": "--reasoning-parser qwen3", "replayed": "splits right"}]
    own = [{"side": "client", "change": "extra_body={}", "replayed": "splits right"}]
    chain = [["request", "no thinking budget"]]
    hint = "--reasoning-parser qwen3 (replayed: splits right)"
    found = [
        Finding("RPL402", "slug", "warning", "high", "deltas", hint, subject=where, evidence={"mends": other}),
        Finding(
            "RPL411",
            "slug",
            "warning",
            "high",
            "cut",
            "extra_body={} (replayed: splits right)",
            cause="FIT109",
            subject=where,
            evidence={"mends": own, "chain": chain},
        ),
    ]
    row = replay_report.facts["results"][0]
    lines = lines_of(replace(with_facts(replay_report, results=[row], traces=1), findings=found))
    at = lines.index(" fix client extra_body={} replayed: splits right")
    assert " or server --reasoning-parser qwen3 replayed: splits right" not in lines
    assert lines[at + 1 : at + 5] == [
        "",
        " warning RPL402 slug: deltas",
        f" instead {hint}",
        " warning RPL411 slug: cut",
    ]


def test_a_split_as_recorded_is_not_repeated(replay_report: Report) -> None:
    row = replay_report.facts["results"][2]
    spaced = {**row, "parser": "mimo", "full": {**RIGHT, "content": "\n\nIt is 4."}, "stream": []}
    report = with_facts(
        replay_report, results=[row, spaced], recorded={"t1": {**RIGHT, "finish_reason": "stop"}}, traces=1
    )
    lines = lines_of(report)
    assert lines.count(' reasoning "Two and two."') == 0
    assert ' recorded reasoning "Two and two."' in lines
    assert " just what was recorded" in lines
    assert " what was recorded, but for white space at the ends" in lines


def test_what_explains_it_is_told_even_where_nothing_does(replay_report: Report) -> None:
    best = [{"trace": "t1", "parsers": [], "why": "no parser passes every check"}]
    assert " explained by no parser: no parser passes every check" in lines_of(with_facts(replay_report, best=best))


RULES = {
    "RPL403": {"slug": "replay-marker-leak", "severity": "error", "traces": 37, "causes": {"FIT113": 36}},
    "RPL412": {"slug": "lossy-trace", "severity": "info", "traces": 1204, "causes": {}},
}


def test_rates_of_many_traces(replay_report: Report) -> None:
    scores = {"qwen3": {"ok": 1167, "suspect": 37, "error": 0, "unsupported": 0, "as recorded": 1204}}
    outcomes = {"error": 37, "warning": 1, "lost": 0}
    report = with_facts(replay_report, traces=1204, scores=scores, rules=RULES, outcomes=outcomes)
    lines = lines_of(report)
    assert " 37 of 1204 traces (3%) have an error, 1 (<1%) a warning and no error; the other 1166 are clean" in lines
    at = lines.index(" parser ok suspect as recorded")
    assert lines[at + 1] == " qwen3 1167 (97%) 37 (3%) 1204 (100%)"
    assert lines.index(" finding traces cause") > at
    assert " error RPL403 replay-marker-leak 37 (3%) FIT113 36" in lines
    assert not any("RPL412" in line for line in lines)
    assert " 1202 more traces, 37 with something wrong (--verbose)" in lines
    assert " note RPL412 lossy-trace 1204 (100%)" in squeezed(report, verbose=True)


@pytest.mark.parametrize(
    ("traces", "outcomes", "said"),
    [
        (2, {}, "neither error nor warning in both traces"),
        (50, {}, "neither error nor warning in all 50 traces"),
        (2, {"error": 1}, "1 of 2 traces has an error; the other one is clean"),
        (2, {"error": 2}, "2 of 2 traces have an error"),
        (3, {"warning": 1}, "1 of 3 traces has a warning; the other 2 are clean"),
        (
            50,
            {"error": 1, "lost": 2},
            "1 of 50 traces (2%) has an error, 2 (4%) no result (INT904); the other 47 are clean",
        ),
        (1000, {"error": 999}, "999 of 1000 traces (>99%) have an error; the other one is clean"),
    ],
)
def test_the_first_sentence_reads_as_written(
    replay_report: Report, traces: int, outcomes: dict[str, int], said: str
) -> None:
    assert f" {said}" in lines_of(with_facts(replay_report, traces=traces, outcomes=outcomes), width=140)


def test_a_share_is_of_the_parsers_own_traces(replay_report: Report) -> None:
    """Of a file of several servers: what a parser never served says nothing of it."""
    none = {"error": 0, "unsupported": 0, "as recorded": 0}
    scores = {"qwen3": {"ok": 30, "suspect": 10, **none}, "step3": {"ok": 0, "suspect": 10, **none}}
    lines = lines_of(with_facts(replay_report, traces=50, scores=scores))
    assert [line for line in lines if line.startswith((" parser", " qwen3 4", " step3"))] == [
        " parser traces ok suspect",
        " qwen3 40 30 (75%) 10 (25%)",
        " step3 10 - 10 (100%)",
    ]


def test_parsers_are_ranked_by_how_many_traces_they_explain(replay_report: Report) -> None:
    none = {"suspect": 0, "error": 0, "unsupported": 0, "as recorded": 0}
    scores = {"cohere_command3": {"explains": 0, "ok": 4, **none}, "qwen3": {"explains": 3, "ok": 3, **none}}
    scores["qwen3"]["suspect"] = 1
    lines = lines_of(with_facts(replay_report, traces=4, scores=scores))
    at = lines.index(" parser explains ok suspect")
    assert lines[at + 1 : at + 3] == [" qwen3 3 3 1", " cohere_command3 - 4 -"]


def test_shares_are_whole_and_never_wrongly_all_or_nothing() -> None:
    assert [rate(number, 1000) for number in (0, 1, 5, 15, 995, 999, 1000)] == [
        "-",
        "1 (<1%)",
        "5 (<1%)",
        "15 (2%)",
        "995 (>99%)",
        "999 (>99%)",
        "1000 (100%)",
    ]
    assert rate(3, 9) == "3"


def test_names_are_counted_only_where_that_is_shorter() -> None:
    assert names_of(["a", "b", "c"], 2) == "a, b, c"
    assert names_of(["a", "b", "c", "d"], 2) == "a, b and 2 more"


def test_parsers_that_fare_alike_are_one_row(replay_report: Report) -> None:
    assert " qwen3, mimo 1 1 - - - -" in lines_of(replay_report)


def test_only_the_telling_splits_of_many_are_shown(replay_report: Report) -> None:
    rows = list(replay_report.facts["results"])
    odd = [
        {**rows[2], "parser": f"odd{index}", "full": {"reasoning": str(index), "content": None}} for index in range(14)
    ]
    report = with_facts(replay_report, results=[*odd, *rows[:4]], traces=1)
    said = squeezed(report)
    assert said.index(" qwen3, mimo ok") < said.index(" poolside_v1 suspect") < said.index(" odd0 ok")
    assert "14 more parsers split it in other ways: odd1, odd2, odd3 and 11 more (--verbose)" in said
    assert " odd4 ok" not in said
    verbose = squeezed(report, verbose=True)
    assert " odd9 ok" in verbose
    assert "5 more parsers split it in other ways: odd10, odd11, odd12 and 2 more (--format json)" in verbose


def test_parsers_run_for_comparison_are_counted(replay_report: Report) -> None:
    compared = {"t1": {"a": "ok", "b": "suspect", "qwen3": "ok", "d": "unsupported"}, "t2": {"a": "ok"}}
    lines = lines_of(with_facts(replay_report, compared=compared))
    assert [line for line in lines if line.startswith(" compared")] == [
        " compared 2 more do not explain it, 1 cannot be run here (--parser all)",
        " compared 1 more does not explain it (--parser all)",
    ]


def test_reasons_why_many_parsers_were_not_run_are_for_those_who_ask(replay_report: Report) -> None:
    rows = replay_report.facts["results"]
    missing = [{**rows[4], "parser": name, "reason": f"why {name}"} for name in ("beam", "hf", "hunyuan_a13b")]
    report = with_facts(replay_report, results=[rows[2], *missing], traces=1)
    assert " not run beam, hf, hunyuan_a13b (--verbose says why)" in lines_of(report)
    assert " not run hf: why hf" in lines_of(report, verbose=True)
    alone = with_facts(replay_report, results=missing, traces=1)
    assert " not run hf: why hf" in lines_of(alone)


def test_files_are_listed_as_far_as_one_reads(replay_report: Report) -> None:
    files = [
        {"path": f"f{index}.sse", "format": "sse", "traces": 2, "model": None, "server": None, "parser": None}
        for index in range(30)
    ]
    served = {"path": "own.jsonl", "format": "trace", "traces": 1, "model": "m", "server": "vllm 0.33.0"}
    lines = lines_of(with_facts(replay_report, inputs=[{**served, "parser": "qwen3"}, *files]))
    assert " input own.jsonl: 1 trace (reasonctl.trace/1), model m, recorded from vllm 0.33.0 with qwen3" in lines
    assert " input f2.sse: 2 traces (sse)" in lines
    mixed = with_facts(replay_report, inputs=[{**served, "parser": "qwen3", "further_parsers": True}])
    assert any(line.endswith("recorded from vllm 0.33.0 with qwen3 and others") for line in lines_of(mixed, width=120))
    assert " and 27 more files with 54 traces" in lines


def many(report: Report, traces: int) -> Report:
    rows = report.facts["results"]
    good = [{**rows[2], "trace": f"g{index}", "line": index + 10} for index in range(traces - 2)]
    (finding,) = report.findings
    notes = [
        Finding("RPL412", "lossy-trace", "info", "high", "rebuilt", "record", subject={"trace": f"g{index}"})
        for index in range(traces - 2)
    ]
    outcomes = {"error": 1, "warning": 0, "lost": 0}
    facts = with_facts(report, traces=traces, results=[*good, *rows], outcomes=outcomes, rules=RULES)
    return replace(facts, findings=[finding, *notes])


def test_many_traces_are_cut_to_those_with_something_wrong(replay_report: Report) -> None:
    lines = lines_of(many(replay_report, 22))
    assert lines.index(" t1 line 1") < lines.index(" t2 line 2") < lines.index(" g0 line 10")
    assert " 17 more traces, nothing wrong with any of them (--verbose)" in lines
    assert " g3 line 13" not in lines
    assert " 1 more trace, nothing wrong with it (--verbose)" in lines_of(many(replay_report, 6))


def test_all_that_is_asked_for_is_cut_too(replay_report: Report) -> None:
    """`--verbose`: twenty traces in full, the notes of the others a line each, and a count of what is left."""
    lines = lines_of(many(replay_report, 222), verbose=True)
    assert " g17 line 27" in lines
    assert " g18 line 28" not in lines
    assert " 202 more traces, nothing wrong with any of them (--format json has all)" in lines
    assert " note RPL412 lossy-trace: g18: rebuilt" in lines
    assert " note RPL412 lossy-trace: g117: rebuilt" in lines
    assert " note RPL412 lossy-trace: g118: rebuilt" not in lines
    assert " ... and 102 more (--format concise)" in lines
    assert sum("RPL412 lossy-trace: rebuilt" in line for line in lines) == 18
    assert len(lines) < 500


def test_texts_of_several_traces_are_shortened_even_where_all_is_asked_for(replay_report: Report) -> None:
    rows = [{**replay_report.facts["results"][2], "full": {"reasoning": "x" * 5000, "content": "4"}, "stream": []}]
    one = text.render(with_facts(replay_report, results=rows, traces=1), verbose=True)
    two = text.render(with_facts(replay_report, results=rows, traces=2), verbose=True)
    assert (one.count("x") > 3900, 350 < two.count("x") < 450) == (True, True)
