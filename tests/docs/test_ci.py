"""The files that put reasonctl into a pipeline: docs/ci.md's, action.yml and .pre-commit-hooks.yaml, parsed and run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from reasonctl.settings.find import find
from reasonctl.settings.settings import read_settings

TOP = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
PAGE = (TOP / "docs" / "ci.md").read_text("utf-8")
FILES = dict(re.findall(r'^```yaml title="([^"]+)"\n(.*?)^```$', PAGE, re.MULTILINE | re.DOTALL))
SCHEMAS = {
    ".github/workflows/reasonctl.yml": "vendor.github-workflows",
    ".github/workflows/reasonctl-action.yml": "vendor.github-workflows",
    ".gitlab-ci.yml": "vendor.gitlab-ci",
}
ENV = {key: value for key, value in os.environ.items() if not key.startswith(("GITHUB_", "REASONCTL_", "PRE_COMMIT"))}


def call(*command: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    path = f"{BIN}:{ENV['PATH']}"
    return subprocess.run(command, cwd=cwd, env=ENV | {"PATH": path} | env, capture_output=True, text=True, check=False)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A project with every file of the page, and our action and hooks."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    for name in ("action.yml", ".pre-commit-hooks.yaml"):
        shutil.copy(TOP / name, tmp_path / name)
    return tmp_path


def test_the_page_has_a_file_for_every_system() -> None:
    assert set(FILES) == {*SCHEMAS, ".pre-commit-config.yaml", "templates/reasonctl.yaml"}


@pytest.mark.parametrize(("name", "schema"), [*SCHEMAS.items(), ("action.yml", "vendor.github-actions")])
def test_the_systems_own_schema_takes_it(name: str, schema: str, written: Path) -> None:
    done = call("check-jsonschema", "--builtin-schema", schema, name, cwd=written)
    assert done.returncode == 0, done.stdout + done.stderr
    broken = yaml.safe_load((written / name).read_text())
    broken.get("runs", broken.get("jobs", {}).get("gate", broken.get("reasonctl")))["steps"] = "x"
    (written / name).write_text(yaml.safe_dump(broken))
    assert call("check-jsonschema", "--builtin-schema", schema, name, cwd=written).returncode == 1


def test_zizmor_has_nothing_to_say(written: Path) -> None:
    shutil.rmtree(written / "templates")
    done = call("zizmor", "--offline", "--no-config", "--collect", "all", "--pedantic", ".", cwd=written)
    assert done.returncode == 0, done.stdout + done.stderr
    action = (
        (written / "action.yml").read_text().replace('"$RUNNER_TEMP/reasonctl/bin/reasonctl"', "${{ inputs.args }}")
    )
    (written / "action.yml").write_text(action)
    assert call("zizmor", "--offline", "--no-config", "--collect", "all", ".", cwd=written).returncode != 0


def test_kubernetes_takes_the_job_and_it_is_a_helm_hook() -> None:
    settings, job = yaml.safe_load_all(FILES["templates/reasonctl.yaml"])
    for part in (settings, job):
        kubernetes_validate.validate(part, "1.31", strict=True)
        assert part["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**job, "spec": {**job["spec"], "backoffLimits": 1}}, "1.31", strict=True)
    weights = [int(part["metadata"]["annotations"]["helm.sh/hook-weight"]) for part in (settings, job)]
    assert weights[0] < weights[1]
    spec = job["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert {volume["name"] for volume in spec["volumes"]} == set(mounts)
    assert container["args"][0].splitlines()[-1].endswith(f"--config {mounts['settings']}/reasonctl.toml")


def test_the_settings_in_the_config_map_are_understood(tmp_path: Path) -> None:
    settings, _ = yaml.safe_load_all(FILES["templates/reasonctl.yaml"])
    (tmp_path / "reasonctl.toml").write_text(settings["data"]["reasonctl.toml"])
    read = read_settings(find(tmp_path))
    assert read.target == "vllm==0.33.0"
    assert [table.command for table in read.tables] == ["audit"]


@pytest.mark.parametrize(("model", "code"), [("qwen3", 0), ("gpt-oss", 1)])
def test_the_jobs_script_ends_as_the_gate_does(model: str, code: int, tmp_path: Path) -> None:
    """Its own lines, with its folders below a temporary one and reasonctl where its pip would put it."""
    settings, job = yaml.safe_load_all(FILES["templates/reasonctl.yaml"])
    (container,) = job["spec"]["template"]["spec"]["containers"]
    for mount in container["volumeMounts"]:
        (tmp_path / mount["name"]).mkdir()

    def placed(text: str) -> str:
        for mount in container["volumeMounts"]:
            text = re.sub(rf"{mount['mountPath']}(?=/)", str(tmp_path / mount["name"]), text)
        return text

    (tmp_path / "settings" / "reasonctl.toml").write_text(placed(settings["data"]["reasonctl.toml"]))
    (tmp_path / "models" / "qwen3.5-27b").symlink_to(TOP / "fixtures" / "models" / model)
    venv = tmp_path / "work" / "venv" / "bin"
    stub = tmp_path / "bin" / "python"
    stub.parent.mkdir()
    stub.write_text(
        f"#!/bin/sh\nmkdir -p {venv} && ln -s {BIN}/reasonctl {venv} && ln -s {shutil.which('true')} {venv}/pip\n"
    )
    stub.chmod(0o755)
    command = [*container["command"], placed(container["args"][0])]
    done = call(*command, cwd=tmp_path, PATH=f"{stub.parent}:{ENV['PATH']}")
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("FAIL" if code else "PASS")


def check_step() -> dict[str, Any]:
    (step,) = [
        one for one in yaml.safe_load((TOP / "action.yml").read_text())["runs"]["steps"] if one["name"] == "Check"
    ]
    return dict(step)


def run_action(project: Path, temp: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """The action's check as a runner starts it, with reasonctl installed where its first step puts it."""
    temp.mkdir(exist_ok=True)
    (temp / "reasonctl").symlink_to(BIN.parent)
    step = check_step()
    given = {"args": "gate", "config": "", "sarif": ""} | inputs
    env = {name: given[re.findall(r"inputs\.([a-z]+)", value)[0]] for name, value in step["env"].items()}
    script = temp / "script.sh"
    script.write_text(step["run"])
    # as a runner starts `shell: bash`
    return call("bash", "--noprofile", "--norc", "-eo", "pipefail", script, cwd=project, RUNNER_TEMP=str(temp), **env)


