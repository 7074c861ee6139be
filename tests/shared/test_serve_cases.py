"""The serve-command cases from the field, through `audit`: the expected finding and no unrelated error.

Needs ../shared beside the repository. The models they name are not here; a shipped one of the same make stands in.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from reasonctl.cli import app

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases" / "field-cases.jsonl"
if not CASES.exists():
    pytest.skip(
        "../shared/cases is not beside this clone; tests/cli/test_audit_serve_cases.py restates what it teaches",
        allow_module_level=True,
    )

BY_ID: dict[str, dict[str, Any]] = {
    case["id"].split("-")[0]: case for case in map(json.loads, CASES.read_text(encoding="utf-8").splitlines())
}
MODELS = {
    "S01": "fixture:qwen3-thinking",
    "S03": "fixture:qwen3",
    "S04": "fixture:qwen3",
    "S08": "fixture:deepseek-v31",
    "S10": "fixture:qwen3",
}
ALSO = {"S03": {"FIT101"}}
"""Errors that belong to the same fault: S03's cause is the missing parser."""
TAKES_SOME_EFFORTS = """{%- if reasoning_effort is defined and reasoning_effort not in EFFORTS -%}
{{ raise_exception('reasoning_effort: one of low, medium, xhigh') }}
{%- endif -%}
{%- for m in messages -%}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor -%}
{%- if add_generation_prompt -%}<|im_start|>assistant\n<think>\n{%- endif -%}
"""


def audit(*arguments: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["audit", *arguments, "--format", "json"])
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@pytest.mark.parametrize("name", ["S01", "S03", "S04", "S06", "S08", "S10"])
def test_the_expected_finding_and_no_unrelated_error(name: str, tmp_path: Path) -> None:
    case = BY_ID[name]
    given, expected = case["input"], case["expected"]
    model = MODELS.get(name)
    if model is None:
        template = tmp_path / "chat_template.jinja"
        template.write_text(TAKES_SOME_EFFORTS.replace("EFFORTS", json.dumps(given["template_accepts"])))
        model = str(template)
    arguments = ["--serve", given["serve"], "--model", model]
    version = given.get("vllm_version") or (case["version"] if case["version"].count(".") == 2 else None)
    if version is not None:
        arguments += ["--target", f"vllm=={version.lstrip('>=')}"]
    if "request" in given:
        body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
        body |= {key: value for key, value in given["request"].items() if key != "enable_thinking"}
        if isinstance(body.get("response_format"), str):
            body["response_format"] = {"type": body["response_format"], "json_schema": {"name": "x", "schema": {}}}
        (tmp_path / "requests.json").write_text(json.dumps(body))
        arguments += ["--requests", str(tmp_path / "requests.json")]
    if "client_reads" in given:
        (tmp_path / "client.py").write_text(f"print(answer.choices[0].message.{given['client_reads']})\n")
        arguments += ["--client", str(tmp_path / "client.py")]
    found = audit(*arguments)["findings"]
    severities = {finding["rule"]: finding["severity"] for finding in found}
    rule = expected.get("rule") or "TPL009"
    assert severities.get(rule) == expected["severity"]
    errors = {finding["rule"] for finding in found if finding["severity"] == "error"}
    assert errors - {rule} - ALSO.get(name, set()) == set()


def test_s06_names_the_map_that_mends_it(tmp_path: Path) -> None:
    template = tmp_path / "chat_template.jinja"
    template.write_text(TAKES_SOME_EFFORTS.replace("EFFORTS", json.dumps(BY_ID["S06"]["input"]["template_accepts"])))
    serve = ("--serve", BY_ID["S06"]["input"]["serve"], "--model", str(template))
    (finding,) = [each for each in audit(*serve)["findings"] if each["rule"] == "TPL009"]
    assert '"high": "xhigh"' in finding["hint"]
    (older,) = [e for e in audit(*serve, "--target", "vllm==0.32.0")["findings"] if e["rule"] == "TPL009"]
    assert "--reasoning-effort-map" not in older["hint"]
