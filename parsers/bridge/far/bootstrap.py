"""The first thing that runs over there: makes this package importable from the sources it was sent with."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from typing import Any

PACKAGE = "reasonctl_far"


class Sources(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Imports `reasonctl_far` and its modules from texts."""

    def __init__(self, sources: dict[str, str]) -> None:
        self._texts = {PACKAGE: ""} | {f"{PACKAGE}.{name}": text for name, text in sources.items()}

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._texts:
            return None
        return importlib.util.spec_from_loader(fullname, self, origin=f"<{fullname}>", is_package=fullname == PACKAGE)

    def get_source(self, fullname: str) -> str:
        return self._texts[fullname]

    def is_package(self, fullname: str) -> bool:
        return fullname == PACKAGE


def start(sources: dict[str, str]) -> None:
    """Run the program; returns never."""
    sys.meta_path.insert(0, Sources(sources))
    importlib.import_module(f"{PACKAGE}.keeper").main()