def test_the_action_checks_a_project(tmp_path: Path) -> None:
    project, temp = tmp_path / "project", tmp_path / "temp"
    shutil.copytree(TOP / "docs" / "examples" / "broken", project)
    done = run_action(project, temp, sarif="out put.sarif")
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("::error file=")
    results = json.loads((project / "out put.sarif").read_text("utf-8"))["runs"][0]["results"]
    assert {"SRV201", "BUD301"} <= {result["ruleId"] for result in results}


def test_the_actions_arguments_are_words_and_no_shell(tmp_path: Path) -> None:
    (tmp_path / "a b.json").write_text('{"low": 1024}')
    done = run_action(
        tmp_path, tmp_path / "temp", args="validate-config 'a b.json' --select BUD3 --target \"$(touch pwned)\""
    )
    assert done.returncode == 2
    assert "--target: '$(touch pwned)' names no server" in done.stderr
    assert not (tmp_path / "pwned").exists()
    (tmp_path / "temp" / "reasonctl").unlink()
    done = run_action(tmp_path, tmp_path / "temp", args="validate-config 'a b.json'")
    assert done.returncode == 1
    assert "::error file=a b.json,line=1,col=1,title=BUD303 medium-missing::" in done.stdout


@pytest.fixture
def committed(tmp_path: Path) -> Path:
    """A repository with files for the hooks, and our hooks run by the reasonctl that is installed."""
    hooks = yaml.safe_load((TOP / ".pre-commit-hooks.yaml").read_text())
    local = [{**hook, "language": "system"} for hook in hooks]
    files = {
        ".pre-commit-config.yaml": yaml.safe_dump({"repos": [{"repo": "local", "hooks": local}]}),
        "deploy/budgets.json": '{"low": 1024, "medium": 4096}',
        "deploy/thinking-budget.yaml": "low: 1024\nmedium: 4096\n",
        "other.json": '{"low": 1024}',
        "models/a/chat_template.jinja": "{{ messages[0].content }}",
        "models/b/my-chat-template.j2": "{{ messages[0].content }}",
        "page.jinja": "{{ raise }}",
        "reasonctl.toml": '[[validate-config]]\nbudget = "deploy/budgets.json"\n',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for command in (("init", "-q"), ("add", ".")):
        assert call("git", *command, cwd=tmp_path).returncode == 0
    return tmp_path


def hook(project: Path, name: str) -> subprocess.CompletedProcess[str]:
    home = project / ".home"
    home.mkdir(exist_ok=True)
    return call(
        "pre-commit", "run", name, "--all-files", "--verbose", cwd=project, PRE_COMMIT_HOME=str(home), HOME=str(home)
    )


def test_the_hooks_are_what_pre_commit_takes(written: Path) -> None:
    assert call("pre-commit", "validate-manifest", ".pre-commit-hooks.yaml", cwd=written).returncode == 0
    assert call("pre-commit", "validate-config", ".pre-commit-config.yaml", cwd=written).returncode == 0
    known = {one["id"] for one in yaml.safe_load((TOP / ".pre-commit-hooks.yaml").read_text())}
    (repo,) = yaml.safe_load(FILES[".pre-commit-config.yaml"])["repos"]
    assert {one["id"] for one in repo["hooks"]} <= known


def test_several_budget_files_are_checked_in_one_call(committed: Path) -> None:
    done = hook(committed, "reasonctl-validate-config")
    assert done.returncode == 0, done.stdout
    assert "BUD306" in done.stdout
    assert "deploy/budgets.json:1:" in done.stdout
    assert "deploy/thinking-budget.yaml:2:" in done.stdout
    (committed / "deploy" / "budgets.json").write_text('{"low": 1024, "hgih": 2048, "medium": 4096}')
    done = hook(committed, "reasonctl-validate-config")
    assert done.returncode == 1
    assert "deploy/budgets.json:1:15: error BUD301 unknown-effort" in done.stdout
    assert "other.json" not in done.stdout


def test_chat_templates_are_audited(committed: Path) -> None:
    done = hook(committed, "reasonctl-audit-template")
    assert done.returncode == 0, done.stdout
    (committed / "models" / "b" / "my-chat-template.j2").write_text("{{ raise_exception('no') }}")
    done = hook(committed, "reasonctl-audit-template")
    assert done.returncode == 1
    assert "models/b/my-chat-template.j2:1:1: error TPL008 render-failed" in done.stdout
    assert "page.jinja" not in done.stdout


def test_the_gate_is_a_hook_too(committed: Path) -> None:
    assert hook(committed, "reasonctl-gate").returncode == 0
    (committed / "deploy" / "budgets.json").write_text("{}")
    done = hook(committed, "reasonctl-gate")
    assert done.returncode == 1
    assert "error BUD303" in done.stdout
