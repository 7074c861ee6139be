"""Builds the models of the parsers that tell markers by text: which machine a name comes to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..assumed import AssumedVocabulary
from ..base import ParserModel, ParserUnsupportedError, Vocabulary
from .text_granite import GraniteModel
from .text_hunyuan import HunyuanModel
from .text_k2_horizon import K2HorizonModel
from .text_kimi_k3 import KimiK3Model
from .text_minimax_m3 import MinimaxM3Model
from .text_muse import MuseGlimmerModel, MuseModel
from .text_olmo3 import Olmo3Model


def build_text(name: str, vocabulary: Vocabulary, kwargs: Mapping[str, Any]) -> ParserModel:
    """The model of a parser that works on text.

    Raises:
        ParserRaisedError: vLLM's constructor raises.
        ParserUnsupportedError: the parser knows one model's ids, and the vocabulary only stands in for a tokenizer.
    """
    return TEXT_MODELS[name](vocabulary, kwargs)


def _hunyuan(vocabulary: Vocabulary, kwargs: Mapping[str, Any]) -> ParserModel:
    if isinstance(vocabulary, AssumedVocabulary):
        raise ParserUnsupportedError("it compares ids of Hunyuan's own vocabulary: give the model's tokenizer")
    return HunyuanModel()


TEXT_MODELS: Mapping[str, Callable[[Vocabulary, Mapping[str, Any]], ParserModel]] = {
    "granite": lambda vocabulary, kwargs: GraniteModel(),
    "hunyuan_a13b": _hunyuan,
    "olmo3": lambda vocabulary, kwargs: Olmo3Model(vocabulary),
    "k2_horizon": K2HorizonModel,
    "kimi_k3": KimiK3Model,
    "minimax_m3": MinimaxM3Model,
    "muse": lambda vocabulary, kwargs: MuseModel(vocabulary),
    "musespark1x": lambda vocabulary, kwargs: MuseModel(vocabulary),
    "muse_glimmer": lambda vocabulary, kwargs: MuseGlimmerModel(vocabulary),
}
"""How each is made of the tokenizer and the effective chat-template kwargs."""
