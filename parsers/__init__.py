"""What vLLM's reasoning parsers do: the table of all of them, and models that split an output as they would."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import InputError
from .base import Delta, ParserModel, ParserRaisedError, ParserUnsupportedError, Split, Vocabulary
from .markers import STATE_MARKERS, MarkerPair
from .table import ROWS, ParserRow, SwitchKwarg, names, near_names, paired
from .target import Target

__all__ = [
    "ROWS",
    "STATE_MARKERS",
    "Delta",
    "MarkerPair",
    "ParserModel",
    "ParserRaisedError",
    "ParserRow",
    "ParserUnsupportedError",
    "Split",
    "SwitchKwarg",
    "Target",
    "Vocabulary",
    "build",
    "names",
    "near_names",
    "paired",
    "row",
]


def build(
    name: str,
    vocabulary: Vocabulary,
    kwargs: Mapping[str, Any] | None = None,
    *,
    request_kwargs: Mapping[str, Any] | None = None,
    target: Target | None = None,
) -> ParserModel:
    """A model of one parser for one request, as the server builds its parser.

    Args:
        name: a registered name, such as `qwen3`.
        vocabulary: the model's tokenizer.
        kwargs: the effective chat-template kwargs (request, effort and server defaults merged).
        request_kwargs: the `chat_template_kwargs` the client itself sent, which some parsers look at; None: `kwargs`.
        target: the server to judge by; None: the newest vLLM.

    Raises:
        InputError: the target registers no such name.
        ParserUnsupportedError: there is no built-in model of it.
        ParserRaisedError: vLLM's constructor raises for this tokenizer or these kwargs.
    """
    target = target or Target()
    found = row(name, target)
    if not found.modelled:
        raise ParserUnsupportedError("no built-in model yet")
    effective = dict(kwargs or {})
    if found.family == "engine":
        from .models.engine import build_engine

        own = effective if request_kwargs is None else dict(request_kwargs)
        return build_engine(name, vocabulary, effective, request_kwargs=own, target=target)
    if found.family == "cohere":
        from .models.cohere import build_cohere

        return build_cohere(name, vocabulary)
    if found.family == "harmony":
        from .models.harmony import build_harmony

        return build_harmony(vocabulary)
    if found.family == "response-template":
        from .models.response_template import build_response_template

        return build_response_template(name, vocabulary, effective, target=target)
    from .models.text import TEXT_MODELS, build_text

    if name in TEXT_MODELS:
        return build_text(name, vocabulary, effective)
    from .models.legacy import build_legacy

    return build_legacy(name, vocabulary, effective)


def row(name: str, target: Target | None = None) -> ParserRow:
    """The table's row of a name. Raises InputError, with near names, for one the target does not register."""
    found = ROWS.get(name)
    if found is not None and name in names(target):
        return found
    server = str(target or Target())
    if found is not None:
        raise InputError(f"{server} registers no reasoning parser {name!r}", mend=f"vLLM {found.since} and later do")
    near = near_names(name, target)
    mend = f"did you mean {' or '.join(near)}?" if near else f"it has {', '.join(names(target))}"
    raise InputError(f"{server} registers no reasoning parser {name!r}", mend=mend)
