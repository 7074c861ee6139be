"""`reasonctl audit`: what it prints, what it exits with, and how a wrong call is refused."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reasonctl.fixtures import model_path

COMMAND = "audit"
Run = Callable[..., tuple[int, str, str]]


def as_json(run: Run, *arguments: str) -> tuple[int, dict[str, Any]]:
    code, out, _ = run(*arguments, "--format", "json")
    report: dict[str, Any] = json.loads(out)
    return code, report


def rules(report: dict[str, Any], severity: str) -> list[str]:
    return [finding["rule"] for finding in report["findings"] if finding["severity"] == severity]


def test_a_parser_that_fits_exits_0(run: Run) -> None:
    code, report = as_json(run, "--model", "fixture:qwen3", "--parser", "qwen3")
    assert code == 0
    assert report["verdict"] == "pass"
    assert report["command"] == "audit"
    assert report["target"] == "vllm==0.33.0"
    assert report["engine"] == {"kind": "builtin", "models": "vllm==0.33.0"}
    facts = report["facts"]
    assert set(facts) >= {"model", "prompt_states", "history", "parser", "serve_flags"}
    assert facts["model"]["template"]["reads"] == ["enable_thinking"]
    assert facts["history"] == [
        {"field": field, "tool_loop": "kept", "next_user_turn": "dropped"}
        for field in ("reasoning", "reasoning_content", "inline")
    ]
    assert [marker["text"] for marker in facts["model"]["markers"]] == ["<think>", "</think>"]
    assert all(marker["single_token"] and len(marker["ids"]) == 1 for marker in facts["model"]["markers"])
    assert facts["parser"]["configured"] == "qwen3"
    assert facts["parser"]["recommended"] == "qwen3"
    assert facts["serve_flags"] == ["--reasoning-parser", "qwen3"]
    mine = next(row for row in facts["parser"]["candidates"] if row["name"] == "qwen3")
    assert mine["fit"] == "pass"
    assert mine["probes"]["failed"] == 0
    assert mine["probes"]["passed"] > 20
    assert mine["failures"] == []


def test_a_parser_that_does_not_fit_exits_1_and_shows_the_request(run: Run) -> None:
    code, report = as_json(run, "--model", "fixture:qwen3", "--parser", "deepseek_r1")
    assert code == 1
    assert report["verdict"] == "fail"
    assert "FIT105" in rules(report, "error")
    mine = next(row for row in report["facts"]["parser"]["candidates"] if row["name"] == "deepseek_r1")
    assert mine["fit"] == "fail"
    assert 0 < len(mine["failures"]) <= 5
    failure = next(f for f in mine["failures"] if f["symptom"] == "content-null")
    assert set(failure) == {
        "probe", "conversation", "variant", "mode", "chunking", "symptom", "output", "expected", "got",
    }  # fmt: skip
    assert failure["mode"] == "full"
    assert failure["chunking"] is None
    assert failure["expected"] == {"reasoning": None, "content": "It is four."}
    assert failure["got"] == {"reasoning": "It is four.", "content": None}


def test_without_a_parser_it_ranks_all_and_recommends(run: Run) -> None:
    code, report = as_json(run, "fixture:deepseek-r1")
    assert code == 0
    parser = report["facts"]["parser"]
    assert parser["configured"] is None
    assert parser["recommended"] == "deepseek_r1"
    assert len(parser["candidates"]) == 42
    order = [row["fit"] for row in parser["candidates"]]
    assert order == sorted(order, key=["pass", "fail", "unsupported"].index)


def test_states_are_those_of_the_template(run: Run) -> None:
    _, report = as_json(run, "--model", "fixture:deepseek-v31", "--parser", "deepseek_v3")
    states = {
        json.dumps(row["variant"]): row["state"]
        for row in report["facts"]["prompt_states"]
        if row["conversation"] == "single_turn"
    }
    assert states["{}"] == "closed-bare"
    assert states['{"thinking": true}'] == "open"
    assert rules(report, "error") == []
    assert set(rules(report, "warning")) >= {"TPL003", "FIT114"}


def test_two_runs_are_equal(run: Run) -> None:
    first = run("fixture:glm47", "--format", "json")
    assert first == run("fixture:glm47", "--format", "json")


def test_a_serve_command_gives_parser_place_and_tools(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("serve.sh").write_text(
        "vllm serve fixture:qwen3 \\\n  --reasoning-parser deepseek_r1 \\\n"
        "  --enable-auto-tool-choice --tool-call-parser hermes\n"
    )
    for arguments in (["--serve", "serve.sh"], ["serve.sh"]):
        code, report = as_json(run, *arguments)
        assert code == 1
        found = {finding["rule"]: finding for finding in report["findings"]}
        assert found["FIT105"]["location"] == {"path": "serve.sh", "line": 2, "column": 3}
        assert found["FIT111"]["severity"] == "error"
        assert "server" in found["FIT105"]["subject"]


def test_the_parser_of_the_command_line_beats_the_servers(run: Run) -> None:
    command = "vllm serve fixture:qwen3 --reasoning-parser deepseek_r1"
    code, report = as_json(run, "--serve", command, "--parser", "qwen3")
    assert code == 0
    assert report["facts"]["parser"]["configured"] == "qwen3"


def test_a_serve_command_without_a_parser_is_fit101(run: Run) -> None:
    code, report = as_json(run, "--serve", "vllm serve fixture:qwen3")
    assert code == 1
    assert rules(report, "error") == ["FIT101"]


def test_the_servers_default_kwargs_make_the_plain_request(run: Run) -> None:
    off = "--default-chat-template-kwargs.enable_thinking false"
    code, report = as_json(run, "--serve", f"vllm serve fixture:qwen3 {off} --reasoning-parser qwen3")
    assert code == 0
    plain = [row for row in report["facts"]["prompt_states"] if row["variant"] == {}]
    assert plain[0]["state"] == "closed"


def test_a_served_model_that_is_not_here_is_not_evaluated(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    code, report = as_json(run, "--serve", "vllm serve ./no-such-folder --reasoning-parser qwen33")
    assert code == 1
    assert rules(report, "error") == ["FIT102"]
    coverage = {row["surface"]: row["status"] for row in report["coverage"]}
    assert coverage["template"] == "skipped"
    assert report["facts"]["prompt_states"] == []
    code, report = as_json(run, "--serve", "vllm serve ./no-such-folder --reasoning-parser qwen3")
    assert code == 0
    assert report["verdict"] == "incomplete"
    code, _, _ = run("--serve", "vllm serve ./no-such-folder --reasoning-parser qwen3", "--fail-on-incomplete")
    assert code == 1


def test_several_models_are_several_servers(run: Run) -> None:
    code, report = as_json(run, "fixture:qwen3", "fixture:glm47")
    assert code == 0
    assert [server["name"] for server in report["facts"]["servers"]] == ["fixture:qwen3", "fixture:glm47"]
    assert all("prompt_states" in server for server in report["facts"]["servers"])


def test_a_serve_command_on_stdin(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(b"vllm serve fixture:qwen3 --reasoning-parser qwen3\n"))
    monkeypatch.setattr(sys, "stdin", stdin)
    code, report = as_json(run, "--serve", "-")
    assert code == 0
    assert report["facts"]["parser"]["configured"] == "qwen3"


def test_a_template_of_its_own_replaces_the_models(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "open.jinja"
    path.write_text("{% for m in messages %}{{ m.content }}\n{% endfor %}<think>")
    _, report = as_json(run, "--model", "fixture:qwen3", "--chat-template", str(path), "--parser", "qwen3")
    assert report["facts"]["prompt_states"][0]["state"] == "open"
    assert report["facts"]["model"]["template"]["origin"] == "open.jinja"


def test_given_kwargs_weigh_as_a_real_request(run: Run) -> None:
    kwargs = '{"thinking": false}'
    code, report = as_json(run, "--model", "fixture:qwen3-thinking", "--parser", "glm45")
    assert code == 0
    code, report = as_json(
        run, "--model", "fixture:qwen3-thinking", "--parser", "glm45", "--chat-template-kwargs", kwargs
    )
    assert code == 1
    assert rules(report, "error") == ["FIT104"]


def test_print_flags_prints_them_and_nothing_else(run: Run) -> None:
    assert run("fixture:qwen3", "--print", "flags") == (0, "--reasoning-parser qwen3\n", "")


def test_print_flags_of_several_servers_says_whose_they_are(run: Run, tmp_path: Path) -> None:
    script = tmp_path / "up.sh"
    script.write_text("vllm serve fixture:qwen3 &\nvllm serve fixture:instruct &\nvllm serve fixture:glm47\n")
    assert run(str(script), "--print", "flags") == (
        0,
        "--reasoning-parser qwen3  # fixture:qwen3\n"
        "# fixture:instruct: does not think: it needs no parser\n"
        "--reasoning-parser glm45  # fixture:glm47\n",
        "",
    )


@pytest.mark.parametrize(
    ("target", "flags"),
    [
        ("vllm==0.33.0", "--reasoning-parser qwen3"),
        ("vllm==0.17.0", "--reasoning-parser qwen3"),
        ("vllm==0.16.0", "--reasoning-parser deepseek_r1"),
        ("vllm==0.12.0", "--reasoning-parser deepseek_r1"),
        ("vllm==0.8.0", "--enable-reasoning --reasoning-parser deepseek_r1"),
    ],
)
def test_what_is_recommended_fits_the_targets_own_release(run: Run, target: str, flags: str) -> None:
    """qwen3 wants its start marker in the output up to 0.16, which a prompt that opens thinking keeps."""
    model = ("--model", "fixture:qwen3-thinking", "--target", target)
    assert run(*model, "--print", "flags")[:2] == (0, f"{flags}\n")
    serve = ("--serve", f"vllm serve m {flags}", *model, "--min-confidence", "low")
    code, report = as_json(run, *serve)
    assert (code, rules(report, "error")) == (0, [])
    assert {f["rule"]: f["hint"] for f in report["findings"] if f["rule"] == "FIT111"} == {}


def test_no_parser_of_another_model_is_recommended_that_was_rewritten_since(run: Run) -> None:
    """kimi_k2 passes GLM's prompts since it runs on the engine, and was another parser before."""
    model = ("--model", "fixture:glm47", "--target", "vllm==0.12.0")
    assert run(*model, "--print", "flags")[:2] == (1, "")
    _, report = as_json(run, *model)
    (found,) = [f for f in report["findings"] if f["rule"] == "FIT122"]
    assert (found["severity"], found["confidence"], found["evidence"]["best"]) == ("warning", "low", "kimi_k2")
    assert found["message"] == (
        "none of 13 parsers is known to pass every probe in vllm==0.12.0: "
        "kimi_k2 does in 0.33.0, and was another one then"
    )
    _, report = as_json(run, "--model", "fixture:glm47", "--target", "vllm==0.9.0")
    (found,) = [f for f in report["findings"] if f["rule"] == "FIT122"]
    assert found["message"].endswith("the best is qwen3, which needs the start marker in the output up to vLLM 0.16")


