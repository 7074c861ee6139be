"""`--vllm ENGINE`: which interpreter has the vLLM, and how it is reached."""

from __future__ import annotations

import os
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from ...errors import InputError

_FORMS = "a Python, a virtual environment, DIR:PYTHON, cmd:COMMAND, image:REF or pod:NAMESPACE/NAME"


@dataclass(frozen=True)
class EngineSpec:
    """A vLLM in another interpreter; plain data, so that it can be handed to another process.

    Attributes:
        text: as the user names it.
        command: what starts that Python, without the arguments of ours.
        overlay: a folder that goes first on its PYTHONPATH.
    """

    text: str
    command: tuple[str, ...]
    overlay: str | None = None

    def environment(self) -> dict[str, str]:
        """This process's environment, with what keeps the other one quiet and off the network."""
        own = {**os.environ, "VLLM_LOGGING_LEVEL": os.environ.get("VLLM_LOGGING_LEVEL", "ERROR")}
        own |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
        own |= {"VLLM_NO_USAGE_STATS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        if self.overlay is not None:
            path = [self.overlay, *filter(None, [own.get("PYTHONPATH")])]
            own["PYTHONPATH"] = os.pathsep.join(path)
        return own


def parse_engine(text: str) -> EngineSpec:
    """What one `--vllm` value names. Raises InputError for a form there is not, and for files that are not there."""
    if not text.strip():
        raise _wrong("is empty", mend=f"give {_FORMS}")
    kind, colon, rest = text.partition(":")
    if colon and kind in ("cmd", "image", "pod") and not Path(text).exists():
        if not rest.strip():
            raise _wrong(f"{kind}: names nothing", mend=f"use {_FORMS}")
        return EngineSpec(text, _prefixes[kind](rest))
    laid = _overlay(text)
    if laid is not None:
        folder, python = laid
        if not (folder / "vllm" / "__init__.py").is_file():
            raise _wrong(f"{folder} holds no vllm package", mend="give the folder that has vllm/ in it")
        if os.pathsep in str(folder):
            raise _wrong(
                f"{folder} cannot go on a PYTHONPATH: it holds a {os.pathsep}", mend="link it under another name"
            )
        return EngineSpec(text, (_python(python),), os.path.abspath(folder))  # noqa: PTH100
    return EngineSpec(text, (_python(text),))


def _command(text: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise _wrong(f"cmd: cannot be read as a command line: {error}", mend="mend the quotes") from None
    if not words or shutil.which(words[0]) is None:
        raise _wrong(
            f"there is no command {words[0] if words else text!r} here", mend="give a command that ends in a Python"
        )
    return words


def _image(text: str) -> tuple[str, ...]:
    if any(character.isspace() for character in text) or text.startswith("-"):
        raise _wrong(
            f"{text!r} is no image", mend="write image:vllm/vllm-openai:v0.33.0, or the whole command as cmd:..."
        )
    docker = _tool("docker", "image:")
    return (docker, "run", "-i", "--rm", "--network", "none", "--entrypoint", "python3", text)


def _pod(text: str) -> tuple[str, ...]:
    namespace, slash, name = text.partition("/")
    if (
        not (slash and namespace and name)
        or "/" in name
        or any(character.isspace() for character in text)
        or text.startswith("-")
    ):
        raise _wrong(f"{text!r} names no pod", mend="write pod:NAMESPACE/NAME, or the whole command as cmd:...")
    return (_tool("kubectl", "pod:"), "exec", "-i", "-n", namespace, name, "--", "python3")


_prefixes = {"cmd": _command, "image": _image, "pod": _pod}


def _tool(name: str, form: str) -> str:
    if shutil.which(name) is None:
        raise _wrong(f"{form} needs {name}, which is not here", mend=f"install {name}, or use cmd:COMMAND")
    return name


def _overlay(text: str) -> tuple[Path, str] | None:
    """(DIR, PYTHON) where the text holds both: at the last colon before which a folder is named."""
    if Path(text).expanduser().exists():
        return None
    for at in range(len(text) - 1, 0, -1):
        if text[at] == ":" and text[at + 1 :] and Path(text[:at]).expanduser().is_dir():
            return Path(text[:at]).expanduser(), text[at + 1 :]
    return None


def _python(text: str) -> str:
    """The interpreter that a path or a name means. Links are kept: a virtual environment's Python is one."""
    path = Path(text).expanduser()
    if path.is_dir():
        found = next((path / "bin" / name for name in ("python", "python3") if (path / "bin" / name).exists()), None)
        if found is None:
            holds = (path / "vllm" / "__init__.py").is_file()
            mend = f"write {text}:PYTHON to lay it over an interpreter" if holds else f"give {_FORMS}"
            raise _wrong(f"the folder {text} is no virtual environment: it has no bin/python", mend=mend)
        path = found
    elif not path.exists():
        named = shutil.which(text) if "/" not in text else None
        if named is None:
            raise _wrong(f"there is no {text}", mend=f"give {_FORMS}")
        path = Path(named)
    if not os.access(path, os.X_OK):
        raise _wrong(f"{path} cannot be executed", mend=f"give {_FORMS}")
    return os.path.abspath(path)  # noqa: PTH100  (resolve() would follow the link)


def _wrong(message: str, *, mend: str) -> InputError:
    return InputError(message, source="--vllm", mend=mend)
