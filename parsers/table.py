"""The parser table: one row for every reasoning parser that vLLM registers, and which version registers which."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from .. import versions
from .row import Counting, Family, ParserRow, SwitchKwarg
from .rows_engine import ENGINE_ROWS
from .rows_legacy import LEGACY_ROWS
from .rows_other import OTHER_ROWS
from .target import Target

__all__ = ["ROWS", "Counting", "Family", "ParserRow", "SwitchKwarg", "names", "near_names", "paired"]

ROWS: Mapping[str, ParserRow] = MappingProxyType(
    {row.name: row for row in sorted((*ENGINE_ROWS, *LEGACY_ROWS, *OTHER_ROWS), key=lambda row: row.name)}
)
"""All names of vLLM 0.33.0 (vllm/reasoning/__init__.py), sorted."""


@cache
def names(target: Target | None = None) -> tuple[str, ...]:
    """The reasoning parsers a server registers, sorted, of those the table has (see versions.tsv).

    Releases past the newest modelled one are answered with its names, slimserve with the newest's. The first releases,
    which the version table does not reach, had none.
    """
    version = (target if target is not None and target.product == "vllm" else Target()).version
    known = set(versions.names("reasoning-parser", version))
    return tuple(name for name in ROWS if name in known)


def near_names(name: str, target: Target | None = None) -> tuple[str, ...]:
    """At most three registered names that look like `name`, the nearest first."""
    known = names(target)
    plain = {_plain(candidate): candidate for candidate in reversed(known)}
    return tuple(plain[match] for match in difflib.get_close_matches(_plain(name), plain, n=3, cutoff=0.6))


def paired(source: str, model_type: str | None = None) -> tuple[str, ...]:
    """The parsers whose rows name this model, the best match first.

    Args:
        source: where the model comes from: a folder, a hub id, a served name. Its text is searched for the rows' name
            pieces; a longer piece beats a shorter one, and any piece beats a model type.
        model_type: `model_type` of `config.json`; None where unknown.
    """
    text = source.lower().replace("_", "-")
    scored = []
    for name, row in ROWS.items():
        score = max((len(piece) + 1000 for piece in row.architectures if _names(text, piece)), default=0)
        if not score and model_type is not None and model_type.lower() in row.architectures:
            score = 1
        if score:
            scored.append((-score, name != _preferred(row), name))
    return tuple(name for _, _, name in sorted(scored))


def _names(text: str, piece: str) -> bool:
    plain = piece.replace("_", "-")
    return plain in text


def _preferred(row: ParserRow) -> str:
    # Documentation and recipes disagree on MiniMax-M2 alone: the recipes' parser splits, the documentation's does not.
    return "minimax_m2" if row.name == "minimax_m2_append_think" else row.name


def _plain(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())
