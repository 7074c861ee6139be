"""`reasonctl audit` of servers as people write them down: where each comes from, with which model, and what is sent."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reasonctl.fixtures import ROOT

COMMAND = "audit"
Run = Callable[..., tuple[int, str, str]]

DEPLOYMENT = """kind: Deployment
metadata: {name: chat}
spec:
  template:
    spec:
      containers:
      - name: vllm
        image: vllm/vllm-openai:v0.32.0
        env: [{name: HF_TOKEN, value: hunter2-secret}]
        args: ["org/m", "--reasoning-parser", "PARSER", "--served-model-name", "chat-large"]
      - name: other
        image: lmsysorg/sglang:latest
"""


def as_json(run: Run, *arguments: str) -> tuple[int, dict[str, Any]]:
    code, out, _ = run(*arguments, "--format", "json")
    report: dict[str, Any] = json.loads(out)
    return code, report


def deployment(folder: Path, parser: str = "qwen3") -> Path:
    path = folder / "chat.yaml"
    path.write_text(DEPLOYMENT.replace("PARSER", parser))
    return path


def rules(report: dict[str, Any], *severities: str) -> list[str]:
    return sorted({f["rule"] for f in report["findings"] if f["severity"] in (severities or ("error",))})


@pytest.mark.parametrize("name", ["org/m", "chat-large", "Deployment/chat/vllm"])
def test_a_servers_model_is_found_by_any_of_its_names(run: Run, tmp_path: Path, name: str) -> None:
    code, report = as_json(run, str(deployment(tmp_path)), "--model-map", f"{name}=fixture:qwen3")
    assert (code, report["target"], rules(report)) == (0, "vllm==0.32.0", [])
    mine, other = report["facts"]["servers"]
    assert (mine["name"], mine["location"]["line"], mine["target"]) == ("Deployment/chat/vllm", 7, "vllm==0.32.0")
    assert mine["model"]["source"] == "fixture:qwen3"
    assert (other["name"], other["engine"]) == ("Deployment/chat/other", "SGLang")
    assert any("SGLang" in str(row["reason"]) and row["status"] == "skipped" for row in report["coverage"])


def test_a_finding_points_at_the_flag_in_the_manifest_and_tells_no_secret(run: Run, tmp_path: Path) -> None:
    path = deployment(tmp_path, "deepseek_r1")
    code, out, err = run(str(path), "--model-map", "org/m=fixture:qwen3", "--verbose")
    assert code == 1
    assert "chat.yaml:10:26" in out.replace("\n", "")
    assert "hunter2" not in out + err


def test_a_model_that_is_not_here_leaves_its_facts_unexamined(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_text("vllm serve /mnt/nowhere --reasoning-parser qwen3 --enable-reasoning\n")
    code, report = as_json(run, "--serve", str(path))
    assert (code, rules(report)) == (1, ["SRV201"])
    status = {row["surface"]: row["status"] for row in report["coverage"]}
    assert status["template"] == "skipped"
    assert report["verdict"] == "fail"


def test_a_map_for_a_model_that_no_server_has_is_refused(run: Run, tmp_path: Path) -> None:
    code, _, err = run(str(deployment(tmp_path)), "--model-map", "org/x=fixture:qwen3")
    assert code == 2
    assert "no server's model is called 'org/x'" in err
    assert "chat-large" in err
    assert run(str(deployment(tmp_path)), "--model-map", "org/m")[0] == 2


def test_a_folder_is_walked_and_what_cannot_be_read_is_said(run: Run, tmp_path: Path) -> None:
    deployment(tmp_path)
    (tmp_path / "broken.yaml").write_text("vllm: [\n")
    (tmp_path / "run.sh").write_text("vllm serve fixture:qwen3 --reasoning-parser qwen3\n")
    code, report = as_json(run, str(tmp_path), "--model-map", "org/m=fixture:qwen3")
    assert [server["name"] for server in report["facts"]["servers"]] == [
        "Deployment/chat/vllm",
        "fixture:qwen3",
        "Deployment/chat/other",
    ]
    assert code == 0
    assert "INT903" in rules(report, "warning")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.yaml", "kind: Service\nmetadata: {name: s}\n", "no server in it"),
        ("t.yaml", "args: {{ .Values.args }}\n", "helm template"),
        ("run.sh", "echo hello\n", "no server in it"),
    ],
)
def test_nothing_to_examine_is_refused(run: Run, tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    code, _, err = run(str(tmp_path / name))
    assert (code, message in err) == (2, True)
    assert len(err.strip().splitlines()) == 1
    if "helm" not in message:
        assert run(str(tmp_path))[0] == 2


def test_only_other_engines_are_incomplete(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_text("python -m sglang.launch_server --model-path org/m --reasoning-parser qwen3\n")
    code, report = as_json(run, str(path))
    assert (code, report["verdict"], report["findings"]) == (0, "incomplete", [])
    assert run(str(path), "--fail-on-incomplete")[0] == 1


def requests_file(folder: Path, *bodies: dict[str, Any]) -> str:
    path = folder / "requests.jsonl"
    path.write_text("".join(json.dumps({"model": "m", "messages": [], **body}) + "\n" for body in bodies))
    return str(path)


def test_kwargs_of_real_requests_weigh(run: Run, tmp_path: Path) -> None:
    """`thinking=false` is nothing this template reads, and deepseek_v4 follows it: nobody's fault until it is sent."""
    call = ("--model", "fixture:qwen3-thinking", "--parser", "deepseek_v4")
    quiet_code, quiet = as_json(run, *call)
    sent = requests_file(tmp_path, {"chat_template_kwargs": {"thinking": False}}, {})
    code, report = as_json(run, *call, "--requests", sent)
    assert (quiet_code, code) == (0, 1)
    assert rules(quiet) == []
    assert rules(report) != []
    assert report["facts"]["requests"] == {
        "given": 2,
        "variants": [{"variant": {}, "count": 1}, {"variant": {"thinking": False}, "count": 1}],
    }


