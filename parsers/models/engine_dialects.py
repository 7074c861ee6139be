"""What tells the engine parsers apart: one row a name.

Facts of vLLM 0.33.0 and 0.32.0: vllm/parser/qwen3.py, mimo.py, nemotron_v3.py, granite_thinking.py, step3p5.py,
minicpmv.py, seed_oss.py, glm47_moe.py, ling3.py, kimi_k2.py, minimax_m2.py, deepseek_v4.py, deepseek_v41.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..base import ParserRaisedError, Vocabulary
from ..target import Target
from ..versions import Change, applies
from . import engine_formats as formats
from . import engine_grammar as grammars
from .engine_calls import kimi_name
from .engine_grammar import Grammar

Kwargs = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Dialect:
    """What tells one name from the others.

    Attributes:
        grammar: the format, with thinking on or off.
        grammar_before: the format before `Change.CALL_REPAIRS`, where that differs.
        thinks: reads from the chat-template kwargs and the tokenizer whether thinking is on.
        trims_reasoning: white space at the end of reasoning is dropped.
        off_is_content: with thinking off, a whole output is content as it stands.
        off_hides_reasoning: with thinking off, reasoning is thrown away, and streaming passes everything on from the
            second delta.
        off_counts_nothing: with thinking off, no token is a reasoning token.
        fills_content: an empty answer is replaced by the reasoning when the request switched thinking off or asked
            with `force_nonempty_content`.
        trims_content: newlines before the answer are dropped.
        repairs_newlines: escaped newlines become real ones.
        call_name: the name in the text before a call's body; None where a body is never JSON.
    """

    grammar: Callable[[bool], Grammar]
    thinks: Callable[[Kwargs, Vocabulary, Target], bool]
    grammar_before: Callable[[bool], Grammar] | None = None
    trims_reasoning: bool = True
    off_is_content: bool = True
    off_hides_reasoning: bool = False
    off_counts_nothing: bool = False
    fills_content: bool = False
    trims_content: bool = False
    repairs_newlines: bool = False
    call_name: Callable[[str], str] | None = str


def _always(kwargs: Kwargs, vocabulary: Vocabulary, target: Target) -> bool:
    return True


def _by_enable_thinking(kwargs: Kwargs, vocabulary: Vocabulary, target: Target) -> bool:
    """On unless `enable_thinking` is there and false or null. vLLM caches its grammar by the value itself."""
    value = kwargs.get("enable_thinking", True)
    try:
        hash(value)
    except TypeError as error:
        raise ParserRaisedError("TypeError", str(error)) from None
    return bool(value)


def _by_enable_thinking_unheeded(kwargs: Kwargs, vocabulary: Vocabulary, target: Target) -> bool:
    """Always on, but the value is looked at."""
    _by_enable_thinking(kwargs, vocabulary, target)
    return True


def _by_either(kwargs: Kwargs, vocabulary: Vocabulary, target: Target) -> bool:
    """On unless `thinking` or `enable_thinking` is given and neither is true."""
    thinking, enable_thinking = kwargs.get("thinking"), kwargs.get("enable_thinking")
    return (thinking is None and enable_thinking is None) or bool(thinking) or bool(enable_thinking)


def _by_either_unless_glm_5_3(kwargs: Kwargs, vocabulary: Vocabulary, target: Target) -> bool:
    """As `_by_either`, but GLM-5.3, known by its template, has no switch and always thinks."""
    off = kwargs.get("thinking") is False or kwargs.get("enable_thinking") is False
    return (off and _is_glm_5_3(vocabulary.chat_template)) or _by_either(kwargs, vocabulary, target)


def _is_glm_5_3(template: object) -> bool:
    signs = ("[gMASK]<sop>", "Reasoning Effort:", "<tool_call>", "<arg_key>", "<arg_value>")
    return isinstance(template, str) and all(sign in template for sign in signs) and "enable_thinking" not in template


def _by_either_or_effort(kwargs: Kwargs, vocabulary: Vocabulary, target: Target) -> bool:
    """On with a true key, or without either where that means on; never with `reasoning_effort` none."""
    given = "thinking" in kwargs or "enable_thinking" in kwargs
    on = bool(kwargs.get("thinking") or kwargs.get("enable_thinking")) if given else applies(Change.V4_ON, target)
    return on and kwargs.get("reasoning_effort") != "none"


def _by_enable_thinking_off(kwargs: Kwargs, vocabulary: Vocabulary, target: Target) -> bool:
    """As `_by_enable_thinking`, but its absence means off."""
    return _by_enable_thinking({"enable_thinking": kwargs.get("enable_thinking", False)}, vocabulary, target)


_QWEN = Dialect(grammars.qwen, _by_enable_thinking, grammar_before=partial(grammars.qwen, before_0_33=True))
_SEED_TURNS = frozenset(("<seed:bos>", "<seed:eos>"))
_GLM = Dialect(grammars.glm, _by_either_unless_glm_5_3, call_name=None)
DIALECTS: Mapping[str, Dialect] = {
    "qwen3": replace(_QWEN, trims_reasoning=False),
    "mimo": replace(_QWEN, trims_reasoning=False),
    "nemotron_v3": replace(_QWEN, fills_content=True),
    "granite_thinking_parser": replace(_QWEN, fills_content=True, trims_content=True),
    "step3p5": replace(_QWEN, thinks=_by_enable_thinking_unheeded),
    "minicpmv": Dialect(
        grammars.minicpmv,
        _by_enable_thinking,
        grammar_before=partial(grammars.minicpmv, before_0_33=True),
        trims_reasoning=False,
        off_is_content=False,
        off_hides_reasoning=True,
        repairs_newlines=True,
    ),
    "seed_oss": Dialect(
        partial(grammars.qwen, prefix="seed:", turns=_SEED_TURNS),
        _by_enable_thinking,
        grammar_before=partial(grammars.qwen, prefix="seed:", turns=_SEED_TURNS, before_0_33=True),
        trims_reasoning=False,
    ),
    "glm45": _GLM,
    "glm47": _GLM,
    "ling3": replace(_GLM, thinks=_by_either),
    "kimi_k2": Dialect(grammars.kimi_k2, _by_either, off_counts_nothing=True, call_name=kimi_name),
    "minimax_m2": Dialect(grammars.minimax_m2, _always, off_is_content=False),
    "deepseek_v4": Dialect(grammars.deepseek_v4, _by_either_or_effort, off_is_content=False),
    "deepseek_v41": Dialect(grammars.deepseek_v41, _by_either_or_effort, off_is_content=False),
    "gemma4": Dialect(formats.gemma4, _by_enable_thinking_off, off_is_content=False),
    "inkling": Dialect(formats.inkling, _always, off_is_content=False),
    "mistral": Dialect(formats.mistral, formats.mistral_thinks),
    "plamo3": Dialect(formats.plamo3, _by_enable_thinking, trims_reasoning=False, off_is_content=False),
}
"""By registered name."""
