"""The FIT rules: does this parser suit this template and tokenizer. Importing this registers all of them."""

from __future__ import annotations

from . import fit_cost, fit_mode, fit_setup, fit_split, fit_stress  # noqa: F401  (importing registers the rules)
