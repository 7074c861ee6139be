"""Requirements held against what is installed, and against what can be imported."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from reasonctl.doctor import packages
from reasonctl.doctor.packages import EXTRAS, extras, libraries, library, requirements

TOP = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["project"]


def test_a_requirement_is_held_against_what_is_installed() -> None:
    fits = library("typer>=0.15")
    assert (fits.name, fits.required, fits.problem) == ("typer", ">=0.15", None)
    assert fits.version is not None
    old = library("typer>=999")
    assert old.problem == f"{old.version} is installed, >=999 is needed"
    missing = library('no-such-thing>=1; extra == "x"')
    assert missing.as_json() == {
        "name": "no-such-thing",
        "required": ">=1",
        "version": None,
        "problem": "not installed",
    }


def test_versions_are_not_judged_without_the_package_that_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "packaging.specifiers", None)
    assert library("typer>=999").problem is None
    assert library("no-such-thing>=1").problem == "not installed"


def test_every_library_of_the_project_is_listed_and_works() -> None:
    wanted = requirements()
    assert wanted is not None
    found = libraries(wanted)
    assert [one.name + one.required for one in found] == PROJECT["dependencies"]
    assert [one.problem for one in found] == [None] * len(found)


def test_a_library_that_raises_and_one_that_takes_the_process_down_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "raises.py").write_text("raise OSError('libfoo.so:\\n no such file')")
    (tmp_path / "ends.py").write_text("import os\nos._exit(9)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert packages._imported(["json", "raises", "ends", "re"]) == {
        "raises": "cannot be imported: OSError: libfoo.so: no such file",
        "ends": "cannot be imported: Python ended on it (exit code 9)",
    }
    assert packages._imported(["PyYAML"]) == {}
    assert "raises" not in sys.modules


def test_every_extra_that_evaluates_something_is_in_the_table() -> None:
    developers = {"dev", "real", "docs", "pyjq"}
    assert set(PROJECT["optional-dependencies"]) - developers == set(EXTRAS)


def test_a_missing_extra_says_what_it_costs_and_how_to_get_it() -> None:
    text = ['no-such-thing>=1; extra == "mistral"', "typer>=0.15; extra == 'gguf'", "typer>=0.15"]
    found = {extra.name: extra for extra in extras(text)}
    assert list(found) == list(EXTRAS)
    assert not found["mistral"].installed
    assert found["mistral"].install == "pip install 'reasonctl[mistral]'"
    assert found["mistral"].as_json()["without"] == EXTRAS["mistral"]
    assert found["gguf"].installed
    assert [one.name for one in found["gguf"].libraries] == ["typer"]
