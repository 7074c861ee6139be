"""`reasonctl init`: what a project has to check is found, and the file that is written runs."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reasonctl.settings.find import find
from reasonctl.settings.settings import read_settings

COMMAND = "init"
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    shutil.copytree(EXAMPLES / "mended", folder)
    (folder / "reasonctl.toml").unlink()
    return folder


def test_what_there_is_is_found_and_the_gate_runs_it(run: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "notes.jsonl").write_text('{"question": "no trace", "rating": 3}\n')
    (project / "package.json").write_text('{"name": "x", "version": 1}')
    for name in ("pipe.jsonl", "pipe.yaml", "pipe-budget.json"):
        os.mkfifo(project / name)  # waited for, it would never be read
    (project / ".hidden").mkdir()
    shutil.copy(project / "budgets.json", project / ".hidden" / "budgets.json")
    code, out, err = run(str(project))
    assert (code, err) == (0, "")
    assert "/models/assistant is models/assistant" in out
    settings = read_settings(find(project))
    assert settings.models == {"/models/assistant": "models/assistant"}
    tables = [(one.command, {key: entry.value.plain() for key, entry in one.keys.items()}) for one in settings.tables]
    assert tables == [
        ("audit", {"serve": "deploy/compose.yaml"}),
        ("replay", {"traces": ["traces/monday.jsonl"], "model": "models/assistant"}),
        ("validate-config", {"budget": "budgets.json", "model": "models/assistant"}),
    ]
    monkeypatch.setattr(sys.modules[__name__], "COMMAND", "gate")
    code, out, _ = run("--config", str(project / "reasonctl.toml"))
    assert code == 0
    assert out.splitlines()[-1].startswith("PASS  0 errors")


def test_names_of_models_that_are_elsewhere_are_left_to_be_filled_in(run: Run, project: Path) -> None:
    shutil.rmtree(project / "models")
    code, out, _ = run(str(project))
    assert code == 0
    assert "/models/assistant is not here: fill in [models]" in out
    assert '# "/models/assistant" = "models/assistant"' in (project / "reasonctl.toml").read_text()


def test_files_that_could_not_be_read_are_named(run: Run, project: Path) -> None:
    (project / "deploy" / "broken.yaml").write_text("vllm: [serve\n")
    code, _, err = run(str(project))
    assert code == 0
    assert err.startswith("reasonctl: not read: deploy/broken.yaml:")


def test_nothing_is_lost_and_nothing_is_made_up(run: Run, project: Path, tmp_path: Path) -> None:
    (project / "reasonctl.toml").write_text('target = "vllm"')
    code, _, err = run(str(project))
    assert code == 2
    assert "has settings already" in err
    assert (project / "reasonctl.toml").read_text() == 'target = "vllm"'
    (tmp_path / "empty").mkdir()
    code, _, err = run(str(tmp_path / "empty"))
    assert (code, list((tmp_path / "empty").iterdir())) == (2, [])
    assert "no serve command, model, trace or budget" in err
    assert run(str(tmp_path / "gone"))[0] == 2
    assert run(str(project / "budgets.json"))[0] == 2
