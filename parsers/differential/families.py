"""Every modelled name, with what its parser looks for."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .families_engine import ENGINE_FAMILIES
from .families_text import TEXT_FAMILIES
from .family import Family

FAMILIES: Mapping[str, Family] = MappingProxyType(dict(sorted((ENGINE_FAMILIES | TEXT_FAMILIES).items())))
