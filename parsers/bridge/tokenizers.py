"""Handing a tokenizer over: as the model's own small files, as a description, or as the texts of its tokens."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..base import ParserUnsupportedError, Vocabulary
from ..run import Output

_FILES = (
    *("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"),
    *("added_tokens.json", "chat_template.jinja", "chat_template.json", "additional_chat_templates/*.jinja"),
    *("tokenizer.model", "tokenizer.model.v*", "spiece.model", "vocab.json", "vocab.txt", "merges.txt", "*.tiktoken"),
    *("tekken.json", "params.json", "response_template.json"),
)
"""What a tokenizer is built from, as names and patterns inside a model's folder; no weights and no code."""
_KEPT = 8
"""Tokenizers of folders that the other side holds at once."""

Tell = Callable[..., Mapping[str, Any]]


class Tokenizers:
    """Which tokenizers the other side knows, by key."""

    def __init__(self) -> None:
        self._keys: dict[tuple[int, str], tuple[Vocabulary, str]] = {}
        self._used: tuple[str, Output | None] | None = None
        self._next = 1

    def key(self, vocabulary: Vocabulary, output: Output | None, tell: Tell) -> str:
        """The key of a tokenizer, which is handed over first where it is new.

        Args:
            vocabulary: the tokenizer.
            output: what will be parsed with it: where only the texts of tokens are known, of these.
            tell: asks the other side.

        Raises:
            ParserUnsupportedError: it cannot be handed over, or not be built over there.
        """
        at = id(vocabulary), _mode(vocabulary)
        known = self._keys.get(at)
        if known is None or known[0] is not vocabulary:
            known = (vocabulary, f"reasonctl {self._next}")
            self._next += 1
            answer = tell("tokenizer", key=known[1], **_description(vocabulary))
            if "failed" in answer:
                raise ParserUnsupportedError(f"that vLLM cannot build this tokenizer: {answer['failed']}")
            self._keys[at] = known
            while len(self._keys) > _KEPT:
                _, old = self._keys.pop(next(iter(self._keys)))
                tell("forget", key=old)
        if hasattr(vocabulary, "token_text") and self._used != (known[1], output):
            words = dict(_words(vocabulary, output)) if output is not None else {}
            tell("texts", key=known[1], words=words)
            self._used = (known[1], output)
        return known[1]

    def clear(self) -> None:
        """The other side knows nothing any more."""
        self._keys.clear()
        self._used = None


def model_files(folder: Path) -> dict[str, str]:
    """The small files of a model's folder (or the one file), base64 by path inside it."""
    if folder.is_file():
        return {folder.name: base64.b64encode(folder.read_bytes()).decode()}
    found = {path for pattern in _FILES for path in folder.glob(pattern) if path.is_file()}
    return {path.relative_to(folder).as_posix(): base64.b64encode(path.read_bytes()).decode() for path in sorted(found)}


def _description(vocabulary: Any) -> dict[str, Any]:
    if hasattr(vocabulary, "token_text"):
        markers = getattr(vocabulary, "markers", None)
        vocab = dict(vocabulary.vocab)
        return {"vocab": vocab, "markers": sorted(vocab if markers is None else markers)}
    if hasattr(vocabulary, "spec"):
        return {"spec": vocabulary.spec.to_json()}
    if hasattr(vocabulary, "folder"):
        return {"files": model_files(vocabulary.folder), "mode": _mode(vocabulary)}
    raise ParserUnsupportedError("this tokenizer cannot be handed to another interpreter")


def _mode(vocabulary: Any) -> str:
    """The `--tokenizer-mode` of a model's tokenizer."""
    return str(getattr(vocabulary, "mode", "auto"))


def _words(vocabulary: Any, output: Output) -> Iterator[tuple[str, str]]:
    """The texts of every token that occurs."""
    for token_id in {*(output.prompt_ids or ()), *output.pieces(False).token_ids}:
        try:
            yield str(token_id), vocabulary.token_text(token_id)
        except KeyError:  # of the prompt of a recording: its text is not known
            continue
