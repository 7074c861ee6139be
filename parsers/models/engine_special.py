"""gemma4, inkling, mistral and plamo3: engine parsers that do one thing or other their own way.

Models vllm/parser/gemma4.py, inkling.py, mistral.py and plamo3.py of 0.33.0; what reasoning becomes is the same in
0.32.0.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..base import Delta, ParserRaisedError, Split, Vocabulary
from ..target import Target
from . import engine_formats as formats
from .engine_calls import check_call
from .engine_dialects import Dialect, Kwargs
from .engine_grammar import Grammar, State
from .engine_machine import Call, Machine
from .engine_model import EngineModel

_LABEL = "thought\n"


class Gemma4Model(EngineModel):
    """Takes the label `thought` off reasoning, and takes it for an opened block where the start marker is missing."""

    _label_over = False
    _label_seen = ""

    def split(self, text: str, ids: Sequence[int]) -> Split:
        found = super().split(text, ids)
        if found.reasoning == _LABEL.rstrip():
            return Split(None, found.content)
        return Split((found.reasoning or "").removeprefix(_LABEL) or None, found.content)

    def _prepared(self, machine: Machine, text: str, ids: Sequence[int]) -> tuple[str, Sequence[int]]:
        vocab = self._vocabulary.vocab
        start_id = self._start_id
        if (
            machine.state is not State.CONTENT
            or start_id is None
            or formats.GEMMA_END not in vocab
            or formats.GEMMA_START in text
            or not (formats.GEMMA_END in text or text.startswith(_LABEL) or text == _LABEL.rstrip())
        ):
            return text, ids
        return formats.GEMMA_START + text, [start_id, *ids] if ids else ids

    def _state_left_by(self, prompt_ids: Sequence[int]) -> State:
        vocab = self._vocabulary.vocab
        bounds = (formats.GEMMA_END, "<|tool_call>", "<|turn>", "<|tool_response>")
        bound_ids = {vocab[text] for text in bounds if text in vocab}
        for token_id in reversed(prompt_ids):
            if token_id == self._start_id:
                return State.REASONING
            if token_id in bound_ids:
                break
        return State.CONTENT

    def _shaped(self, delta: Delta | None, *, finished: bool) -> Delta | None:
        """Without the label. As in vLLM, a message with what may be the beginning of it is lost, its content too."""
        if delta is None or delta.reasoning is None or self._label_over:
            return delta
        self._label_seen += delta.reasoning
        if self._label_seen.startswith(_LABEL):
            self._label_over = True
            reasoning = self._label_seen[len(_LABEL) :] or None
            return Delta(reasoning, delta.content) if reasoning or delta.content is not None else None
        if _LABEL.startswith(self._label_seen):
            self._label_over = finished
            return None
        self._label_over = True
        return Delta(self._label_seen, delta.content)


class InklingModel(EngineModel):
    """Reads the prompt by its block headers, and counts what stands behind thinking headers."""

    def is_reasoning_end(self, ids: Sequence[int]) -> bool:
        vocab = self._vocabulary.vocab
        opens = {vocab.get(formats.INKLING_THINKING), vocab.get(formats.INKLING_MODEL)}
        ends = {vocab.get(formats.INKLING_TEXT), vocab.get(formats.INKLING_END_SAMPLING)}
        for token_id in reversed(ids):
            if token_id in opens:
                return False
            if token_id in ends:
                return True
        return False

    def _state_left_by(self, prompt_ids: Sequence[int]) -> State:
        vocab = self._vocabulary.vocab
        others = (formats.INKLING_MODEL, formats.INKLING_TEXT, formats.INKLING_END, formats.INKLING_END_SAMPLING)
        other_ids = {vocab[text] for text in (*others, *formats.INKLING_TOOLS) if text in vocab}
        for token_id in reversed(prompt_ids):
            if token_id == vocab.get(formats.INKLING_THINKING):
                return State.REASONING
            if token_id in other_ids:
                break
        return self._first_state

    def _counted(self, ids: Sequence[int], machine: Machine) -> int:
        vocab = self._vocabulary.vocab
        start_id = vocab.get(formats.INKLING_THINKING)
        end_ids = {vocab.get(formats.INKLING_END), vocab.get(formats.INKLING_END_SAMPLING)}
        inside, count = False, 0
        for token_id in ids:
            if token_id == start_id:
                inside = True
            elif token_id in end_ids:
                inside = False
            else:
                count += inside
        return count


class MistralModel(EngineModel):
    """Looks for what the tokenizer has: `[THINK]` tokens, `<think>` texts (mistral-common's own, v11), or nothing."""

    def __init__(
        self, dialect: Dialect, vocabulary: Vocabulary, kwargs: Kwargs, request_kwargs: Kwargs, target: Target
    ) -> None:
        super().__init__(dialect, vocabulary, kwargs, request_kwargs, target)
        if formats.MISTRAL_CALL not in vocabulary.vocab:
            raise ParserRaisedError(
                "RuntimeError", "Mistral parser could not locate the tool call token in the tokenizer!"
            )
        if formats.supports_grammar(vocabulary):
            # The request gets a grammar that allows for thinking, and keeps its own setting.
            self.skip_special_tokens = None

    def _format(self, target: Target) -> Grammar:
        return formats.mistral(self._thinking, as_text="[THINK]" not in self._vocabulary.vocab)

    def _check_call(self, call: Call) -> None:
        try:
            json.JSONDecoder().raw_decode(call.body.strip())
        except json.JSONDecodeError:
            pass
        except RecursionError as error:
            raise ParserRaisedError("RecursionError", str(error)) from None


class Plamo3Model(EngineModel):
    """Its markers are runs of tokens; one the output stops in is taken off reasoning."""

    def is_reasoning_end(self, ids: Sequence[int]) -> bool:
        if not self._thinking:
            return True
        start, end = (self._vocabulary.encode(text) for text in (formats.PLAMO_START, formats.PLAMO_END))
        turn_id = self._vocabulary.vocab.get(formats.PLAMO_TURN)
        given = list(ids)
        for at in range(len(given) - 1, -1, -1):
            if given[at : at + len(end)] == end:
                return True
            if given[at : at + len(start)] == start or given[at] == turn_id:
                return False
        return False

    def split(self, text: str, ids: Sequence[int]) -> Split:
        found = super().split(text, ids)
        return Split(self._whole(found.reasoning), found.content)

    def _whole(self, text: str | None) -> str | None:
        """`text` without the marker that it stops in, if it does."""
        at = text.rfind(formats.PLAMO_LEAD) if text else -1
        if not text or at < 0:
            return text
        tail = tuple(self._vocabulary.encode(text[at:]))
        markers = (self._vocabulary.encode(marker) for spelled in self._grammar.literals.values() for marker in spelled)
        cut = any(len(marker) > len(tail) and tuple(marker[: len(tail)]) == tail for marker in markers)
        return (text[:at] if cut else text) or None

    def _shaped(self, delta: Delta | None, *, finished: bool) -> Delta | None:
        if not finished or delta is None:
            return delta
        reasoning = self._whole(delta.reasoning)
        return Delta(reasoning, delta.content) if reasoning is not None or delta.content is not None else None

    def _check_calls(self, machine: Machine) -> None:
        if machine.orphaned:
            raise ParserRaisedError("IndexError", "list index out of range")
        super()._check_calls(machine)

    def _check_call(self, call: Call) -> None:
        arguments = ""
        for body in map("".join, call.bodies):
            arguments += _without_marker(arguments, body)
        check_call((self._whole(call.name) or "").strip(), arguments)


def _without_marker(before: str, body: str) -> str:
    """A stretch of arguments without the last marker and what is behind it, if that makes them JSON."""
    at = body.rfind(formats.PLAMO_LEAD)
    if at < 0:
        return body
    try:
        json.loads(before + body[:at])
    except ValueError:
        return body
    except RecursionError as error:
        raise ParserRaisedError("RecursionError", str(error)) from None
    return body[:at]
