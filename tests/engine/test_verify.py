"""`reasonctl verify` against servers that count and split rightly, and against everything that does not."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from reasonctl.budgets.counting import Markers, counter
from reasonctl.engine import cases as cases_module
from reasonctl.engine import speech
from reasonctl.engine.lab_families import FAMILIES, family
from reasonctl.engine.speech import Speaker, blocks

from . import lab_server
from .fake_server import Asked, FakeServer
from .fake_vllm import fake_vllm
from .lab_server import LabServer, proxy

Run = Callable[..., tuple[int, str, str]]
Report = dict[str, Any]


@contextmanager
def served(folder: Path, name: str, **how: Any) -> Iterator[FakeServer]:
    lab = LabServer(folder / name, name, **how)
    try:
        with lab.serve() as server:
            yield server
    finally:
        lab.close()


def verified(run: Run, url: str, name: str, *arguments: str) -> tuple[int, Report]:
    words = ("verify", "--lab", name, "--endpoint", url, "--runner", "v1", "--quiet", "--format", "json")
    code, out, err = run(*words, *arguments)
    assert out, err
    return code, json.loads(out)


def rules(report: Report) -> list[str]:
    return sorted({finding["rule"] for finding in report["findings"]})


def case(report: Report, name: str) -> dict[str, Any]:
    return next(one for one in report["facts"]["cases"] if one["name"] == name)


@pytest.mark.parametrize("name", [each.name for each in FAMILIES])
def test_a_server_that_does_right_passes(run: Run, tmp_path: Path, name: str) -> None:
    with served(tmp_path, name) as server:
        code, report = verified(run, server.url, name)
    assert (code, rules(report)) == (0, [])
    cases = report["facts"]["cases"]
    assert {one["ok"] for one in cases} == {True}
    assert report["verdict"] == "pass"
    assert len(cases) == len({(one["name"], one["prompt_state"]) for one in cases})


def test_the_ladder_around_the_natural_end(run: Run, tmp_path: Path) -> None:
    """By hand: 40 numbers, and one line break in the prompt that is charged."""
    with served(tmp_path, "qwen3") as server:
        _, report = verified(run, server.url, "qwen3")
    seen = {
        one["name"]: (one["observed"]["thinking_tokens"], one["observed"]["end"])
        for one in report["facts"]["cases"]
        if one["prompt_state"] == "open" and "refused" not in one["predicted"]
    }
    assert {name: seen[name] for name in seen if name.startswith(("budget ", "no budget"))} == {
        "no budget": (40, "natural"),
        "budget -1": (40, "natural"),
        "budget 0": (0, "forced"),
        "budget 1": (0, "forced"),
        "budget 5": (4, "forced"),
        "budget 40": (39, "forced"),
        "budget 41": (40, "natural"),
        "budget 42": (40, "natural"),
        "budget 43": (40, "natural"),
        "budget 10000": (40, "natural"),
        "no budget, stream": (40, "natural"),
        "budget 0, stream": (0, "forced"),
        "budget 5, stream": (4, "forced"),
        "budget = max_tokens": (4, "forced"),
        "budget > max_tokens": (5, "none"),
    }
    assert case(report, "budget 5")["request"]["thinking_token_budget"] == 5
    assert case(report, "no budget")["request"]["thinking_token_budget"] is None
    assert case(report, "refused: 64.5")["predicted"]["refused"]["status"] == 400


def test_budgets_can_be_named(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "budget.json"
    file.write_text('{"low": 2, "medium": 7, "high": -1}')
    with served(tmp_path, "qwen3") as server:
        code, report = verified(run, server.url, "qwen3", "--budget", "9", "--budget", str(file))
    assert code == 0
    names = [one["name"] for one in report["facts"]["cases"] if one["request"]["thinking_token_budget"] is not None]
    assert names[:4] == ["budget 9", "effort low, budget 2", "effort medium, budget 7", "effort high, budget -1"]
    assert case(report, "effort medium, budget 7")["observed"]["thinking_tokens"] == 6


def test_eng502_a_count_that_is_off_by_one_fails(run: Run, tmp_path: Path) -> None:
    def more(body: dict[str, Any]) -> dict[str, Any]:
        budget = body.get("thinking_token_budget")
        return body | ({"thinking_token_budget": budget + 1} if type(budget) is int and budget > 0 else {})

    with served(tmp_path, "qwen3", change=more) as server:
        code, report = verified(run, server.url, "qwen3")
    assert code == 1
    (found,) = [finding for finding in report["findings"] if finding["rule"] == "ENG502"]
    assert found["message"].startswith("budget 1: 1 thinking token, where 0 were to come (+1)")


def test_eng502_a_count_that_is_one_short_is_no_missing_marker(run: Run, tmp_path: Path) -> None:
    def less(body: dict[str, Any]) -> dict[str, Any]:
        budget = body.get("thinking_token_budget")
        return body | ({"thinking_token_budget": budget - 1} if type(budget) is int and budget > 0 else {})

    with served(tmp_path, "qwen3", change=less) as server:
        code, report = verified(run, server.url, "qwen3")
    assert (code, rules(report)) == (1, ["ENG502"])
    assert report["findings"][0]["message"].startswith("budget 5: 3 thinking tokens, where 4 were to come (-1)")


def test_our_own_count_off_by_one_fails_too(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(tmp_path, "qwen3") as server:
        right, ours = speech.counter, threading.get_ident()

        def wrong(rule: Any, markers: Markers, budget: int | None, prompt: Any) -> Any:
            # The server runs in another thread of this process, and keeps the right count.
            off = int(threading.get_ident() == ours and budget is not None)
            return right(rule, markers, budget + off if budget is not None else None, prompt)

        monkeypatch.setattr(speech, "counter", wrong)
        code, report = verified(run, server.url, "qwen3")
    assert code == 1
    assert "ENG502" in rules(report)


def test_eng501_eng509_a_proxy_that_drops_the_budget(run: Run, tmp_path: Path) -> None:
    with served(tmp_path, "qwen3") as server, proxy(server.url, request=lab_server.without_budget) as between:
        code, report = verified(run, between.url, "qwen3", "--budget", "0", "--budget", "9")
    assert (code, rules(report)) == (1, ["ENG501", "ENG509"])
    messages = {finding["rule"]: finding["message"] for finding in report["findings"]}
    assert messages["ENG501"].startswith("budget 0: 40 thinking tokens, where 0 thinking tokens and a forced end")
    assert messages["ENG509"].startswith("refused: 64.5: the server took it")


def test_eng503_a_proxy_that_swallows_the_end_marker(run: Run, tmp_path: Path) -> None:
    end = Speaker(family("qwen3"), 40).markers.natural_end[0]
    with served(tmp_path, "qwen3") as server, proxy(server.url, answer=lab_server.swallowing(end)) as between:
        code, report = verified(run, between.url, "qwen3", "--budget", "9")
    assert code == 1
    assert "ENG503" in rules(report)
    (found,) = [finding for finding in report["findings"] if finding["rule"] == "ENG503"]
    assert "the end marker between them is missing" in found["message"]
    assert found["message"].startswith("budget 9")


def test_eng507_a_proxy_that_renames_reasoning(run: Run, tmp_path: Path) -> None:
    with served(tmp_path, "qwen3") as server, proxy(server.url, answer=lab_server.renaming) as between:
        code, report = verified(run, between.url, "qwen3", "--budget", "9")
    assert (code, rules(report)) == (1, ["ENG507"])
    assert "the reasoning came as reasoning_content" in report["findings"][0]["message"]


def test_eng504_a_limit_that_nobody_asked_for(run: Run, tmp_path: Path) -> None:
    limited = lambda body: {"thinking_token_budget": 3} | body  # noqa: E731
    with served(tmp_path, "qwen3", change=limited) as server:
        code, report = verified(run, server.url, "qwen3", "--budget", "9", "--budget", "-1")
    assert code == 0  # -1 itself is passed on, and no case without a budget was asked for
    with served(tmp_path / "2", "qwen3", change=limited) as server:
        code, report = verified(run, server.url, "qwen3")
    assert (code, rules(report)) == (1, ["ENG504"])
    assert "cut after 2 thinking tokens, although no limit was asked for" in report["findings"][0]["message"]


def test_another_parser_than_was_said(run: Run, tmp_path: Path) -> None:
    with served(tmp_path, "qwen3") as server:
        code, report = verified(run, server.url, "qwen3", "--parser", "deepseek_r1", "--select", "ENG505,ENG506,ENG508")
    assert code == 1
    assert "ENG508" in rules(report)
    assert "ENG506" in rules(report)  # deepseek_r1 would count 0 for a block that the prompt opens


def test_eng508_an_answer_filed_as_reasoning(run: Run, tmp_path: Path) -> None:
    def all_reasoning(value: dict[str, Any]) -> dict[str, Any]:
        for choice in value.get("choices") or ():
            message = choice.get("message")
            if message is not None:
                message["reasoning"] = (message["reasoning"] or "") + (message["content"] or "")
                message["content"] = None
        return value

    with served(tmp_path, "qwen3") as server, proxy(server.url, answer=all_reasoning) as between:
        code, report = verified(run, between.url, "qwen3", "--budget", "9", "--budget", "-1")
    assert code == 1
    found = {finding["rule"]: finding["message"] for finding in report["findings"]}
    assert "content is null" in found["ENG503"]
    assert found["ENG503"].startswith("budget 9")
    assert found["ENG508"].startswith("budget -1: content is ''")


def test_eng505_a_run_that_ends_without_an_answer(run: Run, tmp_path: Path) -> None:
    def emptied(value: dict[str, Any]) -> dict[str, Any]:
        for choice in value.get("choices") or ():
            for key in ("message", "delta"):
                if choice.get(key):
                    choice[key]["content"] = None
        return value

    lab = LabServer(tmp_path / "m", "qwen3")
    words = ("--runner", "v1", "--parser", "qwen3", "--model", str(tmp_path / "m"), "--quiet", "--format", "json")
    with lab.serve() as server, proxy(server.url, answer=emptied) as between:
        code, out, _ = run("verify", "--endpoint", between.url, *words, "--budget", "9")
    lab.close()
    report = json.loads(out)
    assert (code, rules(report)) == (0, ["ENG505"])
    assert report["findings"][0]["severity"] == "warning"
    assert "finish_reason stop after 40 thinking tokens, and no content" in report["findings"][0]["message"]


def test_eng506_usage_that_is_wrong(run: Run, tmp_path: Path) -> None:
    def miscounted(value: dict[str, Any]) -> dict[str, Any]:
        if value.get("usage"):
            value["usage"]["completion_tokens_details"]["reasoning_tokens"] += 1
        return value

    with served(tmp_path, "qwen3") as server, proxy(server.url, answer=miscounted) as between:
        code, report = verified(run, between.url, "qwen3", "--budget", "9")
    assert (code, rules(report)) == (0, ["ENG506"])
    assert {one["ok"] for one in report["facts"]["cases"]} == {True}


def test_int904_a_case_without_an_answer_is_lost_and_the_rest_stands(run: Run, tmp_path: Path) -> None:
    times: list[int] = []

    def sometimes(value: dict[str, Any]) -> dict[str, Any]:
        if "choices" in value:
            times.append(1)
            if len(times) == 2:
                return {"error": {"message": "engine overloaded"}}
        return value

    with served(tmp_path, "qwen3") as server, proxy(server.url, answer=sometimes) as between:
        code, report = verified(run, between.url, "qwen3", "--budget", "9", "--budget", "-1")
    assert (code, rules(report)) == (1, ["INT904"])
    assert "engine overloaded" in report["findings"][0]["message"]
    assert [one["ok"] for one in report["facts"]["cases"]].count(False) == 1


def test_requests_are_bounded(run: Run, tmp_path: Path) -> None:
    with served(tmp_path, "qwen3") as server:
        code, report = verified(run, server.url, "qwen3", "--max-requests", "3")
        sent = [asked for asked in server.asked if not asked.path.endswith("tokenize")]
    assert len(sent) == 3
    assert (code, report["verdict"]) == (0, "incomplete")
    assert next(row for row in report["coverage"] if row["surface"] == "requests")["status"] == "partial"


def test_a_server_without_token_ids_proves_nothing(run: Run, tmp_path: Path) -> None:
    def without_ids(value: dict[str, Any]) -> dict[str, Any]:
        value.pop("prompt_token_ids", None)
        for choice in value.get("choices") or ():
            choice.pop("token_ids", None)
        return value

    with served(tmp_path, "qwen3") as server, proxy(server.url, answer=without_ids) as between:
        code, report = verified(run, between.url, "qwen3", "--budget", "9")
    assert (code, report["verdict"]) == (0, "incomplete")
    assert {one["ok"] for one in report["facts"]["cases"] if "refused" not in one["predicted"]} == {None}
    assert "sends no token ids" in report["coverage"][0]["reason"]


def test_a_model_of_unknown_habits(run: Run, tmp_path: Path) -> None:
    lab = LabServer(tmp_path / "m", "qwen3")
    words = ("--runner", "v1", "--parser", "qwen3", "--model", str(tmp_path / "m"), "--quiet", "--format", "json")
    with lab.serve() as server:
        code, out, _ = run(
            "verify", "--endpoint", server.url, *words, "--budget", "0", "--budget", "9", "--budget", "64"
        )
    lab.close()
    report = json.loads(out)
    outcome = {one["name"]: one["ok"] for one in report["facts"]["cases"]}
    assert outcome == {
        "no budget": None,
        "budget 0": True,
        "budget 0, stream": True,
        "budget 9": True,
        "budget 9, stream": True,
        # It thinks for 40 tokens by itself: that 64 did not cut it proves nothing.
        "budget 64": None,
        "budget 64, stream": None,
        "refused: 64.5": True,
        "refused: -2": True,
    }
    assert (code, report["verdict"]) == (0, "incomplete")
    assert "proves nothing" in report["coverage"][0]["reason"]
    assert case(report, "budget 9")["predicted"]["thinking_tokens"] == 8


def test_a_model_of_unknown_habits_whose_budget_is_dropped(run: Run, tmp_path: Path) -> None:
    lab = LabServer(tmp_path / "m", "qwen3")
    words = ("--runner", "v1", "--parser", "qwen3", "--model", str(tmp_path / "m"), "--quiet", "--format", "json")
    with lab.serve() as server, proxy(server.url, request=lab_server.without_budget) as between:
        code, out, _ = run("verify", "--endpoint", between.url, *words, "--budget", "9")
    lab.close()
    assert code == 1
    assert rules(json.loads(out)) == ["ENG501", "ENG509"]


def test_the_text_report(run: Run, tmp_path: Path) -> None:
    with served(tmp_path, "qwen3") as server:
        code, out, _ = run("verify", "--lab", "qwen3", "--endpoint", server.url, "--runner", "v1", "--budget", "9")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "PASS  8 of 8 cases as predicted"
    assert any(line.split() == ["budget", "9", "open", "8", "8", "ok", "forced", "13", "stop", "8"] for line in lines)
    assert '  "64": HTTP 400, as it should be' in lines
    assert lines[-1].startswith("PASS")


def test_the_text_report_tears_no_words(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("verify", "--lab", "qwen3", "--runner", "v2", "--endpoint")
    with served(tmp_path, "qwen3", rule="slimserve") as server:
        shown = {}
        for width in (100, 60, 45):
            monkeypatch.setattr("reasonctl.reports.formats.width", lambda stream, width=width: width)
            shown[width] = run(*words, server.url)[1].splitlines()
    whole = "\n".join(shown[100])
    assert "thinking  seen" in whole
    assert "not shown  runner v1 (another run: --runner), speculative decoding (no draft model was served)," in whole
    assert "  counting  tokens behind the start marker in the prompt are charged (vLLM, V2 runner); here 1" in whole
    assert "  ** usage is what this vLLM's parser counts there, and not what was thought" in whole
    for width, row in (
        (60, ["budget", "5", "open", "5,", "not", "4", "differs", "forced"]),
        (45, ["budget", "5", "5,", "not", "4", "differs"]),
    ):
        lines = shown[width]
        table = lines[next(n for n, line in enumerate(lines) if line.startswith("  case")) :]
        table = table[: table.index("")]
        assert max(map(len, table)) <= width
        assert row in [line.split() for line in table]
        assert "  seen: thinking tokens; the rest on a wider" in "\n".join(table)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "there is nothing to verify; give --lab FAMILY"),
        (["--lab", "qwen3", "--model", "x"], "--model and --lab"),
        (["--lab", "qwen"], "write qwen3"),
        (["--lab", "qwen3", "--runner", "v3"], "--runner"),
        (["--lab", "qwen3", "--device", "tpu"], "--device"),
        (["--lab", "qwen3", "--budget", "-2"], "budget -2 is below -1"),
        (["--lab", "qwen3", "--budget", "nothing.json"], "no such file"),
        (["--lab", "qwen3"], "no vLLM in this environment; name one with --vllm"),
        (
            ["--lab", "qwen3", "--endpoint", "http://127.0.0.1:1", "--vllm", "{python}"],
            "leave out --vllm or --endpoint",
        ),
        (["--model", "fixture:qwen3", "--vllm", "{python}"], "no weights to serve"),
    ],
)
def test_wrong_calls(
    run: Run, tmp_path: Path, arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run("verify", *(word.replace("{python}", sys.executable) for word in arguments))
    assert (code, out) == (2, "")
    assert said in err
    assert err.splitlines()[-1].startswith("reasonctl: ")


def test_a_server_that_does_not_come_up_is_exit_3(run: Run, tmp_path: Path) -> None:
    broken = tmp_path / "lib"
    engine = fake_vllm(broken)
    (broken / "vllm" / "entrypoints" / "openai" / "api_server.py").write_text("raise SystemExit('no device found')")
    log = tmp_path / "server.log"
    code, out, err = run("verify", "--lab", "qwen3", "--vllm", engine, "--log", str(log))
    assert (code, out) == (3, "")
    assert "it ended with status 1; the end of its log" in err
    assert err.splitlines()[-1] == "  no device found"


def test_a_server_killed_while_it_answers_is_exit_3_with_its_log(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    code, out, err = run("verify", "--lab", "qwen3", "--vllm", fake_vllm(tmp_path / "lib"), "--log", str(log))
    assert (code, out) == (3, "")
    assert "it was ended by SIGKILL; the end of its log" in err
    assert err.splitlines()[-1] == "  asked /v1/chat/completions"


def test_nothing_listens_is_exit_3(run: Run) -> None:
    with FakeServer({}) as server:
        url = server.url
    code, _, err = run("verify", "--lab", "qwen3", "--endpoint", url)
    assert code == 3
    assert "cannot be reached" in err


def test_a_server_that_goes_away_is_exit_3(run: Run, tmp_path: Path) -> None:
    with served(tmp_path, "qwen3") as server:
        whole = server.routes["/v1/chat/completions"]

        def once(asked: Asked) -> None:
            whole(asked)
            server.close_port()

        server.routes["/v1/chat/completions"] = once
        code, _, err = run("verify", "--lab", "qwen3", "--endpoint", server.url)
    assert code == 3
    assert err.count("reasonctl: ") == 1
    assert "cannot be reached" in err


def test_blocks_are_counted_by_their_markers() -> None:
    markers = Markers((1,), (2,), (2,))
    eos = frozenset((9,))
    assert blocks([5, 1, 5], [5, 5, 2, 6, 9], markers, eos=eos) == blocks([1], [7, 7, 2, 7, 9], markers, eos=eos)
    one = blocks([1], [5, 5, 2, 6, 6, 6, 1, 5, 2, 6, 9], markers, eos=eos)
    assert (one.thinking, one.answer, one.ended) == (3, 4, 2)
    two = blocks([5], [1, 5, 8, 5, 5], markers, also_end=frozenset((8,)))
    assert (two.thinking, two.answer, two.ended) == (1, 3, 0)
    three = blocks([1, 2], [2, 5], markers)
    assert (three.thinking, three.answer, three.ended) == (0, 1, 0)


@pytest.mark.parametrize(
    ("rule", "budget", "thinks"),
    [("vllm-v1", 10, 9), ("vllm-v2", 10, 9), ("slimserve", 10, 10), ("vllm-v1", 0, 0), ("slimserve", 0, 0)],
)
def test_the_rules_differ_in_what_the_prompt_costs(rule: Any, budget: int, thinks: int) -> None:
    lab = Speaker(family("qwen3"), 40)
    prompt = lab.encode("<|im_start|>assistant\n<think>\n")
    said = lab.say(prompt, rule=rule, budget=budget, max_tokens=200)
    assert blocks(prompt, said.ids, lab.markers).thinking == thinks
    assert said.forced


@pytest.mark.parametrize(("rule", "thinks"), [("vllm-v1", 8), ("slimserve", 7)])
def test_slimserve_leaves_a_token_for_the_end(rule: Any, thinks: int) -> None:
    lab = Speaker(family("qwen3"), 40)
    prompt = lab.encode("<|im_start|>assistant\n<think>\n")
    said = lab.say(prompt, rule=rule, budget=20, max_tokens=8)
    assert (blocks(prompt, said.ids, lab.markers).thinking, said.finish_reason) == (thinks, "length")
    assert said.forced is (rule == "slimserve")


def test_no_limit_is_no_counter() -> None:
    for budget in (None, -1):
        assert counter("vllm-v2", Markers((1,), (2,), (2,)), budget, [1]).forced([5] * 99) is None


def test_every_family_has_cases_for_every_state() -> None:
    for each in FAMILIES:
        if each.parser is None:
            continue
        listed = cases_module.lab_cases(Speaker(each, 40), None)
        assert {one.state for one in listed} >= {"open", "silent", "closed"}
        assert {one.api for one in listed} == {"chat", "completions", "messages"}
        assert any(one.stream for one in listed)
        assert len({one.together for one in listed if one.together}) == 1
