"""Build the wheel, install it into a fresh environment and see that everything arrived and nothing else did.

Run by `make wheel-check` and CI: python tests/wheel_check.py
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OTHERS = {"tests", "benchmarks", "docs"}
"""Folders that are no part of the package."""


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        shutil.rmtree(
            ROOT / "build" / "lib", ignore_errors=True
        )  # setuptools would pack what an older build left there
        run(sys.executable, "-m", "build", "--wheel", "--outdir", str(place), str(ROOT))
        (wheel,) = place.glob("*.whl")
        problems = contents(wheel)
        problems += installed(wheel, place / "env")
    for problem in problems:
        print(f"wheel-check: {problem}", file=sys.stderr)
    print(f"wheel-check: {wheel.name}: {'FAILED' if problems else 'complete, and nothing outside reasonctl'}")
    return bool(problems)


def expected() -> set[str]:
    """What git tracks of the package: every module, every fixture, `py.typed` and the tables."""
    tracked = run("git", "-C", str(ROOT), "ls-files").splitlines()
    wanted = {name for name in tracked if "/" not in name and name.endswith((".py", "py.typed", ".tsv"))}
    rooms = {name.split("/")[0] for name in tracked if name.endswith("/__init__.py")} - OTHERS
    wanted |= {
        name for name in tracked if name.split("/")[0] in rooms and name.endswith((".py", ".json", ".css", ".js"))
    }
    wanted |= {name for name in tracked if name.startswith("fixtures/")}
    return {f"reasonctl/{name}" for name in wanted}


def contents(wheel: Path) -> list[str]:
    """What the wheel lacks, and what it would put outside `reasonctl`."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    package = {name for name in names if not name.split("/")[0].endswith(".dist-info")}
    missing = [f"missing from the wheel: {name}" for name in sorted(expected() - package)]
    strange = [f"not expected in the wheel: {name}" for name in sorted(package - expected())]
    return missing + strange


def installed(wheel: Path, env: Path) -> list[str]:
    """Install without dependencies and import what needs none; ask where the fixtures ended up."""
    venv.create(env, with_pip=True)
    python = env / "bin" / "python"
    run(str(python), "-m", "pip", "--disable-pip-version-check", "install", "-q", "--no-deps", str(wheel))
    site = Path(run(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    ours = {name.removeprefix("reasonctl/") for name in expected()}
    missing = [f"not installed: {name}" for name in sorted(ours) if not (site / "reasonctl" / name).is_file()]
    version = run(str(python), "-c", "import reasonctl; print(reasonctl.__version__)").strip()
    if not wheel.name.startswith(f"reasonctl-{version}-"):
        missing.append(f"the wheel is {wheel.name}, the package says {version}")
    return missing


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise SystemExit(f"wheel-check: {' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
