"""cohere_command3 and cohere_command4: text told apart by cohere-melody, as vLLM has it done.

Models vllm/parser/cohere_command.py and vllm/reasoning/cohere_command_reasoning_parser.py, 0.33.0 and 0.32.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..base import Delta, ParserModel, ParserRaisedError, ParserUnsupportedError, Split, Vocabulary

if TYPE_CHECKING:
    from cohere_melody import PyFilter

_PRESETS: Mapping[str, str] = {"cohere_command3": "cmd3", "cohere_command4": "cmd4"}
_START, _END, _TURN = "<|START_THINKING|>", "<|END_THINKING|>", "<|CHATBOT_TOKEN|>"


def build_cohere(name: str, vocabulary: Vocabulary) -> ParserModel:
    """The model of a Cohere parser. Raises ParserUnsupportedError without cohere-melody 0.14.0 or later."""
    try:
        from cohere_melody import PyFilter, PyFilterOptions

        melody = PyFilter(getattr(PyFilterOptions(), _PRESETS[name])())
    except (ImportError, AttributeError):
        raise ParserUnsupportedError("cohere-melody is missing: pip install 'reasonctl[cohere]'") from None
    return CohereModel(vocabulary, melody)


class CohereModel(ParserModel):
    """One output. The prompt says only whether thinking has ended; where a stream begins does not depend on it."""

    skip_special_tokens = False

    def __init__(self, vocabulary: Vocabulary, melody: PyFilter) -> None:
        self._melody = melody
        self._start_id, self._end_id, self._turn_id = (_id(vocabulary, text) for text in (_START, _END, _TURN))

    def is_reasoning_end(self, ids: Sequence[int]) -> bool:
        ended = False
        for token_id in reversed(ids):
            if token_id == self._start_id:
                return ended
            if token_id == self._turn_id:
                return False
            ended = ended or token_id == self._end_id
        return ended

    def begin(self, prompt_ids: Sequence[int] | None, *, streaming: bool) -> None:
        """Nothing: neither way reads the prompt."""

    def split(self, text: str, ids: Sequence[int]) -> Split:
        found = self._melody.process_full_text(_sendable(text))
        return Split(found.reasoning, found.content)

    def feed(self, text: str, ids: Sequence[int], *, finished: bool = False) -> Delta | None:
        found = [self._melody.write_decoded(_sendable(text))]
        if finished:
            found.append(self._melody.flush_partials())
        content, reasoning = _joined(part.content for part in found), _joined(part.reasoning for part in found)
        if content or reasoning or any(part.citations for part in found):
            return Delta(reasoning, content)
        return None

    def count_reasoning_tokens(self, ids: Sequence[int]) -> int:
        """Tokens inside blocks that these ids open themselves."""
        count = depth = 0
        for token_id in ids:
            if token_id == self._start_id:
                depth += 1
            elif token_id == self._end_id:
                depth = max(0, depth - 1)
            elif depth:
                count += 1
        return count


def _id(vocabulary: Vocabulary, token: str) -> int | None:
    """As transformers' `convert_tokens_to_ids`: what is no token is the unknown token, where there is one."""
    unknown = vocabulary.init_kwargs.get("unk_token")
    if isinstance(unknown, Mapping):
        unknown = unknown.get("content")
    return vocabulary.vocab.get(token, vocabulary.vocab.get(unknown) if isinstance(unknown, str) else None)


def _sendable(text: str) -> str:
    """`text`, or what handing it to the library raises: it takes no halves of characters."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ParserRaisedError("UnicodeEncodeError", str(error)) from None
    return text


def _joined(parts: Iterable[str | None]) -> str | None:
    present = [part for part in parts if part is not None]
    return "".join(present) if present else None
