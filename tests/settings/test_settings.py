"""The settings file: found, read, and refused with its place where it is wrong."""

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonctl.errors import InputError
from reasonctl.settings.find import find
from reasonctl.settings.settings import Settings, read_settings

WHOLE = """
target = "vllm==0.32.0"
fail-on = "warning"
min-confidence = "low"
fail-on-incomplete = true
baseline = "known.json"
select = ["FIT", "content-null"]
per-rule-severity = {FIT107 = "error", closed-bare = "warning"}

[models]
"org/here" = "models/here"
"org/there" = "org/there-fp8"

[[ignore]]
rule = "TPL002"
subject = {model = "./models/here/", variant = {enable_thinking = true}}
reason = "never  switched\\toff here"
expires = 2027-06-01

[[audit]]
model = "models/here"

[[audit]]
serve = "deploy.yaml"

[[replay]]
traces = ["a.jsonl"]
"""


def read(text: str, folder: Path, name: str = "reasonctl.toml") -> Settings:
    (folder / name).write_text(text)
    return read_settings(find(folder))


def test_every_key_is_read(tmp_path: Path) -> None:
    (tmp_path / "models" / "here").mkdir(parents=True)
    found = read(WHOLE, tmp_path)
    assert (found.target, found.fail_on, found.min_confidence, found.fail_on_incomplete, found.baseline) == (
        "vllm==0.32.0",
        "warning",
        "low",
        True,
        "known.json",
    )
    assert found.select is not None
    assert {"FIT101", "FIT105", "FIT122"} <= found.select
    assert found.severities == {"FIT107": "error", "TPL004": "warning"}
    assert found.models_from(tmp_path) == {"org/here": "models/here", "org/there": "org/there-fp8"}
    assert found.models_from(tmp_path / "models")["org/here"] == "here"
    (ignore,) = found.ignores
    assert ignore.rules == {"TPL002"}
    assert ignore.subject == {"model": "models/here", "variant": {"enable_thinking": True}}
    assert (ignore.reason, ignore.expires, ignore.place.line) == ("never switched off here", date(2027, 6, 1), 14)
    assert [(table.command, table.place.line) for table in found.tables] == [
        ("audit", 20),
        ("audit", 23),
        ("replay", 26),
    ]


def test_the_nearest_file_upwards_holds(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "reasonctl.toml").write_text('target = "slimserve"')
    (tmp_path / "a" / "pyproject.toml").write_text('[project]\nname = "x"\n')
    found = find(inner)
    assert found is not None
    assert found.path == tmp_path / "reasonctl.toml"
    (tmp_path / "a" / "pyproject.toml").write_text('[tool.reasonctl]\ntarget = "vllm"\n')
    found = find(inner)
    assert found is not None
    assert found.path == tmp_path / "a" / "pyproject.toml"
    assert read_settings(found).target == "vllm"


def test_another_tools_broken_pyproject_is_no_concern(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "reasonctl.toml").write_text('target = "vllm"')
    (inner / "pyproject.toml").write_text('[tool.other\nnote = "reasonctl"')
    found = find(inner)
    assert found is not None
    assert found.path == tmp_path / "reasonctl.toml"
    (inner / "pyproject.toml").write_text('[tool.reasonctl]\nfail-on = "warning"\nbroken = ')
    with pytest.raises(InputError, match="not TOML") as refused:
        find(inner)
    assert refused.value.line == 3
    (inner / "pyproject.toml").write_text("[tool]\nreasonctl = 3")
    with pytest.raises(InputError, match="reasonctl is not a table"):
        find(inner)


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_what_has_the_files_name_and_is_none_is_not_passed_by(kind: str, tmp_path: Path) -> None:
    if kind == "folder":
        (tmp_path / "reasonctl.toml").mkdir()
    else:
        (tmp_path / "reasonctl.toml").symlink_to(tmp_path / "gone.toml")
    with pytest.raises(InputError, match="this is a folder" if kind == "folder" else "no such file"):
        find(tmp_path)


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ('fail_on = "error"', (1, 1), "did you mean fail-on?"),
        ('\nfail-on = "eror"', (2, 1), "did you mean error?"),
        ("target = 3", (1, 1), "target is not a text"),
        ('fail-on-incomplete = "yes"', (1, 1), "not true or false"),
        ('select = ["FIT999"]', (1, 1), "no rule is called 'FIT999'"),
        ('per-rule-severity = {FIT104 = "fatal"}', (1, 22), "FIT104 is 'fatal'"),
        ("models = 3", (1, 1), "models is not a table"),
        ('[ignore]\nrule = "TPL002"', (1, 2), "not an array of tables"),
        ('[[ignore]]\nreason = "x"', (1, 3), "[[ignore]] without rule"),
        ('[[ignore]]\nrule = "TPL002"', (1, 3), "[[ignore]] without reason"),
        ('[[ignore]]\nrule = "TPL002"\nreason = " "', (3, 1), "reason is empty"),
        ('[[ignore]]\nrule = "TPL002"\nreason = "x"\nexpires = 20270601', (4, 1), "expires is not a date"),
        ('[[ignore]]\nrule = "TPL002"\nreason = "x"\nsubject = "m"', (4, 1), "write subject = {NAME = VALUE, ...}"),
        ('[[ignore]]\nrule = "TPL0022"\nreason = "x"', (2, 1), "no rule is called"),
        ('[[ignore]]\nrule = "TPL002"\nreason = "x"\nexpires = "soon"', (4, 1), "expires is not a date"),
        ('[[ignore]]\nrule = "TPL002"\nreason = "x"\nsubject = {modle = "m"}', (4, 12), "did you mean model?"),
        ('[[ignore]]\nrule = "TPL002"\nreason = "x"\nwhy = "y"', (4, 1), "unknown key 'why' of [[ignore]]"),
        ('target = "vllm"\ntarget = "slimserve"', (2, 1), "target is given twice"),
        ("target = ", (1, 10), "not TOML"),
        ("audit = 1", (1, 1), "audit is not an array of tables"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(text: str, place: tuple[int, int], said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        read(text, tmp_path)
    error = refused.value
    assert (error.line, error.column) == place
    assert said in str(error)
    assert "reasonctl.toml" in str(error)


def test_a_named_file_must_have_settings(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n')
    with pytest.raises(InputError, match=r"there is no \[tool.reasonctl\] in it"):
        find(tmp_path, tmp_path / "pyproject.toml")
    with pytest.raises(InputError, match="no such file"):
        find(tmp_path, tmp_path / "none.toml")


@given(st.text())
def test_any_text_is_settings_or_one_refused_line(text: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "reasonctl.toml"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            read_settings(find(Path(name), path))
        except InputError as error:
            assert "\n" not in str(error)