def test_structured_output_without_a_parser(run: Run, tmp_path: Path) -> None:
    sent = requests_file(tmp_path, {"response_format": {"type": "json_schema", "json_schema": {}}})
    command = "vllm serve fixture:qwen3"
    code, report = as_json(run, "--serve", command, "--target", "vllm==0.23.0", "--requests", sent)
    assert code == 1
    assert "SRV204" in rules(report, "warning")
    finding = next(f for f in report["findings"] if f["rule"] == "SRV204")
    assert finding["location"]["line"] == 1
    _, without = as_json(run, "--serve", command, "--target", "vllm==0.23.0")
    assert "SRV204" not in rules(without, "warning")


@pytest.mark.parametrize(("parser", "fires"), [("deepseek_r1", True), ("qwen3", False)])
def test_a_grammar_behind_a_tools_result(run: Run, parser: str, fires: bool) -> None:
    """The call's own thought stands closed in the prompt: deepseek_r1 takes it for the new one, qwen3 does not."""
    sent = str(ROOT / "requests" / "json-after-tool.json")
    _, report = as_json(run, "--model", "fixture:qwen3", "--parser", parser, "--requests", sent)
    found = [f for f in report["findings"] if f["rule"] == "SRV204"]
    assert [f["location"]["line"] for f in found] == ([50] if fires else [])
    assert all("a tool's result" in f["message"] for f in found)


def test_a_client_that_reads_the_old_field(run: Run, tmp_path: Path) -> None:
    client = tmp_path / "client.py"
    client.write_text("print(answer.choices[0].message.reasoning_content)\n")
    call = ("--serve", "vllm serve fixture:qwen3 --reasoning-parser qwen3", "--client", str(client))
    code, report = as_json(run, *call, "--target", "vllm==0.17.1")
    assert (code, rules(report)) == (1, ["SRV208"])
    assert report["findings"][0]["location"]["line"] == 1
    assert as_json(run, *call, "--target", "vllm==0.15.1")[0] == 0


def test_the_parser_of_structured_outputs_config_is_judged(run: Run) -> None:
    command = "vllm serve fixture:qwen3 --structured-outputs-config.reasoning_parser=deepseek_r1"
    code, report = as_json(run, "--serve", command)
    assert code == 1
    assert report["facts"]["parser"]["configured"] == "deepseek_r1"
    assert "FIT101" not in rules(report)
    assert "SRV206" in rules(report, "warning")


def test_a_map_for_several_manifests_may_name_models_that_this_one_has_not(run: Run, tmp_path: Path) -> None:
    path = str(deployment(tmp_path))
    given = ("--model-map", "org/m=fixture:qwen3", "--model-map", "org/x=fixture:instruct")
    code, out, err = run(path, *given, "--format", "json")
    assert (code, json.loads(out)["facts"]["servers"][0]["model"]["source"]) == (0, "fixture:qwen3")
    assert "no server's model here is called 'org/x'; there is " in err
