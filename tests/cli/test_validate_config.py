"""`reasonctl validate-config`, as a user runs it: facts, exit codes, places, and errors of one line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from reasonctl.budgets.dialects import EFFORTS
from reasonctl.cli import app
from reasonctl.errors import InputError

RUNNER = CliRunner()
QWEN38 = {"low": 1024, "medium": 4096, "xhigh": 8192}
CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}


def run(*args: str, stdin: str | None = None) -> tuple[int, dict[str, Any]]:
    """Exit code and JSON report. Raises the InputError of a refused call, as main would print it."""
    done = RUNNER.invoke(app, ["validate-config", *args, "--format", "json"], input=stdin)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, json.loads(done.stdout)


def write(folder: Path, name: str, content: Any) -> str:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2), encoding="utf-8")
    return str(path)


def rules(report: dict[str, Any]) -> list[str]:
    return [finding["rule"] for finding in report["findings"]]


def row(report: dict[str, Any], effort: str | None, limit: int, asked: int | None = None) -> dict[str, Any]:
    (found,) = [
        row
        for row in report["facts"]["resolutions"]
        if (row["effort"], row["max_tokens"], row["request_budget"]) == (effort, limit, asked)
    ]
    return dict(found)


def test_a_good_map(tmp_path: Path) -> None:
    code, report = run(write(tmp_path, "b.json", QWEN38), "--max-tokens", "12000")
    assert (code, report["verdict"], report["target"]) == (0, "pass", "slimserve")
    assert report["engine"] == {"kind": "builtin", "models": "vllm==0.33.0"}
    facts = report["facts"]
    assert (facts["dialect"], facts["form"], facts["budgets"]) == ("slimserve", "map", QWEN38)
    assert [(r["effort"], r["max_tokens"]) for r in facts["resolutions"]] == [(e, 12000) for e in (*EFFORTS, None)]
    assert facts["resolutions"][2] == {
        "effort": "low",
        "request_budget": None,
        "max_tokens": 12000,
        "selected": 1024,
        "source": "map[low]",
        "cutoff": 1024,
        "answer_capacity": 10975,
    }


def test_the_limits_that_are_assumed(tmp_path: Path) -> None:
    _, report = run(write(tmp_path, "b.json", 100))
    assert len(report["facts"]["resolutions"]) == 8 * 3
    assert report["facts"]["max_tokens"] == [4096, 16384, 32768]


@pytest.mark.parametrize(
    ("flags", "limits"),
    [
        ("--max-model-len 8192", [8192]),
        ("--max-model-len 32K", [32768]),
        ("--max-model-len 8192 --override-generation-config.max_new_tokens 2048", [2048]),
        ("--max-model-len auto", [4096, 16384, 32768]),
    ],
)
def test_the_serve_commands_own_limit(tmp_path: Path, flags: str, limits: list[int]) -> None:
    path = write(tmp_path, "serve.sh", f"vllm serve m {flags}\n")
    _, report = run(path)
    assert report["facts"]["max_tokens"] == limits
    _, report = run(path, "--max-tokens", "77", "--max-tokens", "77", "--max-tokens", "99")
    assert report["facts"]["max_tokens"] == [77, 99]


def test_only_some_efforts(tmp_path: Path) -> None:
    path = write(tmp_path, "b.json", QWEN38)
    _, report = run(path, "--effort", "low", "--effort", "none", "--max-tokens", "9000")
    assert [r["effort"] for r in report["facts"]["resolutions"]] == ["none", "low"]
    with pytest.raises(InputError, match="--effort: 'hihg' is no effort; did you mean high"):
        run(path, "--effort", "hihg")


def test_requests_add_rows_where_they_carry_a_budget(tmp_path: Path) -> None:
    bodies = [
        CHAT | {"reasoning_effort": "low", "thinking_token_budget": 6000, "max_tokens": 9000},
        CHAT | {"reasoning_effort": "low", "thinking_token_budget": -1},
        CHAT | {"reasoning_effort": "none", "thinking_token_budget": 300},
        CHAT | {"reasoning_effort": "xhigh", "max_tokens": 8000},
    ]
    path = write(tmp_path, "r.jsonl", "\n".join(map(json.dumps, bodies)))
    _, report = run(write(tmp_path, "b.json", QWEN38), "--requests", path, "--max-tokens", "12000")
    assert len(report["facts"]["resolutions"]) == 8 + 3
    own = row(report, "low", 9000, 6000)
    assert (own["selected"], own["source"], own["cutoff"], own["answer_capacity"]) == (6000, "request", 6000, 2999)
    free = row(report, "low", 12000, -1)
    assert (free["selected"], free["source"], free["cutoff"], free["answer_capacity"]) == (-1, "request", None, None)
    off = row(report, "none", 12000, 300)
    assert (off["selected"], off["source"], off["cutoff"]) == (None, "none", None)
    last = report["facts"]["requests"][3]["resolutions"]
    assert [(r["source"], r["cutoff"]) for r in last] == [("map[xhigh]", 7999)]


def test_a_request_body_is_a_configuration(tmp_path: Path) -> None:
    code, report = run(write(tmp_path, "r.json", CHAT | {"thinking_token_budget": 500, "max_tokens": 4096}))
    assert (code, report["facts"]["dialect"], report["facts"]["form"]) == (0, "vllm", "request")
    assert report["facts"]["budgets"] == 500
    assert len(report["facts"]["resolutions"]) == 8 * 3 + 1
    assert row(report, None, 4096, 500)["cutoff"] == 500
    assert row(report, "high", 4096)["source"] == "none"


@pytest.mark.parametrize(
    ("budget", "standing", "rows"),
    [(1023, "refused", 0), (1024, "granted", 1), (4095, "granted", 1), (4096, "refused", 0)],
)
def test_a_refused_request_is_granted_nothing(tmp_path: Path, budget: int, standing: str, rows: int) -> None:
    body = CHAT | {"max_tokens": 4096, "thinking": {"type": "enabled", "budget_tokens": budget}}
    _, report = run(write(tmp_path, "r.json", body), "--max-tokens", "9000")
    assert report["facts"]["dialect"] == "anthropic"
    assert report["facts"]["requests"][0]["standing"] == standing
    assert len(report["facts"]["resolutions"]) == 8 + rows


@pytest.mark.parametrize(
    ("name", "content", "args", "code", "expected"),
    [
        ("b.json", QWEN38, (), 0, ["BUD306", "BUD306"]),
        ("b.json", QWEN38, ("--fail-on", "warning"), 1, ["BUD306", "BUD306"]),
        ("b.json", QWEN38, ("--fail-on", "warning", "--ignore", "BUD306"), 0, []),
        ("b.json", {"low": 1024}, ("--max-tokens", "9000"), 1, ["BUD303"]),
        ("b.json", {"low": 1024}, ("--max-tokens", "9000", "--exit-zero"), 0, ["BUD303"]),
        ("b.yaml", "medium: 1\nmedium: 2\n", ("--max-tokens", "9000"), 1, ["BUD323"]),
        ("b.json", QWEN38, ("--dialect", "vllm"), 1, ["BUD310"]),
        ("b.json", QWEN38, ("--target", "vllm"), 1, ["BUD310"]),
        ("s.sh", "vllm serve m --override-generation-config.thinking_token_budget 9", (), 1, ["BUD310"]),
        (
            "s.sh",
            "vllm serve m --override-generation-config.thinking_token_budget 9",
            ("--target", "slimserve"),
            0,
            [],
        ),
        ("r.json", CHAT | {"thinking": {"type": "enabled", "budget_tokens": 9}, "max_tokens": 99}, (), 1, ["BUD319"]),
        ("b.json", "4000", ("--max-tokens", "4200"), 0, ["BUD307"]),
        ("b.json", "4000", ("--max-tokens", "4200", "--answer-reserve", "100"), 0, []),
    ],
)
def test_findings_and_exit_codes(
    tmp_path: Path, name: str, content: Any, args: tuple[str, ...], code: int, expected: list[str]
) -> None:
    got, report = run(write(tmp_path, name, content), *args)
    assert (got, rules(report)) == (code, expected)


def test_a_finding_points_at_the_key_inside_a_command_line(tmp_path: Path) -> None:
    text = (
        'slimserve p --serve \\\n  --override-generation-config \'{\n    "thinking_token_budget": {"medium": 9.5}}\'\n'
    )
    code, report = run(write(tmp_path, "serve.sh", text))
    (finding,) = report["findings"]
    assert (code, finding["rule"], finding["slug"]) == (1, "BUD304", "not-an-integer")
    assert (finding["location"]["line"], finding["location"]["column"]) == (3, 41)
    assert report["facts"]["where"] == "--override-generation-config → thinking_token_budget"
    assert report["facts"]["resolutions"] == []


def test_variables_that_the_budget_does_not_need(tmp_path: Path) -> None:
    text = (
        'vllm serve "$MODEL" --max-model-len $LEN --default-chat-template-kwargs "$KWARGS" --reasoning-parser "$P" '
        "--override-generation-config.thinking_token_budget 700\n"
    )
    _, report = run(write(tmp_path, "serve.sh", text), "--dialect", "slimserve", "--model", "fixture:qwen3")
    assert (report["facts"]["budgets"], report["facts"]["max_tokens_from"]) == (700, "default")
    with pytest.raises(InputError, match="only the running shell knows"):
        run(write(tmp_path, "serve.sh", 'vllm serve m --override-generation-config.thinking_token_budget "$N"\n'))


def test_stdin(tmp_path: Path) -> None:
    _, report = run("-", "--max-tokens", "9000", stdin="low: 5\nmedium: 6\n")
    assert report["facts"]["budgets"] == {"low": 5, "medium": 6}
    with pytest.raises(InputError, match="cannot both read standard input"):
        run("-", "--requests", "-", stdin="5")


def test_the_shipped_budgets() -> None:
    folder = Path(__file__).resolve().parents[2] / "fixtures" / "budgets"
    code, report = run(str(folder / "slimserve-map.json"), "--max-tokens", "12000")
    assert (code, rules(report)) == (0, [])
    code, report = run(str(folder / "slimserve-faulty.yaml"))
    assert (code, rules(report)) == (1, ["BUD301", "BUD302", "BUD303", "BUD304", "BUD323"])


QWEN38_TEMPLATE = """\
{%- set effort = reasoning_effort | default('xhigh') -%}
{%- if effort not in ['none', 'low', 'medium', 'xhigh'] -%}
{{- raise_exception('reasoning_effort must be low, medium or xhigh') -}}
{%- endif -%}
{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt %}<|im_start|>assistant
{% if effort != 'xhigh' %}({{ effort }}) {% endif %}<think>
{% endif -%}
"""


def test_a_model_whose_template_knows_three_levels(tmp_path: Path) -> None:
    template = write(tmp_path, "chat_template.jinja", QWEN38_TEMPLATE)
    budget = write(tmp_path, "b.json", QWEN38)
    code, report = run(budget, "--model", template, "--max-tokens", "12000")
    assert (code, rules(report)) == (0, ["BUD308", "BUD309"])
    refused, fallback = report["findings"]
    assert refused["evidence"]["levels"] == ["minimal", "high", "max"]
    assert (Path(refused["location"]["path"]).name, refused["location"]["line"]) == ("chat_template.jinja", 3)
    assert fallback["evidence"]["template_default"] == "xhigh"
    assert report["facts"]["prompts"]["default_effort"] == "xhigh"
    assert {"surface": "template", "status": "examined", "reason": None} in report["coverage"]
    assert report["verdict"] == "incomplete"


def test_a_model_with_a_tokenizer_and_no_efforts(tmp_path: Path) -> None:
    code, report = run(write(tmp_path, "b.json", QWEN38), "--model", "fixture:qwen3", "--max-tokens", "12000")
    assert (code, report["verdict"], rules(report)) == (0, "pass", ["BUD308"])
    _, report = run(write(tmp_path, "b.json", "4096"), "--model", "fixture:qwen3", "--max-tokens", "12000")
    assert rules(report) == []


@pytest.mark.parametrize(
    ("name", "content", "code", "starts"),
    [
        ("b.json", '{"low": }', 2, "b.json:1:9: not JSON"),
        ("b.yaml", "low: [1\n", 2, "b.yaml:2:1: not YAML"),
        ("b.toml", "low = \n", 2, "b.toml:1:7: not TOML"),
        ("b.json", "", 2, "b.json: it is empty"),
        ("b.json", '{"hello": "x"}', 2, "b.json: cannot tell what this is"),
        ("b.toml", "medium = " + "9" * 5000, 2, "b.toml:1:10: a number of more than 1000 digits; write"),
        ("s.sh", "vllm serve 'm", 2, "s.sh:1:12: this quote is never closed"),
        (None, None, 2, "missing.json: no such file"),
    ],
)
def test_broken_input_is_one_line_and_exit_2(
    tmp_path: Path, name: str | None, content: str | None, code: int, starts: str
) -> None:
    if name is not None and content is not None:
        write(tmp_path, name, content)
    done = subprocess.run(
        [sys.executable, "-m", "reasonctl", "validate-config", name or "missing.json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == code
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"reasonctl: {starts}")


@pytest.mark.parametrize("flag", ["--max-tokens", "--answer-reserve"])
def test_a_flag_with_more_digits_than_a_number_has(tmp_path: Path, flag: str) -> None:
    done = RUNNER.invoke(app, ["validate-config", write(tmp_path, "b.json", 5), flag, "9" * 5000])
    assert done.exit_code == 2


def test_closed_stdin_is_an_empty_configuration(tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m reasonctl validate-config - <&-"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "it is empty" in done.stderr


@pytest.mark.parametrize(
    ("name", "content", "wanted"),
    [
        ("b.json", '{"low": NaN, "medium": 1e400, "high": -Infinity}', {"NaN", "1e400", "-Infinity"}),
        ("b.toml", "low = nan\nmedium = 1e400\nhigh = -inf", {"nan", "1e400", "-inf"}),
        ("b.yaml", "low: .nan\nmedium: 1.0e+400\nhigh: -.inf", {".nan", "1.0e+400", "-.inf"}),
        ("r.json", '{"messages": [], "thinking_token_budget": NaN}', {"NaN"}),
        ("r.json", '{"messages": [], "max_tokens": 9, "thinking": {"type": "enabled", "budget_tokens": NaN}}', {"NaN"}),
        ("b.json", '{"medium": NaN, "medium": Infinity}', {"Infinity"}),
    ],
)
def test_every_report_is_strict_json(tmp_path: Path, name: str, content: str, wanted: set[str]) -> None:
    def refuse(token: str) -> None:
        raise AssertionError(f"a bare {token}")

    for args in ((), ("--dialect", "vllm")):
        done = RUNNER.invoke(app, ["validate-config", write(tmp_path, name, content), "--format", "json", *args])
        assert done.exit_code == 1
        report = json.loads(done.stdout, parse_constant=refuse)
        budgets = report["facts"]["budgets"]
        assert set(budgets.values() if isinstance(budgets, dict) else [budgets]) == wanted
    if name == "b.json" and len(wanted) == 1:
        done = RUNNER.invoke(app, ["validate-config", write(tmp_path, name, content), "--format", "json"])
        (twice,) = [f["evidence"] for f in json.loads(done.stdout)["findings"] if f["rule"] == "BUD323"]
        assert (twice["lost"], twice["kept"]) == ("NaN", "Infinity")


def test_a_model_that_charges_its_prompt_to_the_budget(tmp_path: Path) -> None:
    body = write(tmp_path, "r.json", CHAT | {"thinking_token_budget": 512, "max_tokens": 4096})
    code, report = run(body, "--model", "fixture:qwen3-thinking")
    assert (code, rules(report), report["verdict"]) == (0, ["BUD314"], "pass")
    assert report["findings"][0]["evidence"]["allowed"] == 511
    assert {"surface": "tokenizer", "status": "examined", "reason": None} in report["coverage"]
    _, report = run(body, "--model", "fixture:qwen3")
    assert rules(report) == []


def test_anthropics_rules_read_no_plain_budget(tmp_path: Path) -> None:
    body = CHAT | {"thinking_token_budget": 9000, "max_tokens": 4096}
    path = write(tmp_path, "r.json", body)
    code, report = run(path, "--dialect", "anthropic")
    assert (code, rules(report)) == (1, ["BUD318"])
    assert report["findings"][0]["hint"] == "use thinking.budget_tokens"
    assert {row["cutoff"] for row in report["facts"]["resolutions"]} == {None}
    code, report = run(write(tmp_path, "b.json", {"temperature": 1}), "--requests", path, "--dialect", "anthropic")
    assert (code, rules(report)) == (1, ["BUD318"])
    code, report = run(path)
    assert (report["facts"]["dialect"], rules(report)) == ("vllm", ["BUD306"])


@pytest.mark.parametrize(
    ("thinking", "message"),
    [
        ({"type": "enabled"}, "thinking.budget_tokens is missing"),
        ({"budget_tokens": 2048}, "thinking has no type"),
        ({"type": "on", "budget_tokens": 2048}, "thinking.type is none of enabled, disabled, adaptive"),
        ({"type": "adaptive"}, None),
        ({"type": "disabled", "budget_tokens": 5}, None),
        ({"type": "enabled", "budget_tokens": 2048}, None),
    ],
)
@pytest.mark.parametrize("body", [{}, CHAT, CHAT | {"max_tokens": 4096}])
def test_a_thinking_that_messages_refuses(
    tmp_path: Path, body: dict[str, Any], thinking: dict[str, Any], message: str | None
) -> None:
    code, report = run(write(tmp_path, "r.json", body | {"thinking": thinking}), "--max-tokens", "9000")
    (request,) = report["facts"]["requests"]
    if message is None:
        assert (code, rules(report), request["standing"]) == (0, [], "granted")
        return
    (finding,) = report["findings"]
    assert (code, finding["rule"], request["standing"], request["refused"]) == (1, "BUD319", "refused", message)
    assert message in finding["message"]
    assert {row["cutoff"] for row in report["facts"]["resolutions"]} == {None}
    code, report = run(write(tmp_path, "r.json", body | {"thinking": thinking}), "--target", "vllm==0.30.0")
    assert "BUD319" not in rules(report), "that release does not look at it"


@pytest.mark.parametrize(
    ("name", "content", "starts"),
    [
        ("r.json", {"messages": [], "max_tokens": -5}, "r.json:3:17: max_tokens is no positive integer; write"),
        ("r.json", {"messages": [], "reasoning_effort": 5}, "r.json:3:23: reasoning_effort is no text; write"),
        (
            "s.sh",
            "vllm serve m --override-generation-config '{\"max_new_tokens\": 0}'",
            "s.sh:1:63: max_new_tokens is no positive",
        ),
    ],
)
def test_values_that_no_row_could_be_true_of(tmp_path: Path, name: str, content: Any, starts: str) -> None:
    path = write(tmp_path, name, content)
    with pytest.raises(InputError) as caught:
        run(path)
    assert str(caught.value).startswith(f"{tmp_path}/{starts}")


def test_a_key_twice_in_a_flag_is_a_finding_with_a_model_and_without(tmp_path: Path) -> None:
    text = 'vllm serve m --reasoning-parser qwen3 --default-chat-template-kwargs \'{"a": 1, "a": 2}\''
    path = write(tmp_path, "serve.sh", text)
    for args in ((), ("--model", "fixture:qwen3")):
        code, report = run(path, *args)
        assert (code, rules(report)) == (1, ["BUD323"])


@pytest.mark.parametrize(
    ("budget", "reasons"),
    [
        ({"low": 1024}, ["medium is missing"]),
        ({}, ["medium is missing"]),
        ({"none": 0, "medium": 5}, ['"none" is no thinking level']),
        ({"hgih": 5, "medium": 9.5}, ['"hgih" is no thinking level', "medium is no integer of -1 or more"]),
        ({"thinking_token_budget": "x"}, ["the budget is no integer of -1 or more"]),
        ({"medium": -2}, ["medium is no integer of -1 or more"]),
        (QWEN38, None),
        ({"thinking_token_budget": 5}, None),
    ],
)
def test_a_server_that_would_not_start_has_no_rows_and_a_reason(
    tmp_path: Path, budget: dict[str, Any], reasons: list[str] | None
) -> None:
    path = write(tmp_path, "b.json", budget)
    code, report = run(path, "--max-tokens", "12000")
    refused = f"the server refuses to start: {', '.join(reasons)}" if reasons else None
    assert (code, report["facts"]["refused"]) == (int(bool(reasons)), refused)
    assert len(report["facts"]["resolutions"]) == (0 if reasons else 8)
    _, report = run(path, "--max-tokens", "12000", "--dialect", "vllm")
    assert (report["facts"]["refused"], len(report["facts"]["resolutions"])) == (None, 8), "vLLM drops it and starts"


def test_what_it_imports(tmp_path: Path) -> None:
    """Each reader is loaded only for the file that needs it, and nothing heavy ever."""
    budget = write(tmp_path, "b.json", QWEN38)
    code = (
        "import sys\nfrom reasonctl.cli import app\n"
        f"try:\n    app(['validate-config', {budget!r}, '--max-tokens', '12000', '-q'])\nexcept SystemExit as done:\n"
        "    assert done.code == 0, done.code\n"
        "heavy = ['transformers', 'tokenizers', 'torch', 'vllm', 'httpx', 'jinja2', 'huggingface_hub']\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


COMPOSE = """services:
  small:
    image: vllm/vllm-openai:v0.25.0
    environment: [VLLM_USE_V2_MODEL_RUNNER=1]
    command: --model org/small --reasoning-parser qwen3
  large:
    image: vllm/vllm-openai:v0.33.0
    command: >-
      --model org/large --reasoning-parser qwen3 BUDGET
  other:
    image: lmsysorg/sglang:latest
    command: python3 -m sglang.launch_server --model-path org/x
