"""Prompts of a folder with a tekken.json, built by mistral-common as vLLM's Mistral tokenizer mode builds them.

Source: vLLM 0.33.0, tokenizers/mistral.py, renderers/mistral.py and renderers/online_renderer.py.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .coded import CodedPrompts, RefusedError
from .cut import CodedTokenizer
from .messages import as_sent
from .render import RenderRequest

if TYPE_CHECKING:
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

_SHOWN = frozenset({"[TOOL_CALLS]", "[ARGS]", "[THINK]", "[/THINK]"})
"""Special tokens that vLLM's detokenizer never skips (`convert_ids_to_tokens`)."""
_EFFORT_SINCE = 15
"""Tokenizer version from which vLLM hands the effort on."""
_GRAMMAR_SINCE = 11
"""Tokenizer version from which mistral-common writes grammars for it."""
_ID_CHARS = 9
"""vLLM cuts tool-call ids to their last so many characters."""
_OWN_KWARGS = "chat_template_kwargs"


def read(file: Path) -> CodedPrompts | str:
    """The prompts of that tekken.json, or why they are not evaluated."""
    try:
        stat = file.stat()
        return _read(file, stat.st_mtime_ns, stat.st_size)
    except Exception as error:  # the library asserts and raises what it likes over a broken file
        reason = " ".join(str(error).split())[:200]
        return f"mistral-common renders this model, but cannot read its tekken.json ({type(error).__name__}: {reason})"


@functools.lru_cache(maxsize=4)
def _read(file: Path, _mtime: int, _size: int) -> MistralPrompts:
    from mistral_common.protocol.instruct.validator import ValidationMode
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

    return MistralPrompts(file.parent, MistralTokenizer.from_file(str(file), mode=ValidationMode.test))


class MistralPrompts(CodedPrompts):
    """mistral-common's own prompts. An effort is read by tokenizers that vLLM hands it to."""

    cuts_outputs = True

    def __init__(self, folder: Path, mistral: MistralTokenizer) -> None:
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer

        tekken = mistral.instruct_tokenizer.tokenizer
        if not isinstance(tekken, Tekkenizer):
            raise TypeError(f"a {type(tekken).__name__} is no tekken")
        by = f"mistral-common {metadata.version('mistral-common')}"
        self._mistral = mistral
        self._hands_effort_on = _version(tekken) >= _EFFORT_SINCE
        super().__init__(
            by=by,
            tokenizer=_tokenizer(folder, tekken, by),
            special_tokens={"bos_token": "<s>", "eos_token": "</s>"},
            compared={"reasoning_effort": _efforts(tekken)} if self._hands_effort_on else {},
        )

    def reaching(self, effective: Mapping[str, Any], *, effort: Any, own: Mapping[str, Any] | None) -> dict[str, Any]:
        """The effort, for a tokenizer that takes one; and the request's own kwargs, which make vLLM refuse it."""
        if own is not None:
            return {_OWN_KWARGS: sorted(own)}
        value = effective.get("reasoning_effort")
        return {"reasoning_effort": value} if self._hands_effort_on and value is not None else {}

    def ids(self, request: RenderRequest) -> Sequence[int]:
        """As `apply_chat_template` of vLLM's MistralTokenizer gives them."""
        from mistral_common.exceptions import MistralCommonException

        try:
            return self._ids(request)
        except MistralCommonException as error:
            raise RefusedError(str(error)) from error

    def _ids(self, request: RenderRequest) -> Sequence[int]:
        from mistral_common.protocol.instruct.request import ChatCompletionRequest

        if _OWN_KWARGS in request.kwargs:
            names = ", ".join(request.kwargs[_OWN_KWARGS]) or "here an empty object"
            raise RefusedError(f"vLLM refuses chat_template_kwargs for Mistral tokenizers ({names})")
        messages = [_short_ids(message) for message in as_sent(request.messages)]
        last = messages[-1].get("role") if messages else None
        if request.add_generation_prompt and last == "assistant":
            raise RefusedError("add_generation_prompt, though the last message is the assistant's")
        if request.continue_final_message and last != "assistant":
            raise RefusedError("continue_final_message, though the last message is not the assistant's")
        asked = ChatCompletionRequest.from_openai(
            messages=messages,
            tools=None if request.tools is None else [dict(tool) for tool in request.tools],
            continue_final_message=request.continue_final_message,
            reasoning_effort=request.kwargs.get("reasoning_effort"),
        )
        ids: list[int] = self._mistral.encode_chat_completion(asked).tokens
        return ids


def _tokenizer(folder: Path, tekken: Tekkenizer, by: str) -> CodedTokenizer:
    from mistral_common.tokens.tokenizers.base import SpecialTokenPolicy

    special = {tekken.id_to_piece(i): i for i in range(tekken.num_special_tokens)}
    return CodedTokenizer(
        folder=folder,
        loader=by,
        size=tekken.n_words,
        piece=lambda one: tekken.id_to_byte_piece(one, SpecialTokenPolicy.KEEP),
        cut=lambda text: tekken.encode(text, bos=False, eos=False),
        special_tokens=special,
        kept=_SHOWN,
        # Pieces that are no whole characters share one spelling, which stands for the first of them, as in vLLM.
        spelled=lambda: {text: one for one, text in reversed(list(enumerate(tekken.vocab())))},
        supports_grammar=_version(tekken) >= _GRAMMAR_SINCE,
    )


def _version(tekken: Tekkenizer) -> int:
    return int(str(tekken.version.value).split("v")[-1].split("m")[0])


def _efforts(tekken: Tekkenizer) -> tuple[Any, ...]:
    builder = tekken.model_settings_builder
    efforts = builder.reasoning_effort if builder is not None else None
    return tuple(str(value) for value in efforts.values) if efforts is not None else ()


def _short_ids(message: dict[str, Any]) -> dict[str, Any]:
    """The message as vLLM mends it: tool-call ids cut short, and a list of calls for every answer."""
    if message.get("role") == "assistant":
        calls = [{**call, "id": str(call.get("id", ""))[-_ID_CHARS:]} for call in message.get("tool_calls") or ()]
        return {**message, "tool_calls": calls}
    if "tool_call_id" in message:
        return {**message, "tool_call_id": str(message["tool_call_id"])[-_ID_CHARS:]}
    return message
