"""The engine family: which model a name comes to."""

from __future__ import annotations

from ..base import ParserModel, Vocabulary
from ..target import Target
from .engine_dialects import DIALECTS, Kwargs
from .engine_model import EngineModel
from .engine_special import Gemma4Model, InklingModel, MistralModel, Plamo3Model

ENGINE_NAMES: tuple[str, ...] = tuple(DIALECTS)
"""The names this module models."""

_SPECIAL: dict[str, type[EngineModel]] = {
    "gemma4": Gemma4Model,
    "inkling": InklingModel,
    "mistral": MistralModel,
    "plamo3": Plamo3Model,
}


def build_engine(
    name: str,
    vocabulary: Vocabulary,
    kwargs: Kwargs,
    *,
    request_kwargs: Kwargs | None = None,
    target: Target | None = None,
) -> ParserModel:
    """A model of one engine parser for one request.

    Args:
        name: one of `ENGINE_NAMES`.
        kwargs: the effective chat-template kwargs.
        request_kwargs: the `chat_template_kwargs` of the request itself; None: the same as `kwargs`.
        target: the vLLM version; the newest when None.

    Raises:
        ParserRaisedError: vLLM's constructor raises for these kwargs or this tokenizer.
    """
    own = kwargs if request_kwargs is None else request_kwargs
    return _SPECIAL.get(name, EngineModel)(DIALECTS[name], vocabulary, kwargs, own, target or Target())
