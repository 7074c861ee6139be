"""One server of several that cannot be read or told keeps nobody from the others; what is unknown is said to be so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

COMMAND = "audit"
Run = Callable[..., tuple[int, str, str]]
QWEN = ("--model", "fixture:qwen3")


def as_json(run: Run, *arguments: str) -> tuple[int, dict[str, Any]]:
    code, out, err = run(*arguments, "--format", "json")
    assert out, err
    report: dict[str, Any] = json.loads(out)
    return code, report


def about(report: dict[str, Any], server: str, *severities: str) -> list[str]:
    wanted = severities or ("error",)
    return sorted(
        {f["rule"] for f in report["findings"] if f["subject"].get("server") == server and f["severity"] in wanted}
    )


def compose(folder: Path, command: str) -> str:
    path = folder / "compose.yaml"
    path.write_text(
        "services:\n  odd:\n    image: vllm/vllm-openai:v0.33.0\n"
        f"    command: {json.dumps(command)}\n"
        "  plain:\n    image: vllm/vllm-openai:v0.33.0\n    command: m --reasoning-parser deepseek_r1\n"
    )
    return str(path)


@pytest.mark.parametrize(
    ("command", "rules", "unseen"),
    [
        ("m --reasoning-parser ${PARSER}", [], "parser"),
        ("m --reasoning-parser qwen3 --chat-template examples/none.jinja", [], "template"),
        ("m --reasoning-parser qwen3 --chat-template ${T}", [], "template"),
        ("m --reasoning-parser qwen3 --default-chat-template-kwargs '{True}'", ["SRV214"], None),
        ("m --reasoning-parser", ["SRV214"], "parser"),
    ],
)
def test_the_other_server_of_a_file_is_audited(
    run: Run, tmp_path: Path, command: str, rules: list[str], unseen: str | None
) -> None:
    code, report = as_json(run, compose(tmp_path, command), *QWEN)
    assert code == 1
    assert "FIT105" in about(report, "plain")
    assert about(report, "odd") == rules
    skipped = {r["surface"] for r in report["coverage"] if r["status"] == "skipped" and r["reason"].startswith("odd")}
    assert (unseen in skipped) if unseen else not skipped


def test_a_server_that_cannot_be_looked_at_is_named_and_passed_by(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.jinja").write_text("")
    path = compose(tmp_path, "m --reasoning-parser qwen3 --chat-template empty.jinja")
    code, report = as_json(run, path, "--model-map", "m=fixture:qwen3")
    assert code == 1
    assert "FIT105" in about(report, "plain")
    (unread,) = [f for f in report["findings"] if f["rule"] == "INT903"]
    assert "the server odd was not looked at: is empty" in unread["message"]
    assert [server["name"] for server in report["facts"]["servers"]] == ["plain"]
    assert run("--serve", "vllm serve m --chat-template " + str(tmp_path / "empty.jinja"), *QWEN)[0] == 2


def test_a_parser_that_only_the_shell_knows_is_no_missing_parser(run: Run) -> None:
    code, report = as_json(run, "--serve", "vllm serve m --reasoning-parser $P", *QWEN)
    assert (code, report["verdict"]) == (0, "incomplete")
    assert not [f for f in report["findings"] if f["rule"].startswith("FIT1")]
    assert report["facts"]["parser"]["judged"] is None


@pytest.mark.parametrize(
    ("flags", "target", "rules"),
    [
        ("--reasoning-parser auto", "vllm==0.33.0", ["FIT102"]),
        ("--reasoning-parser none", "vllm==0.32.0", ["FIT102"]),
        ("--reasoning-parser none", "vllm==0.33.0", ["FIT101"]),
        ("--reasoning-parser qwen3", "vllm==0.8.5", ["FIT101"]),
        ("--structured-outputs-config.reasoning_parser nope", "vllm==0.33.0", ["FIT102"]),
    ],
)
def test_words_that_are_names_to_vllm(run: Run, flags: str, target: str, rules: list[str]) -> None:
    text = f"vllm serve m {flags}"
    code, report = as_json(run, "--serve", text, *QWEN, "--target", target)
    assert (code, about(report, "m")) == (1, rules)
    if rules == ["FIT102"]:
        (found,) = [f for f in report["findings"] if f["rule"] == "FIT102"]
        assert (found["location"]["path"], found["location"]["column"]) == ("--serve", 14)


def test_auto_on_the_call_itself_still_ranks(run: Run) -> None:
    code, report = as_json(run, "--serve", "vllm serve m --reasoning-parser auto", *QWEN, "--parser", "auto")
    assert (code, report["facts"]["parser"]["judged"]) == (0, "qwen3")


PLUGIN = """from vllm.reasoning import ReasoningParserManager, ReasoningParser
@ReasoningParserManager.register_module(["mine", "qwen3"])
class Mine(ReasoningParser):
    pass
