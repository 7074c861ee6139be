"""`reasonctl config show`: which settings hold, and where each is from."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

COMMAND = "config"
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
Run = Callable[..., tuple[int, str, str]]


def test_every_setting_with_its_origin(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES / "mended" / "deploy")
    monkeypatch.setenv("REASONCTL_FAIL_ON", "warning")
    code, out, _ = run("show", "--format", "json")
    shown = json.loads(out)
    assert code == 0
    assert shown["schema"] == "reasonctl.config/1"
    assert shown["file"] == "reasonctl.toml"
    assert shown["settings"]["target"] == {"value": "vllm==0.33.0", "from": "reasonctl.toml:1"}
    assert shown["settings"]["fail-on"] == {"value": "warning", "from": "REASONCTL_FAIL_ON"}
    assert shown["settings"]["min-confidence"] == {"value": "medium", "from": "default"}
    assert shown["models"] == {"/models/assistant": "models/assistant"}
    assert [one["rule"] for one in shown["ignore"]] == ["off-switch-ignored", "effort-splits-template-and-parser"]
    assert [one["name"] for one in shown["tables"]] == [
        "audit deploy/compose.yaml",
        "audit models/assistant",
        "replay models/assistant",
        "validate-config budgets.json",
    ]


def test_the_text_says_the_same(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES / "broken")
    code, out, _ = run("show")
    assert code == 0
    assert "target              vllm==0.33.0                reasonctl.toml:1\n" in out
    assert "fail-on-incomplete  false                       default\n" in out
    assert "model /models/assistant is models/assistant\n" in out
    assert "  replay models/assistant  (reasonctl.toml:" in out


def test_without_a_file_the_defaults_hold(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = run("show")
    assert code == 0
    assert out.startswith("file   none: ")


def test_a_table_that_could_not_run_is_refused_here_already(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "reasonctl.toml"
    file.write_text("[[audit]]\nmodell = 'x'\n")
    code, _, err = run("show", "--config", str(file))
    assert code == 2
    assert "unknown key 'modell' of [[audit]]; did you mean model?" in err
    assert run("show", "--format", "yaml")[0] == 2
