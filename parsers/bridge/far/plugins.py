"""A user's own parsers, loaded here and nowhere else."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from typing import TYPE_CHECKING, Any

from .keeper import FOLDERS

if TYPE_CHECKING:
    from .runner import Far


def plugin(far: Far, request: dict[str, Any]) -> dict[str, Any]:
    """Load the file `name` with the text `text` as `--reasoning-parser-plugin` does.

    From then on this process works in a folder of its own: what a plugin writes beside itself is gone with the run.
    vLLM only logs what an import raises and starts without the names (0.33.0, `import_reasoning_parser`); here it is
    the answer's `error`. `names` are those registered then.
    """
    answer: dict[str, Any] = {"error": None}
    sys.path[:] = [os.path.abspath(entry) for entry in sys.path]  # noqa: PTH100
    os.chdir(FOLDERS[0])
    module_name = os.path.splitext(request["name"])[0]  # noqa: PTH122
    folder = tempfile.mkdtemp(prefix="reasonctl-", dir=FOLDERS[0])
    path = os.path.join(folder, request["name"])  # noqa: PTH118
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(request["text"])
    try:
        spec = importlib.util.spec_from_file_location(module_name, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{request['name']} is no Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module
        spec.loader.exec_module(module)
    except Exception as error:
        answer["error"] = " ".join(f"{type(error).__name__}: {error}".split())
    finally:
        os.remove(path)  # noqa: PTH107
        os.rmdir(folder)  # noqa: PTH106
    far.vllm.forget()
    answer["names"] = far.vllm.names()
    return answer


OPS = {"plugin": plugin}
