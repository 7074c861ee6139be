"""The text of every token as vLLM's detokenizer gives it, stepped token by token."""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream


def streamed(backend: Tokenizer, ids: Sequence[int], prompt: Sequence[int] | None, skip: bool) -> list[str]:
    """One `DecodeStream` primed with the prompt (vllm/v1/engine/detokenizer.py, `_protected_step`, 0.33.0)."""
    stream = DecodeStream(ids=list(prompt or ()), skip_special_tokens=skip)
    texts = []
    for token_id in ids:
        try:
            text = stream.step(backend, token_id)
        except (OverflowError, TypeError):
            text = None
        except Exception as error:
            if not str(error).startswith("Invalid prefix encountered"):
                raise
            stream = DecodeStream(skip_special_tokens=skip)
            text = stream.step(backend, token_id)
        texts.append(text or "")
    return texts
