"""Which version a running vLLM stands for."""

from __future__ import annotations

import re
from collections.abc import Collection

from ... import versions
from ..target import Target


def target_of(version: str, names: Collection[str]) -> Target:
    """The target that a vLLM's own version names.

    A checkout without `_version.py` calls itself `dev`: it stands for the newest version that has given it a name.
    """
    match = re.match(r"v?(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?", version)
    if match and match.group(0) not in ("0.0", "0.0.0"):
        major, minor, patch = (int(part or 0) for part in match.groups())
        return Target("vllm", (major, minor, patch))
    known = [since for name in names for row in versions.rows("reasoning-parser", name) if (since := row.since)]
    return Target("vllm", max(known, default=Target().version))
