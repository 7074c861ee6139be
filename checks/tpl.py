"""The TPL rules: what the chat template does. Importing this registers all of them."""

from __future__ import annotations

from . import tpl_history, tpl_render, tpl_states  # noqa: F401  (importing registers the rules)