"""
DROPPED = "--override-generation-config '{\"thinking_token_budget\": 512}'"


def test_several_servers_in_one_file_are_one_report(tmp_path: Path) -> None:
    compose = write(tmp_path, "compose.yaml", COMPOSE.replace("BUDGET", ""))
    body = write(tmp_path, "r.json", CHAT | {"thinking_token_budget": 64, "max_tokens": 9000})
    code, report = run(compose, "--requests", body)
    small, large, other = report["facts"]["servers"]
    assert [(s["name"], s["target"]) for s in (small, large)] == [
        ("small", "vllm==0.25.0"), ("large", "vllm==0.33.0"),
    ]  # fmt: skip
    assert (other["name"], other["engine"]) == ("other", "SGLang")
    assert [s["requests"][0]["standing"] for s in (small, large)] == ["refused", "granted"]
    (finding,) = report["findings"]
    assert (code, finding["rule"], finding["subject"]["server"]) == (1, "BUD322", "small")
    assert any(row["status"] == "skipped" and "SGLang" in row["reason"] for row in report["coverage"])
    text = RUNNER.invoke(app, ["validate-config", compose, "--requests", body]).stdout
    assert "small" in text
    assert "a SGLang server, not evaluated" in text


def test_of_several_servers_the_only_one_with_a_budget_is_meant(tmp_path: Path) -> None:
    code, report = run(write(tmp_path, "compose.yaml", COMPOSE.replace("BUDGET", DROPPED)))
    assert (code, rules(report), report["facts"]["form"]) == (1, ["BUD310"], "serve")


def test_a_model_brings_its_prompts(tmp_path: Path) -> None:
    serve = write(tmp_path, "serve.sh", "vllm serve m --reasoning-parser seed_oss")
    body = write(tmp_path, "r.json", CHAT | {"thinking_token_budget": 64, "max_tokens": 9000})
    code, report = run(serve, "--requests", body, "--model", "fixture:qwen3")
    assert (code, rules(report)) == (1, ["BUD313"])
    assert report["findings"][0]["severity"] == "error"


def test_several_files_are_one_report(tmp_path: Path) -> None:
    good = write(tmp_path, "good.json", {"low": 1024, "medium": 4096})
    bad = write(tmp_path, "bad.json", {"low": 1024})
    code, made = run(good, bad, "--max-tokens", "12000")
    assert code == 1
    assert [(one["rule"], one["location"]["path"]) for one in made["findings"]] == [("BUD303", bad)]
    assert [(one["name"], one["budgets"]) for one in made["facts"]["servers"]] == [
        (good, {"low": 1024, "medium": 4096}),
        (bad, {"low": 1024}),
    ]
    budgets = [row for row in made["coverage"] if row["surface"] == "budget"]
    assert [(row["status"], row["reason"]) for row in budgets] == [("examined", good), ("examined", bad)]
    assert run(bad)[1]["findings"] == made["findings"]
    said = " ".join(RUNNER.invoke(app, ["validate-config", good, bad]).stdout.split())
    assert all(f"{name} judged as slimserve" in said for name in (good, bad))


def test_standard_input_is_read_once() -> None:
    with pytest.raises(InputError, match="CONFIG: standard input can be read once"):
        run("-", "-")


def test_a_number_under_anthropics_rules_is_held_against_every_limit(tmp_path: Path) -> None:
    number = write(tmp_path, "n.json", 4096)
    code, report = run(number, "--dialect", "anthropic")
    (found,) = report["findings"]
    assert (code, found["rule"], found["severity"], found["evidence"]["max_tokens"]) == (0, "BUD319", "warning", 4096)
    rows = [found for found in report["facts"]["resolutions"] if found["request_budget"] == 4096]
    assert [(row["max_tokens"], row["answer_capacity"]) for row in rows] == [(16384, 12287), (32768, 28671)]
    assert run(number, "--dialect", "anthropic", "--max-tokens", "4096")[0] == 1
    assert rules(run(number, "--dialect", "anthropic", "--max-tokens", "8192")[1]) == []


def test_a_server_budget_is_held_against_what_requests_really_send(tmp_path: Path) -> None:
    bodies = [("xhigh", 8192), ("xhigh", 8000), ("low", 12000), (None, 12000)]
    lines = [
        json.dumps({"max_tokens": limit, "messages": [], **({"reasoning_effort": effort} if effort else {})})
        for effort, limit in bodies
    ]
    budget, requests = write(tmp_path, "m.json", QWEN38), write(tmp_path, "r.jsonl", "\n".join(lines) + "\n")
    _, report = run(budget, "--requests", requests)
    (found,) = [f for f in report["findings"] if f["rule"] == "BUD306"]
    assert (found["subject"]["key"], found["confidence"]) == ("xhigh", "high")
    assert found["evidence"]["max_tokens"] == [8192, 8000]
    assert found["message"].startswith("request #1 and 1 more: xhigh's 8192")


SEVERAL = """services:
  hidden:
    image: vllm/vllm-openai:v0.33.0
    command: m --override-generation-config ${CFG}
  plain:
    image: vllm/vllm-openai:v0.33.0
    command: m --reasoning-parser qwen3 --override-generation-config '{"thinking_token_budget":5}'
  cut:
    image: vllm/vllm-openai:v0.33.0
    command: m --reasoning-parser
"""


def test_one_server_of_several_that_cannot_be_read_stops_no_other(tmp_path: Path) -> None:
    code, report = run(write(tmp_path, "compose.yaml", SEVERAL))
    unread = {f["location"]["line"]: f["message"] for f in report["findings"] if f["rule"] == "INT903"}
    assert code == 1
    assert [f["subject"]["server"] for f in report["findings"] if f["rule"] == "BUD310"] == ["plain"]
    assert sorted(unread) == [4, 10]
    assert "--reasoning-parser has no value" in unread[10]
    with pytest.raises(InputError, match="has no value"):
        run(write(tmp_path, "one.sh", "vllm serve m --reasoning-parser\n"))
