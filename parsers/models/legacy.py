"""Builds the models of the legacy parsers: which machine a name, a tokenizer and its kwargs come to."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from ..base import ParserModel, ParserRaisedError, Vocabulary
from .append_think import AppendThinkModel
from .delimited import (
    CountToEndModel,
    DelimitedModel,
    Delimiters,
    ErnieModel,
    Step3Model,
    SwitchedOffDelimitedModel,
    find_delimiters,
)
from .identity import IdentityModel

_TURN = "<assistant>"
_SUFFIXABLE = ("<think", "<tool_call", "<arg_")
_SUFFIXED = re.compile(r"<(?:think|tool_calls|tool_call|arg_key|arg_value)(:[^\s>]+)?>")


def build_legacy(name: str, vocabulary: Vocabulary, kwargs: Mapping[str, Any]) -> ParserModel:
    """The model of a legacy parser. Raises ParserRaisedError where vLLM's constructor raises."""
    return _BUILDERS[name](vocabulary, kwargs)


def _deepseek_r1(vocabulary: Vocabulary, kwargs: Mapping[str, Any]) -> ParserModel:
    return DelimitedModel(_think_tokens(vocabulary, "DeepSeekR1ReasoningParser"))


def _deepseek_v3(vocabulary: Vocabulary, kwargs: Mapping[str, Any]) -> ParserModel:
    return _deepseek_r1(vocabulary, kwargs) if _either_on(kwargs) else IdentityModel()


def _holo2(vocabulary: Vocabulary, kwargs: Mapping[str, Any]) -> ParserModel:
    silent = kwargs.get("thinking") is None and kwargs.get("enable_thinking") is None
    return _deepseek_r1(vocabulary, kwargs) if silent or _either_on(kwargs) else IdentityModel()


def _poolside_v1(vocabulary: Vocabulary, kwargs: Mapping[str, Any]) -> ParserModel:
    delimiters = _think_tokens(vocabulary, "DeepSeekR1ReasoningParser") if _either_on(kwargs) else None
    turn_id = vocabulary.vocab.get(_TURN)
    if turn_id is None:
        raise ParserRaisedError("ValueError", f"Tokenizer must contain {_TURN!r} token")
    return IdentityModel() if delimiters is None else DelimitedModel(delimiters, turn_id=turn_id)


def _ernie45(vocabulary: Vocabulary, kwargs: Mapping[str, Any]) -> ParserModel:
    delimiters = _think_tokens(vocabulary, "Ernie45ReasoningParser")
    ids = (vocabulary.vocab.get(marker) for marker in (ErnieModel.response_start, ErnieModel.response_end))
    return ErnieModel(delimiters, frozenset(token_id for token_id in ids if token_id is not None))


def _step3(vocabulary: Vocabulary, kwargs: Mapping[str, Any]) -> ParserModel:
    end_id = vocabulary.vocab.get(Step3Model.end)
    if end_id is None:
        raise ParserRaisedError(
            "RuntimeError", "Step3 reasoning parser could not locate think end token in the tokenizer!"
        )
    return Step3Model(end_id)


def _hy_v3(vocabulary: Vocabulary, kwargs: Mapping[str, Any]) -> ParserModel:
    suffix = vocabulary.init_kwargs.get("token_suffix") or ""
    delimiters = _think_tokens(vocabulary, "HYV3ReasoningParser", suffix)
    if (kwargs.get("reasoning_effort") or "no_think") == "no_think":
        return SwitchedOffDelimitedModel(delimiters)
    return DelimitedModel(delimiters)


def _hy_v4(vocabulary: Vocabulary, kwargs: Mapping[str, Any]) -> ParserModel:
    suffix = _hy_v4_suffix(vocabulary)
    if (kwargs.get("reasoning_effort") or "high") == "no_think":
        return IdentityModel()
    raised = "HYV4 reasoning extractor could not locate think start/end tokens in the tokenizer!"
    return CountToEndModel(find_delimiters(vocabulary, f"<think{suffix}>", f"</think{suffix}>", raised=raised))


def _append_think(vocabulary: Vocabulary, kwargs: Mapping[str, Any]) -> ParserModel:
    return AppendThinkModel(vocabulary)


_BUILDERS: Mapping[str, Callable[[Vocabulary, Mapping[str, Any]], ParserModel]] = {
    "deepseek_r1": _deepseek_r1,
    "step5": _deepseek_r1,
    "deepseek_v3": _deepseek_v3,
    "holo2": _holo2,
    "poolside_v1": _poolside_v1,
    "ernie45": _ernie45,
    "step3": _step3,
    "hy_v3": _hy_v3,
    "hy_v4": _hy_v4,
    "minimax_m2_append_think": _append_think,
}


def _think_tokens(vocabulary: Vocabulary, parser: str, suffix: str = "") -> Delimiters:
    raised = f"{parser} reasoning parser could not locate think start/end tokens in the tokenizer!"
    return find_delimiters(vocabulary, f"<think{suffix}>", f"</think{suffix}>", raised=raised)


def _either_on(kwargs: Mapping[str, Any]) -> bool:
    return bool(kwargs.get("thinking")) or bool(kwargs.get("enable_thinking"))


def _hy_v4_suffix(vocabulary: Vocabulary) -> str:
    """The suffix of the checkpoint's own markers, colon included. Raises where the tokenizer names them otherwise."""
    named = vocabulary.init_kwargs.get("model_specific_special_tokens", {})
    if not isinstance(named, Mapping):
        raise ParserRaisedError("AttributeError", f"{type(named).__name__!r} object has no attribute 'get'")
    if named.get("think_begin_token"):
        raise ParserRaisedError(
            "RuntimeError",
            "the tokenizer declares think_begin_token in model_specific_special_tokens, unknown to transformers 5",
        )
    suffix = _suffixes.get(vocabulary)
    if suffix is None:
        suffix = _suffixes[vocabulary] = _first_suffix(vocabulary.vocab)
    return suffix


# Looking through a whole vocabulary takes longer than running a parser; a vocabulary never changes its markers.
_suffixes: WeakKeyDictionary[Vocabulary, str] = WeakKeyDictionary()


def _first_suffix(vocab: Mapping[str, int]) -> str:
    """What the first marker in the vocabulary's own order carries."""
    for token in vocab:
        if token.startswith(_SUFFIXABLE) and (match := _SUFFIXED.fullmatch(token)):
            return match.group(1) or ""
    return ""