@pytest.mark.parametrize(("parser", "since"), [("qwen3", "0.17"), ("glm45", "0.14"), ("deepseek_r1", "0.7.3")])
def test_a_parser_that_needs_the_start_marker_in_the_targets_release_does_not_fit(
    run: Run, parser: str, since: str
) -> None:
    release = "0.7.2" if parser == "deepseek_r1" else "0.12.0"
    _, report = as_json(run, "--model", "fixture:qwen3-thinking", "--parser", parser, "--target", f"vllm=={release}")
    (found,) = [f for f in report["findings"] if f["rule"] == "FIT104" and f["severity"] == "error"]
    assert found["confidence"] == "low"
    assert found["hint"] == f"use {'' if parser == 'deepseek_r1' else 'deepseek_r1, or '}vLLM {since} or later"
    (mine,) = [c for c in report["facts"]["parser"]["candidates"] if c["name"] == parser]
    assert (mine["fit"], mine["reason"].partition(" up to")[0]) == ("fail", "needs the start marker in the output")


def test_print_flags_exits_1_where_no_parser_passes(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "thought.jinja"
    path.write_text("{% for m in messages %}{{ m.content }}\n{% endfor %}<thought>\n")
    code, out, err = run("--model", str(path), "--print", "flags")
    assert (code, out) == (1, "")
    assert "no parser passes" in err


def test_print_flags_has_nothing_to_print_for_a_model_that_does_not_think(run: Run) -> None:
    code, out, err = run("fixture:instruct", "--print", "flags")
    assert (code, out) == (0, "")
    assert "needs no parser" in err


def test_the_text_report_says_verdict_request_and_flags(run: Run) -> None:
    code, out, _ = run("--model", "fixture:qwen3", "--parser", "deepseek_r1")
    text = re.sub(r"\s+", " ", out)
    assert code == 1
    assert "FIT105 content-null" in text
    assert "--reasoning-parser qwen3" in text
    assert "\x1b[" not in out


def test_ignored_rules_do_not_count(run: Run) -> None:
    code, report = as_json(run, "fixture:qwen3", "--parser", "deepseek_r1", "--ignore", "FIT,TPL006")
    assert code == 0
    assert rules(report, "error") == []


def test_code_built_prompts_are_not_evaluated(run: Run, tmp_path: Path) -> None:
    config = {"model_type": "deepseek_v4", "architectures": ["DeepseekV4ForCausalLM"]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    code, report = as_json(run, str(tmp_path), "--parser", "deepseek_v4")
    assert code == 0
    row = next(row for row in report["coverage"] if row["surface"] == "prompt")
    assert row["status"] == "skipped"
    assert row["reason"].startswith("built by code: not evaluated")
    assert report["verdict"] == "incomplete"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "nothing to audit"),
        (["--model", "no/such/place/at/all"], "no/such/place/at/all"),
        (["--model", "fixture:nope"], "fixture:nope"),
        (["--model", "fixture:qwen3", "--print", "everything"], "--print: 'everything'"),
        (["--model", "fixture:qwen3", "--chat-template-kwargs", "{"], "--chat-template-kwargs:1:2: not JSON"),
        (["--model", "fixture:qwen3", "--chat-template-kwargs", "[1]"], "--chat-template-kwargs: is not a JSON object"),
        (["--model", "fixture:qwen3", "--chat-template-kwargs", '{"a": 1, "a": 1}'], "the key 'a' stands there twice"),
        (["--model", "fixture:qwen3", "--chat-template-kwargs", '{"a": Infinity}'], "Infinity is no JSON"),
        (["--model", "fixture:qwen3", "--chat-template-kwargs", '{"messages": []}'], "vLLM refuses a request"),
        (["--model", "fixture:qwen3", "--chat-template-kwargs", '{"tools": []}'], "tools are no kwarg to audit"),
        (["--model", "fixture:qwen3", "--chat-template-kwargs", "[" * 100_000], "nested too deeply"),
        (["--model", "fixture:qwen3", "--chat-template-kwargs", "1" * 10_000], "an integer of thousands of digits"),
        (["--model", ""], "--model: is empty; give a value"),
        (["--model", "fixture:qwen3", "--parser", ""], "--parser: is empty"),
        (["--model", "fixture:qwen3", "--serve", ""], "--serve: is empty"),
        (["--model", "fixture:qwen3", "--chat-template", ""], "--chat-template: is empty"),
        (["--model", "fixture:qwen3", "--print", ""], "--print: is empty"),
        ([""], "PATH: is empty"),
        (["~no-such-user/x"], "no such file or folder"),
        (["a" * 5000], "no such file or folder"),
        (["--model", "fixture:qwen3", "--chat-template", "/dev/null"], "/dev/null: is empty: such a template writes"),
        (["--model", "fixture:qwen3", "--serve", "vllm serve x --chat-template ' '"], "--chat-template is empty"),
        (["--serve", "echo hello"], "no command line"),
        (["--model", "fixture:qwen3", "--chat-template", "no-such.jinja"], "no-such.jinja"),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_code_2(run: Run, arguments: list[str], said: str) -> None:
    code, out, err = run(*arguments)
    assert code == 2
    assert out == ""
    assert said in err
    assert err.count("\n") == 1


def test_a_file_that_cannot_be_read_is_named_as_it_stands_in_the_folder(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(model_path("qwen3"), tmp_path / "m" / "odd")
    (tmp_path / "m" / "odd" / "config.json").write_text('{"model_type": ["a"], "vocab_size": {}}')
    (tmp_path / "m" / "odd" / "generation_config.json").write_text("{\n x")
    monkeypatch.chdir(tmp_path)
    code, report = as_json(run, "--model", "m/odd")
    assert code == 0
    told = [f for f in report["findings"] if f["rule"] == "INT903"]
    assert sorted((f["location"]["path"], f["location"]["line"], f["subject"]["key"]) for f in told) == [
        ("m/odd/config.json", 1, "config.json: model_type"),
        ("m/odd/config.json", 1, "config.json: vocab_size"),
        ("m/odd/generation_config.json", 2, "generation_config.json"),
    ]


def coverage_of(report: dict[str, Any], surface: str) -> tuple[str, str | None]:
    return next((row["status"], row["reason"]) for row in report["coverage"] if row["surface"] == surface)


def test_an_empty_template_is_said_to_write_no_prompt(run: Run, tmp_path: Path) -> None:
    shutil.copytree(model_path("qwen3"), tmp_path / "m")
    (tmp_path / "m" / "chat_template.jinja").write_text("\n")
    _, report = as_json(run, "--model", str(tmp_path / "m"))
    assert [f["subject"]["key"] for f in report["findings"]] == ["chat_template.jinja: chat_template"]
    assert coverage_of(report, "prompt") == ("skipped", "the model's chat template is empty")
    assert report["verdict"] == "incomplete"


def test_a_template_that_writes_nothing_is_no_pass(run: Run, tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text("{# nothing #}")
    _, report = as_json(run, "--model", str(tmp_path / "chat_template.jinja"))
    assert coverage_of(report, "prompt") == (
        "partial",
        "the template writes nothing, whatever the request: every prompt is empty",
    )
    assert report["verdict"] == "incomplete"


def test_kwargs_without_effect_are_said_and_no_variant(run: Run) -> None:
    code, out, err = run(
        "--model", "fixture:qwen3", "--chat-template-kwargs", '{"tokenize": false}', "--format", "json"
    )
    assert code == 0
    assert "tokenize: no effect" in err
    assert not any("tokenize" in row["variant"] for row in json.loads(out)["facts"]["prompt_states"])
