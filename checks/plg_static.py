"""PLG: what a plugin's source shows before anything of it runs."""

from __future__ import annotations

from collections.abc import Iterator

from .finding import Finding
from .plg_facts import PluginLook


def static_findings(look: PluginLook) -> Iterator[Finding]:
    """The faults that stand in the source, in the order of their places."""
    raise NotImplementedError(look)
