"""A real vLLM in another interpreter, asked for what its own parsers do."""

from __future__ import annotations

from .bridge import Bridge, open_bridge
from .process import BridgeError
from .spec import EngineSpec, parse_engine

__all__ = ["Bridge", "BridgeError", "EngineSpec", "open_bridge", "parse_engine"]
