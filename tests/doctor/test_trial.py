"""The trial run notices when a part that everything rests on does not work."""

from __future__ import annotations

import pytest

from reasonctl import parsers
from reasonctl.doctor import trial
from reasonctl.parsers.base import Split


def test_all_works_here() -> None:
    assert trial.trial() is None


def test_a_fixture_that_did_not_arrive_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "MODEL", "fixture:gone")
    said = trial.trial()
    assert said is not None
    assert "fixture:gone" in said


def test_a_template_that_renders_otherwise_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "MODEL", "fixture:instruct")
    assert str(trial.trial()).startswith("the template of fixture:instruct renders otherwise: ")


def test_a_parser_that_splits_otherwise_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Odd:
        def begin(self, *_: object, **__: object) -> None: ...

        def split(self, text: str, ids: object) -> Split:
            return Split(None, text)

    monkeypatch.setattr(parsers, "build", lambda *_: Odd())
    assert str(trial.trial()).startswith("the model of qwen3 splits otherwise: None, 'Two and two.")