"""


@pytest.mark.parametrize(
    ("name", "plugin", "rules", "unjudged"),
    [
        ("mine", "plug.py", [], True),
        ("qwen3", "plug.py", [], True),
        ("mine", "elsewhere.py", [], True),
        ("yours", "plug.py", ["FIT102"], False),
        ("deepseek_r1", "plug.py", ["FIT105"], False),
    ],
)
def test_a_plugins_parser_is_known_and_not_judged(
    run: Run, tmp_path: Path, name: str, plugin: str, rules: list[str], unjudged: bool
) -> None:
    (tmp_path / "plug.py").write_text(PLUGIN)
    script = tmp_path / "run.sh"
    script.write_text(f"vllm serve m --reasoning-parser {name} --reasoning-parser-plugin {plugin}\n")
    code, report = as_json(run, "--serve", str(script), *QWEN)
    assert code == bool(rules)
    assert set(rules) <= set(about(report, "m")) if rules else about(report, "m") == []
    (row,) = [row for row in report["coverage"] if row["surface"] == "parser"]
    assert (row["status"] == "skipped" and "--vllm" in row["reason"]) is unjudged


MIXED = """services:
  old:
    image: vllm/vllm-openai:v0.22.1
    command: m --reasoning-parser glm47
  new:
    image: vllm/vllm-openai:v0.33.0
    command: m --reasoning-parser qwen3 --enable-reasoning
  ascend:
    image: quay.io/ascend/vllm-ascend:v0.9.1
    command: vllm serve m --reasoning-parser qwen3 --enable-reasoning
"""


def test_each_line_names_the_release_its_server_was_judged_as(run: Run, tmp_path: Path) -> None:
    (tmp_path / "compose.yaml").write_text(MIXED)
    _, out, _ = run(str(tmp_path / "compose.yaml"), *QWEN, "--select", "FIT102,SRV201", "--format", "concise")
    told = {(line.split(" [")[1].split(" ")[0], line.split("server ")[1].split(",")[0]) for line in out.splitlines()}
    assert told == {("vllm==0.22.1", "old"), ("vllm==0.33.0", "new"), ("vllm==0.33.0", "ascend")}


def test_a_release_that_nothing_tells_is_said_to_be_assumed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "compose.yaml").write_text(MIXED)
    _, report = as_json(run, str(tmp_path / "compose.yaml"), *QWEN, "--select", "SRV201")
    assert {f["subject"]["server"]: f["confidence"] for f in report["findings"]} == {"new": "high", "ascend": "low"}
    rows = {row["reason"].split(":")[0]: row for row in report["coverage"] if row["surface"] == "server"}
    assert (rows["ascend"]["status"], "the version of vllm-ascend" in rows["ascend"]["reason"]) == ("partial", True)
    assert (rows["new"]["status"], rows["new"]["reason"]) == ("examined", "new")
    _, told = as_json(run, str(tmp_path / "compose.yaml"), *QWEN, "--select", "SRV201", "--target", "vllm==0.33.0")
    assert {f["confidence"] for f in told["findings"]} == {"high"}


def test_a_clients_old_read_is_one_finding_whatever_it_is_read_from(run: Run, tmp_path: Path) -> None:
    (tmp_path / "compose.yaml").write_text(MIXED)
    (tmp_path / "client").mkdir()
    (tmp_path / "client" / "a.py").write_text("print(delta.reasoning_content)\n")
    (tmp_path / "client" / "b.json").write_bytes(bytes(range(256)) * 4)
    arguments = (str(tmp_path / "compose.yaml"), *QWEN, "--client", str(tmp_path / "client"))
    _, report = as_json(run, *arguments, "--select", "SRV208,INT903")
    (found,) = [f for f in report["findings"] if f["rule"] == "SRV208"]
    assert "server" not in found["subject"]
    assert found["subject"]["model"] == "fixture:qwen3"
    assert "vllm==0.22.1 never sends" in found["message"]
    (unread,) = [f for f in report["findings"] if f["rule"] == "INT903"]
    assert unread["location"]["path"].endswith("b.json")
    one = "vllm serve m --reasoning-parser qwen3"
    _, single = as_json(run, "--serve", one, *QWEN, "--client", str(tmp_path / "client" / "a.py"), "--select", "SRV208")
    assert [f["subject"]["server"] for f in single["findings"]] == ["m"]


def test_tools_that_only_the_shell_names_a_parser_for_are_tools(run: Run) -> None:
    for parser in ("hermes", "$TOOLS"):
        text = f"vllm serve m --reasoning-parser deepseek_r1 --enable-auto-tool-choice --tool-call-parser {parser}"
        _, report = as_json(run, "--serve", text, *QWEN, "--select", "FIT111,SRV205,SRV215")
        assert [(f["rule"], f["severity"]) for f in report["findings"]] == [("FIT111", "error")]
