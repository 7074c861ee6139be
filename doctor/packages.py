"""reasonctl's own requirements and what is installed of them, by the package's metadata."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any

PACKAGE = "reasonctl"
EXTRAS: Mapping[str, str] = {
    "mistral": "prompts of models with a tekken.json, which mistral-common builds",
    "harmony": "gpt-oss: the parser openai_gptoss, and prompts where the folder has no template",
    "cohere": "the parsers cohere_command3 and cohere_command4",
    "gguf": "models in .gguf files",
}
"""What is not evaluated without an extra. Those of developers are no part of it."""
_MODULES = {"pyyaml": "yaml", "huggingface-hub": "huggingface_hub"}
_SIGN = "reasonctl-import:"
_IMPORTS = f"""
import importlib, json, sys
for name in sys.argv[1:]:
    error = None
    try:
        importlib.import_module(name)
    except Exception as raised:
        error = " ".join(f"{{type(raised).__name__}}: {{raised}}".split())
    print({_SIGN!r} + json.dumps([name, error]), flush=True)
"""
_NAME = re.compile(r"^([A-Za-z0-9._-]+)")


@dataclass(frozen=True, slots=True)
class Library:
    """A package that is required, and what is there. `version` None: not installed. `problem` None: all is well."""

    name: str
    required: str
    version: str | None
    problem: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "required": self.required, "version": self.version, "problem": self.problem}


@dataclass(frozen=True, slots=True)
class Extra:
    """An optional part: what is not evaluated without it, and the line that installs it."""

    name: str
    libraries: tuple[Library, ...]
    without: str

    @property
    def installed(self) -> bool:
        return all(library.problem is None for library in self.libraries)

    @property
    def install(self) -> str:
        return f"pip install '{PACKAGE}[{self.name}]'"

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "installed": self.installed,
            "libraries": [library.as_json() for library in self.libraries],
            "without": self.without,
            "install": self.install,
        }


def libraries(requirements: Sequence[str]) -> tuple[Library, ...]:
    """What reasonctl cannot do without, each imported to see that it works: an installed package may be broken."""
    found = [library(text) for text in requirements if "extra ==" not in text]
    problems = _imported([one.name for one in found if one.problem is None])
    return tuple(replace(one, problem=one.problem or problems.get(one.name)) for one in found)


def extras(requirements: Sequence[str]) -> Iterator[Extra]:
    """The optional parts, in the order of EXTRAS."""
    for name, without in EXTRAS.items():
        wanted = [text for text in requirements if re.search(rf"extra == ['\"]{name}['\"]", text)]
        yield Extra(name, tuple(library(text) for text in wanted), without)


def requirements() -> Sequence[str] | None:
    """The lines of the installed package's metadata; None where it runs from a folder that is not installed."""
    try:
        return metadata.requires(PACKAGE) or ()
    except metadata.PackageNotFoundError:
        return None


def library(requirement: str) -> Library:
    """One requirement held against what is there.

    Args:
        requirement: as metadata has it, `jinja2>=3.1.6` or `gguf>=0.17; extra == "gguf"`.
    """
    text = requirement.partition(";")[0].strip()
    found = _NAME.match(text)
    name = found[1] if found else text
    wanted = text[len(name) :].strip()
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Library(name, wanted, None, "not installed")
    fits = _fits(version, wanted)
    return Library(name, wanted, version, None if fits else f"{version} is installed, {wanted} is needed")


def _imported(names: Sequence[str]) -> Mapping[str, str]:
    """What is wrong with those that cannot be imported. In a child process: a broken one may take it down."""
    modules = {_MODULES.get(name.lower(), name): name for name in names}
    done = subprocess.run(
        [sys.executable, "-c", _IMPORTS, *modules],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    rows = [json.loads(line[len(_SIGN) :]) for line in done.stdout.splitlines() if line.startswith(_SIGN)]
    told = {modules[module]: error for module, error in rows}
    for name in names:
        if name not in told:  # the first of these is the one it ended on
            return {**_known(told), name: f"cannot be imported: Python ended on it (exit code {done.returncode})"}
    return _known(told)


def _known(told: Mapping[str, str | None]) -> dict[str, str]:
    return {name: f"cannot be imported: {error}" for name, error in told.items() if error is not None}


def _fits(version: str, wanted: str) -> bool:
    try:
        from packaging.specifiers import SpecifierSet
    except ImportError:  # transformers brings it, and is told as missing then
        return True
    return SpecifierSet(wanted).contains(version, prereleases=True)
