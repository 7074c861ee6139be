"""Which server's behaviour is judged by: `vllm`, `vllm==0.32.0`, `slimserve`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from ..errors import InputError

NEWEST = "0.33.0"
"""The newest vLLM whose parsers this release models."""
EXACT = ("0.33.0", "0.32.0")
"""The vLLM versions the parser models are held identical to; others are judged by the models of NEWEST."""

BUILTIN_ENGINE: Mapping[str, str] = MappingProxyType({"kind": "builtin", "models": f"vllm=={NEWEST}"})
"""How a report names the parser models of this package (`engine` of `reasonctl.report/1`)."""


@dataclass(frozen=True, slots=True, order=True)
class Target:
    """A server to judge by. `version` is vLLM's, as (major, minor, patch); slimserve has no version of its own here."""

    product: Literal["vllm", "slimserve"] = "vllm"
    version: tuple[int, int, int] = (0, 33, 0)

    def __str__(self) -> str:
        return self.product if self.product == "slimserve" else f"vllm=={self.version_text}"

    @property
    def version_text(self) -> str:
        return ".".join(map(str, self.version))

    @property
    def exact(self) -> bool:
        """The models are held identical to this very version; else findings say "modelled on 0.33.0"."""
        return self.product == "vllm" and self.version_text in EXACT


def parse_target(text: str) -> Target:
    """The target a `--target` value names. Raises InputError for anything else."""
    if text == "slimserve":
        return Target("slimserve")
    if text == "vllm":
        return Target()
    match = re.fullmatch(r"vllm==v?(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?(?:[a-z+.-].*)?", text)
    if not match:
        raise InputError(f"{text!r} names no server", source="--target", mend="use vllm, vllm==0.32.0 or slimserve")
    major, minor, patch = (int(part or 0) for part in match.groups())
    return Target("vllm", (major, minor, patch))
